/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A thread that ends has closed its ends of streams, as a procedure that returns has. */
#include "../support/test.h"

#include <levada/srpc.h>

#include <pthread.h>

static pthread_t begun(void *(*body)(void *), void *argument) {
  pthread_t id;
  CHECK_EQ(pthread_create(&id, NULL, body, argument), 0);
  return id;
}

static lvd_stream *stream_of(lvd_app *app) {
  lvd_stream *s;
  CHECK_EQ(lvd_stream_create(
               app, &(lvd_stream_options){.elem_size = 4, .capacity = 8, .threshold = 8}, &s),
           LVD_OK);
  return s;
}

/* Pushes three, puts a fourth, and ends. */
static void *sends(void *s) {
  for (uint32_t i = 0; i < 4; i++) {
    CHECK_EQ(lvd_stream_put(s, &i, 4), LVD_OK);
    if (i < 3) lvd_stream_push(s);
  }
  return NULL;
}
static void *takes_one(void *s) {
  uint32_t x;
  CHECK_EQ(lvd_stream_get(s, &x, 4), LVD_OK);
  lvd_stream_pop(s);
  return NULL;
}

/* All that was put has come, and then the end. */
static void gets_all(void *s) {
  uint32_t x, n = 0;
  lvd_status status;
  while ((status = lvd_stream_get(s, &x, 4)) == LVD_OK) CHECK_EQ(x, n++);
  CHECK_EQ(status, LVD_E_EOF);
  CHECK_EQ(n, 4);
}
static void puts_until_refused(void *s) {
  uint32_t x = 0;
  lvd_status status;
  while ((status = lvd_stream_put(s, &x, 4)) == LVD_OK) {
    lvd_stream_flush(s);
    x++;
  }
  CHECK_EQ(status, LVD_E_PEER_GONE);
}

static void other_side(void *(*thread)(void *), void (*fiber)(void *)) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int round = 0; round < SCALED(100) + 2; round++) {
    lvd_stream *s = stream_of(app);
    pthread_t id = begun(thread, s);
    if (round % 2) {
      lvd_fiber *f;
      CHECK_EQ(lvd_fiber_start(app, fiber, s, NULL, &f), LVD_OK);
      CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    } else {
      fiber(s);
    }
    CHECK_EQ(pthread_join(id, NULL), 0);
    lvd_stream_counters c;
    CHECK_EQ(lvd_stream_counters_read(s, &c), LVD_OK);
    CHECK(!c.sender[0] || !c.receiver[0]);
    /* A thread at the same address does not have that end. */
    if (fiber == gets_all) {
      uint32_t x = 1;
      CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_E_STATE);
    }
  }
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_thread_ends_sender(void) { other_side(sends, gets_all); }
void test_thread_ends_receiver(void) { other_side(takes_one, puts_until_refused); }

/* ---- the application is unloaded ------------------------------------------------------------- */

typedef struct guest {
  lvd_stream *s;
  int way;
  lvd_a32 is_in;
  lvd_status status;
} guest;

static void *waits_for_ever(void *argument) {
  guest *g = argument;
  uint32_t x = 0, which;
  g->s->timeout_ns = g->way & 1 ? 3600000000000 : -1; /* an hour */
  CHECK_EQ(lvd_stream_wait_elements(g->s, 1, 0), g->way < 4 ? LVD_E_TIMEOUT : LVD_E_STATE);
  lvd_store_release_u32(&g->is_in, 1);
  if (g->way < 2)
    g->status = lvd_stream_get(g->s, &x, 4);
  else if (g->way < 4)
    g->status = lvd_stream_select(&g->s, 1, g->s->timeout_ns, &which);
  else
    while ((g->status = lvd_stream_put(g->s, &x, 4)) == LVD_OK) {
    }
  return NULL;
}

/* main has the other ends, and unloads the application: threads that wait are released first. */
void test_thread_is_let_out(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int round = 0; round < SCALED(30) + 2; round++) {
    guest g[6] = {0};
    pthread_t id[COUNT(g)];
    lvd_app *app;
    CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
    for (int i = 0; i < (int)COUNT(g); i++) {
      g[i] = (guest){.s = stream_of(app), .way = i};
      if (i < 4)
        CHECK_EQ(lvd_stream_wait_room(g[i].s, 1, 0), LVD_OK);
      else
        CHECK_EQ(lvd_stream_wait_elements(g[i].s, 1, 0), LVD_E_TIMEOUT);
      id[i] = begun(waits_for_ever, &g[i]);
    }
    for (int i = 0; i < (int)COUNT(g); i++)
      while (!lvd_load_acquire_u32(&g[i].is_in)) lvd_fiber_sleep(100000);
    lvd_fiber_sleep(round % 2 ? 5000000 : 20000000); /* all wait, asleep or about to sleep */
    lvd_app_unload(app);
    for (int i = 0; i < (int)COUNT(g); i++) {
      CHECK_EQ(pthread_join(id[i], NULL), 0);
      CHECK_EQ(g[i].status, LVD_E_STOPPED);
    }
  }
  lvd_runtime_destroy(rt);
}

/* ---- by number ------------------------------------------------------------------------------- */

static void *sends_by_number(void *unused) {
  u32 x = 5;
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(stream_put(3, x), LVD_OK);
  return unused;
}
void test_thread_ends_number(void) {
  for (u32 round = 0; round < SCALED(100) + 2; round++) {
    u32 x = 0;
    pthread_t id = begun(sends_by_number, NULL);
    if (round % 2) CHECK_EQ(pthread_join(id, NULL), 0);
    CHECK_EQ(stream_create(3), LVD_OK);
    CHECK_EQ(stream_get(3, x), LVD_OK);
    CHECK_EQ(x, 5);
    CHECK_EQ(stream_get(3, x), LVD_E_EOF);
    if (round % 2 == 0) CHECK_EQ(pthread_join(id, NULL), 0);
    CHECK_EQ(stream_close(3), LVD_OK);
    if (round % 10 == 9) CHECK_EQ(pb_finish(), LVD_OK);
  }
  pb_finish();
}

/* ---- destroying the stream meanwhile --------------------------------------------------------- */

void test_thread_ends_while_unloaded(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 3;
  for (int round = 0; round < SCALED(40) + 5; round++) {
    lvd_app *app;
    pthread_t id[4];
    CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
    for (int i = 0; i < 4; i++) id[i] = begun(sends, stream_of(app));
    lvd_stream_counters c[4];
    uint32_t n = 4, sent = 0;
    while (sent < 4) { /* the threads only have to end */
      sent = 0;
      CHECK_EQ(lvd_app_streams(app, c, &n), LVD_OK);
      for (int i = 0; i < 4; i++) sent += c[i].put >= 3 && next_random(&seed) % 4 < 3;
    }
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_detach(id[i]), 0);
    sleep_ms(2);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}
