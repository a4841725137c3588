/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Atomic operations, named by memory order, so that one search finds each order in use.
 *
 * There are deliberately no seq_cst accesses: where a store must precede a later load, a seq_cst
 * *fence* is used, which the model checker and the reader both understand. Each word is accessed
 * with one width. The words are structs, so that no plain access is possible. Freestanding; C17
 * and C++17. */
#ifndef LVD_ATOMIC_H
#define LVD_ATOMIC_H

#include <levada/base.h>

typedef struct lvd_a32 {
  uint32_t word;
} lvd_a32;
typedef struct lvd_a64 {
  uint64_t word;
} lvd_a64;
typedef struct lvd_aptr {
  void *word;
} lvd_aptr;

#define LVD_ATOMIC_WIDTH(suffix, T, A)                                                             \
  static inline T lvd_load_relaxed_##suffix(const A *a) {                                          \
    return __atomic_load_n(&a->word, __ATOMIC_RELAXED);                                            \
  }                                                                                                \
  static inline T lvd_load_acquire_##suffix(const A *a) {                                          \
    return __atomic_load_n(&a->word, __ATOMIC_ACQUIRE);                                            \
  }                                                                                                \
  static inline void lvd_store_relaxed_##suffix(A *a, T v) {                                       \
    __atomic_store_n(&a->word, v, __ATOMIC_RELAXED);                                               \
  }                                                                                                \
  static inline void lvd_store_release_##suffix(A *a, T v) {                                       \
    __atomic_store_n(&a->word, v, __ATOMIC_RELEASE);                                               \
  }                                                                                                \
  static inline T lvd_exchange_relaxed_##suffix(A *a, T v) {                                       \
    return __atomic_exchange_n(&a->word, v, __ATOMIC_RELAXED);                                     \
  }                                                                                                \
  static inline T lvd_exchange_acquire_##suffix(A *a, T v) {                                       \
    return __atomic_exchange_n(&a->word, v, __ATOMIC_ACQUIRE);                                     \
  }                                                                                                \
  static inline T lvd_exchange_release_##suffix(A *a, T v) {                                       \
    return __atomic_exchange_n(&a->word, v, __ATOMIC_RELEASE);                                     \
  }                                                                                                \
  static inline T lvd_exchange_acq_rel_##suffix(A *a, T v) {                                       \
    return __atomic_exchange_n(&a->word, v, __ATOMIC_ACQ_REL);                                     \
  }                                                                                                \
  /* On failure *expected holds what was found, read relaxed. */                                   \
  static inline bool lvd_cas_relaxed_##suffix(A *a, T *expected, T v) {                            \
    return __atomic_compare_exchange_n(&a->word, expected, v, false, __ATOMIC_RELAXED,             \
                                       __ATOMIC_RELAXED);                                          \
  }                                                                                                \
  static inline bool lvd_cas_acquire_##suffix(A *a, T *expected, T v) {                            \
    return __atomic_compare_exchange_n(&a->word, expected, v, false, __ATOMIC_ACQUIRE,             \
                                       __ATOMIC_RELAXED);                                          \
  }                                                                                                \
  static inline bool lvd_cas_release_##suffix(A *a, T *expected, T v) {                            \
    return __atomic_compare_exchange_n(&a->word, expected, v, false, __ATOMIC_RELEASE,             \
                                       __ATOMIC_RELAXED);                                          \
  }                                                                                                \
  static inline bool lvd_cas_acq_rel_##suffix(A *a, T *expected, T v) {                            \
    return __atomic_compare_exchange_n(&a->word, expected, v, false, __ATOMIC_ACQ_REL,             \
                                       __ATOMIC_RELAXED);                                          \
  }

LVD_ATOMIC_WIDTH(u32, uint32_t, lvd_a32)
LVD_ATOMIC_WIDTH(u64, uint64_t, lvd_a64)
LVD_ATOMIC_WIDTH(ptr, void *, lvd_aptr)
#undef LVD_ATOMIC_WIDTH

#define LVD_ATOMIC_ADD(suffix, T, A)                                                               \
  static inline T lvd_add_relaxed_##suffix(A *a, T v) {                                            \
    return __atomic_fetch_add(&a->word, v, __ATOMIC_RELAXED);                                      \
  }                                                                                                \
  static inline T lvd_add_release_##suffix(A *a, T v) {                                            \
    return __atomic_fetch_add(&a->word, v, __ATOMIC_RELEASE);                                      \
  }                                                                                                \
  static inline T lvd_add_acq_rel_##suffix(A *a, T v) {                                            \
    return __atomic_fetch_add(&a->word, v, __ATOMIC_ACQ_REL);                                      \
  }

LVD_ATOMIC_ADD(u32, uint32_t, lvd_a32)
LVD_ATOMIC_ADD(u64, uint64_t, lvd_a64)
#undef LVD_ATOMIC_ADD

/* Orders all earlier accesses before all later ones, including a store before a load. */
static inline void lvd_fence_seq_cst(void) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/* Prevents the compiler from moving accesses; no cost at run time. The cheap half of an asymmetric
 * pair; the other half is lvd_os_barrier (a membarrier on every core of the process). */
static inline void lvd_fence_compiler(void) { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

#endif
