/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Interrupting a fiber: one of a C program that was loaded beside others (hosted.h) computes without ever waiting,
 * and takes turns with what is ready all the same. The worker's clock suspends it by force, as if it had given way.
 *
 * It has to be in code of its own then, and so in no library's, where it might have locks that others need; one
 * that is in a library holds what is behind it up no longer than an actor does (stuck.c). From then on until it
 * waits it stays on its thread, whose variables it may have at hand. In the fast half of a fork or a join that is
 * good, too: its deque stays as it is, what is private there nobody else touches, and no more is made public
 * meanwhile (lvd_forks_set_aside). Of an application that ends it is not suspended, but left (overdue.c).
 *
 * This is the worker itself, in a signal's handler, on the fiber's stack. */
#include "inside.h"

/* A signal's frame and what switches away: what a processor has in registers can be many kilobytes. */
enum { FRAME = 16384 };

/* Waits somebody, or something is to be done with it? */
static bool is_wanted(const lvd_worker *w) {
  return w->ready_places || lvd_load_relaxed_ptr(&w->commands) || lvd_inbox_pending(&w->inbox) ||
         lvd_load_relaxed_u32(&w->current->app->paused);
}

/* Does somebody wait who has not just had a turn, or may do? */
static bool is_behind(const lvd_worker *w) {
  return w->ready_places >> lvd_place(w->current) || lvd_inbox_pending(&w->inbox);
}

void lvd_interrupt_fiber(lvd_worker *w, const void *sp, const void *at) {
  const lvd_fiber *f = (const lvd_fiber *)w->current;
  const lvd_app *app = w->current->app;
  lvd_overdue_tick(w);
  if (f->bare || !app->code_to || (!w->clock_ticks && !is_behind(w))) return;
  if (!lvd_in_code_of_its_own(w, sp, at)) {
    lvd_stuck_tick(w);
    lvd_overdue_in_library(w, sp);
    return;
  }
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) {
    lvd_overdue_computes(w);
    return;
  }
  bool room = (const unsigned char *)sp >= lvd_stack_low(w) + FRAME;
  if (!room || w->index >= w->rt->workers)
    lvd_stuck_tick(w);
  else if (is_wanted(w))
    lvd_port_interject(lvd_fiber_interrupted);
}
