/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lock of MCAPI's endpoints for the checker, with a plain word inside. All threads of a check
 * have one mc_thread_mark, so each passes a mark of its own. */
#include "mcapi/domain/owner_lock.h"

#include <stdlib.h>

typedef struct model_lock {
  mc_lock lock;
  uint32_t inside;
} model_lock;

static const char mark[3];

/* Thread 0 is the owner. */
model_lock *model_make(uint32_t fenced) {
  model_lock *m = calloc(1, sizeof *m);
  mc_lock_init(&m->lock, &mark[0], fenced);
  return m;
}
void model_free(model_lock *m) { free(m); }
size_t model_size(void) { return sizeof(model_lock); }

/* Adds to the word, in two steps; what it was. */
uint32_t model_add(model_lock *m, uint32_t thread) {
  mc_lock_acquire_as(&m->lock, &mark[thread]);
  uint32_t was = m->inside;
  m->inside = was + 1;
  mc_lock_release_as(&m->lock, &mark[thread]);
  return was;
}
