/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A cache that is not coherent with memory (levada/caches.h), for the machine that is a process.
 * What is written to the window's addresses reaches the memory behind them only line by line, by
 * the hooks. Stricter than real caches: a line that was never invalidated is not read from
 * memory. */
#ifndef LVD_NATIVE_CACHES_H
#define LVD_NATIVE_CACHES_H

#include <levada/caches.h>

extern const lvd_caches lvd_native_caches;

/* `view`: where the processor sees the `size` bytes of `memory`. `evicts`: each call also writes
 * back a few dirty lines near recently used ones, as a cache may do at any time. */
void lvd_native_caches_begin(void *view, void *memory, size_t size, bool evicts);
/* Also after a program was given up, which may have interrupted a hook. */
void lvd_native_caches_again(void);

#endif
