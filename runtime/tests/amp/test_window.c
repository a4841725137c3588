/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Units behind a window: calls, streams, faults, and invalid images; on QEMU, if it is installed,
 * as machines of 64 and 32 bits, and on the machine that is a process of this system, which can
 * also be made faulty. */
#include "../support/bench.h"

#include <levada/srpc.h>
#include <levada/window.h>

#include <signal.h>
#include <unistd.h>

#ifndef LEVADA_REMOTE_CHILD
#define LEVADA_REMOTE_CHILD   "" /* no cross compiler */
#define LEVADA_REMOTE32_CHILD ""
#endif
#ifndef LEVADA_NATIVE_CHILD
#define LEVADA_NATIVE_CHILD "" /* not for this processor */
#endif

/* The machine under test. */
typedef struct machine {
  const char *prefix, *image, *illegal, *returns, *loops; /* the last three: instructions */
  size_t illegal_size, returns_size, loops_size;
  unsigned char other; /* ELF machine number of another processor */
  bool small;          /* 32 bits, no floating point */
} machine;

static const machine qemu = {"qemu:",
                             "qemu:" LEVADA_REMOTE_CHILD,
                             "\0\0\0\0",
                             "\x67\x80\0\0",
                             "\x6f\0\0\0",
                             4,
                             4,
                             4,
                             62,
                             false},
                     qemu32 = {"qemu32:",
                               "qemu32:" LEVADA_REMOTE32_CHILD,
                               "\0\0\0\0",
                               "\x67\x80\0\0",
                               "\x6f\0\0\0",
                               4,
                               4,
                               4,
                               62,
                               true},
                     native = {"native:",  "native:" LEVADA_NATIVE_CHILD,
                               "\x0f\x0b", "\xc3",
                               "\xeb\xfe", 2,
                               1,          2,
                               243,        false};
static const machine *on;

static void on_machine(const machine *m, const char *emulator) {
  char command[80];
#ifdef LVD_EMULATED
  SKIP("an emulator within an emulator");
#endif
  if (!*LEVADA_REMOTE_CHILD)
    SKIP("no riscv64-linux-gnu-gcc: there is no program for the other side");
  snprintf(command, sizeof command, "command -v %s >/dev/null", emulator);
  if (system(command) != 0) SKIP("no QEMU for it: install qemu-system-misc");
  on = m;
}

static void on_qemu(void) { on_machine(&qemu, "qemu-system-riscv64"); }
static void on_qemu32(void) { on_machine(&qemu32, "qemu-system-riscv32"); }

static void on_native(void) {
  if (!*LEVADA_NATIVE_CHILD) SKIP("the machine that is a process is there for x86-64");
  on = &native;
}

#define ON_BOTH(name)                                                                              \
  void test_window_##name(void) {                                                                  \
    on_qemu();                                                                                     \
    name();                                                                                        \
  }                                                                                                \
  void test_window32_##name(void) {                                                                \
    on_qemu32();                                                                                   \
    name();                                                                                        \
  }                                                                                                \
  void test_native_##name(void) {                                                                  \
    on_native();                                                                                   \
    name();                                                                                        \
  }

/* And on a machine with a non-coherent cache. (LEVADA_TEST_CHILD: another program than the
 * tests'.) */
static void on_caches(void) {
  static char image[4096];
  static machine with;
  const char *child = getenv("LEVADA_TEST_CHILD");
  on_native();
  if (child) {
    snprintf(image, sizeof image, "%s%s", native.prefix, child);
    with = native;
    with.image = image;
    on = &with;
  }
  CHECK_EQ(setenv("LEVADA_WINDOW_FAULTS", "caches,evicts", 0), 0);
}

#define ON_ALL(name)                                                                               \
  ON_BOTH(name)                                                                                    \
  void test_caches_##name(void) {                                                                  \
    on_caches();                                                                                   \
    name();                                                                                        \
  }

static lvd_unit *load_window(bench *b) {
  lvd_unit *u;
  lvd_status status = lvd_unit_load(b->app, on->image, NULL, &u);
  if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
  CHECK_EQ(status, LVD_OK);
  return u;
}

static void calls(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  CHECK(strstr(lvd_unit_name(u), "window "));
  lvd_call *c;
  call_twice_of_many(&u, 1, 5);
  double two = 2, root = 0;
  size_t size = sizeof root;
  CHECK_EQ(lvd_call_start(u, "child_root", &two, 8, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, &root, &size, -1, NULL), on->small ? LVD_E_NOT_FOUND : LVD_OK);
  CHECK(on->small || (root * root > 1.9999999 && root * root < 2.0000001));
  CHECK_EQ(lvd_call_start(u, "nobody_knows_it", NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_E_NOT_FOUND);
  call_backwards(u, 100000, 100000, 1);
  call_overstates(u);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_ALL(calls)

/* 64-bit integers behave alike on any processor. */
static void wide(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  uint64_t seed = 3;
  for (int round = 0; round < 2000; round++) {
    uint64_t x[2] = {next_random(&seed), next_random(&seed)}, said[8] = {0};
    size_t size = sizeof said;
    lvd_call *c;
    /* Of all magnitudes and both signs. */
    x[0] >>= next_random(&seed) % 64;
    x[1] >>= next_random(&seed) % 64;
    if (round % 3 == 0) x[0] = -x[0];
    if (round % 5 == 0) x[1] = -x[1];
    if (x[1] == 0 || x[1] == UINT64_MAX) x[1] = 7;
    int64_t a = (int64_t)x[0], d = (int64_t)x[1];
    int by = (int)(x[1] & 63);
    const uint64_t right[8] = {
        x[0] / x[1],
        x[0] % x[1],
        (uint64_t)(a / d),
        (uint64_t)(a % d),
        x[0] << by,
        x[0] >> by,
        (uint64_t)(a >> by),
        (uint64_t)(__builtin_clzll(x[0] | 1) + __builtin_ctzll(x[0] | UINT64_C(1) << 63))};
    CHECK_EQ(lvd_call_start(u, "child_wide", x, sizeof x, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, said, &size, -1, NULL), LVD_OK);
    for (int i = 0; i < 8; i++) CHECK_EQ(said[i], right[i]);
  }
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_BOTH(wide)

/* Elements that were written and not pushed do not appear in the next stream at the same place, in
 * which the host sends. */
static void leftovers(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  for (int round = 0; round < 20; round++) {
    lvd_stream *from, *to;
    lvd_call *c;
    uint32_t x;
    lvd_stream_options o = {.name = "much", .elem_size = 4, .capacity = 1000};
    CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
    CHECK_EQ(lvd_call_start(u, "child_leaves_much", NULL, 0, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_OK);
    CHECK_EQ(x, 1);
    CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_EOF);
    CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
    CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
    o.name = "sum";
    CHECK_EQ(lvd_stream_open(u, &o, &to), LVD_OK);
    uint32_t sum = 0, said = 0;
    size_t size = sizeof said;
    for (uint32_t i = 1; i <= 900; i++) {
      sum += i * i;
      x = i * i;
      CHECK_EQ(lvd_stream_put(to, &x, 4), LVD_OK);
    }
    CHECK_EQ(lvd_call_start(u, "child_sums", NULL, 0, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_stream_close_sender(to, LVD_OK), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, &said, &size, -1, NULL), LVD_OK);
    CHECK_EQ(said, sum);
    CHECK_EQ(lvd_stream_destroy(to), LVD_OK);
  }
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_ALL(leftovers)

/* It ends when it is told, and need not be killed, which happens after 2 s. (On a slow machine it
 * may take longer sometimes.) */
static void unloads(void) {
  bench b = bench_of(2);
  lvd_status status = LVD_E_TIMEOUT;
  for (int round = 0; round < 10 && status != LVD_OK; round++) {
    lvd_unit *u = load_window(&b);
    lvd_call *c;
    uint32_t x = 21;
    CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
    status = lvd_unit_unload_timeout(u, 1900000000);
    if (status == LVD_E_TIMEOUT) CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  }
  CHECK_EQ(status, LVD_OK);
  bench_free(&b);
}
ON_ALL(unloads)

static void streams(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  for (int round = 0; round < 3; round++) {
    lvd_stream *to, *from;
    lvd_call *c;
    lvd_stream_options o = {.name = "in", .elem_size = 4, .capacity = 100};
    CHECK_EQ(lvd_stream_open(u, &o, &to), LVD_OK);
    o.name = "out";
    CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
    CHECK_EQ(lvd_call_start(u, "child_plus_one", NULL, 0, NULL, &c), LVD_OK);
    uint32_t sent = 0, got = 0, n = round == 0 ? 10 : 20000;
    while (got < n) {
      for (; sent < n && sent - got < 80; sent++) CHECK_EQ(lvd_stream_put(to, &sent, 4), LVD_OK);
      lvd_stream_flush(to);
      uint32_t x;
      CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_OK);
      CHECK_EQ(x, got + 1);
      got++;
      lvd_stream_pop(from);
    }
    CHECK_EQ(lvd_stream_close_sender(to, LVD_OK), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
    uint32_t x;
    CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_EOF);
    CHECK_EQ(lvd_stream_destroy(to), LVD_OK);
    CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
  }
  /* The stream of a procedure that failed does not end as complete. */
  const lvd_stream_options o = {.name = "out", .elem_size = 4};
  lvd_stream *from;
  lvd_call *c;
  uint32_t x;
  CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
  CHECK_EQ(lvd_call_start(u, "child_gives_up", NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_OK);
  lvd_stream_pop(from);
  CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_CORRUPT);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_E_CORRUPT);
  CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_ALL(streams)

static void fails(const char *procedure, const char *words) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  lvd_call *c;
  char text[300];
  uint32_t x = 21;
  CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
  CHECK_EQ(lvd_call_start(u, procedure, NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_E_FAULT);
  CHECK_EQ(lvd_unit_state(u), LVD_E_FAULT);
  CHECK(lvd_unit_error_text(u, text, sizeof text) > 0);
  if (!strstr(text, words) || !strstr(text, procedure)) fprintf(stderr, "%s\n", text);
  CHECK(strstr(text, words) && strstr(text, procedure));
  CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_E_FAULT);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  /* Again. */
  u = load_window(&b);
  CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

static void faults(void) {
  fails("child_illegal", "an illegal instruction");
  fails("child_wild", "a store to where no memory is");
  fails("child_jumps", "a jump to where no memory is");
}
ON_ALL(faults)

static void hangs(void) { fails("child_hangs", "without waiting"); }
ON_ALL(hangs)

/* Its process is killed: waiting calls fail. */
static void death(void) {
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  lvd_stream *from;
  const lvd_stream_options o = {.name = "out", .elem_size = 4};
  CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
  kill(lvd_unit_process(u), SIGKILL);
  uint32_t x;
  CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_unit_state(u), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}
ON_BOTH(death)

/* With the SRPC interface: the same as with a process, but for the unit's name. */
static void srpc(void) {
  CHECK_EQ(pb_load(on->image), LVD_OK);
  CHECK_EQ(pb_boot(), LVD_OK);
  TASKID t = pb_create("far_negate", 0);
  CHECK(t);
  pb_set_diagnostics(false);
  CHECK(!pb_create("nobody_knows_it", 0));
  CHECK_EQ(pb_status(), LVD_E_NOT_FOUND);
  pb_set_diagnostics(true);
  CHECK_EQ(stream_create(1), LVD_OK);
  CHECK_EQ(stream_create(2), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  for (int i = 0; i < 1000; i++) {
    int x = 0;
    CHECK_EQ(stream_put(1, i), LVD_OK);
    CHECK_EQ(stream_flush(1), LVD_OK);
    CHECK_EQ(stream_get(2, x), LVD_OK);
    CHECK_EQ(stream_pop(2), LVD_OK);
    CHECK_EQ(x, -i);
  }
  CHECK_EQ(stream_close(1), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(pb_release(t), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}
ON_ALL(srpc)

/* The host prints misuse of the remote side, which has no error output. */
static void srpc_misuse(void) {
  int error = dup(STDERR_FILENO), told_in = memfd_create("told", MFD_CLOEXEC);
  char told[4096];
  u32 a = 1;
  CHECK(error >= 0 && told_in >= 0);
  CHECK_EQ(pb_load(on->image), LVD_OK);
  CHECK(dup2(told_in, STDERR_FILENO) == STDERR_FILENO);
  TASKID none = pb_create("far_negates", 0), t = pb_create("far_misuses", 0);
  CHECK_EQ(stream_create(1), LVD_OK);
  CHECK_EQ(stream_put(1, a), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  lvd_status status = pb_finish();
  CHECK(dup2(error, STDERR_FILENO) == STDERR_FILENO);
  ssize_t n = pread(told_in, told, sizeof told - 1, 0);
  CHECK(n >= 0 && !none);
  told[n] = 0;
  CHECK_EQ(status, LVD_E_NOT_FOUND);
  CHECK(strstr(told, "no procedure has this name; did you mean \"far_negate\"?"));
  CHECK(strstr(told, "): stream_put(77) in far_misuses: the caller has not created this stream"));
  CHECK(strstr(told, "): stream_get(1) in far_misuses: an element of another size"));
  CHECK(strstr(pb_error_text(), "far_negate"));
  _exit(0); /* exit would print the misuse */
}
ON_ALL(srpc_misuse)

/* ---- bad input ------------------------------------------------------------------------------- */

static void refuses(const char *name, const char *bytes, size_t size, lvd_status status,
                    const char *words) {
  char path[] = "/tmp/levada-image-XXXXXX", unit[64];
  int fd = mkstemp(path);
  CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
  close(fd);
  snprintf(unit, sizeof unit, "%s%s", on->prefix, path);
  bench b = bench_of(1);
  lvd_unit *u;
  const lvd_unit_options o = {.timeout_ns = 2000000000};
  lvd_status got = lvd_unit_load(b.app, unit, &o, &u);
  if (got != status || !strstr(lvd_window_error_text(), words))
    fprintf(stderr, "%s: %s: %s\n", name, lvd_status_name(got), lvd_window_error_text());
  CHECK_EQ(got, status);
  CHECK(strstr(lvd_window_error_text(), words));
  bench_free(&b);
  unlink(path);
}

static void bad_images(void) {
  static char elf[1 << 20];
  FILE *f = fopen(on->image + strlen(on->prefix), "rb");
  size_t size = f ? fread(elf, 1, sizeof elf, f) : 0;
  CHECK(size > 1000 && size < sizeof elf);
  fclose(f);
  bench b = bench_of(1);
  lvd_unit *u;
  char nowhere[64];
  snprintf(nowhere, sizeof nowhere, "%s/nowhere/at.all", on->prefix);
  CHECK_EQ(lvd_unit_load(b.app, nowhere, NULL, &u), LVD_E_NOT_FOUND);
  CHECK(strstr(lvd_window_error_text(), "/nowhere/at.all"));
  bench_free(&b);
  refuses("empty", elf, 0, LVD_E_ARGUMENT, "empty");
  refuses("a header's piece", elf, 30, LVD_E_ARGUMENT, "cut off");
  refuses("cut off", elf, size / 3, LVD_E_ARGUMENT, "");
  char was = elf[18];
  elf[18] = (char)on->other;
  refuses("another processor's", elf, size, LVD_E_ABI, "another processor");
  elf[18] = was;
  elf[4] = (char)(3 - elf[4]);
  refuses("of another width", elf, size, LVD_E_ABI, "another processor");
  elf[4] = 3;
  refuses("of no width", elf, size, LVD_E_ABI, "another processor");
  elf[4] = on->small ? 1 : 2;
  memset(elf + 24, 0x11, on->small ? 4 : 8);
  refuses("no entry", elf, size, LVD_E_ARGUMENT, "outside of itself");
  /* Raw instructions: an illegal one, a return without serving, an endless loop. */
  refuses("raw, illegal", on->illegal, on->illegal_size, LVD_E_FAULT, "illegal instruction");
  refuses("raw, returns", on->returns, on->returns_size, LVD_E_PEER_GONE, "has ended");
  refuses("raw, a loop", on->loops, on->loops_size, LVD_E_TIMEOUT, "");
}
ON_BOTH(bad_images)

void test_window_header(void) {
  enum { SIZE = 1 << 20 };
  lvd_window *w = aligned_alloc(4096, SIZE);
  const lvd_window_shape good = {.size = SIZE,
                                 .image = 4096,
                                 .image_size = 8192,
                                 .segment = 16384,
                                 .segment_size = SIZE - 16384};
  lvd_window_shape s;
  memset(w, 0, SIZE);
  CHECK(strstr(lvd_window_read(w, SIZE, &s), "no window"));
  lvd_window_make(w, &good);
  CHECK(!lvd_window_read(w, SIZE, &s));
  CHECK_EQ(s.segment, good.segment);
  CHECK(strstr(lvd_window_read(w, 100, &s), "smaller than its header"));
  CHECK(strstr(lvd_window_read(w, SIZE / 2, &s), "larger than the memory"));
#define WRONG(field, value, words)                                                                 \
  do {                                                                                             \
    lvd_window_make(w, &good);                                                                     \
    w->field = (value);                                                                            \
    if (strcmp(#field, "checksum") != 0)                                                           \
      w->checksum = lvd_window_sum(w, offsetof(lvd_window, checksum));                             \
    const char *said = lvd_window_read(w, SIZE, &s);                                               \
    CHECK(said &&strstr(said, words));                                                             \
  } while (0)
  WRONG(magic, 7, "no window");
  WRONG(magic, __builtin_bswap32(LVD_WINDOW_MAGIC), "byte order");
  WRONG(order, 0x04030201, "byte order");
  WRONG(version, 2, "another version");
  WRONG(header, 64, "another version");
  WRONG(abi_version, LVD_ABI_VERSION + 1, "another layout");
  WRONG(line, 64, "another layout");
  WRONG(checksum, 1, "checksum");
  WRONG(size, SIZE + 4096, "larger than the memory");
  WRONG(image, 100, "do not lie within");
  WRONG(segment, UINT64_MAX - 4095, "do not lie within");
  WRONG(segment_size, SIZE, "do not lie within");
  WRONG(image_size, SIZE / 2, "do not lie within");
  /* A window with random bytes, and one with a damaged header: only refusals. */
  uint64_t seed = 42;
  for (int round = 0; round < 100000; round++) {
    if (round % 2)
      lvd_window_make(w, &good);
    else
      for (size_t i = 0; i < sizeof *w / 8; i++) ((uint64_t *)(void *)w)[i] = next_random(&seed);
    ((unsigned char *)w)[next_random(&seed) % (offsetof(lvd_window, checksum) + 4)] ^=
        (unsigned char)(1 + next_random(&seed) % 255);
    CHECK(lvd_window_read(w, SIZE, &s));
  }
  free(w);
}

/* A program that overwrites the window passes wrong data, or is given up, or is useless until it is
 * killed; nothing else happens here, and the next one works as before. */
static void hostile(void) {
  bench b = bench_of(2);
  uint32_t given_up = 0;
  for (int round = 0; round < 8; round++) {
    lvd_unit *u = load_window(&b);
    lvd_call *c, *d;
    lvd_stream *from;
    const lvd_stream_options o = {.name = "out", .elem_size = 4, .timeout_ns = 500000000};
    uint64_t seed[2] = {0x9e3779b97f4a7c15u * (uint64_t)(round + 1), 0};
    uint32_t x = 21;
    bool returned;
    CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
    CHECK_EQ(lvd_call_start(u, "child_scribbles", seed, round % 2 ? 16 : 8, NULL, &c), LVD_OK);
    lvd_call_wait(c, NULL, NULL, 500000000, &returned);
    bool second = lvd_call_start(u, "twice", &x, 4, NULL, &d) == LVD_OK;
    lvd_stream_get(from, &x, 4);
    given_up += lvd_unit_state(u) != LVD_OK;
    kill(lvd_unit_process(u), SIGKILL);
    if (!returned) lvd_call_wait(c, NULL, NULL, 300000000000, &returned);
    CHECK(returned);
    if (second) lvd_call_wait(d, NULL, NULL, 300000000000, &returned);
    CHECK(returned);
    CHECK(lvd_stream_wait_elements(from, 1, 300000000000) != LVD_E_TIMEOUT);
    CHECK(lvd_unit_state(u) != LVD_OK);
    CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  }
  CHECK(given_up > 0);
  bench_free(&b);
}
ON_BOTH(hostile)

/* ---- repetition ------------------------------------------------------------------------------ */

static int descriptors(void) {
  int n = 0;
  for (int fd = 0; fd < 1024; fd++) n += fcntl(fd, F_GETFD) >= 0;
  return n;
}

/* Resident memory of this process, in KiB. */
static long resident(void) {
  long pages = 0, all;
  FILE *f = fopen("/proc/self/statm", "re");
  CHECK(f && fscanf(f, "%ld %ld", &all, &pages) == 2);
  fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A leak of one page per round would be 1 MiB in 256 rounds. */
enum { SETTLED = 10, MORE_KIB = 1024 };

/* Boots, loads, runs, and releases, kills or crashes it, LVD_ROUNDS times, without a leak. */
static void rounds(void) {
  const char *rounds = getenv("LVD_ROUNDS");
  int n = rounds ? atoi(rounds) : 12, before = 0;
  long memory = 0;
  uint64_t seed = 7;
  bench b = bench_of(2);
  for (int round = 0; round < n; round++) {
    lvd_unit *u = load_window(&b);
    lvd_call *c;
    uint32_t x = (uint32_t)round, y = 0;
    size_t size = sizeof y;
    CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, &y, &size, 300000000000, NULL), LVD_OK);
    CHECK_EQ(y, 2 * x);
    if (round % 3 == 1) {
      CHECK_EQ(lvd_call_start(u, "child_hangs", NULL, 0, NULL, &c), LVD_OK);
      lvd_call_wait(c, NULL, NULL, (int64_t)(next_random(&seed) % 3000000), NULL);
      CHECK_EQ(kill(lvd_unit_process(u), SIGKILL), 0);
      CHECK_EQ(lvd_call_wait(c, NULL, NULL, 300000000000, NULL), LVD_E_PEER_GONE);
    } else if (round % 3 == 2) {
      CHECK_EQ(lvd_call_start(u, "child_illegal", NULL, 0, NULL, &c), LVD_OK);
      CHECK_EQ(lvd_call_wait(c, NULL, NULL, 300000000000, NULL), LVD_E_FAULT);
    }
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
    if (round == 2) before = descriptors();
    if (round > 2) CHECK_EQ(descriptors(), before);
    if (round == SETTLED) memory = resident();
  }
  CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* no child is left */
  if (n > SETTLED) {
    printf("%d rounds, %ld KiB more than after the first %d\n", n, resident() - memory, SETTLED);
#if !defined(__SANITIZE_THREAD__) &&                                                               \
    !defined(__SANITIZE_ADDRESS__) /* sanitizers keep freed memory */
    CHECK(resident() - memory < MORE_KIB);
#endif
  }
  bench_free(&b);
}
ON_ALL(rounds)

/* ---- faulty machines ------------------------------------------------------------------------- */

static void set_faults(const char *words) { CHECK_EQ(setenv("LEVADA_WINDOW_FAULTS", words, 1), 0); }

/* Loading fails in time, with a reason; afterwards it works again. */
static void does_not_load(const char *faults, lvd_status status, const char *words) {
  bench b = bench_of(2);
  lvd_unit *u;
  lvd_call *c;
  uint32_t x = 21;
  const lvd_unit_options o = {.timeout_ns = 1000000000};
  set_faults(faults);
  lvd_status got = lvd_unit_load(b.app, on->image, &o, &u);
  if (got != status || !strstr(lvd_window_error_text(), words))
    fprintf(stderr, "%s: %s: %s\n", faults, lvd_status_name(got), lvd_window_error_text());
  CHECK_EQ(got, status);
  CHECK(strstr(lvd_window_error_text(), words));
  CHECK_EQ(waitpid(-1, NULL, WNOHANG), -1); /* it has been ended */
  set_faults("");
  u = load_window(&b);
  CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

void test_native_bad_starts(void) {
  on_native();
  does_not_load("spoils", LVD_E_CORRUPT, "damaged on its way");
  does_not_load("dies=1", LVD_E_PEER_GONE, "has ended before it took an image");
  does_not_load("dies=2", LVD_E_PEER_GONE, "has ended");
  does_not_load("silent=1", LVD_E_TIMEOUT, "loader does not answer");
  does_not_load("silent=2", LVD_E_TIMEOUT, "does not serve");
}

/* Everything is late by 20 ms, and correct. */
void test_native_late(void) {
  on_native();
  set_faults("late=20");
  bench b = bench_of(2);
  lvd_unit *u = load_window(&b);
  lvd_call *c[8];
  for (uint32_t i = 0; i < COUNT(c); i++)
    CHECK_EQ(lvd_call_start(u, "twice", &i, 4, NULL, &c[i]), LVD_OK);
  for (uint32_t i = 0; i < COUNT(c); i++) {
    uint32_t x = 0;
    size_t size = sizeof x;
    CHECK_EQ(lvd_call_wait(c[i], &x, &size, -1, NULL), LVD_OK);
    CHECK_EQ(x, 2 * i);
  }
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  set_faults("");
  bench_free(&b);
}

/* It loads, and fails at a signal that comes with a reply or an element: waiting calls and streams
 * fail, and no data are invented. */
static void goes_wrong(const char *faults, lvd_status status, const char *words) {
  bench b = bench_of(2);
  set_faults(faults);
  lvd_unit *u = load_window(&b);
  lvd_stream *to, *from;
  lvd_call *c;
  lvd_stream_options o = {.name = "in", .elem_size = 4};
  CHECK_EQ(lvd_stream_open(u, &o, &to), LVD_OK);
  o.name = "out";
  CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
  CHECK_EQ(lvd_call_start(u, "child_plus_one", NULL, 0, NULL, &c), LVD_OK);
  lvd_status got = LVD_OK;
  uint32_t n = 0;
  for (; got == LVD_OK && n < 10000; n++) {
    uint32_t x = 0;
    if (n > 100) sleep_ms(2); /* a polling side is not signalled */
    if ((got = lvd_stream_put(to, &n, 4)) != LVD_OK) break;
    lvd_stream_flush(to);
    if ((got = lvd_stream_get(from, &x, 4)) != LVD_OK) break;
    CHECK_EQ(x, n + 1);
    lvd_stream_pop(from);
  }
  CHECK(n < 10000);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), status);
  CHECK_EQ(lvd_unit_state(u), status);
  char text[300] = "";
  lvd_unit_error_text(u, text, sizeof text);
  if (!strstr(text, words)) fprintf(stderr, "%s: %s\n", faults, text);
  CHECK(strstr(text, words));
  CHECK_EQ(lvd_stream_destroy(to), LVD_OK);
  CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  set_faults("");
  bench_free(&b);
}

void test_native_dies_half_way(void) {
  on_native();
  goes_wrong("dies=12", LVD_E_PEER_GONE, "");
  goes_wrong("dies=40", LVD_E_PEER_GONE, "");
}

void test_native_nonsense(void) {
  on_native();
  goes_wrong("nonsense=12", LVD_E_CORRUPT, "none that a loader writes");
}

void test_native_falls_silent(void) {
  on_native();
  goes_wrong("silent=12", LVD_E_PEER_GONE, "does not answer");
}
