/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runtime: creates its workers, and controls which cores they may use. */
#include "../app/app.h"
#include "../blocking/blocking.h"
#include "../sched/no_abandon.h"
#include "../sched/ready_queue.h"
#include "../sched/sched.h"
#include "../stream/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPIN_US = 30, ENTITIES_DEFAULT = 1 << 18 };
#define NO_DEADLINE UINT64_MAX /* ns */

static size_t slots_size(const lvd_runtime *rt) {
  return (size_t)rt->options.entities * sizeof(lvd_slot);
}

static void take_up_held(lvd_worker *w, lvd_command *c);

static void end_worker(lvd_worker *w, lvd_command *c) {
  (void)c;
  w->ending = true;
}

static bool done_until(lvd_command *c, uint64_t until) {
  if (until == NO_DEADLINE) return lvd_command_done(c, -1);
  for (uint64_t now; (now = lvd_os_now_ns()) < until;)
    if (lvd_command_done(c, (int64_t)(until - now))) return true;
  return lvd_command_done(c, 0);
}

/* Runs a command on a worker. Returns false if the worker has not run it by `until`; it stays
 * queued, and the next command waits for it first. */
static bool command(lvd_runtime *rt, uint32_t worker, void (*run)(lvd_worker *, lvd_command *),
                    uint64_t until) {
  if (!lvd_load_acquire_u32(&rt->worker[worker].runs)) return true;
  lvd_command *c = &rt->command[worker];
  if (c->run && !done_until(c, until)) return false;
  c->run = run;
  c->soon = run == take_up_held;
  lvd_worker_command(&rt->worker[worker], c);
  return done_until(c, until);
}

static void free_runtime(lvd_runtime *rt) {
  lvd_blocking_end(rt); /* a helper thread may still be waking a fiber */
  lvd_hooks.forks.free(rt);
  lvd_fiber_pool_free(rt);
  lvd_apps_free(rt);
  lvd_hooks.calls.free(rt);
  for (uint32_t i = 0; rt->worker && i < lvd_worker_total(rt); i++) lvd_worker_free(&rt->worker[i]);
  lvd_os_free(rt->worker, lvd_worker_total(rt) * sizeof(lvd_worker));
  lvd_os_free(rt->command, lvd_worker_total(rt) * sizeof(lvd_command));
  lvd_os_free(rt->slot, slots_size(rt));
  lvd_os_free(rt->entity, lvd_entities_size(rt));
  lvd_os_free(rt, sizeof *rt);
}

bool lvd_realtime_allowed(uint32_t realtime) {
  return realtime >= 1 && realtime <= LVD_REALTIME_MAX &&
         lvd_os_realtime_allowed(realtime + LVD_PRIO_SERVICE);
}

void lvd_thread_set_service_priority(const lvd_runtime *rt) {
  if (rt) lvd_take_priority(rt, LVD_PRIO_SERVICE);
}

uint32_t lvd_service_priority(void) {
  const lvd_worker *w = lvd_this_worker();
  uint32_t least = w ? w->rt->options.realtime : 0;
  return least ? least + LVD_PRIO_SERVICE : 0;
}

lvd_status lvd_runtime_create(const lvd_runtime_options *options, lvd_runtime **out) {
  LVD_NO_ABANDON;
  if (!out) return LVD_E_ARGUMENT;
  *out = NULL;
  enum { WORKERS_MAX = 4096 };
  static const lvd_runtime_options defaults;
  if (!options) options = &defaults;
  if (options->workers > WORKERS_MAX || options->realtime > LVD_REALTIME_MAX) return LVD_E_ARGUMENT;
  if (options->realtime && !lvd_realtime_allowed(options->realtime))
    return lvd_limit(
        "the system does not let this program have that real-time priority: be root, or "
        "have a higher limit (ulimit -r)");

  int32_t *cpu = calloc(WORKERS_MAX, sizeof *cpu);
  lvd_runtime *rt = lvd_os_alloc(sizeof *rt);
  if (!rt || !cpu) {
    free(cpu);
    if (rt) lvd_os_free(rt, sizeof *rt);
    return LVD_E_MEMORY;
  }
  rt->options = *options;
  if (!rt->options.spin_us) rt->options.spin_us = SPIN_US;
  if (!rt->options.entities) rt->options.entities = ENTITIES_DEFAULT;
  uint32_t cpus = lvd_os_usable_cpus(cpu, WORKERS_MAX), quota = lvd_os_cpu_quota(NULL);
  if (cpus > WORKERS_MAX) cpus = WORKERS_MAX;
  rt->one_core = cpus == 1;
  rt->workers = cpus;
  if (quota && quota < rt->workers) rt->workers = quota;
  if (options->workers) rt->workers = options->workers;
  rt->available_count = rt->workers;
  rt->has_backup_workers = true;
  lvd_fiber_pool_init(rt);
  rt->fenced = !lvd_os_barrier_prepare();
  lvd_os_ticks_to_ns(1); /* calibrates the ticks, once */
  lvd_os_traps_prepare();

  rt->slot = lvd_os_alloc(slots_size(rt));
  rt->entity = lvd_os_alloc(lvd_entities_size(rt));
  rt->worker = lvd_os_alloc(lvd_worker_total(rt) * sizeof(lvd_worker));
  rt->command = lvd_os_alloc(lvd_worker_total(rt) * sizeof(lvd_command));
  bool all = rt->slot && rt->entity && rt->worker && rt->command;
  lvd_status status = all ? LVD_OK : LVD_E_MEMORY;
  /* More workers than cores are for tests: they share the cores, unpinned. */
  bool pin = !options->no_pin && rt->workers <= cpus;
  for (uint32_t i = 0; status == LVD_OK && i < rt->workers; i++)
    status = lvd_worker_prepare(rt, i, pin ? cpu[i] : -1);
  uint32_t started = 0;
  for (; status == LVD_OK && started < rt->workers; started++) {
    char name[24];
    snprintf(name, sizeof name, "levada/%u", started);
    status = lvd_worker_start(&rt->worker[started], name);
    if (status != LVD_OK) break;
  }
  free(cpu);
  if (status == LVD_OK) status = lvd_reaper_start(rt);
  if (status == LVD_OK) status = lvd_watchdog_start(rt);
  if (status != LVD_OK) {
    lvd_reapers_end(rt);
    lvd_watchdog_end(rt);
    for (uint32_t i = 0; i < started; i++) {
      lvd_command c = {.run = end_worker};
      lvd_worker_command(&rt->worker[i], &c);
      lvd_os_thread_join(rt->worker[i].thread);
    }
    free_runtime(rt);
    return status;
  }
  lvd_hooks.forks.runtime_begins(rt);
  *out = rt;
  return LVD_OK;
}

void lvd_runtime_destroy(lvd_runtime *rt) {
  LVD_NO_ABANDON;
  if (!rt) return;
  lvd_hooks.forks.runtime_ends(rt);
  while (rt->apps) lvd_app_unload(rt->apps);
  lvd_reapers_end(rt);
  lvd_watchdog_end(rt);
  for (uint32_t i = 0; i < lvd_worker_total(rt); i++)
    if (rt->worker[i].thread) command(rt, i, end_worker, NO_DEADLINE);
  for (uint32_t i = 0; i < lvd_worker_total(rt); i++)
    if (rt->worker[i].thread) lvd_os_thread_join(rt->worker[i].thread);
  free_runtime(rt);
}

uint32_t lvd_worker_count(const lvd_runtime *rt) { return rt->workers; }

/* ---- the running set ------------------------------------------------------------------------- */

static void each_entity(lvd_runtime *rt, void (*visit)(lvd_entity *, void *), void *argument) {
  for (lvd_app *app = rt->apps; app; app = app->next) {
    for (uint32_t i = 0; i < app->net->actors; i++) visit(&app->entity[i], argument);
    if (lvd_load_acquire_u32(&app->fibers)) lvd_fibers_each(app, visit, argument);
  }
}

/* An actor in a blocking call (blocking_pool.c) cannot be handed over: the worker it returns to is
 * changed. */
static void send_after(lvd_entity *e, void *worker) { lvd_call_follow_actor(worker, e); }

/* Held entities must move, too: they are queued, and handed over from the queue. A stuck worker,
 * which runs this in a signal handler, leaves that to a later command. */
static void take_up_held(lvd_worker *w, lvd_command *c) {
  (void)c;
  if (lvd_worker_is_overrun(w)) return;
  lvd_os_lock(&w->rt->lock);
  each_entity(w->rt, send_after, w);
  lvd_os_unlock(&w->rt->lock);
  while (w->held) {
    lvd_entity *e = w->held;
    w->held = e->next;
    lvd_queue_put(w, e);
  }
}

/* Walk over the entities on a core that is being reserved. */
typedef struct leaving {
  lvd_runtime *rt;
  const lvd_app *exempt; /* null: none stays */
  uint32_t worker, to;
  const lvd_entity *last; /* an entity that is still there, preferably a running one; null: none */
} leaving;

/* `index` is one of that core's workers. */
static bool is_on(const leaving *l, uint32_t index) { return index % l->rt->workers == l->worker; }

/* Racy: a fiber may be reused by another application meanwhile. */
LVD_RACY_READ static void send_away(lvd_entity *e, void *argument) {
  leaving *l = argument;
  uint32_t target = lvd_load_relaxed_u32(&e->target);
  if (!is_on(l, target) || e->app == l->exempt) return;
  do l->to = (l->to + 1) % l->rt->workers;
  while (!lvd_load_relaxed_u32(&l->rt->worker[l->to].available));
  uint32_t to = l->to;
  if (lvd_is_priority_worker(l->rt, target) && lvd_priority_worker(l->rt, to, &to) != LVD_OK)
    to = l->to;
  e->sent_from = 1 + target;
  lvd_app_retarget(e->app, e, to);
}

LVD_RACY_READ static void send_back(lvd_entity *e, void *argument) {
  const leaving *l = argument;
  if (!e->sent_from || !is_on(l, e->sent_from - 1)) return;
  lvd_app_retarget(e->app, e, e->sent_from - 1);
  e->sent_from = 0;
}

LVD_RACY_READ static void has_left(lvd_entity *e, void *argument) {
  const leaving *l = argument;
  if (e->sent_from && is_on(l, e->sent_from - 1)) e->sent_from = 0;
}

/* Wakes each entity that is still there once more: one that parked just as its target changed has
 * not seen it, and waits for something else. */
LVD_RACY_READ static void wake_remaining(lvd_entity *e, void *argument) {
  leaving *l = argument;
  lvd_app *app = e->app;
  uint32_t phase = lvd_load_relaxed_u32(&app->phase), state = lvd_load_relaxed_u32(&e->state);
  if (!is_on(l, lvd_load_relaxed_u32(&e->worker)) || app == l->exempt ||
      phase > LVD_PHASE_RUNNING || state == LVD_FINISHED)
    return;
  bool runs = state == LVD_RUNNING || state == LVD_NOTIFIED;
  const lvd_worker *w = &l->rt->worker[lvd_load_relaxed_u32(&e->worker)];
  if (!l->last || (runs && lvd_load_relaxed_ptr(&w->running) == app)) l->last = e;
  if (phase == LVD_PHASE_RUNNING) lvd_entity_wake(&e->waiter);
}

/* Under the runtime's lock. */
LVD_RACY_READ static void describe_last(const lvd_entity *e, char *why, size_t size) {
  if (!why || !size) return;
  if (e->is_fiber)
    snprintf(why, size, "%s computes there, or sleeps in the system", e->app->name);
  else
    snprintf(why, size, "a firing of %s of %s lasts there", e->name, e->app->name);
}

/* The lock is released while a worker is waited for, so that others can load and unload.
 * LVD_E_TIMEOUT: an entity is still there; LVD_E_STATE: the core has been given back. */
static lvd_status clear_core(leaving *l, uint64_t until, char *why, size_t why_size) {
  lvd_runtime *rt = l->rt;
  const lvd_worker *w = &rt->worker[l->worker];
  /* A worker in a long firing hands its entity over after it. */
  for (;;) {
    l->last = NULL;
    each_entity(rt, send_away, l); /* includes an entity that was stolen meanwhile */
    each_entity(rt, wake_remaining, l);
    if (!l->last) return LVD_OK;
    if (until != NO_DEADLINE && lvd_os_now_ns() >= until) {
      describe_last(l->last, why, why_size);
      return LVD_E_TIMEOUT;
    }
    lvd_os_unlock(&rt->lock);
    bool done = true;
    for (uint32_t i = l->worker; done && i < lvd_worker_total(rt); i += rt->workers)
      done = command(rt, i, take_up_held, until);
    lvd_os_lock(&rt->lock);
    if (lvd_load_relaxed_u32(&w->available)) return LVD_E_STATE;
  }
}

/* Under the runtime's lock. Changes nothing on an error. */
static lvd_status empty_core(lvd_worker *w, lvd_app *app, uint64_t until, char *why, size_t size) {
  lvd_runtime *rt = w->rt;
  leaving l = {rt, app, w->index, w->index, NULL};
  lvd_store_relaxed_u32(&w->available, 0);
  lvd_store_relaxed_ptr(&w->alone, app);
  rt->available_count--;
  w->clearing = true;
  lvd_status status = clear_core(&l, until, why, size);
  w->clearing = false;
  if (status == LVD_E_TIMEOUT) lvd_core_put_back(w);
  each_entity(rt, status == LVD_E_TIMEOUT ? send_back : has_left, &l);
  return status;
}

static lvd_status take_core(lvd_runtime *rt, uint32_t worker, lvd_app *app, uint64_t until,
                            char *why, size_t size) {
  lvd_status status = LVD_OK;
  lvd_os_lock(&rt->lock);
  lvd_worker *w = &rt->worker[worker];
  const lvd_app *alone = lvd_load_relaxed_ptr(&w->alone);
  if (app && alone && lvd_load_relaxed_ptr(&alone->data_successor) == app)
    /* nothing else is there, and the predecessor is paused */
    lvd_store_relaxed_ptr(&w->alone, app);
  else if (!lvd_load_relaxed_u32(&w->available) || w->clearing || rt->available_count == 1)
    status = LVD_E_STATE;
  else
    status = empty_core(w, app, until, why, size);
  lvd_os_unlock(&rt->lock);
  return status;
}

lvd_status lvd_core_reserve(lvd_runtime *rt, uint32_t worker) {
  return lvd_core_reserve_timeout(rt, worker, -1, NULL, 0);
}

lvd_status lvd_core_reserve_timeout(lvd_runtime *rt, uint32_t worker, int64_t timeout_ns, char *why,
                                    size_t why_size) {
  LVD_NO_ABANDON;
  if (why && why_size) why[0] = 0;
  if (!rt || worker >= rt->workers) return LVD_E_ARGUMENT;
  uint64_t until = timeout_ns < 0 ? NO_DEADLINE : lvd_os_now_ns() + (uint64_t)timeout_ns;
  return take_core(rt, worker, NULL, until, why, why_size);
}

lvd_status lvd_core_reserve_for(lvd_app *app, uint32_t worker) {
  LVD_NO_ABANDON;
  if (!app || worker >= app->rt->workers) return LVD_E_ARGUMENT;
  return take_core(app->rt, worker, app, NO_DEADLINE, NULL, 0);
}

lvd_status lvd_core_transfer(lvd_app *app, uint32_t worker) {
  LVD_NO_ABANDON;
  if (!app || worker >= app->rt->workers) return LVD_E_ARGUMENT;
  lvd_worker *w = &app->rt->worker[worker];
  lvd_os_lock(&app->rt->lock);
  bool free =
      !lvd_load_relaxed_u32(&w->available) && !lvd_load_relaxed_ptr(&w->alone) && !w->clearing;
  if (free) lvd_store_relaxed_ptr(&w->alone, app);
  lvd_os_unlock(&app->rt->lock);
  return free ? LVD_OK : LVD_E_STATE;
}

lvd_status lvd_core_release(lvd_runtime *rt, uint32_t worker) {
  LVD_NO_ABANDON;
  if (!rt || worker >= rt->workers) return LVD_E_ARGUMENT;
  lvd_status status = LVD_OK;
  lvd_os_lock(&rt->lock);
  lvd_worker *w = &rt->worker[worker];
  if (lvd_load_relaxed_u32(&w->available)) {
    status = LVD_E_STATE;
  } else {
    lvd_core_put_back(w);
  }
  lvd_os_unlock(&rt->lock);
  return status;
}

/* Ticks of the running activation without stolen time; `*gone_by` is with it. Returns 0 if the
 * activation ends meanwhile. */
static uint64_t runs(const lvd_worker *w, uint64_t *elapsed) {
  uint64_t before = lvd_load_relaxed_u64(&w->activations);
  bool ran = lvd_load_relaxed_u32(&w->running_queue) != 0;
  uint64_t since = lvd_load_relaxed_u64(&w->started_at), now = lvd_os_ticks();
  uint64_t began = since - lvd_steal_time_before(w, before);
  if (ran) since += lvd_steal_time_pending(w, now);
  bool runs = ran && lvd_load_relaxed_u32(&w->running_queue) &&
              lvd_load_relaxed_u64(&w->activations) == before;
  *elapsed = runs && now > began ? now - began : 0;
  return runs && now > since ? now - since : 0;
}

/* Includes the running activation. */
static uint64_t busy(const lvd_worker *w, uint64_t runs) {
  return lvd_load_relaxed_u64(&w->busy_ticks) + runs;
}

lvd_status lvd_worker_counters_read(lvd_runtime *rt, uint32_t worker, lvd_worker_counters *out) {
  if (!rt || !out || worker >= rt->workers) return LVD_E_ARGUMENT;
  lvd_worker *w = &rt->worker[worker];
  memset(out, 0, sizeof *out);
  out->cpu = w->cpu;
  out->available = lvd_load_relaxed_u32(&w->available) != 0;
  uint64_t elapsed, ticks = runs(w, &elapsed);
  out->runs_ns = lvd_os_ticks_to_ns(elapsed);
  out->busy_ns = lvd_os_ticks_to_ns(lvd_counter_monotonic(&w->busy_told, busy(w, ticks)));
  out->preempted_ns = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&w->steal_ticks));
  out->sleep_ns =
      lvd_os_ticks_to_ns(lvd_counter_monotonic(&w->slept_told, lvd_worker_slept_ticks(w)));
  out->activations = lvd_load_relaxed_u64(&w->activations);
  out->sleeps = lvd_load_relaxed_u64(&w->sleeps);
  out->wakes_sent = lvd_load_relaxed_u64(&w->wakes_sent);
  return LVD_OK;
}
