/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork deque: the protocol of a deque's owner and its thieves; the fast path is in
 * levada/fork.h.
 *
 *        tail            split             head            end
 *   taken  |   public      |    private      |    free      |
 *
 * The owner pushes and joins at the head. Private slots cost it only a comparison. The public
 * part is changed by compare-and-swap of the single word `ends`: by thieves (tail + 1), and by
 * the owner (split), which publishes half of its private slots when a thief requests work, and
 * takes half of the public slots back when it needs one of them. A join of a slot below the
 * tail finds it stolen; since the oldest slot is stolen first, so are all below it.
 *
 * The `state` of a stolen slot: 0; then the address of the deque of the thread that runs it
 * (added); that and WAITS while the owner sleeps or is suspended; and DONE or FAILED. While it
 * waits, the owner leapfrogs: it steals from the thief that has stolen from it, so that what
 * it runs meanwhile is part of what it waits for, and its stack does not grow beyond what the
 * call itself would have needed (Wagner and Calder, 1993).
 *
 * Guarantees
 *   D1  Each fork is run exactly once: by one thief, or by its owner.
 *   D2  The thread that runs a fork sees all that its owner did before the fork; the owner sees
 *       after the join all that was done in it.
 *   D3  A request is served: after it the owner's next fork, or its next join with private slots
 *       left, publishes a slot. No worker sleeps while a slot is public (steal.c).
 *
 * The number of deques is limited. A fork on a stack without a deque returns LVD_NO_SLOT, and
 * its join makes the call directly. The fiber may wait in between and find a deque when it
 * resumes: what it forks then has a slot and is joined before the fork without one; so at that
 * join the deque is empty, and is released.
 *
 * Pairs of orders
 *   share: cas_release ends          -> take: cas_acquire ends       arguments, app, scopes (D2)
 *   run: exchange_release state DONE -> join: load_acquire state     the result (D2)
 *   run: add_release state           -> join: load_acquire state     the thief's deque
 *   serve: words, exchange_release asked 0 -> ask: exchange_acquire asked 1, words
 *                                       a thief that finds asked 0 writes the thread's words after
 *                                       serve has: so its request is not overwritten (D3)
 *
 * Sources: lazy task creation (Mohr, Kranz and Halstead, 1990); "Lazy Remote Procedure Call in
 * C" (Latendresse and Feeley, 1997); the split deque with work requests of Lace (van Dijk and
 * van de Pol, 2014). */
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "fork.h"

#include <string.h>

/* Deques are aligned, so the low bits of their addresses are free. */
enum { DONE = 1, FAILED = 3, WAITS = 2 };
#define END_OF_MEMORY ((void *)UINTPTR_MAX)

#ifndef LVD_FORK_THREAD
#ifdef __x86_64__ /* defined in src/fork/fork_x86_64.S */
void lvd_preserve_most_slow(void);
void lvd_preserve_most_join_slow_lib(void);
#ifndef __clang__ /* clang has it from the header */
typedef struct lvd_fork_slow_fns {
  void (*fork)(void);
  void (*join)(void);
} lvd_fork_slow_fns;
extern LVD_API const lvd_fork_slow_fns lvd_fork_slow_preserve_most;
#endif
const lvd_fork_slow_fns lvd_fork_slow_preserve_most = {
    (__typeof__(lvd_fork_slow_preserve_most.fork))lvd_preserve_most_slow,
    (__typeof__(lvd_fork_slow_preserve_most.join))lvd_preserve_most_join_slow_lib};
#endif
#endif

/* ---- thieves ------------------------------------------------------------------------------ */

lvd_fork *lvd_deque_take(lvd_deque *d) {
  uint64_t ends = lvd_load_relaxed_u64(&d->ends);
  while (lvd_tail(ends) < lvd_split(ends))
    if (lvd_cas_acquire_u64(&d->ends, &ends, ends + ((uint64_t)1 << 32)))
      return &d->slot[lvd_tail(ends)];
  return NULL;
}

void lvd_deque_ask(lvd_deque *d, lvd_fork_state *by) {
  if (lvd_load_relaxed_u32(&d->asked)) return;
  lvd_fork_state *f = lvd_load_acquire_ptr(&d->thread);
  if (!f || lvd_exchange_acquire_u32(&d->asked, 1)) return;
  lvd_count(&by->steal_requests, 1);
  lvd_os_lock(&f->lock);
  if (f->thread) {
    lvd_store_relaxed_ptr(&f->thread->limit, NULL);
    lvd_store_relaxed_ptr(&f->thread->floor, END_OF_MEMORY);
  }
  lvd_os_unlock(&f->lock);
}

/* Sets whether the clock may abandon the running actor. In this file it may not, where it would
 * leave locks held. Returns the previous value. */
static uint32_t set_abandon(lvd_fork_state *f, uint32_t may) {
  if (!f || !f->worker) return 0;
  lvd_fence_compiler();
  uint32_t could = f->worker->abandonable;
  f->worker->abandonable = may;
  lvd_fence_compiler();
  return could;
}

/* Requests the next slot, too, before its owner continues and forks it. */
static void request_next(lvd_deque *from) {
  lvd_fork_state *f = lvd_fork_state_self();
  if (!f || lvd_deque_has(from)) return;
  uint32_t abandonable = set_abandon(f, 0);
  lvd_deque_ask(from, f);
  set_abandon(f, abandonable);
}

static void complete_stolen(lvd_fork *slot, lvd_deque *from, uint64_t how) {
  uint64_t was = lvd_exchange_release_u64(&slot->state, how);
  if (was & WAITS) lvd_fork_complete(from); /* not read from the slot: that may be reused by now */
}

void lvd_fork_run(lvd_fork *slot, lvd_deque *from, lvd_deque *here) {
  lvd_add_release_u64(&slot->state, (uint64_t)(uintptr_t)here);
  lvd_cancel_scope *scope = lvd_deque_scope(from, (uint32_t)(slot - from->slot));
  if (LVD_LIKELY(!scope)) {
    slot->run(slot);
  } else { /* what it forks is in the same scope */
    lvd_cancel_scope same = {.cancelled = {0}};
    lvd_scope_enter(&same, scope);
    if (!lvd_cancelled()) slot->run(slot);
    lvd_cancel_end(&same);
  }
  request_next(from);
  complete_stolen(slot, from, DONE);
}

void lvd_fork_fail(lvd_fork *slot, lvd_deque *from) { complete_stolen(slot, from, FAILED); }

static lvd_deque *thief_of(uint64_t state) {
  return (lvd_deque *)(uintptr_t)(state & ~(uint64_t)(DONE | FAILED | WAITS));
}

void lvd_deque_fail(lvd_deque *d, const lvd_deque *here) {
  uint32_t tail = lvd_tail(lvd_load_relaxed_u64(&d->ends));
  for (uint32_t i = 0; i < tail; i++)
    if (thief_of(lvd_load_relaxed_u64(&d->slot[i].state)) == here) lvd_fork_fail(&d->slot[i], d);
}

void lvd_fork_withdraw(lvd_fork *slot, const lvd_deque *here) {
  if (thief_of(lvd_load_relaxed_u64(&slot->state)) == here)
    lvd_add_relaxed_u64(&slot->state, -(uint64_t)(uintptr_t)here);
}

/* ---- the owner ---------------------------------------------------------------------------- */

/* Records the application, actor and level of these forks, for thieves. */
static void record_owner(const lvd_fork_state *f, lvd_deque *d) {
  lvd_entity *e = f->worker ? f->worker->current : NULL;
  bool own = e && e->app != lvd_load_relaxed_ptr(&f->forks->app);
  lvd_store_relaxed_ptr(&d->app, own ? e->app : NULL);
  lvd_store_relaxed_ptr(&d->actor, e && !e->is_fiber && e->stack ? e : NULL);
  if (e && !e->is_fiber) e->forks = true;
  lvd_store_relaxed_u32(&d->level, e ? e->level : lvd_level_of(0));
}

static void set_split(lvd_deque *d, uint32_t split) {
  uint64_t ends = lvd_load_relaxed_u64(&d->ends);
  while (!lvd_cas_release_u64(&d->ends, &ends, lvd_ends(lvd_tail(ends), split))) {
  }
  d->split = split;
}

/* Publishes half of the private slots, rounded up. False: there are none. */
static bool share(lvd_fork_state *f, lvd_deque *d, const lvd_fork *head) {
  uint32_t n = (uint32_t)(head - d->slot);
  if (n <= d->split || lvd_load_relaxed_u32(&f->gone)) return false;
  record_owner(f, d);
  if (!f->worker) lvd_store_relaxed_u64(&f->shares, lvd_os_ticks());
  set_split(d, d->split + (n - d->split + 1) / 2);
  lvd_count(&f->published, 1);
  return true;
}

void lvd_deque_publish_all(lvd_deque *d, lvd_fork *head, const lvd_fork_state *f) {
  record_owner(f, d);
  set_split(d, (uint32_t)(head - d->slot));
}

/* Joins above this slot take the fast path; while a scope is cancelled, each join takes the slow
 * one. */
static void set_floor(const lvd_deque *d) {
  lvd_store_relaxed_ptr(&lvd_forks.floor, (void *)(uintptr_t)&d->slot[d->split]);
  if (LVD_LIKELY(!d->innermost)) return;
  lvd_fence_seq_cst();
  if (lvd_deque_cancelled(d)) lvd_store_relaxed_ptr(&lvd_forks.floor, END_OF_MEMORY);
}

/* Sets the words that the fast paths read, and serves requests. */
static void serve(lvd_fork_state *f, lvd_deque *d, const lvd_fork *head) {
  for (;;) {
    set_floor(d);
    lvd_store_relaxed_ptr(&lvd_forks.limit, &d->slot[LVD_DEQUE_SLOTS]);
    if (!lvd_exchange_release_u32(&d->asked, 0)) break;
    if (share(f, d, head) && !lvd_forks_wake(f)) continue;
    /* Nothing to publish, or more thieves to serve: at the next fork. */
    lvd_store_relaxed_u32(&d->asked, 1);
    set_floor(d);
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
    return;
  }
  /* A woken worker requests work when it runs, and the owner may be in a long call by then: so
   * the request is made for it. */
  if (LVD_UNLIKELY(lvd_forks_are_waking(f)) && !lvd_deque_has(d)) {
    lvd_store_relaxed_u32(&d->asked, 1);
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  }
}

/* Ends a recursion that forks too deep, unless nothing may be abandoned here. */
static void need_room(const lvd_fork_state *f) {
  lvd_worker *w = f ? f->worker : NULL;
  if (w && w->abandonable && LVD_UNLIKELY(!lvd_no_abandon_has_room(w))) lvd_no_abandon_overflow(w);
}

lvd_fork *lvd_fork_slow(void (*run)(lvd_fork *), const void *bytes, size_t size) {
  lvd_fork_state *f = lvd_fork_state_self();
  need_room(f);
  lvd_deque *d = f ? lvd_fork_state_deque(f) : NULL;
  if (!d) return LVD_NO_SLOT;
  if (f->worker) lvd_exit_if_overdue(f->worker);
  uint32_t abandonable = set_abandon(f, 0);
  lvd_fork *slot = lvd_forks.head, *head = slot;
  /* Full: the join finds the head unchanged, and makes the call. */
  if (slot == &d->slot[LVD_DEQUE_SLOTS]) {
    lvd_count(&f->full, 1);
  } else {
    slot->run = run;
    if (size) memcpy(slot->record, bytes, size);
    lvd_forks.head = ++head;
  }
  serve(f, d, head);
  set_abandon(f, abandonable);
  return slot;
}

/* Takes the public slot `i` back. False: it was stolen. */
static bool take_back(lvd_deque *d, uint32_t i) {
  uint64_t ends = lvd_load_relaxed_u64(&d->ends);
  for (;;) {
    uint32_t tail = lvd_tail(ends);
    if (tail > i) return false;
    uint32_t split = tail + (i - tail) / 2;
    if (lvd_cas_relaxed_u64(&d->ends, &ends, lvd_ends(tail, split))) {
      d->split = split;
      return true;
    }
  }
}

/* Waits for the stolen call of `slot`. False: it has failed. In what is run here meanwhile an
 * actor may be abandoned if `abandonable`. */
static bool await(lvd_fork_state *f, lvd_deque *d, lvd_fork *slot, uint32_t abandonable) {
  enum { SPIN_NS = 20000 };
  uint64_t start = 0, state;
  for (uint32_t looks = 0;;) {
    state = lvd_load_acquire_u64(&slot->state);
    if (state == DONE || state == FAILED) break;
    lvd_deque *thief = thief_of(state); /* null: it has yet to store its deque */
    bool may = thief && lvd_load_relaxed_ptr(&thief->app) == lvd_load_relaxed_ptr(&d->app) &&
               lvd_fork_may_leapfrog(f);
    lvd_fork *leap = may ? lvd_deque_take(thief) : NULL;
    if (leap) {
      looks = 0;
      /* The slot belongs to another thief by now. */
      if (thief_of(lvd_load_relaxed_u64(&slot->state)) != thief) {
        lvd_fork_pass(f, leap, thief);
        continue;
      }
      lvd_count(&f->leapfrogged, 1);
      set_abandon(f, abandonable);
      lvd_fork_run(leap, thief, d);
      set_abandon(f, 0);
      continue;
    }
    if (thief) lvd_deque_ask(thief, f);
    for (uint32_t i = 0; i < lvd_spin_pauses(looks); i++) lvd_os_relax();
    if (looks++ == 0) start = lvd_os_ticks();
    bool other = f->forks->rt->one_core ||
                 (f->worker && f->worker->index < f->worker->rt->workers &&
                  (f->worker->ready_queues || lvd_inbox_pending(&f->worker->inbox)));
    if (!other && lvd_os_ticks_to_ns(lvd_os_ticks() - start) < SPIN_NS) continue;
    if (!lvd_cas_relaxed_u64(&slot->state, &state, state | WAITS)) continue;
    lvd_count(&f->waits, 1);
    lvd_fork_wait(f, d);
    set_abandon(f, 0);
  }
  lvd_store_relaxed_u64(&slot->state, 0);
  return state == DONE;
}

bool lvd_fork_join_slow_lib(lvd_fork *slot) {
  lvd_fork_state *f = lvd_fork_state_self();
  if (slot == LVD_NO_SLOT) { /* the head must be set to it, and no slot of a deque can be */
    if (f) lvd_fork_state_drop_deque(f);
    lvd_forks.head = slot;
    return true;
  }
  need_room(f);
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  uint32_t i = (uint32_t)(slot - d->slot), abandonable = set_abandon(f, 0);
  bool ours = i >= d->split || take_back(d, i), whole = true;
  if (!ours) {
    whole = await(f, d, slot, abandonable);
    /* All slots up to here were stolen: no other thread changes `ends`. */
    lvd_store_relaxed_u64(&d->ends, lvd_ends(i, i));
    d->split = i;
  }
  lvd_forks.head = slot;
  serve(f, d, slot);
  /* Its application ends, so this call is abandoned too. */
  if (!whole) lvd_os_jump(f->worker->escape);
  set_abandon(f, abandonable);
  return ours && !lvd_deque_cancelled(d);
}

bool lvd_deque_abandon(lvd_deque *d) {
  uint64_t ends = lvd_load_relaxed_u64(&d->ends);
  while (!lvd_cas_relaxed_u64(&d->ends, &ends, lvd_ends(lvd_tail(ends), lvd_tail(ends)))) {
  }
  bool idle = true;
  for (uint32_t i = 0; i < lvd_tail(ends); i++) {
    uint64_t state = lvd_load_acquire_u64(&d->slot[i].state);
    idle &= state == DONE || state == FAILED;
  }
  for (uint32_t i = 0; idle && i < lvd_tail(ends); i++) lvd_store_relaxed_u64(&d->slot[i].state, 0);
  d->split = lvd_tail(ends);
  return idle;
}
