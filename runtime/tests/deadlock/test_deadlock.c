/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fibers of two and more processes that wait only for each other get LVD_E_DEADLOCK, and no others
 * do. */
#include "../support/bench.h"

#include <signal.h>

typedef struct waiting {
  lvd_unit *from, *to;
  char in[32], out[32];
  int64_t sleeps;
  lvd_status status;
} waiting;

/* Has the sending end of one stream, and waits for the other. */
static void waits(void *argument) {
  waiting *w = argument;
  lvd_stream *in, *out;
  uint64_t x;
  CHECK_EQ(open_stream(w->from, w->in, 0, 0, &in), LVD_OK);
  CHECK_EQ(open_stream(w->to, w->out, 0, 0, &out), LVD_OK);
  CHECK_EQ(lvd_stream_wait_room(out, 1, -1), LVD_OK);
  if (w->sleeps) CHECK_EQ(lvd_fiber_sleep(w->sleeps), LVD_OK);
  w->status = lvd_stream_get(in, &x, sizeof x);
  if (w->status == LVD_OK) CHECK_EQ(lvd_stream_put(out, &x, sizeof x), LVD_OK);
}

static lvd_call *child_waits(lvd_unit *u, const char *in, const char *out, uint64_t sleeps) {
  order o = {.seed = sleeps};
  snprintf(o.name, sizeof o.name, "%s", in);
  snprintf(o.back, sizeof o.back, "%s", out);
  return call(u, "child_waits_for_both", &o);
}

static void start(bench *b, waiting *w, const char *name) {
  CHECK_EQ(lvd_fiber_start(b->app, waits, w, &(lvd_fiber_options){.name = name}, NULL), LVD_OK);
}

/* One here, one there; either may park last. */
void test_deadlock_of_two_processes(void) {
  static const uint64_t late[][2] = {{0, 0}, {80000000, 0}, {0, 80000000}, {80000000, 80000000}};
  for (size_t i = 0; i < COUNT(late); i++)
    for (int open = 0; open < 2; open++) {
      bench b = bench_of(2);
      lvd_unit *u = load(&b, "serve");
      waiting w = {u, u, "back", "there", (int64_t)late[i][0], LVD_OK};
      lvd_call *c = child_waits(u, "there", "back", late[i][1]);
      start(&b, &w, "here");
      if (!open) lvd_app_close(b.app);
      CHECK_EQ(lvd_app_wait(b.app, 20000 * MS_NS), LVD_E_DEADLOCK);
      CHECK_EQ(w.status, LVD_E_DEADLOCK);
      char why[2000];
      lvd_app_wait_report(b.app, why, sizeof why);
      char line[2][200], there[100];
      snprintf(there, sizeof there, "child_waits_for_both in %s", lvd_unit_name(u));
      snprintf(line[0], 200,
               "  here waits for 1 of the stream back (0 of 2048); %s has to fill it\n", there);
      snprintf(line[1], 200,
               "  %s waits for 1 of the stream there (0 of 2048); here has to fill it\n", there);
      CHECK(strstr(why, "in a cycle, each waits for the next:\n") == why);
      CHECK(strstr(why, line[0]) && strstr(why, line[1]));
      CHECK_EQ(result(c), LVD_E_DEADLOCK); /* the other process continues */
      bench_free(&b);
    }
}

/* A cycle through two children: none of the three processes sees more than its part. */
void test_deadlock_of_three_processes(void) {
  bench b = bench_of(2);
  lvd_unit *u[2] = {load(&b, "serve"), load(&b, "serve")};
  waiting w[2] = {{u[0], u[1], "from 0", "to 1", 0, LVD_OK},
                  {u[1], u[0], "from 1", "to 0", 30000000, LVD_OK}};
  for (int i = 0; i < 2; i++) child_waits(u[i], i ? "to 1" : "to 0", i ? "from 1" : "from 0", 0);
  start(&b, &w[0], "left");
  start(&b, &w[1], "right");
  CHECK_EQ(lvd_app_wait(b.app, 20000 * MS_NS), LVD_E_DEADLOCK);
  char why[2000], line[200];
  lvd_app_wait_report(b.app, why, sizeof why);
  CHECK(strstr(why, "in a cycle, each waits for the next:\n") == why);
  for (int i = 0; i < 2; i++) {
    const char *there = lvd_unit_name(u[i]), *from = i ? "right" : "left";
    snprintf(line, sizeof line,
             "  %s waits for 1 of the stream from %d (0 of 2048); "
             "child_waits_for_both in %s has to fill it\n",
             from, i, there);
    CHECK(strstr(why, line));
    snprintf(line, sizeof line,
             "  child_waits_for_both in %s waits for 1 of the stream to %d "
             "(0 of 2048); %s has to fill it\n",
             there, i, i ? "left" : "right");
    CHECK(strstr(why, line));
  }
  bench_free(&b);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static lvd_stream *kept;

/* Waits for a stream; its other end belongs to the caller's caller. */
static lvd_status parent_gets(lvd_call_frame *f) {
  uint64_t x;
  (void)f;
  return lvd_stream_get(kept, &x, sizeof x);
}
LVD_PROCEDURE(parent_gets)

static void calls_round(void *argument) {
  lvd_unit *u = argument;
  order o = {.name = "parent_gets", .count = 1};
  CHECK_EQ(lvd_stream_wait_room(kept, 1, -1), LVD_OK);
  CHECK_EQ(result(call(u, "child_calls_back", &o)), LVD_E_DEADLOCK);
}

void test_deadlock_of_calls(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  const lvd_stream_options o = {.name = "kept", .elem_size = 8};
  CHECK_EQ(lvd_stream_create(b.app, &o, &kept), LVD_OK);
  CHECK_EQ(lvd_fiber_start(b.app, calls_round, u, &(lvd_fiber_options){.name = "caller"}, NULL),
           LVD_OK);
  CHECK_EQ(lvd_app_wait(b.app, 20000 * MS_NS), LVD_E_DEADLOCK);
  char why[2000], line[200];
  lvd_app_wait_report(b.app, why, sizeof why);
  CHECK(strstr(why, "in a cycle, each waits for the next:\n") == why);
  snprintf(line, sizeof line, "  caller waits for what it has called in %s: child_calls_back\n",
           lvd_unit_name(u));
  CHECK(strstr(why, line));
  snprintf(line, sizeof line,
           "  child_calls_back in %s waits for what it has called in the parent: parent_gets\n",
           lvd_unit_name(u));
  CHECK(strstr(why, line));
  CHECK(strstr(why, "parent_gets waits for 1 of the stream kept (0 of 2048); caller has to fill"));
  bench_free(&b);
}

/* ---- no deadlock ----------------------------------------------------------------------------- */

/* All fibers of both processes wait, for long, and a program thread resumes them. */
void test_deadlock_not_with_free_thread(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  lvd_stream *there, *local;
  uint64_t x;
  const lvd_stream_options so = {.name = "local", .elem_size = 8};
  for (int round = 0; round < 3; round++) {
    /* A thread has the end that the child waits for. */
    waiting w = {u, u, "back", "unused", 0, LVD_OK};
    CHECK_EQ(open_stream(u, "there", 0, 0, &there), LVD_OK);
    CHECK_EQ(lvd_stream_wait_room(there, 1, 0), LVD_OK);
    lvd_call *c = child_waits(u, "there", "back", 0);
    lvd_fiber *f;
    CHECK_EQ(lvd_fiber_start(b.app, waits, &w, NULL, &f), LVD_OK);
    CHECK_EQ(lvd_app_wait(b.app, 100 * MS_NS), LVD_E_TIMEOUT);
    CHECK_EQ(lvd_stream_put(there, &b, 8), LVD_OK);
    lvd_stream_flush(there);
    CHECK_EQ(result(c), LVD_OK);
    CHECK_EQ(lvd_stream_close(there), true);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    CHECK_EQ(w.status, LVD_OK);
    lvd_stream_destroy(there);
  }
  /* The child waits for this process, which waits for a call to it, which waits through it for a
   * thread. */
  CHECK_EQ(lvd_stream_create(b.app, &so, &local), LVD_OK);
  kept = local;
  CHECK_EQ(lvd_stream_wait_room(local, 1, 0), LVD_OK);
  order o = {.name = "parent_gets", .count = 1};
  lvd_call *c = call(u, "child_calls_back", &o);
  CHECK_EQ(lvd_app_wait(b.app, 100 * MS_NS), LVD_E_TIMEOUT);
  x = 7;
  CHECK_EQ(lvd_stream_put(local, &x, 8), LVD_OK);
  lvd_stream_flush(local);
  CHECK_EQ(result(c), LVD_OK);
  bench_free(&b);
}
