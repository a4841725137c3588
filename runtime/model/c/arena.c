/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory for checks in which some is made while threads run: all of it lies in one arena, which the
 * checker watches from the beginning. What is freed is not used again, and not to be touched. */
#include <stdlib.h>
#include <string.h>

#include "port/port.h"

enum { ARENA = 1 << 19 };

void model_freed(void *p, size_t size);

static LVD_ALIGNED(4096) unsigned char arena[ARENA];
static size_t used;

void model_arena_reset(void) {
  memset(arena, 0, used);
  used = 0;
}
void *model_arena(void) { return arena; }
size_t model_arena_size(void) { return ARENA; }

/* In front of what it gives lies its size. */
static void *give(size_t size, size_t aligned) {
  size = (size + LVD_LINE - 1) / LVD_LINE * LVD_LINE;
  size_t at = (used + sizeof size + aligned - 1) / aligned * aligned;
  if (at + size > ARENA) abort();
  used = at + size;
  memcpy(arena + at - sizeof size, &size, sizeof size);
  return arena + at;
}
static void take_back(void *p) {
  size_t size;
  if (!p) return;
  memcpy(&size, (unsigned char *)p - sizeof size, sizeof size);
  model_freed(p, size);
}

void *lvd_port_alloc(size_t size) { return give(size, LVD_LINE); }
void lvd_port_free(void *p, size_t size) { (void)size, take_back(p); }
void *model_pages(size_t size) { return give(size, 4096); }

/* The same for what the sources under test ask of the C library; nobody else is linked with it. */
void *malloc(size_t size) { return give(size, LVD_LINE); }
void *calloc(size_t n, size_t size) { return give(n * size, LVD_LINE); }
void free(void *p) { take_back(p); }
