/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Control of an application while others run: pause, stop, move, and reserving its core. */
#include "../support/test.h"

#include <pthread.h>
#include <time.h>

static uint64_t firings(lvd_app *app) {
  lvd_actor_counters c[64];
  uint32_t n = 64;
  uint64_t sum = 0;
  CHECK_EQ(lvd_app_counters(app, c, &n, NULL, NULL), LVD_OK);
  for (uint32_t i = 0; i < n; i++) sum += c[i].firings;
  return sum;
}

void test_app_pause_resume(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = SCALED(10000000);
  sink s = {0};
  builder b;
  lvd_app *app;
  pipeline(&b, 3, &count, &s, 64);
  app = app_begun(rt, &b);
  for (int i = 0; i < 30; i++) {
    if (lvd_app_pause(app) == LVD_E_STATE) break; /* it has ended */
    uint64_t before = firings(app);
    sleep_ms(2);
    CHECK_EQ(firings(app), before);
    if (lvd_app_get_state(app) == LVD_APP_ENDED) break;
    lvd_app_resume(app);
  }
  app_ended(app, LVD_OK);
  check_pipeline(&s, count, 3);
  lvd_runtime_destroy(rt);
}

/* Nothing of it runs before it is resumed, on whatever worker that is. */
void test_app_start_paused(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 10000;
  for (int i = 0; i < 20; i++) {
    sink s = {0};
    builder b;
    pipeline(&b, 3, &count, &s, 64);
    lvd_app *app = app_loaded(rt, &b);
    CHECK_EQ(lvd_app_start_paused(app), LVD_OK);
    CHECK_EQ(lvd_app_start(app), LVD_E_STATE);
    CHECK_EQ(lvd_app_start_paused(app), LVD_E_STATE);
    CHECK_EQ(lvd_app_get_state(app), LVD_APP_PAUSED);
    sleep_ms(2);
    CHECK_EQ(firings(app), 0);
    CHECK_EQ(lvd_app_pause(app), LVD_OK);
    CHECK_EQ(firings(app), 0);
    if (i % 2) CHECK_EQ(lvd_app_move(app, 1, 1), LVD_OK);
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
    app_ended(app, LVD_OK);
    check_pipeline(&s, count, 3);
  }
  lvd_runtime_destroy(rt);
}

void test_app_stop_while_others_run(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 1234567;
  uint32_t count = SCALED(10000000), forever = UINT32_MAX;
  sink s = {0};
  builder b, c;
  lvd_app *app, *other;
  pipeline(&b, 3, &count, &s, 100);
  app = app_begun(rt, &b);
  for (int i = 0; i < 100; i++) {
    sink dropped;
    pipeline(&c, 1 + (uint32_t)(next_random(&seed) % 6), &forever, &dropped, 50);
    CHECK_EQ(lvd_app_load(rt, &c.net, NULL, &other, NULL, 0), LVD_OK);
    if (i % 10) CHECK_EQ(lvd_app_start(other), LVD_OK);
    if (i % 3) {
      CHECK_EQ(lvd_app_stop(other), LVD_OK);
      CHECK_EQ(lvd_app_wait(other, 0), LVD_E_STOPPED);
    }
    if (i % 7 == 1) CHECK_EQ(lvd_app_stop(other), LVD_OK);
    lvd_app_unload(other);
  }
  app_ended(app, LVD_OK);
  check_pipeline(&s, count, 3);
  lvd_runtime_destroy(rt);
}

/* All that the source has produced comes out, whenever it is drained, and nothing after that. */
void test_app_drain(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 99;
  uint32_t forever = UINT32_MAX;
  uint64_t all = 0;
  for (int i = 0; i < 60; i++) {
    sink s = {0};
    builder b;
    lvd_app *app;
    lvd_actor_counters c[8];
    uint32_t n = 8;
    uint64_t bytes = 0;
    pipeline(&b, 3, &forever, &s, 1 + (uint32_t)(next_random(&seed) % 100));
    CHECK_EQ(lvd_app_size(rt, &b.net, NULL, &bytes, NULL, 0), LVD_OK);
    CHECK(bytes >= b.net.channels * 4096u);
    app = app_loaded(rt, &b);
    CHECK_EQ(lvd_app_drain(app), LVD_E_STATE);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
    if (i % 4) sleep_ms((int)(next_random(&seed) % 5));
    if (i % 3 == 1) CHECK_EQ(lvd_app_pause(app), LVD_OK);
    CHECK_EQ(lvd_app_drain(app), LVD_OK);
    if (i % 3 == 1) {
      CHECK_EQ(lvd_app_wait(app, 2 * MS_NS), LVD_E_TIMEOUT); /* still paused */
      CHECK_EQ(lvd_app_resume(app), LVD_OK);
    }
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
    CHECK_EQ(lvd_app_drain(app), LVD_E_STATE);
    CHECK_EQ(lvd_app_counters(app, c, &n, NULL, NULL), LVD_OK);
    lvd_app_unload(app);
    /* If it was drained early enough, nothing has begun. */
    if (c[0].firings) check_pipeline(&s, (uint32_t)c[0].firings, 3);
    CHECK_EQ(s.count, c[0].firings);
    all += s.count;
  }
  CHECK(all > 0);
  lvd_runtime_destroy(rt);
}

void test_app_move_under_load(void) {
  lvd_runtime *rt = runtime_of(3);
  uint64_t seed = 42;
  uint32_t count = SCALED(3000000);
  sink s = {0};
  builder b;
  lvd_app *app;
  pipeline(&b, 4, &count, &s, 70);
  app = app_loaded(rt, &b);
  CHECK_EQ(lvd_app_move(app, 0, 2), LVD_OK); /* also before it starts */
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  while (lvd_app_wait(app, 0) == LVD_E_TIMEOUT)
    for (int i = 0; i < 20; i++)
      CHECK_EQ(lvd_app_move(app, (uint32_t)(next_random(&seed) % b.net.actors),
                            (uint32_t)(next_random(&seed) % 3)),
               LVD_OK);
  if (lvd_app_wait(app, -1) == LVD_E_DEADLOCK) {
    char why[3000];
    lvd_app_wait_report(app, why, sizeof why);
    fputs(why, stderr);
  }
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  CHECK_EQ(lvd_app_move(app, 99, 0), LVD_E_ARGUMENT);
  lvd_app_unload(app);
  check_pipeline(&s, count, 4);
  lvd_runtime_destroy(rt);
}

/* An actor that could run without end yields to a move, a pause and a stop at once, rather than at
 * the next tick, after 4 ms of CPU time. */
static lvd_a32 asked, late;
static uint64_t thread_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static lvd_run_result busy_run(lvd_actor *self) {
  uint64_t since = 0;
  while (!lvd_should_yield(self))
    if (!since && lvd_load_relaxed_u32(&asked)) since = thread_ns();
  if (since && thread_ns() - since > 2000000) lvd_add_relaxed_u32(&late, 1);
  return LVD_RUN_YIELD;
}

void test_app_gives_way_at_once(void) {
  enum { ROUNDS = 40 };
  static const lvd_actor_class busy = {.name = "busy", .run = busy_run};
  lvd_actor_desc actor = {"busy", &busy, NULL, 0};
  lvd_network net = {LVD_ABI_VERSION, "busy", 1, 0, &actor, NULL};
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  for (uint32_t i = 0; i < ROUNDS; i++) {
    lvd_store_relaxed_u32(&asked, 1);
    CHECK_EQ(lvd_app_move(app, 0, i % 2), LVD_OK);
    lvd_store_relaxed_u32(&asked, 0);
    lvd_actor_counters c;
    do {
      struct timespec t = {0, 50000};
      nanosleep(&t, NULL);
      uint32_t one = 1;
      CHECK_EQ(lvd_app_counters(app, &c, &one, NULL, NULL), LVD_OK);
    } while (c.worker != i % 2);
    CHECK_EQ(lvd_app_pause(app), LVD_OK);
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
  }
  lvd_app_unload(app);
  printf("late in %u of %d moves\n", lvd_load_relaxed_u32(&late), ROUNDS);
  CHECK(lvd_load_relaxed_u32(&late) < ROUNDS / 4);
  lvd_runtime_destroy(rt);
}

/* Computes until it is told to end, and keeps its worker busy. */
static lvd_a32 hogs, hogging;
static lvd_run_result hog_run(lvd_actor *self) {
  (void)self;
  lvd_add_relaxed_u32(&hogging, 1);
  while (lvd_load_relaxed_u32(&hogs)) {
  }
  return LVD_RUN_DONE;
}
static const lvd_actor_class hog_class = {.name = "hog", .run = hog_run};

static lvd_app *placed(lvd_runtime *rt, const builder *b, const uint32_t *worker) {
  lvd_app *app;
  lvd_app_options options = {.placement = worker};
  CHECK_EQ(lvd_app_load(rt, &b->net, &options, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

static void *stop_it(void *app) {
  lvd_app_stop(app);
  return NULL;
}

/* A long activation delays only the applications that have actors on the same worker. */
void test_app_others_do_not_wait(void) {
  static const uint32_t first[] = {0, 0}, second[] = {1, 1}, both[] = {0, 1};
  lvd_runtime *rt = runtime_of(3);
  uint32_t few = 10, many = 1000000000;
  builder hog, short_one, long_one;
  sink s = {0}, unused[3] = {0};
  lvd_store_relaxed_u32(&hogs, 1);
  builder_init(&hog, "hog");
  builder_actor(&hog, "hog", &hog_class, NULL);
  lvd_app *busy = placed(rt, &hog, first);
  while (!lvd_load_relaxed_u32(&hogging)) sleep_ms(1);

  pipeline(&short_one, 0, &few, &s, 4);
  app_ended(placed(rt, &short_one, second), LVD_OK);
  CHECK_EQ(s.count, few);

  pipeline(&long_one, 0, &many, &unused[0], 64);
  lvd_app *app = placed(rt, &long_one, second);
  CHECK_EQ(lvd_app_pause(app), LVD_OK);
  CHECK_EQ(lvd_app_resume(app), LVD_OK);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  lvd_app_unload(app);

  /* One that shares the worker waits to end; those after it do not. */
  pipeline(&long_one, 0, &many, &unused[1], 64);
  lvd_app *shares = placed(rt, &long_one, both);
  CHECK_EQ(lvd_app_pause(shares), LVD_OK); /* nothing of it runs now: found at once */
  CHECK_EQ(lvd_app_resume(shares), LVD_OK);
  pthread_t stopping;
  CHECK_EQ(pthread_create(&stopping, NULL, stop_it, shares), 0);
  while (lvd_app_get_state(shares) != LVD_APP_ENDING) /* its thread may start late */
    CHECK_EQ(lvd_app_wait(shares, 1 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_wait(shares, 20 * MS_NS), LVD_E_TIMEOUT);
  s = (sink){0};
  app_ended(placed(rt, &short_one, second), LVD_OK);
  CHECK_EQ(s.count, few);

  /* A core that is not concerned can be reserved, too. */
  CHECK_EQ(lvd_core_reserve(rt, 1), LVD_OK);
  CHECK_EQ(lvd_core_release(rt, 1), LVD_OK);
  CHECK_EQ(lvd_app_get_state(busy), LVD_APP_RUNNING);

  /* The busy core cannot: nothing is changed, and the reason is reported. */
  char why[128];
  lvd_worker_counters counters;
  CHECK_EQ(lvd_core_reserve_timeout(rt, 0, 20 * MS_NS, why, sizeof why), LVD_E_TIMEOUT);
  CHECK(strcmp(why, "a firing of hog of hog lasts there") == 0);
  CHECK_EQ(lvd_worker_counters_read(rt, 0, &counters), LVD_OK);
  CHECK(counters.available && counters.runs_ns > 0);
  for (uint32_t k = 0; k < 2; k++) {
    lvd_actor_counters a[2];
    CHECK_EQ(lvd_app_counters(k ? shares : busy, a, &(uint32_t){2}, NULL, NULL), LVD_OK);
    CHECK_EQ(a[0].target, 0);
  }
  CHECK_EQ(lvd_core_reserve_timeout(rt, 0, 20 * MS_NS, NULL, 0),
           LVD_E_TIMEOUT); /* the worker has not run the last command */
  CHECK_EQ(lvd_core_reserve_timeout(rt, 1, -1, why, sizeof why), LVD_OK);
  CHECK_EQ(lvd_core_transfer(busy, 0), LVD_E_STATE);
  CHECK_EQ(lvd_core_transfer(busy, 1), LVD_OK);
  CHECK_EQ(lvd_core_transfer(shares, 1), LVD_E_STATE);
  CHECK_EQ(lvd_core_release(rt, 1), LVD_OK);

  /* With a timeout the caller does not wait for the activation to end, and the request takes
   * effect. */
  CHECK_EQ(lvd_app_pause_timeout(busy, 20 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_get_state(busy), LVD_APP_PAUSED);
  CHECK_EQ(lvd_app_resume(busy), LVD_OK);
  CHECK_EQ(lvd_app_get_state(busy), LVD_APP_RUNNING);
  CHECK_EQ(lvd_app_stop_timeout(busy, 20 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_get_state(busy), LVD_APP_ENDING);
  CHECK_EQ(lvd_app_pause_timeout(busy, 20 * MS_NS), LVD_E_STATE);

  lvd_store_relaxed_u32(&hogs, 0);
  CHECK_EQ(pthread_join(stopping, NULL), 0);
  lvd_app_unload(shares);
  app_ended(busy, LVD_E_STOPPED);
  lvd_runtime_destroy(rt);
}

/* A ready actor on a worker that another application occupies is not reported to wait for a
 * channel, not even if both ends of one last waited for it, which looks like a cycle. */
void test_app_why_waits_for_its_turn(void) {
  static const uint32_t here[] = {0, 0};
  lvd_runtime *rt = runtime_of(1); /* otherwise it would be moved to another worker in the end */
  builder hog, b;
  char why[2000] = "";
  sink s = {0};
  builder_init(&b, "behind");
  uint32_t add = builder_actor(&b, "add", &add_class, NULL);
  uint32_t end = builder_actor(&b, "end", &sink_class, &s);
  builder_connect(&b, LVD_EXTERNAL, 0, add, 0, 10);
  builder_connect(&b, add, 0, end, 0, 10);
  lvd_app *app = placed(rt, &b, here);
  while (!strstr(why, "add waits for 1 element")) {
    sleep_ms(1);
    lvd_app_wait_report(app, why, sizeof why);
  }
  CHECK(strstr(why, "is empty (0 of "));

  lvd_store_relaxed_u32(&hogs, 1);
  lvd_store_relaxed_u32(&hogging, 0);
  builder_init(&hog, "hog");
  builder_actor(&hog, "hog", &hog_class, NULL);
  lvd_app *busy = placed(rt, &hog, here);
  while (!lvd_load_relaxed_u32(&hogging)) sleep_ms(1);
  lvd_producer *p = lvd_app_producer(app, 0);
  while (lvd_room(p, 1)) LVD_PUT(p, uint32_t, 7);
  lvd_push(p);
  sleep_ms(1);
  lvd_app_wait_report(app, why, sizeof why);
  CHECK(strstr(why, "add waits for its turn on worker 0, where the application hog runs"));
  CHECK(strstr(why, "end waits for 1 element on its input"));
  CHECK(!strstr(why, "cycle") && !strstr(why, "too few") && !strstr(why, "add waits for 1"));
  CHECK(strstr(why, "1 of 2 actors can fire"));

  /* An actor counts as busy while it computes, but for no longer than it has. */
  uint64_t before = now_ns();
  while (!strstr(why, "hog has computed for ")) {
    sleep_ms(1);
    lvd_app_wait_report(busy, why, sizeof why);
  }
  lvd_actor_counters first, then;
  lvd_worker_counters w1, w2;
  uint32_t one = 1;
  CHECK_EQ(lvd_app_counters(busy, &first, &one, NULL, NULL), LVD_OK);
  CHECK_EQ(lvd_worker_counters_read(rt, 0, &w1), LVD_OK);
  uint64_t least = 40000000;
  do { /* time that other processes have on its core does not count */
    sleep_ms(50);
    CHECK_EQ(lvd_worker_counters_read(rt, 0, &w2), LVD_OK);
    CHECK_EQ(lvd_app_counters(busy, &then, &one, NULL, NULL), LVD_OK);
  } while (then.busy_ns < first.busy_ns + least || w2.busy_ns < w1.busy_ns + least);
  uint64_t most = now_ns() - before;
  CHECK(then.activations == 0 && first.busy_ns > 0); /* some of the expected time was stolen */
  CHECK(then.runs_ns >= least && then.runs_ns == then.longest_ns && then.runs_ns == then.busy_ns);
  CHECK(then.busy_ns - first.busy_ns <= most && w2.busy_ns - w1.busy_ns <= most);

  lvd_store_relaxed_u32(&hogs, 0);
  app_ended(busy, LVD_OK);
  lvd_producer_close(p, LVD_OK);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_core_alone(void) {
  lvd_runtime *rt = runtime_of(3);
  uint32_t count[2] = {SCALED(4000000), SCALED(4000000)};
  sink s[2] = {{0}, {0}};
  builder b[2];
  lvd_app *app[2];
  for (int i = 0; i < 2; i++) {
    pipeline(&b[i], 4, &count[i], &s[i], 70);
    app[i] = app_loaded(rt, &b[i]);
  }
  for (uint32_t k = 0; k < b[0].net.actors; k++) CHECK_EQ(lvd_app_move(app[0], k, 1), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  CHECK_EQ(lvd_core_reserve_for(app[0], 1), LVD_OK);
  CHECK_EQ(lvd_core_reserve_for(app[0], 1), LVD_E_STATE);
  CHECK_EQ(lvd_core_reserve_for(app[1], 0), LVD_OK);
  CHECK_EQ(lvd_core_reserve_for(app[1], 2), LVD_E_STATE); /* the last one */
  CHECK_EQ(lvd_core_release(rt, 0), LVD_OK);
  for (uint32_t k = 0; k < b[1].net.actors; k++) {
    lvd_actor_counters a[2][16];
    CHECK_EQ(lvd_app_move(app[1], k, 1), LVD_E_STATE);
    CHECK_EQ(lvd_app_move(app[0], k, k % 2), LVD_OK); /* its own actors may leave, and come back */
    CHECK_EQ(lvd_app_move(app[0], k, 1), LVD_OK);
    for (int i = 0; i < 2; i++)
      CHECK_EQ(lvd_app_counters(app[i], a[i], &(uint32_t){16}, NULL, NULL), LVD_OK);
    CHECK_EQ(a[0][k].target, 1);
    CHECK(a[1][k].target != 1 && a[1][k].worker != 1);
  }
  app_ended(app[0], LVD_OK);
  CHECK_EQ(lvd_app_move(app[1], 0, 1), LVD_OK); /* available to all again */
  app_ended(app[1], LVD_OK);
  for (int i = 0; i < 2; i++) check_pipeline(&s[i], count[i], 4);
  lvd_runtime_destroy(rt);
}

void test_core_take_give(void) {
  lvd_runtime *rt = runtime_of(3);
  uint32_t count = SCALED(5000000);
  sink s = {0};
  builder b;
  lvd_app *app;
  pipeline(&b, 4, &count, &s, 70);
  app = app_loaded(rt, &b);
  CHECK_EQ(lvd_core_reserve(rt, 2), LVD_OK); /* for an application that has not started */
  CHECK_EQ(lvd_core_release(rt, 2), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  for (uint32_t i = 0; lvd_app_wait(app, 0) == LVD_E_TIMEOUT && i < 100; i++) {
    uint32_t a = i % 3, c = (i + 1) % 3;
    if (i % 5 == 0) lvd_app_pause(app);
    CHECK_EQ(lvd_core_reserve(rt, a), LVD_OK);
    CHECK_EQ(lvd_core_reserve(rt, a), LVD_E_STATE);
    CHECK_EQ(lvd_core_reserve(rt, c), LVD_OK);
    CHECK_EQ(lvd_core_reserve(rt, (i + 2) % 3), LVD_E_STATE); /* the last one */
    lvd_worker_counters before, after;
    CHECK_EQ(lvd_worker_counters_read(rt, a, &before), LVD_OK);
    CHECK(!before.available);
    if (i % 5 == 0) lvd_app_resume(app);
    sleep_ms(1);
    CHECK_EQ(lvd_worker_counters_read(rt, a, &after), LVD_OK);
    CHECK_EQ(before.activations, after.activations);
    CHECK_EQ(lvd_core_release(rt, a), LVD_OK);
    CHECK_EQ(lvd_core_release(rt, c), LVD_OK);
    CHECK_EQ(lvd_core_release(rt, c), LVD_E_STATE);
    for (uint32_t k = 0; k < b.net.actors; k++) lvd_app_move(app, k, (k + i) % 3);
  }
  app_ended(app, LVD_OK);
  check_pipeline(&s, count, 4);
  lvd_runtime_destroy(rt);
}
