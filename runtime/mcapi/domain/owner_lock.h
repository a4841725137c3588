/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Owner lock: a biased lock ("lock reservation", Kawachiya et al. 2002) for data that one thread
 * uses nearly always. That thread, the owner, acquires it with two plain stores. As soon as another
 * thread has acquired it, all threads, the owner included, use a mutex from then on.
 *
 * Guarantees
 *   M1  At most one thread holds the lock, and it sees what earlier holders did.
 *   M2  A thread that waits for the owner to release the lock is woken when it does.
 *
 * Pairs of orders
 *   owner: busy = 1, [light], load shared        <> first: shared = 1, [heavy], load busy      M1
 *   owner leaves: busy = 0 (release)             -> first: busy (acquire)                      M1
 *   owner leaves: busy = 0, [light], load shared <> first: shared = 1, [heavy], sleep on busy  M2
 * ("first" is the first other thread.)
 * (An owner that finds `shared` set takes the mutex, which the first other thread holds by then.
 * Until it has it, no other thread has held the lock, so its load of `shared` need not order
 * anything.) [light] and [heavy] as in levada/channel.h. */
#ifndef LVD_MCAPI_OWNER_LOCK_H
#define LVD_MCAPI_OWNER_LOCK_H

#include <levada/channel.h>

#include "../../platform/platform.h"

typedef struct mc_lock {
  const void *owner; /* address of the owner's mc_thread_mark; constant */
  lvd_a32 busy;      /* 1: the owner holds the lock, without the mutex */
  lvd_a32 shared;    /* 1: another thread has acquired it */
  uint32_t fenced;   /* [light] must be a real fence */
  lvd_os_mutex mutex;
} mc_lock;

/* Makes the caller the owner. `mark` identifies a thread. */
void mc_lock_init(mc_lock *l, const void *mark, bool fenced);
void mc_lock_acquire_mutex(mc_lock *l, const void *mark);

static inline void mc_lock_acquire_as(mc_lock *l, const void *mark) {
  if (LVD_LIKELY(l->owner == mark)) {
    lvd_store_relaxed_u32(&l->busy, 1);
    lvd_membarrier_light(l->fenced);
    if (LVD_LIKELY(!lvd_load_relaxed_u32(&l->shared))) return;
  }
  mc_lock_acquire_mutex(l, mark);
}

static inline void mc_lock_owner_left(mc_lock *l) {
  lvd_store_release_u32(&l->busy, 0);
  lvd_membarrier_light(l->fenced);
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&l->shared))) lvd_os_wake(&l->busy);
}

static inline void mc_lock_release_as(mc_lock *l, const void *mark) {
  if (LVD_LIKELY(l->owner == mark) && LVD_LIKELY(lvd_load_relaxed_u32(&l->busy)))
    mc_lock_owner_left(l);
  else
    lvd_os_unlock(&l->mutex);
}

/* Its address identifies the thread. A thread that starts later may have the same address, since
 * the earlier one has ended. */
extern _Thread_local char mc_thread_mark __attribute__((tls_model("initial-exec")));
static inline void mc_lock_acquire(mc_lock *l) { mc_lock_acquire_as(l, &mc_thread_mark); }
static inline void mc_lock_release(mc_lock *l) { mc_lock_release_as(l, &mc_thread_mark); }

#endif
