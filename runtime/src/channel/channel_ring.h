/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Size of a channel's ring. */
#ifndef LVD_CHANNEL_RING_H
#define LVD_CHANNEL_RING_H

#include <levada/channel.h>

/* The number of slots: the smallest power of two that holds the capacity and fills whole units of
 * ring memory; 0: too large. */
uint32_t lvd_ring_slots(uint32_t capacity, uint32_t elem_size);

#endif
