/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core lease: the right of one process at a time to run a worker on a core. This file declares
 * what the processes share: for each core, which process holds its lease and which processes
 * wait for it. When a process takes part, and how long it waits, is in lease_client.h.
 *
 * A lease is advisory: it protects no data. So it can be taken from a process that does not
 * respond, which notices at its next check.
 *
 * Guarantees
 *   H1  At most one process is the holder.
 *   H2  No process sleeps on a lease that has no holder; a process that is given one is woken.
 *
 * Pairs of orders
 *   request: want 1, waiting + 1, [fence], load holder
 *                                    <> give_back: holder 0, [fence], load waiting            H2
 *   end_wait: holder, exchange_release want 0 -> request: want 1, [fence], load holder        H2
 * Everything else is relaxed: `holder` is changed by compare-and-swap only (H1), and `since`
 * and the counters need no order. */
#ifndef LVD_CORE_LEASE_H
#define LVD_CORE_LEASE_H

#include <levada/atomic.h>
#include <levada/base.h>

enum { LVD_LEASE_SLOTS = 64 }; /* processes per lease */

/* The lease of one core. A holder is stored as 1 + the slot of its process; 0: no holder. */
typedef struct lvd_lease {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 holder;
  lvd_a32 waiting; /* number of waiting processes: how many words of `want` are 1 */
  /* Thread id (as the kernel numbers it) of the holder's thread that runs on the core. */
  lvd_a32 thread;
  lvd_a64 since;     /* ns, monotonic: when the holder got the lease */
  lvd_a64 transfers; /* transfers from a holder to a waiting process */
  lvd_a64 preempted; /* times the lease was taken from a holder that did not respond */
  /* Times it was taken from a holder that was blocked elsewhere or had ended. */
  lvd_a64 reclaimed_idle;
  lvd_a64 waits, waited, longest; /* completed waits; their total and longest duration in ns */
  uint32_t slots;                 /* constant; at most LVD_LEASE_SLOTS */
  /* 1: this process waits; its threads sleep on this word */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 want[LVD_LEASE_SLOTS];
} lvd_lease;

/* In all of these, `me` and `from` are slots of processes, and `now` is a time of lvd_os_now_ns.
 *
 * Returns true if process `me` holds the lease now, because it already did or because the lease
 * was free. */
bool lvd_lease_take(lvd_lease *l, uint32_t me, uint64_t now);
/* As lvd_lease_take; on failure `me` is registered as waiting and its threads sleep on want[me]
 * while that is 1. */
bool lvd_lease_request(lvd_lease *l, uint32_t me, uint64_t now);
/* Transfers the lease to the next waiting process. False: no process waits, or `me` is not the
 * holder. */
bool lvd_lease_hand_over(lvd_lease *l, uint32_t me, uint64_t now);
/* Releases the lease of `me`: it goes to the next waiting process, or becomes free. */
void lvd_lease_give_back(lvd_lease *l, uint32_t me, uint64_t now);
/* Takes the lease from process `from` without its consent. False: `from` is no longer the
 * holder. */
bool lvd_lease_seize(lvd_lease *l, uint32_t me, uint32_t from, uint64_t now);

static inline bool lvd_lease_is_held_by(const lvd_lease *l, uint32_t me) {
  return lvd_load_relaxed_u32(&l->holder) == me + 1;
}
/* Does a process other than the holder want the lease? */
static inline bool lvd_lease_has_waiters(const lvd_lease *l) {
  return lvd_load_relaxed_u32(&l->waiting) != 0;
}

#endif
