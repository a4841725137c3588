/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forced exit of fibers of a C program. A fiber is overdue when its application ends and it has
 * not returned in the time allowed for that. It is then abandoned where it is, as after a fault.
 *
 * That is possible where it holds no lock that others need: where it forks or yields, or where it
 * computes in its own code. If it executes library code or a system call, it is abandoned after
 * that has returned.
 *
 * The time allowed is counted by ticks of the worker's clock in fibers of the application. The
 * application may get little CPU time, or be blocked, and then that clock stands still; so
 * wall-clock time limits it, too. A network that is asked to end at once is allowed no time: a
 * system call of one of its natives is interrupted when the watchdog finds it.
 *
 * No orders: both clocks are the worker's own (lvd_app_worker_state), and `stopped` is advisory. */
#include "no_abandon.h"

/* Wall-clock time allowed for the end. */
enum { END_TIMEOUT_NS = 500000000 };

LVD_NORETURN static void leave(lvd_worker *w) {
  w->abandonable = 0;
  lvd_os_jump(w->escape);
}

/* Is the wall-clock time for its end used up? */
static bool is_late(lvd_app_worker_state *share) {
  uint64_t now = lvd_os_ticks();
  if (!share->ends_since) share->ends_since = now;
  return now - share->ends_since > lvd_os_ns_to_ticks(END_TIMEOUT_NS);
}

/* A tick in a fiber that forks: when the application has used its time on this worker, the next
 * fork of each fiber ends it (deque.c). Wall-clock time counts as well, since the application may
 * get little CPU time. */
void lvd_forced_exit_tick(lvd_worker *w) {
  lvd_app *app = w->current->app;
  if (!app->code_to || lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) return;
  lvd_app_worker_state *share = &app->share[w->index];
  lvd_store_relaxed_u64(&share->end_ticks, is_late(share)
                                               ? LVD_END_TICKS
                                               : lvd_load_relaxed_u64(&share->end_ticks) + 1);
  if (lvd_load_relaxed_u64(&share->end_ticks) >= LVD_END_TICKS)
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
}

/* Does an overdue fiber of a C program run? */
static bool is_overdue(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e || !e->is_fiber || !w->abandonable || lvd_fiber_is_of_thread(e)) return false;
  lvd_app *app = e->app;
  if (!app->code_to || lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) return false;
  lvd_app_worker_state *share = &app->share[w->index];
  return lvd_load_relaxed_u64(&share->end_ticks) >= LVD_END_TICKS || is_late(share);
}

/* Ends the running fiber if it is overdue. Called also where it yields, since a fiber that yields
 * often may never be met by a tick. */
void lvd_forced_exit_check(lvd_worker *w) {
  if (is_overdue(w)) leave(w);
}

/* Called after each single step: abandons the fiber once the library or system call that it is in
 * has returned. Returns true to continue stepping. */
static bool abandon_when_back(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  if (!is_overdue(w)) return false;
  if (!lvd_in_code_of_its_own(w, sp, at)) return true;
  leave(w);
}

void lvd_forced_exit_in_library(lvd_worker *w) {
  if (is_overdue(w)) lvd_os_single_step(abandon_when_back);
}

/* Is a native of a network that was stopped, or what it has forked, blocked in a system call? Not
 * while it writes console output, which is shared. */
static bool native_is_overdue(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e || !w->abandonable || e->app->code_to) return false;
  return lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING &&
         lvd_load_relaxed_u32(&e->app->stopped) && (e->is_fiber || e->actor.native);
}

/* Called after each single step: lets the native return, with what it has locked or opened, and
 * abandons the actor where it would continue with an invalid result. */
static bool abandon_after_native(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  const lvd_entity *e = w->current;
  (void)sp, (void)at;
  if (!e || e->is_fiber || !w->abandonable || !(e->actor.cls->flags & LVD_CLASS_ABANDONABLE))
    return false;
  if (e->actor.native) return true;
  leave(w);
}

void lvd_forced_exit_blocked(lvd_worker *w) {
  if (is_overdue(w))
    lvd_os_single_step(abandon_when_back);
  else if (native_is_overdue(w))
    lvd_os_single_step(abandon_after_native);
}
