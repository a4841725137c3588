/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Units behind kernel devices, on a simulated board (board.h). */
#include "../../support/bench.h"
#include "board.h"

#include <levada/machine.h>
#include <levada/window.h>

#define STATE    "sys/class/remoteproc/remoteproc0/state"
#define IMAGE    LEVADA_NATIVE_CHILD
#define UIO      "uio:uio0:" IMAGE
#define UIO_BELL "uio:uio0,bell=1+0x40=5:" IMAGE
#define NAMED    "remoteproc:remoteproc0,memory=mem@0+0x800000"
#define MEM      "uio:mem@0+0x800000:" IMAGE
#define MEM_BELL "uio:mem@0+0x800000,bell=0x800040=5:" IMAGE

static lvd_unit *load_board(bench *b, const char *name) {
  lvd_unit *u;
  lvd_status status = lvd_unit_load(b->app, name, NULL, &u);
  if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
  CHECK_EQ(status, LVD_OK);
  return u;
}

/* With spans across the edge of the ring, which is mapped twice in a row. */
static void stream_through(lvd_unit *u, uint32_t rounds) {
  enum { SPAN = 60 };
  lvd_stream *to, *from;
  lvd_call *c;
  lvd_stream_options o = {.name = "in", .elem_size = 4, .capacity = 100};
  CHECK_EQ(lvd_stream_open(u, &o, &to), LVD_OK);
  o.name = "out";
  CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
  CHECK_EQ(lvd_call_start(u, "child_plus_one", NULL, 0, NULL, &c), LVD_OK);
  for (uint32_t round = 0; round < rounds; round++) {
    void *room;
    const void *there;
    CHECK_EQ(lvd_stream_put_span(to, SPAN, &room), LVD_OK);
    for (uint32_t i = 0; i < SPAN; i++) ((uint32_t *)room)[i] = round * SPAN + i;
    lvd_put_done(&to->producer, SPAN);
    lvd_stream_flush(to);
    CHECK_EQ(lvd_stream_get_span(from, SPAN, &there), LVD_OK);
    for (uint32_t i = 0; i < SPAN; i++)
      CHECK_EQ(((const uint32_t *)there)[i], round * SPAN + i + 1);
    lvd_get_done(&from->consumer, SPAN);
    lvd_stream_pop(from);
  }
  CHECK_EQ(lvd_stream_close_sender(to, LVD_OK), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
  CHECK_EQ(lvd_stream_destroy(to), LVD_OK);
  CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
}

static void fault(lvd_unit *u) {
  lvd_call *c;
  char text[300];
  CHECK_EQ(lvd_call_start(u, "child_illegal", NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_E_FAULT);
  CHECK(lvd_unit_error_text(u, text, sizeof text) > 0);
  CHECK(strstr(text, "an illegal instruction") && strstr(text, "child_illegal"));
}

/* Basic operation of a unit; three hosts one after another, and a fault. `after`: the state of the
 * processor after a host has exited; null: it has none. */
static void works(const board *at, const char *name, const char *after) {
  for (int host = 0; host < 3; host++) {
    bench b = bench_of(2);
    lvd_unit *u = load_board(&b, name);
    call_twice_of_many(&u, 1, 2);
    call_backwards(u, 100000, 100000, 1);
    stream_through(u, 100);
    if (host == 1) fault(u);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
    bench_free(&b);
    if (after) board_await(at, STATE, after);
  }
}

static void on_uio(const char *name) {
  board b;
  board_make(&b);
  board_uio(&b, BOARD_WINDOW);
  board_start(&b, strstr(name, "bell") != NULL);
  works(&b, name, NULL);
  board_free(&b);
}

static void uio(void) { on_uio(UIO); }
static void uio_bell(void) { on_uio(UIO_BELL); }

/* Memory contains arbitrary data at first. */
static void junk(const board *b, const char *file) {
  char path[100];
  uint64_t seed = 42;
  snprintf(path, sizeof path, "%s/%s", b->dev, file);
  FILE *f = fopen(path, "r+");
  CHECK(f);
  for (size_t i = 0; i < BOARD_WINDOW / sizeof seed; i++) {
    uint64_t word = next_random(&seed);
    CHECK_EQ(fwrite(&word, sizeof word, 1, f), 1);
  }
  CHECK_EQ(fclose(f), 0);
}

static void mem(void) {
  for (int bell = 0; bell < 2; bell++) {
    board b;
    board_make(&b);
    board_mem(&b);
    junk(&b, "mem");
    board_start(&b, bell);
    works(&b, bell ? MEM_BELL : MEM, NULL);
    board_free(&b);
  }
}

static void refuses_in(int64_t timeout_ns, const char *name, lvd_status status, const char *words) {
  bench b = bench_of(1);
  lvd_unit *u;
  const lvd_unit_options o = {.timeout_ns = timeout_ns};
  CHECK_EQ(lvd_unit_load(b.app, name, &o, &u), status);
  if (!strstr(lvd_window_error_text(), words))
    fprintf(stderr, "%s: %s\n", name, lvd_window_error_text());
  CHECK(strstr(lvd_window_error_text(), words));
  bench_free(&b);
}

/* Also if that takes the whole timeout. */
static void refuses(const char *name, lvd_status status, const char *words) {
  refuses_in(300000000, name, status, words);
}

/* A program that never waits, left by one host, is stopped by the next. */
static void left_behind(void) {
  board b;
  char name[120];
  board_make(&b);
  board_uio(&b, BOARD_WINDOW);
  board_start(&b, true);
  board_write(&b, "loops", "\xeb\xfe");
  snprintf(name, sizeof name, "uio:uio0,bell=1+0x40=5:%s/loops", b.folder);
  for (int i = 0; i < 2; i++) refuses_in(2000000000, name, LVD_E_TIMEOUT, "does not serve in time");
  works(&b, UIO_BELL, NULL);
  board_free(&b);
}

/* A program left by a killed host is stopped by the next. */
static void host_dies(void) {
  board b;
  board_make(&b);
  board_uio(&b, BOARD_WINDOW);
  board_start(&b, true);
  for (int i = 0; i < 3; i++) {
    int how;
    pid_t host = fork();
    if (host == 0) {
      bench t = bench_of(1);
      lvd_unit *u = load_board(&t, UIO_BELL);
      call_twice_of_many(&u, 1, 1);
      unlink(t.path);
      _exit(7);
    }
    CHECK_EQ(waitpid(host, &how, 0), host);
    CHECK(WIFEXITED(how) && WEXITSTATUS(how) == 7);
  }
  works(&b, UIO_BELL, NULL);
  board_free(&b);
}

/* Two hosts one after another run programs to their end; the second host exits first. */
static void machine(const board *at, const char *kind, const char *after) {
  char seven[80], loops[80];
  board_write(at, "seven", "\xb8\x07\x01\x01\x01\xc3");
  board_write(at, "loops", "\xeb\xfe");
  snprintf(seven, sizeof seven, "%s/seven", at->folder);
  snprintf(loops, sizeof loops, "%s/loops", at->folder);
  for (int host = 0; host < 2; host++) {
    lvd_machine *m;
    lvd_machine_report report;
    lvd_status status = lvd_machine_boot(kind, 300000000000, &m);
    if (status != LVD_OK) fprintf(stderr, "%s\n", lvd_window_error_text());
    CHECK_EQ(status, LVD_OK);
    for (int round = 0; round < 3; round++) {
      CHECK_EQ(lvd_machine_load(m, seven), LVD_OK);
      CHECK_EQ(lvd_machine_run(m, 300000000000), LVD_OK);
      do lvd_machine_look(m, 1000000000, &report);
      while (report.state == LVD_MACHINE_RUNNING);
      CHECK_EQ(report.state, LVD_MACHINE_EXITED);
      CHECK_EQ(report.result, 0x1010107);
    }
    CHECK_EQ(lvd_machine_load(m, loops), LVD_OK);
    CHECK_EQ(lvd_machine_run(m, 300000000000), LVD_OK);
    lvd_machine_end(m);
    if (after) board_await(at, STATE, after);
  }
}

static void machines(void) {
  board b;
  for (int bell = 0; bell < 2; bell++) {
    board_make(&b);
    board_uio(&b, BOARD_WINDOW);
    board_start(&b, bell);
    machine(&b, bell ? "uio:uio0,bell=1+0x40=5" : "uio:uio0", NULL);
    works(&b, bell ? UIO_BELL : UIO, NULL);
    board_free(&b);
  }
  board_make(&b);
  board_remote(&b, "offline\n", true);
  board_remote_start(&b, true);
  machine(&b, NAMED ",firmware=usual.elf", "offline");
  board_free(&b);
  lvd_machine *m;
  board_make(&b);
  CHECK_EQ(lvd_machine_boot("uio", 1000000000, &m), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_machine_boot("uio:uio0", 1000000000, &m), LVD_E_NOT_FOUND);
  CHECK(strstr(lvd_window_error_text(), "there is no UIO device uio0"));
  board_free(&b);
}

static void errors(void) {
  board b;
  board_make(&b);
  refuses("uio:uio0", LVD_E_ARGUMENT, "an image's file is missing");
  refuses(UIO, LVD_E_NOT_FOUND, "there is no UIO device uio0");
  refuses("uio:../x:" IMAGE, LVD_E_ARGUMENT, "name a device");
  refuses("uio:mem@0x123+4096:" IMAGE, LVD_E_ARGUMENT, "write mem@ADDRESS+SIZE");
  refuses(MEM, LVD_E_NOT_FOUND, "dev/mem is not there");
  board_write(&b, "sys/class/uio/uio0/name", "bridge\n");
  refuses(UIO, LVD_E_ARGUMENT, "its driver names no map 0");
  board_uio(&b, BOARD_WINDOW);
  refuses(UIO, LVD_E_NOT_FOUND, "dev/uio0 is not there");
  refuses("uio:uio0,bell=7:" IMAGE, LVD_E_ARGUMENT, "write bell=MAP+OFFSET=VALUE");
  refuses("uio:uio0,wings:" IMAGE, LVD_E_ARGUMENT, "unknown option \"wings\"");
  board_write(&b, "sys/class/uio/uio0/maps/map0/addr", "0x40000010\n");
  refuses(UIO, LVD_E_ARGUMENT, "does not begin at a page");
  board_free(&b);
  /* A device without a processor behind it. */
  board_make(&b);
  board_write(&b, "dev/mem", "");
  char path[100];
  snprintf(path, sizeof path, "%s/mem", b.dev);
  CHECK_EQ(truncate(path, BOARD_WINDOW), 0);
  refuses(MEM, LVD_E_TIMEOUT, "the board's loader does not answer");
  refuses("uio:mem@0+0x20000:" IMAGE, LVD_E_MEMORY, "the window is too small: it has 128 KiB");
  refuses("uio:mem@0+0x800000:/nowhere", LVD_E_NOT_FOUND, "/nowhere cannot be opened");
  if (geteuid() != 0) {
    CHECK_EQ(chmod(path, 0), 0);
    refuses(MEM, LVD_E_SYSTEM, "may not be opened by this user");
    CHECK_EQ(chmod(path, 0600), 0);
  }
  /* A window of an earlier host, with another size; of another version; and overwritten. */
  refuses("uio:mem@0+0x400000:" IMAGE, LVD_E_ABI, "another host has made this window");
  FILE *f = fopen(path, "r+");
  const uint32_t header[2] = {LVD_WINDOW_MAGIC, LVD_WINDOW_VERSION + 1};
  CHECK(f && fwrite(header, sizeof header, 1, f) == 1 && fclose(f) == 0);
  refuses(MEM, LVD_E_ABI, "of another version");
  refuses("uio:mem@0+0x800000,fresh:" IMAGE, LVD_E_TIMEOUT, "the board's loader does not answer");
  refuses(MEM, LVD_E_TIMEOUT, "the board's loader does not answer");
  setenv("LEVADA_REMOTE_AGENT", "/nowhere/agent", 1);
  refuses(MEM, LVD_E_NOT_FOUND, "the agent /nowhere/agent is not there");
  board_free(&b);
}

/* ---- processors that Linux starts ------------------------------------------------------------ */

#define STARTED NAMED ",firmware=usual.elf:" IMAGE
#define RUNNING NAMED ",rpmsg=rpmsg2:" IMAGE

/* The processor is started for each host, and stopped afterwards. */
static void remote_starts(void) {
  board b;
  board_make(&b);
  board_remote(&b, "offline\n", true);
  board_remote_start(&b, true);
  works(&b, STARTED, "offline");
  board_free(&b);
}

/* The processor runs before and afterwards. */
static void remote_runs(void) {
  board b;
  board_make(&b);
  board_remote(&b, "running\n", false);
  board_remote_start(&b, false);
  works(&b, RUNNING, "running");
  board_free(&b);
}

/* The host is killed: the agent stops the processor. */
static void remote_host_dies(void) {
  board b;
  int how;
  board_make(&b);
  board_remote(&b, "offline\n", true);
  board_remote_start(&b, true);
  pid_t host = fork();
  if (host == 0) {
    bench t = bench_of(1);
    lvd_unit *u = load_board(&t, STARTED);
    call_twice_of_many(&u, 1, 1);
    unlink(t.path);
    kill(getpid(), SIGKILL);
  }
  CHECK_EQ(waitpid(host, &how, 0), host);
  CHECK(WIFSIGNALED(how) && WTERMSIG(how) == SIGKILL);
  board_await(&b, STATE, "offline");
  works(&b, STARTED, "offline");
  board_free(&b);
}

/* The kernel reports a crash: waiting calls fail. */
static void remote_crashes(void) {
  board b;
  board_make(&b);
  board_remote(&b, "offline\n", true);
  board_remote_start(&b, true);
  bench t = bench_of(2);
  lvd_unit *u = load_board(&t, STARTED);
  lvd_stream *from;
  uint32_t x;
  const lvd_stream_options o = {.name = "out", .elem_size = 4};
  CHECK_EQ(lvd_stream_open(u, &o, &from), LVD_OK);
  board_write(&b, STATE, "crash");
  CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_stream_destroy(from), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&t);
  refuses(STARTED, LVD_E_STATE, "neither running nor offline");
  board_free(&b);
}

static void remote_errors(void) {
  board b;
  board_make(&b);
  refuses("remoteproc:remoteproc0:" IMAGE, LVD_E_ARGUMENT, "say where the window is");
  refuses("remoteproc:usual,memory=uio0:" IMAGE, LVD_E_NOT_FOUND, "there is no UIO device uio0");
  refuses("remoteproc:a/b,memory=uio0:" IMAGE, LVD_E_ARGUMENT, "name a processor");
  refuses(NAMED ",wings:" IMAGE, LVD_E_ARGUMENT, "unknown option \"wings\"");
  refuses(STARTED, LVD_E_NOT_FOUND, "dev/mem is not there");
  board_mem(&b);
  refuses(STARTED, LVD_E_NOT_FOUND, "there is no processor remoteproc0");
  board_remote(&b, "offline\n", true);
  refuses(NAMED ":" IMAGE, LVD_E_STATE, "name its firmware");
  refuses(STARTED, LVD_E_TIMEOUT, "did not start in time");
  board_write(&b, STATE, "running\n");
  refuses(NAMED ":" IMAGE, LVD_E_NOT_FOUND, "dev/rpmsg_ctrl0 is not there");
  refuses(RUNNING, LVD_E_NOT_FOUND, "dev/rpmsg2 is not there");
  board_write(&b, STATE, "offline\n");
  board_remote_start(&b, true);
  refuses_in(0, NAMED ",to=7,firmware=usual.elf:" IMAGE, LVD_E_SYSTEM,
             "cannot create an endpoint to 0x7");
  board_await(&b, STATE, "offline");
  refuses_in(0, NAMED ",firmware=refuses.elf:" IMAGE, LVD_E_PEER_GONE,
             "ended before it took an image");
  board_await(&b, STATE, "offline");
  refuses_in(0, NAMED ",firmware=nothing.elf:" IMAGE, LVD_E_PEER_GONE, "crashed during its start");
  board_free(&b);
}

static const struct {
  const char *name;
  void (*run)(void);
} tests[] = {{"uio", uio},
             {"uio_bell", uio_bell},
             {"mem", mem},
             {"host_dies", host_dies},
             {"left_behind", left_behind},
             {"machines", machines},
             {"errors", errors},
             {"remote_starts", remote_starts},
             {"remote_runs", remote_runs},
             {"remote_host_dies", remote_host_dies},
             {"remote_crashes", remote_crashes},
             {"remote_errors", remote_errors}};

int main(int argc, char **argv) {
  for (size_t i = 0; i < COUNT(tests); i++)
    if (argc == 2 && strcmp(tests[i].name, argv[1]) == 0) {
      tests[i].run();
      return 0;
    }
  fprintf(stderr, "usage: %s TEST, where TEST is one of\n", argv[0]);
  for (size_t i = 0; i < COUNT(tests); i++) fprintf(stderr, "  %s\n", tests[i].name);
  return 2;
}
