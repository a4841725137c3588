/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels over POSIX message queues, one queue each. A packet is received into a buffer of the
 * receiving process, which is handed out without a copy. The first piece is stored with its
 * header. */
#include "mqueue.h"

#include <stdlib.h>
#include <string.h>

lvd_status mc_pmq_channel_create(mc_domain *d, uint32_t index, uint32_t kind) {
  char name[64];
  lvd_os_queue q;
  mc_pmq_name(name, sizeof name, d->number, index, true);
  lvd_os_queue_remove(name);
  uint32_t scalar = (uint32_t)(sizeof(pmq_head) + sizeof(uint64_t));
  lvd_status status = kind & MC_ROLE_PACKETS
                          ? lvd_os_queue_create(name, PMQ_QUEUE_MESSAGES, PMQ_MESSAGE_MIN_BYTES,
                                                PMQ_MESSAGE_MAX_BYTES, &q)
                          : lvd_os_queue_create(name, MC_CHANNEL_SCALARS, scalar, scalar, &q);
  if (status == LVD_OK) lvd_os_queue_close(&q);
  return status == LVD_OK ? LVD_OK : LVD_E_MEMORY;
}

bool mc_pmq_attach(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t peer) {
  bool sends = (local->channel.role & MC_ROLE_SENDER) != 0;
  pmq_channel *c = calloc(1, sizeof *c);
  char name[64];
  if (!c) return false;
  mc_pmq_name(name, sizeof name, d->number, sends ? mc_index(peer) : local->index, true);
  c->queue.id = -1;
  if (lvd_os_queue_find(name, &c->queue) == LVD_OK) {
    bool packets = (local->channel.role & MC_ROLE_PACKETS) != 0;
    bool fits =
        packets ? c->queue.size >= PMQ_MESSAGE_MIN_BYTES && c->queue.size <= PMQ_MESSAGE_MAX_BYTES
                : c->queue.size == sizeof(pmq_head) + sizeof(uint64_t);
    c->piece = fits ? malloc(c->queue.size) : NULL;
  }
  if (!c->piece) {
    lvd_os_queue_close(&c->queue);
    free(c);
    return false;
  }
  local->channel.transport_data = c;
  return true;
}

/* Called when no buffer is held any more. */
static void end_detached(mc_detached *l) {
  pmq_channel *c = (pmq_channel *)l;
  for (uint32_t i = 0; i < MC_SLOTS; i++) free(c->buffer[i]);
  free(c->loan);
  free(c->piece);
  free(c);
}

void mc_pmq_detach(mc_domain *d, mc_local_endpoint *local) {
  pmq_channel *c = local->channel.transport_data;
  (void)d;
  if (!c) return;
  mc_detached *l = &c->detached;
  lvd_os_queue_close(&c->queue);
  for (uint32_t i = 0; i < MC_SLOTS; i++)
    if (c->held[i]) l->buffer[l->count++] = c->buffer[i] + sizeof(pmq_head);
  if (local->channel.loan) l->buffer[l->count++] = local->channel.loan;
  l->end = end_detached;
  if (l->count)
    mc_detached_add(l, mc_owner(local));
  else
    end_detached(l);
  local->channel.transport_data = NULL;
  local->channel.loan = NULL;
}

/* ---- sending --------------------------------------------------------------------------------- */

static lvd_status put(mc_domain *d, mc_local_endpoint *local, const void *data, size_t size) {
  pmq_channel *c = local->channel.transport_data;
  const pmq_head head = {.from = lvd_load_relaxed_u32(&local->handle),
                         .sending_id = ++c->sending_id,
                         .size = (uint32_t)size};
  lvd_status status = mc_pmq_put(&c->queue, c->piece, head, data, 0);
  if (status == LVD_OK) mc_notify(d, local->channel.peer_node);
  return status == LVD_E_SYSTEM ? LVD_E_CORRUPT : status;
}

lvd_status mc_pmq_put_packet(mc_domain *d, mc_local_endpoint *local, const void *data,
                             size_t size) {
  return put(d, local, data, size);
}

lvd_status mc_pmq_put_scalar(mc_domain *d, mc_local_endpoint *local, uint64_t value,
                             uint32_t size) {
  unsigned char data[sizeof value];
  memcpy(data, &value, sizeof value);
  pmq_channel *c = local->channel.transport_data;
  /* A scalar is one piece, so the field for assembling carries its size. */
  const pmq_head head = {.sending_id = size, .size = sizeof data};
  lvd_status status = mc_pmq_put(&c->queue, c->piece, head, data, 0);
  if (status == LVD_OK) mc_notify(d, local->channel.peer_node);
  return status == LVD_E_SYSTEM ? LVD_E_CORRUPT : status;
}

/* There is no other sender, so room that there is now remains, unless a process misbehaves. */
lvd_status mc_pmq_loan(mc_domain *d, mc_local_endpoint *local, size_t size, void **at) {
  pmq_channel *c = local->channel.transport_data;
  uint32_t pieces = pmq_pieces(&c->queue, size);
  (void)d;
  if (pieces > c->queue.messages) return LVD_E_MEMORY; /* it would never fit, as mc_pmq_put says */
  if (lvd_os_queue_count(&c->queue) + pieces > c->queue.messages) return LVD_E_TIMEOUT;
  if (!c->loan) c->loan = aligned_alloc(LVD_CACHE_LINE, MCAPI_MAX_PACKET_SIZE);
  *at = c->loan;
  return c->loan ? LVD_OK : LVD_E_MEMORY;
}

lvd_status mc_pmq_send_loan(mc_domain *d, mc_local_endpoint *local, size_t size) {
  const pmq_channel *c = local->channel.transport_data;
  return put(d, local, c->loan, size);
}

/* ---- receiving ------------------------------------------------------------------------------- */

/* A buffer that is neither handed out nor filled; MC_SLOTS: there is none. */
static uint32_t spare(pmq_channel *c) {
  for (uint32_t i = 0; i < MC_SLOTS; i++) {
    if (c->held[i] || c->filled[i]) continue;
    if (!c->buffer[i])
      c->buffer[i] = aligned_alloc(LVD_CACHE_LINE, (PMQ_MESSAGE_MAX_BYTES + LVD_CACHE_LINE - 1) /
                                                       LVD_CACHE_LINE * LVD_CACHE_LINE);
    return c->buffer[i] ? i : MC_SLOTS;
  }
  return MC_SLOTS;
}

/* Receives one packet into a buffer. LVD_OK; LVD_E_TIMEOUT; LVD_E_LIMIT: no buffer; LVD_E_CORRUPT.
 */
static lvd_status fill(mc_domain *d, const mc_local_endpoint *local) {
  pmq_channel *c = local->channel.transport_data;
  uint32_t left = PMQ_PIECES_PER_CALL;
  for (;;) {
    uint32_t slot = c->filling ? c->filling - 1 : spare(c);
    if (slot == MC_SLOTS) return LVD_E_LIMIT;
    unsigned char *to = c->buffer[slot];
    pmq_head head;
    size_t length;
    uint32_t level;
    lvd_status status;
    if (!mc_pmq_take(&c->queue, c->filling ? c->piece : to, &head, &length, &level, &left,
                     &status)) {
      mc_pmq_renotify(d, local, left);
      return status == LVD_E_TIMEOUT ? LVD_E_TIMEOUT : LVD_E_CORRUPT;
    }
    if (c->filling && (head.sending_id != c->sending_id || head.offset != c->have))
      return LVD_E_CORRUPT;
    if (!c->filling) {
      if (head.offset) return LVD_E_CORRUPT;
      c->filling = slot + 1;
      c->have = 0;
      c->sending_id = head.sending_id;
      c->size[slot] = head.size;
    } else {
      if (head.size != c->size[slot]) return LVD_E_CORRUPT;
      mc_copy(to + sizeof head + c->have, c->piece + sizeof head, length);
    }
    c->have += (uint32_t)length;
    if (c->have < head.size) continue;
    c->filling = 0;
    c->filled[slot] = true;
    c->order[(c->first + c->count++) % MC_SLOTS] = slot;
    return LVD_OK;
  }
}

lvd_status mc_pmq_take_packet(mc_domain *d, mc_local_endpoint *local, void **at, size_t *size) {
  pmq_channel *c = local->channel.transport_data;
  if (!c->count) {
    lvd_status status = fill(d, local);
    if (status != LVD_OK) return status;
    mc_notify(d, local->channel.peer_node);
  }
  uint32_t slot = c->order[c->first];
  c->first = (c->first + 1) % MC_SLOTS;
  c->count--;
  c->filled[slot] = false;
  c->held[slot] = true;
  *at = c->buffer[slot] + sizeof(pmq_head);
  *size = c->size[slot];
  return LVD_OK;
}

static bool has_scalar(mc_domain *d, mc_local_endpoint *local, pmq_channel *c, lvd_status *status) {
  pmq_head head;
  size_t length;
  uint32_t level, left = PMQ_PIECES_PER_CALL;
  while (!c->has_scalar &&
         mc_pmq_take(&c->queue, c->piece, &head, &length, &level, &left, status)) {
    if (length != sizeof c->scalar) continue;
    memcpy(&c->scalar, c->piece + sizeof head, sizeof c->scalar);
    c->scalar_size = head.sending_id;
    c->has_scalar = true;
    mc_notify(d, local->channel.peer_node);
  }
  mc_pmq_renotify(d, local, left);
  return c->has_scalar;
}

lvd_status mc_pmq_take_scalar(mc_domain *d, mc_local_endpoint *local, uint32_t size,
                              uint64_t *value) {
  pmq_channel *c = local->channel.transport_data;
  lvd_status status = LVD_OK;
  if (!has_scalar(d, local, c, &status))
    return status == LVD_E_TIMEOUT ? LVD_E_TIMEOUT : LVD_E_CORRUPT;
  if (c->scalar_size != size) return LVD_E_ARGUMENT;
  *value = c->scalar;
  c->has_scalar = false;
  return LVD_OK;
}

uint32_t mc_pmq_available(mc_domain *d, mc_local_endpoint *local) {
  pmq_channel *c = local->channel.transport_data;
  if (local->channel.role & MC_ROLE_SCALARS) return lvd_os_queue_count(&c->queue) + c->has_scalar;
  bool any = false;
  while (fill(d, local) == LVD_OK) any = true;
  if (any) mc_notify(d, local->channel.peer_node);
  return c->count;
}

bool mc_pmq_release(mc_domain *d, mc_local_endpoint *local, const void *buffer, bool only_test) {
  pmq_channel *c = local->channel.transport_data;
  (void)d;
  for (uint32_t i = 0; i < MC_SLOTS; i++) {
    if (!c->held[i] || c->buffer[i] + sizeof(pmq_head) != buffer) continue;
    if (!only_test) c->held[i] = false;
    return true;
  }
  return false;
}
