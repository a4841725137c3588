/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Broadcasts: packet channels with more than one receiver, as the tables have them. Who sends is its own
 * peer, which says that it is connected; each receiver names it, and has a seat.
 *
 * A receiver comes and goes by itself; the sender's end, once closed, is free again when the last
 * receiver has closed, too. One whose connecting died half way has no receiver, and can be connected
 * anew. */
#include "../transport/transport.h"

#include <levada/mcapi_ext.h>

static mc_endpoint *record(const mc_domain *d, mcapi_endpoint_t e) {
  return &d->tables->endpoint[mc_index(e)];
}

/* ---- the audience --------------------------------------------------------------------------- */

bool mc_broadcast_hears(const mc_domain *d, uint32_t k, mcapi_endpoint_t sender) {
  const mc_endpoint *e = &d->tables->endpoint[k];
  return lvd_load_acquire_u32(&e->handle) && lvd_load_acquire_u32(&e->peer) == sender &&
         lvd_load_relaxed_u32(&e->many) && !(lvd_load_relaxed_u32(&e->role) & MC_SENDS);
}

bool mc_broadcast_heard(const mc_domain *d, mcapi_endpoint_t sender, bool opened) {
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_hears(d, k, sender) &&
        (!opened || lvd_load_acquire_u32(&d->tables->endpoint[k].state) & MC_OPENED))
      return true;
  return false;
}

void mc_broadcast_call(const mc_domain *d, mcapi_endpoint_t receiver) {
  const mc_endpoint *e = record(d, receiver);
  mcapi_endpoint_t sender = lvd_load_relaxed_u32(&e->peer);
  if (lvd_load_relaxed_u32(&e->many) && sender && mc_index(sender) != mc_index(receiver))
    lvd_add_release_u32(&record(d, sender)->calls, 1);
}

/* The first seat that nobody has; MC_SEATS: there is none. */
static uint32_t free_seat(const mc_domain *d, mcapi_endpoint_t sender) {
  uint32_t taken = 0;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_hears(d, k, sender))
      taken |= 1u << lvd_load_relaxed_u32(&d->tables->endpoint[k].seat) % MC_SEATS;
  uint32_t seat = 0;
  while (seat < MC_SEATS && taken >> seat & 1) seat++;
  return seat;
}

/* ---- connecting ----------------------------------------------------------------------------- */

/* Behind the gate. */
static mcapi_status_t connect(mc_domain *d, mcapi_endpoint_t from, mcapi_endpoint_t to) {
  if (from == to || !mc_endpoint_is(d, from) || !mc_endpoint_is(d, to))
    return MCAPI_ERR_ENDP_INVALID;
  if (!d->transport->lay_broadcast) return MCAPI_ERR_ATTR_NOTSUPPORTED;
  mc_endpoint *sender = record(d, from), *receiver = record(d, to);
  mc_channel_forget_gone(d, from);
  mc_channel_forget_gone(d, to);
  bool more = lvd_load_relaxed_u32(&sender->peer) == from;
  if (mc_is_connected(d, to) || (!more && mc_is_connected(d, from)))
    return MCAPI_ERR_CHAN_CONNECTED;
  if (lvd_load_relaxed_u32(&sender->state) & MC_CLOSED) return MCAPI_ERR_CHAN_CLOSEPENDING;
  mcapi_status_t status =
      mc_channel_misfit(lvd_load_relaxed_u32(&sender->role), MC_PACKETS | MC_SENDS);
  if (status == MCAPI_SUCCESS)
    status = mc_channel_misfit(lvd_load_relaxed_u32(&receiver->role), MC_PACKETS);
  if (status != MCAPI_SUCCESS) return status;
  if (!mc_channel_compatible(d, from, to)) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  uint32_t seat = free_seat(d, from);
  if (seat == MC_SEATS) return MCAPI_ERR_MEM_LIMIT;
  if (!more) {
    if (d->transport->lay_broadcast(d, mc_index(from)) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
    lvd_store_relaxed_u32(&sender->role, MC_PACKETS | MC_SENDS);
    lvd_store_relaxed_u32(&sender->user, from);
    lvd_store_relaxed_u32(&sender->many, 1);
    lvd_store_release_u32(&sender->peer, from);
  }
  lvd_store_relaxed_u32(&receiver->role, MC_PACKETS);
  lvd_store_relaxed_u32(&receiver->seat, seat);
  lvd_store_relaxed_u32(&receiver->many, 1);
  lvd_store_release_u32(&receiver->peer, from);
  mc_broadcast_call(d, to); /* it may be open already */
  return MCAPI_SUCCESS;
}

void lvd_mcapi_broadcast_connect_i(mcapi_endpoint_t send_endpoint,
                                   mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                                   mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_numbered *n = self && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_domain *d = self->domain;
    mc_gate_enter(d);
    status = connect(d, send_endpoint, receive_endpoint);
    mc_gate_leave(d);
    if (status == MCAPI_SUCCESS) {
      mc_ring(d, lvd_load_relaxed_u32(&record(d, send_endpoint)->node));
      mc_ring(d, lvd_load_relaxed_u32(&record(d, receive_endpoint)->node));
    }
    status = mc_request_conclude(n, self, status, request);
  }
  mc_say(mcapi_status, status);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void close_sender(mc_domain *d, mcapi_endpoint_t sender) {
  mc_endpoint *mine = record(d, sender);
  bool heard = false, opened = lvd_load_relaxed_u32(&mine->state) & MC_OPENED;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    mc_endpoint *e = &d->tables->endpoint[k];
    if (!mc_broadcast_hears(d, k, sender)) continue;
    heard = true;
    if (opened && lvd_load_relaxed_u32(&e->state) & MC_OPENED)
      lvd_store_relaxed_u32(&e->state, MC_OPENED | MC_LEFT);
  }
  if (!heard) {
    mc_channel_set_free(mine);
    return;
  }
  lvd_store_release_u32(&mine->state, MC_CLOSED);
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++)
    if (mc_broadcast_hears(d, k, sender))
      mc_ring(d, lvd_load_relaxed_u32(&d->tables->endpoint[k].node));
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
  mc_broadcast_call(d, e);
  mc_channel_set_free(mine);
  bool there = lvd_load_acquire_u32(&other->handle) == sender;
  if (there && lvd_load_relaxed_u32(&other->state) & MC_CLOSED &&
      !mc_broadcast_heard(d, sender, false))
    mc_channel_set_free(other);
}
