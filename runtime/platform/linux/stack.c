/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stacks on Linux, each above a guard.
 *
 * MADV_GUARD_INSTALL (Linux 6.13) marks guard pages without splitting the mapping. Without it each
 * guard is a mapping of its own, two mappings per stack, and vm.max_map_count limits the stacks to
 * about 32,000. */
#include "../platform.h"
#include "syscall.h"

#include <pthread.h>
#include <stdlib.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MAP_STACK
#define MAP_STACK 0
#endif

/* Emulators accept any advice and ignore it. So the first guard is tested by a system call that
 * would have to read it. */
static bool light_guards;
static pthread_once_t tried = PTHREAD_ONCE_INIT;

static void try_guard(void) {
  size_t page = lvd_sys_page_size();
  int fd[2];
  void *p = lvd_sys_mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return;
  if (lvd_sys_madvise(p, page, MADV_GUARD_INSTALL) == 0 && lvd_sys_pipe(fd, O_CLOEXEC) == 0) {
    light_guards = lvd_sys_write(fd[1], p, 1) < 0 && errno == EFAULT;
    lvd_sys_close(fd[0]);
    lvd_sys_close(fd[1]);
  }
  lvd_sys_munmap(p, page);
}

static bool guard_pages(void *low, size_t size) {
  pthread_once(&tried, try_guard);
  if (light_guards && lvd_sys_madvise(low, size, MADV_GUARD_INSTALL) == 0) return true;
  return lvd_sys_mprotect(low, size, PROT_NONE) == 0;
}

/* A smaller frame cannot step over it. It takes addresses, not memory. */
size_t lvd_os_guard_size(void) { return 64 * 1024; }

/* ENOMEM means either: no memory, or too many mappings. */
static lvd_status memory_or_mappings(void) {
  if (errno != ENOMEM) return LVD_E_SYSTEM;
  char text[1024] = "";
  unsigned long most = 0, used = 0;
  int fd = lvd_sys_open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    if (lvd_sys_read(fd, text, sizeof text - 1) > 0) most = strtoul(text, NULL, 10);
    lvd_sys_close(fd);
  }
  fd = lvd_sys_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  /* no memory even for a file descriptor */
  if (fd < 0) return most ? LVD_E_MEMORY : LVD_E_MAPPINGS;
  for (ssize_t n; (n = lvd_sys_read(fd, text, sizeof text)) > 0;)
    while (n-- > 0) used += text[n] == '\n';
  lvd_sys_close(fd);
  return most && used + 16 >= most ? LVD_E_MAPPINGS : LVD_E_MEMORY;
}

lvd_status lvd_os_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out) {
  size_t stride = guard + size, all = count * stride;
  void *base = lvd_sys_mmap(NULL, all, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) return memory_or_mappings();
  lvd_sys_madvise(base, all, MADV_NOHUGEPAGE); /* most stacks need one small page */
  for (uint32_t i = 0; i < count; i++) {
    void *low = (char *)base + i * stride;
    if (!guard_pages(low, guard)) {
      lvd_status status = memory_or_mappings();
      lvd_sys_munmap(base, all);
      return status;
    }
  }
  *out = base;
  return LVD_OK;
}

void lvd_os_stack_shrink(void *low, size_t size, size_t keep) {
  unsigned char here;
  size_t below = size - keep;
  void *last = (char *)low + below - lvd_sys_page_size();
  if (lvd_sys_mincore(last, 1, &here) == 0 && (here & 1))
    lvd_sys_madvise(low, below, MADV_DONTNEED);
}

void lvd_os_stacks_free(void *base, size_t size) { lvd_sys_munmap(base, size); }
