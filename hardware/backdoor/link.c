/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The link (link.h), for both sides. The code is kept short, since the loader sums up an image byte by byte
 * before it runs. */
#include "link.h"

static bool ring_other(lvd_waiter *w) {
  (void)w;
  bridge_write(BRIDGE_BELL, 1);
  return true;
}

void link_lay(unsigned char *segment) {
  for (uint32_t way = 0; way < 2; way++)
    lvd_channel_init((lvd_channel *)(void *)(segment + (way ? LINK_BACK : LINK_AWAY)),
                     segment + LINK_RINGS + way * 4 * LINK_WORDS, 4, LINK_WORDS, LINK_WORDS, 1, 0);
}

lvd_status link_attach(link *l, unsigned char *segment, bool near) {
  lvd_channel *away = (lvd_channel *)(void *)(segment + LINK_AWAY);
  lvd_channel *back = (lvd_channel *)(void *)(segment + LINK_BACK);
  l->other.wake = ring_other;
  l->others[0] = &l->other;
  l->over = (bool (*)(void))0;
  lvd_status status = lvd_producer_attach_shared(
      &l->to, near ? away : back, LINK_SIZE - (near ? LINK_AWAY : LINK_BACK), 4, l->others);
  if (status != LVD_OK) return status;
  return lvd_consumer_attach_shared(&l->from, near ? back : away,
                                    LINK_SIZE - (near ? LINK_BACK : LINK_AWAY), 4, 0, &l->other);
}

const uint32_t *link_get(link *l, uint32_t n) {
  while (lvd_elements_refresh(&l->from) < n) {
    if (l->over && l->over()) return (const uint32_t *)0;
    if (!lvd_consumer_arm(&l->from, n)) {
      lvd_fence_seq_cst();
      if (!lvd_consumer_settled(&l->from, n)) bridge_sleep();
    }
    lvd_consumer_disarm(&l->from);
  }
  return lvd_get_span(&l->from);
}

uint32_t *link_put(link *l, uint32_t n) {
  while (lvd_room_refresh(&l->to) < n) {
    if (l->over && l->over()) return (uint32_t *)0;
    if (!lvd_producer_arm(&l->to, n)) {
      lvd_fence_seq_cst();
      if (!lvd_producer_settled(&l->to, n)) bridge_sleep();
    }
    lvd_producer_disarm(&l->to);
  }
  return lvd_put_span(&l->to);
}

void link_got(link *l, uint32_t n) {
  lvd_get_done(&l->from, n);
  lvd_release(&l->from);
}

void link_push(link *l, uint32_t n) {
  lvd_put_done(&l->to, n);
  lvd_flush(&l->to);
}

/* Copies four words per iteration: with one, half of the time would be loop overhead. */
void copy_words(uint32_t *to, const uint32_t *from, uint32_t n) {
  for (; n >= 4; n -= 4, to += 4, from += 4) {
    uint32_t a = from[0], b = from[1], c = from[2], d = from[3];
    to[0] = a, to[1] = b, to[2] = c, to[3] = d;
  }
  while (n--) *to++ = *from++;
}
