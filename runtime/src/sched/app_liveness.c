/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Liveness: the state of an application on a worker, that is how many of its entities are ready
 * there and what has yet to be subtracted from its counts.
 *
 * `live` counts a worker from when the first of its entities is ready there until a park barrier
 * at which none is. So nothing is counted per firing, and only after the barrier is it certain
 * that nothing is ready (park_barrier.c); until then a state without ready entities is on the
 * worker's quiet list. Arrivals and ended fibers are subtracted from the counts then, or earlier
 * if there are very many. The worker that decrements `live` to 0 checks whether the application
 * is quiescent (quiescence.c).
 *
 * Pairs of orders
 *   rest:  add_release live -> quiet: load_acquire live           what the actors left behind
 *   ended: add_release fibers -> cancel_and_wait: load_acquire fibers  nothing of them runs */
#include "sched.h"

enum { OWED_MAX = 1 << 16 /* the counts have 32 bits */ };

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

/* The application may be quiescent, in a deadlock, except for a fork that is being stolen now. */
void lvd_app_worker_enter_from_outside(lvd_worker *w, lvd_app *app) {
  bool counted = app->share[w->index].counted;
  if (!counted) lvd_os_lock(&app->gate);
  lvd_app_worker_enter(w, app);
  if (!counted) lvd_os_unlock(&app->gate);
}

void lvd_app_worker_arrive(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_enter(w, app);
  lvd_app_worker_state *s = &app->share[w->index];
  if (++s->arrived < OWED_MAX) return;
  lvd_add_relaxed_u32(&app->live, -s->arrived);
  s->arrived = 0;
}

void lvd_app_worker_fiber_ended(lvd_worker *w, lvd_app *app) {
  lvd_app_worker_state *s = &app->share[w->index];
  if (++s->ended == OWED_MAX || lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING)
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
  /* The first reason is kept, and is stored before any thread can see the phase. */
  if (!lvd_cas_relaxed_u32(&app->outcome, &none, 1 + (uint32_t)outcome)) return;
  lvd_exchange_release_u32(&app->phase, LVD_PHASE_ENDING);
  lvd_reaper_wake(app->rt);
}

lvd_status lvd_app_exit_status(const lvd_app *app) {
  return (lvd_status)(lvd_load_relaxed_u32(&app->outcome) - 1);
}

bool lvd_app_is_draining(lvd_app *app) {
  if (!app) return false;
  if (!lvd_app_is_program(app)) return lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_SOURCES;
  uint32_t asked = LVD_ASKED;
  return lvd_cas_relaxed_u32(&app->leaving, &asked, LVD_TOLD) || asked == LVD_TOLD;
}
