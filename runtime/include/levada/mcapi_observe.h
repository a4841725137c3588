/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Observes the MCAPI domains of this machine from outside (members, waiting messages, traffic),
 * and removes what dead processes have left in them.
 *
 * For tools, not for nodes: in a process that has a node these calls return LVD_E_STATE. They work
 * on a validated copy of memory that other processes write; observing changes nothing and does not
 * block. Domains with files of another user are not visible. C17 and C++17. */
#ifndef LVD_MCAPI_OBSERVE_H
#define LVD_MCAPI_OBSERVE_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_mcapi_node_info {
  uint32_t id;
  uint32_t process; /* process id */
  bool alive;       /* false: it has died, and has not been removed yet */
} lvd_mcapi_node_info;

/* The use of an endpoint. */
enum { LVD_MCAPI_MESSAGES = 0, LVD_MCAPI_PACKETS = 1, LVD_MCAPI_SCALARS = 2 };

typedef struct lvd_mcapi_endpoint_info {
  uint32_t handle, node, port;
  bool alive;
  /* The channel of which it is an end, if any: */
  uint32_t kind; /* LVD_MCAPI_PACKETS, LVD_MCAPI_SCALARS */
  bool sends, connected, opened, closed;
  /* handle 0: not connected, or the sender of a broadcast, */
  uint32_t peer, peer_node, peer_port;
  uint32_t receivers; /* which has this many receivers */
  uint32_t messages;  /* messages waiting to be received */
  uint32_t elements;  /* packets or scalars waiting in the channel that it receives */
  uint64_t received, received_bytes; /* items of all kinds, and bytes, since its creation */
} lvd_mcapi_endpoint_info;

typedef struct lvd_mcapi_domain_info {
  uint32_t number;
  uint32_t transport;       /* 1: shared memory; 2: POSIX message queues */
  uint32_t processes, dead; /* processes in the table; how many of them are dead */
  uint32_t node_count, endpoint_count;
  lvd_mcapi_node_info *node;
  lvd_mcapi_endpoint_info *endpoint;
} lvd_mcapi_domain_info;

/* The numbers of the domains that exist by name, ascending: at most `room` of them in `number`;
 * *count is set to how many there are. */
LVD_API lvd_status lvd_mcapi_domains(uint32_t *number, uint32_t room, uint32_t *count);
/* Reads a domain; free *out with lvd_mcapi_domain_forget. LVD_E_NOT_FOUND: no such domain;
 * LVD_E_ABI: not a file of this version. */
LVD_API lvd_status lvd_mcapi_domain_snapshot(uint32_t number, lvd_mcapi_domain_info *out);
/* Frees what lvd_mcapi_domain_snapshot allocated. */
LVD_API void lvd_mcapi_domain_forget(lvd_mcapi_domain_info *seen);

/* Removes what dead processes have left in a domain, as a process that joins it does; live
 * processes are not disturbed. If no process is alive, the domain's names are removed too.
 * LVD_E_ABI: a process of another version uses it. */
typedef struct lvd_mcapi_cleanup_result {
  uint32_t processes, nodes, endpoints;
  bool gone; /* the domain was removed, since no process was in it */
} lvd_mcapi_cleanup_result;
LVD_API lvd_status lvd_mcapi_domain_clean(uint32_t number, lvd_mcapi_cleanup_result *out);

#ifdef __cplusplus
}
#endif
#endif
