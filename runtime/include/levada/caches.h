/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Caches: hooks for a processor whose cache does not follow the memory that it shares with the host.
 *
 *   clean   what was written there goes to memory, before anything that is written later
 *   drop    what is read there from now on comes from memory; what was not cleaned may be lost
 *
 * The far side has them, and calls them; the host maps the window without a cache, or is coherent, as
 * device files of the kernel (UIO, /dev/mem) and emulators are.
 *
 * Rules
 *   K1  A line (LVD_LINE, or less) of shared memory has one writer at a time. The one exception is
 *       the word of the far side's bell: each side writes the same values there, and loses nothing
 *       but a ring that has been heard.
 *   K2  What was written is cleaned before the word that tells of it is, and that before the
 *       doorbell is rung.
 *   K3  A word that the other side writes is dropped before each read of it that is to see news, and
 *       what it tells of before that is read.
 *   K4  What is dropped has nothing of this side's own that is still needed; and memory that is given
 *       back holds nothing of it that could be written back later: it was cleaned, or dropped.
 *
 * Freestanding programs call them through `lvd_far_caches`, a table that the loader gives
 * (lvd_far_board); without one they cost a load and a branch, and with LVD_CACHES=0 nothing. C17 and
 * C++17. */
#ifndef LVD_CACHES_H
#define LVD_CACHES_H

#include <levada/base.h>

/* 1: the hooks are called. A freestanding program that is not linked with the far library either
 * says -DLVD_CACHES=0 or defines `lvd_far_caches` itself. */
#ifndef LVD_CACHES
#if __STDC_HOSTED__
#define LVD_CACHES 0
#else
#define LVD_CACHES 1
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Both take any bytes, do it for all lines that hold one of them, and return when it is done: no later
 * access of this processor comes before. */
typedef struct lvd_caches {
  void (*clean)(const void *at, size_t size);
  void (*drop)(const void *at, size_t size);
} lvd_caches;

#if LVD_CACHES
extern const lvd_caches *lvd_far_caches; /* null: there is nothing to do */
#endif

static inline void lvd_cache_clean(const void *at, size_t size) {
#if LVD_CACHES
  if (lvd_far_caches) lvd_far_caches->clean(at, size);
#else
  (void)at, (void)size;
#endif
}

static inline void lvd_cache_drop(const void *at, size_t size) {
#if LVD_CACHES
  if (lvd_far_caches) lvd_far_caches->drop(at, size);
#else
  (void)at, (void)size;
#endif
}

#ifdef __cplusplus
}
#endif
#endif
