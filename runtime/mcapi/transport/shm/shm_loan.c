/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Loans in shared memory: the span of the ring that the next packet will occupy. It stays in place,
 * since nothing else is put while it is lent. The header is written when it is lent, so that its
 * line is transferred while the program fills in the data: a packet of 64 bytes takes 0.10 us
 * instead of 0.16. */
#include "../../api/fast_path.h"
#include "packet_ring.h"

static uint32_t lines(size_t size) {
  return 1 + (uint32_t)((size + MC_PACKET_LINE_BYTES - 1) / MC_PACKET_LINE_BYTES);
}

MC_INLINE lvd_status loan(mc_domain *d, mc_local_endpoint *local, size_t size, void **at) {
  mc_channel *c = &local->channel;
  if (LVD_UNLIKELY(c->broadcast)) mc_shm_update_receivers(d, local);
  if (!mc_has_room(d, c, lines(size))) return c->out.corrupt ? LVD_E_CORRUPT : LVD_E_TIMEOUT;
  *(uint32_t *)(void *)mc_put_at(c) = (uint32_t)size; /* the header, as in shm_channel.c */
  *at = mc_put_at(c) + MC_PACKET_LINE_BYTES;
  return LVD_OK;
}

lvd_status mc_shm_loan(mc_domain *d, mc_local_endpoint *local, size_t size, void **at) {
  return loan(d, local, size, at);
}

MC_INLINE void send_loan(mc_domain *d, mc_local_endpoint *local, size_t size) {
  mc_channel *c = &local->channel;
  /* receivers may have been added since */
  if (LVD_UNLIKELY(c->broadcast)) mc_shm_update_receivers(d, local);
  if (size != c->loan_size) *(uint32_t *)(void *)mc_put_at(c) = (uint32_t)size;
  mc_publish(d, c, lines(size));
}

lvd_status mc_shm_send_loan(mc_domain *d, mc_local_endpoint *local, size_t size) {
  send_loan(d, local, size);
  return LVD_OK;
}

/* ---- fast path ------------------------------------------------------------------------------- */

MC_FLATTEN void *mc_loan_fast(uint32_t handle, size_t size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  if (!local || size > MCAPI_MAX_PACKET_SIZE) return NULL;
  mc_domain *d = mc_owner(local)->domain;
  if (size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE)) return NULL;
  if (!mc_fast_lock(local, MC_PACKET_SEND, handle)) return NULL;
  void *at = NULL;
  if (!local->channel.loan && mc_can_send(d, local, MC_ROLE_PACKETS | MC_ROLE_SENDER) &&
      loan(d, local, size, &at) == LVD_OK) {
    local->channel.loan = at;
    local->channel.loan_size = size;
  }
  mc_lock_release(&local->lock);
  return at;
}

MC_FLATTEN bool mc_loan_send_fast(uint32_t handle, const void *buffer, size_t size) {
  MC_SHORT_CALL(call);
  mc_local_endpoint *local = mc_fast_endpoint(&call, handle);
  if (!local || !buffer || !mc_fast_lock(local, MC_PACKET_SEND, handle)) return false;
  mc_domain *d = mc_owner(local)->domain;
  mc_channel *c = &local->channel;
  bool done = c->loan == buffer && size <= c->loan_size &&
              mc_can_send(d, local, MC_ROLE_PACKETS | MC_ROLE_SENDER);
  if (done) {
    send_loan(d, local, size);
    c->loan = NULL;
  }
  mc_lock_release(&local->lock);
  return done;
}
