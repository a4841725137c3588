/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A processor behind a window:
 *
 *   load UNIT N            N times load, run an empty procedure, and let go: the machine begins each time
 *   call UNIT N            N calls of the empty procedure, one after the other
 *   trip UNIT N PAUSE_US   N elements there and back, each after a pause; without one both sides look
 *                          around for the next, after a long one both sleep and are rung for
 *   stream UNIT N SIZE     N elements of SIZE bytes to the other side, in groups
 *   memory SIZE            what bounds that: copies of SIZE bytes into memory of this process
 *   polled N               what bounds a trip: two processes that look at one word each */
#include "bench.h"

#include <levada/process.h>
#include <levada/stream.h>
#include <levada/window.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static lvd_runtime *rt;
static lvd_app *app;

static void must(lvd_status status, const char *what) {
  if (status == LVD_OK) return;
  fprintf(stderr, "%s: %s: %s\n", what, lvd_status_text(status), lvd_window_why());
  exit(1);
}

static lvd_unit *load(const char *name) {
  lvd_unit *u;
  must(lvd_unit_load(app, name, NULL, &u), "lvd_unit_load");
  return u;
}

static void call_nothing(lvd_unit *u) {
  lvd_call *c;
  must(lvd_call_start(u, "far_nothing", NULL, 0, NULL, &c), "lvd_call_start");
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
  must(lvd_call_start(u, "far_echo", NULL, 0, NULL, &c), "lvd_call_start");
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
  lvd_stream_end(to, LVD_OK);
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
  must(lvd_call_start(u, "far_sink", &size, sizeof size, NULL, &c), "lvd_call_start");
  double from = bench_now();
  for (uint64_t i = 0; i < n; i++) {
    element[0] = element[size - 1] = (unsigned char)i;
    must(lvd_stream_put(to, element, size), "lvd_stream_put");
    lvd_stream_push(to);
  }
  lvd_stream_end(to, LVD_OK);
  uint64_t good = 0;
  size_t result = sizeof good;
  must(lvd_call_wait(c, &good, &result, -1, NULL), "lvd_call_wait");
  bench_say("mb_per_s", (double)(n * size) / (bench_now() - from) * 1e-6);
  bench_expect("the elements that came", good, n);
  lvd_stream_destroy(to);
  must(lvd_unit_unload(u), "lvd_unit_unload");
}

/* In a ring as large as the stream's; both written and read before. */
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
  static const char usage[] =
      "load|call|trip|stream UNIT N [PAUSE_US|SIZE] | memory SIZE | polled N";
  if (argc == 3 && strcmp(argv[1], "memory") == 0) {
    measure_memory((uint32_t)bench_number(argc, argv, 2, usage));
    return 0;
  }
  if (argc == 3 && strcmp(argv[1], "polled") == 0) {
    measure_polled(bench_number(argc, argv, 2, usage));
    return 0;
  }
  uint64_t n = bench_number(argc, argv, 3, usage);
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
  else
    bench_number(0, argv, 1, usage);
  lvd_app_close(app);
  must(lvd_app_wait(app, -1), "lvd_app_wait");
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  return 0;
}
