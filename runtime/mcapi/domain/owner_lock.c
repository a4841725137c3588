/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The lock's long way: of others than the owner, and of the owner when they have come. */
#include "owner_lock.h"

_Thread_local char mc_mark;

void mc_lock_init(mc_lock *l, const void *mark, bool fenced) {
  l->owner = mark;
  l->fenced = fenced;
}

void mc_lock_take_mutex(mc_lock *l, const void *mark) {
  if (l->owner == mark) mc_lock_left(l); /* it had entered too early */
  lvd_os_lock(&l->mutex);
  if (LVD_LIKELY(lvd_load_relaxed_u32(&l->shared))) return;
  lvd_store_relaxed_u32(&l->shared, 1);
  lvd_os_barrier();
  while (lvd_load_acquire_u32(&l->busy)) lvd_os_wait(&l->busy, 1, -1);
}
