/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures the costs of fibers, streams and calls:
 *
 *   switch N        N switches between two fibers of one worker that yield
 *   bare N          N switches of the registers only, between two stacks without a scheduler
 *   create N        N fibers, started and ended one after the other
 *   join N          like create, with a join of each
 *   fibers N        the memory of N waiting fibers
 *   trip FAR N      N round trips of an element over two streams, on one worker (FAR 0) or two
 *   call FAR N K    N calls with a result, K at a time, to the own core (FAR 0) or another
 *
 * Switching and creating are measured in CPU time of the worker's thread, since no fiber waits there. */
#include "bench.h"

#include <levada/call.h>
#include <levada/stream.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../runtime/platform/context.h"

static lvd_runtime *rt;
static lvd_app *app;
static uint64_t count, far, under_way, sum;
static double took, of_round;

static void must(lvd_status status, const char *what) {
  if (status == LVD_OK) return;
  fprintf(stderr, "%s: %s\n", what, lvd_status_text(status));
  exit(1);
}

static void begin(uint32_t workers, uint32_t entities) {
  lvd_runtime_options o = {.workers = workers, .entities = entities};
  must(lvd_runtime_create(&o, &rt), "lvd_runtime_create");
  must(lvd_app_open(rt, NULL, &app), "lvd_app_open");
}

static void end(void) {
  lvd_app_close(app);
  must(lvd_app_wait(app, -1), "lvd_app_wait");
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static lvd_fiber *start(void (*body)(void *), uint32_t worker) {
  lvd_fiber_options o = {.place = LVD_WORKER(worker)};
  lvd_fiber *f;
  must(lvd_fiber_start(app, body, NULL, &o, &f), "lvd_fiber_start");
  return f;
}

static double own_cpu(void) { return bench_clock(CLOCK_THREAD_CPUTIME_ID); }

/* Also prints the time in iterations of an empty loop, since the speed of a core depends on the programs that share
 * it. */
static void say_cpu(double seconds) {
  bench_say("ns", seconds / (double)count * 1e9);
  bench_say("rounds", seconds / (double)count * 1e9 / of_round);
}

/* ---- switching ------------------------------------------------------------------------------- */

static uint64_t turns[2];

static void yielder(void *unused) {
  (void)unused;
  static int next;
  int me = next++;
  while (!turns[1 - me] && me == 0) { /* until the other one takes turns, too */
    turns[0] = 1;
    lvd_fiber_yield();
  }
  turns[me] = 1;
  double from = own_cpu();
  for (uint64_t i = 0; i < count / 2; i++) {
    turns[me]++;
    lvd_fiber_yield();
  }
  took = own_cpu() - from;
  if (me == 0) of_round = bench_round();
}

static void measure_switch(void) {
  begin(1, 0);
  lvd_fiber *a = start(yielder, 0), *b = start(yielder, 0);
  must(lvd_fiber_join(a, -1), "lvd_fiber_join");
  double of_first = took;
  must(lvd_fiber_join(b, -1), "lvd_fiber_join");
  end();
  bench_expect("the number of turns", turns[0] + turns[1], 2 + count / 2 * 2);
  say_cpu(of_first);
}

/* A switch without a scheduler: the lower bound for switches to a stack that preserve the registers which a call
 * preserves. It uses the runtime's switch code, always from the same two call sites, as fibers do. */
static lvd_os_context home, bare[2];

static void take_turns(void *argument) {
  int me = argument == &bare[1];
  for (;;) {
    turns[me]++;
    lvd_os_context_switch(&bare[me], turns[me] <= count / 2 ? &bare[1 - me] : &home, false);
  }
}

static void measure_bare(void) {
  enum { STACK = 64 * 1024 };
  unsigned char *stack =
      mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) exit(1);
  lvd_os_context_of_thread(&home);
  for (int i = 0; i < 2; i++)
    lvd_os_context_make(&bare[i], stack + i * STACK, STACK, take_turns, &bare[i]);
  double from = own_cpu();
  lvd_os_context_switch(&home, &bare[0], false);
  took = own_cpu() - from;
  of_round = bench_round();
  bench_expect("the number of turns", turns[0] + turns[1], 1 + count / 2 * 2);
  say_cpu(took);
}

/* ---- starting and ending ------------------------------------------------------------------------ */

static void short_life(void *unused) {
  (void)unused;
  sum++;
}

static void creator(void *joins) {
  const lvd_fiber_options here = {.place = LVD_HERE};
  double from = own_cpu();
  for (uint64_t i = 0; i < count; i++) {
    lvd_fiber *f;
    must(lvd_fiber_start(app, short_life, NULL, &here, joins ? &f : NULL), "lvd_fiber_start");
    if (joins)
      must(lvd_fiber_join(f, -1), "lvd_fiber_join");
    else
      lvd_fiber_yield();
  }
  took = own_cpu() - from;
  of_round = bench_round();
}

static void measure_create(bool joins) {
  begin(1, 0);
  lvd_fiber_options o = {.place = LVD_WORKER(0)};
  lvd_fiber *f;
  must(lvd_fiber_start(app, creator, joins ? &o : NULL, &o, &f), "lvd_fiber_start");
  must(lvd_fiber_join(f, -1), "lvd_fiber_join");
  end();
  bench_expect("the number of fibers", sum, count);
  say_cpu(took);
}

/* ---- many ---------------------------------------------------------------------------------------- */

static double resident(void) {
  unsigned long all, own;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%lu %lu", &all, &own) != 2) exit(1);
  fclose(f);
  return (double)own * (double)sysconf(_SC_PAGESIZE);
}

static lvd_a32 begun;

static void sleeper(void *unused) {
  (void)unused;
  lvd_add_relaxed_u32(&begun, 1);
  lvd_fiber_sleep(INT64_MAX / 4);
}

static void measure_fibers(void) {
  begin(0, (uint32_t)count + 4096);
  lvd_fiber **f = (lvd_fiber **)calloc(count, sizeof *f);
  double before = resident(), from = bench_now();
  for (uint64_t i = 0; i < count; i++)
    must(lvd_fiber_start(app, sleeper, NULL, NULL, &f[i]), "lvd_fiber_start");
  while (lvd_load_relaxed_u32(&begun) < count) usleep(1000);
  double started = bench_now() - from, whole = resident();
  for (uint64_t i = 0; i < count; i++) lvd_fiber_cancel(f[i]);
  for (uint64_t i = 0; i < count; i++) must(lvd_fiber_join(f[i], -1), "lvd_fiber_join");
  end();
  bench_say("mib", whole / 1048576);
  bench_say("bytes_each", (whole - before) / (double)count);
  bench_say("ns", started / (double)count * 1e9);
}

/* ---- a round trip ---------------------------------------------------------------------------------- */

static lvd_stream *there, *back;

static void ping(void *unused) {
  (void)unused;
  double from = 0;
  for (uint64_t i = 0; i < count + 1000; i++) {
    uint64_t x = i;
    if (i == 1000) from = bench_now();
    must(lvd_stream_put(there, &x, sizeof x), "lvd_stream_put");
    lvd_stream_push(there);
    must(lvd_stream_get(back, &x, sizeof x), "lvd_stream_get");
    lvd_stream_pop(back);
    bench_expect("the answer", x, i + 1);
  }
  took = bench_now() - from;
}

static void pong(void *unused) {
  (void)unused;
  uint64_t x;
  while (lvd_stream_get(there, &x, sizeof x) == LVD_OK) {
    lvd_stream_pop(there);
    x++;
    must(lvd_stream_put(back, &x, sizeof x), "lvd_stream_put");
    lvd_stream_push(back);
  }
}

static void measure_trip(void) {
  begin(far ? 2 : 1, 0);
  const lvd_stream_options o = {.elem_size = 8, .capacity = 64, .threshold = 1};
  must(lvd_stream_create(app, &o, &there), "lvd_stream_create");
  must(lvd_stream_create(app, &o, &back), "lvd_stream_create");
  lvd_fiber *b = start(pong, far ? 1 : 0), *a = start(ping, 0);
  must(lvd_fiber_join(a, -1), "lvd_fiber_join");
  must(lvd_fiber_join(b, -1), "lvd_fiber_join");
  end();
  bench_say("ns", took / (double)count * 1e9);
}

/* ---- a call ------------------------------------------------------------------------------------------ */

static lvd_status add_one(lvd_call_frame *frame) {
  *(uint64_t *)frame->result = *(const uint64_t *)frame->argument + 1;
  frame->result_size = sizeof(uint64_t);
  return LVD_OK;
}
LVD_PROCEDURE(add_one)

enum { UNDER_WAY_MOST = 1024 };

static void caller(void *argument) {
  lvd_unit *unit = (lvd_unit *)argument;
  static lvd_call *call[UNDER_WAY_MOST];
  double from = 0;
  for (uint64_t i = 0; i < count + 1000 + under_way; i++) {
    lvd_call **c = &call[i % under_way];
    if (i == 1000) from = bench_now();
    if (i >= under_way) {
      uint64_t result;
      size_t size = sizeof result;
      must(lvd_call_wait(*c, &result, &size, -1, NULL), "lvd_call_wait");
      bench_expect("the result", result, i - under_way + 1);
    }
    if (i < count + 1000)
      must(lvd_call_start(unit, "add_one", &i, sizeof i, NULL, c), "lvd_call_start");
  }
  took = bench_now() - from;
}

static void measure_call(void) {
  begin(far ? 2 : 1, 0);
  lvd_unit *unit;
  must(lvd_unit_core(app, far ? 1 : 0, &unit), "lvd_unit_core");
  lvd_fiber_options o = {.place = LVD_WORKER(0)};
  lvd_fiber *f;
  must(lvd_fiber_start(app, caller, unit, &o, &f), "lvd_fiber_start");
  must(lvd_fiber_join(f, -1), "lvd_fiber_join");
  end();
  bench_say("ns", took / (double)count * 1e9);
}

int main(int argc, char **argv) {
  static const char usage[] =
      "switch N | bare N | create N | join N | fibers N | trip FAR N | call FAR N UNDER_WAY";
  const char *mode = argc > 1 ? argv[1] : "";
  bool two = !strcmp(mode, "trip") || !strcmp(mode, "call");
  if (two) far = bench_number(argc, argv, 2, usage);
  count = bench_number(argc, argv, two ? 3 : 2, usage);
  if (!strcmp(mode, "switch")) {
    measure_switch();
  } else if (!strcmp(mode, "bare")) {
    measure_bare();
  } else if (!strcmp(mode, "create")) {
    measure_create(false);
  } else if (!strcmp(mode, "join")) {
    measure_create(true);
  } else if (!strcmp(mode, "fibers")) {
    measure_fibers();
  } else if (!strcmp(mode, "trip")) {
    measure_trip();
  } else if (!strcmp(mode, "call")) {
    under_way = bench_number(argc, argv, 4, usage);
    if (under_way == 0 || under_way > UNDER_WAY_MOST) return 2;
    measure_call();
  } else {
    bench_number(0, argv, 1, usage);
  }
  return 0;
}
