/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Timers of waiters, ordered by deadline.
 *
 * An intrusive pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986). Adding takes a few
 * stores, which is the case that matters, since most timeouts never expire. A heap is a pointer
 * to its first timer, null when it is empty; the caller provides mutual exclusion. */
#ifndef LVD_TIMER_H
#define LVD_TIMER_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lvd_timer lvd_timer;

struct lvd_timer {
  uint64_t deadline; /* ticks */
  lvd_timer *child, *next, *previous;
  bool set; /* it is in a heap */
};

void lvd_timer_add(lvd_timer **heap, lvd_timer *t); /* t->deadline must be set */
/* Does nothing if `t` is in no heap. */
void lvd_timer_remove(lvd_timer **heap, lvd_timer *t);

#endif
