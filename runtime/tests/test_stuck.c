/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What waits behind an action that does not end is run by other workers meanwhile. */
#include "test.h"

static lvd_a32 may_end;
static lvd_a32 ends; /* actions that have ended */

/* Computes for as long as it likes; what runs there is asked to give way, and does not. */
static lvd_verdict endless_run(lvd_actor *self) {
  (void)self;
  while (!lvd_load_acquire_u32(&may_end)) continue;
  lvd_add_relaxed_u32(&ends, 1);
  return LVD_DONE;
}
static const lvd_actor_class endless_class = {.name = "Endless", .run = endless_run};

static lvd_app *begun_at(lvd_runtime *rt, const builder *b, uint32_t worker) {
  uint32_t placement[64];
  for (uint32_t i = 0; i < b->net.actors; i++) placement[i] = worker;
  lvd_app_options o = {.placement = placement};
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &b->net, &o, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

static lvd_app *endless_at(lvd_runtime *rt, uint32_t worker) {
  static builder b;
  builder_init(&b, "endless");
  builder_actor(&b, "endless", &endless_class, NULL);
  return begun_at(rt, &b, worker);
}

static void sleeps(void *argument) {
  for (int i = 0; i < 3; i++) lvd_fiber_sleep(1000000);
  *(bool *)argument = true;
}

/* Loaded before and after it is stuck: to the same worker. They end, and are unloaded. */
static void others_end(uint32_t workers) {
  enum { COUNT = SCALED(100000), FIBERS = 4 };
  lvd_runtime *rt = runtime_of(workers);
  uint32_t count = COUNT, none = 0;
  sink early_result = {0}, late_result = {0}, nothing = {0};
  builder early, late, idle;
  pipeline(&idle, 2, &none, &nothing, 16);
  app_ended(begun_at(rt, &idle, 0), LVD_OK); /* the worker knows one that has gone */
  lvd_store_release_u32(&may_end, 0);
  lvd_app *open;
  CHECK_EQ(lvd_app_open(rt, NULL, &open), LVD_OK);
  lvd_fiber *f[FIBERS];
  bool slept[FIBERS] = {0};
  for (int i = 0; i < FIBERS; i++) {
    lvd_fiber_options o = {.place = LVD_WORKER(0)};
    CHECK_EQ(lvd_fiber_start(open, sleeps, &slept[i], &o, &f[i]), LVD_OK);
  }
  pipeline(&early, 3, &count, &early_result, 16);
  lvd_app *first = begun_at(rt, &early, 0), *endless = endless_at(rt, 0);
  pipeline(&late, 3, &count, &late_result, 16);
  lvd_app *second = begun_at(rt, &late, 0);
  app_ended(first, LVD_OK);
  app_ended(second, LVD_OK);
  check_pipeline(&early_result, COUNT, 3);
  check_pipeline(&late_result, COUNT, 3);
  for (int i = 0; i < FIBERS; i++) {
    CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
    CHECK(slept[i]);
  }
  CHECK_EQ(lvd_app_wait(endless, 0), LVD_E_TIME); /* all of that while it computes */
  lvd_store_release_u32(&may_end, 1);
  app_ended(endless, LVD_OK);
  lvd_app_close(open);
  CHECK_EQ(lvd_app_wait(open, -1), LVD_OK);
  lvd_app_unload(open);
  lvd_runtime_destroy(rt);
}

void test_stuck_others_end(void) {
  for (uint32_t workers = 2; workers <= 4; workers++) others_end(workers);
}

/* There is nobody whom it could be given to: it waits, and is lost to nobody. */
void test_stuck_every_worker(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 1000;
  sink result = {0};
  builder b;
  lvd_store_release_u32(&may_end, 0);
  lvd_store_relaxed_u32(&ends, 0);
  lvd_app *endless[2] = {endless_at(rt, 0), endless_at(rt, 1)};
  pipeline(&b, 3, &count, &result, 16);
  lvd_app *app = begun_at(rt, &b, 0);
  CHECK_EQ(lvd_app_wait(app, 300), LVD_E_TIME); /* there is nobody for it */
  lvd_store_release_u32(&may_end, 1);
  for (int i = 0; i < 2; i++) app_ended(endless[i], LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&ends), 2);
  app_ended(app, LVD_OK);
  check_pipeline(&result, count, 3);
  lvd_runtime_destroy(rt);
}
