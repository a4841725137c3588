/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A fiber of a C program is overdue when its application ends, has given it time for that, and it has not come to
 * its end by itself. Then it is left where it is, as after a fault.
 *
 * That can be where it has no lock that others need: where it forks or yields, or in code of its own in which it
 * computes. What it has called in a library or in the system comes to its end first, and then it is left.
 *
 * The time that it has had is what the worker's clock has counted amid fibers of its application. It may get little of
 * the core, or sleep, and then that clock stands still; so the clock on the wall counts, too. A network that is
 * told to end at once is given none: what a native of it sleeps in is interrupted as soon as the watchdog meets it.
 *
 * No orders: both clocks are the worker's own (lvd_app_worker_state), and that a network was stopped is advice. */
#include "no_abandon.h"

/* By the clock on the wall. */
enum { ENDS_NS = 500000000 };

LVD_NORETURN static void leave(lvd_worker *w) {
  w->abandonable = 0;
  lvd_os_jump(w->escape);
}

/* Has it had long enough for its end, by the clock on the wall? */
static bool is_late(lvd_app_worker_state *share) {
  uint64_t now = lvd_os_ticks();
  if (!share->ends_since) share->ends_since = now;
  return now - share->ends_since > lvd_os_ns_to_ticks(ENDS_NS);
}

/* Amid forks no fiber computes for long by itself: when the application has had its time to end here, the next fork
 * of each ends it (deque.c). Beside others it may have little of the core, so that it is not waited for by its
 * own time alone. */
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

/* Does a fiber of a C program run that is to end, and has had its time for that? */
static bool is_past_its_end(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e || !e->is_fiber || !w->abandonable || lvd_fiber_is_bare(e)) return false;
  lvd_app *app = e->app;
  if (!app->code_to || lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) return false;
  lvd_app_worker_state *share = &app->share[w->index];
  return lvd_load_relaxed_u64(&share->end_ticks) >= LVD_END_TICKS || is_late(share);
}

/* Until then it takes turns with others, as before. One that yields again and again may have so little that no tick ever
 * meets it. */
void lvd_forced_exit_check(lvd_worker *w) {
  if (is_past_its_end(w)) leave(w);
}

/* Whatever has called the system for it comes to its end first, a library with what it has locked. */
static bool leave_when_back(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  if (!is_past_its_end(w)) return false;
  if (!lvd_in_code_of_its_own(w, sp, at)) return true;
  leave(w);
}

void lvd_forced_exit_in_library(lvd_worker *w) {
  if (is_past_its_end(w)) lvd_os_single_step(leave_when_back);
}

/* A native of a network that was stopped, or what it has forked. Not what an actor prints: that is everybody's output. */
static bool native_sleeps_past_its_end(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e || !w->abandonable || e->app->code_to) return false;
  return lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING &&
         lvd_load_relaxed_u32(&e->app->stopped) && (e->is_fiber || e->actor.native);
}

/* The native comes to its end, with what it has locked or opened, and the actor is left where it would go on with
 * an answer that is none. */
static bool leave_behind_native(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  const lvd_entity *e = w->current;
  (void)sp, (void)at;
  if (!e || e->is_fiber || !w->abandonable || !(e->actor.cls->flags & LVD_CLASS_ABANDONABLE))
    return false;
  if (e->actor.native) return true;
  leave(w);
}

void lvd_forced_exit_blocked(lvd_worker *w) {
  if (is_past_its_end(w))
    lvd_os_single_step(leave_when_back);
  else if (native_sleeps_past_its_end(w))
    lvd_os_single_step(leave_behind_native);
}
