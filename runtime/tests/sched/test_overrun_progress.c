/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What makes progress although a worker is in an overrun: calls to its core, what is queued
 * behind a forked call, quiescence checks, and applications that end while the end of another one
 * takes long. */
#include <levada/call.h>
#include <levada/native.h>

#include "../support/test.h"

static lvd_a32 may_end, begun;

static void begins(void) {
  lvd_store_relaxed_u32(&may_end, 0);
  lvd_store_relaxed_u32(&begun, 0);
}
static void until_begun(uint32_t n) {
  while (lvd_load_acquire_u32(&begun) < n) sleep_ms(1);
}
static void lasts(void) {
  lvd_add_release_u32(&begun, 1);
  while (!lvd_load_acquire_u32(&may_end)) continue;
}
static lvd_run_result endless_run(lvd_actor *self) {
  (void)self;
  lasts();
  return LVD_RUN_DONE;
}
static const lvd_actor_class endless_class = {.name = "Endless", .run = endless_run};

static lvd_app *alone(lvd_runtime *rt, builder *b, const lvd_actor_class *cls) {
  builder_init(b, "alone");
  builder_actor(b, "alone", cls, NULL);
  return app_begun_at(rt, b, 0);
}

/* ---- calls ---------------------------------------------------------------------------------- */

static lvd_status answers(lvd_call_frame *f) {
  (void)f;
  return LVD_OK;
}
LVD_PROCEDURE(answers)

/* A call to a core in an overrun is made elsewhere, and an application that was there can end. */
void test_overrun_progress_calls(void) {
  enum { CALLS = 3 };
  lvd_runtime *rt = runtime_of(2);
  builder b, one;
  uint32_t none = 0;
  sink nothing = {0};
  lvd_app *app;
  lvd_unit *unit;
  lvd_call *call[CALLS];
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_unit_core(app, 0, &unit), LVD_OK);
  pipeline(&b, 2, &none, &nothing, 16);
  begins();
  lvd_app *endless = alone(rt, &one, &endless_class);
  until_begun(1);
  lvd_app *other = app_begun_at(rt, &b, 0);
  for (int i = 0; i < CALLS; i++)
    CHECK_EQ(lvd_call_start(unit, "answers", NULL, 0, NULL, &call[i]), LVD_OK);
  for (int i = 0; i < CALLS; i++) CHECK_EQ(lvd_call_wait(call[i], NULL, NULL, -1, NULL), LVD_OK);
  app_ended(other, LVD_OK);
  lvd_store_release_u32(&may_end, 1);
  app_ended(endless, LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- forks ---------------------------------------------------------------------------------- */

static int endless_call(int n) {
  lasts();
  return n;
}
static int small_call(int n) { return n; }
LVD_FORKABLE(int, endless_call, int)
LVD_FORKABLE(int, small_call, int)

static lvd_run_result forking_run(lvd_actor *self) {
  (void)self;
  LVD_FORK(f, endless_call, 3);
  while (!lvd_load_acquire_u32(&begun)) { /* a fork serves a thief that requests work */
    LVD_FORK(g, small_call, 1);
    CHECK_EQ(LVD_JOIN(g, small_call), 1);
  }
  CHECK_EQ(LVD_JOIN(f, endless_call), 3);
  return LVD_RUN_DONE;
}
static const lvd_actor_class forking_class = {
    .name = "Forking", .flags = LVD_CLASS_CAN_BLOCK, .run = forking_run};

/* What an actor has forked is stolen by another worker, and does not end there. */
void test_overrun_progress_forks(void) {
  enum { COUNT = 1000 };
  uint32_t count = COUNT;
  lvd_runtime *rt = runtime_of(2);
  builder b, one;
  sink result = {0};
  begins();
  lvd_app *forking = alone(rt, &one, &forking_class);
  until_begun(1);
  pipeline(&b, 3, &count, &result, 16);
  app_ended(app_begun_at(rt, &b, 1), LVD_OK);
  check_pipeline(&result, COUNT, 3);
  lvd_store_release_u32(&may_end, 1);
  app_ended(forking, LVD_OK);
  lvd_runtime_destroy(rt);
}

static lvd_event never;
static int waiting_call(int n) {
  uint32_t data;
  lvd_add_release_u32(&begun, 1);
  CHECK_EQ(lvd_event_wait(&never, &data, -1), LVD_E_STOPPED);
  return n;
}
LVD_FORKABLE(int, waiting_call, int)

static lvd_run_result failing_run(lvd_actor *self) {
  LVD_FORK(f, waiting_call, 3);
  while (!lvd_load_acquire_u32(&begun)) {
    LVD_FORK(g, small_call, 1);
    CHECK_EQ(LVD_JOIN(g, small_call), 1);
  }
  for (uint64_t start = now_ns(); now_ns() - start < 5000000;) continue; /* it waits by now */
  lvd_actor_fail(self, LVD_FAULT_CHECK, 1, "while another waits");
}
static const lvd_actor_class failing_class = {.name = "Failing", .run = failing_run};

/* The actor fails on its worker's own stack, to which no thread may write any more; the thief of
 * its call waits, and is told. */
void test_overrun_progress_fault(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int i = 0; i < 20; i++) {
    begins();
    lvd_event_init(&never);
    builder one;
    app_ended(alone(rt, &one, &failing_class), LVD_E_FAULT);
  }
  lvd_runtime_destroy(rt);
}

/* ---- quiescence checks ----------------------------------------------------------------------- */

static lvd_run_result allocating_run(lvd_actor *self) {
  enum { PIECES = 64, BYTES = 3000 };
  void *piece[PIECES] = {0};
  (void)self;
  lvd_add_release_u32(&begun, 1);
  for (uint32_t i = 0; lvd_load_acquire_u32(&may_end) < 2; i++) {
    void **at = &piece[i * 2654435761u % PIECES];
    free(*at);
    *at = malloc(BYTES + i % 5 * BYTES);
  }
  for (int i = 0; i < PIECES; i++) free(piece[i]);
  return LVD_RUN_DONE;
}
static const lvd_actor_class allocating_class = {.name = "Allocating", .run = allocating_run};

static void waits_without_result(void *unused) {
  uint32_t data;
  (void)unused;
  lvd_event_wait(&never, &data, -1);
}

/* An application becomes quiescent just before its worker is in an overrun within the C library's
 * allocator: that is detected in the handler of the signal that interrupts it, where nothing may
 * be allocated. */
void test_overrun_progress_quiescence(void) {
  enum { FIBERS = 3 };
  lvd_runtime *rt = runtime_of(1);
  for (int i = 0; i < SCALED(20); i++) {
    lvd_app *app;
    lvd_fiber_options o = {.priority = 1};
    begins();
    lvd_event_init(&never);
    builder one, other;
    lvd_app *gate = alone(rt, &one, &endless_class); /* until all is ready behind it */
    until_begun(1);
    CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
    for (int f = 0; f < FIBERS; f++)
      CHECK_EQ(lvd_fiber_start(app, waits_without_result, NULL, &o, NULL), LVD_OK);
    lvd_app_close(app);
    lvd_app *allocating = alone(rt, &other, &allocating_class);
    lvd_store_release_u32(&may_end, 1);
    app_ended(gate, LVD_OK);
    app_ended(app, LVD_E_DEADLOCK);
    lvd_store_release_u32(&may_end, 2);
    app_ended(allocating, LVD_OK);
  }
  lvd_runtime_destroy(rt);
}

/* ---- ends that take long --------------------------------------------------------------------- */

static int key;
static void end_late(void *data, lvd_status outcome) {
  (void)data, (void)outcome;
  lasts();
}
static lvd_run_result writing_run(lvd_actor *self) {
  (void)self;
  CHECK(lvd_app_data(lvd_current_app(), &key, sizeof(int), end_late));
  return LVD_RUN_DONE;
}
static const lvd_actor_class writing_class = {.name = "Writing", .run = writing_run};

/* A native waits in its end function, for example for a reader: other applications end all the
 * same. */
void test_overrun_progress_slow_end(void) {
  enum { SLOW = 3 };
  uint32_t none = 0;
  lvd_runtime *rt = runtime_of(1);
  builder b, one[SLOW];
  sink nothing = {0};
  lvd_app *slow[SLOW];
  begins();
  for (int i = 0; i < SLOW; i++) slow[i] = alone(rt, &one[i], &writing_class);
  until_begun(SLOW);
  pipeline(&b, 2, &none, &nothing, 16);
  app_ended(app_begun_at(rt, &b, 0), LVD_OK);
  lvd_store_release_u32(&may_end, 1);
  for (int i = 0; i < SLOW; i++) app_ended(slow[i], LVD_OK);
  lvd_runtime_destroy(rt);
}
