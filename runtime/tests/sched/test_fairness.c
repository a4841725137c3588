/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which of several ready entities of the same priority a worker runs first. */
#include <time.h>

#include "../support/test.h"

static lvd_a32 turns;

static lvd_run_result hog_run(lvd_actor *self) {
  struct timespec t0, t;
  lvd_add_relaxed_u32(&turns, 1);
  clock_gettime(CLOCK_MONOTONIC, &t0);
  do clock_gettime(CLOCK_MONOTONIC, &t);
  while ((t.tv_sec - t0.tv_sec) * 1000000000 + t.tv_nsec - t0.tv_nsec < 1000000);
  (void)self;
  return LVD_RUN_YIELD;
}

/* A pipeline does not wait at each of its actors for a time slice of one that always has work. */
void test_fair_next_to_a_hog(void) {
  static const lvd_actor_class hog = {.name = "hog", .run = hog_run};
  lvd_actor_desc one[] = {{"one", &hog, NULL, 0}};
  lvd_network net = {LVD_ABI_VERSION, "busy", 1, 0, one, NULL};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *busy;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &busy, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(busy), LVD_OK);
  uint32_t count = 3000;
  sink s = {0};
  builder b;
  pipeline(&b, 12, &count, &s, 1);
  lvd_app *app = app_begun(rt, &b);
  uint32_t before = lvd_load_relaxed_u32(&turns);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  /* One element at a time: if each hop waited for a slice of the other, there would be at least
   * 3000 slices. */
  CHECK(lvd_load_relaxed_u32(&turns) - before < count / 3);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, count);
  lvd_app_unload(busy);
  lvd_runtime_destroy(rt);
}

/* Computes until it is asked to yield. */
static lvd_run_result greedy_run(lvd_actor *self) {
  while (!lvd_should_yield(self)) lvd_add_relaxed_u32(&turns, 1);
  return LVD_RUN_YIELD;
}

/* Data that passes from worker to worker, on each of which an actor always computes, makes
 * progress. The time is printed: if the computing actors did not yield, each hop would wait for a
 * tick of the clock. */
void test_fair_hand_over(void) {
  enum { PASSED = 50, ACTORS = 10 };
  static const lvd_actor_class greedy = {.name = "greedy", .run = greedy_run};
  lvd_actor_desc two[] = {{"one", &greedy, NULL, 0}, {"two", &greedy, NULL, 0}};
  lvd_network net = {LVD_ABI_VERSION, "greedy", 2, 0, two, NULL};
  lvd_runtime *rt = runtime_of(2);
  lvd_app *busy;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &busy, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_move(busy, 1, 1), LVD_OK);
  CHECK_EQ(lvd_app_start(busy), LVD_OK);
  uint32_t count = PASSED;
  sink s = {0};
  builder b;
  pipeline(&b, ACTORS - 2, &count, &s, 1);
  lvd_app *app = app_loaded(rt, &b);
  for (uint32_t i = 0; i < ACTORS; i++) CHECK_EQ(lvd_app_move(app, i, i % 2), LVD_OK);
  uint64_t start = now_ns();
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  uint64_t hops = (uint64_t)PASSED * ACTORS;
  printf("%.0f us for a hand-over\n", (double)(now_ns() - start) / 1000 / (double)hops);
  app_ended(app, LVD_OK);
  check_pipeline(&s, count, ACTORS - 2);
  lvd_app_unload(busy);
  lvd_runtime_destroy(rt);
}

static lvd_a32 always;

static lvd_run_result always_run(lvd_actor *self) {
  lvd_add_relaxed_u32(&always, 1);
  (void)self;
  return LVD_RUN_YIELD;
}

/* Nor does the computing actor wait for ever, whatever short work others always have. */
void test_fair_all_have_turns(void) {
  static const lvd_actor_class hog = {.name = "hog", .run = hog_run},
                               busy = {.name = "busy", .run = always_run};
  lvd_actor_desc actor[] = {{"one", &hog, NULL, 0}, {"two", &busy, NULL, 0}};
  lvd_network net = {LVD_ABI_VERSION, "busy", 2, 0, actor, NULL};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  uint32_t count = UINT32_MAX;
  sink s = {0};
  builder b;
  pipeline(&b, 3, &count, &s, 64);
  lvd_app *passes = app_begun(rt, &b);
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  for (int round = 0; round < 5; round++) {
    uint32_t hogs = lvd_load_relaxed_u32(&turns), others = lvd_load_relaxed_u32(&always);
    while (lvd_load_relaxed_u32(&turns) < hogs + 5 || lvd_load_relaxed_u32(&always) < others + 5)
      sleep_ms(1);
  }
  lvd_app_unload(passes);
  CHECK(s.count > 1000);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* The number of elements that its last actor has got. */
static uint64_t sunk(lvd_app *app) {
  lvd_actor_counters actor[5];
  uint32_t actors = 5;
  CHECK_EQ(lvd_app_counters(app, actor, &actors, NULL, NULL), LVD_OK);
  return actor[4].firings;
}

/* A reserved rate leaves some time to others. Its precedence is a ratio of times, which is
 * printed. */
void test_fair_promise(void) {
  enum { PASSED = SCALED(2000000) + 100000 };
  lvd_runtime *rt = runtime_of(1);
  uint32_t count = UINT32_MAX;
  sink s[3];
  static builder b[3];
  lvd_app *app[3];
  for (int i = 0; i < 3; i++) {
    pipeline(&b[i], 3, &count, &s[i], 64);
    app[i] = app_begun(rt, &b[i]);
  }
  CHECK_EQ(lvd_app_reserve_rate(NULL, true), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_app_reserve_rate(app[1], true), LVD_OK);
  while (sunk(app[1]) < PASSED) sleep_ms(1);
  uint64_t one = sunk(app[0]), promised = sunk(app[1]);
  while (sunk(app[0]) < one + PASSED / 2 || sunk(app[1]) < promised + PASSED / 2) sleep_ms(1);
  printf("%.1f times as much\n", (double)(sunk(app[1]) - promised) / (double)(sunk(app[0]) - one));
  CHECK_EQ(lvd_app_reserve_rate(app[1], false), LVD_OK);
  for (int i = 0; i < 3; i++) lvd_app_unload(app[i]);
  lvd_runtime_destroy(rt);
}

static lvd_a32 in_a_row;

/* Counts how many slices the hog has had since its own last one, and takes one as long: a
 * reserved rate leaves room for many shorter ones. */
static lvd_run_result sees_run(lvd_actor *self) {
  for (uint64_t start = now_ns(); now_ns() - start < 1000000;) {
  }
  static uint32_t seen;
  uint32_t now = lvd_load_relaxed_u32(&turns), more = now - seen;
  if (seen && more > lvd_load_relaxed_u32(&in_a_row)) lvd_store_relaxed_u32(&in_a_row, more);
  seen = now;
  (void)self;
  return LVD_RUN_YIELD;
}

/* Loads an application of one actor with a reserved rate, and one without. */
static void load_both(lvd_runtime *rt, const lvd_actor_class *promised,
                      const lvd_actor_class *plain, lvd_app *app[2]) {
  static lvd_actor_desc actor[] = {{"one", NULL, NULL, 0}, {"two", NULL, NULL, 0}};
  static const lvd_network net[] = {{LVD_ABI_VERSION, "promised", 1, 0, &actor[0], NULL},
                                    {LVD_ABI_VERSION, "plain", 1, 0, &actor[1], NULL}};
  actor[0].cls = promised;
  actor[1].cls = plain;
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_load(rt, &net[i], NULL, &app[i], NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_reserve_rate(app[0], true), LVD_OK);
}

/* An actor with a reserved rate does not wait after each of its slices for one that always has
 * work, which may have long firings; and it leaves that one some time. */
void test_fair_promise_goes_on(void) {
  static const lvd_actor_class hog = {.name = "hog", .run = hog_run},
                               sees = {.name = "sees", .run = sees_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app[2];
  load_both(rt, &hog, &sees, app);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  for (int round = 0; round < 3; round++) {
    lvd_store_relaxed_u32(&in_a_row, 0);
    while (lvd_load_relaxed_u32(&in_a_row) < 4) sleep_ms(1);
  }
  for (int i = 0; i < 2; i++) lvd_app_unload(app[i]);
  lvd_runtime_destroy(rt);
}

enum { BURST = 60, BEATS = 100, BEAT_NS = 1000000 };

static lvd_a32 burst_left, amid_burst;

/* A burst of work with a reserved rate, then nothing until the next one: its worker sleeps
 * meanwhile. */
static lvd_run_result burst_run(lvd_actor *self) {
  if (!lvd_load_relaxed_u32(&burst_left)) {
    lvd_wait_until((int64_t)now_ns() + 10 * BEAT_NS);
    lvd_store_relaxed_u32(&burst_left, BURST);
  }
  for (uint64_t start = now_ns(); now_ns() - start < 500000;) {
  }
  lvd_store_relaxed_u32(&burst_left, lvd_load_relaxed_u32(&burst_left) - 1);
  (void)self;
  return LVD_RUN_YIELD;
}

/* Very little work each millisecond. */
static lvd_run_result beat_run(lvd_actor *self) {
  uint32_t amid = 0;
  while (amid < BEATS) {
    lvd_wait_until((int64_t)now_ns() + BEAT_NS);
    uint32_t left = lvd_load_relaxed_u32(&burst_left);
    amid += left > 0 && left < BURST;
    lvd_store_relaxed_u32(&amid_burst, amid);
  }
  (void)self;
  return LVD_RUN_DONE;
}

/* An actor with little work does not wait until one with a reserved rate has done all of its
 * work. */
void test_fair_amid_a_promise(void) {
  static const lvd_actor_class burst = {
      .name = "burst", .run = burst_run, .flags = LVD_CLASS_CAN_BLOCK};
  static const lvd_actor_class beat = {
      .name = "beat", .run = beat_run, .flags = LVD_CLASS_CAN_BLOCK};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app[2];
  load_both(rt, &burst, &beat, app);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  while (lvd_load_relaxed_u32(&amid_burst) < BEATS) sleep_ms(1);
  for (int i = 0; i < 2; i++) lvd_app_unload(app[i]);
  lvd_runtime_destroy(rt);
}

/* Where a reserved rate uses all but a part of the worker, the others share that part, including
 * a pipeline that passes on little. */
void test_fair_behind_a_promise(void) {
  static const lvd_actor_class hog = {.name = "hog", .run = hog_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app[2];
  load_both(rt, &hog, &hog, app);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  uint32_t count = 100;
  sink s = {0};
  builder b;
  pipeline(&b, 3, &count, &s, 4);
  lvd_app *passes = app_begun(rt, &b);
  app_ended(passes, LVD_OK);
  check_pipeline(&s, count, 3);
  for (int i = 0; i < 2; i++) lvd_app_unload(app[i]);
  lvd_runtime_destroy(rt);
}

static lvd_a32 plain_turns;

static lvd_run_result plain_run(lvd_actor *self) {
  lvd_add_relaxed_u32(&plain_turns, 1);
  return hog_run(self);
}

/* Nor does an actor that becomes ready again and again take all of that part from one that can
 * always continue. */
void test_fair_shared_part(void) {
  static const lvd_actor_class hog = {.name = "hog", .run = hog_run},
                               plain = {.name = "plain", .run = plain_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app[2];
  load_both(rt, &hog, &plain, app);
  uint32_t count = UINT32_MAX;
  sink s = {0};
  static builder b;
  pipeline(&b, 8, &count, &s, 4);
  lvd_app *passes = app_begun(rt, &b);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  /* It gets one in 32 of both actors' slices; that the pipeline gets its part is seen by its
   * progress. */
  enum { TURNS = 400 };
  while (!lvd_load_relaxed_u32(&plain_turns)) sleep_ms(1);
  uint32_t all = lvd_load_relaxed_u32(&turns), plain_before = lvd_load_relaxed_u32(&plain_turns);
  uint64_t passed = sunk(passes);
  while (lvd_load_relaxed_u32(&turns) - all < TURNS) sleep_ms(1);
  CHECK(lvd_load_relaxed_u32(&plain_turns) - plain_before >= TURNS / 128);
  CHECK(sunk(passes) > passed);
  for (int i = 0; i < 2; i++) lvd_app_unload(app[i]);
  lvd_app_unload(passes);
  lvd_runtime_destroy(rt);
}

/* Takes a number, computes, and passes it on: its activations end by themselves. */
static lvd_run_result passes_run(lvd_actor *self) {
  lvd_consumer *a = &self->in[0];
  lvd_producer *x = &self->out[0];
  bool *begun = self->state;
  if (*(const bool *)self->params && !*begun) LVD_PUT(x, uint32_t, 1);
  *begun = true;
  if (!lvd_elements(a, 1)) {
    lvd_await_elements(self, 0, 1);
    return LVD_RUN_WAIT;
  }
  uint32_t n = LVD_GET(a, uint32_t);
  hog_run(self);
  LVD_PUT(x, uint32_t, n);
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

/* The number of slices that others have had when an element starts. */
static lvd_run_result begins_run(lvd_actor *self) {
  for (;;) {
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    lvd_wait_until((int64_t)now_ns() + BEAT_NS);
    LVD_PUT(&self->out[0], uint32_t, lvd_load_relaxed_u32(&turns));
    lvd_push(&self->out[0]);
  }
}

static lvd_a32 soon;

static lvd_run_result ends_run(lvd_actor *self) {
  while (lvd_elements(&self->in[0], 1)) {
    uint32_t had = lvd_load_relaxed_u32(&turns) - LVD_GET(&self->in[0], uint32_t);
    if (had < 4) lvd_add_relaxed_u32(&soon, 1);
  }
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

/* A light pipeline does not wait at each of its actors for all others that have become ready. */
void test_fair_needs_little(void) {
  enum { HOPS = 6, OTHERS = 4 };
  static const lvd_port_class in[] = {{"A", 4}}, out[] = {{"X", 4}};
  static const lvd_actor_class passes = {.name = "passes",
                                         .state_size = sizeof(bool),
                                         .inputs = 1,
                                         .outputs = 1,
                                         .input = in,
                                         .output = out,
                                         .run = passes_run},
                               begins = {.name = "begins",
                                         .flags = LVD_CLASS_CAN_BLOCK,
                                         .outputs = 1,
                                         .output = out,
                                         .run = begins_run},
                               ends = {.name = "ends", .inputs = 1, .input = in, .run = ends_run};
  static const bool first = true, second = false;
  static const uint32_t nothing = 0;
  lvd_runtime *rt = runtime_of(1);
  static builder b[OTHERS], small;
  lvd_app *app[OTHERS + 1];
  for (int i = 0; i < OTHERS; i++) {
    builder_init(&b[i], "to and fro");
    uint32_t one = builder_actor(&b[i], "one", &passes, &first);
    uint32_t two = builder_actor(&b[i], "two", &passes, &second);
    builder_connect(&b[i], one, 0, two, 0, 4);
    builder_connect(&b[i], two, 0, one, 0, 4);
    app[i] = app_begun(rt, &b[i]);
  }
  builder_init(&small, "small");
  uint32_t last = builder_actor(&small, "begins", &begins, NULL);
  for (int i = 0; i < HOPS; i++) {
    uint32_t hop = builder_actor(&small, "hop", &add_class, &nothing);
    builder_connect(&small, last, 0, hop, 0, 4);
    last = hop;
  }
  builder_connect(&small, last, 0, builder_actor(&small, "ends", &ends, NULL), 0, 4);
  app[OTHERS] = app_begun(rt, &small);
  while (lvd_load_relaxed_u32(&soon) < 100) sleep_ms(1);
  for (int i = 0; i <= OTHERS; i++) lvd_app_unload(app[i]);
  lvd_runtime_destroy(rt);
}

enum { YIELDS = 1000 };

static void yields(void *unused) {
  for (int i = 0; i < YIELDS; i++) lvd_fiber_yield();
  (void)unused;
}

/* A fiber that yields also lets those run first that have just yielded; one with a reserved rate
 * continues. */
void test_fair_yields(void) {
  static const lvd_actor_class busy = {.name = "busy", .run = always_run};
  lvd_actor_desc actor[] = {{"one", &busy, NULL, 0}};
  lvd_network net = {LVD_ABI_VERSION, "busy", 1, 0, actor, NULL};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app, *others;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &others, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(others), LVD_OK);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int promised = 0; promised < 2; promised++) {
    CHECK_EQ(lvd_app_reserve_rate(app, promised), LVD_OK);
    lvd_fiber *f;
    uint32_t before = lvd_load_relaxed_u32(&always);
    CHECK_EQ(lvd_fiber_start(app, yields, NULL, NULL, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    if (!promised) CHECK(lvd_load_relaxed_u32(&always) - before >= YIELDS / 2);
  }
  lvd_app_unload(app);
  lvd_app_unload(others);
  lvd_runtime_destroy(rt);
}
