/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The inbox by itself, and with many senders. */
#include "../support/test.h"

#include <pthread.h>
#include <sched.h>

enum { SLOTS = 8 };
static lvd_inbox in;
static lvd_slot slot[SLOTS];

void test_inbox_order_and_priority(void) {
  uint32_t sleep;
  lvd_inbox_init(&in);
  CHECK(!lvd_inbox_pending(&in));
  for (uint32_t i = 0; i < SLOTS; i++) CHECK_EQ(lvd_slot_claim(slot, SLOTS, 3, 7), (3 + i) % SLOTS);
  CHECK_EQ(lvd_slot_claim(slot, SLOTS, 0, 7), SLOTS); /* all taken */
  lvd_slot_free(slot, 5);
  CHECK_EQ(lvd_slot_claim(slot, SLOTS, 0, 8), 5);
  CHECK(!lvd_inbox_post(&in, slot, 5, 2, &sleep));
  CHECK(!lvd_inbox_post(&in, slot, 1, 6, &sleep));
  CHECK(!lvd_inbox_post(&in, slot, 0, 2, &sleep));
  CHECK(!lvd_inbox_post(&in, slot, 7, 2, &sleep));
  CHECK(lvd_inbox_pending(&in));
  CHECK_EQ(lvd_inbox_prepare_sleep(&in), 0); /* it is not empty: no sleep */
  CHECK_EQ(lvd_inbox_take(&in, slot, 6), 1 + 1);
  CHECK_EQ(lvd_load_relaxed_u32(&slot[1].next), 0);
  uint32_t n = lvd_inbox_take(&in, slot, 2);
  CHECK_EQ(n, 5 + 1);
  CHECK_EQ(n = lvd_load_relaxed_u32(&slot[n - 1].next), 0 + 1);
  CHECK_EQ(n = lvd_load_relaxed_u32(&slot[n - 1].next), 7 + 1);
  CHECK_EQ(lvd_load_relaxed_u32(&slot[n - 1].next), 0);
  CHECK_EQ(lvd_inbox_take(&in, slot, 2), 0);
  uint32_t asleep = lvd_inbox_prepare_sleep(&in);
  CHECK(asleep != 0);
  CHECK(lvd_inbox_post(&in, slot, 2, 0, &sleep));
  CHECK_EQ(sleep, asleep | 1);
  lvd_inbox_ack_wake(&in, sleep);
  CHECK(!lvd_inbox_post(&in, slot, 3, 0, &sleep)); /* it has been woken already */
}

enum { SENDERS = 4, EACH = SCALED(50000) };
static uint32_t payload[SLOTS];

static void *send_all(void *argument) {
  uint32_t me = (uint32_t)(uintptr_t)argument, sleep;
  for (uint32_t i = 0; i < EACH; i++) {
    uint32_t n;
    while ((n = lvd_slot_claim(slot, SLOTS, me, me)) == SLOTS) sched_yield();
    payload[n] = me << 24 | i;
    lvd_inbox_post(&in, slot, n, 3, &sleep);
  }
  return NULL;
}

void test_inbox_many_senders(void) {
  pthread_t t[SENDERS];
  uint32_t next[SENDERS + 1] = {0}, got = 0;
  lvd_inbox_init(&in);
  for (uintptr_t i = 0; i < SENDERS; i++)
    CHECK_EQ(pthread_create(&t[i], NULL, send_all, (void *)(i + 1)), 0);
  while (got < SENDERS * EACH) {
    uint32_t n = lvd_inbox_take(&in, slot, 3), after;
    if (!n) sched_yield();
    for (; n; n = after) {
      after = lvd_load_relaxed_u32(&slot[n - 1].next);
      uint32_t sender = payload[n - 1] >> 24;
      CHECK_EQ(payload[n - 1] & 0xffffff, next[sender]++); /* each sender's in order, none lost */
      lvd_slot_free(slot, n - 1);
      got++;
    }
  }
  for (int i = 0; i < SENDERS; i++) pthread_join(t[i], NULL);
  CHECK(!lvd_inbox_pending(&in));
}
