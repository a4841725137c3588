/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Timers of a worker's actors and fibers. The worker checks them between two activations, and
 * sleeps no longer than until the next one, so no other thread has to be woken first. An
 * activation in which a timer may become due is asked to yield then, by a signal; but only code
 * that computes and makes no calls, since the signal would cut a blocking system call short.
 *
 * A fiber has a timer in its worker's own heap, which no other thread touches: it may be woken
 * for several reasons, and wakes as from any wait. An actor in lvd_wait_until has left its worker
 * in the middle of a firing, as for a blocking call (blocking_pool.c); it is returned by the
 * worker, by the thread that ends its application, or by the one that reserves the core. So the
 * actors' timers are under a lock, and the thread that removes one returns the actor, exactly
 * once. `next_alarm` may be earlier than the next timer, never later, since only the worker
 * itself adds timers. */
#include <stddef.h>

#include "fiber.h"
#include "no_abandon.h"

struct lvd_actor_timer {
  lvd_timer timer; /* first: a timer is an alarm */
  lvd_entity *entity;
};

/* ---- actors ---------------------------------------------------------------------------------- */

/* With the lock held. */
static void note_next(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->next_alarm, w->alarms ? w->alarms->deadline : UINT64_MAX);
}

static void set(lvd_worker *w, lvd_actor_timer *a) {
  lvd_os_lock(&w->alarms_lock);
  lvd_timer_add(&w->alarms, &a->timer);
  note_next(w);
  lvd_os_unlock(&w->alarms_lock);
}

/* Removes and returns the next one that was due before `now`; null: none. */
static lvd_actor_timer *take_due(lvd_worker *w, uint64_t now) {
  lvd_os_lock(&w->alarms_lock);
  lvd_timer *t = w->alarms;
  if (t && t->deadline <= now)
    lvd_timer_remove(&w->alarms, t);
  else
    t = NULL;
  note_next(w);
  lvd_os_unlock(&w->alarms_lock);
  return (lvd_actor_timer *)t;
}

static void expire(lvd_worker *w, uint64_t now) {
  lvd_actor_timer *a;
  while ((a = take_due(w, now))) lvd_call_complete(a->entity);
}

void lvd_actor_timer_follow(lvd_worker *w, lvd_entity *e) {
  if (!e->alarm) return;
  lvd_os_lock(&w->alarms_lock);
  bool taken = e->alarm->timer.set;
  lvd_timer_remove(&w->alarms, &e->alarm->timer);
  note_next(w);
  lvd_os_unlock(&w->alarms_lock);
  if (taken) lvd_call_complete(e); /* it checks the time, and continues to wait on its new worker */
}

void lvd_actor_timers_recall(lvd_app *app) {
  for (uint32_t i = 0; i < lvd_worker_total(app->rt); i++) {
    lvd_worker *w = &app->rt->worker[i];
    lvd_timer *kept = NULL, *taken = NULL, *t;
    lvd_os_lock(&w->alarms_lock);
    while ((t = w->alarms)) {
      bool of_it = ((lvd_actor_timer *)t)->entity->app == app;
      lvd_timer_remove(&w->alarms, t);
      if (of_it) {
        t->next = taken;
        taken = t;
      } else {
        lvd_timer_add(&kept, t);
      }
    }
    w->alarms = kept;
    note_next(w);
    lvd_os_unlock(&w->alarms_lock);
    for (lvd_timer *next; taken; taken = next) {
      next = taken->next; /* it lies on the stack that is resumed */
      lvd_call_complete(((lvd_actor_timer *)taken)->entity);
    }
  }
}

/* ---- of both --------------------------------------------------------------------------------- */

uint64_t lvd_actor_timers_next(const lvd_worker *w) {
  uint64_t next = lvd_load_relaxed_u64(&w->next_alarm);
  if (w->timers && w->timers->deadline < next) next = w->timers->deadline;
  if (next == UINT64_MAX) return 0;
  uint64_t now = lvd_os_ticks();
  return next > now ? next - now : 1;
}

void lvd_actor_timers_expire(lvd_worker *w, uint64_t now) {
  if (lvd_load_relaxed_u64(&w->next_alarm) <= now) expire(w, now);
  while (w->timers && w->timers->deadline <= now) {
    lvd_timer *t = w->timers;
    lvd_timer_remove(&w->timers, t);
    /* It is counted in `live`, so no quiescence check can run. */
    lvd_entity_wake_locked(&lvd_fiber_of_timer(t)->entity);
  }
}

/* ---- within an activation -------------------------------------------------------------------- */

/* Compiled CAL that calls no native and prints nothing. */
static bool only_computes(const lvd_entity *e) {
  enum { CALLS = LVD_CLASS_ABANDONABLE | LVD_CLASS_CAN_BLOCK };
  return !e->is_fiber && (e->actor.cls->flags & CALLS) == LVD_CLASS_ABANDONABLE;
}

/* Only within a tick of the clock; a later timer is handled by a later activation. */
static bool is_due_while_running(const lvd_entity *e, uint64_t ticks) {
  uint64_t longest = e->recent_longest_ticks ? e->recent_longest_ticks : UINT64_MAX;
  return ticks < longest && lvd_os_ticks_to_ns(ticks) < 2 * LVD_TICK_MS * 1000000;
}

void lvd_actor_timers_request_yield(lvd_worker *w, const lvd_entity *e, uint64_t now) {
  uint64_t asks = lvd_load_relaxed_u64(&w->asks_at);
  if (!only_computes(e)) {
    if (!asks) return;
    lvd_os_alarm(0); /* an alarm that is due arrives before this returns */
    lvd_store_relaxed_u64(&w->asks_at, 0);
    return;
  }
  uint64_t next = lvd_load_relaxed_u64(&w->next_alarm);
  if (w->timers && w->timers->deadline < next) next = w->timers->deadline;
  if (next <= now || next == asks || !is_due_while_running(e, next - now)) return;
  uint64_t ns = lvd_os_ticks_to_ns(next - now);
  lvd_store_relaxed_u64(&w->asks_at, next);
  /* The tick rate is not known more precisely: late is better than early. */
  lvd_os_alarm((int64_t)(ns + (ns >> 12)) + 1);
  /* The previous alarm has just arrived, which suffices. */
  if (!lvd_load_relaxed_u64(&w->asks_at)) lvd_os_alarm(0);
}

/* ---- waiting --------------------------------------------------------------------------------- */

lvd_status lvd_wait_until(int64_t ns) {
  LVD_NO_ABANDON;
  lvd_worker *w = lvd_this_worker();
  lvd_entity *e = w ? w->current : NULL;
  lvd_actor_timer alarm = {.entity = e};
  for (int64_t left; (left = ns - (int64_t)lvd_os_now_ns()) > 0;) {
    if (!e || e->is_fiber || !e->stack) { /* a thread sleeps */
      lvd_status status = lvd_fiber_sleep(left);
      if (status != LVD_OK) return status;
      continue;
    }
    w = lvd_this_worker(); /* it may be another worker now */
    alarm.timer.deadline = lvd_os_ticks() + lvd_os_ns_to_ticks((uint64_t)left);
    e->alarm = &alarm;
    set(w, &alarm); /* a thread that ends the application waits for this activation to be over */
    lvd_actor_suspend_for_call(w, e);
    e->alarm = NULL;
  }
  return LVD_OK;
}
