/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Thread waiters: the list of the program's threads that are blocked in a wait of the library,
 * for deadlock detection.
 *
 * Such a thread executes nothing else, and like a fiber it can only continue by what it waits
 * for. It is on the list while it sleeps, and leaves the list before it continues: so the
 * holder of the list's lock keeps all listed threads in place, and the wait items on their
 * stacks unchanged. A thread that is not listed may be doing anything.
 *
 * Threads with a timeout are listed, too, but continue by themselves, so they are never
 * deadlocked. All listed threads are released from an application's streams before it frees
 * them.
 *
 * Only the slow path takes the lock: a thread enters the list when polling has failed and it
 * is about to sleep. When it sleeps while its application is quiescent, it requests a deadlock
 * check: it may have been the last thread that could do something.
 *
 * Pairs of orders
 *   sleep: entered (lock), armed, [heavy], load suspect <> reaper: suspect = 0, [fence], list,
 *                                                          armed
 *   outside: inside - 1 (release)                       -> let_out: inside (acquire)
 *   force: forced_status, [fence], exchange asleep
 *                                   <> sleep: asleep = 1, [heavy], load forced_status */
#ifndef LVD_THREAD_WAITERS_H
#define LVD_THREAD_WAITERS_H

#include "../sched/sched.h"

typedef struct lvd_thread_waiter {
  lvd_app *app;     /* the application of all its wait items; null: it is not on the list */
  const void *user; /* identifies the thread, as in lvd_user */
  uint32_t thread;  /* the kernel's thread id */
  const lvd_wait_item *want; /* null: it waits for the end of the application */
  uint32_t wants;
  lvd_wait_point *wait_point; /* the wait point on which it sleeps */
  uint64_t serial;            /* unique among all waits */
  bool timed;                 /* it has a timeout */
  bool is_deadlocked;         /* it was found deadlocked and is to be told */
  lvd_a32 forced_status; /* LVD_E_TIMEOUT: nothing yet; else the status that its wait returns */
  struct lvd_thread_waiter *next, *previous;
} lvd_thread_waiter;

/* The calling thread is about to sleep for these items; `timed`: with a timeout. */
void lvd_thread_waiter_enter(lvd_thread_waiter *w, const lvd_wait_item *want, uint32_t wants,
                             lvd_wait_point *wait_point, bool timed);
/* The same, for the end of the application. */
void lvd_thread_waiter_enter_for_end(lvd_thread_waiter *w, lvd_app *app);
/* All items are armed, and none is met. */
void lvd_thread_waiter_sleeps(const lvd_thread_waiter *w);
void lvd_thread_waiter_leave(lvd_thread_waiter *w);
/* LVD_E_TIMEOUT: it was told nothing. */
lvd_status lvd_thread_waiter_status(const lvd_thread_waiter *w);

/* The calling thread is about to use a stream of `app` in a wait, and has done so. No effect in a
 * fiber. */
void lvd_thread_waiters_inside(lvd_app *app);
void lvd_thread_waiters_outside(lvd_app *app);
/* `app` has ended and is about to free its streams: all waits of threads for its items return,
 * with LVD_E_STOPPED if for no other reason, and no thread is inside any more. */
void lvd_thread_waiters_release(lvd_app *app);

/* For deadlock detection: with the lock held the list does not change. */
void lvd_thread_waiters_lock(void);
void lvd_thread_waiters_unlock(void);
lvd_thread_waiter *lvd_thread_waiters_first(void); /* with the lock held */
bool lvd_thread_waiters_any(void);                 /* without the lock: may be outdated */
/* The waits of `app` that were found deadlocked return `status`, unless it ends for another
 * reason. */
void lvd_thread_waiters_tell(const lvd_app *app, lvd_status status);

#endif
