/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What mutants use in place of the runtime's calls where levada/atomic.h has no weaker one.
 * Included before everything else in a mutant, never in the code as it ships. */
#ifndef LVD_MODEL_WEAK_H
#define LVD_MODEL_WEAK_H

#include <levada/atomic.h>

static inline uint32_t weak_add_acquire_u32(lvd_a32 *a, uint32_t v) {
  return __atomic_fetch_add(&a->word, v, __ATOMIC_ACQUIRE);
}
static inline uint32_t weak_add_release_u32(lvd_a32 *a, uint32_t v) {
  return __atomic_fetch_add(&a->word, v, __ATOMIC_RELEASE);
}
static inline uint64_t weak_add_acquire_u64(lvd_a64 *a, uint64_t v) {
  return __atomic_fetch_add(&a->word, v, __ATOMIC_ACQUIRE);
}
static inline uint64_t weak_add_release_u64(lvd_a64 *a, uint64_t v) {
  return __atomic_fetch_add(&a->word, v, __ATOMIC_RELEASE);
}

/* A full fence loses what only it has: the order of an earlier store and a later load. */
static inline void weak_fence_seq_cst(void) { __atomic_thread_fence(__ATOMIC_ACQ_REL); }
static inline void weak_barrier_light(uint32_t fenced) {
  if (fenced) __atomic_thread_fence(__ATOMIC_ACQ_REL);
}
static inline void weak_fence_compiler(void) {}
static inline void weak_os_barrier(void) {}

#endif
