/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where the elements of a channel in shared memory lie: from the origin on, the cursor that is at the
 * ring's beginning.
 *
 * A ring large enough for what may wait is larger than the caches next to a core. So a sender that finds
 * that all has been taken and released begins anew: it makes its cursor the origin. As long as the
 * receiver keeps up the two of them go round in the first lines.
 *
 * Guarantee
 *   R1  What lies in the ring stays at its place: the origin changes only where nothing lies there, so
 *       a receiver that has something to read, or has not released it, reads the one it was put by.
 *
 * The pairs of orders are the channel's (C1, C2): the sender stores the origin behind its look at `head`
 * and before it pushes, and the receiver loads it behind its look at `tail`. Whatever it reads, it is
 * a place in the ring. */
#ifndef LVD_MCAPI_RING_H
#define LVD_MCAPI_RING_H

#include "transport.h"

/* So much is gone through before the next look; more, as long as there is always something. */
enum { MC_ROUND = 64 * 1024 };
enum { MC_AHEAD_LEAST = 3, MC_AHEAD_MOST = 33 };

static inline lvd_a32 *mc_origin(lvd_channel *ch) {
  return (lvd_a32 *)(void *)((char *)ch + MC_UNIT - LVD_LINE);
}

/* Where the next is put. */
static inline unsigned char *mc_put_at(const mc_channel *c) {
  const lvd_producer *p = &c->out;
  return p->data + (size_t)(((uint32_t)p->put - c->origin) & p->mask) * p->elem_size;
}

/* Where the one is that is got next. */
static inline const unsigned char *mc_get_at(const lvd_consumer *c) {
  uint32_t origin = lvd_load_relaxed_u32(mc_origin(c->channel));
  return c->data + (size_t)(((uint32_t)c->got - origin) & c->mask) * c->elem_size;
}

static inline void mc_round(mc_channel *c, uint32_t lines) {
  c->round = lines;
  c->turn = (uint32_t)c->out.put + lines;
}

/* When it is attached. */
static inline void mc_put_begins(mc_channel *c) {
  c->origin = lvd_load_relaxed_u32(mc_origin(c->out.channel));
  mc_round(c, MC_ROUND / c->out.elem_size);
}

LVD_APART void mc_turn(mc_channel *c) {
  if (lvd_room_refresh(&c->out) == c->out.capacity) {
    c->origin = (uint32_t)c->out.put;
    lvd_store_relaxed_u32(mc_origin(c->out.channel), c->origin);
    mc_round(c, MC_ROUND / c->out.elem_size);
  } else {
    mc_round(c, c->round <= c->out.mask / 2 ? 2 * c->round : c->round);
  }
}

/* Is there room for `n` elements? */
static inline bool mc_has_room(mc_channel *c, uint32_t n) {
  if (LVD_UNLIKELY(lvd_reached((uint32_t)c->out.put, c->turn)) && !c->many) mc_turn(c);
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
