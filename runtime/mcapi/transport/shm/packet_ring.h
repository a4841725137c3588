/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packet ring: where the elements of a channel in shared memory are placed.
 *
 * Short packets arrive fastest in cache lines that both sides have in a near cache. So when a
 * sender finds that everything has been received and released, it places the next packet at the
 * start of the ring. As long as the receiver keeps up with short packets, both sides reuse the
 * first lines of the ring.
 *
 * Many packets, and long ones, arrive fastest in lines that neither side has in a near cache: lines
 * that another core has just written are transferred one at a time, at some 8 GB/s where this was
 * measured, but lines that have been evicted to the shared cache or to memory at three times that
 * rate or more. So while something waits to be received, and for long packets always, the sender
 * proceeds through the ring; and it enlarges the ring beyond the size of a core's private caches
 * when it sends the first packet of some length while the ring is empty.
 *
 * The initial ring is committed when the channel is connected, so a sender never blocks for want of
 * memory: if it cannot commit more, the ring keeps its size. Behind the ring's end there is room
 * for the longest packet: a packet that begins before the end continues there.
 *
 * Guarantee
 *   R1  An element in the ring keeps its place. The origin (the cursor at the start of the ring,
 *       and whether the ring is large) changes only while the ring is empty. So a receiver that has
 *       an element to read, or has not released one, reads the origin with which it was sent.
 *
 * The pairs of orders are the channel's (C1, C2): the sender stores the origin after its load of
 * `head` and before it pushes, and the receiver loads it after its load of `tail`. Any value that
 * it can read denotes a place in the ring. */
#ifndef LVD_MCAPI_PACKET_RING_H
#define LVD_MCAPI_PACKET_RING_H

#include "../transport.h"

enum {
  /* Bytes sent before the origin is reconsidered; doubled while the ring is never found empty. */
  MC_STRETCH_BYTES = 64 * 1024,
  MC_STRETCH_MAX_BYTES = 4 * MC_STRETCH_BYTES,
  /* Packets of at least this number of lines enlarge the ring; or are never placed back at its start. */
  MC_MEDIUM_PACKET_LINES = 512 / MC_PACKET_LINE_BYTES,
  MC_LONG_PACKET_LINES = 4096 / MC_PACKET_LINE_BYTES,
  MC_PREFETCH_LINES_MIN = 3,
  MC_PREFETCH_LINES_MAX = 33
};
/* Committed when a channel is connected. */
enum {
  MC_CHANNEL_INITIAL_BYTES =
      MC_MAP_GRANULE + MC_RING_INITIAL_BYTES + MC_PACKET_LINE_BYTES + MCAPI_MAX_PACKET_SIZE
};

/* The origin: in the lower 32 bits the cursor of the start of the ring; above them a bit: the ring
 * is large. */
static inline lvd_a64 *mc_origin_word(lvd_channel *ch) {
  return (lvd_a64 *)(void *)((char *)ch + MC_MAP_GRANULE - LVD_CACHE_LINE);
}
enum { MC_LARGE_BIT = 32 };

static inline size_t mc_ring_size(uint64_t origin) {
  return origin >> MC_LARGE_BIT & 1 ? MC_RING_MAX_BYTES : MC_RING_INITIAL_BYTES;
}

/* Offset from the start of the ring of the element at a cursor, in bytes. */
static inline size_t mc_offset(uint64_t origin, uint32_t cursor, uint32_t elem_size) {
  return (size_t)(cursor - (uint32_t)origin) * elem_size & (mc_ring_size(origin) - 1);
}

/* Address at which the next element is put. */
static inline unsigned char *mc_put_at(const mc_channel *c) {
  return c->out.data + mc_offset(c->origin, (uint32_t)c->out.put, c->out.elem_size);
}

/* Address of the element `skip` after the next to be received. */
static inline const unsigned char *mc_get_at(const lvd_consumer *c, uint32_t skip) {
  uint64_t origin = lvd_load_relaxed_u64(mc_origin_word(c->channel));
  return c->data + mc_offset(origin, (uint32_t)c->got + skip, c->elem_size);
}

/* The origin is reconsidered after this number of further elements. */
static inline void mc_begin_stretch(mc_channel *c, uint32_t elements) {
  c->stretch = elements;
  c->stretch_end = (uint32_t)c->out.put + elements;
}

/* Packets may fill the whole ring; the capacity of scalars and broadcasts is smaller, and fixed. */
static inline void mc_set_origin(mc_channel *c, uint64_t origin) {
  c->origin = origin;
  if (c->role == (MC_ROLE_PACKETS | MC_ROLE_SENDER) && !c->broadcast)
    c->out.capacity = (uint32_t)mc_ring_size(origin) / MC_PACKET_LINE_BYTES;
}

/* Called when the sending end is attached. */
static inline void mc_sender_attached(mc_channel *c) {
  mc_set_origin(c, lvd_load_relaxed_u64(mc_origin_word(c->out.channel)));
  mc_begin_stretch(c, 0);
}

/* Commits memory for a large ring. True: the ring is large, or can be. The ring is empty. */
static inline bool mc_ring_grow(const mc_domain *d, const mc_channel *c) {
  return mc_ring_size(c->origin) == MC_RING_MAX_BYTES ||
         lvd_os_shared_commit(d->file, mc_channel_at(mc_index(c->peer)),
                              MC_MAP_GRANULE + MC_RING_MAX_BYTES) == LVD_OK;
}

/* Reconsiders the origin, before `n` elements are put. */
LVD_NOINLINE void mc_end_stretch(const mc_domain *d, mc_channel *c, uint32_t n) {
  uint32_t first = MC_STRETCH_BYTES / c->out.elem_size,
           most = MC_STRETCH_MAX_BYTES / c->out.elem_size;
  bool empty = lvd_room_refresh(&c->out) == c->out.capacity,
       large = mc_ring_size(c->origin) == MC_RING_MAX_BYTES;
  if (empty && (n < MC_LONG_PACKET_LINES || !large)) {
    large = large || (n >= MC_MEDIUM_PACKET_LINES && mc_ring_grow(d, c));
    mc_set_origin(c, (uint64_t)large << MC_LARGE_BIT | (uint32_t)c->out.put);
    lvd_store_relaxed_u64(mc_origin_word(c->out.channel), c->origin);
    mc_begin_stretch(c, first);
  } else {
    mc_begin_stretch(c, c->stretch < first ? first : c->stretch < most ? 2 * c->stretch : most);
  }
}

/* True: there is room for `n` elements. */
static inline bool mc_has_room(const mc_domain *d, mc_channel *c, uint32_t n) {
  if (LVD_UNLIKELY(lvd_reached((uint32_t)c->out.put, c->stretch_end)) && !c->broadcast)
    mc_end_stretch(d, c, n);
  return lvd_room(&c->out, n) >= n;
}

/* Publishes the next `n` elements, for which there was room. */
static inline void mc_publish(mc_domain *d, mc_channel *c, uint32_t n) {
  lvd_put_done(&c->out, n);
  lvd_push(&c->out);
  if (LVD_UNLIKELY(c->broadcast))
    mc_shm_notify_receivers(d, c);
  else
    mc_notify(d, c->peer_node);
  /* Prefetches the lines of the next packet, assumed as long; the receiver read them a lap ago. */
  uint32_t ahead = n < MC_PREFETCH_LINES_MIN   ? MC_PREFETCH_LINES_MIN
                   : n < MC_PREFETCH_LINES_MAX ? n
                                               : MC_PREFETCH_LINES_MAX;
  if (LVD_LIKELY(c->out.limit - c->out.put >= ahead))
    mc_prefetch_write_range(mc_put_at(c), (size_t)ahead * MC_PACKET_LINE_BYTES);
}

#endif
