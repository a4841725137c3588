/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Pool of deques, and which stack uses which.
 *
 * Each stack that forks has a deque, and a thread that switches to a stack attaches that stack's
 * deque. Empty deques are pooled: a few per thread, the others per runtime or, without one, in
 * the process. A fiber that is suspended with open forks keeps its deque, and its thread
 * continues with an empty one. The deque of an abandoned stack returns to the pool once no thief
 * works for it any more.
 *
 * Pairs of orders
 *   enlist: the deque, store_release deques -> look: load_acquire deques
 *   take_up: a forker, store_release thread of a deque -> ask: load_acquire */
#include "../app/app.h"
#include "../stream/stream.h"
#include "fork.h"

#include "../sched/fiber.h"

enum { SPARE_MAX = 8 };

lvd_os_mutex lvd_forks_lock;
lvd_aptr lvd_spare_deques;

/* ---- the pool -------------------------------------------------------------------------------- */

static lvd_deque *new_deque(void) {
  lvd_deque *d = lvd_os_alloc(sizeof *d);
  if (d) lvd_event_init(&d->joined);
  return d;
}

static bool enlist(lvd_fork_set *forks, lvd_deque *d) {
  uint32_t n = lvd_load_relaxed_u32(&forks->deques);
  if (n == LVD_DEQUES) return false;
  lvd_store_relaxed_ptr(&forks->deque[n], d);
  lvd_store_release_u32(&forks->deques, n + 1);
  return true;
}

/* With lvd_forks_lock held. */
lvd_deque *lvd_deque_take_from(lvd_aptr *list) {
  lvd_deque *d = lvd_load_relaxed_ptr(list);
  if (d) lvd_store_relaxed_ptr(list, d->next);
  return d;
}
void lvd_deque_give_back(lvd_aptr *list, lvd_deque *d) {
  lvd_store_relaxed_ptr(&d->thread, NULL);
  d->next = lvd_load_relaxed_ptr(list);
  lvd_store_relaxed_ptr(list, d);
}

/* Returns a pooled or a new deque; null: the limit is reached, or there is no memory. With the
 * lock held. */
lvd_deque *lvd_deque_some(lvd_fork_set *forks) {
  lvd_deque *d = lvd_deque_take_from(&forks->spare);
  if (d) return d;
  d = lvd_deque_take_from(&lvd_spare_deques);
  if (!d) d = new_deque();
  if (!d || enlist(forks, d)) return d;
  lvd_deque_give_back(&lvd_spare_deques, d);
  return NULL;
}

static lvd_deque *find_deque(lvd_fork_set *forks) {
  /* Checked without the lock, since each fork may get here. */
  if (!lvd_load_relaxed_ptr(&forks->spare) && lvd_load_relaxed_u32(&forks->deques) == LVD_DEQUES)
    return NULL;
  lvd_os_lock(&lvd_forks_lock);
  lvd_deque *d = lvd_deque_some(forks);
  lvd_os_unlock(&lvd_forks_lock);
  return d;
}

/* The list to which a thread's unused deques return. With the lock held. */
lvd_aptr *lvd_deques_spare(lvd_fork_state *f) {
  return lvd_load_relaxed_u32(&f->gone) ? &lvd_spare_deques : &f->forks->spare;
}

/* Returns the empty, unattached `d` to the thread's own list if that has room, else to the
 * runtime's. */
static void keep(lvd_fork_state *f, lvd_deque *d) {
  if (f->spares == SPARE_MAX) {
    lvd_os_lock(&lvd_forks_lock);
    lvd_deque_give_back(lvd_deques_spare(f), d);
    lvd_os_unlock(&lvd_forks_lock);
    return;
  }
  lvd_store_relaxed_ptr(&d->thread, NULL);
  d->next = f->spare;
  f->spare = d;
  f->spares++;
}

/* ---- attaching a deque to a thread ----------------------------------------------------------- */

/* Attaches deque `d` with head `head` to the thread; null: none. */
static void take_up(lvd_fork_state *f, lvd_deque *d, lvd_fork *head) {
  lvd_store_relaxed_ptr(&f->deque, d);
  lvd_forks.head = d ? head : LVD_NO_SLOT;
  /* The first fork takes the slow path, where it serves requests. */
  lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  lvd_store_relaxed_ptr(&lvd_forks.floor, d ? &d->slot[d->split] : NULL);
  if (!d) return;
  lvd_store_relaxed_u32(&d->asked, 1);
  lvd_store_release_ptr(&d->thread, f);
}

void lvd_fork_state_take_empty(lvd_fork_state *f) {
  lvd_deque *d = f->spare;
  if (d) {
    f->spare = d->next;
    f->spares--;
  } else {
    d = find_deque(f->forks);
  }
  if (d) {
    d->split = 0;
    lvd_store_relaxed_u64(&d->ends, 0);
    lvd_store_relaxed_u32(&d->outermost.first, LVD_NO_SCOPE);
    d->innermost = NULL;
  }
  take_up(f, d, d ? d->slot : NULL);
  if (f->worker) f->worker->fork_base = lvd_forks.head;
}

lvd_deque *lvd_fork_state_deque(lvd_fork_state *f) {
  if (LVD_UNLIKELY(!lvd_load_relaxed_ptr(&f->deque))) lvd_fork_state_take_empty(f);
  return lvd_load_relaxed_ptr(&f->deque);
}

void lvd_fork_state_drop_deque(lvd_fork_state *f) {
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  if (d) keep(f, d);
  take_up(f, NULL, NULL);
  if (f->worker) f->worker->fork_base = LVD_NO_SLOT;
}

/* ---- fibers with open forks --------------------------------------------------------------- */

void lvd_forks_suspend(lvd_worker *w, lvd_fiber *fiber) {
  lvd_fork_state *f = lvd_fork_state_here;
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  /* Without a deque it has no open forks, though the check in fiber.c says so. */
  if (!d) return;
  /* A stolen call without open forks: the deque stays with the thread. */
  if (lvd_forks.head == d->slot) {
    w->fork_base = d->slot;
    if (!fiber->ended) lvd_fork_withdraw(fiber->stolen, d);
    return;
  }
  d->head = lvd_forks.head;
  lvd_store_relaxed_ptr(&d->thread, NULL);
  lvd_deque_publish_all(d, d->head, f);
  fiber->forks = d;
  lvd_fork_state_take_empty(f);
  lvd_forks_wake(f);
}

bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *fiber) {
  lvd_fork_state *f = lvd_fork_state_here;
  lvd_deque *d = f ? lvd_load_relaxed_ptr(&f->deque) : NULL;
  (void)w;
  if (!d) return false;
  d->head = lvd_forks.head;
  lvd_store_relaxed_ptr(&d->thread, NULL);
  fiber->forks = d;
  lvd_fork_state_take_empty(f);
  return true;
}

/* The fiber may have read where its next fork goes, and found no deque. */
void lvd_forks_set_back_without(void) {
  if (lvd_fork_state_here) lvd_fork_state_drop_deque(lvd_fork_state_here);
}

void lvd_forks_resume(lvd_worker *w, lvd_fiber *fiber) {
  lvd_fork_state *f = lvd_fork_state_here;
  lvd_deque *d = fiber->forks, *old = lvd_load_relaxed_ptr(&f->deque);
  fiber->forks = NULL;
  if (old) keep(f, old);
  take_up(f, d, d->head);
  w->fork_base = fiber->stolen ? NULL : d->slot;
}

/* Fails all calls that ran on this stack, one on top of the other. */
static void fail_all(const lvd_fork_set *forks, const lvd_deque *here) {
  uint32_t n = lvd_deques_of(forks);
  for (uint32_t i = 0; i < n; i++) lvd_deque_fail(lvd_deque_of(forks, i), here);
}

/* Ends stealing from the deque of the suspended `fiber`. False: a thief still works for it. */
static bool abandon_left(lvd_fork_set *forks, lvd_fiber *fiber) {
  lvd_deque *d = fiber->forks;
  if (!lvd_deque_abandon(d)) return false;
  fiber->forks = NULL;
  lvd_os_lock(&lvd_forks_lock);
  lvd_deque_give_back(&forks->spare, d);
  lvd_os_unlock(&lvd_forks_lock);
  return true;
}

/* `fiber` was suspended and will not be resumed. Called on any worker, also one that has not
 * forked. */
void lvd_forks_drop(lvd_fiber *fiber) {
  lvd_deque *d = fiber->forks;
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&fiber->entity.app->rt->forks);
  if (fiber->stolen) { /* without a deque no owner can find it */
    if (d) lvd_fork_withdraw(fiber->stolen, d);
    lvd_fork_fail(fiber->stolen, fiber->stolen_from);
  }
  if (!d) return;
  fail_all(forks, d);
  fiber->not_reusable |= !abandon_left(forks, fiber);
}

/* The worker that would resume it is not known any more. Ends stealing from it; its thieves are
 * told to end, since their application does. */
void lvd_forks_abandon_suspended(lvd_app *app, lvd_fiber *fiber) {
  enum { RETRY_NS = 1000000 };
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&app->rt->forks);
  fail_all(forks, fiber->forks); /* it may have leapfrogged for the calls that it waits for */
  while (!abandon_left(forks, fiber)) {
    lvd_fibers_wake(app);
    uint32_t fibers = lvd_load_relaxed_u32(&app->fibers);
    lvd_os_wait(&app->fibers, fibers, RETRY_NS);
    lvd_reaper_spawn_backup(app->rt);
  }
}

/* Waits for the thieves of `d`. They may still write to its stack, which is the worker's own, so
 * no function that needs more of that stack is called meanwhile. They are told to end
 * (app_control.c); other workers migrate nothing to this one. */
static void await_idle(lvd_worker *w, lvd_deque *d) {
  lvd_store_relaxed_u64(&w->stuck, lvd_load_relaxed_u64(&w->activations) + 1);
  while (!lvd_deque_abandon(d)) lvd_os_relax();
  lvd_store_relaxed_u64(&w->stuck, 0);
}

/* What `w` ran was abandoned, perhaps with open forks: a fiber, or an actor on `fiber` (null: on
 * the worker's own stack). */
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *fiber) {
  lvd_fork_state *f = lvd_fork_state_here;
  lvd_deque *d = f ? lvd_load_relaxed_ptr(&f->deque) : NULL;
  /* Without a deque, or with one that it has left, no owner can find it. */
  if (fiber && fiber->stolen) {
    if (d) lvd_fork_withdraw(fiber->stolen, d);
    lvd_fork_fail(fiber->stolen, fiber->stolen_from);
  }
  if (d && lvd_forks.head != w->fork_base) {
    fail_all(f->forks, d);
    bool idle = lvd_deque_abandon(d);
    if (!idle && !fiber) {
      await_idle(w, d);
      idle = true;
    }
    if (idle)
      keep(f, d);
    else
      fiber->not_reusable = true;
    lvd_fork_state_take_empty(f);
  }
}
