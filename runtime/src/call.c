/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls, and the unit that is a core: a call there is a fiber, and its return is the fiber's
 * end. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- procedures by name ---------------------------------------------------------------------- */

typedef struct entry {
  char name[LVD_PROCEDURE_NAME];
  lvd_procedure *procedure;
  struct entry *next;
} entry;

/* Entries are never freed, and found without the lock. */
enum { BUCKETS = 256 };
static struct {
  lvd_port_mutex lock;
  lvd_aptr bucket[BUCKETS];
} registry;

static uint32_t hash(const char *name) {
  uint32_t h = 2166136261u; /* FNV-1a */
  for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
  return (h ^ h >> 16) % BUCKETS;
}

static entry *find(const char *name) {
  entry *e = lvd_load_acquire_ptr(&registry.bucket[hash(name)]);
  while (e && strcmp(e->name, name) != 0) e = e->next;
  return e;
}

lvd_procedure *lvd_procedure_find(const char *name) {
  entry *e = name ? find(name) : NULL;
  return e ? e->procedure : NULL;
}

lvd_status lvd_procedure_register(const char *name, lvd_procedure *procedure) {
  if (!name || !*name || strlen(name) >= LVD_PROCEDURE_NAME) return LVD_E_ARGUMENT;
  lvd_status status = LVD_OK;
  lvd_port_lock(&registry.lock);
  entry *e = find(name);
  if (e && e->procedure && procedure && e->procedure != procedure) {
    status = LVD_E_STATE;
  } else if (e) {
    e->procedure = procedure;
  } else if (procedure && (e = calloc(1, sizeof *e))) {
    lvd_aptr *bucket = &registry.bucket[hash(name)];
    memcpy(e->name, name, strlen(name));
    e->procedure = procedure;
    e->next = lvd_load_relaxed_ptr(bucket);
    lvd_store_release_ptr(bucket, e);
  } else if (procedure) {
    status = LVD_E_MEMORY;
  }
  lvd_port_unlock(&registry.lock);
  return status;
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* Calls lie where they lie until their runtime is destroyed: a late waker may knock (wait.c). */
static lvd_call *take_call(lvd_runtime *rt) {
  lvd_port_lock(&rt->pool_lock);
  lvd_call *c = rt->spare_calls;
  if (c) rt->spare_calls = c->next;
  lvd_port_unlock(&rt->pool_lock);
  if (c || !(c = lvd_port_alloc(sizeof *c))) return c;
  lvd_event_init(&c->returned);
  return c;
}

static void put_back(lvd_call *c) {
  lvd_runtime *rt = c->unit->app->rt;
  if (c->frame.argument != c->argument) free((void *)(uintptr_t)c->frame.argument);
  if (c->frame.result != c->result) free(c->frame.result);
  lvd_port_lock(&rt->pool_lock);
  c->next = rt->spare_calls;
  rt->spare_calls = c;
  lvd_port_unlock(&rt->pool_lock);
}

void lvd_calls_free(lvd_runtime *rt) {
  for (lvd_call *c = rt->spare_calls, *next; c; c = next) {
    next = c->next;
    lvd_port_free(c, sizeof *c);
  }
}

lvd_status lvd_call_start(lvd_unit *unit, const char *procedure, const void *argument, size_t size,
                          const lvd_call_options *options, lvd_call **out) {
  static const lvd_call_options usual;
  const lvd_call_options *o = options ? options : &usual;
  size_t room = o->result_room ? o->result_room : LVD_CALL_INLINE;
  if (!unit || !procedure || !out || (size && !argument)) return LVD_E_ARGUMENT;
  if (size > LVD_CALL_MOST || room > LVD_CALL_MOST) return LVD_E_ARGUMENT;
  lvd_call *c = take_call(unit->app->rt);
  if (!c) return LVD_E_MEMORY;
  void *copy = size <= LVD_CALL_INLINE ? c->argument : malloc(size);
  void *result = room <= LVD_CALL_INLINE ? c->result : malloc(room);
  c->unit = unit;
  c->fiber = NULL;
  c->done = &c->returned;
  c->status = LVD_OK;
  c->frame = (lvd_frame){unit->app, copy, size, result, room, 0};
  lvd_store_relaxed_u64(&c->returned.word, 0);
  lvd_status status = copy && result ? LVD_OK : LVD_E_MEMORY;
  if (status == LVD_OK) {
    if (size) memcpy(copy, argument, size);
    memset(result, 0, room);
    status = unit->kind->start(c, procedure, o);
  }
  if (status == LVD_OK)
    *out = c;
  else
    put_back(c);
  return status;
}

lvd_status lvd_call_wait(lvd_call *c, void *result, size_t *size, int64_t timeout_ns,
                         bool *returned) {
  if (!c) return LVD_E_ARGUMENT;
  uint32_t which;
  const lvd_want want = {.event = c->done};
  lvd_status status = lvd_wait_any(&want, 1, timeout_ns, &which);
  if (returned) *returned = status == LVD_OK;
  if (status != LVD_OK) return status;
  status = c->unit->kind->finish(c);
  size_t have = c->frame.result_size, most = size ? *size : 0;
  if (result && have) memcpy(result, c->frame.result, have < most ? have : most);
  if (size) *size = have;
  put_back(c);
  return status;
}

lvd_status lvd_call_wait_any(lvd_call *const *call, uint32_t count, int64_t timeout_ns,
                             uint32_t *which) {
  if (!call || count == 0 || count > LVD_WANTS) return LVD_E_ARGUMENT;
  lvd_want want[LVD_WANTS];
  for (uint32_t i = 0; i < count; i++) {
    if (!call[i]) return LVD_E_ARGUMENT;
    want[i] = (lvd_want){.event = call[i]->done};
  }
  return lvd_wait_any(want, count, timeout_ns, which);
}

void lvd_call_cancel(lvd_call *c) {
  if (c) c->unit->kind->cancel(c);
}

/* ---- units ---------------------------------------------------------------------------------- */

const char *lvd_unit_name(const lvd_unit *unit) { return unit ? unit->name : ""; }

void lvd_unit_enter(lvd_unit *unit) {
  lvd_app *app = unit->app;
  lvd_port_lock(&app->blocks_lock);
  unit->next = app->units;
  app->units = unit;
  lvd_port_unlock(&app->blocks_lock);
}

void lvd_units_free(lvd_app *app) {
  for (lvd_unit *u = app->units, *next; u; u = next) {
    next = u->next;
    u->kind->free(u);
  }
  app->units = NULL;
}

/* ---- the unit that is a core ---------------------------------------------------------------- */

static void run_call(void *argument) {
  lvd_call *c = argument;
  lvd_port_expect(&c->status);
  lvd_port_expect(c->argument);
  lvd_port_expect(c->result);
  c->status = c->procedure(&c->frame);
}

static lvd_status core_start(lvd_call *c, const char *procedure, const lvd_call_options *o) {
  c->procedure = lvd_procedure_find(procedure);
  if (!c->procedure) return LVD_E_UNKNOWN;
  const lvd_fiber_options f = {.name = procedure,
                               .priority = o->priority,
                               .urgent = o->urgent,
                               .stack = o->stack,
                               .place = LVD_WORKER(c->unit->worker)};
  lvd_status status = lvd_fiber_start(c->unit->app, run_call, c, &f, &c->fiber);
  if (status == LVD_OK) c->done = lvd_fiber_done(c->fiber);
  return status;
}

static lvd_status core_finish(lvd_call *c) {
  lvd_status status = lvd_fiber_join(c->fiber, -1);
  if (c->frame.result_size > c->frame.result_room) c->frame.result_size = c->frame.result_room;
  return status == LVD_OK ? c->status : status;
}

static void core_cancel(lvd_call *c) { lvd_fiber_cancel(c->fiber); }
static void core_free(lvd_unit *unit) { free(unit); }

static const lvd_unit_kind core_kind = {core_start, core_finish, core_cancel, core_free, NULL};

lvd_status lvd_unit_core(lvd_app *app, uint32_t worker, lvd_unit **out) {
  if (!app || !out || worker >= app->rt->workers) return LVD_E_ARGUMENT;
  lvd_unit *u = calloc(1, sizeof *u);
  if (!u) return LVD_E_MEMORY;
  u->kind = &core_kind;
  u->app = app;
  u->worker = worker;
  snprintf(u->name, sizeof u->name, "worker %u", worker);
  lvd_unit_enter(u);
  *out = u;
  return LVD_OK;
}
