/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where the elements of a channel in shared memory lie.
 *
 * A short packet comes soonest in lines that both sides have near. So a sender that finds that all has been
 * taken and released begins anew: the next is put at the ring's beginning. As long as the receiver keeps up
 * with short packets the two of them go round in the first lines.
 *
 * Many packets, and long ones, come soonest in lines that neither side has near: what one core has written of
 * late another gets line by line, at some 8 GB/s where these words were written; what has gone on to the cache
 * that they share, or to memory, comes at three times that and more. So while something waits to be received,
 * and for long packets always, the sender goes on; and it makes the ring larger than the caches next to a core
 * when the first packet of some length comes at a time at which nothing lies there.
 *
 * What a ring is at first has been got from the system when it was connected, so nobody ever stands still
 * for want of memory: one that does not get more stays as it is. Behind a ring's end there is as much as the
 * longest packet takes: those that begin before the end go on there.
 *
 * Guarantee
 *   R1  What lies in the ring stays at its place: the lie of it (where it begins, and whether it is large)
 *       changes only where nothing lies there, so a receiver that has something to read, or has not
 *       released it, reads the one it was put by.
 *
 * The pairs of orders are the channel's (C1, C2): the sender stores the lie behind its look at `head`
 * and before it pushes, and the receiver loads it behind its look at `tail`. Whatever it reads, it is
 * a place in the ring. */
#ifndef LVD_MCAPI_RING_H
#define LVD_MCAPI_RING_H

#include "../transport.h"

enum {
  /* So many bytes are gone through before the next look; more, as long as there is always something. */
  MC_ROUND = 64 * 1024,
  MC_ROUND_MOST = 4 * MC_ROUND,
  /* Packets of so many lines make a ring large, or go on to its end. */
  MC_MIDDLING = 512 / MC_PACKET_LINE,
  MC_LONG = 4096 / MC_PACKET_LINE,
  MC_AHEAD_LEAST = 3,
  MC_AHEAD_MOST = 33
};
/* What a channel has when it is connected. */
enum { MC_AT_FIRST = MC_UNIT + MC_RING_AT_FIRST + MC_PACKET_LINE + MCAPI_MAX_PACKET_SIZE };

/* The lie: the cursor that is at the ring's beginning; above it a bit, the ring is large. */
static inline lvd_a64 *mc_lie(lvd_channel *ch) {
  return (lvd_a64 *)(void *)((char *)ch + MC_UNIT - LVD_LINE);
}
enum { MC_LARGE_BIT = 32 };

static inline size_t mc_ring_size(uint64_t lie) {
  return lie >> MC_LARGE_BIT & 1 ? MC_RING : MC_RING_AT_FIRST;
}

/* How far from the ring's beginning the element at a cursor lies, in bytes. */
static inline size_t mc_offset(uint64_t lie, uint32_t cursor, uint32_t elem_size) {
  return (size_t)(cursor - (uint32_t)lie) * elem_size & (mc_ring_size(lie) - 1);
}

/* Where the next is put. */
static inline unsigned char *mc_put_at(const mc_channel *c) {
  return c->out.data + mc_offset(c->lie, (uint32_t)c->out.put, c->out.elem_size);
}

/* Where the one is that is got when `skip` more have been. */
static inline const unsigned char *mc_get_at(const lvd_consumer *c, uint32_t skip) {
  uint64_t lie = lvd_load_relaxed_u64(mc_lie(c->channel));
  return c->data + mc_offset(lie, (uint32_t)c->got + skip, c->elem_size);
}

static inline void mc_round(mc_channel *c, uint32_t elements) {
  c->round = elements;
  c->turn = (uint32_t)c->out.put + elements;
}

/* Packets may take the whole ring, and no more; scalars and broadcasts have less. */
static inline void mc_lie_is(mc_channel *c, uint64_t lie) {
  c->lie = lie;
  if (c->role == (MC_PACKETS | MC_SENDS) && !c->many)
    c->out.capacity = (uint32_t)mc_ring_size(lie) / MC_PACKET_LINE;
}

/* When it is attached. */
static inline void mc_put_begins(mc_channel *c) {
  mc_lie_is(c, lvd_load_relaxed_u64(mc_lie(c->out.channel)));
  mc_round(c, 0);
}

/* Is the ring large, or can it be made so? Nothing lies there. */
static inline bool mc_is_large(const mc_domain *d, const mc_channel *c) {
  return mc_ring_size(c->lie) == MC_RING ||
         lvd_os_shared_commit(d->file, mc_channel_at(mc_index(c->peer)), MC_UNIT + MC_RING) ==
             LVD_OK;
}

/* The round is at its end, and `n` elements are to be put. */
LVD_APART void mc_turn(const mc_domain *d, mc_channel *c, uint32_t n) {
  uint32_t first = MC_ROUND / c->out.elem_size, most = MC_ROUND_MOST / c->out.elem_size;
  bool empty = lvd_room_refresh(&c->out) == c->out.capacity,
       large = mc_ring_size(c->lie) == MC_RING;
  if (empty && (n < MC_LONG || !large)) {
    large = large || (n >= MC_MIDDLING && mc_is_large(d, c));
    mc_lie_is(c, (uint64_t)large << MC_LARGE_BIT | (uint32_t)c->out.put);
    lvd_store_relaxed_u64(mc_lie(c->out.channel), c->lie);
    mc_round(c, first);
  } else {
    mc_round(c, c->round < first ? first : c->round < most ? 2 * c->round : most);
  }
}

/* Is there room for `n` elements? */
static inline bool mc_has_room(const mc_domain *d, mc_channel *c, uint32_t n) {
  if (LVD_UNLIKELY(lvd_reached((uint32_t)c->out.put, c->turn)) && !c->many) mc_turn(d, c, n);
  return lvd_room(&c->out, n) >= n;
}

/* The next `n` elements, for which there was room, are sent. */
static inline void mc_sent(mc_domain *d, mc_channel *c, uint32_t n) {
  lvd_put_done(&c->out, n);
  lvd_push(&c->out);
  if (LVD_UNLIKELY(c->many))
    mc_shm_ring_audience(d, c);
  else
    mc_ring(d, c->peer_node);
  /* The lines of the next, if it is as long: the receiver has read them a lap ago. */
  uint32_t ahead = n < MC_AHEAD_LEAST ? MC_AHEAD_LEAST : n < MC_AHEAD_MOST ? n : MC_AHEAD_MOST;
  if (LVD_LIKELY(c->out.limit - c->out.put >= ahead))
    mc_fetch_all(mc_put_at(c), (size_t)ahead * MC_PACKET_LINE);
}

#endif
