/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Actors that wait for a time: many at once, moved, paused, with their core reserved, and with
 * their application ended meanwhile; also a fiber and a thread. None resumes early. */
#include "../support/test.h"

#include <time.h>
#include <unistd.h>

enum { MS = 1000000, HOUR_MS = 3600000 };

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Puts `count` elements, one each `every_ms`. */
typedef struct beat {
  int64_t every_ms;
  uint32_t count;
} beat;

static const lvd_port_class out_port[] = {{"X", 4}};
static const lvd_action_class beat_action[] = {{"beat", NULL, 7}};

static lvd_run_result beats_run(lvd_actor *self) {
  const beat *b = self->params;
  while (self->fired[0] < b->count) {
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    int64_t at = now() + b->every_ms * MS;
    self->native = "next_beat";
    CHECK_EQ(lvd_wait_until(at), LVD_OK);
    self->native = NULL;
    CHECK(now() >= at);
    LVD_PUT(&self->out[0], uint32_t, 1);
    self->fired[0]++;
  }
  return LVD_RUN_DONE;
}
static const lvd_actor_class beats_class = {.name = "Beats",
                                            .file = "beats.cal",
                                            .outputs = 1,
                                            .actions = 1,
                                            .flags = LVD_CLASS_ABANDONABLE | LVD_CLASS_CAN_BLOCK,
                                            .output = out_port,
                                            .action = beat_action,
                                            .run = beats_run};

static lvd_app *beating(lvd_runtime *rt, builder *b, const beat *of, sink *s) {
  builder_init(b, "beating");
  uint32_t beats = builder_actor(b, "beats", &beats_class, of);
  builder_connect(b, beats, 0, builder_actor(b, "sink", &sink_class, s), 0, 64);
  return app_begun(rt, b);
}

static void until_it_waits(lvd_app *app) {
  char text[1000] = "";
  for (int i = 0; i < 20000 && !strstr(text, "beats waits in the native next_beat"); i++) {
    lvd_app_wait_report(app, text, sizeof text);
    sleep_ms(1);
  }
  CHECK(strstr(text, "beats waits in the native next_beat, called by beat\n"));
}

/* More waits than there may be threads for blocking calls, and none of those threads is used. */
void test_alarm_many(void) {
  enum { INSTANCES = 600, BEATS = 5 };
  static builder b[INSTANCES];
  static sink s[INSTANCES];
  lvd_app *app[INSTANCES];
  lvd_runtime *rt = runtime_of(2);
  beat of[7];
  for (int i = 0; i < 7; i++) of[i] = (beat){3 + 2 * i, BEATS};
  for (int i = 0; i < INSTANCES; i++) app[i] = beating(rt, &b[i], &of[i % 7], &s[i]);
  for (int i = 0; i < INSTANCES; i++) {
    app_ended(app[i], LVD_OK);
    CHECK_EQ(s[i].count, BEATS);
  }
  lvd_runtime_destroy(rt);
}

/* A wait for an hour ends at once when the application is stopped. */
void test_alarm_stop(void) {
  enum { INSTANCES = 40 };
  static builder b[INSTANCES];
  const beat hour = {HOUR_MS, 1}, soon = {1, SCALED(200)};
  lvd_app *app[INSTANCES];
  lvd_runtime *rt = runtime_of(2);
  builder c;
  sink s = {0};
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < INSTANCES; i++) app[i] = beating(rt, &b[i], &hour, NULL);
    lvd_app *goes_on = beating(rt, &c, &soon, &s);
    for (int i = 0; i < INSTANCES; i++) until_it_waits(app[i]);
    for (int i = 0; i < INSTANCES; i++) {
      if (round < 2) CHECK_EQ(lvd_app_stop(app[i]), LVD_OK);
      lvd_app_unload(app[i]);
    }
    app_ended(goes_on, LVD_OK);
    CHECK_EQ(s.count, soon.count);
  }
  lvd_runtime_destroy(rt);
}

void test_alarm_pause(void) {
  const beat of = {2, SCALED(30)};
  lvd_runtime *rt = runtime_of(1);
  builder b;
  sink s = {0};
  lvd_app *app = beating(rt, &b, &of, &s);
  for (uint32_t i = 0; i + 5 < of.count; i += 5) {
    CHECK_EQ(lvd_app_pause(app), LVD_OK);
    uint64_t fired = firings_of(app, 0);
    sleep_ms(6);
    CHECK_EQ(firings_of(app, 0), fired);
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
  }
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, of.count);
  lvd_runtime_destroy(rt);
}

/* The actor is moved while it waits; then its core is reserved, which does not wait for it. */
void test_alarm_move(void) {
  if (usable_cores() < 2) SKIP("one core");
  const beat of = {3, SCALED(200)}, hour = {HOUR_MS, 1};
  lvd_runtime *rt = runtime_of(2);
  builder b, c;
  sink s = {0};
  lvd_app *app = beating(rt, &b, &of, &s), *long_one = beating(rt, &c, &hour, NULL);
  for (uint32_t i = 0; i < 20; i++) {
    CHECK_EQ(lvd_app_move(app, 0, i % 2), LVD_OK);
    sleep_ms(4);
    CHECK_EQ(lvd_core_reserve(rt, i % 2), LVD_OK);
    sleep_ms(7);
    CHECK_EQ(lvd_core_release(rt, i % 2), LVD_OK);
  }
  until_it_waits(long_one);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, of.count);
  lvd_app_unload(long_one);
  lvd_runtime_destroy(rt);
}

static lvd_a32 waits_for_long;

static void fiber_waits(void *argument) {
  int64_t at = now() + 5 * MS;
  CHECK_EQ(lvd_wait_until(at), LVD_OK);
  CHECK(now() >= at);
  CHECK_EQ(lvd_wait_until(at), LVD_OK); /* it is past */
  lvd_store_release_u32(&waits_for_long, 1);
  *(lvd_status *)argument = lvd_wait_until(now() + INT64_C(3600000) * MS);
}

void test_alarm_of_others(void) {
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  lvd_fiber *f;
  lvd_status status = LVD_OK;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, fiber_waits, &status, NULL, &f), LVD_OK);
  while (!lvd_load_acquire_u32(&waits_for_long)) sleep_ms(1); /* however slow the machine is */
  sleep_ms(20);
  lvd_fiber_cancel(f);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  CHECK_EQ(status, LVD_E_CANCELLED);
  lvd_app_close(app);
  app_ended(app, LVD_OK);
  lvd_runtime_destroy(rt);
  int64_t at = now() + 5 * MS;
  CHECK_EQ(lvd_wait_until(at), LVD_OK);
  CHECK(now() >= at);
}

static lvd_a32 cut_short;

/* Computes until it is asked to yield, and counts how often that is before a tick of its clock
 * could ask it. */
static lvd_run_result computes_run(lvd_actor *self) {
  struct timespec from, to;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
  while (!lvd_should_yield(self)) {
  }
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
  int64_t took = (to.tv_sec - from.tv_sec) * 1000000000 + to.tv_nsec - from.tv_nsec;
  if (took < 2 * MS) lvd_add_relaxed_u32(&cut_short, 1);
  return LVD_RUN_YIELD;
}

/* A computing actor yields when a timer of another one is due, before its time slice ends. */
void test_alarm_amid(void) {
  static const lvd_actor_class computes = {
      .name = "computes", .flags = LVD_CLASS_ABANDONABLE, .run = computes_run};
  lvd_actor_desc one[] = {{"one", &computes, NULL, 0}};
  lvd_network net = {LVD_ABI_VERSION, "computing", 1, 0, one, NULL};
  const beat each_ms = {1, UINT32_MAX};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  builder b;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  lvd_app *beats = beating(rt, &b, &each_ms, NULL);
  while (lvd_load_relaxed_u32(&cut_short) < 100) sleep_ms(1);
  lvd_app_unload(beats);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
