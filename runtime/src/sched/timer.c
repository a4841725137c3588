/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "timer.h"

#include <stddef.h>

static lvd_timer *meld(lvd_timer *a, lvd_timer *b) {
  if (!a) return b;
  if (!b) return a;
  if (b->deadline < a->deadline) {
    lvd_timer *t = a;
    a = b;
    b = t;
  }
  b->next = a->child;
  b->previous = a; /* for a first child: its parent */
  if (a->child) a->child->previous = b;
  a->child = b;
  return a;
}

/* The standard two passes: melds pairs from left to right, then all of them from right to left. */
static lvd_timer *meld_all(lvd_timer *first) {
  lvd_timer *pairs = NULL, *root = NULL;
  while (first) {
    lvd_timer *a = first, *b = a->next;
    first = b ? b->next : NULL;
    a->next = a->previous = NULL;
    if (b) b->next = b->previous = NULL;
    a = meld(a, b);
    a->next = pairs;
    pairs = a;
  }
  while (pairs) {
    lvd_timer *next = pairs->next;
    pairs->next = NULL;
    root = meld(root, pairs);
    pairs = next;
  }
  return root;
}

void lvd_timer_add(lvd_timer **heap, lvd_timer *t) {
  t->set = true;
  t->child = t->next = t->previous = NULL;
  *heap = meld(*heap, t);
}

void lvd_timer_remove(lvd_timer **heap, lvd_timer *t) {
  if (!t->set) return;
  t->set = false;
  if (*heap == t) {
    *heap = meld_all(t->child);
    return;
  }
  if (t->previous->child == t)
    t->previous->child = t->next;
  else
    t->previous->next = t->next;
  if (t->next) t->next->previous = t->previous;
  *heap = meld(*heap, meld_all(t->child));
}
