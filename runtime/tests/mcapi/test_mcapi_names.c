/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Every name of <mcapi.h>: functions with the standard's parameters, types, constants, attributes,
 * statuses, and what programs for 2.000 use. Compiling it is most of the test. */
#include "test_mcapi.h"

typedef mcapi_status_t status;
typedef mcapi_endpoint_t endp;
typedef mcapi_request_t req;
typedef mcapi_pktchan_send_hndl_t pkts;
typedef mcapi_pktchan_recv_hndl_t pktr;
typedef mcapi_sclchan_send_hndl_t scls;
typedef mcapi_sclchan_recv_hndl_t sclr;

/* A program that has not defined parameter directions itself may use these. */
static void of_a_program(MCAPI_IN int in, MCAPI_OUT int *out) { *out = in; }

#define IS(function, returns, ...)                                                                 \
  do {                                                                                             \
    returns (*const f_)(__VA_ARGS__) = function;                                                   \
    CHECK(f_ != NULL);                                                                             \
    count++;                                                                                       \
  } while (0)

void test_mcapi_names(void) {
  int count = 0;
  IS(mcapi_initialize, void, mcapi_domain_t, mcapi_node_t, const mcapi_node_attributes_t *,
     const mcapi_param_t *, mcapi_info_t *, status *);
  IS(mcapi_finalize, void, status *);
  IS(mcapi_domain_id_get, mcapi_domain_t, status *);
  IS(mcapi_node_id_get, mcapi_node_t, status *);
  IS(mcapi_node_init_attributes, void, mcapi_node_attributes_t *, status *);
  IS(mcapi_node_get_attribute, void, mcapi_domain_t, mcapi_node_t, mcapi_uint_t, void *, size_t,
     status *);
  IS(mcapi_node_set_attribute, void, mcapi_node_attributes_t *, mcapi_uint_t, const void *, size_t,
     status *);
  IS(mcapi_endpoint_create, endp, mcapi_port_t, status *);
  IS(mcapi_endpoint_get_i, void, mcapi_domain_t, mcapi_node_t, mcapi_port_t, endp *, req *,
     status *);
  IS(mcapi_endpoint_get, endp, mcapi_domain_t, mcapi_node_t, mcapi_port_t, mcapi_timeout_t,
     status *);
  IS(mcapi_endpoint_release, void, endp, status *);
  IS(mcapi_endpoint_delete, void, endp, status *);
  IS(mcapi_endpoint_get_attribute, void, endp, mcapi_uint_t, void *, size_t, status *);
  IS(mcapi_endpoint_set_attribute, void, endp, mcapi_uint_t, const void *, size_t, status *);
  IS(mcapi_msg_send_i, void, endp, endp, const void *, size_t, mcapi_priority_t, req *, status *);
  IS(mcapi_msg_send, void, endp, endp, const void *, size_t, mcapi_priority_t, status *);
  IS(mcapi_msg_recv_i, void, endp, void *, size_t, req *, status *);
  IS(mcapi_msg_recv, void, endp, void *, size_t, size_t *, status *);
  IS(mcapi_msg_available, mcapi_uint_t, endp, status *);
  IS(mcapi_pktchan_connect_i, void, endp, endp, req *, status *);
  IS(mcapi_pktchan_recv_open_i, void, pktr *, endp, req *, status *);
  IS(mcapi_pktchan_send_open_i, void, pkts *, endp, req *, status *);
  IS(mcapi_pktchan_send_i, void, pkts, const void *, size_t, req *, status *);
  IS(mcapi_pktchan_send, void, pkts, const void *, size_t, status *);
  IS(mcapi_pktchan_recv_i, void, pktr, void **, req *, status *);
  IS(mcapi_pktchan_recv, void, pktr, void **, size_t *, status *);
  IS(mcapi_pktchan_available, mcapi_uint_t, pktr, status *);
  IS(mcapi_pktchan_release, void, const void *, status *);
  IS(mcapi_pktchan_release_test, mcapi_boolean_t, const void *, status *);
  IS(mcapi_pktchan_recv_close_i, void, pktr, req *, status *);
  IS(mcapi_pktchan_send_close_i, void, pkts, req *, status *);
  IS(mcapi_sclchan_connect_i, void, endp, endp, req *, status *);
  IS(mcapi_sclchan_recv_open_i, void, sclr *, endp, req *, status *);
  IS(mcapi_sclchan_send_open_i, void, scls *, endp, req *, status *);
  IS(mcapi_sclchan_send_uint64, void, scls, mcapi_uint64_t, status *);
  IS(mcapi_sclchan_send_uint32, void, scls, mcapi_uint32_t, status *);
  IS(mcapi_sclchan_send_uint16, void, scls, mcapi_uint16_t, status *);
  IS(mcapi_sclchan_send_uint8, void, scls, mcapi_uint8_t, status *);
  IS(mcapi_sclchan_recv_uint64, mcapi_uint64_t, sclr, status *);
  IS(mcapi_sclchan_recv_uint32, mcapi_uint32_t, sclr, status *);
  IS(mcapi_sclchan_recv_uint16, mcapi_uint16_t, sclr, status *);
  IS(mcapi_sclchan_recv_uint8, mcapi_uint8_t, sclr, status *);
  IS(mcapi_sclchan_available, mcapi_uint_t, sclr, status *);
  IS(mcapi_sclchan_recv_close_i, void, sclr, req *, status *);
  IS(mcapi_sclchan_send_close_i, void, scls, req *, status *);
  IS(mcapi_test, mcapi_boolean_t, const req *, size_t *, status *);
  IS(mcapi_wait, mcapi_boolean_t, const req *, size_t *, mcapi_timeout_t, status *);
  IS(mcapi_wait_any, mcapi_uint_t, size_t, req **, size_t *, mcapi_timeout_t, status *);
  IS(mcapi_cancel, void, const req *, status *);
  IS(mcapi_display_status, char *, status, char *, size_t);
  IS(mcapi_set_debug_level, void, int);
  CHECK_EQ(count, 51);

  /* Sizes defined by the standard. */
  CHECK(sizeof(mcapi_int8_t) == 1 && sizeof(mcapi_uint8_t) == 1 && sizeof(mcapi_int16_t) == 2 &&
        sizeof(mcapi_uint16_t) == 2 && sizeof(mcapi_int32_t) == 4 && sizeof(mcapi_uint32_t) == 4 &&
        sizeof(mcapi_int64_t) == 8 && sizeof(mcapi_uint64_t) == 8);
  CHECK(sizeof(mca_int8_t) == 1 && sizeof(mca_int16_t) == 2 && sizeof(mca_int32_t) == 4 &&
        sizeof(mca_int64_t) == 8 && sizeof(mca_int_t) == sizeof(int) &&
        sizeof(mcapi_int_t) == sizeof(int) && sizeof(mca_timeout_t) == sizeof(mcapi_timeout_t) &&
        sizeof(mca_node_t) == sizeof(mcapi_node_t) && sizeof(mca_boolean_t) == 1);
  CHECK(sizeof(endp) == 4 && sizeof(req) == 4 && sizeof(pkts) == 4 && sizeof(pktr) == 4 &&
        sizeof(scls) == 4 && sizeof(sclr) == 4);

  /* Constants. */
  CHECK_EQ(MCAPI_VERSION, 2015);
  CHECK(MCAPI_TRUE == MCA_TRUE && MCAPI_FALSE == MCA_FALSE && MCAPI_NULL == MCA_NULL);
  const mcapi_port_t any = MCAPI_PORT_ANY;
  const mcapi_timeout_t ever = MCAPI_TIMEOUT_INFINITE, now = MCAPI_TIMEOUT_IMMEDIATE;
  CHECK(any == UINT32_MAX && ever == UINT32_MAX && now == 0);
  CHECK(MCAPI_NODE_INVALID == MCA_NODE_INVALID && MCAPI_DOMAIN_INVALID == MCA_DOMAIN_INVALID &&
        MCAPI_RETURN_VALUE_INVALID == MCA_RETURN_VALUE_INVALID && MCA_INFINITE == ever);
  CHECK(MCAPI_MAX_DOMAIN && MCAPI_MAX_NODE && MCAPI_MAX_PORT > MCAPI_MIN_PORT);
  CHECK(MCAPI_MAX_MESSAGE_SIZE >= 65536 && MCAPI_MAX_PACKET_SIZE >= 65536);
  CHECK(MCAPI_NUM_RESERVED_PORTS == 0 && MCAPI_MAX_PRORITY == 0 && MCAPI_MIN_PRORITY == 7);
  CHECK(MCAPI_BUF_ALIGN >= 0 && MCAPI_MAX_STATUS_MSG_LEN == 32);
  MCAPI_DECL_ALIGNED char aligned[8];
  MCA_DECL_ALIGNED char also[8];
  CHECK((uintptr_t)aligned % 32 == 0 && (uintptr_t)also % 32 == 0);

  /* The statuses in the standard's order, without gaps. */
  static const enum mcapi_status_codes statuses[] = {
      MCAPI_SUCCESS,
      MCAPI_PENDING,
      MCAPI_TIMEOUT,
      MCAPI_ERR_PARAMETER,
      MCAPI_ERR_DOMAIN_INVALID,
      MCAPI_ERR_NODE_INVALID,
      MCAPI_ERR_NODE_INITFAILED,
      MCAPI_ERR_NODE_INITIALIZED,
      MCAPI_ERR_NODE_NOTINIT,
      MCAPI_ERR_NODE_FINALFAILED,
      MCAPI_ERR_PORT_INVALID,
      MCAPI_ERR_ENDP_INVALID,
      MCAPI_ERR_ENDP_EXISTS,
      MCAPI_ERR_ENDP_GET_LIMIT,
      MCAPI_ERR_ENDP_DELETED,
      MCAPI_ERR_ENDP_NOTOWNER,
      MCAPI_ERR_ENDP_REMOTE,
      MCAPI_ERR_ENDP_NOPORTS,
      MCAPI_ERR_ENDP_LIMIT,
      MCAPI_ERR_ATTR_INCOMPATIBLE,
      MCAPI_ERR_ATTR_SIZE,
      MCAPI_ERR_ATTR_NUM,
      MCAPI_ERR_ATTR_VALUE,
      MCAPI_ERR_ATTR_NOTSUPPORTED,
      MCAPI_ERR_ATTR_READONLY,
      MCAPI_ERR_MSG_SIZE,
      MCAPI_ERR_MSG_TRUNCATED,
      MCAPI_ERR_CHAN_OPEN,
      MCAPI_ERR_CHAN_TYPE,
      MCAPI_ERR_CHAN_DIRECTION,
      MCAPI_ERR_CHAN_CONNECTED,
      MCAPI_ERR_CHAN_OPENPENDING,
      MCAPI_ERR_CHAN_CLOSEPENDING,
      MCAPI_ERR_CHAN_NOTOPEN,
      MCAPI_ERR_CHAN_INVALID,
      MCAPI_ERR_PKT_SIZE,
      MCAPI_ERR_SCL_SIZE,
      MCAPI_ERR_TRANSMISSION,
      MCAPI_ERR_PRIORITY,
      MCAPI_ERR_BUF_INVALID,
      MCAPI_ERR_MEM_LIMIT,
      MCAPI_ERR_REQUEST_INVALID,
      MCAPI_ERR_REQUEST_LIMIT,
      MCAPI_ERR_REQUEST_CANCELLED,
      MCAPI_ERR_WAIT_PENDING,
      MCAPI_ERR_GENERAL,
      MCAPI_STATUSCODE_END,
  };
  for (size_t i = 0; i < COUNT(statuses); i++) CHECK_EQ(statuses[i], i + 1);

  /* Attributes, and a value of each type. */
  static const enum mcapi_endp_attribute_numbers numbers[] = {MCAPI_ENDP_ATTR_TYPE,
                                                              MCAPI_ENDP_ATTR_GET_COUNT,
                                                              MCAPI_ENDP_ATTR_GET_SOURCE,
                                                              MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE,
                                                              MCAPI_ENDP_ATTR_BUFFER_TYPE,
                                                              MCAPI_ENDP_ATTR_MEMORY_TYPE,
                                                              MCAPI_ENDP_ATTR_NUM_PRIORITIES,
                                                              MCAPI_ENDP_ATTR_PRIORITY,
                                                              MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS,
                                                              MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS,
                                                              MCAPI_ENDP_ATTR_ENDP_STATUS,
                                                              MCAPI_ENDP_ATTR_TIMEOUT,
                                                              MCAPI_ENDP_ATTR_END};
  for (size_t i = 0; i < COUNT(numbers); i++) CHECK_EQ(numbers[i], i);
  CHECK(MCAPI_NODE_ATTR_TYPE == 0 && MCAPI_NODE_ATTR_END == 1);
  CHECK(MCAPI_NODE_ATTR_TYPE_REGULAR == 0 && MCAPI_NODE_ATTR_TYPE_END == 1);
  struct {
    mcapi_endp_attr_type_t type;
    mcapi_endp_attr_get_count_t gets;
    mcapi_endp_attr_get_source_t source;
    mcapi_endp_attr_max_payload_size_t payload;
    mcapi_endp_attr_buffer_type_t buffer;
    mcapi_endp_attr_memory_type_t memory;
    mcapi_endp_attr_num_priorities_t priorities;
    mcapi_endp_attr_priority_t priority;
    mcapi_endp_attr_num_send_buffers_t sends;
    mcapi_endp_attr_num_recv_buffers_t receives;
    mcapi_endp_attr_status_t state;
    mcapi_endp_attr_timeout_t timeout;
    mcapi_node_attr_type_t node;
    mcapi__endp_attr_range_t range;
    mcapi_info_t info;
  } all = {.type = MCAPI_ENDP_ATTR_TYPE_MESSAGE | MCAPI_ENDP_ATTR_TYPE_PKTCHAN |
                   MCAPI_ENDP_ATTR_TYPE_SCLCHAN,
           .buffer = MCAPI_ENDP_ATTR_FIFO_BUFFER,
           .memory = MCAPI_ENDP_ATTR_REMOTE_MEMORY | MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT,
           .range = {.start_endp_attr_num = mcapi_start_endp_attribute(1),
                     .end_endp_attr_num = mcapi_end_endp_attribute(1)},
           .info = {.mcapi_version = MCAPI_VERSION, .organization_id = MCA_ORG_ID_TBA}};
  CHECK(all.type == 7 && all.range.start_endp_attr_num == 96 && all.range.end_endp_attr_num == 128);
  CHECK(MCAPI_ENDP_ATTR_LOCAL_MEMORY == 0 && MCAPI_ENDP_ATTR_SHARED_MEMORY == 1 &&
        MCAPI_ENDP_ATTR_BLOCK_ON_MEM_LIMIT == 0);
  CHECK(MCA_ORG_ID_PSI == 0 && MCA_ORG_ID_FSL == 1 && MCA_ORG_ID_MGC == 2);
  /* One bit each. */
  CHECK_EQ(MCAPI_ENDP_ATTR_STATUS_CONNECTED + MCAPI_ENDP_ATTR_STATUS_OPEN +
               MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING + MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING +
               MCAPI_ENDP_ATTR_STATUS_GET_PENDING + MCAPI_ENDP_ATTR_STATUS_PKTCHAN +
               MCAPI_ENDP_ATTR_STATUS_SCLCHAN + MCAPI_ENDP_ATTR_STATUS_SEND +
               MCAPI_ENDP_ATTR_STATUS_RECEIVE,
           0x1ff);

  /* 2.000, and other implementations. */
  CHECK(MCAPI_MAX_STATUS_SIZE == MCAPI_MAX_STATUS_MSG_LEN && MCAPI_INFINITE == ever);
  CHECK(MCAPI_MAX_MSG_SIZE == MCAPI_MAX_MESSAGE_SIZE &&
        MCAPI_MAX_PKT_SIZE == MCAPI_MAX_PACKET_SIZE);
  CHECK(MCAPI_MAX_PRIORITY == MCAPI_MAX_PRORITY && MCAPI_MIN_PRIORITY == MCAPI_MIN_PRORITY);
  CHECK(MCAPI_ERR_MSG_LIMIT == MCAPI_ERR_MSG_SIZE && MCAPI_ERR_PKT_LIMIT == MCAPI_ERR_PKT_SIZE);
  int out;
  of_a_program(3, &out);
  CHECK_EQ(out, 3);
}
