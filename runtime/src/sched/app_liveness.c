/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A worker's share of an application: how many of its entities are ready there, and what the worker still owes
 * its counts.
 *
 * `live` counts the worker from when the first of them is ready there until, at a settling, none is. So nothing
 * is counted with each firing; and only after settling is "nothing of it is ready here" certain (park_barrier.c): a share
 * in which nothing is ready waits on the worker's quiet list until then. What was on its way here, and what fibers
 * have ended here, is taken from the counts then, too, or before that when it is very much. Whoever takes the last
 * from `live` has it judged whether the application is at rest (quiescence.c).
 *
 * Pairs of orders
 *   rest:  add_release live -> quiet: load_acquire live           what the actors left behind
 *   ended: add_release fibers -> fibers_end: load_acquire fibers  nothing of them runs */
#include "sched.h"

enum { OWED_MOST = 1 << 16 /* of a count that is of 32 bits */ };

static void uncount_fibers(lvd_app_worker_state *s) {
  uint32_t n = s->ended;
  s->ended = 0;
  if (lvd_add_release_u32(&s->app->fibers, -n) == n) lvd_os_wake(&s->app->fibers);
}

void lvd_app_worker_enter(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_state *s = &app->share[w->index];
  s->ready++;
  if (s->counted) return;
  s->counted = true;
  lvd_store_relaxed_u32(&s->known, 1);
  lvd_add_relaxed_u32(&app->live, 1);
}

/* All who wait for each other may be at rest, with a fork that somebody takes just now. */
void lvd_app_worker_enter_from_outside(lvd_worker *w, lvd_app *app) {
  bool counted = app->share[w->index].counted;
  if (!counted) lvd_os_lock(&app->gate);
  lvd_app_worker_enter(w, app);
  if (!counted) lvd_os_unlock(&app->gate);
}

void lvd_app_worker_arrive(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_enter(w, app);
  lvd_app_worker_state *s = &app->share[w->index];
  if (++s->arrived < OWED_MOST) return;
  lvd_add_relaxed_u32(&app->live, -s->arrived);
  s->arrived = 0;
}

void lvd_app_worker_fiber_ended(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_state *s = &app->share[w->index];
  if (++s->ended == OWED_MOST || lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING)
    uncount_fibers(s);
}

void lvd_app_worker_leave(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_state *s = &app->share[w->index];
  lvd_assert(s->ready > 0 && s->counted);
  if (--s->ready || s->candidate) return;
  s->candidate = true;
  s->next = w->quiet;
  w->quiet = s;
}

void lvd_app_workers_check_quiet(lvd_worker *w) {
  for (lvd_app_worker_state *s = w->quiet, *next; s; s = next) {
    next = s->next;
    s->candidate = false;
    if (s->ready || !s->counted) continue;
    if (s->ended) uncount_fibers(s);
    uint32_t n = s->arrived + 1;
    s->counted = false;
    s->arrived = 0;
    if (lvd_add_release_u32(&s->app->live, -n) == n) lvd_hooks.app.check_quiescent(s->app);
  }
  w->quiet = NULL;
}

void lvd_app_worker_forget(lvd_worker *w, const lvd_app *app) {
  for (lvd_app_worker_state **at = &w->quiet; *at;) {
    if ((*at)->app == app)
      *at = (*at)->next;
    else
      at = &(*at)->next;
  }
}

/* ---- its end ------------------------------------------------------------------------------- */

void lvd_reaper_wake(lvd_runtime *rt) {
  lvd_add_release_u32(&rt->reaper_work, 1);
  lvd_os_wake(&rt->reaper_work);
}

void lvd_app_end(lvd_app *app, lvd_status outcome) {
  uint32_t none = 0;
  /* The first reason counts, and it is there before anybody sees the phase. */
  if (!lvd_cas_relaxed_u32(&app->outcome, &none, 1 + (uint32_t)outcome)) return;
  lvd_exchange_release_u32(&app->phase, LVD_PHASE_ENDING);
  lvd_reaper_wake(app->rt);
}

lvd_status lvd_app_exit_status(const lvd_app *app) {
  return (lvd_status)(lvd_load_relaxed_u32(&app->outcome) - 1);
}

bool lvd_app_drains(lvd_app *app) {
  if (!app) return false;
  if (!lvd_app_is_program(app)) return lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_SOURCES;
  uint32_t asked = LVD_ASKED;
  return lvd_cas_relaxed_u32(&app->leaving, &asked, LVD_TOLD) || asked == LVD_TOLD;
}
