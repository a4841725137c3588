/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Interrupting a fiber: one of a C program that was loaded beside others (program_app.h) computes without ever waiting,
 * and takes turns with what is ready all the same. The worker's clock suspends it by force, as if it had given way.
 *
 * It has to be in code of its own then, and so in no library's, where it might have locks that others need; one
 * that is in a library holds what is behind it up no longer than an actor does (overrun.c). From then on until it
 * waits it stays on its thread, whose variables it may have at hand. In the fast half of a fork or a join that is
 * good, too: its deque stays as it is, what is private there nobody else touches, and no more is made public
 * meanwhile (lvd_forks_set_aside). Of an application that ends it is not suspended, but left (forced_exit.c).
 *
 * One that is paused while it sleeps in the system has no ticks of that clock: the watchdog meets it (watchdog.c), and it
 * is followed to where it is back in its own code. A sleep ends early by that, as by any signal; what goes on after a
 * signal, such as a read, is waited for, so that nothing is told of an error that there is not.
 *
 * That clock comes every few milliseconds, and what goes from core to core would wait as long at each. So whoever wakes
 * somebody who goes before what runs, knocks: where a fiber was met computing, by the clock or since it was suspended so
 * the last time, its worker has the signal at once. Whether it computes still is advice: a knock changes nothing that
 * the next tick would not, and is not given to who sleeps, whose sleep would end.
 *
 * This is the worker itself, in a signal's handler, on the fiber's stack; but for who knocks. */
#include <errno.h>

#include "no_abandon.h"
#include "ready_queue.h"

/* A signal's frame and what switches away: what a processor has in registers can be many kilobytes. */
enum { FRAME = 16384 };

/* Is the time there that somebody here waits for, or of settling (park_barrier.c)? Only the worker's loop sees to either. */
static bool is_due(const lvd_worker *w) {
  return lvd_actor_timers_next(w) == 1 || lvd_park_barrier_is_due(w, lvd_os_ticks());
}

/* Waits somebody, or something is to be done with it? */
static bool is_wanted(const lvd_worker *w) {
  return w->ready_queues || lvd_load_relaxed_ptr(&w->commands) || lvd_inbox_pending(&w->inbox) ||
         lvd_load_relaxed_u32(&w->current->app->paused) || is_due(w);
}

/* Does somebody wait who has not just had a turn, or may do? */
static bool is_behind(const lvd_worker *w) {
  return w->ready_queues >> lvd_queue_class(w->current) || lvd_inbox_pending(&w->inbox) ||
         is_due(w);
}

/* Is there room for being suspended on the fiber's stack? A relief takes nobody's turns. */
static bool can_be_suspended(const lvd_worker *w, const void *sp) {
  return (const unsigned char *)sp >= lvd_stack_low(w) + FRAME && w->index < w->rt->workers;
}

/* Does a fiber of a C program run that is paused? */
static bool is_to_pause(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  return e && e->is_fiber && w->abandonable && !lvd_fiber_is_bare(e) && e->app->code_to &&
         lvd_load_relaxed_u32(&e->app->phase) == LVD_PHASE_RUNNING &&
         lvd_load_relaxed_u32(&e->app->paused) & LVD_PAUSE_ALL;
}

/* What it has called comes to its end first, a library with what it has locked. */
static bool suspend_when_back(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  if (!is_to_pause(w)) return false;
  if (!lvd_in_code_of_its_own(w, sp, at)) return true;
  if (can_be_suspended(w, sp)) lvd_os_inject_call(lvd_fiber_preempted);
  return false;
}

void lvd_preempt_blocked(lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  if (!e || !lvd_load_relaxed_u32(&e->app->paused)) {
    lvd_store_relaxed_ptr(&w->pausing_app, NULL); /* it has been resumed, or is away */
    return;
  }
  /* It may just have come back. */
  if (suspend_when_back(w, sp, at)) lvd_os_single_step_after_syscall(suspend_when_back);
}

/* One that prints all the time is hardly ever met in code of its own. Each instruction takes hundreds of times as long
 * while it is followed, so it is let go on for some ticks between. */
static void in_library(lvd_worker *w, const void *sp) {
  enum { EVERY = 8 };
  lvd_overrun_tick(w);
  if (w->clock_ticks % EVERY || !lvd_on_stack_of_fiber(w, sp)) return;
  lvd_forced_exit_in_library(w);
  if (is_to_pause(w)) lvd_os_single_step_after_syscall(suspend_when_back);
}

/* Its activation's number, for who knocks. */
static void note_computing(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->fiber_activation, lvd_load_relaxed_u64(&w->activations) + 1);
}

/* Who came before that was noted has not knocked. */
static void suspended(void) {
  lvd_worker *w;
  do {
    lvd_fiber_preempted();
    w = lvd_this_worker();
    note_computing(w);
  } while (lvd_load_relaxed_u32(&w->yield) && is_wanted(w));
}

void lvd_preempt_fiber(lvd_worker *w, const void *sp, const void *at) {
  const lvd_fiber *f = (const lvd_fiber *)w->current;
  const lvd_app *app = w->current->app;
  lvd_forced_exit_tick(w);
  if (!f->bare && !app->code_to && app->net->actors) { /* of a native's forks */
    lvd_overrun_tick(w);
    return;
  }
  if (f->bare || !app->code_to || (!w->clock_ticks && !is_behind(w))) return;
  if (!lvd_in_code_of_its_own(w, sp, at)) {
    in_library(w, sp);
    return;
  }
  lvd_forced_exit_check(w);
  if (!can_be_suspended(w, sp))
    lvd_overrun_tick(w);
  else if (is_wanted(w))
    lvd_os_inject_call(suspended);
  else
    note_computing(w);
}

void lvd_send_preempt(lvd_worker *w) {
  uint64_t computes = lvd_load_relaxed_u64(&w->fiber_activation);
  if (!computes) return;
  bool still = computes == lvd_load_relaxed_u64(&w->activations) + 1;
  if (!lvd_cas_relaxed_u64(&w->fiber_activation, &computes, 0) || !still) return;
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  int error = errno; /* the waker's */
  if (number && !lvd_os_thread_is_blocked(number)) lvd_os_thread_signal(number);
  errno = error;
}

void lvd_on_preempt(lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  if (!e || !e->is_fiber || !w->abandonable || lvd_fiber_is_bare(e) || !e->app->code_to) return;
  if (!lvd_load_relaxed_u32(&w->yield) || !lvd_in_code_of_its_own(w, sp, at)) return;
  lvd_forced_exit_check(w);
  if (can_be_suspended(w, sp) && is_wanted(w)) lvd_os_inject_call(suspended);
}
