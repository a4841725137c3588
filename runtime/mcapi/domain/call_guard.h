/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Visits: who is in a call of a node, so that its end can wait until nobody is who could look at what goes
 * away with it. Short calls, which never wait, say so for their thread, with two plain stores to a line of
 * its own; in long ones a fiber may change threads, so those are counted.
 *
 * Guarantees
 *   N1  After a node's end has found nobody in it, no call of it touches anything that was its.
 *
 * Pairs of orders
 *   short call: in = node, [light], load active     <> end: active + 1, [heavy], load in       N1
 *   long call: inside + 1, [light], load active     <> end: active + 1, [heavy], load inside   N1
 *   call ends: inside - 1, or in = null (release)    -> end: load_acquire those                N1
 *
 * [light] and [heavy] as in levada/channel.h. Who enters has found `active` as it was expected before, and has
 * seen by that (acquire) what the node began with. */
#ifndef LVD_MCAPI_VISIT_H
#define LVD_MCAPI_VISIT_H

#include <levada/channel.h>

#include "../../platform/platform.h"

/* A thread's. */
typedef struct mc_here {
  LVD_ALIGNED(LVD_LINE) lvd_aptr in; /* the node that it is in a short call of */
  lvd_a32 taken;                     /* by a thread that lives */
  lvd_aptr next;                     /* never freed */
} mc_here;

static inline void mc_here_leave(mc_here *h) { lvd_store_release_ptr(&h->in, NULL); }

/* False: the node has ended, or does; still to be left. */
static inline bool mc_here_enter(mc_here *h, void *node, const lvd_a32 *active, uint32_t expected,
                                 bool fenced) {
  lvd_store_relaxed_ptr(&h->in, node);
  lvd_barrier_light(fenced);
  return LVD_LIKELY(lvd_load_relaxed_u32(active) == expected);
}

static inline void mc_inside_leave(lvd_a32 *inside) { lvd_add_release_u32(inside, -1u); }

/* The same, counted. */
static inline bool mc_inside_enter(lvd_a32 *inside, const lvd_a32 *active, uint32_t expected,
                                   bool fenced) {
  lvd_add_relaxed_u32(inside, 1);
  lvd_barrier_light(fenced);
  return lvd_load_relaxed_u32(active) == expected;
}

static inline bool mc_here_is(const mc_here *h, const void *node) {
  return lvd_load_acquire_ptr(&h->in) == node;
}

/* Behind `active` + 1 and lvd_os_barrier: then this stays so. */
static inline bool mc_nobody_in(const void *node, const lvd_a32 *inside, const lvd_aptr *threads) {
  if (lvd_load_acquire_u32(inside)) return false;
  for (mc_here *h = lvd_load_acquire_ptr(threads); h; h = lvd_load_acquire_ptr(&h->next))
    if (mc_here_is(h, node)) return false;
  return true;
}

#endif
