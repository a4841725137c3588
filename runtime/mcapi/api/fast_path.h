/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The short way: a call over shared memory that can be done at once, with nobody before it in line, as
 * most are; or, of one that receives, within the microseconds in which what is under way comes. No request
 * is made of it. Whatever else is the case, an error too, it has changed nothing, and takes the long way
 * (request.c), which finds out.
 *
 * Each is one function, with all that it does in it, beside what it uses (shm_channel.c, shm_queue.c):
 * between two near cores a message is on its way for as long as some ten calls take. */
#ifndef LVD_MCAPI_AT_ONCE_H
#define LVD_MCAPI_AT_ONCE_H

#include "../transport/transport.h"

#include <levada/fiber.h>

/* False, or MCAPI_PENDING: nothing has been done, and the long way is to be taken. */
bool mc_packet_out_at_once(uint32_t handle, const void *buffer, size_t size);
bool mc_packet_in_at_once(uint32_t handle, void **buffer, size_t *size);
bool mc_release_at_once(const void *buffer);
void *mc_loan_at_once(uint32_t handle, size_t size); /* null */
bool mc_send_loan_at_once(uint32_t handle, const void *buffer, size_t size);
bool mc_scalar_out_at_once(uint32_t handle, uint64_t value, uint32_t size);
bool mc_scalar_in_at_once(uint32_t handle, uint64_t *value, uint32_t size);
bool mc_message_out_at_once(uint32_t from, uint32_t to, const void *buffer, size_t size,
                            uint32_t priority);
/* MCAPI_ERR_MSG_TRUNCATED: as the standard has it. */
mcapi_status_t mc_message_in_at_once(uint32_t handle, void *buffer, size_t room, size_t *size);

/* ---- what they share ------------------------------------------------------------------------ */

#define MC_INLINE static inline __attribute__((always_inline))
#define MC_ALL_IN __attribute__((flatten)) /* whatever it calls is in it, but what is seldom */

/* The caller's own endpoint, if it may take the short way; for as long as the visit lasts. */
MC_INLINE mc_local *mc_at_once(const mc_visit *visit, uint32_t handle) {
  mc_mine *self = visit->node;
  if (LVD_UNLIKELY(!self) || LVD_UNLIKELY(self->domain->transport != &mc_shm)) return NULL;
  return mc_local_of(self, handle);
}

/* With the lock if true: nobody is before the caller. */
MC_INLINE bool mc_enter(mc_local *local, enum mc_kind kind, uint32_t handle) {
  mc_lock_take(&local->lock);
  if (LVD_LIKELY(!local->line[kind].first) &&
      LVD_LIKELY(lvd_load_relaxed_u32(&local->handle) == handle))
    return true;
  mc_lock_drop(&local->lock);
  return false;
}

/* Of its channel; with the lock. */
MC_INLINE bool mc_is_open(const mc_local *local, uint32_t role) {
  return LVD_LIKELY(local->channel.open) && LVD_LIKELY(local->channel.role == role);
}
MC_INLINE bool mc_may_send(const mc_domain *d, const mc_local *local, uint32_t role) {
  return mc_is_open(local, role) && LVD_LIKELY(mc_channel_goes_on(d, local));
}

/* Has it come, without the lock; or does it within the time that the long way takes? With a pause between
 * two looks: without, those that are under way when the line goes to the sender bring it back too early. */
enum { MC_PEEKS = 512, MC_PEEKS_A_US = 32 };
MC_INLINE bool mc_may_come(const mc_local *local, bool (*come)(const mc_local *local)) {
  if (LVD_LIKELY(come(local))) return true;
  uint32_t most = MC_PEEKS / MC_PEEKS_A_US, us = lvd_load_relaxed_u32(&local->spin_us);
  if (!us || !lvd_load_relaxed_u32(&local->timeout) || lvd_fiber_self()) return false;
  if (us > most) us = most;
  for (uint32_t i = 0; i < us * MC_PEEKS_A_US; i++) {
    lvd_os_relax();
    if (come(local)) return true;
  }
  return false;
}

#endif
