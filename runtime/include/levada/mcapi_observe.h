/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The MCAPI domains of this machine, seen from outside: who is in them, what waits where, what has
 * gone through; and cleared of what the dead have left.
 *
 * For a tool, not for a node: in a process that has one, these calls say LVD_E_STATE. What is looked at is
 * a copy, checked, of what others write; looking changes nothing and waits for nobody. Domains whose
 * files are another user's are not seen. C17 and C++17. */
#ifndef LVD_MCAPI_OBSERVE_H
#define LVD_MCAPI_OBSERVE_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_mcapi_node_seen {
  uint32_t id;
  uint32_t process; /* its number in the system */
  bool alive;       /* else it died and nobody has cleared it away yet */
} lvd_mcapi_node_seen;

/* What an endpoint is used for. */
enum { LVD_MCAPI_MESSAGES = 0, LVD_MCAPI_PACKETS = 1, LVD_MCAPI_SCALARS = 2 };

typedef struct lvd_mcapi_endpoint_seen {
  uint32_t handle, node, port;
  bool alive;
  /* Its channel, if it is an end of one. */
  uint32_t kind; /* LVD_MCAPI_PACKETS, LVD_MCAPI_SCALARS */
  bool sends, connected, opened, closed;
  uint32_t peer, peer_node, peer_port; /* handle 0: not connected, or a broadcast's sender, */
  uint32_t receivers;                  /* which has so many */
  uint32_t messages;                   /* that wait to be received */
  uint32_t elements;                   /* packets or scalars that wait in the channel it receives */
  uint64_t received, received_bytes;   /* of all kinds, since it was created */
} lvd_mcapi_endpoint_seen;

typedef struct lvd_mcapi_domain_seen {
  uint32_t number;
  uint32_t transport;       /* 1: shared memory; 2: POSIX message queues */
  uint32_t processes, dead; /* in the table; of those, how many are not alive */
  uint32_t node_count, endpoint_count;
  lvd_mcapi_node_seen *node;
  lvd_mcapi_endpoint_seen *endpoint;
} lvd_mcapi_domain_seen;

/* The numbers of the domains that have names here, in order: at most `room` of them into `number`;
 * *count: how many there are. */
LVD_API lvd_status lvd_mcapi_domains(uint32_t *number, uint32_t room, uint32_t *count);
/* LVD_E_UNKNOWN: there is no such domain; LVD_E_LAYOUT: it is no file of this version. */
LVD_API lvd_status lvd_mcapi_domain_look(uint32_t number, lvd_mcapi_domain_seen *out);
LVD_API void lvd_mcapi_domain_forget(lvd_mcapi_domain_seen *seen);

/* Clears away what dead processes have left in a domain, as one that joins it does: others go on. Where
 * nobody is alive, its names go, too. LVD_E_LAYOUT: a process of another version is at work in it. */
typedef struct lvd_mcapi_cleared {
  uint32_t processes, nodes, endpoints;
  bool gone; /* the domain, since nobody is in it */
} lvd_mcapi_cleared;
LVD_API lvd_status lvd_mcapi_domain_clean(uint32_t number, lvd_mcapi_cleared *out);

#ifdef __cplusplus
}
#endif
#endif
