/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Link: two channels of words in the window's segment, one per direction, and blocking access to them. */
#ifndef LVD_BACKDOOR_LINK_H
#define LVD_BACKDOOR_LINK_H

#include <levada/channel.h>

#include "bridge.h"

enum { LINK_WORDS = 2048, LINK_AWAY = 0, LINK_BACK = 1024, LINK_RINGS = 2048 };
#define LINK_SIZE (LINK_RINGS + 2 * 4 * LINK_WORDS)

typedef struct link {
  lvd_producer to;
  lvd_consumer from;
  lvd_waiter other;
  lvd_waiter *others[1];
  bool (*over)(void); /* whether the other side has ended; null: it cannot */
} link;

void link_lay(unsigned char *segment); /* initialises both channels */
/* Attaches one side. `near`: it puts into the channel AWAY and gets from BACK. */
lvd_status link_attach(link *l, unsigned char *segment, bool near);
/* Wait for at least n words, or room for n, and return a pointer to them; null: the other side has ended.
 * They are contiguous if n and all earlier counts divide LINK_WORDS. */
const uint32_t *link_get(link *l, uint32_t n);
uint32_t *link_put(link *l, uint32_t n);
void link_got(link *l, uint32_t n);  /* releases n words */
void link_push(link *l, uint32_t n); /* publishes n words */
void copy_words(uint32_t *to, const uint32_t *from, uint32_t n);

#endif
