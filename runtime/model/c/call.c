/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls to the core of a worker, also urgent ones. */
#include <stdlib.h>
#include <string.h>

#include <levada/process.h>

#include "src/app/app.h"
#include "src/blocking/blocking.h"
#include "world.h"

static struct {
  lvd_unit *unit[WORKERS];
  lvd_call *call;
} calls;

/* ---- what no check has --------------------------------------------------------------------- */

uint32_t lvd_os_usable_cpus(int32_t *cpu, uint32_t max) { return (void)cpu, (void)max, 1; }
uint32_t lvd_os_cpu_quota(const char *root) { return (void)root, 0; }
size_t lvd_os_escape_size(void) { return 1; }
void lvd_app_unload(lvd_app *app) { (void)app; }
void lvd_apps_free(lvd_runtime *rt) { (void)rt; }
void lvd_blocking_end(lvd_runtime *rt) { (void)rt; }
void lvd_call_follow_actor(lvd_worker *w, lvd_entity *e) { (void)w, (void)e; }

/* ---- procedures: each returns the double of its argument ------------------------------------- */

static lvd_status returns(lvd_call_frame *frame) {
  uint32_t v;
  memcpy(&v, frame->argument, sizeof v);
  v *= 2;
  memcpy(frame->result, &v, sizeof v);
  frame->result_size = sizeof v;
  return LVD_OK;
}
static lvd_status waits(lvd_call_frame *frame) {
  lvd_status status = lvd_event_wait(&model_the_world->event[0], NULL, -1);
  returns(frame);
  return status;
}
static lvd_status says(lvd_call_frame *frame) {
  lvd_event_set(&model_the_world->event[0], 7);
  return returns(frame);
}
static const struct {
  const char *name;
  lvd_procedure *procedure;
} procedure[] = {{"returns", returns}, {"waits", waits}, {"says", says}};

/* ---- fibers -------------------------------------------------------------------------------- */

static uint32_t start(uint32_t worker, uint32_t what, uint32_t v, bool urgent) {
  lvd_call_options o = {.stack = (size_t)1 << STACK_LOG2, .urgent = urgent};
  return lvd_call_start(calls.unit[worker], procedure[what].name, &v, sizeof v, &o, &calls.call);
}
/* What has come back; `status` is the procedure's, or LVD_E_TIMEOUT. */
static uint32_t finish(int64_t timeout_ns, uint32_t v) {
  uint32_t result = 0;
  size_t size = sizeof result;
  bool returned;
  lvd_status status = lvd_call_wait(calls.call, &result, &size, timeout_ns, &returned);
  if (!returned) return LVD_E_TIMEOUT;
  if (result != 2 * v) model_the_world->wrong++;
  return status;
}

static uint32_t calls_other(model_world *m) {
  (void)m;
  uint32_t status = start(1, 0, 21, false);
  return status == LVD_OK ? finish(-1, 21) : status;
}
/* When the time has passed it cancels, and has the result all the same. */
static uint32_t calls_in_time(model_world *m) {
  (void)m;
  uint32_t status = start(1, 1, 21, false);
  if (status == LVD_OK) status = finish(10, 21);
  if (status != LVD_E_TIMEOUT) return status;
  lvd_call_cancel(calls.call);
  return finish(-1, 21);
}
static uint32_t waits_here(model_world *m) {
  lvd_status status = lvd_event_wait(&m->event[0], &m->data, -1);
  if (status == LVD_OK && !m->told) m->wrong++;
  return status;
}
static uint32_t says_here(model_world *m) {
  m->told = 1;
  return lvd_event_set(&m->event[0], 7);
}

uint32_t (*const model_role[])(model_world *) = {calls_other, calls_in_time, waits_here, says_here};

/* ---- what a check does --------------------------------------------------------------------- */

void model_begin(model_world *m) {
  for (uint32_t i = 0; i < sizeof procedure / sizeof *procedure; i++)
    lvd_procedure_register(procedure[i].name, procedure[i].procedure);
  for (uint32_t i = 0; i < m->rt.workers; i++)
    if (lvd_unit_core(&m->app, i, &calls.unit[i]) != LVD_OK) abort();
}

uint32_t model_call(uint32_t worker, uint32_t what, uint32_t v, bool urgent) {
  return start(worker, what, v, urgent);
}
uint32_t model_finish(int64_t timeout_ns, uint32_t v) { return finish(timeout_ns, v); }
/* Waits until it has returned, and leaves it. */
uint32_t model_returned(void) {
  uint32_t which;
  return lvd_call_wait_any(&calls.call, 1, -1, &which);
}
void model_cancel_call(void) { lvd_call_cancel(calls.call); }

/* Registers a name that is not registered yet. */
uint32_t model_register(void) { return lvd_procedure_register("late", returns); }
uint32_t model_find(void) { return lvd_procedure_find("late") == returns; }
uint32_t model_find_none(void) { return lvd_procedure_find("late") == NULL; }
