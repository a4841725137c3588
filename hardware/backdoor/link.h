/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Link: the two channels of words in the window's segment, one each way, and the wait for them. */
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
  bool (*over)(void); /* nothing will come any more; null: that cannot be */
} link;

void link_lay(unsigned char *segment); /* both channels, empty */
/* `near`: this side puts into AWAY and gets from BACK. */
lvd_status link_attach(link *l, unsigned char *segment, bool near);
/* At least n words or room for n, in one piece where n divides LINK_WORDS and all did so before.
 * Null: over. */
const uint32_t *link_get(link *l, uint32_t n);
uint32_t *link_put(link *l, uint32_t n);
void link_got(link *l, uint32_t n);
void link_push(link *l, uint32_t n);
void copy_words(uint32_t *to, const uint32_t *from, uint32_t n);

#endif
