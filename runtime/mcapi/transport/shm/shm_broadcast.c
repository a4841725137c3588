/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Broadcasts in shared memory: one channel, behind the queue of the sending end, with a cursor for
 * each receiver. A packet is copied at most once, and every receiver reads it in place.
 *
 * The sender admits receivers, so the set of cursors does not change while it computes its free
 * room. Before each packet it compares the membership version; if that has changed, it reads the
 * tables, which tell the receiver at each index. A receiver that is dead or has closed its end is
 * not in the tables, and does not delay the sender.
 *
 * Guarantees
 *   B1  A receiver gets every packet that is sent between the completion of its open and its close,
 *       in order and complete.
 *   B2  The sender waits for the slowest living receiver, and for no other.
 *
 * Pairs of orders
 *   change: tables, add_release version        -> update: load_acquire version, tables       B1 B2
 *   admit: head, state, store_release admitted -> is_admitted: load_acquire admitted, head   B1
 * ("version" is membership_version.) */
#include "packet_ring.h"

enum { LINE = MC_PACKET_LINE_BYTES };

/* Stored behind the channel's header. */
typedef struct receiver_table {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 admitted[MC_BROADCAST_RECEIVERS]; /* handles; 0: none */
} receiver_table;

static receiver_table *receivers_of(lvd_channel *ch) {
  size_t header = lvd_channel_header_size(MC_BROADCAST_RECEIVERS);
  return (receiver_table *)(void *)((char *)ch + (header + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE *
                                                     LVD_CACHE_LINE);
}

lvd_status mc_shm_broadcast_create(mc_domain *d, uint32_t index) {
  if (lvd_os_shared_commit(d->file, mc_channel_at(index), MC_CHANNEL_INITIAL_BYTES) != LVD_OK)
    return LVD_E_MEMORY;
  lvd_channel *ch = mc_shm_channel_at(d, index);
  if (!ch) return LVD_E_MEMORY;
  lvd_channel_init(ch, (unsigned char *)ch + MC_MAP_GRANULE, LINE, MC_RING_MAX_BYTES / LINE,
                   MC_RING_INITIAL_BYTES / LINE, MC_BROADCAST_RECEIVERS, LVD_CHANNEL_MIRRORED);
  /* never changes: broadcasts use the whole ring in turn */
  lvd_store_relaxed_u64(mc_origin_word(ch), 0);
  for (uint32_t i = 0; i < MC_BROADCAST_RECEIVERS; i++) {
    lvd_store_relaxed_u32(&ch->consumer[i].state, LVD_CLOSED);
    lvd_store_relaxed_u32(&receivers_of(ch)->admitted[i], 0);
  }
  return LVD_OK;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void admit(mc_channel *c, uint32_t i, mcapi_endpoint_t receiver) {
  lvd_consumer_shared *lines = &c->out.channel->consumer[i];
  lvd_a32 *at = &receivers_of(c->out.channel)->admitted[i];
  if (lvd_load_relaxed_u32(at) == receiver) return;
  lvd_store_relaxed_u32(&lines->state, LVD_CLOSED);
  if (receiver) {
    lvd_store_relaxed_u32(&lines->head, (uint32_t)c->out.put);
    lvd_store_relaxed_u32(&lines->state, LVD_OPEN);
  }
  lvd_store_release_u32(at, receiver);
}

void mc_shm_update_receivers(mc_domain *d, mc_local_endpoint *local) {
  mc_channel *c = &local->channel;
  mcapi_endpoint_t self = lvd_load_relaxed_u32(&local->handle),
                   receiver[MC_BROADCAST_RECEIVERS] = {0};
  uint32_t calls = lvd_load_acquire_u32(&d->tables->endpoint[local->index].membership_version);
  if (LVD_LIKELY(calls == c->membership_version)) return;
  c->membership_version = calls;
  for (uint32_t i = 0; i < MC_BROADCAST_RECEIVERS; i++) c->receiver_node[i] = MC_NODES;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    const mc_endpoint *e = &d->tables->endpoint[k];
    uint32_t i = lvd_load_relaxed_u32(&e->receiver_index);
    if (!mc_broadcast_is_receiver(d, k, self) || i >= MC_BROADCAST_RECEIVERS) continue;
    if (!(lvd_load_acquire_u32(&e->state) & MC_END_OPENED)) continue;
    receiver[i] = lvd_load_relaxed_u32(&e->handle);
    c->receiver_node[i] = lvd_load_relaxed_u32(&e->node);
  }
  for (uint32_t i = 0; i < MC_BROADCAST_RECEIVERS; i++) admit(c, i, receiver[i]);
}

void mc_shm_notify_receivers(mc_domain *d, const mc_channel *c) {
  for (uint32_t i = 0; i < MC_BROADCAST_RECEIVERS; i++)
    if (c->receiver_node[i] < MC_NODES) mc_notify(d, c->receiver_node[i]);
}

/* ---- receiving ------------------------------------------------------------------------------- */

bool mc_shm_is_admitted(mc_domain *d, mc_local_endpoint *local) {
  mc_channel *c = &local->channel;
  if (LVD_LIKELY(c->admitted)) return true;
  lvd_channel *ch = mc_view_channel(c->view);
  uint32_t i = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].receiver_index);
  if (i >= MC_BROADCAST_RECEIVERS) return false;
  mcapi_endpoint_t receiver = lvd_load_acquire_u32(&receivers_of(ch)->admitted[i]);
  if (receiver != lvd_load_relaxed_u32(&local->handle)) return false;
  size_t size = MC_MAP_GRANULE + 2 * (size_t)MC_RING_MAX_BYTES;
  if (lvd_consumer_attach_shared(&c->in, ch, size, LINE, i, NULL) != LVD_OK || !c->in.mirrored ||
      c->in.mask != MC_RING_MAX_BYTES / LINE - 1) {
    c->in.corrupt = true;
    return false;
  }
  c->in.fenced = false;
  c->popper = c->in;
  c->admitted = true;
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  lvd_store_release_ptr(&local->tail, &ch->tail);
  return true;
}
