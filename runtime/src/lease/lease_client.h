/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core leases, process side: workers, and threads of the program that fork, hold the lease of
 * their core while they are awake, if a host runs that manages leases. Without a host these
 * functions do nothing. */
#ifndef LVD_LEASE_CLIENT_H
#define LVD_LEASE_CLIENT_H

#include <levada/atomic.h>
#include <levada/base.h>

/* The lease state of one thread, owned by that thread. */
typedef struct lvd_leased {
  int32_t cpu;      /* the core that it is awake on; negative: none */
  volatile bool in; /* it is awake on `cpu`; read by its timer in a signal handler */
  /* Real-time priority: it waits for the lease only after a full time slice awake. */
  bool first;
  uint64_t woke_ns; /* when it woke (ns, monotonic); only for `first` */
  bool counted, clocked;
  lvd_a64 waited_ns; /* total time in waits for leases */
  /* 1 while it waits for a lease; waited_ns is updated before this is reset (advice to the
   * watchdog) */
  lvd_a32 waits;
} lvd_leased;

/* The calling thread is awake on core `cpu` from now on (negative: on none). Waits until its
 * process holds the lease. */
void lvd_lease_enter(lvd_leased *thread, int32_t cpu);
/* The thread is about to sleep, or to continue on another core. */
void lvd_lease_leave(lvd_leased *thread);
/* As lvd_lease_leave, when the thread is about to end. */
void lvd_lease_end(lvd_leased *thread);
/* Called at a tick of the thread's CPU-time timer, in a signal handler. */
void lvd_lease_tick(lvd_leased *thread);
/* Should the thread sleep rather than poll, because another process waits for its core? */
bool lvd_lease_is_contended(const lvd_leased *thread);
/* Called in the child after fork(2): the other threads of the process do not exist there. */
void lvd_leases_child_begins(void);

#endif
