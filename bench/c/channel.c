/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures Levada's channel between two pinned threads, in elements per second. PAST is 1 for elements of
 * 64 bytes that are written with non-temporal stores. */
#include "bench.h"
#include "past.h"

#include <levada/wait.h>

typedef struct pair {
  uint64_t count, group;
  lvd_channel *channel;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_producer p;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_consumer c;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_wait_point producer;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_wait_point consumer;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_waiter *peers[1];
  uint64_t sum;
} pair;

static inline __attribute__((always_inline)) void need_room(lvd_producer *p, uint32_t n) {
  if (LVD_LIKELY(lvd_room(p, n) >= n)) return;
  lvd_producer copy = *p;
  lvd_wait_room(&copy, n, -1);
  *p = copy;
}
static inline __attribute__((always_inline)) void need_elements(lvd_consumer *c, uint32_t n) {
  if (LVD_LIKELY(lvd_elements(c, n) >= n)) return;
  lvd_consumer copy = *c;
  lvd_wait_elements(&copy, n, -1);
  *c = copy;
}

/* ---- 4 bytes, one by one: element calls ---------------------------------------------------- */

static void *put_one(void *argument) {
  pair *x = argument;
  lvd_producer p = x->p;
  for (uint64_t i = 0; i < x->count; i++) {
    need_room(&p, 1);
    LVD_PUT(&p, uint32_t, (uint32_t)i);
    lvd_push(&p);
  }
  lvd_producer_close(&p, LVD_OK);
  return NULL;
}
static void *get_one(void *argument) {
  pair *x = argument;
  lvd_consumer c = x->c;
  uint64_t sum = 0;
  for (uint64_t i = 0; i < x->count; i++) {
    need_elements(&c, 1);
    sum += LVD_GET(&c, uint32_t);
    lvd_pop(&c);
  }
  x->sum = sum;
  return NULL;
}

/* ---- in groups: spans ---------------------------------------------------------------------- */

/* The operations on a group; compile-time constants, so that both loops are specialised for each. */
typedef void fill(void *span, uint32_t n, uint64_t first);
typedef uint64_t sum(const void *span, uint32_t n);

static inline __attribute__((always_inline)) void *put_groups(pair *x, fill *write) {
  lvd_producer p = x->p;
  uint32_t group = (uint32_t)x->group;
  for (uint64_t i = 0; i < x->count; i += group) {
    need_room(&p, group);
    write(lvd_put_span(&p), group, i);
    lvd_put_done(&p, group);
    lvd_push(&p);
  }
  lvd_producer_close(&p, LVD_OK);
  return NULL;
}
static inline __attribute__((always_inline)) void *get_groups(pair *x, sum *read) {
  lvd_consumer c = x->c;
  uint64_t total = 0;
  uint32_t group = (uint32_t)x->group;
  for (uint64_t i = 0; i < x->count; i += group) {
    need_elements(&c, group);
    total += read(lvd_get_span(&c), group);
    lvd_get_done(&c, group);
    lvd_pop(&c);
  }
  x->sum = total;
  return NULL;
}

static inline void fill_words(void *span, uint32_t n, uint64_t first) {
  uint32_t *word = span;
  for (uint32_t k = 0; k < n; k++) word[k] = (uint32_t)(first + k);
}
static inline uint64_t sum_words(const void *span, uint32_t n) {
  const uint32_t *word = span;
  uint64_t total = 0;
  for (uint32_t k = 0; k < n; k++) total += word[k];
  return total;
}
static inline void fill_lines(void *span, uint32_t n, uint64_t first) {
  past_line *line = span;
  for (uint32_t k = 0; k < n; k++) {
    lvd_prefetch_write(&line[k]);
    for (uint32_t w = 0; w < 8; w++) line[k].word[w] = first + k;
  }
}
static inline void fill_past(void *span, uint32_t n, uint64_t first) {
  past_line *line = span;
  for (uint32_t k = 0; k < n; k++) past_fill(&line[k], first + k);
  past_done();
}
static inline uint64_t sum_lines(const void *span, uint32_t n) {
  const past_line *line = span;
  uint64_t total = 0;
  for (uint32_t k = 0; k < n; k++) {
    lvd_prefetch_read(&line[k]);
    for (uint32_t w = 0; w < 8; w++) total += line[k].word[w];
  }
  return total / 8;
}

static void *put_words(void *x) { return put_groups(x, fill_words); }
static void *get_words(void *x) { return get_groups(x, sum_words); }
static void *put_lines(void *x) { return put_groups(x, fill_lines); }
static void *put_past(void *x) { return put_groups(x, fill_past); }
static void *get_lines(void *x) { return get_groups(x, sum_lines); }

int main(int argc, char **argv) {
  static const char usage[] = "SIZE GROUP CAPACITY COUNT PAST";
  static pair x;
  uint64_t size = bench_number(argc, argv, 1, usage);
  x.group = bench_number(argc, argv, 2, usage);
  uint64_t capacity = bench_number(argc, argv, 3, usage);
  x.count = bench_number(argc, argv, 4, usage) / x.group * x.group;
  uint64_t past = bench_number(argc, argv, 5, usage);
  lvd_status status = lvd_channel_create((uint32_t)size, (uint32_t)capacity, 1, &x.channel);
  if (status != LVD_OK) {
    fprintf(stderr, "lvd_channel_create: %s\n", lvd_status_text(status));
    return 1;
  }
  lvd_wait_point_init(&x.producer, 1000000); /* as the peers do: polls, and does not sleep */
  lvd_wait_point_init(&x.consumer, 1000000);
  x.peers[0] = &x.consumer.waiter;
  lvd_producer_attach(&x.p, x.channel, x.peers, lvd_channel_fenced());
  lvd_consumer_attach(&x.c, x.channel, 0, &x.producer.waiter, lvd_channel_fenced());
  /* The threshold of both sides is a quarter of the channel, as for the runtime's actors. */
  x.p.threshold = x.c.threshold = (uint32_t)capacity / 4;
  x.p.self = &x.producer.waiter;
  x.c.self = &x.consumer.waiter;
  double took = size == 64     ? bench_pair(past ? put_past : put_lines, get_lines, &x)
                : x.group == 1 ? bench_pair(put_one, get_one, &x)
                               : bench_pair(put_words, get_words, &x);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < x.count; i++) expected += size == 64 ? i : (uint32_t)i;
  bench_expect("the sum", x.sum, expected);
  bench_say("elements_per_s", (double)x.count / took);
  lvd_channel_destroy(x.channel);
  return 0;
}
