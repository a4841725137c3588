/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Extensions of the standard's <mcapi.h>: the transport, file descriptors to poll, wait modes,
 * packets written in place, and channels with several receivers. An endpoint argument must be the
 * caller's own; a channel handle may be passed instead of its endpoint. Statuses are the
 * standard's. C17 and C++17. */
#ifndef LVD_MCAPI_EXT_H
#define LVD_MCAPI_EXT_H

#include <levada/base.h>
#include <mcapi.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the transport -------------------------------------------------------------------------- */

/* Node attribute (mcapi_uint_t), set before mcapi_initialize: the transport of the domain's
 * messages and channels. The first node of a domain determines it; MCAPI_ERR_ATTR_INCOMPATIBLE:
 * the domain uses another one. The default is the value of the environment variable
 * LEVADA_MCAPI_TRANSPORT (shm or pmq); if that is not set, any transport is accepted.
 * mcapi_node_get_attribute returns the one in use. */
#define LVD_MCAPI_NODE_ATTR_TRANSPORT 0x4c560000u
#define LVD_MCAPI_TRANSPORT_SHM       1u /* shared memory */
#define LVD_MCAPI_TRANSPORT_PMQ       2u /* POSIX message queues */

/* ---- shared domains ------------------------------------------------------------------------- */

/* Node attribute (mcapi_uint_t), set before mcapi_initialize: the number of the group of users
 * that share the domain. It is distinct from the private domain of the same number that each user
 * has. The default is the group in the environment variable LEVADA_MCAPI_GROUP (a name or a
 * number); if that is not set, the domain is private to the user. Shared memory only: else
 * MCAPI_ERR_ATTR_INCOMPATIBLE. MCAPI_ERR_NODE_INITFAILED: no such group, or the user is not a
 * member. */
#define LVD_MCAPI_NODE_ATTR_GROUP 0x4c560001u
#define LVD_MCAPI_NO_GROUP        (~0u)

/* ---- file descriptors ----------------------------------------------------------------------- */

/* A descriptor for poll, select and epoll: readable when a message, packet or scalar may have
 * arrived at `endpoint`, or its channel has ended, until lvd_mcapi_pending_count finds nothing.
 * Created at the first call and closed with the endpoint; the caller must not read or close it.
 * Negative: see the status. */
LVD_API int lvd_mcapi_descriptor(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status);
/* Call it whenever the descriptor was readable: returns how many items can be received now
 * (possibly 0). 0 with MCAPI_ERR_CHAN_CLOSEPENDING or MCAPI_ERR_TRANSMISSION: nothing more will
 * arrive on the channel. */
LVD_API mcapi_uint_t lvd_mcapi_pending_count(mcapi_endpoint_t endpoint,
                                             mcapi_status_t *mcapi_status);

/* ---- wait modes ----------------------------------------------------------------------------- */

enum {
  /* default: poll first, since a wake-up costs as much as about 50 us of polling */
  LVD_MCAPI_SPIN_THEN_SLEEP,
  LVD_MCAPI_SPIN, /* poll only: fastest if a core can be spared */
  LVD_MCAPI_SLEEP /* sleep at once: waiting uses no CPU time */
};
/* Sets the mode of threads that wait at `endpoint` for a message, a packet, a scalar or room; a
 * waiting fiber always releases its worker. `spin_us` is the polling time in microseconds of
 * LVD_MCAPI_SPIN_THEN_SLEEP. */
LVD_API void lvd_mcapi_set_wait_policy(mcapi_endpoint_t endpoint, int how, uint32_t spin_us,
                                       mcapi_status_t *mcapi_status);

/* ---- packets without a copy ----------------------------------------------------------------- */

/* Lends a buffer of `size` bytes in the memory from which the receiver reads: fill it in and send
 * it. Waits for room like mcapi_pktchan_send. One buffer at a time; meanwhile other sends on the
 * channel get MCAPI_ERR_MEM_LIMIT. The caller owns the buffer until it is sent or returned, even
 * if the end is closed. Null: see the status. */
LVD_API void *lvd_mcapi_buffer_acquire(mcapi_pktchan_send_hndl_t send_handle, size_t size,
                                       mcapi_status_t *mcapi_status);
/* Sends the first `size` bytes of the buffer as a packet. MCAPI_ERR_BUF_INVALID: `buffer` is not
 * the one acquired. */
LVD_API void lvd_mcapi_buffer_send(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                                   size_t size, mcapi_status_t *mcapi_status);
/* Returns the buffer unsent. */
LVD_API void lvd_mcapi_buffer_release(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                                      mcapi_status_t *mcapi_status);

/* ---- several receivers ---------------------------------------------------------------------- */

/* Adds `receive_endpoint` to the receivers of the packets from `send_endpoint`: at most 16, else
 * MCAPI_ERR_MEM_LIMIT. Either side or a third node may call it, at any time before the sender
 * closes. Both ends are opened, used and closed like those of any packet channel; the sender's
 * open completes when the open of a first receiver has been requested.
 *
 * A receiver gets each packet that is sent after its open completed, in order and complete. The
 * sender waits for the slowest receiver (or gets MCAPI_ERR_MEM_LIMIT or MCAPI_TIMEOUT, as
 * requested); a receiver that has closed or died no longer counts. With no receivers left, packets
 * are discarded. Receivers see the sender's end as on any channel. Over message queues:
 * MCAPI_ERR_ATTR_NOTSUPPORTED. */
LVD_API void lvd_mcapi_broadcast_connect_i(mcapi_endpoint_t send_endpoint,
                                           mcapi_endpoint_t receive_endpoint,
                                           mcapi_request_t *request, mcapi_status_t *mcapi_status);

#ifdef __cplusplus
}
#endif
#endif
