/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of a node of MCAPI and its end, for the checker, with a plain word that goes away with the
 * node. */
#include "mcapi/domain/call_guard.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 2, THERE = 1, GONE = 0, REFUSED = 2 };

typedef struct model_node {
  lvd_a32 active, long_calls;
  lvd_aptr threads;
  mc_call_slot call_slot[THREADS];
  bool fenced;
  uint32_t word;
} model_node;

model_node *model_make(uint32_t fenced) {
  model_node *m = aligned_alloc(LVD_CACHE_LINE, sizeof *m); /* a multiple: its parts are lines */
  memset(m, 0, sizeof *m);
  lvd_store_relaxed_u32(&m->active, 1);
  lvd_store_relaxed_ptr(&m->threads, &m->call_slot[0]);
  lvd_store_relaxed_ptr(&m->call_slot[0].next, &m->call_slot[1]);
  m->fenced = fenced;
  m->word = THERE;
  return m;
}
void model_free(model_node *m) { free(m); }
size_t model_size(void) { return sizeof(model_node); }

/* What it found. */
uint32_t model_visit(model_node *m, uint32_t thread) {
  bool in = mc_short_call_enter(&m->call_slot[thread], m, &m->active, 1, m->fenced);
  uint32_t found = in ? m->word : REFUSED;
  mc_short_call_leave(&m->call_slot[thread]);
  return found;
}
uint32_t model_call(model_node *m) {
  bool in = mc_long_call_enter(&m->long_calls, &m->active, 1, m->fenced);
  uint32_t found = in ? m->word : REFUSED;
  mc_long_call_leave(&m->long_calls);
  return found;
}

/* The node ends if no call is in it at the first look. */
uint32_t model_end(model_node *m) {
  lvd_add_release_u32(&m->active, 1);
  lvd_os_barrier();
  if (!mc_no_call_in(m, &m->long_calls, &m->threads)) return 0;
  m->word = GONE;
  return 1;
}
