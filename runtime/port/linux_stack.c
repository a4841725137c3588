/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks on Linux, each with a guard at its low end.
 *
 * MADV_GUARD_INSTALL (Linux 6.13) marks pages without splitting the mapping. Where it is not to be had
 * a guard is a mapping of its own, two for each stack, and vm.max_map_count ends them near 32,000. */
#include "port.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_STACK
#define MAP_STACK 0
#endif

size_t lvd_port_guard_size(size_t stack) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), guard = stack / 4;
  if (guard > 16 * 1024) guard = 16 * 1024; /* a frame of less cannot step over it */
  return guard < page ? page : guard;
}

lvd_status lvd_port_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out) {
  void *base = mmap(NULL, count * size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) return errno == ENOMEM ? LVD_E_MAPPINGS : LVD_E_MEMORY;
  madvise(base, count * size, MADV_NOHUGEPAGE); /* most stacks need one small page */
  for (uint32_t i = 0; i < count; i++) {
    void *low = (char *)base + i * size;
    if (madvise(low, guard, MADV_GUARD_INSTALL) != 0 && mprotect(low, guard, PROT_NONE) != 0) {
      lvd_status status = errno == ENOMEM ? LVD_E_MAPPINGS : LVD_E_SYSTEM;
      munmap(base, count * size);
      return status;
    }
  }
  *out = base;
  return LVD_OK;
}

void lvd_port_stacks_free(void *base, size_t size) { munmap(base, size); }
