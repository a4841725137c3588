/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory on Linux: pages for state, and rings mapped twice in a row, so that a span of any length
 * up to the ring's size never wraps (the reasons are in docs/decisions). */
#include "../platform.h"
#include "syscall.h"

static size_t page(void) { return lvd_sys_page_size(); }

static size_t whole_pages(size_t size) { return (size + page() - 1) / page() * page(); }

void *lvd_os_alloc(size_t size) {
  void *p = lvd_sys_mmap(NULL, whole_pages(size ? size : 1), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

void lvd_os_free(void *p, size_t size) {
  if (p) lvd_sys_munmap(p, whole_pages(size ? size : 1));
}

size_t lvd_os_ring_granularity(void) { return page(); }

lvd_status lvd_os_rings_alloc(lvd_os_rings *rings, uint32_t count, const size_t *size,
                              void **ring) {
  size_t total = 0, offset = 0;
  rings->base = NULL;
  rings->size = 0;
  for (uint32_t i = 0; i < count; i++)
    if (__builtin_add_overflow(total, size[i], &total) || total > SIZE_MAX / 4) return LVD_E_MEMORY;
  if (total == 0) return LVD_OK;
  int fd = lvd_sys_memfd_create("levada-channels", MFD_CLOEXEC);
  if (fd < 0) return LVD_E_SYSTEM;
  unsigned char *base = MAP_FAILED;
  if (lvd_sys_ftruncate(fd, (off_t)total) == 0)
    base = lvd_sys_mmap(NULL, 2 * total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                        0);
  lvd_status status = base == MAP_FAILED ? LVD_E_MEMORY : LVD_OK;
  for (uint32_t i = 0; i < count && status == LVD_OK; i++) {
    ring[i] = base + 2 * offset;
    for (int half = 0; half < 2 && status == LVD_OK; half++)
      if (lvd_sys_mmap((unsigned char *)ring[i] + (half ? size[i] : 0), size[i],
                       PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                       (off_t)offset) == MAP_FAILED)
        /* ENOMEM here means vm.max_map_count, since each channel needs two mappings. */
        status = errno == ENOMEM ? LVD_E_MAPPINGS : LVD_E_SYSTEM;
    offset += size[i];
  }
  lvd_sys_close(fd);
  if (status != LVD_OK) {
    if (base != MAP_FAILED) lvd_sys_munmap(base, 2 * total);
    return status;
  }
  rings->base = base;
  rings->size = 2 * total;
  return LVD_OK;
}

void lvd_os_rings_free(lvd_os_rings *rings) {
  if (rings->base) lvd_sys_munmap(rings->base, rings->size);
  rings->base = NULL;
}
