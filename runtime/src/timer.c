/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Timers: the fibers of a worker that wait with a time limit, the next one first.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) through the fibers themselves: to
 * add is a few stores, which is the case that matters, since most time limits never pass. */
#include "fiber.h"

static lvd_fiber *meld(lvd_fiber *a, lvd_fiber *b) {
  if (!a) return b;
  if (!b) return a;
  if (b->deadline < a->deadline) {
    lvd_fiber *t = a;
    a = b;
    b = t;
  }
  b->timer_next = a->timer_child;
  b->timer_previous = a; /* of a first child, the parent */
  if (a->timer_child) a->timer_child->timer_previous = b;
  a->timer_child = b;
  return a;
}

/* Two by two from the left, then all from the right. */
static lvd_fiber *meld_all(lvd_fiber *first) {
  lvd_fiber *pairs = NULL, *root = NULL;
  while (first) {
    lvd_fiber *a = first, *b = a->timer_next;
    first = b ? b->timer_next : NULL;
    a->timer_next = a->timer_previous = NULL;
    if (b) b->timer_next = b->timer_previous = NULL;
    a = meld(a, b);
    a->timer_next = pairs;
    pairs = a;
  }
  while (pairs) {
    lvd_fiber *next = pairs->timer_next;
    pairs->timer_next = NULL;
    root = meld(root, pairs);
    pairs = next;
  }
  return root;
}

void lvd_timer_add(lvd_worker *w, lvd_fiber *f) {
  f->timed = true;
  f->timer_child = f->timer_next = f->timer_previous = NULL;
  w->timers = meld(w->timers, f);
}

void lvd_timer_remove(lvd_worker *w, lvd_fiber *f) {
  if (!f->timed) return;
  f->timed = false;
  if (w->timers == f) {
    w->timers = meld_all(f->timer_child);
    return;
  }
  if (f->timer_previous->timer_child == f)
    f->timer_previous->timer_child = f->timer_next;
  else
    f->timer_previous->timer_next = f->timer_next;
  if (f->timer_next) f->timer_next->timer_previous = f->timer_previous;
  w->timers = meld(w->timers, meld_all(f->timer_child));
}

uint64_t lvd_timers_next(const lvd_worker *w) {
  if (!w->timers) return 0;
  uint64_t now = lvd_port_ticks();
  return w->timers->deadline > now ? w->timers->deadline - now : 1;
}

void lvd_timers_expire(lvd_worker *w, uint64_t now) {
  while (w->timers && w->timers->deadline <= now) {
    lvd_fiber *f = w->timers;
    lvd_timer_remove(w, f);
    lvd_entity_wake(&f->entity.waiter);
  }
}
