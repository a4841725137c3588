/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fast path: calls over shared memory that complete at once because no request is queued before
 * them, as most do; and receiving calls for which something arrives within some microseconds. They
 * create no request. In every other case, errors included, they change nothing, and the caller
 * takes the slow path (request.c).
 *
 * Each is one function with everything inlined, in the file with the internals that it uses
 * (shm_channel.c, shm_queue.c): between two near cores a message takes as long as some ten function
 * calls. */
#ifndef LVD_MCAPI_FAST_PATH_H
#define LVD_MCAPI_FAST_PATH_H

#include "../transport/transport.h"

#include <levada/fiber.h>

/* False, null or MCAPI_PENDING: nothing has been changed; take the slow path. */
bool mc_packet_send_fast(uint32_t handle, const void *buffer, size_t size);
bool mc_packet_receive_fast(uint32_t handle, void **buffer, size_t *size);
bool mc_packet_release_fast(const void *buffer);
void *mc_loan_fast(uint32_t handle, size_t size);
bool mc_loan_send_fast(uint32_t handle, const void *buffer, size_t size);
bool mc_scalar_send_fast(uint32_t handle, uint64_t value, uint32_t size);
bool mc_scalar_receive_fast(uint32_t handle, uint64_t *value, uint32_t size);
bool mc_message_send_fast(uint32_t from, uint32_t to, const void *buffer, size_t size,
                          uint32_t priority);
/* MCAPI_SUCCESS, MCAPI_ERR_MSG_TRUNCATED or MCAPI_PENDING. */
mcapi_status_t mc_message_receive_fast(uint32_t handle, void *buffer, size_t room, size_t *size);

/* ---- shared by them -------------------------------------------------------------------------- */

#define MC_INLINE static inline __attribute__((always_inline))
#define MC_FLATTEN                                                                                 \
  __attribute__((flatten)) /* inlines all calls, except of LVD_NOINLINE functions */

/* The caller's endpoint, if its domain uses shared memory; else null. Valid during the short
 * call. */
MC_INLINE mc_local_endpoint *mc_fast_endpoint(const mc_short_call *call, uint32_t handle) {
  mc_local_node *self = call->node;
  if (LVD_UNLIKELY(!self) || LVD_UNLIKELY(self->domain->transport != &mc_shm)) return NULL;
  return mc_local_endpoint_of(self, handle);
}

/* Acquires the lock if no request is queued before the caller; else false, without the lock. */
MC_INLINE bool mc_fast_lock(mc_local_endpoint *local, enum mc_kind kind, uint32_t handle) {
  mc_lock_acquire(&local->lock);
  if (LVD_LIKELY(!local->pending[kind].first) &&
      LVD_LIKELY(lvd_load_relaxed_u32(&local->handle) == handle))
    return true;
  mc_lock_release(&local->lock);
  return false;
}

/* Of the endpoint's channel; with the lock. */
MC_INLINE bool mc_is_open(const mc_local_endpoint *local, uint32_t role) {
  return LVD_LIKELY(local->channel.open) && LVD_LIKELY(local->channel.role == role);
}
MC_INLINE bool mc_can_send(const mc_domain *d, const mc_local_endpoint *local, uint32_t role) {
  return mc_is_open(local, role) && LVD_LIKELY(mc_channel_peer_is_open(d, local));
}

/* Polls without the lock until has_arrived(local), for about as long as the slow path takes. It
 * pauses between two polls: otherwise the loads in flight when the sender requests the cache line
 * take it back too early. */
enum { MC_POLLS_MAX = 512, MC_POLLS_PER_US = 32 };
MC_INLINE bool mc_poll_briefly(const mc_local_endpoint *local,
                               bool (*has_arrived)(const mc_local_endpoint *local)) {
  if (LVD_LIKELY(has_arrived(local))) return true;
  uint32_t most = MC_POLLS_MAX / MC_POLLS_PER_US, us = lvd_load_relaxed_u32(&local->spin_us);
  if (!us || !lvd_load_relaxed_u32(&local->timeout) || lvd_fiber_self()) return false;
  if (us > most) us = most;
  for (uint32_t i = 0; i < us * MC_POLLS_PER_US; i++) {
    lvd_os_relax();
    if (has_arrived(local)) return true;
  }
  return false;
}

#endif
