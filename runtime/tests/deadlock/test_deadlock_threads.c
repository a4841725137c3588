/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program threads that wait for fibers which wait for them, or for each other, get LVD_E_DEADLOCK,
 * and no others do. */
#include "../support/bench.h"

#include <levada/srpc.h>

#include "platform/platform.h"

typedef struct relay {
  lvd_stream *in, *out;
  lvd_status status;
  lvd_os_thread *thread;
} relay;

/* Has the sending end of one stream, and waits for the other without a timeout. */
static void relays(void *argument) {
  relay *r = argument;
  uint64_t x;
  CHECK_EQ(lvd_stream_wait_room(r->out, 1, -1), LVD_OK);
  while ((r->status = lvd_stream_get(r->in, &x, sizeof x)) == LVD_OK) {
    CHECK_EQ(lvd_stream_put(r->out, &x, sizeof x), LVD_OK);
    lvd_stream_push(r->out);
    lvd_stream_pop(r->in);
  }
  if (!lvd_fiber_self()) CHECK(lvd_stream_close(r->in) && lvd_stream_close(r->out));
}

static lvd_stream *make(lvd_app *app, const char *name) {
  lvd_stream *s;
  const lvd_stream_options o = {.name = name, .elem_size = 8, .capacity = 64, .threshold = 1};
  CHECK_EQ(lvd_stream_create(app, &o, &s), LVD_OK);
  return s;
}

static lvd_app *open_app(lvd_runtime *rt) {
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  return app;
}

static void start_fiber(lvd_app *app, relay *r, const char *name) {
  CHECK_EQ(lvd_fiber_start(app, relays, r, &(lvd_fiber_options){.name = name}, NULL), LVD_OK);
}
static void start_thread(relay *r, const char *name) {
  CHECK_EQ(lvd_os_thread_start(&r->thread, -1, name, relays, r), LVD_OK);
}

static void push(lvd_stream *s, uint64_t x) {
  CHECK_EQ(lvd_stream_put(s, &x, 8), LVD_OK);
  lvd_stream_push(s);
}

/* The first answer comes; a second one was not asked for. */
void test_deadlock_of_thread(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int way = 0; way < 4; way++) {
    lvd_app *app = open_app(rt);
    relay r = {make(app, "there"), make(app, "back"), LVD_OK, NULL};
    uint64_t x = 0;
    start_fiber(app, &r, "echo");
    push(r.in, 7);
    CHECK_EQ(lvd_stream_get(r.out, &x, 8), LVD_OK);
    CHECK_EQ(x, 7);
    if (way & 1) lvd_app_close(app);
    if (way & 2) lvd_fiber_sleep(50000000); /* which one parks first */
    CHECK_EQ(lvd_stream_get(r.out, &x, 8), LVD_E_DEADLOCK);
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
    CHECK_EQ(r.status, LVD_E_DEADLOCK);
    char why[1000];
    lvd_app_wait_report(app, why, sizeof why);
    CHECK(strstr(why, "in a cycle, each waits for the next:\n"));
    CHECK(strstr(why,
                 "  the thread main waits for 1 of the stream back (0 of 64); echo has to fill"));
    CHECK(strstr(why,
                 "  echo waits for 1 of the stream there (0 of 64); the thread main has to fill"));
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* main -> fiber -> thread -> fiber -> main; or threads alone. */
void test_deadlock_of_threads(void) {
  static const char *const name[4] = {"main", "left", "reader", "right"};
  lvd_runtime *rt = runtime_of(2);
  for (int alone = 0; alone < 2; alone++) {
    lvd_app *app = open_app(rt);
    lvd_stream *s[4];
    relay r[4];
    uint64_t x;
    for (int i = 0; i < 4; i++) s[i] = make(app, name[i]);
    for (int i = 1; i < 4; i++) r[i] = (relay){s[i], s[(i + 1) % 4], LVD_OK, NULL};
    CHECK_EQ(lvd_stream_wait_room(s[1], 1, 0), LVD_OK);
    for (int i = 1; i < 4; i++) {
      if (i == 2 || alone)
        start_thread(&r[i], name[i]);
      else
        start_fiber(app, &r[i], name[i]);
    }
    CHECK_EQ(lvd_stream_get(s[0], &x, 8), LVD_E_DEADLOCK);
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
    for (int i = 1; i < 4; i++) {
      if (r[i].thread) lvd_os_thread_join(r[i].thread);
      CHECK_EQ(r[i].status, LVD_E_DEADLOCK);
    }
    char why[2000];
    lvd_app_wait_report(app, why, sizeof why);
    CHECK(strstr(why, "in a cycle"));
    CHECK(strstr(why, "the thread main waits for 1 of the stream main (0 of 64); "));
    CHECK(strstr(why, "the thread reader waits for 1 of the stream reader (0 of 64); "));
    CHECK(strstr(why, alone ? "; the thread right has to fill it" : "; right has to fill it"));
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- a thread that waits for an end or a return: it gets that when the fibers are told
 * ------------ */

static lvd_stream *kept;

static lvd_status gets_kept(lvd_call_frame *f) {
  uint64_t x;
  (void)f;
  return lvd_stream_get(kept, &x, sizeof x);
}
static void gets_kept_too(void *argument) { *(lvd_status *)argument = gets_kept(NULL); }

void test_deadlock_of_join(void) {
  lvd_runtime *rt = runtime_of(2);
  CHECK_EQ(lvd_procedure_register("gets_kept", gets_kept), LVD_OK);
  for (int way = 0; way < 3; way++) {
    lvd_app *app = open_app(rt);
    kept = make(app, "kept");
    CHECK_EQ(lvd_stream_wait_room(kept, 1, 0), LVD_OK); /* owned here */
    char why[1000];
    lvd_status status = LVD_OK;
    if (way == 0) {
      lvd_fiber *f;
      const lvd_fiber_options o = {.name = "joined"};
      CHECK_EQ(lvd_fiber_start(app, gets_kept_too, &status, &o, &f), LVD_OK);
      CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    } else if (way == 1) {
      lvd_unit *u;
      lvd_call *c;
      CHECK_EQ(lvd_unit_core(app, 1, &u), LVD_OK);
      CHECK_EQ(lvd_call_start(u, "gets_kept", NULL, 0, NULL, &c), LVD_OK);
      status = result(c);
    } else {
      CHECK_EQ(lvd_fiber_start(app, gets_kept_too, &status, NULL, NULL), LVD_OK);
      lvd_app_close(app);
      CHECK_EQ(lvd_app_wait(app, -1), LVD_E_DEADLOCK);
    }
    CHECK_EQ(status, LVD_E_DEADLOCK);
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_E_DEADLOCK);
    lvd_app_wait_report(app, why, sizeof why);
    CHECK(strstr(why, way == 0   ? "the thread main waits for the end of joined"
                      : way == 1 ? "the thread main waits for the end of gets_kept"
                                 : "the thread main waits for the end of program"));
    CHECK(strstr(why, " waits for 1 of the stream kept (0 of 64); the thread main has to fill it"));
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* By the paper's API: the program has announced that it will send, and waits for the task
 * instead. */
static void wants_more(void *unused) {
  u32 a = 0;
  (void)unused;
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(stream_get(3, a), LVD_OK);
  CHECK_EQ(a, 5);
  CHECK_EQ(stream_get(3, a), LVD_E_DEADLOCK);
}

void test_deadlock_of_program(void) {
  u32 a = 5;
  pb_set_diagnostics(false);
  CHECK_EQ(pb_register("wants_more", (void *)(uintptr_t)wants_more), LVD_OK);
  TASKID t = pb_create("wants_more", 0);
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(stream_put(3, a), LVD_OK);
  CHECK_EQ(stream_push(3), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
  CHECK(strstr(pb_error_text(), "the thread main waits for the end of wants_more"));
  CHECK(strstr(pb_error_text(),
               "wants_more waits for 1 of the stream 3 (0 of 4096); the thread main has "
               "to fill it"));
}

/* Across processes, without a fiber here: the call that main waits for waits for main. */
void test_deadlock_of_thread_and_process(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  lvd_stream *there, *back;
  for (int way = 0; way < 2; way++) {
    order o = {.name = "there", .back = "back"};
    CHECK_EQ(open_stream(u, "there", 0, 0, &there), LVD_OK);
    CHECK_EQ(open_stream(u, "back", 0, 0, &back), LVD_OK);
    CHECK_EQ(lvd_stream_wait_room(there, 1, 0), LVD_OK);
    uint64_t x;
    lvd_call *c = call(u, "child_waits_for_both", &o);
    CHECK_EQ(way ? result(c) : lvd_stream_get(back, &x, 8), LVD_E_DEADLOCK);
    CHECK_EQ(lvd_app_wait(b.app, 20000 * MS_NS), LVD_E_DEADLOCK);
    char why[2000];
    lvd_app_wait_report(b.app, why, sizeof why);
    char child[100], line[200];
    snprintf(child, sizeof child, "child_waits_for_both in %s", lvd_unit_name(u));
    CHECK(strstr(why, "in a cycle, each waits for the next:\n") == why);
    if (way)
      snprintf(line, sizeof line, "  the thread main waits for what it has called in %s: %.20s\n",
               lvd_unit_name(u), child);
    else
      snprintf(line, sizeof line,
               "  the thread main waits for 1 of the stream back (0 of 2048); %s has to fill it\n",
               child);
    CHECK(strstr(why, line));
    snprintf(line, sizeof line,
             "  %s waits for 1 of the stream there (0 of 2048); the thread main has to fill it\n",
             child);
    CHECK(strstr(why, line));
    lvd_stream_counters k;
    CHECK_EQ(lvd_stream_counters_read(there, &k), LVD_OK);
    CHECK(strcmp(k.sender, "a thread") == 0 && strcmp(k.receiver, "another process") == 0);
    if (way) break;
    CHECK(lvd_stream_close(there));
    CHECK_EQ(result(c), LVD_E_DEADLOCK); /* the child continues */
    bench_free(&b);
    b = bench_of(2);
    u = load(&b, "serve");
  }
  bench_free(&b);
}

/* ---- no deadlock ----------------------------------------------------------------------------- */

typedef struct saviour {
  lvd_stream *to, *never;
  uint32_t rounds;
} saviour;

/* A thread that is outside of the library, or in a wait with a timeout, for about the time until
 * the reaper checks, and then resumes a fiber. */
static void saves(void *argument) {
  saviour *v = argument;
  uint64_t seed = 77;
  CHECK_EQ(lvd_stream_wait_room(v->to, 1, 0), LVD_OK);
  for (uint32_t i = 0; i < v->rounds; i++) {
    int64_t rest = 15000000 + (int64_t)(next_random(&seed) % 10000000);
    if (i & 1)
      lvd_fiber_sleep(rest);
    else
      CHECK_EQ(lvd_stream_wait_elements(v->never, 1, rest), LVD_E_TIMEOUT);
    push(v->to, i);
  }
  CHECK(lvd_stream_close(v->to));
}

/* main waits for a fiber, the fiber for a thread: each continues at some moment, perhaps just while
 * it is analysed. */
void test_deadlock_not_of_short_waits(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  relay r = {make(app, "in"), make(app, "out"), LVD_OK, NULL};
  saviour v = {r.in, make(app, "never"), 60};
  lvd_os_thread *thread;
  uint64_t x;
  start_fiber(app, &r, "echo");
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "saviour", saves, &v), LVD_OK);
  for (uint32_t i = 0; i < v.rounds; i++) {
    CHECK_EQ(lvd_stream_get(r.out, &x, 8), LVD_OK);
    CHECK_EQ(x, i);
  }
  CHECK_EQ(lvd_stream_get(r.out, &x, 8), LVD_E_EOF);
  lvd_os_thread_join(thread);
  CHECK_EQ(r.status, LVD_E_EOF);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
