/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Starting, pausing, stopping and ending an application while others run.
 *
 * An application ends when nothing of it can fire any more (quiescence.c), when an actor fails, or
 * when it is told to. Whichever thread finds that sets the phase to ENDING; from then on no
 * activation of it begins. The reaper does the rest (app_reaper.c).
 *
 * Pairs of orders (all else is ordered by locks, inboxes and commands)
 *   end:    exchange_release phase -> app_reaper.c, find_ending: load_acquire
 *                                                     the outcome
 *   finish: store_release phase ENDED (app_reaper.c) -> wait, get_state: load_acquire
 *                                                     all that was done
 *   resume: store_release paused (let_go, hold_sources)
 *                                -> may_run (worker.c), may_follow (fiber.c): load_acquire
 *                                                     what was read and written while it was paused
 *   taking: exchange_acq_rel 1 -> take_up: exchange_acq_rel 0
 *                                                     that it is not paused
 *   taking: exchange_acq_rel 0 -> lvd_app_requeue_held: exchange_acq_rel 1
 *                                                     the command is free
 *   still:  worker.c */
#include "../blocking/blocking.h"
#include "../sched/no_abandon.h"
#include "../sched/ready_queue.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"
#include "app.h"

/* ---- activations ----------------------------------------------------------------------------- */

/* Waits until no activation of `app` runs. A worker that runs another application is not waited
 * for: it reads the phase of this one before it runs anything of it. */
static bool wait_inactive_timeout(lvd_app *app, int64_t timeout_ns) {
  lvd_runtime *rt = app->rt;
  uint64_t start = lvd_os_now_ns();
  bool still = true;
  lvd_add_relaxed_u32(&rt->awaited, 1);
  lvd_os_barrier();
  for (uint32_t i = 0; still && i < lvd_worker_total(rt); i++) {
    lvd_worker *w = &rt->worker[i];
    uint32_t turn = lvd_load_acquire_u32(&w->run_seq);
    const lvd_app *running = lvd_load_acquire_ptr(&w->running);
    if (running != app && running != LVD_ANY_APP(w)) continue;
    while (lvd_load_acquire_u32(&w->run_seq) == turn) {
      lvd_worker_interrupt(w);
      if (running == app) lvd_watchdog_expect_pause(w, app);
      if (timeout_ns >= 0 && lvd_os_now_ns() - start >= (uint64_t)timeout_ns) {
        still = false;
        break;
      }
      lvd_os_wait(&w->run_seq, turn, LVD_REAPER_PATIENCE_NS);
      if (lvd_load_relaxed_u32(&w->run_seq) != turn) continue;
      /* A fiber that has been resumed meanwhile is told again that the application ends. */
      if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) lvd_fibers_wake(app);
      lvd_watchdog_expect_exit(app);
      lvd_reaper_spawn_backup(rt);
    }
  }
  lvd_add_relaxed_u32(&rt->awaited, UINT32_MAX);
  return still;
}

void lvd_app_wait_inactive(lvd_app *app) { wait_inactive_timeout(app, -1); }

/* ---- start, pause, resume, move -------------------------------------------------------------- */

/* Sets the phase to RUNNING, paused by `holds`. */
static bool begin(lvd_app *app, uint32_t holds) {
  uint32_t loaded = LVD_PHASE_LOADED;
  /* pausing holds `control` for as long as a firing lasts: return before it if possible */
  if (lvd_load_relaxed_u32(&app->phase) != loaded) return false;
  lvd_os_lock(&app->control);
  /* Moving entities needs this lock, too: it depends on whether they can be running. */
  lvd_os_lock(&app->rt->lock);
  lvd_os_lock(&app->gate);
  bool begins = lvd_load_relaxed_u32(&app->phase) == loaded;
  if (begins) {
    app->holds |= holds;
    lvd_store_relaxed_u32(&app->paused, app->holds);
    /* it may have been told to end meanwhile */
    begins = lvd_cas_relaxed_u32(&app->phase, &loaded, LVD_PHASE_RUNNING);
  }
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&app->rt->lock);
  lvd_os_unlock(&app->control);
  return begins;
}

static lvd_status start(lvd_app *app, uint32_t holds) {
  if (!app) return LVD_E_ARGUMENT;
  if (!begin(app, holds)) return LVD_E_STATE;
  /* Counts as live until each actor has been woken: otherwise it could be found quiescent before
   * that. */
  lvd_add_relaxed_u32(&app->live, 1);
  for (uint32_t i = 0; i < app->net->actors; i++) lvd_entity_wake(&app->entity[i].waiter);
  if (lvd_add_relaxed_u32(&app->live, UINT32_MAX) == 1) lvd_app_check_quiescent(app);
  return LVD_OK;
}

lvd_status lvd_app_start(lvd_app *app) {
  LVD_NO_ABANDON;
  return start(app, 0);
}

lvd_status lvd_app_start_paused(lvd_app *app) {
  LVD_NO_ABANDON;
  return start(app, LVD_PAUSE_ALL);
}

lvd_status lvd_app_reserve_rate(lvd_app *app, bool reserved) {
  if (!app) return LVD_E_ARGUMENT;
  lvd_store_relaxed_u32(&app->rate_reserved, reserved);
  return LVD_OK;
}

lvd_status lvd_app_pause(lvd_app *app) { return lvd_app_pause_timeout(app, -1); }

lvd_status lvd_app_pause_timeout(lvd_app *app, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!app) return LVD_E_ARGUMENT;
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_os_lock(&app->control);
  app->holds |= LVD_PAUSE_ALL;
  lvd_store_relaxed_u32(&app->paused, app->holds);
  bool still = wait_inactive_timeout(app, timeout_ns);
  lvd_os_unlock(&app->control);
  return still ? LVD_OK : LVD_E_TIMEOUT;
}

static void take_up(lvd_worker *w, lvd_command *c) {
  const lvd_app *app = c->argument;
  lvd_exchange_acq_rel_u32(&app->share[w->index].taking, 0); /* the command can be posted again */
  for (lvd_entity **at = &w->held, *e; (e = *at);) {
    if (e->app != app) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    lvd_queue_put(w, e);
  }
}

void lvd_app_requeue_held(lvd_app *app) {
  for (uint32_t i = 0; i < lvd_worker_total(app->rt); i++) {
    lvd_app_worker_state *s = &app->share[i];
    if (!lvd_load_relaxed_u32(&s->known) || lvd_exchange_acq_rel_u32(&s->taking, 1)) continue;
    s->take_up.run = take_up;
    s->take_up.soon = true;
    s->take_up.argument = app;
    lvd_worker_post(&app->rt->worker[i], &s->take_up, 0);
    lvd_worker_request_yield(&app->rt->worker[i]);
  }
}

/* Removes these bits from its holds. */
static lvd_status let_go(lvd_app *app, uint32_t holds) {
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_os_lock(&app->control);
  /* Once nothing holds it, it may end: a command posted after its workers have forgotten it would
   * find it freed. */
  bool lives = lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING;
  if (lives) {
    app->holds &= ~holds;
    lvd_store_release_u32(&app->paused, app->holds);
    lvd_os_barrier(); /* a worker that has held an entity after its look at `paused` is known now */
    lvd_app_requeue_held(app);
  }
  lvd_os_unlock(&app->control);
  return lives ? LVD_OK : LVD_E_STATE;
}

lvd_status lvd_app_resume(lvd_app *app) {
  LVD_NO_ABANDON;
  return app ? let_go(app, LVD_PAUSE_ALL) : LVD_E_ARGUMENT;
}

/* Their workers look at the new holds when they next handle them, as with a new target. */
static void wake_sources(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    lvd_entity *e = &app->entity[i];
    if (e->actor.cls->inputs) continue;
    lvd_entity_wake(&e->waiter);
    lvd_worker_interrupt(&app->rt->worker[lvd_load_relaxed_u32(&e->worker)]);
  }
}

static lvd_status hold_sources(lvd_app *app, uint32_t how) {
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_os_lock(&app->control);
  app->holds |= how;
  /* A reader of this value that missed the one stored by let_go is ordered after that, too. */
  lvd_store_release_u32(&app->paused, app->holds);
  lvd_os_unlock(&app->control);
  wake_sources(app);
  return LVD_OK;
}

lvd_status lvd_app_hold_sources(lvd_app *app, bool hold) {
  LVD_NO_ABANDON;
  if (!app) return LVD_E_ARGUMENT;
  return hold ? hold_sources(app, LVD_PAUSE_RESTING_SOURCES)
              : let_go(app, LVD_PAUSE_RESTING_SOURCES);
}

static lvd_status drain_program(lvd_app *app) {
  uint32_t stays = LVD_STAYS;
  if (!lvd_cas_relaxed_u32(&app->leaving, &stays, LVD_ASKED)) return LVD_OK;
  lvd_inputs_end(app);
  return LVD_OK;
}

lvd_status lvd_app_drain(lvd_app *app) {
  LVD_NO_ABANDON;
  if (!app) return LVD_E_ARGUMENT;
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  if (lvd_app_is_program(app)) return drain_program(app);
  bool any = false;
  for (uint32_t i = 0; i < app->net->actors; i++) any |= app->net->actor[i].cls->inputs == 0;
  if (!any) return LVD_E_NOT_FOUND;
  lvd_status status = hold_sources(app, LVD_PAUSE_SOURCES);
  if (status == LVD_OK) lvd_inputs_end(app);
  return status;
}

lvd_status lvd_app_cancel_drain(lvd_app *app) {
  uint32_t asked = LVD_ASKED;
  if (!app) return LVD_E_ARGUMENT;
  return lvd_cas_relaxed_u32(&app->leaving, &asked, LVD_STAYS) ? LVD_OK : LVD_E_STATE;
}

/* The worker looks at the target when it next handles the entity: the wake-up queues it there, and
 * if it runs, it yields. */
void lvd_app_retarget(lvd_app *app, lvd_entity *e, uint32_t worker) {
  lvd_store_relaxed_u32(&e->target, worker);
  if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) {
    lvd_entity_wake(&e->waiter);
    lvd_worker_interrupt(&app->rt->worker[lvd_load_relaxed_u32(&e->worker)]);
  } else if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_LOADED) {
    lvd_store_relaxed_u32(&e->worker, worker); /* not started: nothing else reads it yet */
  }
}

lvd_status lvd_app_move(lvd_app *app, uint32_t actor, uint32_t worker) {
  LVD_NO_ABANDON;
  if (!app || actor >= app->net->actors || worker >= app->rt->workers) return LVD_E_ARGUMENT;
  lvd_status status = LVD_E_STATE;
  lvd_os_lock(&app->rt->lock); /* the running set must not change meanwhile */
  if (lvd_core_is_for(&app->rt->worker[worker], app)) {
    lvd_app_retarget(app, &app->entity[actor], worker);
    app->entity[actor].sent_from = 0;
    status = LVD_OK;
  }
  lvd_os_unlock(&app->rt->lock);
  return status;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static bool wait_ended_timeout(lvd_app *app, int64_t timeout_ns) {
  lvd_stream_thread_flush();
  uint64_t start = lvd_os_now_ns();
  lvd_thread_waiter self = {.app = NULL};
  uint32_t phase;
  while ((phase = lvd_load_acquire_u32(&app->phase)) != LVD_PHASE_ENDED) {
    int64_t left = -1;
    if (timeout_ns >= 0) {
      left = timeout_ns - (int64_t)(lvd_os_now_ns() - start);
      if (left <= 0) return false;
    } else if (!self.app && phase == LVD_PHASE_RUNNING) {
      lvd_thread_waiter_enter_for_end(&self, app);
      lvd_thread_waiter_sleeps(&self);
    }
    lvd_os_wait(&app->phase, phase, left);
  }
  lvd_thread_waiter_leave(&self);
  return true;
}

lvd_status lvd_app_wait(lvd_app *app, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!app) return LVD_E_ARGUMENT;
  return wait_ended_timeout(app, timeout_ns) ? lvd_app_exit_status(app) : LVD_E_TIMEOUT;
}

lvd_status lvd_app_stop(lvd_app *app) { return lvd_app_stop_timeout(app, -1); }

lvd_status lvd_app_stop_timeout(lvd_app *app, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!app) return LVD_E_ARGUMENT;
  if (app->net->actors) lvd_store_relaxed_u32(&app->stopped, 1);
  lvd_app_end(app, LVD_E_STOPPED);
  return wait_ended_timeout(app, timeout_ns) ? LVD_OK : LVD_E_TIMEOUT;
}

void lvd_app_exit(lvd_app *app) {
  LVD_NO_ABANDON;
  if (app) lvd_app_end(app, LVD_OK);
}

void lvd_app_set_quiescent_ok(lvd_app *app) {
  LVD_NO_ABANDON;
  if (app) lvd_store_relaxed_u32(&app->ends_at_rest, 1);
}

/* ---- external ends --------------------------------------------------------------------------- */

static lvd_external_end *find(lvd_app *app, uint32_t channel, uint32_t index, bool producer) {
  for (uint32_t i = 0; app && i < app->external_ends; i++) {
    lvd_external_end *o = &app->external_end[i];
    if (o->channel == channel && o->index == index && o->producer == producer) return o;
  }
  return NULL;
}

lvd_producer *lvd_app_producer(lvd_app *app, uint32_t channel) {
  lvd_external_end *o = find(app, channel, 0, true);
  return o ? &o->end.p : NULL;
}

lvd_consumer *lvd_app_consumer(lvd_app *app, uint32_t channel, uint32_t index) {
  lvd_external_end *o = find(app, channel, index, false);
  return o ? &o->end.c : NULL;
}
