/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Beyond the standard's <mcapi.h>: the transport, descriptors to poll, how to wait, packets that are written where they
 * will be read, and channels with many receivers. An endpoint is the caller's own; a channel's handle may stand for its endpoint.
 * Statuses are the standard's. C17 and C++17. */
#ifndef LVD_MCAPI_EXT_H
#define LVD_MCAPI_EXT_H

#include <levada/base.h>
#include <mcapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the transport -------------------------------------------------------------------------- */

/* An attribute of nodes (mcapi_uint_t), to be set before mcapi_initialize: what carries the domain's
 * messages and channels. Whoever enters a domain first decides; MCAPI_ERR_ATTR_INCOMPATIBLE: another transport
 * is at work there. Who sets none asks for what LEVADA_MCAPI_TRANSPORT (shm or pmq) says in the environment;
 * where that says nothing, either will do. mcapi_node_get_attribute says which it is. */
#define LVD_MCAPI_NODE_ATTR_TRANSPORT 0x4c560000u
#define LVD_MCAPI_TRANSPORT_SHM       1u /* shared memory */
#define LVD_MCAPI_TRANSPORT_PMQ       2u /* POSIX message queues */

/* ---- a domain that is shared ---------------------------------------------------------------- */

/* An attribute of nodes (mcapi_uint_t), to be set before mcapi_initialize: the number of a group of users, whose
 * members share the domain. It is another one than that of the same number which each has alone. Who sets none
 * asks for the group that LEVADA_MCAPI_GROUP (a name, or a number) says in the environment; where that says
 * nothing, the domain is the user's alone. Over shared memory only: MCAPI_ERR_ATTR_INCOMPATIBLE.
 * MCAPI_ERR_NODE_INITFAILED: there is no such group, or the user is no member. */
#define LVD_MCAPI_NODE_ATTR_GROUP 0x4c560001u
#define LVD_MCAPI_NO_GROUP        (~0u)

/* ---- a descriptor to wait on ---------------------------------------------------------------- */

/* For poll, select and epoll: readable when something may have come to `endpoint`, a message, a packet or a
 * scalar, or its channel has ended; until lvd_mcapi_ready finds nothing. Made at the first call, closed
 * with the endpoint; not to be read or closed by others. Negative: see the status. */
LVD_API int lvd_mcapi_descriptor(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status);
/* To be asked whenever the descriptor was readable: how much can be received now (at times nothing).
 * 0 with MCAPI_ERR_CHAN_CLOSEPENDING or MCAPI_ERR_TRANSMISSION: nor will anything more come from the channel. */
LVD_API mcapi_uint_t lvd_mcapi_ready(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status);

/* ---- how to wait ---------------------------------------------------------------------------- */

enum {
  LVD_MCAPI_SPIN_THEN_SLEEP, /* the default: a wake-up costs as much as some 50 us of looking around */
  LVD_MCAPI_SPIN,            /* the fastest where a core can be spared */
  LVD_MCAPI_SLEEP            /* at once: no CPU time goes into waiting */
};
/* Of threads that wait for a message, a packet, a scalar or room at `endpoint`; fibers let their worker go on
 * with something else in any case. `spin_us` counts for LVD_MCAPI_SPIN_THEN_SLEEP. */
LVD_API void lvd_mcapi_wait_by(mcapi_endpoint_t endpoint, int how, uint32_t spin_us,
                               mcapi_status_t *mcapi_status);

/* ---- packets without a copy ----------------------------------------------------------------- */

/* A buffer of `size` bytes that lies where the receiver will read: fill it in, and send it. Waits for room
 * like mcapi_pktchan_send. One at a time; while it is out, others that send on the channel get
 * MCAPI_ERR_MEM_LIMIT. It is the program's until it is sent or returned, also when the end is closed. Null: see the
 * status. */
LVD_API void *lvd_mcapi_loan(mcapi_pktchan_send_hndl_t send_handle, size_t size,
                             mcapi_status_t *mcapi_status);
/* The first `size` bytes of it are a packet. MCAPI_ERR_BUF_INVALID: it is not the one on loan. */
LVD_API void lvd_mcapi_send_loan(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                                 size_t size, mcapi_status_t *mcapi_status);
/* It is not sent. */
LVD_API void lvd_mcapi_return_loan(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                                   mcapi_status_t *mcapi_status);

/* ---- more than one receiver ----------------------------------------------------------------- */

/* Connects `receive_endpoint` to the packets that `send_endpoint` sends, beside others: at most 16 (then
 * MCAPI_ERR_MEM_LIMIT). By either side or a third, at any time before the sender closes. Both ends are
 * opened, used and closed as any packet channel's; the sender's open is done when that of a first receiver
 * is asked for.
 *
 * A receiver gets every packet that is sent after its open was done, in turn, whole. The sender waits for
 * the slowest of them (or gets MCAPI_ERR_MEM_LIMIT, MCAPI_TIMEOUT, as it has asked for); for one that has
 * closed or is dead no more; and for nobody when all are gone: then what it sends is dropped. Receivers are
 * told of its end as on any channel. Over message queues: MCAPI_ERR_ATTR_NOTSUPPORTED. */
LVD_API void lvd_mcapi_broadcast_connect_i(mcapi_endpoint_t send_endpoint,
                                           mcapi_endpoint_t receive_endpoint,
                                           mcapi_request_t *request, mcapi_status_t *mcapi_status);

#ifdef __cplusplus
}
#endif
#endif
