/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packets: sending, receiving in place, releasing. */
#include "fast_path.h"

static mcapi_status_t prepare_send(mc_request *r, mc_local_node *self,
                                   mcapi_pktchan_send_hndl_t handle, const void *buffer,
                                   size_t size) {
  mcapi_status_t status =
      mc_channel_prepare(r, self, MC_PACKET_SEND, handle, MC_ROLE_PACKETS | MC_ROLE_SENDER, size);
  if (status != MCAPI_SUCCESS) return status;
  if (!buffer && size) return MCAPI_ERR_PARAMETER;
  uint32_t most = mc_attribute(r->node->domain, r->local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE);
  if (size > most || size > MCAPI_MAX_PACKET_SIZE) return MCAPI_ERR_PKT_SIZE;
  r->out = buffer;
  return MCAPI_SUCCESS;
}

void mcapi_pktchan_send_i(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
                          mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status = prepare_send(&r, self, send_handle, buffer, size);
  if (status == MCAPI_SUCCESS && !request) status = MCAPI_ERR_PARAMETER;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_set_status(mcapi_status, status);
}

void mcapi_pktchan_send(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
                        mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(mc_packet_send_fast(send_handle, buffer, size))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status = prepare_send(&r, self, send_handle, buffer, size);
  if (status == MCAPI_SUCCESS)
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  mc_set_status(mcapi_status, status);
}

void mcapi_pktchan_recv_i(mcapi_pktchan_recv_hndl_t receive_handle, void **buffer,
                          mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      mc_channel_prepare(&r, self, MC_PACKET_RECEIVE, receive_handle, MC_ROLE_PACKETS, 0);
  if (status == MCAPI_SUCCESS && (!buffer || !request)) status = MCAPI_ERR_PARAMETER;
  r.packet = buffer;
  if (status == MCAPI_SUCCESS) status = mc_request_begin(&r, request);
  mc_set_status(mcapi_status, status);
}

void mcapi_pktchan_recv(mcapi_pktchan_recv_hndl_t receive_handle, void **buffer,
                        size_t *received_size, mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(mc_packet_receive_fast(receive_handle, buffer, received_size))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      mc_channel_prepare(&r, self, MC_PACKET_RECEIVE, receive_handle, MC_ROLE_PACKETS, 0);
  if (status == MCAPI_SUCCESS && (!buffer || !received_size)) status = MCAPI_ERR_PARAMETER;
  r.packet = buffer;
  if (status == MCAPI_SUCCESS) {
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
    if (status == MCAPI_SUCCESS) *received_size = r.size;
  }
  mc_set_status(mcapi_status, status);
}

mcapi_uint_t mcapi_pktchan_available(mcapi_pktchan_recv_hndl_t receive_handle,
                                     mcapi_status_t *mcapi_status) {
  return mc_channel_available(receive_handle, MC_ROLE_PACKETS, mcapi_status);
}

void mcapi_pktchan_release(const void *buffer, mcapi_status_t *mcapi_status) {
  mc_set_status(mcapi_status, LVD_LIKELY(mc_packet_release_fast(buffer))
                                  ? MCAPI_SUCCESS
                                  : mc_channel_release(buffer, false));
}

mcapi_boolean_t mcapi_pktchan_release_test(const void *buffer, mcapi_status_t *mcapi_status) {
  mcapi_status_t status = mc_channel_release(buffer, true);
  mc_set_status(mcapi_status, status);
  return status == MCAPI_SUCCESS;
}
