/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The channel for the checker: its inline functions as functions that can be called from outside,
 * and nothing added, but for the settling barrier that the caller of a channel has to make. */
#include <levada/channel.h>
#include <stdlib.h>

#include "platform/platform.h"

void model_ring(uint32_t bell);

/* Wakes a thread of the check. */
typedef struct bell {
  lvd_waiter base;
  uint32_t number; /* 0: the producer's; 1 + i: consumer i's */
} bell;

enum { CONSUMERS = 3 };

typedef struct model_channel {
  lvd_producer p;
  lvd_consumer c[CONSUMERS];
  lvd_channel *ch;
  void *ring;
  bell bells[1 + CONSUMERS];
  lvd_waiter *peers[CONSUMERS];
} model_channel;

static bool bell_wake(lvd_waiter *self) {
  model_ring(((bell *)(void *)self)->number);
  return true;
}

/* A channel of 4-byte elements, with its cursors at `start`. */
model_channel *model_make(uint32_t slots, uint32_t capacity, uint32_t consumers, uint32_t start,
                          uint32_t fenced) {
  model_channel *m = calloc(1, sizeof *m);
  size_t size =
      (lvd_channel_header_size(consumers) + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
  m->ch = aligned_alloc(LVD_CACHE_LINE, size);
  m->ring = aligned_alloc(LVD_CACHE_LINE, LVD_CACHE_LINE);
  lvd_channel_init(m->ch, m->ring, 4, slots, capacity, consumers, 0);
  m->ch->tail.word = m->ch->flushed.word = start;
  for (uint32_t i = 0; i <= consumers; i++) m->bells[i] = (bell){{bell_wake}, i};
  for (uint32_t i = 0; i < consumers; i++) {
    m->ch->consumer[i].head.word = m->ch->consumer[i].released.word = start;
    m->peers[i] = &m->bells[1 + i].base;
  }
  lvd_producer_attach(&m->p, m->ch, m->peers, fenced);
  for (uint32_t i = 0; i < consumers; i++)
    lvd_consumer_attach(&m->c[i], m->ch, i, &m->bells[0].base, fenced);
  return m;
}
void model_free(model_channel *m) {
  free(m->ring);
  free(m->ch);
  free(m);
}
/* What threads share, for the checker to watch. */
void *model_header(model_channel *m) { return m->ch; }
size_t model_header_size(model_channel *m) { return lvd_channel_header_size(m->ch->consumers); }
void *model_elements_at(model_channel *m) { return m->ring; }
size_t model_elements_size(model_channel *m) { return m->ch->slots * 4u; }
void *model_producer_handle(model_channel *m) { return &m->p; }
size_t model_producer_handle_size(void) { return sizeof(lvd_producer); }
void *model_consumer_handle(model_channel *m, uint32_t i) { return &m->c[i]; }
size_t model_consumer_handle_size(void) { return sizeof(lvd_consumer); }

void model_producer_threshold(model_channel *m, uint32_t n) { m->p.threshold = n; }
void model_consumer_threshold(model_channel *m, uint32_t i, uint32_t n) { m->c[i].threshold = n; }

uint32_t model_room(model_channel *m, uint32_t want) { return lvd_room(&m->p, want); }
void model_put(model_channel *m, uint32_t v) { LVD_PUT(&m->p, uint32_t, v); }
void model_push(model_channel *m) { lvd_push(&m->p); }
void model_flush(model_channel *m) { lvd_flush(&m->p); }
void model_end(model_channel *m, uint32_t why) { lvd_producer_close(&m->p, (lvd_status)why); }
uint32_t model_consumers_closed(model_channel *m) { return lvd_consumers_closed(&m->p); }
/* True: sleep now. */
uint32_t model_producer_sleeps(model_channel *m, uint32_t want) {
  if (lvd_producer_arm(&m->p, want)) return false;
  lvd_os_barrier();
  return !lvd_producer_settled(&m->p, want);
}
void model_producer_disarm(model_channel *m) { lvd_producer_disarm(&m->p); }

uint32_t model_elements(model_channel *m, uint32_t i, uint32_t want) {
  return lvd_elements(&m->c[i], want);
}
uint32_t model_get(model_channel *m, uint32_t i) { return LVD_GET(&m->c[i], uint32_t); }
void model_pop(model_channel *m, uint32_t i) { lvd_pop(&m->c[i]); }
void model_release(model_channel *m, uint32_t i) { lvd_release(&m->c[i]); }
uint32_t model_ended(model_channel *m, uint32_t i) { return (uint32_t)lvd_ended(&m->c[i]); }
void model_leave(model_channel *m, uint32_t i) { lvd_consumer_close(&m->c[i]); }
uint32_t model_consumer_sleeps(model_channel *m, uint32_t i, uint32_t need) {
  if (lvd_consumer_arm(&m->c[i], need)) return false;
  lvd_os_barrier();
  return !lvd_consumer_settled(&m->c[i], need);
}
void model_consumer_disarm(model_channel *m, uint32_t i) { lvd_consumer_disarm(&m->c[i]); }

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_ended(void) { return LVD_E_EOF; }
uint32_t model_status_fault(void) { return LVD_E_FAULT; }
uint32_t model_status_deadlock(void) { return LVD_E_DEADLOCK; }
