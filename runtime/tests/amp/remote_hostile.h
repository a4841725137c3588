/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Argument of remote_hostile.c. */
#ifndef LVD_REMOTE_HOSTILE_H
#define LVD_REMOTE_HOSTILE_H

#include <stdint.h>

enum hostile_how {
  HOSTILE_NOISE,    /* random bytes as calls */
  HOSTILE_CALLS,    /* calls with random arguments, some from earlier replies */
  HOSTILE_LARGE,    /* a call with more data than any has */
  HOSTILE_CUT,      /* ... with more than are sent */
  HOSTILE_DEAF,     /* reads no reply */
  HOSTILE_SILENT,   /* waits for nothing, and returns */
  HOSTILE_SCRIBBLES /* overwrites all shared memory */
};

typedef struct hostile_way {
  uint32_t how, domain;
  uint64_t seed;
} hostile_way;

#endif
