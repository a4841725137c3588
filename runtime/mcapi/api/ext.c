/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Extensions of the standard: descriptors, wait policies, loans.
 *
 * A descriptor is an eventfd that this process's notifier signals, as it would wake a fiber that
 * never stops waiting. Invariant: the descriptor is readable, or the node's waiter flag is set and
 * nothing had arrived when it was set. So whatever arrives later signals it. */
#include "fast_path.h"

#include <levada/mcapi_ext.h>

/* The caller's endpoint, locked; null: see `status`. */
static mc_local_endpoint *lock_own_endpoint(mc_local_node *self, mcapi_endpoint_t endpoint,
                                            mcapi_status_t *status) {
  mc_local_endpoint *local = self ? mc_local_endpoint_lock(self, endpoint) : NULL;
  *status = !self ? MCAPI_ERR_NODE_NOTINIT : !local ? MCAPI_ERR_ENDP_INVALID : MCAPI_SUCCESS;
  return local;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* Called by the notifier. */
static bool signal_descriptor(lvd_waiter *w) {
  mc_listener *l = (mc_listener *)((char *)w - offsetof(mc_listener, watch.wait_point.waiter));
  lvd_os_eventfd_signal(*(const int *)l->argument);
  return true;
}

static mcapi_status_t open_descriptor(mc_local_endpoint *local) {
  if (lvd_os_eventfd_create(&local->descriptor) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
  mc_listener *l = &local->listener;
  *l = (mc_listener){.node = mc_owner(local), .argument = &local->descriptor};
  l->watch.wait_point.waiter.wake = signal_descriptor;
  lvd_store_relaxed_ptr(&l->watch.wait_point.parked, &l->watch.wait_point.waiter);
  local->has_descriptor = true;
  lvd_os_eventfd_signal(local->descriptor); /* something may have arrived before */
  return MCAPI_SUCCESS;
}

void mc_descriptor_close(mc_local_endpoint *local) {
  if (!local->has_descriptor) return;
  mc_listener_arm(&local->listener, false);
  lvd_os_close(local->descriptor);
  local->has_descriptor = false;
}

int lvd_mcapi_descriptor(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status;
  mc_local_endpoint *local = lock_own_endpoint(self, endpoint, &status);
  int out = -1;
  if (local) {
    if (!local->has_descriptor) status = open_descriptor(local);
    if (status == MCAPI_SUCCESS) out = local->descriptor;
    mc_lock_release(&local->lock);
  }
  mc_set_status(mcapi_status, status);
  return out;
}

mcapi_uint_t lvd_mcapi_pending_count(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status;
  mcapi_uint_t count = 0;
  mc_local_endpoint *local = lock_own_endpoint(self, endpoint, &status);
  if (local) {
    mc_domain *d = mc_owner(local)->domain;
    if (local->has_descriptor) {
      lvd_os_eventfd_clear(local->descriptor);
      mc_listener_arm(&local->listener, true);
    }
    bool receives = local->channel.open && !(local->channel.role & MC_ROLE_SENDER);
    /* before the count, which then includes all that was sent before the end */
    if (receives) status = mc_channel_ended(d, local);
    count = d->transport->count(d, local);
    if (receives) count += d->transport->available(d, local);
    if (local->has_descriptor && (count || status != MCAPI_SUCCESS))
      lvd_os_eventfd_signal(local->descriptor);
    if (count) status = MCAPI_SUCCESS;
    mc_lock_release(&local->lock);
  }
  mc_set_status(mcapi_status, status);
  return count;
}

/* ---- waiting --------------------------------------------------------------------------------- */

void lvd_mcapi_set_wait_policy(mcapi_endpoint_t endpoint, int how, uint32_t spin_us,
                               mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status;
  mc_local_endpoint *local = lock_own_endpoint(self, endpoint, &status);
  if (local) {
    if (how == LVD_MCAPI_SPIN_THEN_SLEEP)
      lvd_store_relaxed_u32(&local->spin_us, spin_us);
    else if (how == LVD_MCAPI_SPIN)
      lvd_store_relaxed_u32(&local->spin_us, UINT32_MAX);
    else if (how == LVD_MCAPI_SLEEP)
      lvd_store_relaxed_u32(&local->spin_us, 0);
    else
      status = MCAPI_ERR_PARAMETER;
    mc_lock_release(&local->lock);
  }
  mc_set_status(mcapi_status, status);
}

/* ---- loans ----------------------------------------------------------------------------------- */

void *lvd_mcapi_buffer_acquire(mcapi_pktchan_send_hndl_t send_handle, size_t size,
                               mcapi_status_t *mcapi_status) {
  void *out = mc_loan_fast(send_handle, size);
  if (LVD_LIKELY(out != NULL)) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return out;
  }
  MC_LONG_CALL(self);
  mc_request r;
  mcapi_status_t status = mc_channel_prepare(&r, self, MC_PACKET_SEND, send_handle,
                                             MC_ROLE_PACKETS | MC_ROLE_SENDER, size);
  if (status == MCAPI_SUCCESS) {
    const mc_domain *d = r.node->domain;
    if (size > mc_attribute(d, r.local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE) ||
        size > MCAPI_MAX_PACKET_SIZE)
      status = MCAPI_ERR_PKT_SIZE;
  }
  if (status == MCAPI_SUCCESS) {
    r.packet = &out;
    status = mc_request_run(&r, mc_timeout_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  }
  mc_set_status(mcapi_status, status);
  return status == MCAPI_SUCCESS ? out : NULL;
}

/* The end that lent `buffer`, locked; null: see `status`. */
static mc_local_endpoint *lock_loan_end(mc_local_node *self, mcapi_pktchan_send_hndl_t handle,
                                        const void *buffer, size_t size, mcapi_status_t *status) {
  mc_local_endpoint *local = lock_own_endpoint(self, handle, status);
  if (!local) {
    if (*status == MCAPI_ERR_ENDP_INVALID) *status = MCAPI_ERR_CHAN_INVALID;
    return NULL;
  }
  const mc_channel *c = &local->channel;
  *status = !c->open || c->role != (MC_ROLE_PACKETS | MC_ROLE_SENDER) ? MCAPI_ERR_CHAN_INVALID
            : !c->loan || c->loan != buffer                           ? MCAPI_ERR_BUF_INVALID
            : size > c->loan_size                                     ? MCAPI_ERR_PKT_SIZE
                                                                      : MCAPI_SUCCESS;
  if (*status == MCAPI_SUCCESS) return local;
  mc_lock_release(&local->lock);
  return NULL;
}

void lvd_mcapi_buffer_send(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
                           mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(mc_loan_send_fast(send_handle, buffer, size))) {
    mc_set_status(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_LONG_CALL(self);
  mcapi_status_t status;
  mc_local_endpoint *local = lock_loan_end(self, send_handle, buffer, size, &status);
  if (local) {
    mc_domain *d = mc_owner(local)->domain;
    status = mc_channel_ended(d, local);
    if (status == MCAPI_SUCCESS && d->transport->send_loan(d, local, size) != LVD_OK)
      status = MCAPI_ERR_TRANSMISSION;
    local->channel.loan = NULL;
    mc_lock_release(&local->lock);
  }
  mc_set_status(mcapi_status, status);
}

void lvd_mcapi_buffer_release(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                              mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mcapi_status_t status;
  mc_local_endpoint *local = lock_loan_end(self, send_handle, buffer, 0, &status);
  if (local) {
    local->channel.loan = NULL;
    mc_lock_release(&local->lock);
  } else if (self && mc_detached_release(self, buffer, false)) {
    /* the end has been closed meanwhile */
    status = MCAPI_SUCCESS;
  }
  mc_set_status(mcapi_status, status);
}
