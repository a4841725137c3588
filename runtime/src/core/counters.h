/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Single-writer counters, intentionally racy reads, and assertions of the runtime's invariants. */
#ifndef LVD_CORE_COUNTERS_H
#define LVD_CORE_COUNTERS_H

#include <levada/atomic.h>

/* Marks a function that reads words which their owner writes with plain stores at the same time,
 * and for which any of the values is acceptable: counters, and what an entity waits for. Words of
 * machine width do not tear; the attribute tells the thread sanitizer that the race is intended. */
#if defined __SANITIZE_THREAD__ /* GCC instruments code inlined into the caller */
#define LVD_RACY_READ __attribute__((no_sanitize("thread"), noipa))
#else
#define LVD_RACY_READ __attribute__((no_sanitize("thread")))
#endif

/* Adds to a counter with one writer and any number of readers. */
static inline void lvd_count(lvd_a64 *c, uint64_t n) {
  lvd_store_relaxed_u64(c, lvd_load_relaxed_u64(c) + n);
}

#ifdef LVD_DEBUG
#include <stdlib.h>
#define lvd_assert(x) ((x) ? (void)0 : abort())
#else
#define lvd_assert(x) ((void)0)
#endif

/* Returns `is`, or the largest value reported so far if that is larger: reported counters never
 * decrease. */
static inline uint64_t lvd_counter_monotonic(lvd_a64 *most, uint64_t is) {
  uint64_t known = lvd_load_relaxed_u64(most);
  while (known < is && !lvd_cas_relaxed_u64(most, &known, is)) {
  }
  return known < is ? is : known;
}

#endif
