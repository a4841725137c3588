/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI 2.015: messages, packet channels and scalar channels between the nodes of a domain.
 *
 * Provides all names of the standard, and those of 2.000 that 2.015 has renamed. Timeouts are in
 * milliseconds. Each call stores a status through its last argument, which may be null. The guide
 * says what the standard leaves open, and what was chosen. C and C++. */
#ifndef MCAPI_H
#define MCAPI_H

#include "mca.h"
#include "mcapi_impl_spec.h" /* what the standard leaves to the implementation */

#ifdef __cplusplus
extern "C" {
#endif

/* ---- types ---------------------------------------------------------------------------------- */

typedef mca_int_t mcapi_int_t;
typedef mca_int8_t mcapi_int8_t;
typedef mca_int16_t mcapi_int16_t;
typedef mca_int32_t mcapi_int32_t;
typedef mca_int64_t mcapi_int64_t;
typedef mca_uint_t mcapi_uint_t;
typedef mca_uint8_t mcapi_uint8_t;
typedef mca_uint16_t mcapi_uint16_t;
typedef mca_uint32_t mcapi_uint32_t;
typedef mca_uint64_t mcapi_uint64_t;
typedef mca_boolean_t mcapi_boolean_t;
typedef mca_domain_t mcapi_domain_t;
typedef mca_node_t mcapi_node_t;
typedef mca_status_t mcapi_status_t;
typedef mca_timeout_t mcapi_timeout_t;
typedef unsigned int mcapi_port_t;
typedef unsigned int mcapi_priority_t;

/* ---- constants ------------------------------------------------------------------------------ */

#define MCAPI_VERSION              2015
#define MCAPI_TRUE                 MCA_TRUE
#define MCAPI_FALSE                MCA_FALSE
#define MCAPI_NULL                 MCA_NULL
#define MCAPI_PORT_ANY             (~0u)
#define MCAPI_TIMEOUT_INFINITE     (~0u)
#define MCAPI_TIMEOUT_IMMEDIATE    0
#define MCAPI_NODE_INVALID         (~0u)
#define MCAPI_DOMAIN_INVALID       (~0u)
#define MCAPI_RETURN_VALUE_INVALID (~0u)
#define MCAPI_MAX_PRORITY          0 /* the most urgent; spelled so in the standard */
#define MCAPI_MAX_STATUS_MSG_LEN   32

/* Names of 2.000 and of other implementations. */
#define MCAPI_MAX_STATUS_SIZE MCAPI_MAX_STATUS_MSG_LEN
#define MCAPI_MAX_PRIORITY    MCAPI_MAX_PRORITY
#define MCAPI_MIN_PRIORITY    MCAPI_MIN_PRORITY
#define MCAPI_MAX_MSG_SIZE    MCAPI_MAX_MESSAGE_SIZE
#define MCAPI_MAX_PKT_SIZE    MCAPI_MAX_PACKET_SIZE
#define MCAPI_INFINITE        MCAPI_TIMEOUT_INFINITE

#ifndef MCAPI_IN
#define MCAPI_IN const
#endif
#ifndef MCAPI_OUT
#define MCAPI_OUT
#endif
#ifndef MCAPI_DECL_ALIGNED
#define MCAPI_DECL_ALIGNED MCA_DECL_ALIGNED
#endif
#ifndef MCAPI_BUF_ALIGN
#define MCAPI_BUF_ALIGN 0xff
#endif

/* ---- statuses ------------------------------------------------------------------------------- */

enum mcapi_status_codes {
  MCAPI_SUCCESS = 1,
  MCAPI_PENDING,              /* in progress, without errors */
  MCAPI_TIMEOUT,              /* the timeout has passed */
  MCAPI_ERR_PARAMETER,        /* incorrect parameter */
  MCAPI_ERR_DOMAIN_INVALID,   /* not a valid domain */
  MCAPI_ERR_NODE_INVALID,     /* not a valid node */
  MCAPI_ERR_NODE_INITFAILED,  /* the node could not be initialized */
  MCAPI_ERR_NODE_INITIALIZED, /* the node is initialized already */
  MCAPI_ERR_NODE_NOTINIT,     /* the node is not initialized */
  MCAPI_ERR_NODE_FINALFAILED, /* the node could not be finalized */
  MCAPI_ERR_PORT_INVALID,     /* not a valid port */
  MCAPI_ERR_ENDP_INVALID,     /* not a valid endpoint */
  MCAPI_ERR_ENDP_EXISTS,      /* the endpoint is created already */
  MCAPI_ERR_ENDP_GET_LIMIT,   /* too many references by endpoint_get */
  MCAPI_ERR_ENDP_DELETED,     /* the endpoint has been deleted */
  MCAPI_ERR_ENDP_NOTOWNER,    /* only its creator can delete an endpoint */
  MCAPI_ERR_ENDP_REMOTE,      /* only possible on the node's own endpoints */
  MCAPI_ERR_ENDP_NOPORTS,     /* the node has no port left */
  MCAPI_ERR_ENDP_LIMIT,       /* the domain has no endpoint left */
  MCAPI_ERR_ATTR_INCOMPATIBLE,
  MCAPI_ERR_ATTR_SIZE,
  MCAPI_ERR_ATTR_NUM,
  MCAPI_ERR_ATTR_VALUE,
  MCAPI_ERR_ATTR_NOTSUPPORTED,
  MCAPI_ERR_ATTR_READONLY,
  MCAPI_ERR_MSG_SIZE,         /* larger than a message may be */
  MCAPI_ERR_MSG_TRUNCATED,    /* larger than the buffer */
  MCAPI_ERR_CHAN_OPEN,        /* the channel is open */
  MCAPI_ERR_CHAN_TYPE,        /* connected as a channel of another type */
  MCAPI_ERR_CHAN_DIRECTION,   /* connected as the other side */
  MCAPI_ERR_CHAN_CONNECTED,   /* one of the endpoints is connected */
  MCAPI_ERR_CHAN_OPENPENDING, /* it is being opened */
  MCAPI_ERR_CHAN_CLOSEPENDING,
  MCAPI_ERR_CHAN_NOTOPEN,
  MCAPI_ERR_CHAN_INVALID, /* not a channel's handle */
  MCAPI_ERR_PKT_SIZE,     /* larger than a packet may be */
  MCAPI_ERR_SCL_SIZE,     /* the scalar has another size; it stays queued */
  MCAPI_ERR_TRANSMISSION, /* the other side is gone */
  MCAPI_ERR_PRIORITY,
  MCAPI_ERR_BUF_INVALID, /* not a buffer that was received */
  MCAPI_ERR_MEM_LIMIT,
  MCAPI_ERR_REQUEST_INVALID,
  MCAPI_ERR_REQUEST_LIMIT,
  MCAPI_ERR_REQUEST_CANCELLED,
  MCAPI_ERR_WAIT_PENDING, /* another call already waits for the request */
  MCAPI_ERR_GENERAL,
  MCAPI_STATUSCODE_END, /* always the last */
  /* Names in 2.000. */
  MCAPI_ERR_MSG_LIMIT = MCAPI_ERR_MSG_SIZE,
  MCAPI_ERR_PKT_LIMIT = MCAPI_ERR_PKT_SIZE
};

/* ---- attributes ----------------------------------------------------------------------------- */

enum mcapi_node_attribute_numbers { MCAPI_NODE_ATTR_TYPE, MCAPI_NODE_ATTR_END };
enum mcapi_node_attribute_types { MCAPI_NODE_ATTR_TYPE_REGULAR, MCAPI_NODE_ATTR_TYPE_END };

typedef mcapi_uint_t mcapi_node_attr_type_t;

/* Initialize with mcapi_node_init_attributes. */
typedef struct {
  mcapi_node_attr_type_t type;
  mcapi_uint_t transport, group; /* levada/mcapi_ext.h */
} mcapi_node_attributes_t;

/* C: must be equal at both ends of a channel. W: writable. */
enum mcapi_endp_attribute_numbers {
  MCAPI_ENDP_ATTR_TYPE,             /*    message, packet channel or scalar channel */
  MCAPI_ENDP_ATTR_GET_COUNT,        /*    gets that have not been released */
  MCAPI_ENDP_ATTR_GET_SOURCE,       /*    the node that got it last */
  MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, /* C W */
  MCAPI_ENDP_ATTR_BUFFER_TYPE,      /* C */
  /* C W location of the memory, and behaviour if there is none left */
  MCAPI_ENDP_ATTR_MEMORY_TYPE,
  MCAPI_ENDP_ATTR_NUM_PRIORITIES,   /* C W */
  MCAPI_ENDP_ATTR_PRIORITY,         /* C W */
  MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS, /*   W */
  MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, /*   W receive buffers that are free */
  MCAPI_ENDP_ATTR_ENDP_STATUS,      /*    MCAPI_ENDP_ATTR_STATUS_... */
  MCAPI_ENDP_ATTR_TIMEOUT,          /*   W of calls that block */
  MCAPI_ENDP_ATTR_END
};

typedef mcapi_uint_t mcapi_endp_attr_type_t;
#define MCAPI_ENDP_ATTR_TYPE_MESSAGE 0x00000001
#define MCAPI_ENDP_ATTR_TYPE_PKTCHAN 0x00000002
#define MCAPI_ENDP_ATTR_TYPE_SCLCHAN 0x00000004

typedef mcapi_uint_t mcapi_endp_attr_get_count_t;

typedef struct {
  mcapi_domain_t domain_id; /* MCAPI_DOMAIN_INVALID: none */
  mcapi_node_t node_id;
} mcapi_endp_attr_get_source_t;

typedef mcapi_int_t mcapi_endp_attr_max_payload_size_t;

typedef mcapi_uint_t mcapi_endp_attr_buffer_type_t;
enum mcapi_buffer_type { MCAPI_ENDP_ATTR_FIFO_BUFFER };

typedef mcapi_uint_t mcapi_endp_attr_memory_type_t;
enum mcapi_memory_type {
  MCAPI_ENDP_ATTR_LOCAL_MEMORY, /* the lower 16 bits */
  MCAPI_ENDP_ATTR_SHARED_MEMORY,
  MCAPI_ENDP_ATTR_REMOTE_MEMORY
};
#define MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT 0x00000000 /* the upper 16 bits */
#define MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT  0x00010000

typedef mcapi_int_t mcapi_endp_attr_num_priorities_t;
typedef mcapi_uint_t mcapi_endp_attr_priority_t;
typedef mcapi_int_t mcapi_endp_attr_num_send_buffers_t;
typedef mcapi_uint_t mcapi_endp_attr_num_recv_buffers_t;

/* One bit each. (In the standard's own header two groups of them share the lowest four bits.) */
typedef mcapi_uint_t mcapi_endp_attr_status_t;
#define MCAPI_ENDP_ATTR_STATUS_CONNECTED     0x00000001
#define MCAPI_ENDP_ATTR_STATUS_OPEN          0x00000002
#define MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING  0x00000004
#define MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING 0x00000008
#define MCAPI_ENDP_ATTR_STATUS_GET_PENDING   0x00000010
#define MCAPI_ENDP_ATTR_STATUS_PKTCHAN       0x00000020
#define MCAPI_ENDP_ATTR_STATUS_SCLCHAN       0x00000040
#define MCAPI_ENDP_ATTR_STATUS_SEND          0x00000080
#define MCAPI_ENDP_ATTR_STATUS_RECEIVE       0x00000100

typedef mcapi_timeout_t mcapi_endp_attr_timeout_t;

/* Attribute numbers: the standard's, followed by ranges of other organizations. */
#define MCAPI_MAX_NUM_ENDP_ATTRS_MCA   64
#define MCAPI_MAX_NUM_ENDP_ATTRS_OTHER 32
#define mcapi_start_endp_attribute(x)                                                              \
  (MCAPI_MAX_NUM_ENDP_ATTRS_MCA + ((x)*MCAPI_MAX_NUM_ENDP_ATTRS_OTHER))
#define mcapi_end_endp_attribute(x)                                                                \
  (MCAPI_MAX_NUM_ENDP_ATTRS_MCA + (((x) + 1) * MCAPI_MAX_NUM_ENDP_ATTRS_OTHER))

typedef struct {
  mcapi_uint_t organization_id;
  mcapi_uint_t start_endp_attr_num;
  mcapi_uint_t end_endp_attr_num;
} mcapi__endp_attr_range_t; /* spelled so in the standard */

typedef struct {
  mcapi_uint_t mcapi_version;
  mcapi_uint_t organization_id;
  /* the last three hexadecimal digits are the minor version */
  mcapi_uint_t implementation_version;
  mcapi_uint_t number_of_domains;
  mcapi_uint_t number_of_nodes; /* current number in the domain */
  mcapi_uint_t number_of_ports; /* maximum number per node */
} mcapi_info_t;

/* ---- nodes ---------------------------------------------------------------------------------- */

#if defined(__GNUC__)
#define MCAPI_DECL extern __attribute__((visibility("default")))
#else
#define MCAPI_DECL extern
#endif

MCAPI_DECL void mcapi_initialize(MCAPI_IN mcapi_domain_t domain_id, MCAPI_IN mcapi_node_t node_id,
                                 MCAPI_IN mcapi_node_attributes_t *mcapi_node_attributes,
                                 MCAPI_IN mcapi_param_t *init_parameters,
                                 MCAPI_OUT mcapi_info_t *mcapi_info,
                                 MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_finalize(MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_domain_t mcapi_domain_id_get(MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_node_t mcapi_node_id_get(MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_node_init_attributes(MCAPI_OUT mcapi_node_attributes_t *mcapi_node_attributes,
                                           MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_node_get_attribute(MCAPI_IN mcapi_domain_t domain_id,
                                         MCAPI_IN mcapi_node_t node_id,
                                         MCAPI_IN mcapi_uint_t attribute_num,
                                         MCAPI_OUT void *attribute, MCAPI_IN size_t attribute_size,
                                         MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_node_set_attribute(MCAPI_OUT mcapi_node_attributes_t *mcapi_node_attributes,
                                         MCAPI_IN mcapi_uint_t attribute_num,
                                         MCAPI_IN void *attribute, MCAPI_IN size_t attribute_size,
                                         MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- endpoints ------------------------------------------------------------------------------ */

MCAPI_DECL mcapi_endpoint_t mcapi_endpoint_create(MCAPI_IN mcapi_port_t port_id,
                                                  MCAPI_OUT mcapi_status_t *mcapi_status);
/* Waits until the endpoint has been created. */
MCAPI_DECL void mcapi_endpoint_get_i(MCAPI_IN mcapi_domain_t domain_id,
                                     MCAPI_IN mcapi_node_t node_id, MCAPI_IN mcapi_port_t port_id,
                                     MCAPI_OUT mcapi_endpoint_t *endpoint,
                                     MCAPI_OUT mcapi_request_t *request,
                                     MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_endpoint_t mcapi_endpoint_get(MCAPI_IN mcapi_domain_t domain_id,
                                               MCAPI_IN mcapi_node_t node_id,
                                               MCAPI_IN mcapi_port_t port_id,
                                               MCAPI_IN mcapi_timeout_t timeout,
                                               MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_endpoint_release(MCAPI_IN mcapi_endpoint_t endpoint,
                                       MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_endpoint_delete(MCAPI_IN mcapi_endpoint_t endpoint,
                                      MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_endpoint_get_attribute(MCAPI_IN mcapi_endpoint_t endpoint,
                                             MCAPI_IN mcapi_uint_t attribute_num,
                                             MCAPI_OUT void *attribute,
                                             MCAPI_IN size_t attribute_size,
                                             MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_endpoint_set_attribute(MCAPI_IN mcapi_endpoint_t endpoint,
                                             MCAPI_IN mcapi_uint_t attribute_num,
                                             MCAPI_IN void *attribute,
                                             MCAPI_IN size_t attribute_size,
                                             MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- messages ------------------------------------------------------------------------------- */

MCAPI_DECL void mcapi_msg_send_i(MCAPI_IN mcapi_endpoint_t send_endpoint,
                                 MCAPI_IN mcapi_endpoint_t receive_endpoint, MCAPI_IN void *buffer,
                                 MCAPI_IN size_t buffer_size, MCAPI_IN mcapi_priority_t priority,
                                 MCAPI_OUT mcapi_request_t *request,
                                 MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_msg_send(MCAPI_IN mcapi_endpoint_t send_endpoint,
                               MCAPI_IN mcapi_endpoint_t receive_endpoint, MCAPI_IN void *buffer,
                               MCAPI_IN size_t buffer_size, MCAPI_IN mcapi_priority_t priority,
                               MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_msg_recv_i(MCAPI_IN mcapi_endpoint_t receive_endpoint, MCAPI_OUT void *buffer,
                                 MCAPI_IN size_t buffer_size, MCAPI_OUT mcapi_request_t *request,
                                 MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_msg_recv(MCAPI_IN mcapi_endpoint_t receive_endpoint, MCAPI_OUT void *buffer,
                               MCAPI_IN size_t buffer_size, MCAPI_OUT size_t *received_size,
                               MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint_t mcapi_msg_available(MCAPI_IN mcapi_endpoint_t receive_endpoint,
                                            MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- packet channels ------------------------------------------------------------------------ */

MCAPI_DECL void mcapi_pktchan_connect_i(MCAPI_IN mcapi_endpoint_t send_endpoint,
                                        MCAPI_IN mcapi_endpoint_t receive_endpoint,
                                        MCAPI_OUT mcapi_request_t *request,
                                        MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_recv_open_i(MCAPI_OUT mcapi_pktchan_recv_hndl_t *receive_handle,
                                          MCAPI_IN mcapi_endpoint_t receive_endpoint,
                                          MCAPI_OUT mcapi_request_t *request,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_send_open_i(MCAPI_OUT mcapi_pktchan_send_hndl_t *send_handle,
                                          MCAPI_IN mcapi_endpoint_t send_endpoint,
                                          MCAPI_OUT mcapi_request_t *request,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_send_i(MCAPI_IN mcapi_pktchan_send_hndl_t send_handle,
                                     MCAPI_IN void *buffer, MCAPI_IN size_t size,
                                     MCAPI_OUT mcapi_request_t *request,
                                     MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_send(MCAPI_IN mcapi_pktchan_send_hndl_t send_handle,
                                   MCAPI_IN void *buffer, MCAPI_IN size_t size,
                                   MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_recv_i(MCAPI_IN mcapi_pktchan_recv_hndl_t receive_handle,
                                     MCAPI_OUT void **buffer, MCAPI_OUT mcapi_request_t *request,
                                     MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_recv(MCAPI_IN mcapi_pktchan_recv_hndl_t receive_handle,
                                   MCAPI_OUT void **buffer, MCAPI_OUT size_t *received_size,
                                   MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint_t mcapi_pktchan_available(MCAPI_IN mcapi_pktchan_recv_hndl_t receive_handle,
                                                MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_release(MCAPI_IN void *buffer,
                                      MCAPI_OUT mcapi_status_t *mcapi_status);
/* Would mcapi_pktchan_release succeed? (In the standard's own header the status is not a pointer.)
 */
MCAPI_DECL mcapi_boolean_t mcapi_pktchan_release_test(MCAPI_IN void *buffer,
                                                      MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_recv_close_i(MCAPI_IN mcapi_pktchan_recv_hndl_t receive_handle,
                                           MCAPI_OUT mcapi_request_t *request,
                                           MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_pktchan_send_close_i(MCAPI_IN mcapi_pktchan_send_hndl_t send_handle,
                                           MCAPI_OUT mcapi_request_t *request,
                                           MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- scalar channels ------------------------------------------------------------------------ */

MCAPI_DECL void mcapi_sclchan_connect_i(MCAPI_IN mcapi_endpoint_t send_endpoint,
                                        MCAPI_IN mcapi_endpoint_t receive_endpoint,
                                        MCAPI_OUT mcapi_request_t *request,
                                        MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_recv_open_i(MCAPI_OUT mcapi_sclchan_recv_hndl_t *receive_handle,
                                          MCAPI_IN mcapi_endpoint_t receive_endpoint,
                                          MCAPI_OUT mcapi_request_t *request,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_open_i(MCAPI_OUT mcapi_sclchan_send_hndl_t *send_handle,
                                          MCAPI_IN mcapi_endpoint_t send_endpoint,
                                          MCAPI_OUT mcapi_request_t *request,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_uint64(MCAPI_IN mcapi_sclchan_send_hndl_t send_handle,
                                          MCAPI_IN mcapi_uint64_t dataword,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_uint32(MCAPI_IN mcapi_sclchan_send_hndl_t send_handle,
                                          MCAPI_IN mcapi_uint32_t dataword,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_uint16(MCAPI_IN mcapi_sclchan_send_hndl_t send_handle,
                                          MCAPI_IN mcapi_uint16_t dataword,
                                          MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_uint8(MCAPI_IN mcapi_sclchan_send_hndl_t send_handle,
                                         MCAPI_IN mcapi_uint8_t dataword,
                                         MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint64_t mcapi_sclchan_recv_uint64(
    MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle, MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint32_t mcapi_sclchan_recv_uint32(
    MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle, MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint16_t mcapi_sclchan_recv_uint16(
    MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle, MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint8_t mcapi_sclchan_recv_uint8(MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle,
                                                  MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_uint_t mcapi_sclchan_available(MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle,
                                                MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_recv_close_i(MCAPI_IN mcapi_sclchan_recv_hndl_t receive_handle,
                                           MCAPI_OUT mcapi_request_t *request,
                                           MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_sclchan_send_close_i(MCAPI_IN mcapi_sclchan_send_hndl_t send_handle,
                                           MCAPI_OUT mcapi_request_t *request,
                                           MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- requests ------------------------------------------------------------------------------- */

/* True: the request is complete and freed, and `size` (may be null) is the number of bytes sent or
 * received. False: see the status; after MCAPI_PENDING and MCAPI_TIMEOUT the request is still
 * valid. */
MCAPI_DECL mcapi_boolean_t mcapi_test(MCAPI_IN mcapi_request_t *request, MCAPI_OUT size_t *size,
                                      MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL mcapi_boolean_t mcapi_wait(MCAPI_IN mcapi_request_t *request, MCAPI_OUT size_t *size,
                                      MCAPI_IN mcapi_timeout_t timeout,
                                      MCAPI_OUT mcapi_status_t *mcapi_status);
/* Returns the index of the completed request. */
MCAPI_DECL mcapi_uint_t mcapi_wait_any(MCAPI_IN size_t number, mcapi_request_t **requests,
                                       MCAPI_OUT size_t *size, MCAPI_IN mcapi_timeout_t timeout,
                                       MCAPI_OUT mcapi_status_t *mcapi_status);
MCAPI_DECL void mcapi_cancel(MCAPI_IN mcapi_request_t *request,
                             MCAPI_OUT mcapi_status_t *mcapi_status);

/* ---- extensions ----------------------------------------------------------------------------- */

/* Writes the name of a status to `status_message` (`size` bytes, MCAPI_MAX_STATUS_MSG_LEN suffice)
 * and returns it; null: no such status. */
MCAPI_DECL char *mcapi_display_status(MCAPI_IN mcapi_status_t status,
                                      MCAPI_OUT char *status_message, MCAPI_IN size_t size);
/* No effect: the library prints nothing. */
MCAPI_DECL void mcapi_set_debug_level(int d);

#ifdef __cplusplus
}
#endif
#endif
