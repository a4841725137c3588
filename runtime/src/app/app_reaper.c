/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The keeper, a thread that sleeps otherwise, takes an application that ends to its end: it makes sure that no worker
 * knows it any more, ends the channels that the program holds, lets the natives finish their files, and says ENDED.
 *
 * For that it waits for workers that have had something of it in hand, and for no others: an application that
 * keeps its core busy for long holds up those alone that share the core. A keeper that is held up so starts another,
 * so that other applications can end meanwhile. While there are suspects (quiescence.c), it looks again when they have been
 * that for a while.
 *
 * Pairs of orders (all else is ordered by locks, inboxes and commands)
 *   end:    exchange_release phase (app_control.c) -> find_ending: load_acquire phase       the outcome
 *   ring:   add_release reaper_work            -> main: load_acquire reaper_work        the phase, before it sleeps
 *   finish: store_release phase ENDED          -> wait, get_state (app_control.c): load_acquire  all that was done */
#include <stdlib.h>

#include "../blocking/blocking.h"
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "app.h"

/* ---- ending one --------------------------------------------------------------------------- */

static void forget(lvd_worker *w, lvd_command *c) {
  lvd_app *app = c->argument;
  lvd_inbox_drain(w);
  lvd_queue_remove_app(w, app);
  for (uint32_t i = 0; i < app->net->actors; i++)
    if (lvd_load_relaxed_u32(&app->entity[i].worker) == w->index)
      lvd_pending_park_remove(w, &app->entity[i]);
  lvd_app_worker_forget(w, app);
}

/* Of what is theirs, only workers may forget. */
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

/* It ends, and nobody leaves anything to it any more. */
static void disinherit(lvd_app *heir) {
  lvd_runtime *rt = heir->rt;
  if (!lvd_load_relaxed_u32(&heir->inherits)) return;
  lvd_os_lock(&rt->lock);
  for (lvd_app *old = rt->apps; old; old = old->next) {
    lvd_os_lock(&old->blocks_lock);
    if (lvd_load_relaxed_ptr(&old->heir) == heir) lvd_store_relaxed_ptr(&old->heir, NULL);
    lvd_os_unlock(&old->blocks_lock);
  }
  lvd_os_unlock(&rt->lock);
}

/* True: its heir has it. With the lock of `app`, under which that is still there. */
static bool leave_to_heir(lvd_app *app, lvd_app_block *b) {
  lvd_app *heir = lvd_load_relaxed_ptr(&app->heir);
  if (!heir || !b->name) return false;
  b->key = NULL;
  lvd_os_lock(&heir->blocks_lock);
  b->next = heir->blocks;
  heir->blocks = b;
  lvd_os_unlock(&heir->blocks_lock);
  return true;
}

/* What its natives keep is finished, or its heir's. */
static void end_blocks(lvd_app *app, lvd_status outcome) {
  disinherit(app);
  bool alone = true;
  lvd_os_lock(&app->blocks_lock);
  lvd_app *heir = lvd_load_relaxed_ptr(&app->heir);
  /* All versions together print at one rate. */
  if (heir) lvd_store_relaxed_u64(&heir->prints_until, lvd_load_relaxed_u64(&app->prints_until));
  while (app->blocks) {
    lvd_app_block *b = app->blocks;
    app->blocks = b->next;
    if (outcome == LVD_OK && leave_to_heir(app, b)) continue;
    lvd_os_unlock(&app->blocks_lock);
    if (b->end) {
      if (alone)
        lvd_reaper_spawn_backup(app->rt); /* it may wait for whoever reads what is written */
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
  /* Whatever of it runs comes to the end of its activation; from then on nothing of it begins, and
   * so nothing of it wakes anything. But for fibers: these return. */
  lvd_app_wait_inactive(app);
  lvd_app_requeue_held(app);
  lvd_calls_recall(app);
  lvd_stacks_abandon_forks(app);
  do { /* a thief may have been under way, and has made a fiber of what it has taken */
    lvd_fibers_end(app);
    lvd_app_wait_inactive(app);
  } while (lvd_load_acquire_u32(&app->fibers));
  lvd_status outcome = lvd_app_exit_status(app);
  /* Whoever has made an entity READY from outside has posted it, and nobody does from now on. */
  lvd_os_lock(&app->gate);
  for (uint32_t i = 0; i < app->net->actors; i++)
    lvd_store_relaxed_u32(&app->entity[i].state, LVD_FINISHED);
  lvd_os_unlock(&app->gate);
  /* Whoever lets go of it has posted that, and nobody does from now on. */
  lvd_os_lock(&app->control);
  lvd_os_unlock(&app->control);
  forget_everywhere(app);
  lvd_stacks_free(app);
  lvd_streams_end(app, outcome);

  for (uint32_t i = 0; i < app->outsides; i++) {
    lvd_external_end *o = &app->outside[i];
    const lvd_channel_desc *d = &app->net->channel[o->channel];
    if (!o->producer && d->from.actor != LVD_OUTSIDE)
      lvd_end(&app->entity[d->from.actor].actor.out[d->from.port], outcome);
    for (uint32_t k = 0; o->producer && k < d->consumers; k++)
      if (d->to[k].actor != LVD_OUTSIDE)
        lvd_leave(&app->entity[d->to[k].actor].actor.in[d->to[k].port]);
  }
  bool faulted = lvd_app_faulted(app);
  end_blocks(app, outcome);
  /* What its natives could not finish (lvd_app_fail) has made a failure of a good end. */
  if (outcome == LVD_OK && !faulted && lvd_app_faulted(app))
    lvd_store_relaxed_u32(&app->outcome, 1 + (uint32_t)LVD_E_FAULT);
  /* The last touch: whoever waits may free the application now. */
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

/* ---- the loop ----------------------------------------------------------------------------- */

/* So many keepers sleep until there is work, however long that takes; others leave after that time. */
enum { KEEPERS_KEPT = 2, KEEPER_LEAVES_NS = 2000000000 };

static void sleep_until_work(lvd_runtime *rt, uint32_t work, int64_t timeout_ns) {
  bool spare = lvd_add_relaxed_u32(&rt->reapers_idle, 1) >= KEEPERS_KEPT;
  if (spare && timeout_ns < 0) timeout_ns = KEEPER_LEAVES_NS;
  lvd_os_wait(&rt->reaper_work, work, timeout_ns);
  lvd_add_relaxed_u32(&rt->reapers_idle, UINT32_MAX);
}

/* Those who are asleep when the last of several looks, who look at the same time, look after him, and stay. */
static bool is_spare(lvd_runtime *rt, uint64_t worked) {
  return lvd_load_relaxed_u32(&rt->reapers_idle) >= KEEPERS_KEPT &&
         lvd_os_now_ns() - worked >= KEEPER_LEAVES_NS;
}

void lvd_reaper_main(void *argument) {
  enum { LASTS_NS = 20000000 };
  lvd_runtime *rt = argument;
  uint64_t suspected = 0; /* when the first of those now suspect was seen */
  uint64_t worked = lvd_os_now_ns();
  for (;;) {
    uint32_t work = lvd_load_acquire_u32(&rt->reaper_work);
    bool lasts = suspected && lvd_os_now_ns() - suspected >= LASTS_NS;
    bool suspects = lvd_deferred_checks_run(rt, lasts);
    if (lasts || !suspects) suspected = 0;
    if (suspects && !suspected) suspected = lvd_os_now_ns();
    lvd_app *ending = find_ending(rt);
    if (ending) {
      finish(ending);
      worked = lvd_os_now_ns();
    } else if (lvd_load_relaxed_u32(&rt->reaper_ending) || is_spare(rt, worked)) {
      return;
    } else {
      sleep_until_work(rt, work, suspects ? LASTS_NS : -1);
    }
  }
}

/* ---- threads ------------------------------------------------------------------------------ */

struct lvd_reaper {
  lvd_runtime *rt;
  lvd_os_thread *thread;
  struct lvd_reaper *next;
  bool left; /* it touches nothing any more but those who have left before it; under pool_lock */
};

static void join(struct lvd_reaper *keeper) {
  for (struct lvd_reaper *next; keeper; keeper = next) {
    next = keeper->next;
    lvd_os_thread_join(keeper->thread);
    free(keeper);
  }
}

/* No thread can join itself: the next one that leaves does, or the end of the runtime. */
static void keep(void *argument) {
  struct lvd_reaper *self = argument, *gone = NULL;
  lvd_runtime *rt = self->rt;
  lvd_take_priority(rt, LVD_PRIO_APP); /* natives end what they have on it */
  lvd_reaper_main(rt);
  lvd_os_lock(&rt->pool_lock);
  for (struct lvd_reaper **at = &rt->keepers, *k; (k = *at);) {
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
  struct lvd_reaper *keeper = calloc(1, sizeof *keeper);
  if (!keeper) return LVD_E_MEMORY;
  keeper->rt = rt;
  lvd_os_lock(&rt->pool_lock);
  lvd_status status = lvd_os_thread_start(&keeper->thread, -1, "levada/keeper", keep, keeper);
  if (status == LVD_OK) {
    keeper->next = rt->keepers;
    rt->keepers = keeper;
  } else {
    free(keeper);
  }
  lvd_os_unlock(&rt->pool_lock);
  return status;
}

void lvd_reaper_spawn_backup(lvd_runtime *rt) {
  /* Without memory or threads for one, the others wait. */
  if (!lvd_load_relaxed_u32(&rt->reapers_idle)) lvd_reaper_start(rt);
}

void lvd_reapers_end(lvd_runtime *rt) {
  lvd_store_relaxed_u32(&rt->reaper_ending, 1);
  lvd_reaper_wake(rt);
  lvd_os_lock(&rt->pool_lock);
  struct lvd_reaper *all = rt->keepers;
  rt->keepers = NULL;
  lvd_os_unlock(&rt->pool_lock);
  join(all);
}
