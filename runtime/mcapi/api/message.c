/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages without a connection. */
#include "fast_path.h"

/* ---- sending -------------------------------------------------------------------------------- */

static mcapi_status_t prepare_send(mc_request *r, mc_mine *self, mcapi_endpoint_t from,
                                   mcapi_endpoint_t to, const void *buffer, size_t size,
                                   mcapi_priority_t priority) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local *local = mc_local_of(self, from);
  if (!local || !(mc_endpoint_is(self->domain, to) || mc_endpoint_was(self->domain, to)))
    return MCAPI_ERR_ENDP_INVALID;
  if (!buffer && size) return MCAPI_ERR_PARAMETER;
  if (size > mc_attribute(self->domain, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE) ||
      size > MCAPI_MAX_MESSAGE_SIZE)
    return MCAPI_ERR_MSG_SIZE;
  if (priority > MCAPI_MIN_PRORITY ||
      priority >= mc_attribute(self->domain, local->index, MCAPI_ENDP_ATTR_NUM_PRIORITIES))
    return MCAPI_ERR_PRIORITY;
  *r = (mc_request){.kind = MC_SEND,
                    .node = self,
                    .local = local,
                    .handle = from,
                    .to = to,
                    .out = buffer,
                    .size = size,
                    .level = LVD_INBOX_LEVELS - 1 - priority,
                    .may_fail = mc_may_fail(local)};
  return MCAPI_SUCCESS;
}

void mcapi_msg_send_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                      const void *buffer, size_t buffer_size, mcapi_priority_t priority,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_request r;
  mcapi_status_t status =
      prepare_send(&r, self, send_endpoint, receive_endpoint, buffer, buffer_size, priority);
  if (status == MCAPI_SUCCESS && !request) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_say(mcapi_status, status);
}

void mcapi_msg_send(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                    const void *buffer, size_t buffer_size, mcapi_priority_t priority,
                    mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(
          mc_message_out_at_once(send_endpoint, receive_endpoint, buffer, buffer_size, priority))) {
    mc_say(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_CALL(self);
  mc_request r;
  mcapi_status_t status =
      prepare_send(&r, self, send_endpoint, receive_endpoint, buffer, buffer_size, priority);
  if (status == MCAPI_SUCCESS)
    status = mc_request_run(&r, mc_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  mc_say(mcapi_status, status);
}

/* ---- receiving ------------------------------------------------------------------------------ */

static mcapi_status_t prepare_receive(mc_request *r, mc_mine *self, mcapi_endpoint_t endpoint,
                                      void *buffer, size_t size) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local *local = mc_local_of(self, endpoint);
  if (!local) return MCAPI_ERR_ENDP_INVALID;
  if (!buffer && size) return MCAPI_ERR_PARAMETER;
  *r = (mc_request){.kind = MC_RECEIVE,
                    .node = self,
                    .local = local,
                    .handle = endpoint,
                    .in = buffer,
                    .size = size};
  return MCAPI_SUCCESS;
}

void mcapi_msg_recv_i(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_request r;
  mcapi_status_t status = prepare_receive(&r, self, receive_endpoint, buffer, buffer_size);
  if (status == MCAPI_SUCCESS && !request) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_say(mcapi_status, status);
}

void mcapi_msg_recv(mcapi_endpoint_t receive_endpoint, void *buffer, size_t buffer_size,
                    size_t *received_size, mcapi_status_t *mcapi_status) {
  mcapi_status_t status =
      mc_message_in_at_once(receive_endpoint, buffer, buffer_size, received_size);
  if (LVD_LIKELY(status != MCAPI_PENDING)) {
    mc_say(mcapi_status, status);
    return;
  }
  MC_CALL(self);
  mc_request r;
  status = prepare_receive(&r, self, receive_endpoint, buffer, buffer_size);
  if (status == MCAPI_SUCCESS && !received_size) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) {
    status = mc_request_run(&r, mc_ns(lvd_load_relaxed_u32(&r.local->timeout)));
    if (status == MCAPI_SUCCESS || status == MCAPI_ERR_MSG_TRUNCATED) *received_size = r.size;
  }
  mc_say(mcapi_status, status);
}

mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t receive_endpoint, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_local *local = self ? mc_local_enter(self, receive_endpoint) : NULL;
  mc_say(mcapi_status, !self    ? MCAPI_ERR_NODE_NOTINIT
                       : !local ? MCAPI_ERR_ENDP_INVALID
                                : MCAPI_SUCCESS);
  if (!local) return 0;
  uint32_t count = MC_THROUGH(self->domain, count, self->domain, local);
  mc_lock_drop(&local->lock);
  return count;
}
