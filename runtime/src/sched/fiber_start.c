/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Starting, joining and cancelling fibers.
 *
 * Guarantee
 *   F2  What a fiber did before it ended is visible after it was joined.
 *
 * Pairs of orders
 *   cancel: cancelled, [light], wake <> wait: armed, IDLE, [heavy], load cancelled
 *                                                              F1 of fiber.c (park_barrier.c)
 *   start: state IDLE (release)      -> each: state (acquire)  the fiber's application
 *   end: event told (release)        -> join: event wait (acquire)                      F2
 *   announce: fibers + 1, [fence], load phase
 *                                        <> cancel_and_wait: phase ENDING, [fence], load fibers */
#include "no_abandon.h"
#include "ready_queue.h"

static uint32_t place_of(lvd_runtime *rt, const lvd_fiber_options *o) {
  lvd_worker *w = lvd_this_worker();
  uint32_t worker = LVD_NOWHERE;
  if (o->place >= LVD_WORKER(0)) {
    worker = o->place - LVD_WORKER(0);
    if (worker >= rt->workers) return LVD_NOWHERE;
  } else if (o->place == LVD_HERE && w && w->rt == rt) {
    /* The worker of this core, also when called on its priority worker. */
    worker = w->index % rt->workers;
  } else {
    worker = lvd_add_relaxed_u32(&rt->next_place, 1) % rt->workers;
    while (!lvd_load_relaxed_u32(&rt->worker[worker].available))
      worker = (worker + 1) % rt->workers;
  }
  if (!lvd_load_relaxed_u32(&rt->worker[worker].available)) return LVD_NOWHERE;
  return worker;
}

/* Does the caller run as a fiber of `app`? Then the application cannot end meanwhile. */
static bool is_inside(const lvd_worker *w, const lvd_app *app) {
  return w && w->current && w->current->is_fiber && w->current->app == app;
}

lvd_status lvd_fiber_announce(lvd_app *app) {
  lvd_worker *w = lvd_this_worker();
  bool inside = is_inside(w, app);
  /* It takes the place of an ended fiber that is still counted. */
  if (inside && app->share[w->index].ended) {
    app->share[w->index].ended--;
  } else {
    /* Counted before the phase is read: either the thread that ends the application sees the
     * count, or this one sees the phase. A fiber of the application itself needs no fence: its
     * own count is seen. */
    lvd_add_relaxed_u32(&app->fibers, 1);
    if (!inside) lvd_fence_seq_cst();
  }
  if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) return LVD_OK;
  lvd_fiber_renounce(app);
  return LVD_E_STATE;
}

void lvd_fiber_renounce(lvd_app *app) {
  if (lvd_add_relaxed_u32(&app->fibers, UINT32_MAX) == 1) lvd_os_wake(&app->fibers);
}

uint32_t lvd_fiber_stack(size_t bytes) {
  uint32_t size_log2 = bytes ? LVD_STACK_LEAST : LVD_STACK_USUAL;
  while (size_log2 <= LVD_STACK_MOST && (size_t)1 << size_log2 < bytes) size_log2++;
  return size_log2 <= LVD_STACK_MOST ? size_log2 : 0;
}

void lvd_fiber_fill(lvd_fiber *f, lvd_app *app, uint32_t worker, uint32_t level,
                    void (*body)(void *), void *argument) {
  lvd_entity *e = &f->entity;
  lvd_store_relaxed_u32(&e->worker, worker);
  lvd_store_relaxed_u32(&e->target, worker);
  e->level = level;
  e->app = app;
  e->name = f->name;
  lvd_store_relaxed_u64(&e->activations, 0);
  lvd_store_relaxed_u64(&e->busy_ticks, 0);
  lvd_store_relaxed_u64(&e->longest_ticks, 0);
  f->body = body;
  f->argument = argument;
  f->ended = false;
  f->uninterruptible = false;
  f->outcome = LVD_OK;
  f->want = NULL;
  f->wants = 0;
  f->ends = NULL;
  f->word = NULL;
  f->end = NULL;
  f->forks = NULL;
  f->stolen = NULL;
  f->of_thread = f->interrupted = f->must_abandon = false;
  f->started_as = LVD_STARTED_AS_FIBER;
  f->cancelled = &f->cancel;
  lvd_store_relaxed_u32(&f->cancel, 0);
  lvd_os_context_make(&f->context, f->low + f->guard,
                      (size_t)((unsigned char *)f - f->low) - f->guard, lvd_fiber_main, f);
}

void lvd_fiber_begin(lvd_worker *w, lvd_fiber *f) {
  lvd_store_release_u32(&f->entity.state, LVD_READY);
  lvd_queue_put(w, &f->entity);
}

void lvd_fiber_ready(lvd_worker *w, lvd_fiber *f, lvd_app *app, uint32_t level,
                     void (*body)(void *)) {
  lvd_add_relaxed_u32(&app->fibers, 1);
  lvd_fiber_fill(f, app, w->index, level, body, f);
  copy_name(f->name, "fork");
  lvd_app_worker_enter_from_outside(w, app);
  lvd_fiber_begin(w, f);
}

lvd_status lvd_fiber_start(lvd_app *app, void (*body)(void *), void *argument,
                           const lvd_fiber_options *options, lvd_fiber **out) {
  LVD_NO_ABANDON;
  static const lvd_fiber_options usual;
  const lvd_fiber_options *o = options ? options : &usual;
  uint32_t size_log2 = lvd_fiber_stack(o->stack);
  if (!app || !body || !size_log2) return LVD_E_ARGUMENT;
  lvd_runtime *rt = app->rt;
  uint32_t worker = place_of(rt, o);
  if (worker == LVD_NOWHERE) return LVD_E_ARGUMENT;
  lvd_status status = o->urgent ? lvd_priority_worker(rt, worker, &worker) : LVD_OK;
  if (status != LVD_OK || (status = lvd_fiber_announce(app)) != LVD_OK) return status;
  lvd_fiber *f;
  status = lvd_fiber_take(rt, size_log2, &f);
  if (status != LVD_OK) {
    lvd_fiber_renounce(app);
    return status;
  }
  lvd_fiber_fill(f, app, worker, lvd_level_of(o->priority), body, argument);
  copy_name(f->name, o->name ? o->name : "fiber");
  lvd_store_relaxed_u64(&f->done.word, 0);
  if (out) {
    f->end = &f->done;
    *out = f;
  }
  lvd_worker *w = lvd_this_worker();
  if (is_inside(w, app) && worker == w->index) {
    lvd_app_worker_enter(w, app);
    lvd_fiber_begin(w, f);
  } else {
    lvd_store_release_u32(&f->entity.state, LVD_IDLE);
    lvd_entity_wake(&f->entity.waiter);
  }
  return LVD_OK;
}

void lvd_fiber_cancel(lvd_fiber *f) {
  LVD_NO_ABANDON;
  if (!f) return;
  lvd_store_relaxed_u32(&f->cancel, LVD_E_CANCELLED);
  lvd_membarrier_light(f->entity.app->rt->fenced);
  lvd_entity_wake(&f->entity.waiter);
}

/* Called while the application is quiescent, with its gate held: later wakers have passed the
 * gate. */
void lvd_fiber_set_cancelled(const lvd_fiber *f, lvd_status status) {
  uint32_t nothing = 0;
  lvd_cas_relaxed_u32(f->cancelled, &nothing, (uint32_t)status);
}
