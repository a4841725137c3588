/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels by themselves, and between two threads. */
#include "../support/test.h"

#include <pthread.h>

typedef struct pair {
  lvd_channel *ch;
  lvd_producer p;
  lvd_consumer c[4];
  lvd_waiter *peers[4];
  lvd_wait_point ps, cs[4];
} pair;

static void pair_make(pair *x, uint32_t elem_size, uint32_t capacity, uint32_t consumers,
                      uint32_t spin_us) {
  CHECK_EQ(lvd_channel_create(elem_size, capacity, consumers, &x->ch), LVD_OK);
  bool fenced = lvd_channel_fenced();
  lvd_wait_point_init(&x->ps, spin_us);
  lvd_producer_attach(&x->p, x->ch, x->peers, fenced);
  x->p.self = &x->ps.waiter;
  for (uint32_t i = 0; i < consumers; i++) {
    lvd_wait_point_init(&x->cs[i], spin_us);
    x->peers[i] = &x->cs[i].waiter;
    lvd_consumer_attach(&x->c[i], x->ch, i, &x->ps.waiter, fenced);
    x->c[i].self = &x->cs[i].waiter;
  }
}

void test_channel_order(void) {
  pair x;
  pair_make(&x, 4, 5, 1, 0);
  for (uint32_t i = 0, j = 0; j < 1000; i++) {
    while (lvd_room(&x.p, 1)) {
      LVD_PUT(&x.p, uint32_t, (uint32_t)(x.p.put * 3));
    }
    CHECK_EQ(lvd_elements(&x.c[0], 5), 0); /* put but not pushed: not visible */
    lvd_push(&x.p);
    CHECK_EQ(lvd_elements(&x.c[0], 5), 5);
    for (int k = 0; k < 5; k++, j++) CHECK_EQ(LVD_GET(&x.c[0], uint32_t), j * 3);
    CHECK_EQ(lvd_room(&x.p, 1), 0); /* got but not popped: the space is not free */
    lvd_pop(&x.c[0]);
  }
  lvd_channel_destroy(x.ch);
}

/* Odd element sizes, spans at every position: always contiguous. */
void test_channel_span_never_wraps(void) {
  static const uint32_t sizes[] = {1, 3, 4, 12, 64, 100, 4096, 5000};
  for (size_t s = 0; s < COUNT(sizes); s++) {
    pair x;
    uint32_t size = sizes[s], capacity = 37;
    pair_make(&x, size, capacity, 1, 0);
    uint64_t rounds = 3 * (uint64_t)(x.p.mask + 1) / capacity + 3, next = 0, seen = 0;
    for (uint64_t r = 0; r < rounds; r++) {
      unsigned char *to = lvd_put_span(&x.p);
      CHECK_EQ(lvd_room(&x.p, capacity), capacity);
      for (uint32_t i = 0; i < capacity * size; i++) to[i] = (unsigned char)(next++ * 7);
      lvd_put_done(&x.p, capacity);
      lvd_push(&x.p);
      CHECK_EQ(lvd_elements(&x.c[0], capacity), capacity);
      const unsigned char *from = lvd_get_span(&x.c[0]);
      for (uint32_t i = 0; i < capacity * size; i++) CHECK_EQ(from[i], (unsigned char)(seen++ * 7));
      lvd_get_done(&x.c[0], capacity);
      lvd_pop(&x.c[0]);
    }
    lvd_channel_destroy(x.ch);
  }
}

void test_channel_bounds(void) {
  lvd_channel *ch;
  CHECK_EQ(lvd_channel_create(0, 1, 1, &ch), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_channel_create(4, 0, 1, &ch), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_channel_create(4, 1, 0, &ch), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_channel_create(4, 1, 1, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_channel_create(UINT32_MAX, 1u << 30, 1, &ch), LVD_E_LIMIT);
  CHECK(strstr(lvd_status_text(LVD_E_LIMIT), "the ring of a channel"));
  for (int i = 0; i < LVD_STATUS_COUNT; i++) {
    CHECK(strncmp(lvd_status_name((lvd_status)i), "LVD_", 4) == 0);
    CHECK(strlen(lvd_status_text((lvd_status)i)) > 3);
  }
  pair x;
  pair_make(&x, 4, 3, 1, 0);
  CHECK_EQ(lvd_wait_room(&x.p, 4, -1), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_wait_elements(&x.c[0], 4, -1), LVD_E_ARGUMENT);
  x.c[0].self = NULL;
  CHECK_EQ(lvd_wait_elements(&x.c[0], 1, -1), LVD_E_STATE);
  lvd_channel_destroy(x.ch);
}

/* The shared cursors are 32 bits wide: passing zero has no effect. */
void test_channel_wraps_cursors(void) {
  pair x;
  pair_make(&x, 4, 8, 1, 0);
  lvd_store_relaxed_u32(&x.ch->tail, UINT32_MAX - 20);
  lvd_store_relaxed_u32(&x.ch->consumer[0].head, UINT32_MAX - 20);
  lvd_producer_attach(&x.p, x.ch, x.peers, lvd_channel_fenced());
  lvd_consumer_attach(&x.c[0], x.ch, 0, NULL, lvd_channel_fenced());
  for (uint32_t i = 0, j = 0; j < 100;) {
    while (lvd_room(&x.p, 1)) LVD_PUT(&x.p, uint32_t, i++);
    lvd_push(&x.p);
    CHECK_EQ(lvd_elements(&x.c[0], 8), 8);
    CHECK(lvd_consumer_arm(&x.c[0], 8));
    lvd_consumer_disarm(&x.c[0]);
    for (int k = 0; k < 8; k++) CHECK_EQ(LVD_GET(&x.c[0], uint32_t), j++);
    CHECK(!lvd_consumer_arm(&x.c[0], 1));
    lvd_consumer_disarm(&x.c[0]);
    lvd_pop(&x.c[0]);
  }
  lvd_channel_destroy(x.ch);
}

typedef struct counting {
  lvd_waiter waiter; /* first: the functions below get its address */
  uint32_t wakes;
} counting;

static bool count_wake(lvd_waiter *w) {
  ((counting *)w)->wakes++;
  return true;
}

/* A parked side has its mark at a cursor. The mark may be past zero while the other side is
 * before it: there is no wake-up there, although the mark is the smaller number, and there is one
 * where it is reached. For every position of the cursors around zero, and each kind of wake-up. */
void test_channel_parks_across_zero(void) {
  for (uint32_t before = 0; before <= 9; before++) {
    pair x;
    pair_make(&x, 4, 8, 1, 0);
    uint32_t start = 0u - before;
    lvd_store_relaxed_u32(&x.ch->tail, start);
    lvd_store_relaxed_u32(&x.ch->flushed, start);
    lvd_store_relaxed_u32(&x.ch->consumer[0].head, start);
    lvd_store_relaxed_u32(&x.ch->consumer[0].released, start);
    counting producer = {{count_wake}, 0}, consumer = {{count_wake}, 0};
    x.peers[0] = &consumer.waiter;
    lvd_producer_attach(&x.p, x.ch, x.peers, lvd_channel_fenced());
    lvd_consumer_attach(&x.c[0], x.ch, 0, &producer.waiter, lvd_channel_fenced());
    x.c[0].threshold = 6;
    x.p.threshold = 6;

    /* The consumer parks on the empty channel: it needs 3, and is woken at 6. */
    CHECK(!lvd_consumer_arm(&x.c[0], 3));
    CHECK(!lvd_consumer_settled(&x.c[0], 3));
    for (uint32_t i = 1; i <= 6; i++) {
      LVD_PUT(&x.p, uint32_t, i);
      lvd_push(&x.p);
      CHECK_EQ(consumer.wakes, i == 6);
    }
    lvd_consumer_disarm(&x.c[0]);
    for (uint32_t i = 1; i <= 6; i++) CHECK_EQ(LVD_GET(&x.c[0], uint32_t), i);
    lvd_pop(&x.c[0]);

    /* Below its mark it is woken, and continues, only when the producer flushes what it needs. */
    CHECK(!lvd_consumer_arm(&x.c[0], 3));
    for (uint32_t i = 1; i <= 4; i++) {
      LVD_PUT(&x.p, uint32_t, i);
      lvd_push(&x.p);
    }
    CHECK_EQ(consumer.wakes, 1);
    CHECK(!lvd_consumer_settled(&x.c[0], 3));
    lvd_flush(&x.p);
    CHECK_EQ(consumer.wakes, 2);
    CHECK(lvd_consumer_settled(&x.c[0], 3));
    lvd_consumer_disarm(&x.c[0]);

    /* The producer parks on the full channel: the same in the other direction. */
    for (uint32_t i = 5; i <= 8; i++) LVD_PUT(&x.p, uint32_t, i);
    lvd_push(&x.p);
    CHECK(!lvd_producer_arm(&x.p, 3));
    CHECK(!lvd_producer_settled(&x.p, 3));
    for (uint32_t i = 1; i <= 4; i++) {
      CHECK_EQ(LVD_GET(&x.c[0], uint32_t), i);
      lvd_pop(&x.c[0]);
    }
    CHECK_EQ(producer.wakes, 0);
    CHECK(!lvd_producer_settled(&x.p, 3));
    lvd_release(&x.c[0]);
    CHECK_EQ(producer.wakes, 1);
    CHECK(lvd_producer_settled(&x.p, 3));
    for (uint32_t i = 5; i <= 6; i++) {
      CHECK_EQ(LVD_GET(&x.c[0], uint32_t), i);
      lvd_pop(&x.c[0]);
      CHECK_EQ(producer.wakes, i == 6 ? 2 : 1);
    }
    lvd_producer_disarm(&x.p);
    lvd_channel_destroy(x.ch);
  }
}

void test_channel_broadcast(void) {
  pair x;
  pair_make(&x, 4, 4, 3, 0);
  for (uint32_t i = 0; i < 4; i++) LVD_PUT(&x.p, uint32_t, i);
  lvd_push(&x.p);
  CHECK_EQ(lvd_room(&x.p, 1), 0);
  for (int c = 0; c < 2; c++) {
    for (uint32_t i = 0; i < 4; i++) CHECK_EQ(LVD_GET(&x.c[c], uint32_t), i);
    lvd_pop(&x.c[c]);
  }
  CHECK_EQ(lvd_room(&x.p, 1), 0); /* the third consumer blocks the producer ... */
  CHECK_EQ(LVD_GET(&x.c[2], uint32_t), 0);
  lvd_pop(&x.c[2]);
  CHECK_EQ(lvd_room(&x.p, 1), 1);
  lvd_consumer_close(&x.c[2]); /* ... until it closes its end */
  CHECK_EQ(lvd_room(&x.p, 4), 4);
  CHECK(!lvd_consumers_closed(&x.p));
  lvd_consumer_close(&x.c[0]);
  lvd_consumer_close(&x.c[1]);
  CHECK(lvd_consumers_closed(&x.p));
  CHECK_EQ(lvd_wait_room(&x.p, 4, -1), LVD_E_PEER_GONE);
  lvd_channel_destroy(x.ch);
}

void test_channel_end(void) {
  for (int error = 0; error < 2; error++) {
    pair x;
    pair_make(&x, 4, 4, 1, 0);
    LVD_PUT(&x.p, uint32_t, 7);
    CHECK_EQ(lvd_ended(&x.c[0]), LVD_OK);
    lvd_producer_close(&x.p, error ? LVD_E_FAULT : LVD_OK);
    CHECK_EQ(lvd_ended(&x.c[0]), LVD_OK); /* one is left */
    CHECK_EQ(lvd_wait_elements(&x.c[0], 1, -1), LVD_OK);
    CHECK_EQ(lvd_wait_elements(&x.c[0], 2, -1), error ? LVD_E_FAULT : LVD_E_EOF);
    CHECK_EQ(LVD_GET(&x.c[0], uint32_t), 7);
    CHECK_EQ(lvd_ended(&x.c[0]), error ? LVD_E_FAULT : LVD_E_EOF);
    CHECK_EQ(lvd_wait_elements(&x.c[0], 1, -1), error ? LVD_E_FAULT : LVD_E_EOF);
    lvd_channel_destroy(x.ch);
  }
}

/* ---- two threads ---------------------------------------------------------------------------- */

typedef struct job {
  pair x;
  uint32_t count, group, consumer;
} job;

static void *produce(void *argument) {
  job *j = argument;
  for (uint32_t i = 0; i < j->count;) {
    CHECK_EQ(lvd_wait_room(&j->x.p, 1, -1), LVD_OK);
    uint32_t n = lvd_room(&j->x.p, 1);
    for (uint32_t k = 0; k < n && k < j->group && i < j->count; k++)
      LVD_PUT(&j->x.p, uint32_t, i++);
    lvd_push(&j->x.p);
  }
  lvd_producer_close(&j->x.p, LVD_OK);
  return NULL;
}

static void consume(job *j, uint32_t consumer) {
  lvd_consumer *c = &j->x.c[consumer];
  uint32_t seen = 0;
  lvd_status status;
  while ((status = lvd_wait_elements(c, 1, -1)) == LVD_OK) {
    uint32_t n = lvd_elements(c, 1);
    for (uint32_t k = 0; k < n; k++) CHECK_EQ(LVD_GET(c, uint32_t), seen++);
    lvd_pop(c);
  }
  CHECK_EQ(status, LVD_E_EOF);
  CHECK_EQ(seen, j->count);
}

void test_channel_threads(void) {
  static const uint32_t capacities[] = {1, 2, 7, 1024}, groups[] = {1, 3, 64};
  static job j;
  for (size_t a = 0; a < COUNT(capacities); a++)
    for (size_t b = 0; b < COUNT(groups); b++)
      for (uint32_t spin = 0; spin <= 20; spin += 20) {
        j.count = SCALED(capacities[a] < 8 ? 3000 : 200000);
        j.group = groups[b];
        pair_make(&j.x, 4, capacities[a], 1, spin);
        pthread_t t;
        CHECK_EQ(pthread_create(&t, NULL, produce, &j), 0);
        consume(&j, 0);
        pthread_join(t, NULL);
        lvd_channel_destroy(j.x.ch);
      }
}

void test_channel_threshold_saves_wakes(void) {
  static job j;
  uint64_t wakes[2];
  for (int high = 0; high < 2; high++) {
    j.count = SCALED(200000);
    j.group = 1;
    pair_make(&j.x, 4, 4096, 1, 0);
    j.x.c[0].threshold = high ? 2048 : 1;
    pthread_t t;
    CHECK_EQ(pthread_create(&t, NULL, produce, &j), 0);
    consume(&j, 0);
    pthread_join(t, NULL);
    wakes[high] = j.x.cs[0].sleeps;
    lvd_channel_destroy(j.x.ch);
  }
  printf("%llu sleeps at a threshold of 1, %llu at 2048\n", (unsigned long long)wakes[0],
         (unsigned long long)wakes[1]);
  CHECK(wakes[1] <= SCALED(200000) / 2048 + 10); /* by construction, on any machine */
}

void test_channel_wait_times_out(void) {
  pair x;
  pair_make(&x, 4, 4, 1, 0);
  CHECK_EQ(lvd_wait_elements(&x.c[0], 1, 0), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_wait_elements(&x.c[0], 1, 3000000), LVD_E_TIMEOUT);
  for (int i = 0; i < 4; i++) LVD_PUT(&x.p, uint32_t, 1);
  CHECK_EQ(lvd_wait_room(&x.p, 1, 3000000), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_wait_elements(&x.c[0], 4, 0), LVD_OK); /* the wait for room has flushed */
  lvd_channel_destroy(x.ch);
}
