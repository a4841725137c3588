/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Broadcasts in shared memory: one channel, behind the queue of the end that sends, with a cursor for
 * each receiver. What is sent is copied once, or not at all, and every receiver reads it where it lies.
 *
 * Who sends lets receivers in, so that nobody changes the set of cursors while it computes its room: it
 * looks at the count of calls before each packet, and where that has changed, at the table, which says
 * who sits where. A receiver that is dead or has closed its end is in the table no more, and holds up
 * nobody.
 *
 * Guarantees
 *   B1  A receiver gets every packet that is sent after its open was done and before it closes, in turn,
 *       whole.
 *   B2  Who sends waits for the slowest receiver that is alive, and for none that is not.
 *
 * Pairs of orders
 *   call: table, add_release calls          -> audience: load_acquire calls, table        B1 B2
 *   let in: head, state, store_release seat -> seated: load_acquire seat, load head       B1 */
#include "packet_ring.h"

enum { LINE = MC_PACKET_LINE };

/* Behind the channel's header. */
typedef struct audience {
  LVD_ALIGNED(LVD_LINE) lvd_a32 seat[MC_SEATS]; /* the handle of who has been let in; 0: nobody */
} audience;

static audience *audience_of(lvd_channel *ch) {
  size_t header = lvd_channel_header_size(MC_SEATS);
  return (audience *)(void *)((char *)ch + (header + LVD_LINE - 1) / LVD_LINE * LVD_LINE);
}

lvd_status mc_shm_lay_broadcast(mc_domain *d, uint32_t index) {
  if (lvd_os_shared_commit(d->file, mc_channel_at(index), MC_AT_FIRST) != LVD_OK)
    return LVD_E_MEMORY;
  lvd_channel *ch = mc_shm_channel_at(d, index);
  if (!ch) return LVD_E_MEMORY;
  lvd_channel_init(ch, (unsigned char *)ch + MC_UNIT, LINE, MC_RING / LINE, MC_RING_AT_FIRST / LINE,
                   MC_SEATS, LVD_CHANNEL_MIRRORED);
  lvd_store_relaxed_u64(mc_lie(ch), 0); /* and it stays so */
  for (uint32_t i = 0; i < MC_SEATS; i++) {
    lvd_store_relaxed_u32(&ch->consumer[i].state, LVD_CLOSED);
    lvd_store_relaxed_u32(&audience_of(ch)->seat[i], 0);
  }
  return LVD_OK;
}

/* ---- sending ------------------------------------------------------------------------------------ */

static void seat(mc_channel *c, uint32_t i, mcapi_endpoint_t who) {
  lvd_consumer_lines *lines = &c->out.channel->consumer[i];
  lvd_a32 *at = &audience_of(c->out.channel)->seat[i];
  if (lvd_load_relaxed_u32(at) == who) return;
  lvd_store_relaxed_u32(&lines->state, LVD_CLOSED);
  if (who) {
    lvd_store_relaxed_u32(&lines->head, (uint32_t)c->out.put);
    lvd_store_relaxed_u32(&lines->state, LVD_OPEN);
  }
  lvd_store_release_u32(at, who);
}

void mc_shm_audience(mc_domain *d, mc_local *local) {
  mc_channel *c = &local->channel;
  mcapi_endpoint_t self = lvd_load_relaxed_u32(&local->handle), who[MC_SEATS] = {0};
  uint32_t calls = lvd_load_acquire_u32(&d->tables->endpoint[local->index].calls);
  if (LVD_LIKELY(calls == c->calls)) return;
  c->calls = calls;
  for (uint32_t i = 0; i < MC_SEATS; i++) c->node[i] = MC_NODES;
  for (uint32_t k = 0; k < MC_ENDPOINTS; k++) {
    const mc_endpoint *e = &d->tables->endpoint[k];
    uint32_t i = lvd_load_relaxed_u32(&e->seat);
    if (!mc_broadcast_hears(d, k, self) || i >= MC_SEATS) continue;
    if (!(lvd_load_acquire_u32(&e->state) & MC_OPENED)) continue;
    who[i] = lvd_load_relaxed_u32(&e->handle);
    c->node[i] = lvd_load_relaxed_u32(&e->node);
  }
  for (uint32_t i = 0; i < MC_SEATS; i++) seat(c, i, who[i]);
}

void mc_shm_ring_audience(mc_domain *d, const mc_channel *c) {
  for (uint32_t i = 0; i < MC_SEATS; i++)
    if (c->node[i] < MC_NODES) mc_ring(d, c->node[i]);
}

/* ---- receiving ---------------------------------------------------------------------------------- */

bool mc_shm_seated(mc_domain *d, mc_local *local) {
  mc_channel *c = &local->channel;
  if (LVD_LIKELY(c->seated)) return true;
  lvd_channel *ch = mc_view_channel(c->view);
  uint32_t i = lvd_load_relaxed_u32(&d->tables->endpoint[local->index].seat);
  if (i >= MC_SEATS) return false;
  mcapi_endpoint_t who = lvd_load_acquire_u32(&audience_of(ch)->seat[i]);
  if (who != lvd_load_relaxed_u32(&local->handle)) return false;
  size_t size = MC_UNIT + 2 * (size_t)MC_RING;
  if (lvd_consumer_attach_shared(&c->in, ch, size, LINE, i, NULL) != LVD_OK || !c->in.mirrored ||
      c->in.mask != MC_RING / LINE - 1) {
    c->in.corrupt = true;
    return false;
  }
  c->in.fenced = false;
  c->back = c->in;
  c->seated = true;
  lvd_store_relaxed_u32(&local->got, (uint32_t)c->in.got);
  lvd_store_release_ptr(&local->tail, &ch->tail);
  return true;
}
