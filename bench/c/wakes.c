/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures wake-ups as a function of the threshold: a producer and a consumer compute with each element, each
 * on a core of its own, and sleep in the kernel when the channel is full or empty. */
#include "bench.h"

#include <levada/wait.h>

typedef struct pair {
  uint64_t count, produce, consume;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_producer p;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_consumer c;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_wait_point producer;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_wait_point consumer;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_waiter *peers[1];
  uint64_t sum;
} pair;

/* `n` iterations of a loop that takes one cycle each. */
static void work(uint64_t n) {
  while (n--) __asm__ volatile("");
}

static void *produce(void *argument) {
  pair *x = argument;
  for (uint64_t i = 0; i < x->count; i++) {
    work(x->produce);
    if (lvd_room(&x->p, 1) < 1) lvd_wait_room(&x->p, 1, -1);
    LVD_PUT(&x->p, uint32_t, (uint32_t)i);
    lvd_push(&x->p);
  }
  lvd_producer_close(&x->p, LVD_OK);
  return NULL;
}

static void *consume(void *argument) {
  pair *x = argument;
  while (lvd_wait_elements(&x->c, 1, -1) == LVD_OK) {
    x->sum += LVD_GET(&x->c, uint32_t);
    lvd_pop(&x->c);
    work(x->consume);
  }
  return NULL;
}

int main(int argc, char **argv) {
  static const char usage[] = "THRESHOLD SPIN_US PRODUCE CONSUME CAPACITY COUNT FENCED";
  static pair x;
  lvd_channel *channel;
  uint64_t threshold = bench_number(argc, argv, 1, usage);
  uint64_t spin_us = bench_number(argc, argv, 2, usage);
  x.produce = bench_number(argc, argv, 3, usage);
  x.consume = bench_number(argc, argv, 4, usage);
  uint64_t capacity = bench_number(argc, argv, 5, usage);
  x.count = bench_number(argc, argv, 6, usage);
  bool fenced = bench_number(argc, argv, 7, usage) || lvd_channel_fenced();
  lvd_status status = lvd_channel_create(4, (uint32_t)capacity, 1, &channel);
  if (status != LVD_OK) {
    fprintf(stderr, "lvd_channel_create: %s\n", lvd_status_text(status));
    return 1;
  }
  lvd_wait_point_init(&x.producer, (uint32_t)spin_us);
  lvd_wait_point_init(&x.consumer, (uint32_t)spin_us);
  x.peers[0] = &x.consumer.waiter;
  lvd_producer_attach(&x.p, channel, x.peers, fenced);
  lvd_consumer_attach(&x.c, channel, 0, &x.producer.waiter, fenced);
  x.p.self = &x.producer.waiter;
  x.c.self = &x.consumer.waiter;
  x.p.threshold = x.c.threshold = (uint32_t)threshold;
  double cpu = bench_cpu(), took = bench_pair(produce, consume, &x);
  bench_expect("the sum", x.sum, x.count * (x.count - 1) / 2);
  bench_say("ms", took * 1e3);
  bench_say("cpu_ms", (bench_cpu() - cpu) * 1e3);
  bench_say("wakes", (double)(x.producer.sleeps + x.consumer.sleeps));
  bench_say("waits", (double)(x.p.full + x.c.empty));
  lvd_channel_destroy(channel);
  return 0;
}
