/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leases: how independent programs that use Levada share the cores of a machine. While a host
 * grants leases, an awake worker holds the lease of its core: at any time, at most one worker of
 * all processes of the user runs on a core. A waiting worker gets the core within 10 ms, or at
 * once if the holder has nothing to do; the lease of a holder that is killed, stopped, or blocked
 * elsewhere is revoked.
 *
 * Programs need no code for this. Their workers participate (those of `levada run`, of forks, of
 * streaming RPC, of the host), and so do their own threads while they fork: these occasionally
 * receive a signal, in the handler of which they wait while another program has its turn. The
 * environment variable LEVADA_LEASES=off excludes a program; any other value names a separate set
 * of leases, shared by the programs that set the same value. */
#ifndef LVD_LEASES_PUBLIC_H
#define LVD_LEASES_PUBLIC_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling process grants leases to all processes of its user until lvd_leases_end or its own
 * end. Call it before the process creates a runtime. LVD_E_STATE: another process grants them, and
 * this one participates; LVD_E_NOT_FOUND: leases are off; LVD_E_SYSTEM; LVD_E_MEMORY. */
LVD_API lvd_status lvd_leases_begin(void);
/* Ends the leases; all programs continue without them. */
LVD_API void lvd_leases_end(void);

typedef struct lvd_lease_core {
  uint32_t cpu;
  uint32_t waiting;   /* number of processes that wait for it */
  uint32_t thread;    /* thread id of the holder in the system; 0: not held */
  uint64_t transfers; /* times the lease passed from a holder to a waiter */
  /* times it was revoked from a holder that did not react, that was idle */
  uint64_t preempted, reclaimed_idle;
  uint64_t waits, waited_ns; /* number of waits for it, and their total in ns */
  uint64_t longest_ns;       /* the longest wait, in ns */
} lvd_lease_core;

/* Reads a record for each core with a lease that was ever held: fills at most *count records and
 * sets it to the number that exist. LVD_E_STATE: this process does not participate. From any
 * thread. */
LVD_API lvd_status lvd_leases_read(lvd_lease_core *core, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
