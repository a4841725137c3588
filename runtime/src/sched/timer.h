/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Timers: who waits for a time, the next one first.
 *
 * A pairing heap (Fredman, Sedgewick, Sleator and Tarjan, 1986) through what waits itself: to add is a
 * few stores, which is the case that matters, since most time limits never pass. A heap is a pointer to its
 * first timer, null when there is none; who touches it keeps others from it. */
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

void lvd_timer_add(lvd_timer **heap, lvd_timer *t); /* t->deadline is there */
/* It need not be set. */
void lvd_timer_remove(lvd_timer **heap, lvd_timer *t);

#endif
