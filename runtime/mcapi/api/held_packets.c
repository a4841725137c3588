/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What programs still hold of ends that have been closed. Of this process, and of any domain: it outlasts the end, the
 * endpoint, the node and the domain. */
#include "api_internal.h"

static lvd_os_mutex lents_lock; /* before a domain's own */
static mc_lent *lents;
static lvd_a32 any; /* 1: there has been one */

void mc_lents_lock(void) { lvd_os_lock(&lents_lock); }
void mc_lents_unlock(void) { lvd_os_unlock(&lents_lock); }

void mc_lent_keep(mc_lent *l, const mc_mine *node) {
  l->node = node;
  l->active = lvd_load_relaxed_u32(&node->active) | 1; /* also of one that is just ending */
  mc_lents_lock();
  l->next = lents;
  lents = l;
  lvd_store_release_u32(&any, 1);
  mc_lents_unlock();
}

/* A node's that has ended is any node's of this process. */
static bool is_of(const mc_lent *l, const mc_mine *self) {
  return l->node == self || lvd_load_acquire_u32(&l->node->active) != l->active;
}

static const void **held_in(mc_lent *l, const void *buffer) {
  for (uint32_t i = 0; i < l->count; i++)
    if (l->buffer[i] == buffer) return &l->buffer[i];
  return NULL;
}

bool mc_lent_release(const mc_mine *self, const void *buffer, bool only_test) {
  if (LVD_LIKELY(!lvd_load_acquire_u32(&any))) return false;
  const void **held = NULL;
  mc_lents_lock();
  for (mc_lent **at = &lents, *l; (l = *at); at = &l->next) {
    held = is_of(l, self) ? held_in(l, buffer) : NULL;
    if (!held) continue;
    if (only_test) break;
    *held = l->buffer[--l->count];
    if (l->count) break;
    *at = l->next;
    l->end(l);
    break;
  }
  mc_lents_unlock();
  return held != NULL;
}

/* What lies there is the child's, too, but it has no node to release it with. */
void mc_lents_reset(void) {
  lents_lock = (lvd_os_mutex){{0}};
  lents = NULL;
}
