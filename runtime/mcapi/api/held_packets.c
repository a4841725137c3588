/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Buffers that programs still hold of ends that have been closed. The list is the process's, for
 * all domains: a buffer may outlast the end, the endpoint, the node and the domain. */
#include "api_internal.h"

static lvd_os_mutex detached_lock; /* acquired before a domain's `lock` */
static mc_detached *detached;
static lvd_a32 any_detached; /* 1: a buffer has been detached */

void mc_detached_lock(void) { lvd_os_lock(&detached_lock); }
void mc_detached_unlock(void) { lvd_os_unlock(&detached_lock); }

void mc_detached_add(mc_detached *l, const mc_local_node *node) {
  l->node = node;
  l->active = lvd_load_relaxed_u32(&node->active) | 1; /* odd also for a node that is just ending */
  mc_detached_lock();
  l->next = detached;
  detached = l;
  lvd_store_release_u32(&any_detached, 1);
  mc_detached_unlock();
}

/* A buffer of a node that has ended belongs to every node of this process. */
static bool belongs_to(const mc_detached *l, const mc_local_node *self) {
  return l->node == self || lvd_load_acquire_u32(&l->node->active) != l->active;
}

static const void **held_in(mc_detached *l, const void *buffer) {
  for (uint32_t i = 0; i < l->count; i++)
    if (l->buffer[i] == buffer) return &l->buffer[i];
  return NULL;
}

bool mc_detached_release(const mc_local_node *self, const void *buffer, bool only_test) {
  if (LVD_LIKELY(!lvd_load_acquire_u32(&any_detached))) return false;
  const void **held = NULL;
  mc_detached_lock();
  for (mc_detached **at = &detached, *l; (l = *at); at = &l->next) {
    held = belongs_to(l, self) ? held_in(l, buffer) : NULL;
    if (!held) continue;
    if (only_test) break;
    *held = l->buffer[--l->count];
    if (l->count) break;
    *at = l->next;
    l->end(l);
    break;
  }
  mc_detached_unlock();
  return held != NULL;
}

/* The memory exists in the child, too, but the child has no node that could release it. */
void mc_detached_reset(void) {
  detached_lock = (lvd_os_mutex){{0}};
  detached = NULL;
}
