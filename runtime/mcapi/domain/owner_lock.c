/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Owner lock, slow path: for threads other than the owner, and for the owner once one of them has
 * come. */
#include "owner_lock.h"

_Thread_local char mc_thread_mark;

void mc_lock_init(mc_lock *l, const void *mark, bool fenced) {
  l->owner = mark;
  l->fenced = fenced;
}

void mc_lock_acquire_mutex(mc_lock *l, const void *mark) {
  if (l->owner == mark) mc_lock_owner_left(l); /* it has set `busy` without holding the lock */
  lvd_os_lock(&l->mutex);
  if (LVD_LIKELY(lvd_load_relaxed_u32(&l->shared))) return;
  lvd_store_relaxed_u32(&l->shared, 1);
  lvd_os_barrier();
  while (lvd_load_acquire_u32(&l->busy)) lvd_os_wait(&l->busy, 1, -1);
}
