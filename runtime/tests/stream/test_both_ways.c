/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls from a loaded process to the process that has loaded it; and several loaded processes. */
#include "../support/bench.h"

#include <levada/srpc.h>
#include <signal.h>

static lvd_a32 running;

static lvd_status parent_adds(lvd_call_frame *f) {
  if (f->argument_size != 8) return LVD_E_ARGUMENT;
  *(uint64_t *)f->result = *(const uint64_t *)f->argument + 1;
  f->result_size = 8;
  return LVD_OK;
}
LVD_PROCEDURE(parent_adds)

/* Calls the child again, which is in a call of the parent's, and in a call to the parent. */
static lvd_unit *unit;
static lvd_status parent_calls(lvd_call_frame *f) {
  uint32_t x = (uint32_t) * (const uint64_t *)f->argument;
  size_t size = sizeof x;
  lvd_call *c;
  lvd_status status = lvd_call_start(unit, "twice", &x, 4, NULL, &c);
  if (status == LVD_OK) status = lvd_call_wait(c, &x, &size, -1, NULL);
  *(uint64_t *)f->result = x;
  f->result_size = 8;
  return status;
}
LVD_PROCEDURE(parent_calls)

/* Returns some time after it is cancelled. */
static lvd_status parent_waits(lvd_call_frame *f) {
  lvd_status status;
  (void)f;
  lvd_add_relaxed_u32(&running, 1);
  status = lvd_fiber_sleep(INT64_MAX / 4);
  CHECK(status == LVD_E_CANCELLED || status == LVD_E_STOPPED);
  for (int i = 0; i < 100; i++) lvd_fiber_yield();
  lvd_add_relaxed_u32(&running, UINT32_MAX);
  return status;
}
LVD_PROCEDURE(parent_waits)

static lvd_status not_for_children(lvd_call_frame *f) {
  CHECK(!f);
  return LVD_OK;
}
LVD_PROCEDURE(not_for_children)

static order calls_of(const char *name, uint64_t count) {
  order o = {.count = count, .seed = 1000};
  snprintf(o.name, sizeof o.name, "%s", name);
  return o;
}

void test_process_calls_back(void) {
  bench b = bench_of(2);
  unit = load(&b, "serve");
  uint64_t x = 0;
  size_t size = sizeof x;
  order o = calls_of("parent_adds", SCALED(2000) + 100);
  enum { CALLS = 100 }; /* their calls back are more than a channel of records holds */
  CHECK_EQ(lvd_call_wait(call(unit, "child_calls_back", &o), &x, &size, -1, NULL), LVD_OK);
  CHECK_EQ(x, 1000 + o.count);
  lvd_call *c[CALLS];
  o.count = 20;
  for (int i = 0; i < CALLS; i++) c[i] = call(unit, "child_calls_back", &o);
  for (int i = 0; i < CALLS; i++) {
    CHECK_EQ(lvd_call_wait(c[i], &x, &size, -1, NULL), LVD_OK);
    CHECK_EQ(x, 1020);
  }
  /* To the child, back to the parent, and to the child again. */
  o = calls_of("parent_calls", 5);
  CHECK_EQ(lvd_call_wait(call(unit, "child_calls_back", &o), &x, &size, -1, NULL), LVD_OK);
  CHECK_EQ(x, 32000);
  /* A procedure that does not exist, one that the child may not call, and arguments that are too
   * large. */
  o = calls_of("parent_nobody", 1);
  CHECK_EQ(result(call(unit, "child_calls_back", &o)), LVD_E_NOT_FOUND);
  o = calls_of("not_for_children", 1);
  CHECK_EQ(result(call(unit, "child_calls_back", &o)), LVD_E_NOT_FOUND);
  CHECK_EQ(result(call(unit, "child_calls_largely", &o)), LVD_E_LIMIT);
  /* Cancelled in the child: its wait for the parent ends; what it has called here continues until
   * it is released. */
  o = calls_of("parent_waits", 1);
  c[0] = call(unit, "child_calls_back", &o);
  while (!lvd_load_acquire_u32(&running)) lvd_fiber_sleep(1000000);
  lvd_call_cancel(c[0]);
  CHECK_EQ(result(c[0]), LVD_E_CANCELLED);
  CHECK_EQ(lvd_load_acquire_u32(&running), 1);
  CHECK_EQ(lvd_unit_unload(unit), LVD_OK);
  CHECK_EQ(lvd_load_acquire_u32(&running), 0);
  /* A child that may call no procedure. */
  const char *const argument[] = {"serve", b.path, NULL};
  const lvd_unit_options mute = {.argument = argument};
  CHECK_EQ(lvd_unit_load(b.app, LEVADA_CHILD, &mute, &unit), LVD_OK);
  o = calls_of("parent_adds", 1);
  CHECK_EQ(result(call(unit, "child_calls_back", &o)), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_unit_unload(unit), LVD_OK);
  bench_free(&b);
}

/* The child is killed while it waits for the parent: what it has called is cancelled, and the
 * parent continues. */
void test_process_dies_in_a_call(void) {
  bench b = bench_of(2);
  for (int round = 0; round < 10; round++) {
    unit = load(&b, "serve");
    order o = calls_of(round & 1 ? "parent_adds" : "parent_waits", UINT64_MAX);
    lvd_call *c = call(unit, "child_calls_back", &o);
    if (round & 1)
      lvd_fiber_sleep(3000000);
    else
      while (!lvd_load_acquire_u32(&running)) lvd_fiber_sleep(1000000);
    CHECK_EQ(kill((pid_t)lvd_unit_process(unit), SIGKILL), 0);
    CHECK_EQ(result(c), LVD_E_PEER_GONE);
    if (round % 4 < 2) /* otherwise its end waits for what was called */
      while (lvd_load_acquire_u32(&running)) lvd_fiber_sleep(1000000);
    CHECK_EQ(lvd_unit_unload(unit), LVD_OK);
    CHECK_EQ(lvd_load_acquire_u32(&running), 0);
  }
  /* The application ends while a call from the child is in progress. */
  unit = load(&b, "serve");
  order o = calls_of("parent_waits", 1);
  lvd_call *c = call(unit, "child_calls_back", &o);
  while (!lvd_load_acquire_u32(&running)) lvd_fiber_sleep(1000000);
  (void)c;
  bench_free(&b);
  CHECK_EQ(lvd_load_acquire_u32(&running), 0);
}

/* ---- srpc interface -------------------------------------------------------------------------- */

static void here_adds(void) {
  u32 a, sum = 0, more = 0;
  CHECK_EQ(stream_create(6), LVD_OK);
  CHECK_EQ(stream_create(7), LVD_OK);
  while (stream_get(6, a) == LVD_OK) sum += a;
  CHECK_EQ(pb_wait_signal(&more, -1), LVD_OK);
  CHECK_EQ(stream_put(7, sum + more), LVD_OK);
}
PB_PROCEDURE(here_adds)

/* A task there sends a sum each time that it runs. */
static void check_sums(const char *task, int rounds, u32 expected) {
  can_start();
  pb_set_diagnostics(false);
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID sums = pb_create(task, 0);
  for (int round = 0; round < rounds; round++) {
    u32 sum = 0;
    CHECK_EQ(pb_rpc(sums), LVD_OK);
    CHECK_EQ(stream_create(8), LVD_OK);
    CHECK_EQ(stream_get(8, sum), LVD_OK);
    CHECK_EQ(sum, expected);
    CHECK_EQ(stream_close(8), LVD_OK);
    CHECK_EQ(pb_wait(sums), LVD_OK);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

void test_process_srpc_back(void) { check_sums("remote_asks", 10, 1000 + 99 * 100 / 2); }

/* Both ends of a stream are in the child, and the second is claimed while the first opens it with
 * the parent. */
void test_process_srpc_both_there(void) { check_sums("remote_both", 50, 99 * 100 / 2); }

enum { ELEMENTS = 500 };

static void send_to(STREAM_ID id) {
  CHECK_EQ(stream_create(id), LVD_OK);
  for (u32 i = 0; i < ELEMENTS; i++) {
    CHECK_EQ(stream_put(id, i), LVD_OK);
    if (i % 10 == 9) stream_push(id);
  }
}
static void to_first(void *unused) {
  (void)unused;
  send_to(0);
}
static void to_second(void *unused) {
  (void)unused;
  send_to(4);
}

static void receive_from(STREAM_ID id) {
  u32 a = 0;
  for (u32 i = 0; i < ELEMENTS; i++) {
    CHECK_EQ(stream_get(id, a), LVD_OK);
    CHECK_EQ(a, i + 1);
    stream_pop(id);
  }
  CHECK_EQ(stream_get(id, a), LVD_E_EOF);
  CHECK_EQ(stream_close(id), LVD_OK);
}

/* Two processes: one program, and the same under another name, which has one more procedure. */
void test_process_srpc_two(void) {
  can_start();
  pb_set_diagnostics(false);
  char path[] = "/tmp/levada-other-XXXXXX";
  int fd = mkstemp(path);
  CHECK(fd >= 0 && close(fd) == 0 && unlink(path) == 0);
  CHECK_EQ(symlink(LEVADA_CHILD, path), 0);
  CHECK_EQ(pb_load(path), LVD_OK);
  int second = pb_process();
  for (int round = 0; round < 4; round++) {
    /* The process that is loaded last comes first here: so streams do not find it by chance. */
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
    int first = pb_process();
    CHECK(first > 0 && second > 0 && first != second);
    CHECK(pb_create("remote_pipe", 0) == NULL); /* ambiguous */
    CHECK(pb_create_in(first, "other_pipe", 0) == NULL);
    CHECK(pb_create_in(1, "remote_pipe", 0) == NULL);
    CHECK(pb_create_in(0, "remote_pipe", 0) == NULL);
    TASKID a = pb_create_in(first, "remote_pipe", 0), b = pb_create("other_pipe", 0);
    CHECK(a && b);
    CHECK_EQ(stream_with(5, b), LVD_OK);
    CHECK_EQ(stream_create(1), LVD_OK);
    CHECK_EQ(stream_create(5), LVD_OK);
    CHECK_EQ(stream_with(-1, b), LVD_E_ARGUMENT);
    CHECK(stream_rpc(a, to_first) == a);
    CHECK(stream_rpc(b, to_second) == b);
    receive_from(1);
    receive_from(5);
    CHECK_EQ(pb_wait(a), LVD_OK);
    CHECK_EQ(pb_wait(b), LVD_OK);
    /* One dies, the other continues, and its names are unambiguous again. */
    CHECK_EQ(pb_rpc(a), LVD_OK);
    CHECK_EQ(kill((pid_t)first, SIGKILL), 0);
    CHECK_EQ(pb_wait(a), LVD_E_PEER_GONE);
    CHECK_EQ(pb_release(a), LVD_OK);
    TASKID c = pb_create("remote_nothing", 0);
    CHECK(c != NULL);
    CHECK_EQ(pb_rpc(c), LVD_OK);
    CHECK_EQ(pb_wait(c), LVD_OK);
    CHECK_EQ(pb_release(c), LVD_OK);
    CHECK_EQ(pb_release(b), LVD_OK);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK_EQ(unlink(path), 0);
}
