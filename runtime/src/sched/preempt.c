/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Preemption of fibers. A fiber of a C program that is loaded next to other applications
 * (program_app.h) may compute without ever waiting, and yet shares the worker with other ready
 * entities: the worker's clock suspends it in the signal handler, as if it had yielded.
 *
 * Where a fiber can be preempted: in the program's own code, not in a library, where it might
 * hold locks that other threads need. A fiber in a library delays others no longer than an
 * actor does (overrun.c). Until it next waits, a preempted fiber stays on its thread, since it
 * may have the addresses of thread-local variables in registers. In the fast path of a fork or
 * join preemption is safe: the deque stays as it is, its private part is not touched by
 * others, and nothing more of it is published meanwhile (lvd_forks_set_aside). A fiber of an
 * application that ends is not suspended but abandoned (forced_exit.c).
 *
 * A fiber that is paused while it is blocked in a system call receives no clock ticks. The
 * watchdog signals it (watchdog.c), and it is single-stepped until it is back in its own code.
 * The signal ends a sleep early, as any signal does; a call that is restarted after a signal,
 * such as a read, is awaited, so that the program sees no spurious error.
 *
 * The clock ticks every few milliseconds, which would delay data at each core that it passes.
 * So a thread that wakes a more urgent entity sends a signal (lvd_send_preempt) if a fiber was
 * found computing there, by the clock or since it was preempted last. Whether it still
 * computes is advisory: the signal changes nothing that the next tick would not. It is not
 * sent to a blocked thread, since it would cut the system call short.
 *
 * All this runs on the worker's thread in a signal handler, on the fiber's stack, except
 * lvd_send_preempt. */
#include <errno.h>

#include "no_abandon.h"
#include "ready_queue.h"

/* Bytes: the signal frame, with up to several KiB of registers, and the switch away. */
enum { FRAME_BYTES = 16384 };

/* Is a timer or the park barrier due? Only the worker's loop handles either. */
static bool timer_is_due(const lvd_worker *w) {
  return lvd_actor_timers_next(w) == 1 || lvd_park_barrier_is_due(w, lvd_os_ticks());
}

/* Is there other work for the worker? */
static bool has_other_work(const lvd_worker *w) {
  return w->ready_queues || lvd_load_relaxed_ptr(&w->commands) || lvd_inbox_pending(&w->inbox) ||
         lvd_load_relaxed_u32(&w->current->app->paused) || timer_is_due(w);
}

/* Is an entity ready that has not just yielded, or may one become ready? */
static bool has_eligible_work(const lvd_worker *w) {
  return w->ready_queues >> lvd_queue_class(w->current) || lvd_inbox_pending(&w->inbox) ||
         timer_is_due(w);
}

/* Is there room on the fiber's stack for suspending it? A backup worker preempts no fiber. */
static bool can_be_suspended(const lvd_worker *w, const void *sp) {
  return (const unsigned char *)sp >= lvd_stack_low(w) + FRAME_BYTES && w->index < w->rt->workers;
}

/* Does a fiber of a paused C program run? */
static bool is_to_pause(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  return e && e->is_fiber && w->abandonable && !lvd_fiber_is_of_thread(e) && e->app->code_to &&
         lvd_load_relaxed_u32(&e->app->phase) == LVD_PHASE_RUNNING &&
         lvd_load_relaxed_u32(&e->app->paused) & LVD_PAUSE_ALL;
}

/* Called after each single step: suspends the fiber once it is back in the program's own code,
 * since a library that it has called may hold locks. Returns true to continue stepping. */
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
    lvd_store_relaxed_ptr(&w->pausing_app, NULL); /* it has been resumed, or no longer runs here */
    return;
  }
  /* The call may just have returned. */
  if (suspend_when_back(w, sp, at)) lvd_os_single_step_after_syscall(suspend_when_back);
}

/* Handles a tick in library code. A fiber that prints all the time is hardly ever found in its
 * own code, so it is single-stepped to there; since that makes instructions hundreds of times
 * slower, only at every eighth tick. */
static void tick_in_library(lvd_worker *w, const void *sp) {
  enum { TICKS_PER_STEP = 8 };
  lvd_overrun_tick(w);
  if (w->clock_ticks % TICKS_PER_STEP || !lvd_on_stack_of_fiber(w, sp)) return;
  lvd_forced_exit_in_library(w);
  if (is_to_pause(w)) lvd_os_single_step_after_syscall(suspend_when_back);
}

/* Records for lvd_send_preempt that the running activation computes. */
static void note_computing(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->fiber_activation, lvd_load_relaxed_u64(&w->activations) + 1);
}

/* Preempts the fiber. A thread that posted work before note_computing has sent no signal: the
 * loop checks for that. */
static void preempt_now(void) {
  lvd_worker *w;
  do {
    lvd_fiber_preempted();
    w = lvd_this_worker();
    note_computing(w);
  } while (lvd_load_relaxed_u32(&w->yield) && has_other_work(w));
}

void lvd_preempt_fiber(lvd_worker *w, const void *sp, const void *at) {
  const lvd_fiber *f = (const lvd_fiber *)w->current;
  const lvd_app *app = w->current->app;
  lvd_forced_exit_tick(w);
  if (!f->of_thread && !app->code_to &&
      app->net->actors) { /* a native of a network that has forked */
    lvd_overrun_tick(w);
    return;
  }
  if (f->of_thread || !app->code_to || (!w->clock_ticks && !has_eligible_work(w))) return;
  if (!lvd_in_code_of_its_own(w, sp, at)) {
    tick_in_library(w, sp);
    return;
  }
  lvd_forced_exit_check(w);
  if (!can_be_suspended(w, sp))
    lvd_overrun_tick(w);
  else if (has_other_work(w))
    lvd_os_inject_call(preempt_now);
  else
    note_computing(w);
}

void lvd_send_preempt(lvd_worker *w) {
  uint64_t computes = lvd_load_relaxed_u64(&w->fiber_activation);
  if (!computes) return;
  bool still = computes == lvd_load_relaxed_u64(&w->activations) + 1;
  if (!lvd_cas_relaxed_u64(&w->fiber_activation, &computes, 0) || !still) return;
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  int error = errno; /* keep the errno of the caller */
  if (number && !lvd_os_thread_is_blocked(number)) lvd_os_thread_signal(number);
  errno = error;
}

void lvd_on_preempt(lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  if (!e || !e->is_fiber || !w->abandonable || lvd_fiber_is_of_thread(e) || !e->app->code_to)
    return;
  if (!lvd_load_relaxed_u32(&w->yield) || !lvd_in_code_of_its_own(w, sp, at)) return;
  lvd_forced_exit_check(w);
  if (can_be_suspended(w, sp) && has_other_work(w)) lvd_os_inject_call(preempt_now);
}
