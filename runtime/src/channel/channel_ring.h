/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rings of channels: their size. */
#ifndef LVD_CHANNEL_RING_H
#define LVD_CHANNEL_RING_H

#include <levada/channel.h>

/* The smallest power of two of elements that holds the capacity in whole ring units; 0: too
 * large. */
uint32_t lvd_ring_slots(uint32_t capacity, uint32_t elem_size);

#endif
