/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The short way: a call over shared memory that can be done at once, with nobody before it in line, as
 * most are; or, of one that receives, within the microsecond in which what is under way comes. No request
 * is made of it. Whatever else is the case, an error too, it has changed nothing, and takes the long way
 * (request.c), which finds out. */
#include "at_once.h"

#include <levada/fiber.h>

/* How often a thread looks before it stands in line and waits, which is more work: at first as fast as it
 * can, then so that the other thread of its core has its share. */
enum { GLANCES = 256, PEEKS = 64 };

/* The caller's own endpoint, if it may take the short way. */
static inline __attribute__((always_inline)) mc_local *local_of(uint32_t handle) {
  mc_mine *self = mc_self();
  if (LVD_UNLIKELY(!self) || LVD_UNLIKELY(self->domain->transport != &mc_shm)) return NULL;
  return mc_local_of(self, handle);
}

/* Without the lock: has something come, or does it within a microsecond? */
static bool may_come(const mc_local *local, enum mc_kind kind) {
  if (LVD_LIKELY(mc_shm_ready(local, kind))) return true;
  if (!local->spin_us || !local->timeout || lvd_fiber_self()) return false;
  for (int i = 0; i < GLANCES; i++)
    if (mc_shm_ready(local, kind)) return true;
  for (int i = 0; i < PEEKS; i++) {
    if (mc_shm_ready(local, kind)) return true;
    lvd_port_relax();
  }
  return false;
}

/* With the lock if true: nobody is before the caller. */
static inline __attribute__((always_inline)) bool enter(mc_local *local, enum mc_kind kind,
                                                        uint32_t handle) {
  mc_lock_take(&local->lock);
  if (LVD_LIKELY(!local->line[kind].first) &&
      LVD_LIKELY(lvd_load_relaxed_u32(&local->handle) == handle))
    return true;
  mc_lock_drop(&local->lock);
  return false;
}

static inline __attribute__((always_inline)) bool is_open(const mc_local *local, uint32_t role) {
  return LVD_LIKELY(local->channel.open) && LVD_LIKELY(local->channel.role == role);
}

/* ---- channels ----------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) bool may_send(const mc_domain *d,
                                                           const mc_local *local, uint32_t role) {
  return is_open(local, role) && LVD_LIKELY(!local->channel.loan) &&
         LVD_LIKELY(mc_channel_ended(d, local) == MCAPI_SUCCESS);
}

bool mc_packet_out_at_once(uint32_t handle, const void *buffer, size_t size) {
  mc_local *local = local_of(handle);
  if (!local || (!buffer && size) || size > MCAPI_MAX_PACKET_SIZE) return false;
  mc_domain *d = local->node->domain;
  if (size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE)) return false;
  if (!enter(local, MC_PACKET_OUT, handle)) return false;
  bool done = may_send(d, local, MC_PACKETS | MC_SENDS) &&
              mc_shm_put_packet(d, local, buffer, size) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

bool mc_scalar_out_at_once(uint32_t handle, uint64_t value, uint32_t size) {
  mc_local *local = local_of(handle);
  if (!local || !enter(local, MC_SCALAR_OUT, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = may_send(d, local, MC_NUMBERS | MC_SENDS) &&
              mc_shm_put_scalar(d, local, value, size) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

static bool take_packet(mc_local *local, uint32_t handle, void **buffer, size_t *size) {
  if (!enter(local, MC_PACKET_IN, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = is_open(local, MC_PACKETS) && mc_shm_take_packet(d, local, buffer, size) == LVD_OK;
  if (done) mc_count(d->tables, local->index, *size);
  mc_lock_drop(&local->lock);
  return done;
}

bool mc_packet_in_at_once(uint32_t handle, void **buffer, size_t *size) {
  mc_local *local = local_of(handle);
  return local && buffer && size && may_come(local, MC_PACKET_IN) &&
         take_packet(local, handle, buffer, size);
}

static bool take_scalar(mc_local *local, uint32_t handle, uint64_t *value, uint32_t size) {
  if (!enter(local, MC_SCALAR_IN, handle)) return false;
  mc_domain *d = local->node->domain;
  bool done = is_open(local, MC_NUMBERS) && mc_shm_take_scalar(d, local, size, value) == LVD_OK;
  if (done) mc_count(d->tables, local->index, size);
  mc_lock_drop(&local->lock);
  return done;
}

bool mc_scalar_in_at_once(uint32_t handle, uint64_t *value, uint32_t size) {
  mc_local *local = local_of(handle);
  return local && may_come(local, MC_SCALAR_IN) && take_scalar(local, handle, value, size);
}

/* ---- messages ----------------------------------------------------------------------------------- */

bool mc_message_out_at_once(uint32_t from, uint32_t to, const void *buffer, size_t size,
                            uint32_t priority) {
  mc_local *local = local_of(from);
  if (!local || (!buffer && size) || size > MCAPI_MAX_MESSAGE_SIZE) return false;
  mc_domain *d = local->node->domain;
  if (priority > MCAPI_MIN_PRORITY ||
      priority >= mc_attribute(d, local->index, MCAPI_ENDP_ATTR_NUM_PRIORITIES) ||
      size > mc_attribute(d, local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE))
    return false;
  if (!enter(local, MC_SEND, from)) return false;
  bool done = mc_shm_send(d, local, to, buffer, size, LVD_INBOX_LEVELS - 1 - priority) == LVD_OK;
  mc_lock_drop(&local->lock);
  return done;
}

static mcapi_status_t take_message(mc_local *local, uint32_t handle, void *buffer, size_t room,
                                   size_t *size) {
  if (!enter(local, MC_RECEIVE, handle)) return MCAPI_PENDING;
  lvd_status status = mc_shm_receive(local->node->domain, local, buffer, room, size);
  mc_lock_drop(&local->lock);
  return status == LVD_OK        ? MCAPI_SUCCESS
         : status == LVD_E_LIMIT ? MCAPI_ERR_MSG_TRUNCATED
                                 : MCAPI_PENDING;
}

/* What has come is not all in the inbox: so it is asked first. */
mcapi_status_t mc_message_in_at_once(uint32_t handle, void *buffer, size_t room, size_t *size) {
  mc_local *local = local_of(handle);
  if (!local || (!buffer && room) || !size) return MCAPI_PENDING;
  mcapi_status_t status = take_message(local, handle, buffer, room, size);
  if (LVD_LIKELY(status != MCAPI_PENDING) || !may_come(local, MC_RECEIVE)) return status;
  return take_message(local, handle, buffer, room, size);
}
