/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Connectionless messages. */
#include "fast_path.h"

/* ---- sending --------------------------------------------------------------------------------- */

static mcapi_status_t prepare_send(mc_request *r, mc_local_node *self, mcapi_endpoint_t from,
                                   mcapi_endpoint_t to, const void *buffer, size_t size,
                                   mcapi_priority_t priority) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local_endpoint *local = mc_local_endpoint_of(self, from);
  if (!local ||
      !(mc_endpoint_exists(self->domain, to) || mc_endpoint_was_deleted(self->domain, to)))
    return MCAPI_ERR_ENDP_INVALID;
  if (!buffer && size) return MCAPI_ERR_PARAMETER;
  if (size > mc_attribute(self->domain, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE) ||
      size > MCAPI_MAX_MESSAGE_SIZE)
    return MCAPI_ERR_MSG_SIZE;
  if (priority > MCAPI_MIN_PRORITY ||
      priority >= mc_attribute(self->domain, local->index, MCAPI_ENDP_ATTR_NUM_PRIORITIES))
    return MCAPI_ERR_PRIORITY;
  *r = (mc_request){.kind = MC_MESSAGE_SEND,
                    .node = self,
                    .local = local,
                    .handle = from,
                    .to = to,
                    .out = buffer,
                    .size = size,
                    .level = LVD_INBOX_LEVELS - 1 - priority,
                    .fail_when_full = mc_fails_when_full(local)};
  return MCAPI_SUCCESS;
}

void mcapi_msg_send_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                      const void *buffer, size_t buffer_size, mcapi_priority_t priority,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      prepare_send(&r, self, send_endpoint, receive_endpoint, buffer, buffer_size, priority);
  if (status == MCAPI_SUCCESS && !request) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_set_status(mcapi_status, status);
}

void mcapi_msg_send(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                    const void *buffer, size_t buffer_size, mcapi_priority_t priority,
                    mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(
          mc_message_send_fast(send_endpoint, receive_endpoint, buffer, buffer_size, priority))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      prepare_send(&r, self, send_endpoint, receive_endpoint, buffer, buffer_size, priority);
  if (status == MCAPI_SUCCESS)
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  mc_set_status(mcapi_status, status);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static mcapi_status_t prepare_receive(mc_request *r, mc_local_node *self, mcapi_endpoint_t endpoint,
                                      void *buffer, size_t size) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local_endpoint *local = mc_local_endpoint_of(self, endpoint);
  if (!local) return MCAPI_ERR_ENDP_INVALID;
  if (!buffer && size) return MCAPI_ERR_PARAMETER;
  *r = (mc_request){.kind = MC_MESSAGE_RECEIVE,
                    .node = self,
                    .local = local,
                    .handle = endpoint,
                    .in = buffer,
                    .size = size};
  return MCAPI_SUCCESS;
}

void mcapi_msg_recv_i(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status = prepare_receive(&r, self, receive_endpoint, buffer, buffer_size);
  if (status == MCAPI_SUCCESS && !request) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_set_status(mcapi_status, status);
}

void mcapi_msg_recv(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size,
                    size_t *received_size, mcapi_status_t *mcapi_status) {
  mcapi_status_t status =
      mc_message_receive_fast(receive_endpoint, buffer, buffer_size, received_size);
  if (LVD_LIKELY(status != MCAPI_PENDING)) {
    mc_set_status(mcapi_status, status);
    return;
  }
  MC_LONG_CALL(self);
  mc_request r;
  status = prepare_receive(&r, self, receive_endpoint, buffer, buffer_size);
  if (status == MCAPI_SUCCESS && !received_size) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) {
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
    if (status == MCAPI_SUCCESS || status == MCAPI_ERR_MSG_TRUNCATED) *received_size = r.size;
  }
  mc_set_status(mcapi_status, status);
}

mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t receive_endpoint, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_local_endpoint *local = self ? mc_local_endpoint_lock(self, receive_endpoint) : NULL;
  mc_set_status(mcapi_status, !self    ? MCAPI_ERR_NODE_NOTINIT
                              : !local ? MCAPI_ERR_ENDP_INVALID
                                       : MCAPI_SUCCESS);
  if (!local) return 0;
  uint32_t count = MC_TRANSPORT_CALL(self->domain, count, self->domain, local);
  mc_lock_release(&local->lock);
  return count;
}
