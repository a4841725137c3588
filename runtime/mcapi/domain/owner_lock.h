/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lock: of what one thread uses nearly always. That one, the owner, enters with two plain stores; as soon
 * as another thread has come, all of them, the owner too, take a mutex, for ever.
 *
 * Guarantees
 *   M1  One thread at a time is inside, and sees what those before it did.
 *   M2  Who waits for the owner to leave is woken when it does.
 *
 * Pairs of orders
 *   owner: busy = 1, [light], load shared            <> first other: shared = 1, [heavy], load busy   M1
 *   owner leaves: busy = 0 (release)                 -> first other: busy (acquire)                    M1
 *   owner leaves: busy = 0, [light], load shared     <> first other: shared = 1, [heavy], sleep on busy M2
 * (The owner that finds `shared` set goes through the mutex, which the first other holds by then. Until
 * it does, nobody else was inside, so what it reads of `shared` orders nothing.)
 * [light] and [heavy] as in levada/channel.h. */
#ifndef LVD_MCAPI_LOCK_H
#define LVD_MCAPI_LOCK_H

#include <levada/channel.h>

#include "../../platform/platform.h"

typedef struct mc_lock {
  const void *owner; /* a thread's mark; constant */
  lvd_a32 busy;      /* 1: the owner is inside, without the mutex */
  lvd_a32 shared;    /* 1: others have come */
  uint32_t fenced;   /* [light] must be a real fence */
  lvd_os_mutex mutex;
} mc_lock;

/* The caller is the owner; a thread is known by its mark. */
void mc_lock_init(mc_lock *l, const void *mark, bool fenced);
void mc_lock_take_mutex(mc_lock *l, const void *mark);

static inline void mc_lock_take_as(mc_lock *l, const void *mark) {
  if (LVD_LIKELY(l->owner == mark)) {
    lvd_store_relaxed_u32(&l->busy, 1);
    lvd_barrier_light(l->fenced);
    if (LVD_LIKELY(!lvd_load_relaxed_u32(&l->shared))) return;
  }
  mc_lock_take_mutex(l, mark);
}

static inline void mc_lock_left(mc_lock *l) {
  lvd_store_release_u32(&l->busy, 0);
  lvd_barrier_light(l->fenced);
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&l->shared))) lvd_os_wake(&l->busy);
}

static inline void mc_lock_drop_as(mc_lock *l, const void *mark) {
  if (LVD_LIKELY(l->owner == mark) && LVD_LIKELY(lvd_load_relaxed_u32(&l->busy)))
    mc_lock_left(l);
  else
    lvd_os_unlock(&l->mutex);
}

/* A thread's mark is where this lies. A later thread may have it at the same place: the earlier is gone. */
extern _Thread_local char mc_mark __attribute__((tls_model("initial-exec")));
static inline void mc_lock_take(mc_lock *l) { mc_lock_take_as(l, &mc_mark); }
static inline void mc_lock_drop(mc_lock *l) { mc_lock_drop_as(l, &mc_mark); }

#endif
