/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A cache that does not follow the memory (levada/caches.h), for the machine that is a process: what is
 * written where the window lies is seen there, and goes to the memory behind it by lines and by no other
 * way than the hooks. Stricter than any cache: what was never dropped is not there. */
#ifndef LVD_NATIVE_CACHES_H
#define LVD_NATIVE_CACHES_H

#include <levada/caches.h>

extern const lvd_caches lvd_native_caches;

/* `view`: where the processor sees `memory`, `size` bytes. `evicts`: at each call a few lines near those of
 * late are written back if they were written to, as a cache may do at any time. */
void lvd_native_caches_begin(void *view, void *memory, size_t size, bool evicts);
/* Also after what ran was given up, which may have been within a hook. */
void lvd_native_caches_again(void);

#endif
