/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters with one writer, words that are read while they change, and checks of the runtime's own invariants. */
#ifndef LVD_CORE_COUNTERS_H
#define LVD_CORE_COUNTERS_H

#include <levada/atomic.h>

/* A function that reads words which their owner writes plainly at the same time, and to whom any of
 * their values will do: counters, and what somebody waits for. Words of a machine's width do not
 * tear; the thread sanitizer is told that we know. */
#if defined __SANITIZE_THREAD__ /* gcc: what moves into its caller is watched with that */
#define LVD_RACY_READ __attribute__((no_sanitize("thread"), noipa))
#else
#define LVD_RACY_READ __attribute__((no_sanitize("thread")))
#endif

/* One writer, many readers: a counter. */
static inline void lvd_count(lvd_a64 *c, uint64_t n) {
  lvd_store_relaxed_u64(c, lvd_load_relaxed_u64(c) + n);
}

#ifdef LVD_DEBUG
#include <stdlib.h>
#define lvd_assert(x) ((x) ? (void)0 : abort())
#else
#define lvd_assert(x) ((void)0)
#endif

/* Never less than before: it is a counter. */
static inline uint64_t lvd_counter_monotonic(lvd_a64 *most, uint64_t is) {
  uint64_t told = lvd_load_relaxed_u64(most);
  while (told < is && !lvd_cas_relaxed_u64(most, &told, is)) {
  }
  return told < is ? is : told;
}

#endif
