/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Call guard: tells which calls of a node are in progress, so that finalizing the node can wait
 * until none can still access its data. A short call, which never waits, announces itself with two
 * plain stores to a cache line of its thread (hazard pointer, Michael 2004). In a long call a fiber
 * may change threads, and therefore long calls are counted.
 *
 * Guarantees
 *   N1  After a node's end has found no call in progress, no call touches anything that belonged to
 *       it.
 *
 * Pairs of orders
 *   short call: slot = node, [light], load active   <> end: active + 1, [heavy], load slots      N1
 *   long call: long_calls + 1, [light], load active <> end: active + 1, [heavy], load long_calls N1
 *   call ends: long_calls - 1, or slot = null (release) -> end: load_acquire those               N1
 *
 * [light] and [heavy] as in levada/channel.h. A caller has read the expected `active` (acquire)
 * before it enters, and so sees how the node was initialized. */
#ifndef LVD_MCAPI_CALL_GUARD_H
#define LVD_MCAPI_CALL_GUARD_H

#include <levada/channel.h>

#include "../../platform/platform.h"

/* One per thread. */
typedef struct mc_call_slot {
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_aptr node;  /* of which the thread is in a short call; null: none */
  lvd_a32 in_use; /* 1: by a living thread */
  lvd_aptr next;  /* slots are never freed */
} mc_call_slot;

static inline void mc_short_call_leave(mc_call_slot *h) { lvd_store_release_ptr(&h->node, NULL); }

/* False: the node has ended, or is ending; the call must still be left. */
static inline bool mc_short_call_enter(mc_call_slot *h, void *node, const lvd_a32 *active,
                                       uint32_t expected, bool fenced) {
  lvd_store_relaxed_ptr(&h->node, node);
  lvd_membarrier_light(fenced);
  return LVD_LIKELY(lvd_load_relaxed_u32(active) == expected);
}

static inline void mc_long_call_leave(lvd_a32 *long_calls) { lvd_add_release_u32(long_calls, -1u); }

/* The same for a long call. */
static inline bool mc_long_call_enter(lvd_a32 *long_calls, const lvd_a32 *active, uint32_t expected,
                                      bool fenced) {
  lvd_add_relaxed_u32(long_calls, 1);
  lvd_membarrier_light(fenced);
  return lvd_load_relaxed_u32(active) == expected;
}

static inline bool mc_call_slot_is_in(const mc_call_slot *h, const void *node) {
  return lvd_load_acquire_ptr(&h->node) == node;
}

/* Called after `active` + 1 and lvd_os_barrier: once true, it stays true. */
static inline bool mc_no_call_in(const void *node, const lvd_a32 *long_calls,
                                 const lvd_aptr *slots) {
  if (lvd_load_acquire_u32(long_calls)) return false;
  for (mc_call_slot *h = lvd_load_acquire_ptr(slots); h; h = lvd_load_acquire_ptr(&h->next))
    if (mc_call_slot_is_in(h, node)) return false;
  return true;
}

#endif
