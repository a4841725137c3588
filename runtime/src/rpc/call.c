/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls, and the unit that is a core: a call there is a fiber, and its return is the fiber's end.
 *
 * The record of the call itself is posted to the core as a command. The worker there takes a fiber
 * from its own pool, so nothing of the fiber moves between cores, and a small result comes back in
 * one cache line together with the word that signals it.
 *
 * Pairs of orders
 *   post -> run_commands (worker.c)                                     the record, as it was sent
 *   return: event told (release)       -> wait: event (acquire)        what has come back
 *   begin: fiber (release)             -> cancel: fiber (acquire)      what the waker looks at
 *   cancel: cancelled, [light], load fiber <> begin: fiber, then as any wait: [heavy], load
 *                                             cancelled (fiber.c) */
#include "../core/text_buffer.h"
#include "../sched/fiber.h"
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- procedures by name ---------------------------------------------------------------------- */

typedef struct entry {
  char name[LVD_PROCEDURE_NAME_BYTES];
  lvd_procedure *procedure;
  const struct lvd_program *program; /* that has registered it; null: the process itself */
  struct entry *next;
} entry;

/* Entries are never freed, and are looked up without the lock. */
enum { BUCKETS = 256 };
static struct {
  lvd_os_mutex lock;
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
  LVD_NO_ABANDON;
  if (!name || !*name || strlen(name) >= LVD_PROCEDURE_NAME_BYTES) return LVD_E_ARGUMENT;
  lvd_status status = LVD_OK;
  lvd_os_lock(&registry.lock);
  entry *e = find(name);
  if (e && e->procedure && procedure && e->procedure != procedure) {
    status = LVD_E_STATE;
  } else if (e) {
    if (!e->procedure)
      e->program = lvd_hooks.programs.registering(); /* otherwise it keeps its owner */
    e->procedure = procedure;
  } else if (procedure && (e = calloc(1, sizeof *e))) {
    lvd_aptr *bucket = &registry.bucket[hash(name)];
    memcpy(e->name, name, strlen(name));
    e->procedure = procedure;
    e->program = lvd_hooks.programs.registering();
    e->next = lvd_load_relaxed_ptr(bucket);
    lvd_store_release_ptr(bucket, e);
  } else if (procedure) {
    status = LVD_E_MEMORY;
  }
  lvd_os_unlock(&registry.lock);
  return status;
}

void lvd_calls_forget(const struct lvd_program *hosted) {
  lvd_os_lock(&registry.lock);
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (entry *e = lvd_load_relaxed_ptr(&registry.bucket[i]); e; e = e->next)
      if (e->program == hosted) {
        e->procedure = NULL;
        e->program = NULL;
      }
  lvd_os_unlock(&registry.lock);
}

/* ---- calls ----------------------------------------------------------------------------------- */

enum { CACHED_CALLS_MAX = 64 /* call records that a worker caches */ };

/* Call records are kept until the runtime is destroyed: a late waker may still touch one
 * (wait.c). */
static lvd_call *take_call(lvd_runtime *rt) {
  lvd_worker *w = lvd_this_worker();
  bool own = w && w->rt == rt && w->spare_calls;
  if (!own) lvd_os_lock(&rt->pool_lock);
  lvd_call **spare = own ? &w->spare_calls : &rt->spare_calls, *c = *spare;
  if (c) *spare = c->next;
  if (own)
    w->spare_call_count--;
  else
    lvd_os_unlock(&rt->pool_lock);
  if (c || !(c = lvd_os_alloc(sizeof *c))) return c;
  lvd_event_init(&c->returned);
  c->returned.wait_point.kind = LVD_SLEEPS_AT_CALL;
  return c;
}

static void put_back(lvd_call *c) {
  lvd_runtime *rt = c->unit->app->rt;
  if (c->frame.argument != c->argument) free((void *)(uintptr_t)c->frame.argument);
  if (c->frame.result != c->result) free(c->frame.result);
  lvd_worker *w = lvd_this_worker();
  bool own = w && w->rt == rt && w->spare_call_count < CACHED_CALLS_MAX;
  if (!own) lvd_os_lock(&rt->pool_lock);
  lvd_call **spare = own ? &w->spare_calls : &rt->spare_calls;
  c->next = *spare;
  *spare = c;
  if (own)
    w->spare_call_count++;
  else
    lvd_os_unlock(&rt->pool_lock);
}

static void free_calls(lvd_call *c) {
  for (lvd_call *next; c; c = next) {
    next = c->next;
    lvd_os_free(c, sizeof *c);
  }
}

void lvd_calls_free(lvd_runtime *rt) {
  free_calls(rt->spare_calls);
  for (uint32_t i = 0; rt->worker && i < lvd_worker_total(rt); i++)
    free_calls(rt->worker[i].spare_calls);
}

lvd_status lvd_call_start(lvd_unit *unit, const char *procedure, const void *argument, size_t size,
                          const lvd_call_options *options, lvd_call **out) {
  LVD_NO_ABANDON;
  static const lvd_call_options defaults;
  const lvd_call_options *o = options ? options : &defaults;
  size_t room = o->result_room ? o->result_room : LVD_CALL_INLINE_BYTES;
  if (!unit || !procedure || !out || (size && !argument)) return LVD_E_ARGUMENT;
  if (size > LVD_CALL_BYTES_MAX || room > LVD_CALL_BYTES_MAX) return LVD_E_ARGUMENT;
  lvd_call *c = take_call(unit->app->rt);
  if (!c) return LVD_E_MEMORY;
  void *copy = size <= LVD_CALL_INLINE_BYTES ? c->argument : malloc(size);
  void *result = room <= LVD_CALL_INLINE_BYTES ? c->result : malloc(room);
  c->unit = unit;
  lvd_store_relaxed_ptr(&c->fiber, NULL);
  lvd_store_relaxed_u32(&c->cancelled, 0);
  c->status = LVD_OK;
  c->frame = (lvd_call_frame){.app = unit->app,
                              .argument = copy,
                              .argument_size = size,
                              .result = result,
                              .result_room = room};
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
  LVD_NO_ABANDON;
  if (!c) return LVD_E_ARGUMENT;
  uint32_t which;
  const lvd_wait_item want = {.event = &c->returned};
  lvd_status status = LVD_OK;
  if (!lvd_event_is_set(want.event)) status = lvd_wait_any(&want, 1, timeout_ns, &which);
  if (returned) *returned = status == LVD_OK;
  if (status != LVD_OK) return status;
  status = c->unit->kind->finish(c);
  size_t have = c->frame.result_size, size_max = size ? *size : 0;
  if (have == LVD_RESULT_TOO_LARGE) {
    have = 0;
    if (status == LVD_OK)
      status = lvd_limit("the result is larger than its room: lvd_call_options.result_room");
  }
  if (result && have) memcpy(result, c->frame.result, have < size_max ? have : size_max);
  if (size) *size = have;
  put_back(c);
  return status;
}

lvd_status lvd_call_wait_any(lvd_call *const *call, uint32_t count, int64_t timeout_ns,
                             uint32_t *which) {
  if (!call || count == 0 || count > LVD_WAIT_ITEMS_MAX) return LVD_E_ARGUMENT;
  lvd_wait_item want[LVD_WAIT_ITEMS_MAX];
  for (uint32_t i = 0; i < count; i++) {
    if (!call[i]) return LVD_E_ARGUMENT;
    want[i] = (lvd_wait_item){.event = &call[i]->returned};
  }
  return lvd_wait_any(want, count, timeout_ns, which);
}

void lvd_call_cancel(lvd_call *c) {
  LVD_NO_ABANDON;
  if (c) c->unit->kind->cancel(c);
}

/* ---- units ----------------------------------------------------------------------------------- */

const char *lvd_unit_name(const lvd_unit *unit) { return unit ? unit->name : ""; }

static const char *last_words(const lvd_unit *unit) {
  return unit && unit->kind->last_words ? unit->kind->last_words(unit) : NULL;
}

size_t lvd_unit_error_text(const lvd_unit *unit, char *text, size_t size) {
  text_buffer s = {text, size, 0};
  const char *words = last_words(unit);
  if (text && size) text[0] = 0;
  if (words) text_append(&s, "%s", words);
  return s.length;
}

size_t lvd_units_why(lvd_app *app, char *text, size_t size) {
  LVD_NO_ABANDON;
  text_buffer s = {text, size, 0};
  if (text && size) text[0] = 0;
  lvd_os_lock(&app->blocks_lock);
  for (const lvd_unit *u = app->units; u; u = u->next)
    if (last_words(u)) text_append(&s, "%s has failed: %s\n", u->name, last_words(u));
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

void lvd_unit_enter(lvd_unit *unit) {
  lvd_app *app = unit->app;
  lvd_os_lock(&app->blocks_lock);
  unit->next = app->units;
  app->units = unit;
  lvd_os_unlock(&app->blocks_lock);
}

void lvd_units_free(lvd_app *app) {
  for (lvd_unit *u = app->units, *next; u; u = next) {
    next = u->next;
    u->kind->free(u);
  }
  app->units = NULL;
}

/* ---- the unit that is a core ----------------------------------------------------------------- */

static void run_call(void *argument) {
  lvd_call *c = argument;
  lvd_fiber *f = lvd_load_relaxed_ptr(&c->fiber);
  lvd_call_frame frame = c->frame;
  /* The caller polls the cache line of the result: it is written once, at the end. */
  LVD_ALIGNED(16) unsigned char result[LVD_CALL_INLINE_BYTES];
  if (frame.result == c->result) frame.result = memset(result, 0, frame.result_room);
  f->outcome = c->procedure(&frame);
  size_t size = frame.result_size;
  if (size > frame.result_room)
    size = LVD_RESULT_TOO_LARGE;
  else if (c->frame.result == c->result)
    memcpy(c->result, result, size);
  c->result_size = size;
}

/* On the worker where it is to run; it is counted as ready. */
static void begin(lvd_worker *w, lvd_call *c) {
  lvd_app *app = c->frame.app;
  lvd_fiber *f;
  lvd_status status = lvd_fiber_take(w->rt, c->stack, &f);
  if (status != LVD_OK) {
    lvd_event_complete(&c->returned, (uint32_t)status);
    lvd_app_worker_fiber_ended(w, app);
    lvd_app_worker_leave(w, app);
    return;
  }
  lvd_fiber_fill(f, app, w->index, c->level, run_call, c);
  f->entity.name = c->arrival.argument; /* owned by the registry */
  f->end = &c->returned;
  f->cancelled = &c->cancelled;
  f->started_as = LVD_STARTED_AS_CALL;
  /* another one, if its core was reserved while the call was in transit */
  uint32_t target = w->index;
  if (target < w->rt->workers)
    while (!lvd_load_relaxed_u32(&w->rt->worker[target].available))
      target = (target + 1) % w->rt->workers;
  lvd_store_relaxed_u32(&f->entity.target, target);
  lvd_store_release_ptr(&c->fiber, f);
  lvd_fiber_begin(w, f);
}

static void arrive(lvd_worker *w, lvd_command *arrival) {
  lvd_call *c = (lvd_call *)arrival;
  lvd_app_worker_arrive(w, c->frame.app);
  begin(w, c);
}

static lvd_status core_start(lvd_call *c, const char *procedure, const lvd_call_options *o) {
  lvd_app *app = c->unit->app;
  lvd_runtime *rt = app->rt;
  uint32_t worker = c->unit->worker;
  lvd_os_prefetch_write(&rt->worker[worker].commands);
  entry *e = find(procedure);
  if (!e || !e->procedure) return LVD_E_NOT_FOUND;
  c->procedure = e->procedure;
  c->arrival.argument = e->name;
  c->level = lvd_level_of(o->priority);
  c->stack = lvd_fiber_stack(o->stack);
  c->result_size = 0;
  if (!c->stack || !lvd_load_relaxed_u32(&rt->worker[worker].available)) return LVD_E_ARGUMENT;
  lvd_status status = o->urgent ? lvd_priority_worker(rt, worker, &worker) : LVD_OK;
  if (status != LVD_OK || (status = lvd_fiber_announce(app)) != LVD_OK) return status;
  lvd_worker *self = lvd_this_worker(), *w = &rt->worker[worker];
  /* A running activation of the application keeps it live; otherwise the gate prevents that
   * quiescence is decided now. */
  bool inside = self && self->current && self->current->app == app;
  if (inside && self == w && w->current->is_fiber) {
    lvd_app_worker_enter(w, app);
    begin(w, c);
    return LVD_OK;
  }
  if (!inside) lvd_os_lock(&app->gate);
  lvd_add_relaxed_u32(&app->live, 1); /* in transit, until it has arrived */
  if (!inside) lvd_os_unlock(&app->gate);
  c->arrival.run = arrive;
  lvd_worker_post(w, &c->arrival, c->level);
  return LVD_OK;
}

static lvd_status core_finish(lvd_call *c) {
  c->frame.result_size = c->result_size;
  return (lvd_status)lvd_load_relaxed_u64(&c->returned.word);
}

/* A fiber that has ended, or serves something else by now, gets a spurious wake-up. */
static void core_cancel(lvd_call *c) {
  lvd_store_relaxed_u32(&c->cancelled, LVD_E_CANCELLED);
  lvd_membarrier_light(c->frame.app->rt->fenced);
  lvd_fiber *f = lvd_load_acquire_ptr(&c->fiber);
  if (f) lvd_entity_wake(&f->entity.waiter);
}

static void core_free(lvd_unit *unit) { free(unit); }

static const lvd_unit_kind core_kind = {core_start, core_finish, core_cancel,
                                        core_free,  NULL,        NULL};

lvd_status lvd_unit_core(lvd_app *app, uint32_t worker, lvd_unit **out) {
  LVD_NO_ABANDON;
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
