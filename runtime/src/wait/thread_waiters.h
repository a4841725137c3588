/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Waiting: the threads of the program that are in a wait of ours.
 *
 * Such a thread does nothing else, and may go on only through what it waits for, as a fiber may. It
 * is on a list meanwhile, and leaves it before it goes on: so whoever has the list's lock keeps all
 * who are on it where they are, and what they wait for on their stacks as it is. Of a thread that
 * is not on it nothing is known: it may do anything.
 *
 * Those with a time limit are on it, too, but go on by themselves: nobody judges them. They and all
 * others are let out of an application's streams before it gives them up.
 *
 * A list of a lock for the slow path alone: a thread enters when it has looked around in vain and is
 * about to sleep. When it sleeps it lets its application be judged, if that is at rest: perhaps it
 * was the last one that could have done something.
 *
 * Pairs of orders
 *   sleep: entered (lock), armed, [heavy], load suspect <> keeper: suspect = 0, [fence], list, armed
 *   outside: inside - 1 (release)                       -> let_out: inside (acquire)
 *   tell: told, [fence], exchange asleep                <> sleep: asleep = 1, [heavy], load told */
#ifndef LVD_SRC_WAITING_H
#define LVD_SRC_WAITING_H

#include "../sched/sched.h"

typedef struct lvd_thread_waiter {
  lvd_app *app;         /* that all it waits for is of; null: it is not on the list */
  const void *who;      /* lvd_user, of the thread */
  uint32_t thread;      /* its name for the system */
  const lvd_want *want; /* none: it waits for the end of the application */
  uint32_t wants;
  lvd_sleeper *sleeper; /* it sleeps there */
  uint64_t serial;      /* no other wait has had it */
  bool timed;           /* it goes on by itself after a while */
  bool is_deadlocked;   /* it was judged so, and is to be told */
  lvd_a32 told;         /* LVD_E_TIME: nothing yet; else what its wait returns */
  struct lvd_thread_waiter *next, *previous;
} lvd_thread_waiter;

/* The calling thread is about to sleep for these, if need be for ever; or with a time limit. */
void lvd_thread_waiter_enter(lvd_thread_waiter *w, const lvd_want *want, uint32_t wants,
                             lvd_sleeper *sleeper, bool timed);
/* ... for the end of the application. */
void lvd_thread_waiter_enter_for_end(lvd_thread_waiter *w, lvd_app *app);
/* All is armed, and there was nothing. */
void lvd_thread_waiter_sleeps(const lvd_thread_waiter *w);
void lvd_thread_waiter_leave(lvd_thread_waiter *w);
/* LVD_E_TIME: it was told nothing. */
lvd_status lvd_thread_waiter_status(const lvd_thread_waiter *w);

/* The calling thread, or a fiber, for which it does nothing, uses what its wait leads to, on its way
 * in and out of it. */
void lvd_thread_waiters_inside(lvd_app *app);
void lvd_thread_waiters_outside(lvd_app *app);
/* `app` has ended, and is about to give up its streams: all waits of threads for something of it return,
 * with LVD_E_STOPPED if for nothing else, and no such thread is inside any more. */
void lvd_thread_waiters_release(lvd_app *app);

/* Who judges: with the lock the list keeps still. */
void lvd_thread_waiters_lock(void);
void lvd_thread_waiters_unlock(void);
lvd_thread_waiter *lvd_thread_waiters_first(void); /* with the lock */
bool lvd_thread_waiters_any(void);                 /* without; a guess */
/* Those of `app` that were judged to wait in vain return with `status`, unless it ends otherwise. */
void lvd_thread_waiters_tell(const lvd_app *app, lvd_status status);

#endif
