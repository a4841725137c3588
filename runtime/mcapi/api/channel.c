/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels of packets or scalars between two endpoints: connected by any node, opened at both ends,
 * in any order. An end is open when it has been opened and is connected, even if the other end has
 * not been opened, as in the standard's reference implementation; what is sent meanwhile is kept in
 * the channel. (A broadcast, an extension, keeps nothing for future receivers: its sender is open
 * when a receiver has been opened.)
 *
 * Guarantees
 *   K1  What was sent before an end was closed, or its process died, is received. After that the
 *       other end gets MCAPI_ERR_CHAN_CLOSEPENDING, or MCAPI_ERR_TRANSMISSION.
 *   K2  Two ends are connected when each names the other. So if a process dies while it connects
 *       them, both are free. An end that is not open also becomes free when the other end's process
 *       dies, unless it receives and something has been sent to it. A free end can be opened, or
 *       connected again. */
#include "../transport/transport.h"

static mc_endpoint *record(const mc_domain *d, mcapi_endpoint_t e) {
  return &d->tables->endpoint[mc_index(e)];
}

/* ---- connected, open, closed ----------------------------------------------------------------- */

static mcapi_endpoint_t peer_of(const mc_domain *d, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = lvd_load_acquire_u32(&record(d, e)->peer);
  if (!peer) return 0;
  const mc_endpoint *other = record(d, peer);
  bool many = lvd_load_relaxed_u32(&record(d, e)->broadcast);
  bool both = lvd_load_acquire_u32(&other->handle) == peer &&
              lvd_load_acquire_u32(&other->peer) == (many ? peer : e);
  return both ? peer : 0;
}

bool mc_channel_in_use(const mc_domain *d, uint32_t index) {
  mcapi_endpoint_t user = lvd_load_relaxed_u32(&d->tables->endpoint[index].last_sender);
  if (!user) return false;
  if (mc_index(user) == index) return mc_broadcast_has_receiver(d, user, false);
  if (lvd_load_relaxed_u32(&record(d, user)->handle) != user) return false;
  mcapi_endpoint_t to = lvd_load_relaxed_u32(&record(d, user)->peer);
  return to && mc_index(to) == index;
}

/* True also for an open end after its peer has ended. */
bool mc_is_connected(const mc_domain *d, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = lvd_load_acquire_u32(&record(d, e)->peer);
  bool open = lvd_load_acquire_u32(&record(d, e)->state) & MC_END_OPENED;
  if (peer == e) return open || mc_broadcast_has_receiver(d, e, false);
  if (peer && open && lvd_load_acquire_u32(&record(d, peer)->handle) != peer) return true;
  return peer_of(d, e) != 0;
}

mcapi_endp_attr_status_t mc_channel_status(const mc_domain *d, mcapi_endpoint_t e) {
  uint32_t role = lvd_load_relaxed_u32(&record(d, e)->role);
  uint32_t state = lvd_load_relaxed_u32(&record(d, e)->state);
  mcapi_endpoint_t peer = peer_of(d, e);
  uint32_t theirs = peer ? lvd_load_relaxed_u32(&record(d, peer)->state) : 0;
  mcapi_endp_attr_status_t out = peer ? MCAPI_ENDP_ATTR_STATUS_CONNECTED : 0;
  if (role & MC_ROLE_PACKETS) out |= MCAPI_ENDP_ATTR_STATUS_PKTCHAN;
  if (role & MC_ROLE_SCALARS) out |= MCAPI_ENDP_ATTR_STATUS_SCLCHAN;
  if (role)
    out |= role & MC_ROLE_SENDER ? MCAPI_ENDP_ATTR_STATUS_SEND : MCAPI_ENDP_ATTR_STATUS_RECEIVE;
  if (state & MC_END_OPENED)
    out |= lvd_load_relaxed_u32(&record(d, e)->peer) ? MCAPI_ENDP_ATTR_STATUS_OPEN
                                                     : MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING;
  if ((state | theirs) & MC_END_CLOSED && state != theirs)
    out |= MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING;
  return out;
}

mcapi_status_t mc_channel_role_error(uint32_t role, uint32_t wanted) {
  if (!role || role == wanted) return MCAPI_SUCCESS;
  return (role ^ wanted) & MC_ROLE_SENDER ? MCAPI_ERR_CHAN_DIRECTION : MCAPI_ERR_CHAN_TYPE;
}

bool mc_channel_compatible(const mc_domain *d, mcapi_endpoint_t a, mcapi_endpoint_t b) {
  static const uint32_t must[] = {MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, MCAPI_ENDP_ATTR_BUFFER_TYPE,
                                  MCAPI_ENDP_ATTR_MEMORY_TYPE, MCAPI_ENDP_ATTR_NUM_PRIORITIES,
                                  MCAPI_ENDP_ATTR_PRIORITY};
  for (size_t i = 0; i < sizeof must / sizeof *must; i++)
    if (mc_attribute(d, mc_index(a), must[i]) != mc_attribute(d, mc_index(b), must[i]))
      return false;
  return true;
}

void mc_channel_reset(mc_endpoint *e) {
  lvd_store_relaxed_u32(&e->state, 0);
  lvd_store_relaxed_u32(&e->role, 0);
  lvd_store_relaxed_u32(&e->broadcast, 0);
  lvd_store_release_u32(&e->peer, 0);
}

/* True: the end has not been opened since it was connected, and its peer has ended. */
static bool peer_died_before_open(const mc_domain *d, const mc_endpoint *mine) {
  mcapi_endpoint_t peer = lvd_load_relaxed_u32(&mine->peer);
  return peer && !(lvd_load_relaxed_u32(&mine->state) & (MC_END_OPENED | MC_END_CLOSED)) &&
         !lvd_load_relaxed_u32(&mine->broadcast) &&
         lvd_load_relaxed_u32(&record(d, peer)->handle) != peer;
}

/* True: the channel may hold data that the peer sent before its process died. The peer had been
 * opened, as its record still shows, or as an earlier call has noted in this end's state. */
static bool may_hold_sent(const mc_domain *d, mc_endpoint *mine) {
  mcapi_endpoint_t peer = lvd_load_relaxed_u32(&mine->peer);
  const mc_endpoint *other = record(d, peer);
  if (!peer_died_before_open(d, mine) || lvd_load_relaxed_u32(&mine->role) & MC_ROLE_SENDER)
    return false;
  if (lvd_load_relaxed_u32(&mine->state) & (MC_END_PEER_CLOSED | MC_END_PEER_DIED)) return true;
  if (mc_generation(lvd_load_relaxed_u64(&other->history)) != peer / MC_ENDPOINTS ||
      !(lvd_load_relaxed_u32(&other->state) & MC_END_OPENED))
    return false;
  lvd_store_relaxed_u32(&mine->state, MC_END_PEER_DIED);
  return true;
}

void mc_channel_reset_half_connected(mc_domain *d, mcapi_endpoint_t e) {
  mc_endpoint *mine = record(d, e);
  if (lvd_load_relaxed_u32(&mine->state) & MC_END_OPENED || may_hold_sent(d, mine)) return;
  bool sender = lvd_load_relaxed_u32(&mine->peer) == e; /* of a broadcast */
  if (!(sender ? mc_broadcast_has_receiver(d, e, false) : peer_of(d, e) != 0))
    mc_channel_reset(mine);
}

void mc_channel_clear_dead_peer(const mc_domain *d, mcapi_endpoint_t e) {
  if (peer_died_before_open(d, record(d, e))) mc_channel_reset(record(d, e));
}

/* With the tables lock. */
static mcapi_status_t connect(mc_domain *d, mcapi_endpoint_t from, mcapi_endpoint_t to,
                              uint32_t kind) {
  if (from == to || !mc_endpoint_exists(d, from) || !mc_endpoint_exists(d, to))
    return MCAPI_ERR_ENDP_INVALID;
  if (mc_is_connected(d, from) || mc_is_connected(d, to)) return MCAPI_ERR_CHAN_CONNECTED;
  mc_endpoint *sender = record(d, from), *receiver = record(d, to);
  mc_channel_clear_dead_peer(d, from);
  mc_channel_clear_dead_peer(d, to);
  /* Either end may have been opened before it is connected. */
  mcapi_status_t status =
      mc_channel_role_error(lvd_load_relaxed_u32(&sender->role), kind | MC_ROLE_SENDER);
  if (status == MCAPI_SUCCESS)
    status = mc_channel_role_error(lvd_load_relaxed_u32(&receiver->role), kind);
  if (status != MCAPI_SUCCESS) return status;
  if (!mc_channel_compatible(d, from, to)) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  if (d->transport->channel_create(d, mc_index(to), kind) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
  lvd_store_relaxed_u32(&sender->role, kind | MC_ROLE_SENDER);
  lvd_store_relaxed_u32(&receiver->role, kind);
  lvd_store_relaxed_u32(&receiver->last_sender, from);
  lvd_store_relaxed_u32(&sender->broadcast, 0);
  lvd_store_relaxed_u32(&receiver->broadcast, 0);
  lvd_store_release_u32(&sender->peer, to);
  lvd_store_release_u32(&receiver->peer, from);
  return MCAPI_SUCCESS;
}

static void notify_both(mc_domain *d, mcapi_endpoint_t a, mcapi_endpoint_t b) {
  mc_notify(d, lvd_load_relaxed_u32(&record(d, a)->node));
  mc_notify(d, lvd_load_relaxed_u32(&record(d, b)->node));
}

static void connect_i(uint32_t kind, mcapi_endpoint_t from, mcapi_endpoint_t to,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_request_entry *n = self && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_tables_lock(self->domain);
    status = connect(self->domain, from, to, kind);
    mc_tables_unlock(self->domain);
    if (status == MCAPI_SUCCESS) notify_both(self->domain, from, to);
    status = mc_request_start_completed(n, self, status, request);
  }
  mc_set_status(mcapi_status, status);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool attach(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t peer) {
  mc_channel *c = &local->channel;
  c->peer = peer;
  c->loan = NULL;
  c->broadcast = lvd_load_relaxed_u32(&record(d, lvd_load_relaxed_u32(&local->handle))->broadcast);
  c->peer_node = lvd_load_relaxed_u32(&record(d, peer)->node);
  return c->open = d->transport->attach(d, local, peer);
}

/* The peer was opened, sent, and ended before this end was polled: what it sent is still
 * received. */
static bool attach_to_closed(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t peer) {
  if (local->channel.role & MC_ROLE_SENDER || !attach(d, local, peer)) return false;
  bool opened = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].state) & MC_END_PEER_CLOSED;
  if (opened || d->transport->available(d, local)) return true;
  d->transport->detach(d, local);
  return local->channel.open = false;
}

static void finish(mc_request *r, mcapi_status_t status) {
  r->status = status;
  lvd_store_release_u32(&r->done, 1);
}

/* With the endpoint's lock. MCAPI_PENDING: the end is not connected yet. */
static mcapi_status_t poll_open(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t handle) {
  if (lvd_load_relaxed_u32(&local->handle) != handle || !local->channel.role)
    return MCAPI_ERR_CHAN_INVALID;               /* closed or deleted meanwhile */
  if (local->channel.open) return MCAPI_SUCCESS; /* completed by another request */
  mcapi_endpoint_t named = lvd_load_acquire_u32(&record(d, handle)->peer);
  if (named && lvd_load_acquire_u32(&record(d, named)->handle) != named)
    return attach_to_closed(d, local, named) ? MCAPI_SUCCESS : MCAPI_ERR_TRANSMISSION;
  mcapi_endpoint_t peer = peer_of(d, handle);
  if (!peer) return MCAPI_PENDING;
  if (peer == handle && !mc_broadcast_has_receiver(d, handle, true)) return MCAPI_PENDING;
  /* even if it has been closed since */
  return attach(d, local, peer) ? MCAPI_SUCCESS : MCAPI_ERR_TRANSMISSION;
}

bool mc_channel_poll_open(mc_request *r) {
  mc_lock_acquire(&r->local->lock);
  bool done = lvd_load_relaxed_u32(&r->done);
  mcapi_status_t status = done ? r->status : poll_open(r->node->domain, r->local, r->handle);
  if (!done && status != MCAPI_PENDING) finish(r, status);
  mc_lock_release(&r->local->lock);
  return status != MCAPI_PENDING;
}

/* Undoes the open. If the other end has already seen this end as open, it now sees it as closed. */
bool mc_channel_cancel_open(mc_request *r, mcapi_status_t why) {
  mc_domain *d = r->node->domain;
  mc_local_endpoint *local = r->local;
  mc_endpoint *mine = record(d, r->handle);
  mc_tables_lock(d);
  mc_lock_acquire(&local->lock);
  bool pending = !lvd_load_relaxed_u32(&r->done);
  if (pending) finish(r, why);
  mcapi_endpoint_t peer = peer_of(d, r->handle);
  if (pending && lvd_load_relaxed_u32(&local->handle) == r->handle && local->channel.role &&
      !local->channel.open) {
    local->channel.role = 0;
    if (!peer) lvd_store_relaxed_u32(&mine->role, 0);
    lvd_store_release_u32(&mine->state, 0);
    mc_broadcast_changed(d, r->handle);
  }
  mc_lock_release(&local->lock);
  mc_tables_unlock(d);
  if (peer) mc_notify(d, lvd_load_relaxed_u32(&record(d, peer)->node));
  return pending;
}

/* Opens an end after its peer has ended: what the peer sent is still received. If it sent nothing,
 * the end becomes free, as if it had never been connected. With the tables lock and the
 * endpoint's. */
static bool open_after_peer(mc_domain *d, mc_local_endpoint *local, mc_endpoint *mine,
                            uint32_t role) {
  local->channel.role = role;
  if (role == lvd_load_relaxed_u32(&mine->role) &&
      attach_to_closed(d, local, lvd_load_relaxed_u32(&mine->peer)))
    return true;
  local->channel.role = 0;
  mc_channel_reset(mine);
  return false;
}

static mcapi_status_t open_end(mc_local_node *self, uint32_t role, mcapi_endpoint_t e,
                               mc_local_endpoint **out) {
  mc_domain *d = self->domain;
  if (!mc_endpoint_exists(d, e)) return MCAPI_ERR_ENDP_INVALID;
  mc_local_endpoint *local = *out = mc_local_endpoint_of(self, e);
  if (!local) return MCAPI_ERR_ENDP_REMOTE;
  mc_tables_lock(d);
  mc_lock_acquire(&local->lock);
  mc_endpoint *mine = record(d, e);
  bool there = lvd_load_relaxed_u32(&local->handle) == e; /* false: deleted meanwhile */
  bool kept = there && peer_died_before_open(d, mine) && open_after_peer(d, local, mine, role);
  uint32_t state = lvd_load_relaxed_u32(&mine->state);
  mcapi_status_t status = there ? mc_channel_role_error(lvd_load_relaxed_u32(&mine->role), role)
                                : MCAPI_ERR_ENDP_INVALID;
  if (status == MCAPI_SUCCESS && state & MC_END_CLOSED) status = MCAPI_ERR_CHAN_CLOSEPENDING;
  if (status == MCAPI_SUCCESS && local->channel.role && !kept)
    status = local->channel.open ? MCAPI_ERR_CHAN_OPEN : MCAPI_ERR_CHAN_OPENPENDING;
  if (status == MCAPI_SUCCESS) {
    local->channel.role = role;
    local->channel.open = kept;
    lvd_store_relaxed_u32(&mine->role, role);
    lvd_store_release_u32(&mine->state, MC_END_OPENED | (state & MC_END_PEER_CLOSED));
    mc_broadcast_changed(d, e);
  }
  mc_lock_release(&local->lock);
  mc_tables_unlock(d);
  return status;
}

static void open_i(uint32_t role, uint32_t *handle, mcapi_endpoint_t e, mcapi_request_t *request,
                   mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_local_endpoint *local = NULL;
  mc_request_entry *n = self && request && handle ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self                 ? MCAPI_ERR_NODE_NOTINIT
                          : !request || !handle ? MCAPI_ERR_PARAMETER
                          : !n                  ? MCAPI_ERR_REQUEST_LIMIT
                                                : open_end(self, role, e, &local);
  if (status == MCAPI_SUCCESS) {
    *handle = e;
    mcapi_endpoint_t peer = peer_of(self->domain, e);
    if (peer) notify_both(self->domain, e, peer);
    const mc_request r = {.kind = MC_CHANNEL_OPEN, .node = self, .local = local, .handle = e};
    status = mc_request_start(n, &r, request);
  } else if (n) {
    mc_request_unreserve(n);
  }
  mc_set_status(mcapi_status, status);
}

/* ---- closing --------------------------------------------------------------------------------- */

/* The second end to close disconnects both. `deleting`: the endpoint is being deleted; then a peer
 * that has not been opened becomes free, unless something has been sent to it. With the tables lock
 * and the endpoint's. */
static void close_end(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t e, bool deleting) {
  mc_endpoint *mine = record(d, e);
  mcapi_endpoint_t peer = peer_of(d, e);
  mc_requests_fail(local, MC_PACKET_SEND, MCAPI_ERR_CHAN_INVALID);
  if (local->channel.open) d->transport->detach(d, local);
  local->channel.role = 0;
  local->channel.open = false;
  if (lvd_load_relaxed_u32(&mine->broadcast)) {
    mc_broadcast_close(d, e);
    return;
  }
  mc_endpoint *other = peer ? record(d, peer) : NULL;
  uint32_t state = lvd_load_relaxed_u32(&mine->state);
  uint32_t theirs = other ? lvd_load_relaxed_u32(&other->state) : MC_END_CLOSED;
  bool sent = state && lvd_load_relaxed_u32(&mine->role) & MC_ROLE_SENDER;
  if (!(theirs & MC_END_CLOSED) && (theirs & MC_END_OPENED || sent || !deleting)) {
    if (state & MC_END_OPENED) lvd_store_relaxed_u32(&other->state, theirs | MC_END_PEER_CLOSED);
    lvd_store_release_u32(&mine->state, MC_END_CLOSED);
    return;
  }
  if (other) mc_channel_reset(other);
  mc_channel_reset(mine);
}

void mc_channel_abandon(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = peer_of(d, e);
  mc_lock_acquire(&local->lock);
  close_end(d, local, e, true);
  mc_lock_release(&local->lock);
  if (peer) mc_notify(d, lvd_load_relaxed_u32(&record(d, peer)->node));
}

static void close_i(uint32_t role, mcapi_endpoint_t handle, mcapi_request_t *request,
                    mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_local_endpoint *local = self ? mc_local_endpoint_of(self, handle) : NULL;
  mc_request_entry *n = local && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                          : !local   ? MCAPI_ERR_CHAN_INVALID
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_domain *d = self->domain;
    mcapi_endpoint_t peer = peer_of(d, handle);
    mc_tables_lock(d);
    mc_lock_acquire(&local->lock);
    bool there = lvd_load_relaxed_u32(&local->handle) == handle; /* false: deleted meanwhile */
    status = there ? mc_channel_role_error(local->channel.role, role) : MCAPI_ERR_CHAN_INVALID;
    if (status == MCAPI_SUCCESS && !local->channel.role)
      status = lvd_load_relaxed_u32(&record(d, handle)->state) & MC_END_CLOSED
                   ? MCAPI_ERR_CHAN_CLOSEPENDING
                   : MCAPI_ERR_CHAN_NOTOPEN;
    if (status == MCAPI_SUCCESS) close_end(d, local, handle, false);
    mc_lock_release(&local->lock);
    mc_tables_unlock(d);
    mc_notify(d, self->index); /* a call of this node may wait at this end */
    if (peer) mc_notify(d, lvd_load_relaxed_u32(&record(d, peer)->node));
    status = mc_request_start_completed(n, self, status, request);
  }
  mc_set_status(mcapi_status, status);
}

/* ---- sending and receiving ------------------------------------------------------------------- */

/* MCAPI_SUCCESS, or how the other end has ended: closed, or without a close. */
mcapi_status_t mc_channel_ended(const mc_domain *d, const mc_local_endpoint *local) {
  if (mc_channel_peer_is_open(d, local)) return MCAPI_SUCCESS;
  const mc_endpoint *other = record(d, local->channel.peer);
  bool there = lvd_load_acquire_u32(&other->handle) == local->channel.peer;
  bool left = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].state) & MC_END_PEER_CLOSED;
  return there || left ? MCAPI_ERR_CHAN_CLOSEPENDING : MCAPI_ERR_TRANSMISSION;
}

static mcapi_status_t send(mc_domain *d, mc_request *r) {
  mcapi_status_t end = mc_channel_ended(d, r->local);
  if (end != MCAPI_SUCCESS) return end;
  mc_channel *c = &r->local->channel;
  if (LVD_UNLIKELY(c->loan != NULL)) return MCAPI_ERR_MEM_LIMIT;
  lvd_status status =
      r->packet ? d->transport->loan(d, r->local, r->size, r->packet)
      : r->kind == MC_PACKET_SEND
          ? MC_TRANSPORT_CALL(d, put_packet, d, r->local, r->out, r->size)
          : MC_TRANSPORT_CALL(d, put_scalar, d, r->local, r->scalar, (uint32_t)r->size);
  if (status == LVD_OK && r->packet) {
    c->loan = *r->packet;
    c->loan_size = r->size;
  }
  if (status == LVD_OK) return MCAPI_SUCCESS;
  if (status == LVD_E_TIMEOUT) return r->fail_when_full ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
  return status == LVD_E_MEMORY ? MCAPI_ERR_MEM_LIMIT : MCAPI_ERR_TRANSMISSION;
}

static lvd_status take(mc_domain *d, mc_request *r) {
  if (r->kind == MC_SCALAR_RECEIVE)
    return MC_TRANSPORT_CALL(d, take_scalar, d, r->local, (uint32_t)r->size, &r->scalar);
  return MC_TRANSPORT_CALL(d, take_packet, d, r->local, r->packet, &r->size);
}

static mcapi_status_t receive(mc_domain *d, mc_request *r) {
  lvd_status status = take(d, r);
  mcapi_status_t end = MCAPI_PENDING;
  if (status == LVD_E_TIMEOUT && (end = mc_channel_ended(d, r->local)) != MCAPI_SUCCESS)
    status = take(d, r); /* what arrived just before the end */
  switch (status) {
  case LVD_OK:
    mc_count_received(d->tables, r->local->index, r->size);
    return MCAPI_SUCCESS;
  case LVD_E_TIMEOUT:
    return end == MCAPI_SUCCESS ? MCAPI_PENDING : end;
  case LVD_E_LIMIT:
    return r->fail_when_full ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
  case LVD_E_ARGUMENT:
    return MCAPI_ERR_SCL_SIZE;
  default:
    return MCAPI_ERR_TRANSMISSION;
  }
}

mcapi_status_t mc_channel_progress(mc_domain *d, mc_request *r) {
  if (!r->local->channel.open) return MCAPI_ERR_CHAN_INVALID;
  return r->kind == MC_PACKET_RECEIVE || r->kind == MC_SCALAR_RECEIVE ? receive(d, r) : send(d, r);
}

mcapi_status_t mc_channel_prepare(mc_request *r, mc_local_node *self, enum mc_kind kind,
                                  uint32_t handle, uint32_t role, size_t size) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local_endpoint *local = mc_local_endpoint_lock(self, handle);
  bool open = local && local->channel.role == role && local->channel.open;
  if (local) mc_lock_release(&local->lock);
  if (!open) return MCAPI_ERR_CHAN_INVALID;
  *r = (mc_request){.kind = kind,
                    .node = self,
                    .local = local,
                    .handle = handle,
                    .size = size,
                    .fail_when_full = mc_fails_when_full(local)};
  return MCAPI_SUCCESS;
}

mcapi_uint_t mc_channel_available(uint32_t handle, uint32_t role, mcapi_status_t *mcapi_status) {
  MC_LONG_CALL(self);
  mc_local_endpoint *local = self ? mc_local_endpoint_lock(self, handle) : NULL;
  bool open = local && local->channel.role == role && local->channel.open;
  mcapi_uint_t count = open ? self->domain->transport->available(self->domain, local) : 0;
  if (local) mc_lock_release(&local->lock);
  mc_set_status(mcapi_status, !self   ? MCAPI_ERR_NODE_NOTINIT
                              : !open ? MCAPI_ERR_CHAN_INVALID
                                      : MCAPI_SUCCESS);
  return count;
}

/* ---- releasing ------------------------------------------------------------------------------- */

mcapi_status_t mc_channel_release(const void *buffer, bool only_test) {
  MC_LONG_CALL(self);
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_domain *d = self->domain;
  /* Starts at the endpoint of the last release, since most releases are near it. */
  uint32_t first = lvd_load_relaxed_u32(&self->last_released);
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    uint32_t i = (first + k) % MC_ENDPOINTS;
    mc_local_endpoint *local = lvd_load_acquire_ptr(&d->local[i]);
    if (!local || mc_owner(local) != self) continue;
    mc_lock_acquire(&local->lock);
    const mc_channel *c = &local->channel;
    bool held = mc_owner(local) == self && c->open && c->role == MC_ROLE_PACKETS &&
                MC_TRANSPORT_CALL(d, release, d, local, buffer, only_test);
    /* a receive may wait for a buffer */
    bool waits = !only_test && local->pending[MC_PACKET_RECEIVE].first;
    mc_lock_release(&local->lock);
    if (!held) continue;
    if (k) lvd_store_relaxed_u32(&self->last_released, i);
    if (waits) mc_notify(d, self->index);
    return MCAPI_SUCCESS;
  }
  return mc_detached_release(self, buffer, only_test) ? MCAPI_SUCCESS : MCAPI_ERR_BUF_INVALID;
}

/* ---- the calls that packets and scalars share ------------------------------------------------ */

void mcapi_pktchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                             mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  connect_i(MC_ROLE_PACKETS, send_endpoint, receive_endpoint, request, mcapi_status);
}
void mcapi_sclchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                             mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  connect_i(MC_ROLE_SCALARS, send_endpoint, receive_endpoint, request, mcapi_status);
}

void mcapi_pktchan_recv_open_i(mcapi_pktchan_recv_hndl_t *receive_handle,
                               mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_ROLE_PACKETS, receive_handle, receive_endpoint, request, mcapi_status);
}
void mcapi_pktchan_send_open_i(mcapi_pktchan_send_hndl_t *send_handle,
                               mcapi_endpoint_t send_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_ROLE_PACKETS | MC_ROLE_SENDER, send_handle, send_endpoint, request, mcapi_status);
}
void mcapi_sclchan_recv_open_i(mcapi_sclchan_recv_hndl_t *receive_handle,
                               mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_ROLE_SCALARS, receive_handle, receive_endpoint, request, mcapi_status);
}
void mcapi_sclchan_send_open_i(mcapi_sclchan_send_hndl_t *send_handle,
                               mcapi_endpoint_t send_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_ROLE_SCALARS | MC_ROLE_SENDER, send_handle, send_endpoint, request, mcapi_status);
}

void mcapi_pktchan_recv_close_i(mcapi_pktchan_recv_hndl_t receive_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_ROLE_PACKETS, receive_handle, request, mcapi_status);
}
void mcapi_pktchan_send_close_i(mcapi_pktchan_send_hndl_t send_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_ROLE_PACKETS | MC_ROLE_SENDER, send_handle, request, mcapi_status);
}
void mcapi_sclchan_recv_close_i(mcapi_sclchan_recv_hndl_t receive_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_ROLE_SCALARS, receive_handle, request, mcapi_status);
}
void mcapi_sclchan_send_close_i(mcapi_sclchan_send_hndl_t send_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_ROLE_SCALARS | MC_ROLE_SENDER, send_handle, request, mcapi_status);
}
