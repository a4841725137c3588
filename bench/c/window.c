/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures a processor behind a window:
 *
 *   load UNIT N            N times: boot, load, run an empty procedure, release
 *   call UNIT N            N calls of the empty procedure, one after the other
 *   trip UNIT N PAUSE_US   N round trips of an element, each after a pause; without a pause both sides
 *                          poll, after a long one both sleep and are woken by bells
 *   stream UNIT N SIZE     N elements of SIZE bytes to the other side, in groups
 *   fill UNIT N SIZE       the host's part of it: the other side returns the memory unread
 *   run KIND N             runs a program of 150 bytes that returns at once N times, on a booted machine
 *   node UNIT N SIZE       N round trips of SIZE bytes to an MCAPI node on the other side
 *   packets UNIT N SIZE    N packets to such a node
 *   memory SIZE            bound for fill: copies of SIZE bytes into memory of this process
 *   polled N               bound for trip: two processes that each poll a word */
#include "bench.h"

#include <levada/machine.h>
#include <levada/mcapi_window.h>
#include <levada/process.h>
#include <levada/stream.h>
#include <levada/window.h>
#include <mcapi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static lvd_runtime *rt;
static lvd_app *app;

static void must(lvd_status status, const char *what) {
  if (status == LVD_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, lvd_status_text(status), lvd_window_error_text());
  exit(1);
}

static lvd_unit *load(const char *name) {
  lvd_unit *u;
  must(lvd_unit_load(app, name, NULL, &u), "lvd_unit_load");
  return u;
}

static void call_nothing(lvd_unit *u) {
  lvd_call *c;
  must(lvd_call_start(u, "remote_nothing", NULL, 0, NULL, &c), "lvd_call_start");
  must(lvd_call_wait(c, NULL, NULL, -1, NULL), "lvd_call_wait");
}

static void measure_load(const char *name, uint64_t n) {
  double load_s = 0, whole = bench_now();
  for (uint64_t i = 0; i < n; i++) {
    double from = bench_now();
    lvd_unit *u = load(name);
    call_nothing(u);
    load_s += bench_now() - from;
    must(lvd_unit_unload(u), "lvd_unit_unload");
  }
  bench_say("load_ms", load_s / (double)n * 1e3);
  bench_say("round_ms", (bench_now() - whole) / (double)n * 1e3);
}

static void measure_call(const char *name, uint64_t n) {
  lvd_unit *u = load(name);
  for (int i = 0; i < 100; i++) call_nothing(u);
  double from = bench_now();
  for (uint64_t i = 0; i < n; i++) call_nothing(u);
  bench_say("us", (bench_now() - from) / (double)n * 1e6);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

static void measure_trip(const char *name, uint64_t n, uint64_t pause_us) {
  lvd_unit *u = load(name);
  lvd_stream *to, *fro;
  lvd_call *c;
  lvd_stream_options o = {.name = "to", .elem_size = 8, .capacity = 64, .threshold = 1};
  must(lvd_stream_open(u, &o, &to), "lvd_stream_open");
  o.name = "fro";
  must(lvd_stream_open(u, &o, &fro), "lvd_stream_open");
  must(lvd_call_start(u, "remote_echo", NULL, 0, NULL, &c), "lvd_call_start");
  double *us = calloc(n + 10, sizeof *us);
  for (uint64_t i = 0; i < n + 10; i++) {
    if (pause_us) usleep((useconds_t)pause_us);
    uint64_t back = 0;
    double from = bench_now();
    must(lvd_stream_put(to, &i, 8), "lvd_stream_put");
    lvd_stream_flush(to);
    must(lvd_stream_get(fro, &back, 8), "lvd_stream_get");
    us[i] = (bench_now() - from) * 1e6;
    bench_expect("what came back", back, i);
    lvd_stream_pop(fro);
  }
  double sum = 0;
  for (uint64_t i = 10; i < n + 10; i++) sum += us[i];
  bench_say("us", sum / (double)n);
  free(us);
  lvd_stream_close_sender(to, LVD_OK);
  must(lvd_call_wait(c, NULL, NULL, -1, NULL), "lvd_call_wait");
  lvd_stream_destroy(to);
  lvd_stream_destroy(fro);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

static void measure_stream(const char *name, uint64_t n, uint32_t size) {
  static unsigned char element[4096];
  lvd_unit *u = load(name);
  lvd_stream *to;
  lvd_call *c;
  lvd_stream_options o = {.name = "to", .elem_size = size, .capacity = 65536 / size};
  must(lvd_stream_open(u, &o, &to), "lvd_stream_open");
  must(lvd_call_start(u, "remote_sink", &size, sizeof size, NULL, &c), "lvd_call_start");
  double from = bench_now();
  for (uint64_t i = 0; i < n; i++) {
    element[0] = element[size - 1] = (unsigned char)i;
    must(lvd_stream_put(to, element, size), "lvd_stream_put");
    lvd_stream_push(to);
  }
  lvd_stream_close_sender(to, LVD_OK);
  uint64_t good = 0;
  size_t result = sizeof good;
  must(lvd_call_wait(c, &good, &result, -1, NULL), "lvd_call_wait");
  bench_say("mb_per_s", (double)(n * size) / (bench_now() - from) * 1e-6);
  bench_expect("the elements that came", good, n);
  lvd_stream_destroy(to);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

/* In groups that are large enough for memcpy to be fast. */
static void measure_fill(const char *name, uint64_t n, uint32_t size) {
  enum { RING = 262144, GROUP = 65536 };
  static unsigned char group[GROUP];
  lvd_unit *u = load(name);
  lvd_stream *to;
  lvd_call *c;
  uint32_t each = GROUP / size;
  lvd_stream_options o = {.name = "to", .elem_size = size, .capacity = RING / size};
  must(lvd_stream_open(u, &o, &to), "lvd_stream_open");
  must(lvd_call_start(u, "remote_gives_back", &size, sizeof size, NULL, &c), "lvd_call_start");
  double from = 0;
  for (uint64_t i = 0; i < n / each + 8; i++) {
    void *span;
    if (i == 8) from = bench_now(); /* all of the memory is mapped now */
    group[0] = (unsigned char)i;
    must(lvd_stream_put_span(to, each, &span), "lvd_stream_put_span");
    memcpy(span, group, (size_t)each * size);
    lvd_put_done(&to->producer, each);
    lvd_stream_push(to);
  }
  bench_say("mb_per_s", (double)(n / each) * each * size / (bench_now() - from) * 1e-6);
  lvd_stream_close_sender(to, LVD_OK);
  uint64_t count = 0;
  size_t result = sizeof count;
  must(lvd_call_wait(c, &count, &result, -1, NULL), "lvd_call_wait");
  bench_expect("the elements that came", count, (n / each + 8) * each);
  lvd_stream_destroy(to);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

static void measure_run(const char *kind, uint64_t n) {
  static const unsigned char riscv[150] = {0x13, 0x05, 0x70, 0, 0x67, 0x80, 0, 0},
                             x86[150] = {0xb8, 7, 0, 0, 0, 0xc3};
  char file[] = "/tmp/levada-bench-XXXXXX";
  lvd_machine *m;
  lvd_machine_report r;
  int fd = mkstemp(file);
  if (fd < 0 || write(fd, strcmp(kind, "qemu") == 0 ? riscv : x86, sizeof riscv) < 0) exit(1);
  close(fd);
  must(lvd_machine_boot(kind, INT64_C(10000000000), &m), "lvd_machine_boot");
  must(lvd_machine_load(m, file), "lvd_machine_load");
  unlink(file);
  double sum = 0;
  for (uint64_t i = 0; i < n + 10; i++) {
    double from = bench_now();
    must(lvd_machine_run(m, INT64_C(10000000000)), "lvd_machine_run");
    do lvd_machine_look(m, 1000000000, &r);
    while (r.state == LVD_MACHINE_RUNNING);
    if (i >= 10) sum += bench_now() - from;
    bench_expect("what the program has returned", r.result, 7);
  }
  bench_say("us", sum / (double)n * 1e6);
  lvd_machine_end(m);
}

/* ---- an MCAPI node there -------------------------------------------------------------------- */

static mcapi_status_t says;

static void good(const char *what) {
  char text[64] = "";
  if (says == MCAPI_SUCCESS || says == MCAPI_PENDING) return;
  mcapi_display_status(says, text, sizeof text);
  fprintf(stderr, "%s: %s\n", what, text);
  exit(1);
}

static lvd_mcapi_remote *node(lvd_unit *u, const char *procedure, mcapi_endpoint_t *mine,
                              mcapi_endpoint_t *to) {
  lvd_mcapi_remote *f;
  mcapi_info_t info;
  mcapi_domain_t domain = (mcapi_domain_t)getpid();
  mcapi_initialize(domain, 1, NULL, NULL, &info, &says);
  good("mcapi_initialize");
  *mine = mcapi_endpoint_create(1, &says);
  good("mcapi_endpoint_create");
  must(lvd_mcapi_remote_start(app, u, procedure, &domain, sizeof domain, &f),
       "lvd_mcapi_remote_start");
  *to = mcapi_endpoint_get(domain, 2, 1, MCAPI_TIMEOUT_INFINITE, &says);
  good("mcapi_endpoint_get");
  return f;
}

static void node_ends(lvd_mcapi_remote *f, lvd_unit *u) {
  bool returned;
  must(lvd_mcapi_remote_wait(f, -1, &returned), "lvd_mcapi_remote_wait");
  mcapi_finalize(&says);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

static void measure_node(const char *name, uint64_t n, size_t size) {
  static unsigned char out[MCAPI_MAX_MESSAGE_SIZE], in[MCAPI_MAX_MESSAGE_SIZE];
  mcapi_endpoint_t mine, to;
  size_t got;
  lvd_unit *u = load(name);
  lvd_mcapi_remote *f = node(u, "remote_messages", &mine, &to);
  double from = 0;
  for (uint64_t i = 0; i < n + 10; i++) {
    if (i == 10) from = bench_now();
    out[0] = (unsigned char)i;
    mcapi_msg_send(mine, to, out, size, 0, &says);
    good("mcapi_msg_send");
    mcapi_msg_recv(mine, in, sizeof in, &got, &says);
    good("mcapi_msg_recv");
    bench_expect("what came back", in[0] + got, out[0] + size);
  }
  bench_say("us", (bench_now() - from) / (double)n * 1e6);
  mcapi_msg_send(mine, to, out, 0, 0, &says);
  node_ends(f, u);
}

static void await(mcapi_request_t *r) {
  size_t size;
  good("a request");
  mcapi_wait(r, &size, MCAPI_TIMEOUT_INFINITE, &says);
  good("mcapi_wait");
}

static void measure_packets(const char *name, uint64_t n, size_t size) {
  static unsigned char out[MCAPI_MAX_PACKET_SIZE];
  mcapi_endpoint_t mine, to;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t h;
  lvd_unit *u = load(name);
  lvd_mcapi_remote *f = node(u, "remote_packets", &mine, &to);
  mcapi_pktchan_connect_i(mine, to, &r, &says);
  await(&r);
  mcapi_pktchan_send_open_i(&h, mine, &r, &says);
  await(&r);
  double from = bench_now();
  for (uint64_t i = 0; i < n; i++) {
    out[0] = (unsigned char)i;
    mcapi_pktchan_send(h, out, size, &says);
    good("mcapi_pktchan_send");
  }
  mcapi_pktchan_send(h, out, 0, &says);
  bool returned;
  must(lvd_mcapi_remote_wait(f, -1, &returned), "lvd_mcapi_remote_wait");
  bench_say("mb_per_s", (double)n * (double)size / (bench_now() - from) * 1e-6);
  mcapi_finalize(&says);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

/* In a ring of the stream's size; source and target are mapped before. */
static void measure_memory(uint32_t size) {
  enum { RING = 65536, COPIES = 200000 };
  static unsigned char ring[RING], from_here[4096];
  memset(ring, 1, RING);
  double from = bench_now();
  for (uint64_t i = 0; i < COPIES; i++) {
    from_here[0] = (unsigned char)i;
    memcpy(ring + i * size % RING, from_here, size);
    __asm__ volatile("" : : "r"(ring) : "memory");
  }
  bench_say("mb_per_s", (double)COPIES * size / (bench_now() - from) * 1e-6);
}

typedef struct words {
  _Alignas(64) uint64_t there;
  _Alignas(64) uint64_t back;
} words;

static void measure_polled(uint64_t n) {
  words *w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pid_t other = fork();
  if (other == 0) {
    bench_pin(bench_core(1));
    for (uint64_t i = 1; i <= n; i++) {
      while (__atomic_load_n(&w->there, __ATOMIC_ACQUIRE) != i) bench_poll();
      __atomic_store_n(&w->back, i, __ATOMIC_RELEASE);
    }
    _exit(0);
  }
  bench_pin(bench_core(0));
  double from = 0;
  for (uint64_t i = 1; i <= n; i++) {
    if (i == 2) from = bench_now();
    __atomic_store_n(&w->there, i, __ATOMIC_RELEASE);
    while (__atomic_load_n(&w->back, __ATOMIC_ACQUIRE) != i) bench_poll();
  }
  bench_say("us", (bench_now() - from) / (double)(n - 1) * 1e6);
  waitpid(other, NULL, 0);
}

int main(int argc, char **argv) {
  static const char usage[] = "load|call|trip|stream|fill|node|packets UNIT N [PAUSE_US|SIZE] | "
                              "run KIND N | memory SIZE | polled N";
  if (argc == 3 && strcmp(argv[1], "memory") == 0) {
    measure_memory((uint32_t)bench_number(argc, argv, 2, usage));
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "polled") == 0) {
    measure_polled(bench_number(argc, argv, 2, usage));
    return 0;
  }
  uint64_t n = bench_number(argc, argv, 3, usage);
  if (strcmp(argv[1], "run") == 0) {
    measure_run(argv[2], n);
    return 0;
  }
  must(lvd_runtime_create(NULL, &rt), "lvd_runtime_create");
  must(lvd_app_open(rt, NULL, &app), "lvd_app_open");
  if (strcmp(argv[1], "load") == 0)
    measure_load(argv[2], n);
  else if (strcmp(argv[1], "call") == 0)
    measure_call(argv[2], n);
  else if (strcmp(argv[1], "trip") == 0)
    measure_trip(argv[2], n, bench_number(argc, argv, 4, usage));
  else if (strcmp(argv[1], "stream") == 0)
    measure_stream(argv[2], n, (uint32_t)bench_number(argc, argv, 4, usage));
  else if (strcmp(argv[1], "fill") == 0)
    measure_fill(argv[2], n, (uint32_t)bench_number(argc, argv, 4, usage));
  else if (strcmp(argv[1], "node") == 0)
    measure_node(argv[2], n, bench_number(argc, argv, 4, usage));
  else if (strcmp(argv[1], "packets") == 0)
    measure_packets(argv[2], n, bench_number(argc, argv, 4, usage));
  else
    bench_number(0, argv, 1, usage);
  lvd_app_close(app);
  must(lvd_app_wait(app, -1), "lvd_app_wait");
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  return 0;
}
