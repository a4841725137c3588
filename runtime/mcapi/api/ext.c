/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What goes beyond the standard: descriptors, ways to wait, loans.
 *
 * A descriptor is a bell of this process that its notifier rings, like a fiber that never stops waiting.
 * It is readable, or the node's flag is up and nothing had come when it went up; so whatever comes later
 * rings. */
#include "fast_path.h"

#include <levada/mcapi_ext.h>

/* The caller's own endpoint, with its lock; null: `status` says why. */
static mc_local *enter(mc_mine *self, mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  mc_local *local = self ? mc_local_enter(self, endpoint) : NULL;
  *status = !self ? MCAPI_ERR_NODE_NOTINIT : !local ? MCAPI_ERR_ENDP_INVALID : MCAPI_SUCCESS;
  return local;
}

/* ---- descriptors ---------------------------------------------------------------------------- */

/* By the notifier. */
static bool ring_descriptor(lvd_waiter *w) {
  mc_listener *l = (mc_listener *)((char *)w - offsetof(mc_listener, watch.sleeper.waiter));
  lvd_os_eventfd_signal(*(const int *)l->what);
  return true;
}

static mcapi_status_t open_descriptor(mc_local *local) {
  if (lvd_os_eventfd_create(&local->descriptor) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
  mc_listener *l = &local->listener;
  *l = (mc_listener){.node = local->node, .what = &local->descriptor};
  l->watch.sleeper.waiter.wake = ring_descriptor;
  lvd_store_relaxed_ptr(&l->watch.sleeper.who, &l->watch.sleeper.waiter);
  local->has_descriptor = true;
  lvd_os_eventfd_signal(local->descriptor); /* something may be there already */
  return MCAPI_SUCCESS;
}

void mc_descriptor_close(mc_local *local) {
  if (!local->has_descriptor) return;
  mc_listen(&local->listener, false);
  lvd_os_close(local->descriptor);
  local->has_descriptor = false;
}

int lvd_mcapi_descriptor(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mcapi_status_t status;
  mc_local *local = enter(self, endpoint, &status);
  int out = -1;
  if (local) {
    if (!local->has_descriptor) status = open_descriptor(local);
    if (status == MCAPI_SUCCESS) out = local->descriptor;
    mc_lock_drop(&local->lock);
  }
  mc_say(mcapi_status, status);
  return out;
}

mcapi_uint_t lvd_mcapi_ready(mcapi_endpoint_t endpoint, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mcapi_status_t status;
  mcapi_uint_t count = 0;
  mc_local *local = enter(self, endpoint, &status);
  if (local) {
    mc_domain *d = local->node->domain;
    if (local->has_descriptor) {
      lvd_os_eventfd_clear(local->descriptor);
      mc_listen(&local->listener, true);
    }
    bool receives = local->channel.open && !(local->channel.role & MC_SENDS);
    if (receives) status = mc_channel_ended(d, local); /* before the count: it all came before */
    count = d->transport->count(d, local);
    if (receives) count += d->transport->available(d, local);
    if (local->has_descriptor && (count || status != MCAPI_SUCCESS))
      lvd_os_eventfd_signal(local->descriptor);
    if (count) status = MCAPI_SUCCESS;
    mc_lock_drop(&local->lock);
  }
  mc_say(mcapi_status, status);
  return count;
}

/* ---- waiting -------------------------------------------------------------------------------- */

void lvd_mcapi_wait_by(mcapi_endpoint_t endpoint, int how, uint32_t spin_us,
                       mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mcapi_status_t status;
  mc_local *local = enter(self, endpoint, &status);
  if (local) {
    if (how == LVD_MCAPI_SPIN_THEN_SLEEP)
      lvd_store_relaxed_u32(&local->spin_us, spin_us);
    else if (how == LVD_MCAPI_SPIN)
      lvd_store_relaxed_u32(&local->spin_us, UINT32_MAX);
    else if (how == LVD_MCAPI_SLEEP)
      lvd_store_relaxed_u32(&local->spin_us, 0);
    else
      status = MCAPI_ERR_PARAMETER;
    mc_lock_drop(&local->lock);
  }
  mc_say(mcapi_status, status);
}

/* ---- loans ---------------------------------------------------------------------------------- */

void *lvd_mcapi_loan(mcapi_pktchan_send_hndl_t send_handle, size_t size,
                     mcapi_status_t *mcapi_status) {
  void *out = mc_loan_at_once(send_handle, size);
  if (LVD_LIKELY(out != NULL)) {
    mc_say(mcapi_status, MCAPI_SUCCESS);
    return out;
  }
  MC_CALL(self);
  mc_request r;
  mcapi_status_t status =
      mc_channel_prepare(&r, self, MC_PACKET_OUT, send_handle, MC_PACKETS | MC_SENDS, size);
  if (status == MCAPI_SUCCESS) {
    const mc_domain *d = r.node->domain;
    if (size > mc_attribute(d, r.local->index, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE) ||
        size > MCAPI_MAX_PACKET_SIZE)
      status = MCAPI_ERR_PKT_SIZE;
  }
  if (status == MCAPI_SUCCESS) {
    r.packet = &out;
    status = mc_request_run(&r, mc_ns(lvd_load_relaxed_u32(&r.local->timeout)));
  }
  mc_say(mcapi_status, status);
  return status == MCAPI_SUCCESS ? out : NULL;
}

/* With the lock: the end that `buffer` was lent at; null: there is none. */
static mc_local *borrower(mc_mine *self, mcapi_pktchan_send_hndl_t handle, const void *buffer,
                          size_t size, mcapi_status_t *status) {
  mc_local *local = enter(self, handle, status);
  if (!local) {
    if (*status == MCAPI_ERR_ENDP_INVALID) *status = MCAPI_ERR_CHAN_INVALID;
    return NULL;
  }
  const mc_channel *c = &local->channel;
  *status = !c->open || c->role != (MC_PACKETS | MC_SENDS) ? MCAPI_ERR_CHAN_INVALID
            : !c->loan || c->loan != buffer                ? MCAPI_ERR_BUF_INVALID
            : size > c->loan_size                          ? MCAPI_ERR_PKT_SIZE
                                                           : MCAPI_SUCCESS;
  if (*status == MCAPI_SUCCESS) return local;
  mc_lock_drop(&local->lock);
  return NULL;
}

void lvd_mcapi_send_loan(mcapi_pktchan_send_hndl_t send_handle, const void *buffer, size_t size,
                         mcapi_status_t *mcapi_status) {
  if (LVD_LIKELY(mc_send_loan_at_once(send_handle, buffer, size))) {
    mc_say(mcapi_status, MCAPI_SUCCESS);
    return;
  }
  MC_CALL(self);
  mcapi_status_t status;
  mc_local *local = borrower(self, send_handle, buffer, size, &status);
  if (local) {
    mc_domain *d = local->node->domain;
    status = mc_channel_ended(d, local);
    if (status == MCAPI_SUCCESS && d->transport->send_loan(d, local, size) != LVD_OK)
      status = MCAPI_ERR_TRANSMISSION;
    local->channel.loan = NULL;
    mc_lock_drop(&local->lock);
  }
  mc_say(mcapi_status, status);
}

void lvd_mcapi_return_loan(mcapi_pktchan_send_hndl_t send_handle, const void *buffer,
                           mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mcapi_status_t status;
  mc_local *local = borrower(self, send_handle, buffer, 0, &status);
  if (local) {
    local->channel.loan = NULL;
    mc_lock_drop(&local->lock);
  } else if (self && mc_lent_release(self, buffer, false)) { /* the end has been closed meanwhile */
    status = MCAPI_SUCCESS;
  }
  mc_say(mcapi_status, status);
}
