/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The reaper: a thread that takes an ending application to its end. It makes sure that no worker
 * knows the application any more, closes the external ends of its channels, lets the natives
 * finish, and sets the phase to ENDED. It sleeps otherwise.
 *
 * It waits only for workers that have run something of the application: a long firing delays only
 * the applications that share its core. A reaper that is delayed so starts another one, so that
 * other applications can end meanwhile. While there are deadlock suspects (quiescence.c), it checks
 * them again once they have been quiescent for SUSPECT_NS.
 *
 * Pairs of orders (all else is ordered by locks, inboxes and commands)
 *   end:    exchange_release phase (app_control.c) -> find_ending: load_acquire phase
 *                                                     the outcome
 *   ring:   add_release reaper_work -> main: load_acquire reaper_work
 *                                                     the phase, before it sleeps
 *   finish: store_release phase ENDED -> wait, get_state (app_control.c): load_acquire
 *                                                     all that was done */
#include <stdlib.h>

#include "../blocking/blocking.h"
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "app.h"

/* ---- ending one application ------------------------------------------------------------------ */

static void forget(lvd_worker *w, lvd_command *c) {
  lvd_app *app = c->argument;
  lvd_inbox_drain(w);
  lvd_queue_remove_app(w, app);
  for (uint32_t i = 0; i < app->net->actors; i++)
    if (lvd_load_relaxed_u32(&app->entity[i].worker) == w->index)
      lvd_pending_park_remove(w, &app->entity[i]);
  lvd_app_worker_forget(w, app);
}

/* Only a worker may remove the application from its own data. */
static void forget_everywhere(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  for (uint32_t i = 0; i < app->net->actors; i++)
    lvd_store_relaxed_u32(&app->share[lvd_load_relaxed_u32(&app->entity[i].worker)].known, 1);
  for (uint32_t i = 0; i < lvd_worker_total(rt); i++) {
    lvd_app_worker_state *s = &app->share[i];
    if (!lvd_load_relaxed_u32(&s->known)) continue;
    s->forget.run = forget;
    s->forget.soon = true;
    s->forget.argument = app;
    lvd_worker_command(&rt->worker[i], &s->forget);
  }
  for (uint32_t i = 0; i < lvd_worker_total(rt); i++) {
    lvd_app_worker_state *s = &app->share[i];
    while (lvd_load_relaxed_u32(&s->known) && !lvd_command_done(&s->forget, LVD_REAPER_PATIENCE_NS))
      lvd_reaper_spawn_backup(rt);
  }
}

/* The application ends: clears it as the data successor of others. */
static void clear_successor(lvd_app *successor) {
  lvd_runtime *rt = successor->rt;
  if (!lvd_load_relaxed_u32(&successor->inherits)) return;
  lvd_os_lock(&rt->lock);
  for (lvd_app *old = rt->apps; old; old = old->next) {
    lvd_os_lock(&old->blocks_lock);
    if (lvd_load_relaxed_ptr(&old->data_successor) == successor)
      lvd_store_relaxed_ptr(&old->data_successor, NULL);
    lvd_os_unlock(&old->blocks_lock);
  }
  lvd_os_unlock(&rt->lock);
}

/* Returns true if the successor has the block now. Under the lock of `app`, which keeps the
 * successor alive. */
static bool give_to_successor(lvd_app *app, lvd_app_block *b) {
  lvd_app *successor = lvd_load_relaxed_ptr(&app->data_successor);
  if (!successor || !b->name) return false;
  b->key = NULL;
  lvd_os_lock(&successor->blocks_lock);
  b->next = successor->blocks;
  successor->blocks = b;
  lvd_os_unlock(&successor->blocks_lock);
  return true;
}

/* Finishes the data of its natives, or passes it to the successor. */
static void end_blocks(lvd_app *app, lvd_status outcome) {
  clear_successor(app);
  bool alone = true;
  lvd_os_lock(&app->blocks_lock);
  lvd_app *successor = lvd_load_relaxed_ptr(&app->data_successor);
  /* all versions together share one output rate */
  if (successor)
    lvd_store_relaxed_u64(&successor->prints_until, lvd_load_relaxed_u64(&app->prints_until));
  while (app->blocks) {
    lvd_app_block *b = app->blocks;
    app->blocks = b->next;
    if (outcome == LVD_OK && give_to_successor(app, b)) continue;
    lvd_os_unlock(&app->blocks_lock);
    if (b->end) {
      if (alone)
        lvd_reaper_spawn_backup(app->rt); /* it may wait for the reader of what is written */
      alone = false;
      b->end(b->data, outcome);
    }
    free(b->data);
    free(b);
    lvd_os_lock(&app->blocks_lock);
  }
  lvd_os_unlock(&app->blocks_lock);
}

static void finish(lvd_app *app) {
  /* Each running activation ends. From then on nothing of the application begins, so nothing of it
   * wakes anything, except fibers: these return below. */
  lvd_app_wait_inactive(app);
  lvd_app_requeue_held(app);
  lvd_calls_recall(app);
  lvd_stacks_abandon_forks(app);
  do { /* a thief may have been under way, and have made a fiber of a stolen task */
    lvd_fibers_cancel_and_wait(app);
    lvd_app_wait_inactive(app);
  } while (lvd_load_acquire_u32(&app->fibers));
  lvd_status outcome = lvd_app_exit_status(app);
  /* A thread that has made an entity READY under the gate has posted it; none can from now on. */
  lvd_os_lock(&app->gate);
  for (uint32_t i = 0; i < app->net->actors; i++)
    lvd_store_relaxed_u32(&app->entity[i].state, LVD_FINISHED);
  lvd_os_unlock(&app->gate);
  /* A thread that removes a hold has posted the command; none can from now on. */
  lvd_os_lock(&app->control);
  lvd_os_unlock(&app->control);
  forget_everywhere(app);
  lvd_stacks_free(app);
  lvd_streams_end(app, outcome);

  for (uint32_t i = 0; i < app->external_ends; i++) {
    lvd_external_end *o = &app->external_end[i];
    const lvd_channel_desc *d = &app->net->channel[o->channel];
    if (!o->producer && d->from.actor != LVD_EXTERNAL)
      lvd_producer_close(&app->entity[d->from.actor].actor.out[d->from.port], outcome);
    for (uint32_t k = 0; o->producer && k < d->consumers; k++)
      if (d->to[k].actor != LVD_EXTERNAL)
        lvd_consumer_close(&app->entity[d->to[k].actor].actor.in[d->to[k].port]);
  }
  bool faulted = lvd_app_faulted(app);
  end_blocks(app, outcome);
  /* a failure of its natives to finish (lvd_app_fail) turns success into a fault */
  if (outcome == LVD_OK && !faulted && lvd_app_faulted(app))
    lvd_store_relaxed_u32(&app->outcome, 1 + (uint32_t)LVD_E_FAULT);
  /* The last access: a waiting thread may free the application now. */
  lvd_store_release_u32(&app->phase, LVD_PHASE_ENDED);
  lvd_os_wake(&app->phase);
}

static lvd_app *find_ending(lvd_runtime *rt) {
  lvd_os_lock(&rt->lock);
  lvd_app *app = rt->apps;
  while (app && (app->finishing || lvd_load_acquire_u32(&app->phase) != LVD_PHASE_ENDING))
    app = app->next;
  if (app) app->finishing = true;
  lvd_os_unlock(&rt->lock);
  return app;
}

/* ---- the loop -------------------------------------------------------------------------------- */

/* Reapers that may stay idle without limit, and the idle time after which further ones leave. */
enum { IDLE_REAPERS_MAX = 2, REAPER_IDLE_NS = 2000000000 };

static void sleep_until_work(lvd_runtime *rt, uint32_t work, int64_t timeout_ns) {
  bool spare = lvd_add_relaxed_u32(&rt->reapers_idle, 1) >= IDLE_REAPERS_MAX;
  if (spare && timeout_ns < 0) timeout_ns = REAPER_IDLE_NS;
  lvd_os_wait(&rt->reaper_work, work, timeout_ns);
  lvd_add_relaxed_u32(&rt->reapers_idle, UINT32_MAX);
}

/* Reapers that look at the same time may all stay, but not leave together: each counts those that
 * sleep already. */
static bool is_spare(lvd_runtime *rt, uint64_t last_work) {
  return lvd_load_relaxed_u32(&rt->reapers_idle) >= IDLE_REAPERS_MAX &&
         lvd_os_now_ns() - last_work >= REAPER_IDLE_NS;
}

void lvd_reaper_main(void *argument) {
  enum { SUSPECT_NS = 20000000 };
  lvd_runtime *rt = argument;
  uint64_t suspected = 0; /* when the first of the present suspects was found, ns; 0: none */
  uint64_t last_work = lvd_os_now_ns();
  for (;;) {
    uint32_t work = lvd_load_acquire_u32(&rt->reaper_work);
    bool due = suspected && lvd_os_now_ns() - suspected >= SUSPECT_NS;
    bool suspects = lvd_deferred_checks_run(rt, due);
    if (due || !suspects) suspected = 0;
    if (suspects && !suspected) suspected = lvd_os_now_ns();
    lvd_app *ending = find_ending(rt);
    if (ending) {
      finish(ending);
      last_work = lvd_os_now_ns();
    } else if (lvd_load_relaxed_u32(&rt->reaper_ending) || is_spare(rt, last_work)) {
      return;
    } else {
      sleep_until_work(rt, work, suspects ? SUSPECT_NS : -1);
    }
  }
}

/* ---- threads --------------------------------------------------------------------------------- */

struct lvd_reaper {
  lvd_runtime *rt;
  lvd_os_thread *thread;
  struct lvd_reaper *next;
  bool left; /* It has left: it only joins those that left before it. Under pool_lock. */
};

static void join(struct lvd_reaper *reaper) {
  for (struct lvd_reaper *next; reaper; reaper = next) {
    next = reaper->next;
    lvd_os_thread_join(reaper->thread);
    free(reaper);
  }
}

/* A thread cannot join itself: the next one that leaves joins it, or the end of the runtime. */
static void reaper_thread(void *argument) {
  struct lvd_reaper *self = argument, *gone = NULL;
  lvd_runtime *rt = self->rt;
  lvd_take_priority(rt, LVD_PRIO_APP); /* it runs what natives do at the end */
  lvd_reaper_main(rt);
  lvd_os_lock(&rt->pool_lock);
  for (struct lvd_reaper **at = &rt->reapers, *k; (k = *at);) {
    if (!k->left) {
      at = &k->next;
      continue;
    }
    *at = k->next;
    k->next = gone;
    gone = k;
  }
  self->left = true;
  lvd_os_unlock(&rt->pool_lock);
  join(gone);
}

lvd_status lvd_reaper_start(lvd_runtime *rt) {
  struct lvd_reaper *reaper = calloc(1, sizeof *reaper);
  if (!reaper) return LVD_E_MEMORY;
  reaper->rt = rt;
  lvd_os_lock(&rt->pool_lock);
  lvd_status status =
      lvd_os_thread_start(&reaper->thread, -1, "levada/reaper", reaper_thread, reaper);
  if (status == LVD_OK) {
    reaper->next = rt->reapers;
    rt->reapers = reaper;
  } else {
    free(reaper);
  }
  lvd_os_unlock(&rt->pool_lock);
  return status;
}

void lvd_reaper_spawn_backup(lvd_runtime *rt) {
  /* If no thread can be started, the other applications wait. */
  if (!lvd_load_relaxed_u32(&rt->reapers_idle)) lvd_reaper_start(rt);
}

void lvd_reapers_end(lvd_runtime *rt) {
  lvd_store_relaxed_u32(&rt->reaper_ending, 1);
  lvd_reaper_wake(rt);
  lvd_os_lock(&rt->pool_lock);
  struct lvd_reaper *all = rt->reapers;
  rt->reapers = NULL;
  lvd_os_unlock(&rt->pool_lock);
  join(all);
}
