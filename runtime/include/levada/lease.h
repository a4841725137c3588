/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leases: how programs that use Levada each by itself share the cores of a machine, rather than fight
 * for them. While a host gives leases, a worker that is awake has its core's: at any time one worker of
 * all processes of the user runs on a core. Who waits gets the core within 10 ms, or at once if the other
 * has nothing to do; a lease of who is killed, stopped or asleep in something else is taken from it.
 *
 * A program does nothing for it. Its workers take part (those of `levada run`, of forks, of streaming
 * RPC, of the host), and its own threads while they fork: these then get a signal now and then, whose
 * handler waits where another program has its turn. The environment variable LEVADA_LEASES=off keeps a
 * program out; any other value is the name of leases of which only those know who say it, too. */
#ifndef LVD_LEASES_PUBLIC_H
#define LVD_LEASES_PUBLIC_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The calling process gives leases to all processes of its user from now on, until lvd_leases_end or its
 * own end. Before it has a runtime. LVD_E_STATE: another one gives them, and this one takes part;
 * LVD_E_UNKNOWN: they are off; LVD_E_SYSTEM; LVD_E_MEMORY. */
LVD_API lvd_status lvd_leases_begin(void);
/* Everybody goes on without. */
LVD_API void lvd_leases_end(void);

typedef struct lvd_lease_core {
  uint32_t cpu;
  uint32_t waiting;      /* processes */
  uint32_t thread;       /* that computes there, by the system's number; 0: the lease is nobody's */
  uint64_t given;        /* times it went from one that had it to one that waited, */
  uint64_t seized, left; /* was taken from one that did not answer, or that did nothing with it */
  uint64_t waits, waited_ns; /* how often a thread waited for it, and for how long in all */
  uint64_t longest_ns;       /* the longest wait */
} lvd_lease_core;

/* Of each core whose lease was ever taken: fills at most *count records, and sets it to how many there
 * are. LVD_E_STATE: this process takes no part in leases. From any thread. */
LVD_API lvd_status lvd_leases_read(lvd_lease_core *core, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
