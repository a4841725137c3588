/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of procedures on the cores of this process. */
#include "../support/calling.h"
#include "../support/procedures.h"

static lvd_status sleeps(lvd_call_frame *f) {
  return lvd_fiber_sleep(*(const int64_t *)f->argument);
}
LVD_PROCEDURE(sleeps)

static lvd_status crashes(lvd_call_frame *f) {
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
  lvd_call *c;
  call_twice_of_many(u, 2, SCALED(100) / 5 + 1);
  call_backwards(u[1], 100000, 100000, 1);
  unsigned char *from = calloc(1, 100000); /* more than fits without an explicit room */
  CHECK_EQ(lvd_call_start(u[1], "backwards", from, 100000, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_E_LIMIT);
  free(from);
  for (int i = 0; i < 2; i++) call_overstates(u[i]);
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
  CHECK_EQ(lvd_call_start(u, "unregistered", NULL, 0, NULL, &c[0]), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_call_start(u, "twice", NULL, LVD_CALL_BYTES_MAX + 1, NULL, &c[0]), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_procedure_register("twice", backwards), LVD_E_STATE);
  CHECK_EQ(lvd_call_start(u, "twice", "xyz", 3, NULL, &c[0]), LVD_OK);
  /* the procedure's own status */
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, NULL), LVD_E_ARGUMENT);

  int64_t ns[3] = {300000000000, 300000000000, 1000000};
  for (int i = 0; i < 3; i++)
    CHECK_EQ(lvd_call_start(u, "sleeps", &ns[i], sizeof ns[i], NULL, &c[i]), LVD_OK);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, 1000000, &returned), LVD_E_TIMEOUT);
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
  /* its application has ended */
  CHECK_EQ(lvd_call_wait(c[1], NULL, NULL, -1, NULL), LVD_E_STOPPED);
  lvd_fault fault;
  CHECK(lvd_app_fault(app, &fault));
  CHECK(strcmp(fault.actor, "crashes") == 0);
  CHECK_EQ(lvd_call_start(u, "twice", NULL, 0, NULL, &c[0]), LVD_E_STATE);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
