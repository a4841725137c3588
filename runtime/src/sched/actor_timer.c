/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Alarms: who waits for a time on a worker. The worker looks between two activations, and sleeps no
 * longer than until the next one: nobody else has to be woken first. An activation in which an alarm may
 * become due is asked to give way then, by a signal: but only what computes and calls nothing, since a
 * signal would cut short what sleeps in the system.
 *
 * A fiber has a timer among its worker's own, which nobody else touches: it may be woken by many, and
 * wakes as from any wait. An actor (lvd_wait_until) has left its worker in the middle of a firing, as for a call that
 * blocks (blocking_pool.c), and is given back by one who may: the worker, whoever ends its application, or who takes the
 * core. So its alarm is under a lock of the worker's, and whoever takes it off gives the actor back, once.
 * What a worker keeps beside, when the next one is due, may be sooner than that, never later: only itself adds
 * one. */
#include <stddef.h>

#include "fiber.h"
#include "no_abandon.h"

struct lvd_actor_timer {
  lvd_timer timer; /* first: a timer is an alarm */
  lvd_entity *who;
};

/* ---- of actors -------------------------------------------------------------------------------- */

/* With the lock. */
static void note_next(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->next_alarm, w->alarms ? w->alarms->deadline : UINT64_MAX);
}

static void set(lvd_worker *w, lvd_actor_timer *a) {
  lvd_os_lock(&w->alarms_lock);
  lvd_timer_add(&w->alarms, &a->timer);
  note_next(w);
  lvd_os_unlock(&w->alarms_lock);
}

/* The next one that was due before `now`; null: none. */
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
  while ((a = take_due(w, now))) lvd_call_complete(a->who);
}

void lvd_actor_timer_follow(lvd_worker *w, lvd_entity *e) {
  if (!e->alarm) return;
  lvd_os_lock(&w->alarms_lock);
  bool taken = e->alarm->timer.set;
  lvd_timer_remove(&w->alarms, &e->alarm->timer);
  note_next(w);
  lvd_os_unlock(&w->alarms_lock);
  if (taken) lvd_call_complete(e); /* it sees that it is too early, and waits on where it is then */
}

void lvd_actor_timers_recall(lvd_app *app) {
  for (uint32_t i = 0; i < lvd_worker_total(app->rt); i++) {
    lvd_worker *w = &app->rt->worker[i];
    lvd_timer *kept = NULL, *taken = NULL, *t;
    lvd_os_lock(&w->alarms_lock);
    while ((t = w->alarms)) {
      bool of_it = ((lvd_actor_timer *)t)->who->app == app;
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
      next = taken->next; /* it lies on the stack that goes on */
      lvd_call_complete(((lvd_actor_timer *)taken)->who);
    }
  }
}

/* ---- of both ---------------------------------------------------------------------------------- */

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
    lvd_entity_wake_locked(
        &lvd_fiber_of_timer(t)->entity); /* it is counted as alive: nobody judges it */
  }
}

/* ---- amid an activation ----------------------------------------------------------------------- */

/* Compiled CAL that calls no native, and prints nothing. */
static bool only_computes(const lvd_entity *e) {
  enum { CALLS = LVD_CLASS_ABANDONABLE | LVD_CLASS_MAY_WAIT };
  return !e->is_fiber && (e->actor.cls->flags & CALLS) == LVD_CLASS_ABANDONABLE;
}

/* Later than a tick of the clock nothing is asked for: the next activation does. */
static bool is_amid(const lvd_entity *e, uint64_t ticks) {
  uint64_t longest = e->lately_longest ? e->lately_longest : UINT64_MAX;
  return ticks < longest && lvd_os_ticks_to_ns(ticks) < 2 * LVD_TICK_MS * 1000000;
}

void lvd_actor_timers_request_yield(lvd_worker *w, const lvd_entity *e, uint64_t now) {
  uint64_t asks = lvd_load_relaxed_u64(&w->asks_at);
  if (!only_computes(e)) {
    if (!asks) return;
    lvd_os_alarm(0); /* one that was due comes before this returns */
    lvd_store_relaxed_u64(&w->asks_at, 0);
    return;
  }
  uint64_t next = lvd_load_relaxed_u64(&w->next_alarm);
  if (w->timers && w->timers->deadline < next) next = w->timers->deadline;
  if (next <= now || next == asks || !is_amid(e, next - now)) return;
  uint64_t ns = lvd_os_ticks_to_ns(next - now);
  lvd_store_relaxed_u64(&w->asks_at, next);
  /* Ticks are not known better: rather late than early. */
  lvd_os_alarm((int64_t)(ns + (ns >> 12)) + 1);
  if (!lvd_load_relaxed_u64(&w->asks_at))
    lvd_os_alarm(0); /* the one before has just come: that will do */
}

/* ---- who waits -------------------------------------------------------------------------------- */

lvd_status lvd_wait_until(int64_t ns) {
  LVD_NO_ABANDON;
  lvd_worker *w = lvd_this_worker();
  lvd_entity *e = w ? w->current : NULL;
  lvd_actor_timer alarm = {.who = e};
  for (int64_t left; (left = ns - (int64_t)lvd_os_now_ns()) > 0;) {
    if (!e || e->is_fiber || !e->stack) { /* a thread sleeps */
      lvd_status status = lvd_fiber_sleep(left);
      if (status != LVD_OK) return status;
      continue;
    }
    w = lvd_this_worker(); /* it may be another one now */
    alarm.timer.deadline = lvd_os_ticks() + lvd_os_ns_to_ticks((uint64_t)left);
    e->alarm = &alarm;
    set(w, &alarm); /* whoever ends the application comes when this activation is over */
    lvd_actor_suspend_for_call(w, e);
    e->alarm = NULL;
  }
  return LVD_OK;
}
