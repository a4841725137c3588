/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI: types and limits that the standard leaves to the implementation. Included by <mcapi.h>. C
 * and C++. */
#ifndef MCAPI_IMPL_SPEC_H
#define MCAPI_IMPL_SPEC_H

#include "mca.h"
#include "mca_impl_spec.h"

/* ---- types ---------------------------------------------------------------------------------- */

/* Handles, to be compared with ==. An endpoint's is the same in all nodes of a domain, so it can
 * be sent in a message; it is never 0. A request's is valid in its own node only. */
typedef mca_uint32_t mcapi_endpoint_t;
typedef mca_request_t mcapi_request_t;
typedef mca_uint32_t mcapi_pktchan_recv_hndl_t;
typedef mca_uint32_t mcapi_pktchan_send_hndl_t;
typedef mca_uint32_t mcapi_sclchan_recv_hndl_t;
typedef mca_uint32_t mcapi_sclchan_send_hndl_t;

/* Not used: null, or any value, may be passed. */
typedef mca_uint_t mcapi_param_t;

/* ---- limits --------------------------------------------------------------------------------- */

#define MCAPI_NUM_RESERVED_PORTS 0
#define MCAPI_MAX_DOMAIN         0x7fffffff /* the largest numbers */
#define MCAPI_MAX_NODE           0x7fffffff
#define MCAPI_MIN_PORT           0
#define MCAPI_MAX_PORT           0x7fffffff
#define MCAPI_MIN_PRORITY        7     /* the least urgent; spelled so in the standard */
#define MCAPI_MAX_MESSAGE_SIZE   65536 /* bytes */
#define MCAPI_MAX_PACKET_SIZE    65536

/* Maximum numbers. */
#define MCAPI_MAX_NODES          256  /* in a domain */
#define MCAPI_MAX_ENDPOINTS      1024 /* in a domain */
#define MCAPI_MAX_REQUESTS       1024 /* under way in a process */
#define MCAPI_MAX_QUEUE_ELEMENTS 64   /* messages at an endpoint; fewer over message queues */
#define MCAPI_MAX_BUFFERS        64   /* packets of a channel that its receiver holds */

#endif
