/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is said to remote_hostile.c. */
#ifndef LVD_FAR_HOSTILE_H
#define LVD_FAR_HOSTILE_H

#include <stdint.h>

enum hostile_how {
  HOSTILE_NOISE,    /* random bytes for calls */
  HOSTILE_CALLS,    /* calls about anything, with what others have answered */
  HOSTILE_LARGE,    /* a call with more data than any has */
  HOSTILE_CUT,      /* ... with more than come */
  HOSTILE_DEAF,     /* takes no answer */
  HOSTILE_SILENT,   /* waits for what never comes, and goes */
  HOSTILE_SCRIBBLES /* over all that is shared */
};

typedef struct hostile_way {
  uint32_t how, domain;
  uint64_t seed;
} hostile_way;

#endif
