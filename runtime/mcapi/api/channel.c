/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels between two endpoints, of packets or of scalars: connected by anybody, opened at both ends,
 * in any order. An end is open when it has been opened and is connected, whether or not the other one is open yet, as
 * in the standard's reference implementation: what is sent meanwhile lies in the channel. (A broadcast, which is not the
 * standard's, keeps nothing for receivers to come: its sender is open when one of them has been opened.)
 *
 * Guarantees
 *   K1  What was sent before an end was closed, or its process died, is received; then the other end
 *       is told: MCAPI_ERR_CHAN_CLOSEPENDING, or MCAPI_ERR_TRANSMISSION.
 *   K2  Two ends are connected when each names the other, so one that dies while it connects them
 *       leaves both free; and so is an end that is not open when the other one's process dies, unless it
 *       receives and something has been sent to it: it can be opened, or be connected anew. */
#include "../transport/transport.h"

static mc_endpoint *record(const mc_domain *d, mcapi_endpoint_t e) {
  return &d->tables->endpoint[mc_index(e)];
}

/* ---- connected, open, closed ---------------------------------------------------------------- */

static mcapi_endpoint_t peer_of(const mc_domain *d, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = lvd_load_acquire_u32(&record(d, e)->peer);
  if (!peer) return 0;
  const mc_endpoint *other = record(d, peer);
  bool many = lvd_load_relaxed_u32(&record(d, e)->many);
  bool both = lvd_load_acquire_u32(&other->handle) == peer &&
              lvd_load_acquire_u32(&other->peer) == (many ? peer : e);
  return both ? peer : 0;
}

bool mc_channel_in_use(const mc_domain *d, uint32_t index) {
  mcapi_endpoint_t user = lvd_load_relaxed_u32(&d->tables->endpoint[index].user);
  if (!user) return false;
  if (mc_index(user) == index) return mc_broadcast_heard(d, user, false);
  if (lvd_load_relaxed_u32(&record(d, user)->handle) != user) return false;
  mcapi_endpoint_t to = lvd_load_relaxed_u32(&record(d, user)->peer);
  return to && mc_index(to) == index;
}

/* Also to who is gone, as long as it is open. */
bool mc_is_connected(const mc_domain *d, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = lvd_load_acquire_u32(&record(d, e)->peer);
  bool open = lvd_load_acquire_u32(&record(d, e)->state) & MC_OPENED;
  if (peer == e) return open || mc_broadcast_heard(d, e, false);
  if (peer && open && lvd_load_acquire_u32(&record(d, peer)->handle) != peer) return true;
  return peer_of(d, e) != 0;
}

mcapi_endp_attr_status_t mc_channel_status(const mc_domain *d, mcapi_endpoint_t e) {
  uint32_t role = lvd_load_relaxed_u32(&record(d, e)->role);
  uint32_t state = lvd_load_relaxed_u32(&record(d, e)->state);
  mcapi_endpoint_t peer = peer_of(d, e);
  uint32_t theirs = peer ? lvd_load_relaxed_u32(&record(d, peer)->state) : 0;
  mcapi_endp_attr_status_t out = peer ? MCAPI_ENDP_ATTR_STATUS_CONNECTED : 0;
  if (role & MC_PACKETS) out |= MCAPI_ENDP_ATTR_STATUS_PKTCHAN;
  if (role & MC_NUMBERS) out |= MCAPI_ENDP_ATTR_STATUS_SCLCHAN;
  if (role) out |= role & MC_SENDS ? MCAPI_ENDP_ATTR_STATUS_SEND : MCAPI_ENDP_ATTR_STATUS_RECEIVE;
  if (state & MC_OPENED)
    out |= lvd_load_relaxed_u32(&record(d, e)->peer) ? MCAPI_ENDP_ATTR_STATUS_OPEN
                                                     : MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING;
  if ((state | theirs) & MC_CLOSED && state != theirs) out |= MCAPI_ENDP_ATTR_STATUS_CLOSE_PENDING;
  return out;
}

mcapi_status_t mc_channel_misfit(uint32_t role, uint32_t wanted) {
  if (!role || role == wanted) return MCAPI_SUCCESS;
  return (role ^ wanted) & MC_SENDS ? MCAPI_ERR_CHAN_DIRECTION : MCAPI_ERR_CHAN_TYPE;
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

void mc_channel_set_free(mc_endpoint *e) {
  lvd_store_relaxed_u32(&e->state, 0);
  lvd_store_relaxed_u32(&e->role, 0);
  lvd_store_relaxed_u32(&e->many, 0);
  lvd_store_release_u32(&e->peer, 0);
}

/* It has not been opened since it was connected, and its other end is no more. */
static bool is_left_unopened(const mc_domain *d, const mc_endpoint *mine) {
  mcapi_endpoint_t peer = lvd_load_relaxed_u32(&mine->peer);
  return peer && !(lvd_load_relaxed_u32(&mine->state) & (MC_OPENED | MC_CLOSED)) &&
         !lvd_load_relaxed_u32(&mine->many) &&
         lvd_load_relaxed_u32(&record(d, peer)->handle) != peer;
}

/* The other end may have sent something that is still to be received: it was open when its process died, and its
 * record is as that has left it, or has been seen so before. */
static bool keeps_sent(const mc_domain *d, mc_endpoint *mine) {
  mcapi_endpoint_t peer = lvd_load_relaxed_u32(&mine->peer);
  const mc_endpoint *other = record(d, peer);
  if (!is_left_unopened(d, mine) || lvd_load_relaxed_u32(&mine->role) & MC_SENDS) return false;
  if (lvd_load_relaxed_u32(&mine->state) & (MC_LEFT | MC_LOST)) return true;
  if (mc_generation(lvd_load_relaxed_u64(&other->past)) != peer / MC_ENDPOINTS ||
      !(lvd_load_relaxed_u32(&other->state) & MC_OPENED))
    return false;
  lvd_store_relaxed_u32(&mine->state, MC_LOST);
  return true;
}

void mc_channel_settle(mc_domain *d, mcapi_endpoint_t e) {
  mc_endpoint *mine = record(d, e);
  if (lvd_load_relaxed_u32(&mine->state) & MC_OPENED || keeps_sent(d, mine)) return;
  bool sender = lvd_load_relaxed_u32(&mine->peer) == e; /* of a broadcast */
  if (!(sender ? mc_broadcast_heard(d, e, false) : peer_of(d, e) != 0)) mc_channel_set_free(mine);
}

void mc_channel_forget_gone(const mc_domain *d, mcapi_endpoint_t e) {
  if (is_left_unopened(d, record(d, e))) mc_channel_set_free(record(d, e));
}

/* Behind the gate. */
static mcapi_status_t connect(mc_domain *d, mcapi_endpoint_t from, mcapi_endpoint_t to,
                              uint32_t kind) {
  if (from == to || !mc_endpoint_is(d, from) || !mc_endpoint_is(d, to))
    return MCAPI_ERR_ENDP_INVALID;
  if (mc_is_connected(d, from) || mc_is_connected(d, to)) return MCAPI_ERR_CHAN_CONNECTED;
  mc_endpoint *sender = record(d, from), *receiver = record(d, to);
  mc_channel_forget_gone(d, from);
  mc_channel_forget_gone(d, to);
  /* One may be open already, for what is to come. */
  mcapi_status_t status = mc_channel_misfit(lvd_load_relaxed_u32(&sender->role), kind | MC_SENDS);
  if (status == MCAPI_SUCCESS)
    status = mc_channel_misfit(lvd_load_relaxed_u32(&receiver->role), kind);
  if (status != MCAPI_SUCCESS) return status;
  if (!mc_channel_compatible(d, from, to)) return MCAPI_ERR_ATTR_INCOMPATIBLE;
  if (d->transport->lay(d, mc_index(to), kind) != LVD_OK) return MCAPI_ERR_MEM_LIMIT;
  lvd_store_relaxed_u32(&sender->role, kind | MC_SENDS);
  lvd_store_relaxed_u32(&receiver->role, kind);
  lvd_store_relaxed_u32(&receiver->user, from);
  lvd_store_relaxed_u32(&sender->many, 0);
  lvd_store_relaxed_u32(&receiver->many, 0);
  lvd_store_release_u32(&sender->peer, to);
  lvd_store_release_u32(&receiver->peer, from);
  return MCAPI_SUCCESS;
}

static void ring_both(mc_domain *d, mcapi_endpoint_t a, mcapi_endpoint_t b) {
  mc_ring(d, lvd_load_relaxed_u32(&record(d, a)->node));
  mc_ring(d, lvd_load_relaxed_u32(&record(d, b)->node));
}

static void connect_i(uint32_t kind, mcapi_endpoint_t from, mcapi_endpoint_t to,
                      mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_numbered *n = self && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_gate_enter(self->domain);
    status = connect(self->domain, from, to, kind);
    mc_gate_leave(self->domain);
    if (status == MCAPI_SUCCESS) ring_both(self->domain, from, to);
    status = mc_request_conclude(n, self, status, request);
  }
  mc_say(mcapi_status, status);
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool attach(mc_domain *d, mc_local *local, mcapi_endpoint_t peer) {
  mc_channel *c = &local->channel;
  c->peer = peer;
  c->loan = NULL;
  c->many = lvd_load_relaxed_u32(&record(d, lvd_load_relaxed_u32(&local->handle))->many);
  c->peer_node = lvd_load_relaxed_u32(&record(d, peer)->node);
  return c->open = d->transport->attach(d, local, peer);
}

/* The other end opened, sent, and is gone, before we had a look: what it sent is still received. */
static bool attach_to_gone(mc_domain *d, mc_local *local, mcapi_endpoint_t peer) {
  if (local->channel.role & MC_SENDS || !attach(d, local, peer)) return false;
  bool opened = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].state) & MC_LEFT;
  if (opened || d->transport->available(d, local)) return true;
  d->transport->detach(d, local);
  return local->channel.open = false;
}

static void conclude(mc_request *r, mcapi_status_t status) {
  r->status = status;
  lvd_store_release_u32(&r->done, 1);
}

/* With the lock. MCAPI_PENDING: it is not connected yet. */
static mcapi_status_t look_at_open(mc_domain *d, mc_local *local, mcapi_endpoint_t handle) {
  if (lvd_load_relaxed_u32(&local->handle) != handle || !local->channel.role)
    return MCAPI_ERR_CHAN_INVALID;               /* closed meanwhile, or deleted */
  if (local->channel.open) return MCAPI_SUCCESS; /* by another request */
  mcapi_endpoint_t named = lvd_load_acquire_u32(&record(d, handle)->peer);
  if (named && lvd_load_acquire_u32(&record(d, named)->handle) != named)
    return attach_to_gone(d, local, named) ? MCAPI_SUCCESS : MCAPI_ERR_TRANSMISSION;
  mcapi_endpoint_t peer = peer_of(d, handle);
  if (!peer) return MCAPI_PENDING;
  if (peer == handle && !mc_broadcast_heard(d, handle, true)) return MCAPI_PENDING;
  return attach(d, local, peer) ? MCAPI_SUCCESS : MCAPI_ERR_TRANSMISSION; /* even if closed since */
}

bool mc_channel_opened(mc_request *r) {
  mc_lock_take(&r->local->lock);
  bool done = lvd_load_relaxed_u32(&r->done);
  mcapi_status_t status = done ? r->status : look_at_open(r->node->domain, r->local, r->handle);
  if (!done && status != MCAPI_PENDING) conclude(r, status);
  mc_lock_drop(&r->local->lock);
  return status != MCAPI_PENDING;
}

/* As if it had not been asked for; if the other end has found it open, that is closed. */
bool mc_channel_not_opened(mc_request *r, mcapi_status_t why) {
  mc_domain *d = r->node->domain;
  mc_local *local = r->local;
  mc_endpoint *mine = record(d, r->handle);
  mc_gate_enter(d);
  mc_lock_take(&local->lock);
  bool pending = !lvd_load_relaxed_u32(&r->done);
  if (pending) conclude(r, why);
  mcapi_endpoint_t peer = peer_of(d, r->handle);
  if (pending && lvd_load_relaxed_u32(&local->handle) == r->handle && local->channel.role &&
      !local->channel.open) {
    local->channel.role = 0;
    if (!peer) lvd_store_relaxed_u32(&mine->role, 0);
    lvd_store_release_u32(&mine->state, 0);
    mc_broadcast_call(d, r->handle);
  }
  mc_lock_drop(&local->lock);
  mc_gate_leave(d);
  if (peer) mc_ring(d, lvd_load_relaxed_u32(&record(d, peer)->node));
  return pending;
}

/* Its other end is gone. What that has sent is still received; where there is nothing, the end is free, as one that was
 * never connected. With the lock, behind the gate. */
static bool open_left(mc_domain *d, mc_local *local, mc_endpoint *mine, uint32_t role) {
  local->channel.role = role;
  if (role == lvd_load_relaxed_u32(&mine->role) &&
      attach_to_gone(d, local, lvd_load_relaxed_u32(&mine->peer)))
    return true;
  local->channel.role = 0;
  mc_channel_set_free(mine);
  return false;
}

static mcapi_status_t open_end(mc_mine *self, uint32_t role, mcapi_endpoint_t e, mc_local **out) {
  mc_domain *d = self->domain;
  if (!mc_endpoint_is(d, e)) return MCAPI_ERR_ENDP_INVALID;
  mc_local *local = *out = mc_local_of(self, e);
  if (!local) return MCAPI_ERR_ENDP_REMOTE;
  mc_gate_enter(d);
  mc_lock_take(&local->lock);
  mc_endpoint *mine = record(d, e);
  bool there = lvd_load_relaxed_u32(&local->handle) == e; /* else deleted meanwhile */
  bool kept = there && is_left_unopened(d, mine) && open_left(d, local, mine, role);
  uint32_t state = lvd_load_relaxed_u32(&mine->state);
  mcapi_status_t status =
      there ? mc_channel_misfit(lvd_load_relaxed_u32(&mine->role), role) : MCAPI_ERR_ENDP_INVALID;
  if (status == MCAPI_SUCCESS && state & MC_CLOSED) status = MCAPI_ERR_CHAN_CLOSEPENDING;
  if (status == MCAPI_SUCCESS && local->channel.role && !kept)
    status = local->channel.open ? MCAPI_ERR_CHAN_OPEN : MCAPI_ERR_CHAN_OPENPENDING;
  if (status == MCAPI_SUCCESS) {
    local->channel.role = role;
    local->channel.open = kept;
    lvd_store_relaxed_u32(&mine->role, role);
    lvd_store_release_u32(&mine->state, MC_OPENED | (state & MC_LEFT));
    mc_broadcast_call(d, e);
  }
  mc_lock_drop(&local->lock);
  mc_gate_leave(d);
  return status;
}

static void open_i(uint32_t role, uint32_t *handle, mcapi_endpoint_t e, mcapi_request_t *request,
                   mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_local *local = NULL;
  mc_numbered *n = self && request && handle ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self                 ? MCAPI_ERR_NODE_NOTINIT
                          : !request || !handle ? MCAPI_ERR_PARAMETER
                          : !n                  ? MCAPI_ERR_REQUEST_LIMIT
                                                : open_end(self, role, e, &local);
  if (status == MCAPI_SUCCESS) {
    *handle = e;
    mcapi_endpoint_t peer = peer_of(self->domain, e);
    if (peer) ring_both(self->domain, e, peer);
    const mc_request r = {.kind = MC_OPEN, .node = self, .local = local, .handle = e};
    status = mc_request_start(n, &r, request);
  } else if (n) {
    mc_request_return(n);
  }
  mc_say(mcapi_status, status);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Behind the gate, with the endpoint's lock in hand. The second to close disconnects both. `goes`: the endpoint is
 * being deleted; then one that has not been opened yet is free, unless something has been sent to it. */
static void close_end(mc_domain *d, mc_local *local, mcapi_endpoint_t e, bool goes) {
  mc_endpoint *mine = record(d, e);
  mcapi_endpoint_t peer = peer_of(d, e);
  mc_requests_drop(local, MC_PACKET_OUT, MCAPI_ERR_CHAN_INVALID);
  if (local->channel.open) d->transport->detach(d, local);
  local->channel.role = 0;
  local->channel.open = false;
  if (lvd_load_relaxed_u32(&mine->many)) {
    mc_broadcast_close(d, e);
    return;
  }
  mc_endpoint *other = peer ? record(d, peer) : NULL;
  uint32_t state = lvd_load_relaxed_u32(&mine->state);
  uint32_t theirs = other ? lvd_load_relaxed_u32(&other->state) : MC_CLOSED;
  bool sent = state && lvd_load_relaxed_u32(&mine->role) & MC_SENDS;
  if (!(theirs & MC_CLOSED) && (theirs & MC_OPENED || sent || !goes)) {
    if (state & MC_OPENED) lvd_store_relaxed_u32(&other->state, theirs | MC_LEFT);
    lvd_store_release_u32(&mine->state, MC_CLOSED);
    return;
  }
  if (other) mc_channel_set_free(other);
  mc_channel_set_free(mine);
}

void mc_channel_drop(mc_domain *d, mc_local *local, mcapi_endpoint_t e) {
  mcapi_endpoint_t peer = peer_of(d, e);
  mc_lock_take(&local->lock);
  close_end(d, local, e, true);
  mc_lock_drop(&local->lock);
  if (peer) mc_ring(d, lvd_load_relaxed_u32(&record(d, peer)->node));
}

static void close_i(uint32_t role, mcapi_endpoint_t handle, mcapi_request_t *request,
                    mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_local *local = self ? mc_local_of(self, handle) : NULL;
  mc_numbered *n = local && request ? mc_request_reserve() : NULL;
  mcapi_status_t status = !self      ? MCAPI_ERR_NODE_NOTINIT
                          : !request ? MCAPI_ERR_PARAMETER
                          : !local   ? MCAPI_ERR_CHAN_INVALID
                                     : MCAPI_ERR_REQUEST_LIMIT;
  if (n) {
    mc_domain *d = self->domain;
    mcapi_endpoint_t peer = peer_of(d, handle);
    mc_gate_enter(d);
    mc_lock_take(&local->lock);
    bool there = lvd_load_relaxed_u32(&local->handle) == handle; /* else deleted meanwhile */
    status = there ? mc_channel_misfit(local->channel.role, role) : MCAPI_ERR_CHAN_INVALID;
    if (status == MCAPI_SUCCESS && !local->channel.role)
      status = lvd_load_relaxed_u32(&record(d, handle)->state) & MC_CLOSED
                   ? MCAPI_ERR_CHAN_CLOSEPENDING
                   : MCAPI_ERR_CHAN_NOTOPEN;
    if (status == MCAPI_SUCCESS) close_end(d, local, handle, false);
    mc_lock_drop(&local->lock);
    mc_gate_leave(d);
    mc_ring(d, self->index); /* one of this node may wait in it */
    if (peer) mc_ring(d, lvd_load_relaxed_u32(&record(d, peer)->node));
    status = mc_request_conclude(n, self, status, request);
  }
  mc_say(mcapi_status, status);
}

/* ---- sending and receiving ------------------------------------------------------------------ */

/* The other end, if it is one no more: closed, or gone without that. */
mcapi_status_t mc_channel_ended(const mc_domain *d, const mc_local *local) {
  if (mc_channel_goes_on(d, local)) return MCAPI_SUCCESS;
  const mc_endpoint *other = record(d, local->channel.peer);
  bool there = lvd_load_acquire_u32(&other->handle) == local->channel.peer;
  bool left = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].state) & MC_LEFT;
  return there || left ? MCAPI_ERR_CHAN_CLOSEPENDING : MCAPI_ERR_TRANSMISSION;
}

static mcapi_status_t send(mc_domain *d, mc_request *r) {
  mcapi_status_t end = mc_channel_ended(d, r->local);
  if (end != MCAPI_SUCCESS) return end;
  mc_channel *c = &r->local->channel;
  if (LVD_UNLIKELY(c->loan != NULL)) return MCAPI_ERR_MEM_LIMIT;
  lvd_status status = r->packet ? d->transport->loan(d, r->local, r->size, r->packet)
                      : r->kind == MC_PACKET_OUT
                          ? MC_THROUGH(d, put_packet, d, r->local, r->out, r->size)
                          : MC_THROUGH(d, put_scalar, d, r->local, r->scalar, (uint32_t)r->size);
  if (status == LVD_OK && r->packet) {
    c->loan = *r->packet;
    c->loan_size = r->size;
  }
  if (status == LVD_OK) return MCAPI_SUCCESS;
  if (status == LVD_E_TIME) return r->may_fail ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
  return status == LVD_E_MEMORY ? MCAPI_ERR_MEM_LIMIT : MCAPI_ERR_TRANSMISSION;
}

static lvd_status take(mc_domain *d, mc_request *r) {
  if (r->kind == MC_SCALAR_IN)
    return MC_THROUGH(d, take_scalar, d, r->local, (uint32_t)r->size, &r->scalar);
  return MC_THROUGH(d, take_packet, d, r->local, r->packet, &r->size);
}

static mcapi_status_t receive(mc_domain *d, mc_request *r) {
  lvd_status status = take(d, r);
  mcapi_status_t end = MCAPI_PENDING;
  if (status == LVD_E_TIME && (end = mc_channel_ended(d, r->local)) != MCAPI_SUCCESS)
    status = take(d, r); /* what came just before the end */
  switch (status) {
  case LVD_OK:
    mc_count(d->tables, r->local->index, r->size);
    return MCAPI_SUCCESS;
  case LVD_E_TIME:
    return end == MCAPI_SUCCESS ? MCAPI_PENDING : end;
  case LVD_E_LIMIT:
    return r->may_fail ? MCAPI_ERR_MEM_LIMIT : MCAPI_PENDING;
  case LVD_E_ARGUMENT:
    return MCAPI_ERR_SCL_SIZE;
  default:
    return MCAPI_ERR_TRANSMISSION;
  }
}

mcapi_status_t mc_channel_go_on(mc_domain *d, mc_request *r) {
  if (!r->local->channel.open) return MCAPI_ERR_CHAN_INVALID;
  return r->kind == MC_PACKET_IN || r->kind == MC_SCALAR_IN ? receive(d, r) : send(d, r);
}

mcapi_status_t mc_channel_prepare(mc_request *r, mc_mine *self, enum mc_kind kind, uint32_t handle,
                                  uint32_t role, size_t size) {
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_local *local = mc_local_enter(self, handle);
  bool open = local && local->channel.role == role && local->channel.open;
  if (local) mc_lock_drop(&local->lock);
  if (!open) return MCAPI_ERR_CHAN_INVALID;
  *r = (mc_request){.kind = kind,
                    .node = self,
                    .local = local,
                    .handle = handle,
                    .size = size,
                    .may_fail = mc_may_fail(local)};
  return MCAPI_SUCCESS;
}

mcapi_uint_t mc_channel_available(uint32_t handle, uint32_t role, mcapi_status_t *mcapi_status) {
  MC_CALL(self);
  mc_local *local = self ? mc_local_enter(self, handle) : NULL;
  bool open = local && local->channel.role == role && local->channel.open;
  mcapi_uint_t count = open ? self->domain->transport->available(self->domain, local) : 0;
  if (local) mc_lock_drop(&local->lock);
  mc_say(mcapi_status, !self   ? MCAPI_ERR_NODE_NOTINIT
                       : !open ? MCAPI_ERR_CHAN_INVALID
                               : MCAPI_SUCCESS);
  return count;
}

/* ---- releasing ------------------------------------------------------------------------------ */

mcapi_status_t mc_channel_release(const void *buffer, bool only_test) {
  MC_CALL(self);
  if (!self) return MCAPI_ERR_NODE_NOTINIT;
  mc_domain *d = self->domain;
  /* Most come from near where the last one did. */
  uint32_t first = lvd_load_relaxed_u32(&self->released);
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    uint32_t i = (first + k) % MC_ENDPOINTS;
    mc_local *local = lvd_load_acquire_ptr(&d->local[i]);
    if (!local || local->node != self) continue;
    mc_lock_take(&local->lock);
    const mc_channel *c = &local->channel;
    bool held =
        c->open && c->role == MC_PACKETS && MC_THROUGH(d, release, d, local, buffer, only_test);
    bool waits = !only_test && local->line[MC_PACKET_IN].first; /* one for a buffer, perhaps */
    mc_lock_drop(&local->lock);
    if (!held) continue;
    if (k) lvd_store_relaxed_u32(&self->released, i);
    if (waits) mc_ring(d, self->index);
    return MCAPI_SUCCESS;
  }
  return mc_lent_release(self, buffer, only_test) ? MCAPI_SUCCESS : MCAPI_ERR_BUF_INVALID;
}

/* ---- the calls that packets and scalars have alike --------------------------------------------- */

void mcapi_pktchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                             mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  connect_i(MC_PACKETS, send_endpoint, receive_endpoint, request, mcapi_status);
}
void mcapi_sclchan_connect_i(mcapi_endpoint_t send_endpoint, mcapi_endpoint_t receive_endpoint,
                             mcapi_request_t *request, mcapi_status_t *mcapi_status) {
  connect_i(MC_NUMBERS, send_endpoint, receive_endpoint, request, mcapi_status);
}

void mcapi_pktchan_recv_open_i(mcapi_pktchan_recv_hndl_t *receive_handle,
                               mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_PACKETS, receive_handle, receive_endpoint, request, mcapi_status);
}
void mcapi_pktchan_send_open_i(mcapi_pktchan_send_hndl_t *send_handle,
                               mcapi_endpoint_t send_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_PACKETS | MC_SENDS, send_handle, send_endpoint, request, mcapi_status);
}
void mcapi_sclchan_recv_open_i(mcapi_sclchan_recv_hndl_t *receive_handle,
                               mcapi_endpoint_t receive_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_NUMBERS, receive_handle, receive_endpoint, request, mcapi_status);
}
void mcapi_sclchan_send_open_i(mcapi_sclchan_send_hndl_t *send_handle,
                               mcapi_endpoint_t send_endpoint, mcapi_request_t *request,
                               mcapi_status_t *mcapi_status) {
  open_i(MC_NUMBERS | MC_SENDS, send_handle, send_endpoint, request, mcapi_status);
}

void mcapi_pktchan_recv_close_i(mcapi_pktchan_recv_hndl_t receive_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_PACKETS, receive_handle, request, mcapi_status);
}
void mcapi_pktchan_send_close_i(mcapi_pktchan_send_hndl_t send_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_PACKETS | MC_SENDS, send_handle, request, mcapi_status);
}
void mcapi_sclchan_recv_close_i(mcapi_sclchan_recv_hndl_t receive_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_NUMBERS, receive_handle, request, mcapi_status);
}
void mcapi_sclchan_send_close_i(mcapi_sclchan_send_hndl_t send_handle, mcapi_request_t *request,
                                mcapi_status_t *mcapi_status) {
  close_i(MC_NUMBERS | MC_SENDS, send_handle, request, mcapi_status);
}
