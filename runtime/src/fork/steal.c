/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Work stealing: which workers steal, and how they sleep and are woken.
 *
 * A worker without ready entities steals the oldest public fork of any deque and runs it on a
 * fiber of its own, so that it may wait. If no slot is public it requests one, polls for a while,
 * and sleeps. Before that it requests once more from all deques, and is counted in `sleepers`: the
 * next fork of any thread then takes the slow path, becomes public, and wakes it. While no worker
 * sleeps, this costs a fork nothing.
 *
 * Pairs of orders
 *   sleep: sleepers + 1, [fence], look at ends <> share: ends, [fence], load sleepers      (D3)
 *   sleep: waiting (inbox), [fence], load fork_sleeps <> wake: fork_sleeps 0, [fence], load waiting
 * and, of a worker that has lent its place, those of fork_proxy.c. */
#include "../stream/stream.h"
#include "fork.h"

#include "../sched/fiber.h"

enum { RECHECK_NS = 4000000 };

/* ---- stolen calls --------------------------------------------------------------------------- */

static void stolen_main(void *argument) {
  lvd_fiber *fiber = argument;
  lvd_fork_state *f = lvd_fork_state_self();
  f->worker->fork_base = NULL; /* so that leaving its stack always calls lvd_forks_suspend */
  lvd_fork_run(fiber->stolen, fiber->stolen_from, lvd_load_relaxed_ptr(&f->deque));
}

/* Is a stack at hand for a stolen call? Without one it does not steal: the owner can make the
 * call itself. */
static bool has_stack(lvd_fork_state *f) {
  uint32_t size_log2 = lvd_load_relaxed_u32(&f->forks->stack_log2);
  if (LVD_LIKELY(f->reserve && f->reserve->size_log2 >= size_log2)) return true;
  if (f->reserve) lvd_fiber_put_back(f->forks->rt, f->reserve);
  f->reserve = NULL;
  return lvd_fiber_take(f->forks->rt, size_log2, &f->reserve) == LVD_OK;
}

/* Makes a ready fiber of the call of `slot`, just stolen from `d`. */
static void make_fiber(lvd_fork_state *f, lvd_fork *slot, lvd_deque *d) {
  lvd_app *app = lvd_load_relaxed_ptr(&d->app);
  lvd_fiber *fiber = f->reserve;
  f->reserve = NULL;
  bool of_thread = !app;
  if (of_thread) app = lvd_load_relaxed_ptr(&f->forks->app);
  lvd_fiber_ready(f->worker, fiber, app, lvd_load_relaxed_u32(&d->level), stolen_main);
  fiber->of_thread = of_thread;
  fiber->stolen = slot;
  fiber->stolen_from = d;
}

/* Has the current stack room for one more call? */
static bool has_room(const lvd_fork_state *f) {
  const unsigned char *here = __builtin_frame_address(0), *low = f->low;
  size_t least = 256 * 1024;
  const lvd_entity *e = f->worker ? f->worker->current : NULL;
  const lvd_fiber *fiber = !e ? NULL : e->is_fiber ? (const lvd_fiber *)e : e->stack;
  if (fiber) {
    low = fiber->low + fiber->guard;
    least = ((size_t)1 << fiber->size_log2) / 2;
  }
  return (size_t)(here - low) > least;
}

static bool makes_fibers(const lvd_fork_state *f) {
  return f->worker && f->worker->index < f->worker->rt->workers;
}

bool lvd_fork_may_leapfrog(lvd_fork_state *f) {
  return has_room(f) && (!makes_fibers(f) || has_stack(f));
}

void lvd_fork_pass(lvd_fork_state *f, lvd_fork *slot, lvd_deque *from) {
  if (makes_fibers(f))
    make_fiber(f, slot, from);
  else
    lvd_fork_run(slot, from, lvd_load_relaxed_ptr(&f->deque));
}

static bool steal(lvd_worker *w, lvd_fork_state *f, lvd_deque *d) {
  if (!lvd_deque_has(d) || !has_stack(f)) return false;
  /* Until the fiber exists, only this keeps the application from ending: the stack that has
   * forked may have been abandoned. */
  lvd_worker_set_current_app(w, LVD_ANY_APP(w));
  lvd_fork *slot = lvd_deque_take(d);
  if (slot) {
    lvd_count(&f->stolen, 1);
    make_fiber(f, slot, d);
  }
  lvd_worker_set_current_app(w, NULL);
  return slot != NULL;
}

/* ---- polling, sleeping, waking --------------------------------------------------------------- */

/* Wakes `w` if it sleeps; does not interrupt what runs there. */
void lvd_forks_notify(lvd_worker *w) {
  uint32_t sleep;
  if (!lvd_inbox_needs_wake(&w->inbox, &sleep)) return;
  lvd_os_wake(&w->inbox.waiting);
  lvd_inbox_ack_wake(&w->inbox, sleep);
}

static lvd_fork_set *forks_to_look_at(const lvd_worker *w) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&w->rt->forks);
  return forks && w->index < w->rt->workers && lvd_load_relaxed_u32(&w->available) ? forks : NULL;
}

static bool steal_or_request(lvd_worker *w, lvd_fork_state *f) {
  lvd_fork_set *forks = f->forks;
  uint32_t n = lvd_deques_of(forks);
  if (!n) return false;
  f->random = f->random * 6364136223846793005u + 1442695040888963407u;
  uint32_t from = (uint32_t)(f->random >> 33) % n;
  for (uint32_t i = 0; i < n; i++)
    if (steal(w, f, lvd_deque_of(forks, (from + i) % n))) return true;
  for (uint32_t i = 0; i < n; i++) {
    lvd_deque *d = lvd_deque_of(forks, i);
    if (d != lvd_load_relaxed_ptr(&f->deque)) lvd_deque_ask(d, f);
  }
  return false;
}

/* A woken worker has looked for work, or will not. */
static void end_waking(lvd_worker *w) {
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&w->fork_sleeps) == LVD_WAKING))
    lvd_sleeps_set(lvd_load_relaxed_ptr(&w->rt->forks), w, LVD_AWAKE);
}

bool lvd_forks_poll(lvd_worker *w) {
  lvd_fork_state *f =
      forks_to_look_at(w) && !lvd_fork_proxy_is_taken(w) ? lvd_fork_state_self() : NULL;
  bool found = f && steal_or_request(w, f);
  end_waking(w);
  return found;
}

bool lvd_forks_before_sleep(lvd_worker *w, int64_t *most) {
  end_waking(w);
  lvd_fork_set *forks = forks_to_look_at(w);
  if (!forks) return false;
  lvd_fork_state *f = lvd_fork_state_self();
  if (!f) return false;
  if (lvd_fork_proxy_is_taken(w)) {
    lvd_store_relaxed_u32(&w->fork_sleeps, LVD_LENT);
    lvd_fence_seq_cst();
    if (!lvd_fork_proxy_is_taken(w)) { /* the thread has just left, or waits */
      lvd_store_relaxed_u32(&w->fork_sleeps, LVD_AWAKE);
      return steal_or_request(w, f);
    }
    for (uint32_t i = 0, n = lvd_deques_of(forks); i < n; i++)
      if (lvd_deque_has(lvd_deque_of(forks, i))) *most = RECHECK_NS;
    return false;
  }
  lvd_store_relaxed_u32(&w->fork_sleeps, LVD_SLEEPS);
  lvd_add_relaxed_u32(&forks->sleepers, 1);
  lvd_fence_seq_cst();
  if (!steal_or_request(w, f)) return false;
  lvd_forks_after_sleep(w);
  return true;
}

bool lvd_forks_may_sleep(const lvd_worker *w) {
  uint32_t sleeps = lvd_load_relaxed_u32(&w->fork_sleeps);
  return !forks_to_look_at(w) || sleeps == LVD_SLEEPS || sleeps == LVD_LENT;
}

void lvd_forks_after_sleep(lvd_worker *w) {
  uint32_t sleeps = lvd_load_relaxed_u32(&w->fork_sleeps);
  if (sleeps == LVD_AWAKE || sleeps == LVD_WAKING) return;
  lvd_sleeps_set(lvd_load_relaxed_ptr(&w->rt->forks), w, LVD_AWAKE);
}

/* All sleeping workers are in LVD_LENT: wakes one at intervals, to check whether its thread
 * still computes. */
static void wake_lent_worker(lvd_fork_set *forks) {
  uint64_t now = lvd_os_ticks(), last = lvd_load_relaxed_u64(&forks->lent_worker_woken_at);
  if (lvd_os_ticks_to_ns(now - last) < RECHECK_NS) return;
  lvd_store_relaxed_u64(&forks->lent_worker_woken_at, now);
  for (uint32_t i = 0; i < forks->rt->workers; i++)
    if (lvd_fork_proxy_wake(&forks->rt->worker[i])) return;
}

/* Wakes `w` if it sleeps and would steal. *more: others do so, too. */
static bool wake(lvd_fork_set *forks, lvd_worker *w, bool *more) {
  uint32_t sleeps = LVD_SLEEPS;
  if (lvd_load_relaxed_u32(&w->fork_sleeps) != LVD_SLEEPS ||
      !lvd_cas_relaxed_u32(&w->fork_sleeps, &sleeps, LVD_WAKING))
    return false;
  lvd_add_relaxed_u32(&forks->waking, 1);
  *more = lvd_add_relaxed_u32(&forks->sleepers, UINT32_MAX) > 1;
  lvd_forks_notify(w);
  return true;
}

bool lvd_forks_wake(lvd_fork_state *by) {
  if (lvd_load_relaxed_u32(&by->gone)) return false;
  lvd_fork_set *forks = by->forks;
  lvd_runtime *rt = forks->rt;
  lvd_fence_seq_cst();
  if (!by->worker) lvd_fork_proxy_poll(by);
  /* The worker that lent its place fell asleep as a thief; it may not steal while this thread
   * computes. */
  if (by->place != LVD_NOWHERE &&
      lvd_load_relaxed_u32(&rt->worker[by->place].fork_sleeps) == LVD_SLEEPS)
    lvd_sleeps_set(forks, &rt->worker[by->place], LVD_LENT);
  if (!lvd_load_relaxed_u32(&forks->sleepers)) {
    wake_lent_worker(forks);
    return false;
  }
  bool more = false;
  for (uint32_t i = 0; i < rt->workers; i++)
    if (wake(forks, &rt->worker[i], &more)) {
      lvd_count(&by->woken, 1);
      return more;
    }
  return false;
}
