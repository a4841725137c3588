/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Broadcasts in the tables: packet channels with several receivers. The sender is its own peer,
 * which marks it as connected; each receiver names the sender as its peer and has a receiver index.
 *
 * Receivers join and leave individually. After the sender's end is closed, it becomes free when the
 * last receiver has closed. If the process that connects a sender dies half-way, the sender has no
 * receiver and can be connected again. */
#include "../transport/transport.h"

#include <levada/mcapi_ext.h>

static mc_endpoint *record(const mc_domain *d, mcapi_endpoint_t e) {
  return &d->tables->endpoint[mc_index(e)];
}

/* ---- receivers ------------------------------------------------------------------------------- */

bool mc_broadcast_is_receiver(const mc_domain *d, uint32_t k, mcapi_endpoint_t sender) {
  const mc_endpoint *e = &d->tables->endpoint[k];
  return lvd_load_acquire_u32(&e->handle) && lvd_load_acquire_u32(&e->peer) == sender &&
         lvd_load_relaxed_u32(&e->broadcast) && !(lvd_load_relaxed_u32(&e->role) & MC_ROLE_SENDER);
}

bool mc_broadcast_has_receiver(const mc_domain *d, mcapi_endpoint_t sender, bool opened) {
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_is_receiver(d, k, sender) &&
        (!opened || lvd_load_acquire_u32(&d->tables->endpoint[k].state) & MC_END_OPENED))
      return true;
  return false;
}

void mc_broadcast_changed(const mc_domain *d, mcapi_endpoint_t receiver) {
  const mc_endpoint *e = record(d, receiver);
  mcapi_endpoint_t sender = lvd_load_relaxed_u32(&e->peer);
  if (lvd_load_relaxed_u32(&e->broadcast) && sender && mc_index(sender) != mc_index(receiver))
    lvd_add_release_u32(&record(d, sender)->membership_version, 1);
}

/* The lowest unused receiver index; MC_BROADCAST_RECEIVERS: none is free. */
static uint32_t free_receiver_index(const mc_domain *d, mcapi_endpoint_t sender) {
  uint32_t taken = 0;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_is_receiver(d, k, sender))
      taken |= 1u << lvd_load_relaxed_u32(&d->tables->endpoint[k].receiver_index) %
                         MC_BROADCAST_RECEIVERS;
  uint32_t index = 0;
  while (index < MC_BROADCAST_RECEIVERS && taken >> index & 1) index++;
  return index;
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* With the tables lock. */
static mcapi_status_t connect(mc_domain *d, mcapi_endpoint_t from, mcapi_endpoint_t to) {
  if (from == to || !mc_endpoint_exists(d, from) || !mc_endpoint_exists(d, to))
    return MCAPI_ERR_ENDP_INVALID;
  if (!d->transport->broadcast_create) return MCAPI_ERR_ATTR_NOTSUPPORTED;
  mc_endpoint *sender = record(d, from), *receiver = record(d, to);
  mc_channel_clear_dead_peer(d, from);
  mc_channel_clear_dead_peer(d, to);
  bool more = lvd_load_relaxed_u32(&sender->peer) == from;
  if (mc_is_connected(d, to) || (!more && mc_is_connected(d, from)))
    return MCAPI_ERR_CHAN_CONNECTED;
  if (lvd_load_relaxed_u32(&sender->state) & MC_END_CLOSED) return MCAPI_ERR_CHAN_CLOSEPENDING;
  mcapi_status_t status =
      mc_channel_role_error(lvd_load_relaxed_u32(&sender->role), MC_ROLE_PACKETS | MC_ROLE_SENDER);
  if (status == MCAPI_SUCCESS)
    status = mc_channel_role_error(lvd_load_relaxed_u32(&receiver->role), MC_ROLE_PACKETS);
  if (status != MCAPI_SUCCESS) return status;
  if (!mc_channel_compatible(d, from, to)) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  uint32_t index = free_receiver_index(d, from);
  if (index == MC_BROADCAST_RECEIVERS) return MCAPI_ERR_MEM_LIMIT;
  if (!more) {
    if (d->transport->broadcast_create(d, mc_index(from)) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
    lvd_store_relaxed_u32(&sender->role, MC_ROLE_PACKETS | MC_ROLE_SENDER);
    lvd_store_relaxed_u32(&sender->last_sender, from);
    lvd_store_relaxed_u32(&sender->broadcast, 1);
    lvd_store_release_u32(&sender->peer, from);
  }
  lvd_store_relaxed_u32(&receiver->role, MC_ROLE_PACKETS);
  lvd_store_relaxed_u32(&receiver->receiver_index, index);
  lvd_store_relaxed_u32(&receiver->broadcast, 1);
  lvd_store_release_u32(&receiver->peer, from);
  mc_broadcast_changed(d, to); /* the receiver may have been opened before */
  return MCAPI_SUCCESS;
}

void lvd_mcapi_broadcast_connect_i(mcapi_endpoint_t send_endpoint,
                                   mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                                   mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n = self && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_domain *d = self->domain;
    mc_tables_lock(d);
    status = connect(d, send_endpoint, receive_endpoint);
    mc_tables_unlock(d);
    if (status == MCAPI_SUCCESS) {
      mc_notify(d, lvd_load_relaxed_u32(&record(d, send_endpoint)->node));
      mc_notify(d, lvd_load_relaxed_u32(&record(d, receive_endpoint)->node));
    }
    status = mc_request_start_completed(n, self, status, request);
  }
  mc_set_status(mcapi_status, status);
}

/* ---- closing --------------------------------------------------------------------------------- */

static void close_sender(mc_domain *d, mcapi_endpoint_t sender) {
  mc_endpoint *mine = record(d, sender);
  bool has_receiver = false, opened = lvd_load_relaxed_u32(&mine->state) & MC_END_OPENED;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    mc_endpoint *e = &d->tables->endpoint[k];
    if (!mc_broadcast_is_receiver(d, k, sender)) continue;
    has_receiver = true;
    if (opened && lvd_load_relaxed_u32(&e->state) & MC_END_OPENED)
      lvd_store_relaxed_u32(&e->state, MC_END_OPENED | MC_END_PEER_CLOSED);
  }
  if (!has_receiver) {
    mc_channel_reset(mine);
    return;
  }
  lvd_store_release_u32(&mine->state, MC_END_CLOSED);
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_is_receiver(d, k, sender))
      mc_notify(d, lvd_load_relaxed_u32(&d->tables->endpoint[k].node));
}

void mc_broadcast_close(mc_domain *d, mcapi_endpoint_t e) {
  mc_endpoint *mine = record(d, e);
  mcapi_endpoint_t sender = lvd_load_relaxed_u32(&mine->peer);
  if (sender == e) {
    close_sender(d, e);
    return;
  }
  mc_endpoint *other = record(d, sender);
  lvd_store_relaxed_u32(&mine->state, 0);
  mc_broadcast_changed(d, e);
  mc_channel_reset(mine);
  bool there = lvd_load_acquire_u32(&other->handle) == sender;
  if (there && lvd_load_relaxed_u32(&other->state) & MC_END_CLOSED &&
      !mc_broadcast_has_receiver(d, sender, false))
    mc_channel_reset(other);
}
