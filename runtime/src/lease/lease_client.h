/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leases, on the side of a process: its workers, and threads of the program that fork, have their core's
 * lease while they are awake, if a host runs that gives leases; else nothing here does anything. */
#ifndef LVD_LEASES_H
#define LVD_LEASES_H

#include <levada/atomic.h>
#include <levada/base.h>

/* Of a thread; its own. */
typedef struct lvd_leased {
  int32_t cpu;      /* of the core ... */
  volatile bool in; /* ... that it is awake on; looked at by its clock, in a signal's handler */
  bool first;       /* it has a real-time priority, and waits for who has the lease only when ... */
  uint64_t woke_ns; /* ... it has been awake since then for a whole turn */
  bool counted, clocked;
  lvd_a64 waited_ns; /* for leases, in all */
  lvd_a32 waits; /* for one, now; waited_ns is told before it is 0 again: advice to the watchdog */
} lvd_leased;

/* The calling thread, `who`, is awake on a core from now on (cpu negative: on none): waits until the
 * lease is its process's. */
void lvd_lease_enter(lvd_leased *who, int32_t cpu);
/* It is about to sleep, or to go on elsewhere. */
void lvd_lease_leave(lvd_leased *who);
/* The same, and the thread is about to end. */
void lvd_lease_end(lvd_leased *who);
/* More of its CPU time has passed. In a signal's handler. */
void lvd_lease_tick(lvd_leased *who);
/* Should it sleep rather than look around, since another process waits for its core? */
bool lvd_lease_sought(const lvd_leased *who);
/* The process has become a second one, without the threads of the first. */
void lvd_leases_child_begins(void);

#endif
