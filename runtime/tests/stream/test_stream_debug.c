/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program compiled with LVD_DEBUG: a caller that does not own an end is refused at once, also
 * where there is room, or an element, and it would not have to wait. */
#ifndef LVD_DEBUG
#define LVD_DEBUG 1
#endif
#include <levada/levada.h>

#include "../support/test.h"
#include "platform/platform.h"

typedef struct stranger {
  lvd_stream *s;
  lvd_status put, get, put_span, get_span;
} stranger;

static void tries(void *argument) {
  stranger *t = argument;
  uint32_t x = 99;
  void *to;
  const void *from;
  CHECK(!lvd_stream_is_owner(t->s, true) && !lvd_stream_is_owner(t->s, false));
  t->put = lvd_stream_put(t->s, &x, sizeof x);
  t->get = lvd_stream_get(t->s, &x, sizeof x);
  t->put_span = lvd_stream_put_span(t->s, 1, &to);
  t->get_span = lvd_stream_get_span(t->s, 1, &from);
  CHECK_EQ(x, 99);
}

static void check_refused(const stranger *t) {
  CHECK_EQ(t->put, LVD_E_STATE);
  CHECK_EQ(t->get, LVD_E_STATE);
  CHECK_EQ(t->put_span, LVD_E_STATE);
  CHECK_EQ(t->get_span, LVD_E_STATE);
}

/* Owns what was released. */
static void takes_over(void *argument) {
  lvd_stream *s = argument;
  uint32_t x = 8;
  CHECK_EQ(lvd_stream_put(s, &x, sizeof x), LVD_OK);
  CHECK(lvd_stream_is_owner(s, true) && !lvd_stream_is_owner(s, false));
  lvd_stream_push(s);
}

void test_stream_strangers(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  lvd_fiber *f;
  lvd_os_thread *thread;
  uint32_t x = 0;
  stranger t = {0};
  const lvd_stream_options o = {.elem_size = sizeof x, .capacity = 64, .threshold = 1};
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_stream_create(app, &o, &t.s), LVD_OK);
  CHECK(!lvd_stream_is_owner(t.s, true) && !lvd_stream_is_owner(NULL, true));
  for (; x < 8; x++) CHECK_EQ(lvd_stream_put(t.s, &x, sizeof x), LVD_OK);
  lvd_stream_push(t.s);
  CHECK_EQ(lvd_stream_get(t.s, &x, sizeof x), LVD_OK);
  CHECK(lvd_stream_is_owner(t.s, true) && lvd_stream_is_owner(t.s, false));
  CHECK_EQ(lvd_fiber_start(app, tries, &t, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  check_refused(&t);
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "stranger", tries, &t), LVD_OK);
  lvd_os_thread_join(thread);
  check_refused(&t);
  CHECK_EQ(lvd_stream_release_end(t.s), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, takes_over, t.s, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  for (uint32_t i = 1; i < 9; i++) { /* nothing of theirs is in between */
    CHECK_EQ(lvd_stream_get(t.s, &x, sizeof x), LVD_OK);
    CHECK_EQ(x, i);
  }
  CHECK_EQ(lvd_stream_get(t.s, &x, sizeof x), LVD_E_EOF);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
