/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lease: the right of one process at a time to run a worker on a core. Here is what the processes share:
 * for each core who has its lease and who waits for it. When a process takes part, and how long it waits,
 * is in lease_client.h.
 *
 * A lease is advice: nothing is laid into memory under it, so that it may be seized from who does not
 * answer. That one finds out when it looks the next time.
 *
 * Guarantees
 *   H1  One process at a time is the holder.
 *   H2  Nobody sleeps on a lease that nobody holds; and who is given one is woken.
 *
 * Pairs of orders
 *   ask: want 1, waiting + 1, [fence], look at holder <> give back: holder 0, [fence], load waiting   H2
 *   call: the holder, exchange_release want 0 -> ask: want 1, [fence], look at holder          H2
 * Everything else is relaxed: `holder` is changed by compare-and-swap only (H1), and `since` and the
 * counts are read for what they are worth. */
#ifndef LVD_LEASE_H
#define LVD_LEASE_H

#include <levada/atomic.h>
#include <levada/base.h>

enum { LVD_LEASE_SLOTS = 64 }; /* processes */

/* Of one core. A holder is 1 + the slot of its process; 0: nobody. */
typedef struct lvd_lease {
  LVD_ALIGNED(LVD_LINE) lvd_a32 holder;
  lvd_a32 waiting;                /* processes that do: how many of `want` are set */
  lvd_a32 thread;                 /* of the holder, that computes: by the system's number */
  lvd_a64 since;                  /* ns: when it was given to whom, or taken */
  lvd_a64 given;                  /* times, from one that had it to one that waited */
  lvd_a64 seized;                 /* from one that did not answer ... */
  lvd_a64 left;                   /* ... from one that waited for something else, or had ended */
  lvd_a64 waits, waited, longest; /* how often somebody waited, and for how many ns */
  uint32_t slots;                 /* constant: LVD_LEASE_SLOTS at the most */
  LVD_ALIGNED(LVD_LINE) lvd_a32 want[LVD_LEASE_SLOTS]; /* 1: it waits, and sleeps on this */
} lvd_lease;

/* True: the lease is `me`'s, since it was already, or was nobody's. */
bool lvd_lease_take(lvd_lease *l, uint32_t me, uint64_t now);
/* The same; and else `me` waits for it from now on: it sleeps on want[me], while that is 1. */
bool lvd_lease_ask(lvd_lease *l, uint32_t me, uint64_t now);
/* To the next one that waits. False: nobody does, or it is not `me`'s. */
bool lvd_lease_hand_over(lvd_lease *l, uint32_t me, uint64_t now);
/* `me` has no use for it: to the next one that waits, or to nobody. */
void lvd_lease_give_back(lvd_lease *l, uint32_t me, uint64_t now);
/* From `from`, who is not asked. False: he does not have it any more. */
bool lvd_lease_seize(lvd_lease *l, uint32_t me, uint32_t from, uint64_t now);

static inline bool lvd_lease_is(const lvd_lease *l, uint32_t me) {
  return lvd_load_relaxed_u32(&l->holder) == me + 1;
}
/* Does another one than its holder want it? */
static inline bool lvd_lease_wanted(const lvd_lease *l) {
  return lvd_load_relaxed_u32(&l->waiting) != 0;
}

#endif
