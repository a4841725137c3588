/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork: the protocol of a deque's owner and its thieves; the fast half is in levada/fork.h.
 *
 *        tail            split             head            end
 *   taken  |   public      |    private      |    free      |
 *
 * The owner pushes and joins at the head. What is private costs him nothing but a comparison; the
 * public part is changed by compare-and-swap of the one word `ends`, by thieves (tail + 1) and by
 * the owner (split), who makes half of what is private public when he is asked, and takes half of
 * what is public back when he needs one of it. A join of a slot below the tail was taken; since the
 * oldest is taken first, all below it were, too.
 *
 * A taken slot's `state`: 0, the deque of who runs it (added), that and WAITS when the owner waits in
 * the kernel or has suspended himself, and DONE. While he waits he LEAPS: he takes from who has
 * taken from him, so that what he does meanwhile is part of what he waits for, and his stack does
 * not grow beyond what the call itself would have needed (Wagner and Calder, 1993).
 *
 * Guarantees
 *   D1  Each fork is run exactly once: by one thief, or by its owner.
 *   D2  Who runs it sees all that its owner did before the fork; the owner sees after the join all
 *       that was done in it.
 *   D3  Who asks is served: after an ask the owner's next fork, or his next join with something
 *       private left, makes something public. Nobody sleeps while something is public (steal.c).
 *
 * There are so many deques and no more. Who forks when there is none for his stack gets LVD_NO_SLOT,
 * and the join calls directly. His fiber may wait meanwhile, and come back where there is a deque, or
 * there may be one again: what he forks then has a slot of it, and is joined before the fork that had
 * none; so at that join the deque is empty, and is put away.
 *
 * Pairs of orders
 *   share: cas_release ends          -> take: cas_acquire ends           arguments, app, scopes (D2)
 *   run: exchange_release state DONE -> join: load_acquire state         the result (D2)
 *   run: add_release state           -> join: load_acquire state         the thief's deque
 *   serve: words, exchange_release asked 0 -> ask: exchange_acquire asked 1, words
 *                                       who finds asked 0 tells the thread after serve has set the
 *                                       words: so his telling stays (D3)
 *
 * Sources: lazy task creation (Mohr, Kranz and Halstead, 1990); "Lazy Remote Procedure Call in C"
 * (Latendresse and Feeley, 1997); the split deque with requests of Lace (van Dijk and van de Pol,
 * 2014). */
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "fork.h"

#include <string.h>

enum { DONE = 1, FAILED = 3, WAITS = 2 }; /* deques are aligned: their low bits are free */
#define END_OF_MEMORY ((void *)UINTPTR_MAX)

#ifndef LVD_FORK_THREAD
#ifdef __x86_64__ /* src/fork/fork_x86_64.S */
void lvd_keeping_seldom(void);
void lvd_keeping_settle(void);
#ifndef __clang__ /* which has it from the header */
typedef struct lvd_fork_seldoms {
  void (*fork)(void);
  void (*settle)(void);
} lvd_fork_seldoms;
extern LVD_API const lvd_fork_seldoms lvd_fork_keeping;
#endif
const lvd_fork_seldoms lvd_fork_keeping = {(__typeof__(lvd_fork_keeping.fork))lvd_keeping_seldom,
                                           (__typeof__(lvd_fork_keeping.settle))lvd_keeping_settle};
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
  lvd_count(&by->asked, 1);
  lvd_os_lock(&f->lock);
  if (f->thread) {
    lvd_store_relaxed_ptr(&f->thread->limit, NULL);
    lvd_store_relaxed_ptr(&f->thread->floor, END_OF_MEMORY);
  }
  lvd_os_unlock(&f->lock);
}

/* The clock may abandon an actor whenever it is not in here, where it would leave locks behind.
 * Returns whether it could. */
static uint32_t set_abandon(lvd_fork_state *f, uint32_t may) {
  if (!f || !f->worker) return 0;
  lvd_fence_compiler();
  uint32_t could = f->worker->abandonable;
  f->worker->abandonable = may;
  lvd_fence_compiler();
  return could;
}

/* He wants the next one, too, before its owner goes on and forks it. */
static void ask_again(lvd_deque *from) {
  lvd_fork_state *f = lvd_fork_state_self();
  if (!f || lvd_deque_has(from)) return;
  uint32_t abandonable = set_abandon(f, 0);
  lvd_deque_ask(from, f);
  set_abandon(f, abandonable);
}

static void end_taken(lvd_fork *slot, lvd_deque *from, uint64_t how) {
  uint64_t was = lvd_exchange_release_u64(&slot->state, how);
  if (was & WAITS) lvd_fork_complete(from); /* not by the slot: it may be another's by now */
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
  ask_again(from);
  end_taken(slot, from, DONE);
}

void lvd_fork_fail(lvd_fork *slot, lvd_deque *from) { end_taken(slot, from, FAILED); }

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

/* Whose forks these are, for who takes one. */
static void say_whose(const lvd_fork_state *f, lvd_deque *d) {
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

/* Makes half of what is private public, and of one that one. False: nothing is private. */
static bool share(lvd_fork_state *f, lvd_deque *d, const lvd_fork *head) {
  uint32_t n = (uint32_t)(head - d->slot);
  if (n <= d->split || lvd_load_relaxed_u32(&f->gone)) return false;
  say_whose(f, d);
  if (!f->worker) lvd_store_relaxed_u64(&f->shares, lvd_os_ticks());
  set_split(d, d->split + (n - d->split + 1) / 2);
  lvd_count(&f->shared, 1);
  return true;
}

void lvd_deque_publish_all(lvd_deque *d, lvd_fork *head, const lvd_fork_state *f) {
  say_whose(f, d);
  set_split(d, (uint32_t)(head - d->slot));
}

/* What is not public begins here; while a scope is cancelled, every join has to look. */
static void set_floor(const lvd_deque *d) {
  lvd_store_relaxed_ptr(&lvd_forks.floor, (void *)(uintptr_t)&d->slot[d->split]);
  if (LVD_LIKELY(!d->innermost)) return;
  lvd_fence_seq_cst();
  if (lvd_deque_cancelled(d)) lvd_store_relaxed_ptr(&lvd_forks.floor, END_OF_MEMORY);
}

/* Sets the words that the fast paths look at, and gives those who ask. */
static void serve(lvd_fork_state *f, lvd_deque *d, const lvd_fork *head) {
  for (;;) {
    set_floor(d);
    lvd_store_relaxed_ptr(&lvd_forks.limit, &d->slot[LVD_DEQUE_SLOTS]);
    if (!lvd_exchange_release_u32(&d->asked, 0)) break;
    if (share(f, d, head) && !lvd_forks_wake(f)) continue;
    /* Nothing to give, or more who could be given something: at the next fork. */
    lvd_store_relaxed_u32(&d->asked, 1);
    set_floor(d);
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
    return;
  }
  /* Who has been woken asks when he is here, and the owner may be in a long call by then. */
  if (LVD_UNLIKELY(lvd_forks_coming(f)) && !lvd_deque_has(d)) {
    lvd_store_relaxed_u32(&d->asked, 1);
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  }
}

/* A recursion that forks ends here, if it is too deep, and not where nothing may be abandoned any more. */
static void need_room(const lvd_fork_state *f) {
  lvd_worker *w = f ? f->worker : NULL;
  if (w && w->abandonable && LVD_UNLIKELY(!lvd_no_abandon_has_room(w))) lvd_no_abandon_overflow(w);
}

lvd_fork *lvd_fork_seldom(void (*run)(lvd_fork *), const void *bytes, size_t size) {
  lvd_fork_state *f = lvd_fork_state_self();
  need_room(f);
  lvd_deque *d = f ? lvd_fork_state_deque(f) : NULL;
  if (!d) return LVD_NO_SLOT;
  if (f->worker) lvd_exit_if_overdue(f->worker);
  uint32_t abandonable = set_abandon(f, 0);
  lvd_fork *slot = lvd_forks.head, *head = slot;
  if (slot == &d->slot[LVD_DEQUE_SLOTS]) { /* full: the join finds it as it is, and calls */
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

/* Takes slot `i` back, which is public. False: somebody has taken it. */
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

/* The call of `slot` was taken: goes on when it is done. False: it has failed. In what is run here
 * meanwhile an actor may be abandoned again, if `may`. */
static bool await(lvd_fork_state *f, lvd_deque *d, lvd_fork *slot, uint32_t abandonable) {
  enum { SPIN_NS = 20000 };
  uint64_t start = 0, state;
  for (uint32_t looks = 0;;) {
    state = lvd_load_acquire_u64(&slot->state);
    if (state == DONE || state == FAILED) break;
    lvd_deque *thief = thief_of(state); /* null: he is about to say so */
    bool may = thief && lvd_load_relaxed_ptr(&thief->app) == lvd_load_relaxed_ptr(&d->app) &&
               lvd_fork_may_leapfrog(f);
    lvd_fork *leap = may ? lvd_deque_take(thief) : NULL;
    if (leap) {
      looks = 0;
      if (thief_of(lvd_load_relaxed_u64(&slot->state)) != thief) { /* no more: it is another's */
        lvd_fork_pass(f, leap, thief);
        continue;
      }
      lvd_count(&f->leapt, 1);
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

bool lvd_fork_settle(lvd_fork *slot) {
  lvd_fork_state *f = lvd_fork_state_self();
  if (slot == LVD_NO_SLOT) { /* the head is to be there, and no deque's slot may be */
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
    /* All up to here was taken: nobody but us touches `ends`. */
    lvd_store_relaxed_u64(&d->ends, lvd_ends(i, i));
    d->split = i;
  }
  lvd_forks.head = slot;
  serve(f, d, slot);
  if (!whole) lvd_os_jump(f->worker->escape); /* its application ends, and we with it */
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
