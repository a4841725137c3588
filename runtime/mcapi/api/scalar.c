/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalars of 8, 16, 32 and 64 bits. A receive of another size than was sent fails, and the scalar
 * stays in the channel. */
#include "fast_path.h"

static void send(mcapi_sclchan_send_hndl_t handle, uint64_t value, size_t size,
                 mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(mc_scalar_send_fast(handle, value, (uint32_t)size))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      mc_channel_prepare(&r, self, MC_SCALAR_SEND, handle, MC_ROLE_SCALARS | MC_ROLE_SENDER, size);
  r.scalar = value;
  if (status == MCAPI_SUCCESS)
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  mc_set_status(mcapi_status, status);
}

/* 0 on error. */
static uint64_t receive(mcapi_sclchan_recv_hndl_t handle, size_t size,
                        mcapi_status_t *mcapi_status) {
  uint64_t value;
  if (LVD_LIKELY(mc_scalar_receive_fast(handle, &value, (uint32_t)size))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return value;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status =
      mc_channel_prepare(&r, self, MC_SCALAR_RECEIVE, handle, MC_ROLE_SCALARS, size);
  if (status == MCAPI_SUCCESS)
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  mc_set_status(mcapi_status, status);
  return status == MCAPI_SUCCESS ? r.scalar : 0;
}

void mcapi_sclchan_send_uint64(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint64_t dataword,
                               mcapi_status_t *mcapi_status) {
  send(send_handle, dataword, 8, mcapi_status);
}
void mcapi_sclchan_send_uint32(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint32_t dataword,
                               mcapi_status_t *mcapi_status) {
  send(send_handle, dataword, 4, mcapi_status);
}
void mcapi_sclchan_send_uint16(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint16_t dataword,
                               mcapi_status_t *mcapi_status) {
  send(send_handle, dataword, 2, mcapi_status);
}
void mcapi_sclchan_send_uint8(mcapi_sclchan_send_hndl_t send_handle, mcapi_uint8_t dataword,
                              mcapi_status_t *mcapi_status) {
  send(send_handle, dataword, 1, mcapi_status);
}

mcapi_uint64_t mcapi_sclchan_recv_uint64(mcapi_sclchan_recv_hndl_t receive_handle,
                                         mcapi_status_t *mcapi_status) {
  return receive(receive_handle, 8, mcapi_status);
}
mcapi_uint32_t mcapi_sclchan_recv_uint32(mcapi_sclchan_recv_hndl_t receive_handle,
                                         mcapi_status_t *mcapi_status) {
  return (mcapi_uint32_t)receive(receive_handle, 4, mcapi_status);
}
mcapi_uint16_t mcapi_sclchan_recv_uint16(mcapi_sclchan_recv_hndl_t receive_handle,
                                         mcapi_status_t *mcapi_status) {
  return (mcapi_uint16_t)receive(receive_handle, 2, mcapi_status);
}
mcapi_uint8_t mcapi_sclchan_recv_uint8(mcapi_sclchan_recv_hndl_t receive_handle,
                                       mcapi_status_t *mcapi_status) {
  return (mcapi_uint8_t)receive(receive_handle, 1, mcapi_status);
}

mcapi_uint_t mcapi_sclchan_available(mcapi_sclchan_recv_hndl_t receive_handle,
                                     mcapi_status_t *mcapi_status) {
  return mc_channel_available(receive_handle, MC_ROLE_SCALARS, mcapi_status);
}
