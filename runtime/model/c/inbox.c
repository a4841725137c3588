/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inbox for the checker. What a caller adds, waking and sleeping, is what the worker does. */
#include <levada/inbox.h>
#include <stdlib.h>

#include "platform/platform.h"

enum { SLOTS = 4 };

typedef struct model_inbox {
  lvd_inbox in;
  lvd_slot slot[SLOTS];
  uint32_t payload[SLOTS];
  lvd_receiver receiver;
  uint32_t held[SLOTS];
} model_inbox;

model_inbox *model_make(uint32_t sleeps) {
  model_inbox *m = aligned_alloc(LVD_CACHE_LINE, (sizeof *m + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE *
                                                     LVD_CACHE_LINE);
  lvd_inbox_init(&m->in);
  m->in.sleeps = sleeps;
  for (uint32_t i = 0; i < SLOTS; i++) {
    m->slot[i] = (lvd_slot){{0}, {0}};
    m->payload[i] = 0;
  }
  lvd_receiver_init(&m->receiver, &m->in, m->slot, SLOTS, m->held);
  return m;
}
void model_free(model_inbox *m) { free(m); }
size_t model_size(void) { return sizeof(model_inbox); }

/* Claims one of the first `slots`; returns its number, or `slots`. */
uint32_t model_claim(model_inbox *m, uint32_t slots, uint32_t owner) {
  return lvd_slot_claim(m->slot, slots, 0, owner);
}
void model_give_back(model_inbox *m, uint32_t n) { lvd_slot_free(m->slot, n); }
void model_write(model_inbox *m, uint32_t n, uint32_t v) { m->payload[n] = v; }
uint32_t model_read(model_inbox *m, uint32_t n) { return m->payload[n]; }

void model_post(model_inbox *m, uint32_t n, uint32_t level) {
  uint32_t sleep;
  if (!lvd_inbox_post(&m->in, m->slot, n, level, &sleep)) return;
  lvd_os_wake(&m->in.waiting);
  lvd_inbox_ack_wake(&m->in, sleep);
}

/* The same without a look at what is posted before the post. */
void model_post_blind(model_inbox *m, uint32_t n, uint32_t level) {
  uint32_t sleep;
  lvd_inbox_link_behind(&m->in, m->slot, n, level, 0);
  if (!lvd_inbox_needs_wake(&m->in, &sleep)) return;
  lvd_os_wake(&m->in.waiting);
  lvd_inbox_ack_wake(&m->in, sleep);
}

/* Takes everything; the slots' numbers, most urgent and oldest first, to `out`; how many. */
uint32_t model_take(model_inbox *m, uint32_t *out) {
  uint32_t count = 0;
  if (!lvd_inbox_pending(&m->in)) return 0;
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0;)
    for (uint32_t n = lvd_inbox_take(&m->in, m->slot, level); n;) {
      uint32_t number = n - 1;
      n = lvd_load_relaxed_u32(&m->slot[number].next);
      out[count++] = number;
    }
  return count;
}

/* The same through the receiver, which gives back what it has read. */
uint32_t model_get(model_inbox *m, uint32_t *out) {
  uint32_t count = 0;
  for (uint32_t n; (n = lvd_receiver_get(&m->receiver)) < SLOTS;
       lvd_receiver_give_back(&m->receiver, n))
    out[count++] = n << 16 | m->payload[n];
  return m->receiver.corrupt ? UINT32_MAX : count;
}
uint32_t model_reap(model_inbox *m, uint32_t owner) {
  return lvd_receiver_reap(&m->receiver, owner);
}

/* Sleeps unless something is pending. */
void model_rest(model_inbox *m) {
  uint32_t sleep = lvd_inbox_prepare_sleep(&m->in);
  if (!sleep) return;
  lvd_os_wait(&m->in.waiting, sleep, -1);
  lvd_inbox_cancel_sleep(&m->in);
}
