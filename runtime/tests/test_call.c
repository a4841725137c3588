/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of procedures on the cores of this process. */
#include "test.h"

static lvd_status twice(lvd_frame *f) {
  if (f->argument_size != 4) return LVD_E_ARGUMENT;
  *(uint32_t *)f->result = 2 * *(const uint32_t *)f->argument;
  f->result_size = 4;
  return LVD_OK;
}
LVD_PROCEDURE(twice)

static lvd_status backwards(lvd_frame *f) {
  const unsigned char *from = f->argument;
  unsigned char *to = f->result;
  if (f->argument_size > f->result_room) return LVD_E_LIMIT;
  for (size_t i = 0; i < f->argument_size; i++) to[i] = from[f->argument_size - 1 - i];
  f->result_size = f->argument_size;
  return LVD_OK;
}
LVD_PROCEDURE(backwards)

static lvd_status sleeps(lvd_frame *f) { return lvd_fiber_sleep(*(const int64_t *)f->argument); }
LVD_PROCEDURE(sleeps)

static lvd_status crashes(lvd_frame *f) {
  (void)f;
  __builtin_trap();
}
LVD_PROCEDURE(crashes)

static lvd_unit *unit_of(lvd_app *app, uint32_t worker) {
  lvd_unit *u;
  CHECK_EQ(lvd_unit_core(app, worker, &u), LVD_OK);
  return u;
}

void test_call_results(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  lvd_unit *u[2] = {unit_of(app, 0), unit_of(app, 1)};
  lvd_call *c[50];
  for (uint32_t round = 0; round < SCALED(100) + 1; round++) {
    for (uint32_t i = 0; i < 50; i++)
      CHECK_EQ(lvd_call_start(u[i % 2], "twice", &i, 4, NULL, &c[i]), LVD_OK);
    for (uint32_t i = 0; i < 50; i++) {
      uint32_t x = 0;
      size_t size = sizeof x;
      CHECK_EQ(lvd_call_wait(c[i], &x, &size, -1, NULL), LVD_OK);
      CHECK_EQ(size, 4);
      CHECK_EQ(x, 2 * i);
    }
  }
  /* Large ones. */
  size_t large = 100000, size = large;
  unsigned char *from = malloc(large), *to = malloc(large);
  for (size_t i = 0; i < large; i++) from[i] = (unsigned char)(i * 7);
  lvd_call_options o = {.result_room = large};
  CHECK_EQ(lvd_call_start(u[1], "backwards", from, large, &o, &c[0]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], to, &size, -1, NULL), LVD_OK);
  CHECK_EQ(size, large);
  for (size_t i = 0; i < large; i++) CHECK_EQ(to[i], from[large - 1 - i]);
  CHECK_EQ(lvd_call_start(u[1], "backwards", from, large, NULL, &c[0]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, NULL), LVD_E_LIMIT);
  free(from);
  free(to);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_call_statuses(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  lvd_unit *u = unit_of(app, 1), *none;
  lvd_call *c[3];
  bool returned;
  CHECK_EQ(lvd_unit_core(app, 2, &none), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_call_start(u, "nobody knows it", NULL, 0, NULL, &c[0]), LVD_E_UNKNOWN);
  CHECK_EQ(lvd_call_start(u, "twice", NULL, LVD_CALL_MOST + 1, NULL, &c[0]), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_procedure_register("twice", backwards), LVD_E_STATE);
  CHECK_EQ(lvd_call_start(u, "twice", "xyz", 3, NULL, &c[0]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, NULL), LVD_E_ARGUMENT); /* the procedure's own */

  int64_t ns[3] = {10000000000, 10000000000, 1000000};
  for (int i = 0; i < 3; i++)
    CHECK_EQ(lvd_call_start(u, "sleeps", &ns[i], sizeof ns[i], NULL, &c[i]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, 1000000, &returned), LVD_E_TIME);
  CHECK(!returned);
  uint32_t which = 9;
  CHECK_EQ(lvd_call_wait_any(c, 3, -1, &which), LVD_OK);
  CHECK_EQ(which, 2);
  CHECK_EQ(lvd_call_wait(c[2], NULL, NULL, 0, NULL), LVD_OK);
  lvd_call_cancel(c[0]);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, &returned), LVD_E_CANCELLED);
  CHECK(returned);

  CHECK_EQ(lvd_call_start(u, "crashes", NULL, 0, NULL, &c[0]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, NULL), LVD_E_FAULT);
  CHECK_EQ(lvd_call_wait(c[1], NULL, NULL, -1, NULL), LVD_E_STOPPED); /* its application ended */
  lvd_fault fault;
  CHECK(lvd_app_fault(app, &fault));
  CHECK(strcmp(fault.actor, "crashes") == 0);
  CHECK_EQ(lvd_call_start(u, "twice", NULL, 0, NULL, &c[0]), LVD_E_STATE);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
