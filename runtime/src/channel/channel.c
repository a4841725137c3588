/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels between threads of a program, in memory of their own. */
#include "../sched/no_abandon.h"
#include "../sched/sched.h"
#include "channel_ring.h"

#include <stdlib.h>

uint32_t lvd_ring_slots(uint32_t capacity, uint32_t elem_size) {
  uint64_t slots = 1, unit = lvd_os_ring_granularity();
  while (slots < capacity || slots * elem_size % unit) slots *= 2;
  return slots <= 1u << 31 && slots * elem_size < (uint64_t)1 << 40 ? (uint32_t)slots : 0;
}

typedef struct own_channel {
  lvd_os_rings rings;
  size_t size;
  lvd_channel channel; /* aligned to a cache line, like the whole structure */
} own_channel;

lvd_status lvd_channel_create(uint32_t elem_size, uint32_t capacity, uint32_t consumers,
                              lvd_channel **out) {
  LVD_NO_ABANDON;
  if (!out || !elem_size || !capacity || !consumers || capacity > LVD_CHANNEL_CAPACITY ||
      consumers > LVD_CHANNEL_CONSUMERS)
    return LVD_E_ARGUMENT;
  *out = NULL;
  uint32_t slots = lvd_ring_slots(capacity, elem_size);
  if (!slots)
    return lvd_limit("the ring of a channel has at most 2^31 slots and 1 TiB: a smaller capacity");
  size_t ring_size = (size_t)slots * elem_size;
  size_t size = offsetof(own_channel, channel) + lvd_channel_header_size(consumers);
  own_channel *own = lvd_os_alloc(size);
  if (!own) return LVD_E_MEMORY;
  void *ring;
  lvd_status status = lvd_os_rings_alloc(&own->rings, 1, &ring_size, &ring);
  if (status != LVD_OK) {
    lvd_os_free(own, size);
    return status;
  }
  own->size = size;
  lvd_channel_init(&own->channel, ring, elem_size, slots, capacity, consumers,
                   LVD_CHANNEL_MIRRORED);
  *out = &own->channel;
  return LVD_OK;
}

void lvd_channel_destroy(lvd_channel *ch) {
  LVD_NO_ABANDON;
  if (!ch) return;
  own_channel *own = (own_channel *)(void *)((char *)ch - offsetof(own_channel, channel));
  lvd_os_rings_free(&own->rings);
  lvd_os_free(own, own->size);
}
