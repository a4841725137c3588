/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A channel between a host and a remote processor with a non-coherent cache: whatever one side
 * publishes, the other sees. One thread acts for both, so that nothing becomes visible by
 * chance. */
#include "sides.h"

#include <levada/channel.h>

enum { SLOTS = 64 /* two lines of the ring */, SOME = 40 /* more than one */, THRESHOLD = 8 };

const lvd_caches *lvd_remote_caches; /* null while the host acts */

/* The hooks of one side must not act for the other. */
#define FAR(...)  (lvd_remote_caches = &lvd_native_caches, __VA_ARGS__)
#define HOST(...) (lvd_remote_caches = NULL, __VA_ARGS__)
#define FAR_DO(...)                                                                                \
  do {                                                                                             \
    lvd_remote_caches = &lvd_native_caches;                                                        \
    __VA_ARGS__;                                                                                   \
  } while (0)
#define HOST_DO(...)                                                                               \
  do {                                                                                             \
    lvd_remote_caches = NULL;                                                                      \
    __VA_ARGS__;                                                                                   \
  } while (0)

static int woken;
static bool wake(lvd_waiter *self) {
  (void)self;
  woken++;
  return true;
}
static bool was_woken(void) {
  bool was = woken != 0;
  woken = 0;
  return was;
}
static lvd_waiter waiter = {wake}, *waiters = &waiter;

static lvd_channel *here; /* as the host sees it */
static lvd_producer p;
static lvd_consumer c;
static uint32_t put, got; /* elements so far */

static void begin(bool far_produces) {
  sides_begin();
  put = got = 0;
  woken = 0;
  here = (lvd_channel *)(void *)host_sees;
  lvd_channel *there = (lvd_channel *)(void *)far_sees;
  lvd_channel_init(here, host_sees + 4096, 4, SLOTS, SLOTS, 1, 0);
  lvd_native_caches.invalidate(there, sizeof *there);
  lvd_producer_attach(&p, far_produces ? there : here, &waiters, true);
  lvd_consumer_attach(&c, far_produces ? here : there, 0, &waiter, true);
}

/* By the side that has been selected. */
static void put_some(uint32_t n) {
  for (uint32_t i = 0; i < n; i++) LVD_PUT(&p, uint32_t, 1000 + put++);
}
static void get_some(uint32_t n) {
  for (uint32_t i = 0; i < n; i++) CHECK(LVD_GET(&c, uint32_t) == 1000 + got++);
}

/* ---- the remote side produces ---------------------------------------------------------------- */

static void pushes(void) {
  begin(true);
  FAR_DO(CHECK(lvd_room(&p, 3) >= 3); put_some(3); lvd_push(&p));
  HOST_DO(CHECK(lvd_elements(&c, 1) == 3); get_some(3));
  HOST_DO(CHECK(!lvd_consumer_arm(&c, 1)));
  FAR_DO(put_some(1); lvd_push(&p));
  CHECK(was_woken());
  /* Across the end of the ring. */
  HOST_DO(lvd_consumer_disarm(&c); get_some(lvd_elements(&c, 1)); lvd_pop(&c));
  for (int round = 0; round < 5; round++) {
    FAR_DO(CHECK(lvd_room(&p, SLOTS) == SLOTS); put_some(SOME); lvd_push(&p));
    HOST_DO(CHECK(lvd_elements(&c, SOME) == SOME); get_some(SOME); lvd_pop(&c));
  }
}

static void flushes(void) {
  begin(true);
  c.threshold = THRESHOLD;
  HOST_DO(CHECK(!lvd_consumer_arm(&c, 2)));
  FAR_DO(CHECK(lvd_room(&p, 2) >= 2); put_some(2); lvd_flush(&p));
  CHECK(was_woken());
  HOST_DO(CHECK(lvd_consumer_settled(&c, 2)); get_some(2); lvd_consumer_disarm(&c));
  /* What was pushed before is seen. */
  HOST_DO(CHECK(!lvd_consumer_arm(&c, 2)));
  FAR_DO(put_some(2); lvd_push(&p));
  CHECK(!was_woken());
  FAR_DO(lvd_flush(&p));
  CHECK(was_woken());
  HOST_DO(CHECK(lvd_consumer_settled(&c, 2)));
  /* A disarmed consumer is not signalled. */
  HOST_DO(get_some(2); lvd_consumer_disarm(&c));
  FAR_DO(put_some(2); lvd_flush(&p));
  CHECK(!was_woken());
}

static void waits_for_room(void) {
  begin(true);
  FAR_DO(CHECK(lvd_room(&p, SLOTS) == SLOTS); put_some(SLOTS); lvd_push(&p));
  FAR_DO(CHECK(!lvd_producer_arm(&p, 1)));
  HOST_DO(CHECK(lvd_elements(&c, SLOTS) == SLOTS); get_some(1); lvd_pop(&c));
  CHECK(was_woken());
  FAR_DO(CHECK(lvd_producer_settled(&p, 1)); lvd_producer_disarm(&p); put_some(1); lvd_push(&p));
  HOST_DO(get_some(1); lvd_pop(&c));
  CHECK(!was_woken());
}

static void ends(void) {
  begin(true);
  FAR_DO(CHECK(lvd_room(&p, 2) >= 2); put_some(2); lvd_producer_close(&p, LVD_OK));
  HOST_DO(CHECK(lvd_ended(&c) == LVD_OK); CHECK(lvd_elements(&c, 1) == 2); get_some(2));
  CHECK(HOST(lvd_ended(&c)) == LVD_E_EOF);
}

static void is_left(void) {
  begin(true);
  FAR_DO(CHECK(lvd_room(&p, 2) >= 2); CHECK(!lvd_consumers_closed(&p)));
  HOST_DO(lvd_consumer_close(&c));
  CHECK(FAR(lvd_consumers_closed(&p)));
}

/* ---- the remote side consumes ---------------------------------------------------------------- */

static void gets(void) {
  begin(false);
  HOST_DO(CHECK(lvd_room(&p, 3) >= 3); put_some(3); lvd_push(&p));
  FAR_DO(CHECK(lvd_elements(&c, 1) == 3); get_some(3));
  HOST_DO(put_some(2); lvd_push(&p)); /* in the same line */
  FAR_DO(CHECK(lvd_elements(&c, 1) == 2); get_some(2); lvd_pop(&c));
  for (int round = 0; round < 5; round++) {
    HOST_DO(CHECK(lvd_room(&p, SLOTS) == SLOTS); put_some(SOME); lvd_push(&p));
    FAR_DO(CHECK(lvd_elements(&c, SOME) == SOME); get_some(SOME); lvd_pop(&c));
  }
}

static void pops(void) {
  begin(false);
  HOST_DO(CHECK(lvd_room(&p, SLOTS) == SLOTS); put_some(SLOTS); lvd_push(&p));
  FAR_DO(CHECK(lvd_elements(&c, SLOTS) == SLOTS); get_some(1);
         lvd_pop(&c)); /* has seen the wake mark */
  HOST_DO(CHECK(lvd_room(&p, 1) == 1); put_some(1); lvd_push(&p); CHECK(!lvd_producer_arm(&p, 1)));
  FAR_DO(get_some(1); lvd_pop(&c));
  CHECK(was_woken());
  HOST_DO(CHECK(lvd_producer_settled(&p, 1)));
}

static void releases(void) {
  begin(false);
  p.threshold = THRESHOLD;
  HOST_DO(CHECK(lvd_room(&p, SLOTS) == SLOTS); put_some(SLOTS); lvd_push(&p));
  FAR_DO(CHECK(lvd_elements(&c, SLOTS) == SLOTS); lvd_release(&c)); /* has seen the wake mark */
  HOST_DO(CHECK(!lvd_producer_arm(&p, 2)));
  FAR_DO(get_some(2); lvd_release(&c));
  CHECK(was_woken());
  HOST_DO(CHECK(lvd_producer_settled(&p, 2)));
}

static void waits_for_elements(void) {
  begin(false);
  FAR_DO(CHECK(!lvd_consumer_arm(&c, 1)));
  HOST_DO(CHECK(lvd_room(&p, 1) >= 1); put_some(1); lvd_push(&p));
  CHECK(was_woken());
  FAR_DO(CHECK(lvd_consumer_settled(&c, 1)); lvd_consumer_disarm(&c); get_some(1));
  HOST_DO(put_some(1); lvd_push(&p));
  CHECK(!was_woken());
}

static void hears_the_end(void) {
  begin(false);
  CHECK(FAR(lvd_ended(&c)) == LVD_OK);
  HOST_DO(CHECK(lvd_room(&p, 1) >= 1); lvd_producer_close(&p, LVD_E_FAULT));
  CHECK(FAR(lvd_ended(&c)) == LVD_E_FAULT);
  begin(false);
  FAR_DO(CHECK(!lvd_consumer_arm(&c, 1)));
  HOST_DO(lvd_producer_close(&p, LVD_OK));
  CHECK(FAR(lvd_consumer_settled(&c, 1)));
}

static void leaves(void) {
  begin(false);
  CHECK(!HOST(lvd_consumers_closed(&p)));
  FAR_DO(lvd_consumer_close(&c));
  CHECK(HOST(lvd_consumers_closed(&p)));
}

int main(void) {
  pushes();
  flushes();
  waits_for_room();
  ends();
  is_left();
  gets();
  pops();
  releases();
  waits_for_elements();
  hears_the_end();
  leaves();
  return 0;
}
