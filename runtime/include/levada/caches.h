/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Caches: maintenance hooks for a processor with a cache that is not coherent with the memory that
 * it shares with the host.
 *
 *   clean       writes dirty lines back to memory, before any later store
 *   invalidate  discards cached lines, so that later loads read memory; what was not cleaned may
 *               be lost
 *
 * The remote side provides and calls them. The host maps the window uncached or is coherent, as
 * device files of the kernel (UIO, /dev/mem) and emulators are.
 *
 * Rules
 *   K1  A line (LVD_CACHE_LINE bytes, or less) of shared memory has one writer at a time. Only
 *       exception: the word of the remote side's bell, where each side writes the same values, so
 *       that at most a ring that was already observed is lost.
 *   K2  Data is cleaned before the word that announces it, and that word before the doorbell
 *       is rung.
 *   K3  A word written by the other side is invalidated before each load that must see the newest
 *       value; the data that it announces is invalidated before it is read.
 *   K4  An invalidated line holds no data of this side that is still needed. Memory that is
 *       returned to its owner has no dirty lines that could be written back later: each was
 *       cleaned or invalidated.
 *
 * Freestanding programs call them through `lvd_remote_caches`, a table that the loader passes
 * (lvd_remote_hal). Without a table a hook costs a load and a branch, with LVD_CACHES=0 nothing.
 * C17 and C++17. */
#ifndef LVD_CACHES_H
#define LVD_CACHES_H

#include <levada/base.h>

/* 1: the hooks are called. A freestanding program that is not linked with the remote library must
 * either use -DLVD_CACHES=0 or define `lvd_remote_caches` itself. */
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

/* Both accept any byte range, process every line that overlaps it, and return when done: no later
 * access of this processor is performed before. */
typedef struct lvd_caches {
  void (*clean)(const void *at, size_t size);
  void (*invalidate)(const void *at, size_t size);
} lvd_caches;

#if LVD_CACHES
extern const lvd_caches *lvd_remote_caches; /* null: nothing to do */
#endif

static inline void lvd_cache_clean(const void *at, size_t size) {
#if LVD_CACHES
  if (lvd_remote_caches) lvd_remote_caches->clean(at, size);
#else
  (void)at, (void)size;
#endif
}

static inline void lvd_cache_invalidate(const void *at, size_t size) {
#if LVD_CACHES
  if (lvd_remote_caches) lvd_remote_caches->invalidate(at, size);
#else
  (void)at, (void)size;
#endif
}

#ifdef __cplusplus
}
#endif
#endif
