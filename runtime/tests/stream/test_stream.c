/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams: every element arrives, in order, at any threshold and capacity; ends, statuses,
 * select. */
#include "../support/test.h"

#include <unistd.h>

#include "platform/platform.h"

static lvd_app *open_app(lvd_runtime *rt) {
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  return app;
}

typedef struct job {
  lvd_stream *in, *out;
  uint32_t count, group;
  uint32_t got;
} job;

static void send_all(void *argument) {
  job *j = argument;
  for (uint32_t i = 0; i < j->count; i++) {
    CHECK_EQ(lvd_stream_put(j->out, &i, sizeof i), LVD_OK);
    if (i % j->group == j->group - 1) lvd_stream_push(j->out);
  }
}
static void pass_on(void *argument) {
  job *j = argument;
  uint32_t x, n = 0;
  while (lvd_stream_get(j->in, &x, sizeof x) == LVD_OK) {
    if (++n % j->group == 0) lvd_stream_pop(j->in);
    CHECK_EQ(lvd_stream_put(j->out, &x, sizeof x), LVD_OK);
    if (n % j->group == 0) lvd_stream_push(j->out);
  }
}
static void receive_all(void *argument) {
  job *j = argument;
  uint32_t x;
  lvd_status status;
  while ((status = lvd_stream_get(j->in, &x, sizeof x)) == LVD_OK) {
    CHECK_EQ(x, j->got);
    j->got++;
    if (j->got % j->group == 0) lvd_stream_pop(j->in);
  }
  CHECK_EQ(status, LVD_E_EOF);
  CHECK_EQ(lvd_stream_get(j->in, &x, sizeof x), LVD_E_EOF);
}

static lvd_stream *new_stream(lvd_app *app, uint32_t capacity, uint32_t threshold) {
  lvd_stream *s;
  lvd_stream_options o = {.elem_size = 4, .capacity = capacity, .threshold = threshold};
  CHECK_EQ(lvd_stream_create(app, &o, &s), LVD_OK);
  return s;
}

void test_stream_pipeline(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 1;
  for (int round = 0; round < SCALED(400) + 5; round++) {
    lvd_app *app = open_app(rt);
    uint32_t count = (uint32_t)(next_random(&seed) % 5000), stages = 1 + round % 4;
    job j[8];
    lvd_stream *before = NULL;
    for (uint32_t i = 0; i <= stages; i++) {
      /* Also thresholds above the capacity, and above the stream's length. */
      lvd_stream *s = i == stages ? NULL
                                  : new_stream(app, (uint32_t)(next_random(&seed) % 64) + 1,
                                               (uint32_t)(next_random(&seed) % 9000));
      j[i] = (job){before, s, count, (uint32_t)(next_random(&seed) % 20) + 1, 0};
      before = s;
    }
    for (uint32_t i = 0; i <= stages; i++)
      CHECK_EQ(lvd_fiber_start(app,
                               i == 0        ? send_all
                               : i == stages ? receive_all
                                             : pass_on,
                               &j[i], NULL, NULL),
               LVD_OK);
    lvd_app_close(app);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
    CHECK_EQ(j[stages].got, count);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* The program's own thread at one end. */
void test_stream_thread_end(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_stream *to = new_stream(app, 16, 3), *from = new_stream(app, 16, 5);
  job j = {to, from, 0, 1, 0};
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(app, pass_on, &j, NULL, &f), LVD_OK);
  uint32_t x;
  for (uint32_t i = 0; i < 1000; i++) {
    CHECK_EQ(lvd_stream_put(to, &i, 4), LVD_OK);
    lvd_stream_flush(to);
    CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_OK);
    CHECK_EQ(x, i);
    lvd_stream_pop(from);
  }
  CHECK_EQ(lvd_stream_close_sender(to, LVD_OK), LVD_OK);
  CHECK_EQ(lvd_stream_get(from, &x, 4), LVD_E_EOF);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void claim_it(void *argument) {
  uint32_t x = 1;
  CHECK_EQ(lvd_stream_put(argument, &x, 4), LVD_OK);
  lvd_stream_flush(argument);
  lvd_fiber_sleep(20000000);
}

static void leave_it(void *stream) { CHECK_EQ(lvd_stream_close_receiver(stream), LVD_OK); }

/* After one put has found that the receiver is gone, so does every later one. */
void test_stream_receiver_gone(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  for (uint32_t before = 0; before <= 4; before++) {
    lvd_stream *s = new_stream(app, 4, 0);
    lvd_fiber *f;
    uint32_t x = 0;
    void *span;
    for (; x < before; x++) CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_OK);
    CHECK_EQ(lvd_fiber_start(app, leave_it, s, NULL, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    while (lvd_stream_put(s, &x, 4) == LVD_OK) CHECK(++x <= 4);
    for (int i = 0; i < 8; i++) {
      CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_E_PEER_GONE);
      CHECK_EQ(lvd_stream_put_span(s, 2, &span), LVD_E_PEER_GONE);
      lvd_stream_push(s);
    }
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_stream_statuses(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_stream *s = new_stream(app, 4, 0), *bad;
  uint32_t x = 0;
  uint64_t wide = 0;
  void *span;
  CHECK_EQ(lvd_stream_create(app, &(lvd_stream_options){.capacity = 4}, &bad), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_put(s, &wide, sizeof wide), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_get(s, &wide, sizeof wide), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_put_span(s, 5, &span), LVD_E_ARGUMENT);
  CHECK(strcmp(lvd_status_name((lvd_status)LVD_STATUS_COUNT), "LVD_E_?") == 0);
  CHECK_EQ(lvd_stream_wait_elements(s, 1, 1000000), LVD_E_TIMEOUT);
  s->timeout_ns = 1000000;
  for (x = 0; x < 4; x++) CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_OK);
  CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_E_TIMEOUT); /* no room, and a timeout */
  CHECK_EQ(lvd_stream_close_sender(s, LVD_OK), LVD_OK);
  CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_E_STATE); /* put after the end */
  for (uint32_t i = 0; i < 4; i++) {
    CHECK_EQ(lvd_stream_get(s, &x, 4), LVD_OK);
    CHECK_EQ(x, i);
  }
  CHECK_EQ(lvd_stream_get(s, &x, 4), LVD_E_EOF);
  lvd_stream_destroy(s);

  s = new_stream(app, 4, 0);
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(app, claim_it, s, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_stream_wait_elements(s, 1, -1), LVD_OK);
  CHECK_EQ(lvd_stream_close_sender(s, LVD_OK), LVD_E_STATE); /* the other end is a fiber's */
  CHECK_EQ(lvd_stream_close_receiver(s), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);

  s = new_stream(app, 4, 0);
  CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_OK);
  CHECK_EQ(lvd_stream_close_sender(s, LVD_E_FAULT), LVD_OK); /* an error instead of an end */
  CHECK_EQ(lvd_stream_get(s, &x, 4), LVD_OK);
  CHECK_EQ(lvd_stream_get(s, &x, 4), LVD_E_FAULT);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void say_number(void *argument) {
  job *j = argument;
  for (uint32_t i = 0; i < 200; i++) {
    CHECK_EQ(lvd_stream_put(j->out, &j->group, 4), LVD_OK);
    lvd_stream_flush(j->out);
    if (i % 16 == 0) lvd_fiber_sleep(10000);
  }
}

static void select_all(void *argument) {
  lvd_stream **s = argument;
  uint32_t open = 3, which, seen[3] = {0};
  bool over[3] = {false};
  while (open) {
    lvd_stream *live[3];
    uint32_t index[3], n = 0;
    for (uint32_t i = 0; i < 3; i++)
      if (!over[i]) {
        index[n] = i;
        live[n++] = s[i];
      }
    lvd_status status = lvd_stream_select(live, n, -1, &which);
    which = index[which];
    if (status == LVD_E_EOF) {
      over[which] = true;
      open--;
      continue;
    }
    CHECK_EQ(status, LVD_OK);
    uint32_t x;
    CHECK_EQ(lvd_stream_get(s[which], &x, 4), LVD_OK);
    lvd_stream_pop(s[which]);
    CHECK_EQ(x, which);
    seen[which]++;
  }
  for (int i = 0; i < 3; i++) CHECK_EQ(seen[i], 200);
}

void test_stream_select(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int thread = 0; thread < 2; thread++) {
    lvd_app *app = open_app(rt);
    lvd_stream *s[3];
    job j[3];
    for (uint32_t i = 0; i < 3; i++) {
      s[i] = new_stream(app, 8, i);
      j[i] = (job){NULL, s[i], 0, i, 0};
      CHECK_EQ(lvd_fiber_start(app, say_number, &j[i], NULL, NULL), LVD_OK);
    }
    if (thread)
      select_all(s);
    else
      CHECK_EQ(lvd_fiber_start(app, select_all, s, NULL, NULL), LVD_OK);
    lvd_app_close(app);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* A stream that always has elements does not keep the others from their turn, nor does one that
 * has ended. */
void test_stream_select_takes_turns(void) {
  enum { STREAMS = 4, EACH = 50 };
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  lvd_stream *s[STREAMS];
  uint32_t which, x, got[STREAMS] = {0};
  for (uint32_t i = 0; i < STREAMS; i++) {
    s[i] = new_stream(app, EACH, 1);
    for (x = 0; x < EACH && i > 0; x++) CHECK_EQ(lvd_stream_put(s[i], &x, 4), LVD_OK);
    lvd_stream_push(s[i]);
  }
  CHECK_EQ(lvd_stream_close_sender(s[0], LVD_OK), LVD_OK);
  for (uint32_t n = 0; n < STREAMS * EACH; n++) {
    lvd_status status = lvd_stream_select(s, STREAMS, -1, &which);
    CHECK_EQ(which, n % STREAMS);
    CHECK_EQ(status, which ? LVD_OK : LVD_E_EOF);
    if (which) CHECK_EQ(lvd_stream_get(s[which], &x, 4), LVD_OK);
    got[which]++;
  }
  /* A subset, in another order; a timeout does not change the turn. */
  lvd_stream *two[2] = {s[3], s[1]};
  which = 77;
  CHECK_EQ(lvd_stream_select(two, 2, 0, &which), LVD_E_TIMEOUT);
  CHECK_EQ(which, 77);
  for (int i = 1; i < STREAMS; i++) {
    lvd_stream_pop(s[i]);
    for (x = 0; x < EACH; x++) CHECK_EQ(lvd_stream_put(s[i], &x, 4), LVD_OK);
    lvd_stream_push(s[i]);
  }
  for (uint32_t n = 0; n < 2 * EACH; n++) {
    CHECK_EQ(lvd_stream_select(two, 2, -1, &which), LVD_OK);
    CHECK_EQ(which, (n + 1) % 2); /* s[3] was the last */
    CHECK_EQ(lvd_stream_get(two[which], &x, 4), LVD_OK);
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A stream made and destroyed within a fiber; and one with another owner at the other end. */
static void make_and_destroy(void *argument) {
  lvd_stream *other = argument, *s;
  uint32_t x = 7, y = 0;
  for (int i = 0; i < 100; i++) {
    CHECK_EQ(lvd_stream_create(lvd_current_app(), &(lvd_stream_options){.elem_size = 4}, &s),
             LVD_OK);
    CHECK_EQ(lvd_stream_put(s, &x, 4), LVD_OK);
    lvd_stream_push(s);
    CHECK_EQ(lvd_stream_get(s, &y, 4), LVD_OK);
    CHECK_EQ(y, x);
    CHECK_EQ(lvd_stream_destroy(s), LVD_OK);
  }
  CHECK_EQ(lvd_stream_destroy(other), LVD_E_STATE);
}

void test_stream_destroy(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_stream *mine = new_stream(app, 4, 0);
  lvd_fiber *f;
  CHECK_EQ(lvd_stream_wait_room(mine, 1, 0), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, make_and_destroy, mine, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  CHECK_EQ(lvd_stream_destroy(mine), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* Owns the sending end of one stream, and waits for the other. */
static void pass_after_claim(void *argument) {
  job *j = argument;
  uint32_t x;
  CHECK_EQ(lvd_stream_wait_room(j->out, 1, -1), LVD_OK);
  lvd_status status = lvd_stream_get(j->in, &x, 4);
  /* The previous one may be gone already. */
  CHECK(status == LVD_E_DEADLOCK || status == LVD_E_EOF);
}

/* Three in a ring, each with a stream to the next; none begins. */
void test_stream_deadlock_is_named(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int open = 0; open < 2; open++) {
    lvd_app *app = open_app(rt);
    static const char *const names[3] = {"alpha", "beta", "gamma"};
    lvd_stream *s[3];
    job j[3];
    for (int i = 0; i < 3; i++) s[i] = new_stream(app, 4, 0);
    for (int i = 0; i < 3; i++) {
      j[i] = (job){s[i], s[(i + 1) % 3], 0, 1, 0};
      lvd_fiber_options o = {.name = names[i]};
      CHECK_EQ(lvd_stream_release_end(s[i]), LVD_E_STATE);
      CHECK_EQ(lvd_fiber_start(app, pass_after_claim, &j[i], &o, NULL), LVD_OK);
    }
    if (!open) lvd_app_close(app);
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
    char why[1000];
    lvd_app_wait_report(app, why, sizeof why);
    CHECK(strstr(why, "in a cycle"));
    for (int i = 0; i < 3; i++) CHECK(strstr(why, names[i]));
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- unclaimed ends -------------------------------------------------------------------------- */

static void does_nothing(void *argument) { (void)argument; }

static void gets_without_result(void *argument) {
  uint32_t x;
  CHECK_EQ(lvd_stream_get(argument, &x, 4), LVD_E_DEADLOCK);
}

static void get_in_thread(void *argument) {
  uint32_t x;
  CHECK_EQ(lvd_stream_get(argument, &x, 4), LVD_E_EOF);
  CHECK(lvd_stream_close(argument));
}
static void put_in_thread(void *argument) {
  uint32_t x = 0;
  lvd_status status;
  while ((status = lvd_stream_put(argument, &x, 4)) == LVD_OK) {
  }
  CHECK_EQ(status, LVD_E_PEER_GONE);
  CHECK(lvd_stream_close(argument));
}

/* The fiber that should have claimed the other end has returned. A waiting fiber gets a deadlock;
 * a thread, the end of the application. */
void test_stream_end_not_taken(void) {
  lvd_runtime *rt = runtime_of(2);
  char why[1000];
  lvd_app *app = open_app(rt);
  lvd_stream *s;
  const lvd_stream_options o = {.name = "untaken", .elem_size = 4};
  CHECK_EQ(lvd_stream_create(app, &o, &s), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, does_nothing, NULL, NULL, NULL), LVD_OK);
  CHECK_EQ(
      lvd_fiber_start(app, gets_without_result, s, &(lvd_fiber_options){.name = "reader"}, NULL),
      LVD_OK);
  /* The application is open: an owner may still come. */
  do {
    CHECK_EQ(lvd_app_wait(app, 60 * MS_NS), LVD_E_TIMEOUT);
    lvd_app_wait_report(app, why, sizeof why);
  } while (!strstr(why, "reader waits for 1 of the stream untaken (0 of 4096), and its other "
                        "end has no owner"));
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
  lvd_app_wait_report(app, why, sizeof why);
  CHECK(strstr(why, "untaken (0 of 4096), and its other end has no owner"));
  lvd_app_unload(app);

  for (int sender = 0; sender < 2; sender++) {
    app = open_app(rt);
    s = new_stream(app, 4, 0);
    lvd_os_thread *thread;
    CHECK_EQ(lvd_os_thread_start(&thread, -1, "end", sender ? put_in_thread : get_in_thread, s),
             LVD_OK);
    CHECK_EQ(lvd_fiber_start(app, does_nothing, NULL, NULL, NULL), LVD_OK);
    lvd_fiber_sleep(3000000);
    lvd_app_close(app);
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
    lvd_os_thread_join(thread);
    CHECK_EQ(lvd_stream_destroy(s), LVD_OK);
    lvd_app_unload(app);
  }
  /* What a fiber has left can be read after the application's end. */
  app = open_app(rt);
  s = new_stream(app, 100, 0);
  job j = {NULL, s, 50, 1, 0};
  CHECK_EQ(lvd_fiber_start(app, send_all, &j, NULL, NULL), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  j = (job){s, NULL, 0, 1, 0};
  receive_all(&j);
  CHECK_EQ(j.got, 50);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- waits for any of several ---------------------------------------------------------------- */

typedef struct knotted {
  lvd_stream *from[2], *to[2];
  int64_t sleeps;
} knotted;

/* Owns all ends of `to`, and waits for the first of `from`. */
static void selects(void *argument) {
  knotted *k = argument;
  uint32_t which, n = k->from[1] ? 2 : 1;
  for (int i = 0; i < 2 && k->to[i]; i++) CHECK_EQ(lvd_stream_wait_room(k->to[i], 1, -1), LVD_OK);
  if (k->sleeps) CHECK_EQ(lvd_fiber_sleep(k->sleeps), LVD_OK);
  lvd_status status = lvd_stream_select(k->from, n, -1, &which);
  CHECK(status == LVD_E_DEADLOCK || status == LVD_E_EOF);
}

/* One waits for either of two, which both wait for it: a deadlock that is a knot rather than a
 * single cycle. If a thread owns one of the ends, it is none. */
void test_stream_knot_is_named(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int hope = 0; hope < 2; hope++) {
    lvd_app *app = open_app(rt);
    lvd_stream *there[2], *back[2];
    for (int i = 0; i < 2; i++) {
      there[i] = new_stream(app, 4, 0);
      back[i] = new_stream(app, 4, 0);
    }
    if (hope) CHECK_EQ(lvd_stream_wait_room(back[1], 1, 0), LVD_OK);
    knotted k[3] = {{{back[0], back[1]}, {there[0], there[1]}, 0},
                    {{there[0]}, {back[0]}, 0},
                    {{there[1]}, {hope ? NULL : back[1]}, 30000000}};
    for (int i = 0; i < 3; i++) CHECK_EQ(lvd_fiber_start(app, selects, &k[i], NULL, NULL), LVD_OK);
    if (hope) {
      CHECK_EQ(lvd_app_wait(app, 150 * MS_NS), LVD_E_TIMEOUT);
      CHECK_EQ(lvd_stream_close_sender(back[1], LVD_OK), LVD_OK);
      lvd_app_close(app);
      CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
    } else {
      CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
    }
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- a thread that waits for something else -------------------------------------------------- */

/* Gets one, below the stream's threshold, and replies elsewhere. */
static void answers_one(void *argument) {
  job *j = argument;
  uint32_t x;
  CHECK_EQ(lvd_stream_get(j->in, &x, 4), LVD_OK);
  if (!j->out) return;
  CHECK_EQ(lvd_stream_put(j->out, &x, 4), LVD_OK);
  lvd_stream_push(j->out);
}
static void fills(void *argument) {
  job *j = argument;
  uint32_t x = 0;
  for (uint32_t i = 0; i < j->count; i++) CHECK_EQ(lvd_stream_put(j->out, &x, 4), LVD_OK);
}

/* What a thread has pushed and popped is published before it waits elsewhere: no threshold causes
 * a deadlock. */
void test_stream_thread_waits_elsewhere(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t x = 5;
  for (int way = 0; way < 4; way++) {
    lvd_app *app = open_app(rt);
    lvd_stream *to = new_stream(app, 64, way ? 32 : 0), *back = new_stream(app, 64, 1);
    job j = {to, way == 1 ? back : NULL, 0, 1, 0};
    lvd_fiber *f;
    if (way == 3) j = (job){NULL, to, 65, 1, 0};
    CHECK_EQ(lvd_fiber_start(app, way == 3 ? fills : answers_one, &j, NULL, &f), LVD_OK);
    lvd_fiber_sleep(20000000); /* it waits */
    if (way == 3) {
      CHECK_EQ(lvd_stream_get(to, &x, 4), LVD_OK); /* one of 64: less than what wakes it */
      lvd_stream_pop(to);
    } else {
      CHECK_EQ(lvd_stream_put(to, &x, 4), LVD_OK);
      lvd_stream_push(to);
    }
    if (way == 1) {
      x = 0;
      CHECK_EQ(lvd_stream_wait_elements(back, 1, 300000000000), LVD_OK);
      CHECK_EQ(lvd_stream_get(back, &x, 4), LVD_OK);
      CHECK_EQ(x, 5);
    }
    CHECK_EQ(lvd_fiber_join(f, 300000000000), LVD_OK);
    lvd_app_unload(app); /* while this thread still owns ends */
  }
  lvd_runtime_destroy(rt);
}

/* Invalid options; and the largest stream that is possible. */
void test_stream_refuses(void) {
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  lvd_stream *s;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  static const struct {
    uint32_t elem_size, capacity, threshold;
    lvd_status status;
  } shape[] = {
      {0, 0, 0, LVD_E_ARGUMENT},
      {LVD_STREAM_ELEMENT + 1, 0, 0, LVD_E_ARGUMENT},
      {UINT32_MAX, 1, 1, LVD_E_ARGUMENT},
      {1, LVD_CHANNEL_CAPACITY + 1, 0, LVD_E_ARGUMENT},
      {1, UINT32_MAX, 0, LVD_E_ARGUMENT},
      {1, 0, LVD_CHANNEL_CAPACITY + 1, LVD_E_ARGUMENT},
      {1, 0, UINT32_MAX, LVD_E_ARGUMENT},
      {2, LVD_CHANNEL_CAPACITY, 0, LVD_E_LIMIT},
      {LVD_STREAM_ELEMENT, 65, 0, LVD_E_LIMIT},
      {1, LVD_CHANNEL_CAPACITY, LVD_CHANNEL_CAPACITY, LVD_OK},
      {LVD_STREAM_ELEMENT, 0, 0, LVD_OK},
      {1, 1, 0, LVD_OK},
  };
  for (size_t i = 0; i < COUNT(shape); i++) {
    const lvd_stream_options o = {.elem_size = shape[i].elem_size,
                                  .capacity = shape[i].capacity,
                                  .threshold = shape[i].threshold};
    CHECK_EQ(lvd_stream_create(app, &o, &s), shape[i].status);
    if (shape[i].status == LVD_OK) CHECK_EQ(lvd_stream_destroy(s), LVD_OK);
  }
  const lvd_stream_options o = {.elem_size = 4};
  CHECK_EQ(lvd_stream_create(NULL, &o, &s), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_create(app, NULL, &s), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_create(app, &o, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_create(app, &o, &s), LVD_OK);
  void *span;
  uint32_t most = s->producer.capacity;
  CHECK_EQ(lvd_stream_put_span(s, most + 1, &span), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_put_span(s, UINT32_MAX, &span), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_wait_room(s, 0, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_wait_elements(s, most + 1, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_put_span(s, most, &span), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- groups, without copying ----------------------------------------------------------------- */

typedef struct spans {
  lvd_stream *s;
  uint32_t count, most;
} spans;

static void put_spans(void *argument) {
  const spans *j = argument;
  uint64_t random = 11;
  for (uint32_t at = 0; at < j->count;) {
    uint32_t n = 1 + (uint32_t)(next_random(&random) % j->most);
    if (n > j->count - at) n = j->count - at;
    void *span;
    CHECK_EQ(lvd_stream_put_span(j->s, n, &span), LVD_OK);
    for (uint32_t i = 0; i < n; i++) ((uint32_t *)span)[i] = 7 * (at + i);
    lvd_put_done(&j->s->producer, n);
    lvd_stream_push(j->s);
    at += n;
  }
}

/* Spans of other lengths than those put, and the remainder at the end. */
static void get_spans(void *argument) {
  const spans *j = argument;
  uint64_t random = 5;
  const void *span;
  for (uint32_t at = 0;;) {
    uint32_t n = 1 + (uint32_t)(next_random(&random) % j->most);
    lvd_status status = lvd_stream_get_span(j->s, n, &span);
    if (status == LVD_E_EOF) {
      uint32_t left = (uint32_t)lvd_elements(&j->s->consumer, 1);
      CHECK(left < n);
      CHECK_EQ(at + left, j->count);
      n = left;
    } else {
      CHECK_EQ(status, LVD_OK);
    }
    for (uint32_t i = 0; i < n; i++) CHECK_EQ(((const uint32_t *)span)[i], 7 * (at + i));
    lvd_get_done(&j->s->consumer, n);
    lvd_stream_pop(j->s);
    at += n;
    if (status != LVD_OK) return;
  }
}

void test_stream_spans(void) {
  static const uint32_t capacity[] = {16, 100, 4096}, threshold[] = {0, 1, 64};
  lvd_runtime *rt = runtime_of(2);
  for (size_t c = 0; c < COUNT(capacity); c++)
    for (size_t t = 0; t < COUNT(threshold); t++) {
      lvd_app *app = open_app(rt);
      spans j = {new_stream(app, capacity[c], threshold[t]), 20011, capacity[c] / 2};
      CHECK_EQ(lvd_fiber_start(app, put_spans, &j, NULL, NULL), LVD_OK);
      CHECK_EQ(lvd_fiber_start(app, get_spans, &j, NULL, NULL), LVD_OK);
      lvd_app_close(app);
      CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
      lvd_app_unload(app);
    }
  lvd_runtime_destroy(rt);
}

/* ---- counters -------------------------------------------------------------------------------- */

/* The sender waits for the receiver's reply after a given number of elements. */
static void send_and_stay(void *argument) {
  job *j = argument;
  send_all(j);
  lvd_stream_flush(j->out);
  CHECK_EQ(lvd_fiber_sleep(INT64_MAX / 2), LVD_E_CANCELLED);
}

void test_stream_counters(void) {
  enum { N = 6400, CAPACITY = 64, THRESHOLD = 16 };
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  lvd_stream *s, *other = new_stream(app, 32, 0);
  const lvd_stream_options o = {
      .name = "counted", .elem_size = 4, .capacity = CAPACITY, .threshold = THRESHOLD};
  CHECK_EQ(lvd_stream_create(app, &o, &s), LVD_OK);
  lvd_stream_counters c, all[3];
  uint32_t n = 0;
  CHECK_EQ(lvd_stream_counters_read(NULL, &c), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_stream_counters_read(s, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_app_streams(app, NULL, &n), LVD_OK);
  CHECK_EQ(n, 2);
  CHECK_EQ(lvd_stream_counters_read(s, &c), LVD_OK);
  CHECK(strcmp(c.name, "counted") == 0 && !*c.sender && !*c.receiver);
  CHECK(c.put == 0 && c.got == 0 && c.fill == 0 && !c.automatic);

  job to = {NULL, s, N, 1, 0}, from = {s, NULL, 0, 1, 0};
  lvd_fiber *f[2];
  CHECK_EQ(lvd_fiber_start(app, receive_all, &from, &(lvd_fiber_options){.name = "reader"}, &f[0]),
           LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, send_and_stay, &to, &(lvd_fiber_options){.name = "writer"}, &f[1]),
           LVD_OK);
  do { /* both wait: all has been transferred */
    lvd_fiber_sleep(1000000);
    CHECK_EQ(lvd_stream_counters_read(s, &c), LVD_OK);
    CHECK(c.fill <= CAPACITY && c.got <= N);
  } while (c.got < N);
  /* The names were read before the last one ended. */
  CHECK_EQ(lvd_stream_counters_read(s, &c), LVD_OK);
  CHECK_EQ(c.put, N);
  CHECK(strcmp(c.sender, "writer") == 0 && strcmp(c.receiver, "reader") == 0);
  CHECK(c.elem_size == 4 && c.capacity == CAPACITY && c.threshold == THRESHOLD);
  /* One worker: each side fills or empties what it can, and then it is the other's turn. */
  CHECK(c.receiver_waits >= N / CAPACITY && c.receiver_waits <= N / THRESHOLD + 2);
  CHECK(c.receiver_wakes >= c.receiver_waits - 1 && c.receiver_wakes <= c.receiver_waits + 1);
  CHECK(c.sender_waits >= N / CAPACITY - 2 && c.sender_wakes >= c.sender_waits);

  CHECK_EQ(lvd_stream_wait_room(other, 1, 0), LVD_OK);
  n = 3;
  CHECK_EQ(lvd_app_streams(app, all, &n), LVD_OK);
  CHECK_EQ(n, 2);
  for (uint32_t i = 0; i < n; i++) {
    if (strcmp(all[i].name, "counted") == 0) continue;
    CHECK(strcmp(all[i].sender, "a thread") == 0 && !*all[i].receiver && all[i].automatic);
    CHECK(all[i].capacity == 32 && all[i].threshold >= 1 && all[i].threshold <= 16);
  }
  lvd_fiber_cancel(f[1]);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  CHECK_EQ(lvd_stream_counters_read(s, &c), LVD_OK); /* after the end, too */
  CHECK(c.got == N && !*c.sender && !*c.receiver);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
