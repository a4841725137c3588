/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory as seen by two processors: by the host directly, by the remote side through a non-coherent
 * cache. */
#ifndef LVD_TEST_SIDES_H
#define LVD_TEST_SIDES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../../remote/native/caches.h"

#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what)) {                                                                                 \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                   \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

enum { SIDES_SIZE = 1 << 20 };
static unsigned char *host_sees, *far_sees;

static void *zeros(int protection) {
  void *at = mmap(NULL, SIDES_SIZE, PROT_READ | PROT_WRITE | protection,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(at != MAP_FAILED);
  return at;
}

static void sides_begin(void) {
  host_sees = zeros(0);
  far_sees = zeros(0);
  lvd_native_caches_begin(far_sees, host_sees, SIDES_SIZE, false);
}

#endif
