/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Cycles of numbered streams through two and three processes, before any element has moved and
 * after: each waiter gets LVD_E_DEADLOCK, in whatever process, and the report has the cycle in one
 * piece. */
#include "../support/bench.h"

#include <levada/srpc.h>

static page *shown;
static lvd_status told_here[2];

/* From now on children report how their waits ended, in a shared page. */
static void show_children(char path[32]) {
  can_start();
  shown = make_page(path);
  setenv("LEVADA_TEST_PAGE", path, 1);
}
static void show_no_more(const char *path) {
  unlink(path);
  munmap(shown, sizeof *shown);
}

static void wants(STREAM_ID in, STREAM_ID out, int i) {
  u32 a;
  CHECK_EQ(stream_create(in), LVD_OK);
  CHECK_EQ(stream_create(out), LVD_OK);
  told_here[i] = stream_get(in, a);
}
static void here_wants(void) { wants(1, 0, 0); }
PB_PROCEDURE(here_wants)

/* Waits for an answer before it has asked, or for a second one before it has asked again. At first
 * no sending end has an owner, and each stream is known to one side only. */
static bool asks;
static void wants_answer(void) {
  u32 a = 41;
  stream_create(0);
  stream_create(1);
  if (asks) {
    stream_put(0, a);
    stream_push(0);
    CHECK_EQ(stream_get(1, a), LVD_OK);
    CHECK_EQ(a, 42);
  }
  CHECK_EQ(stream_get(1, a), LVD_E_DEADLOCK);
}
PB_PROCEDURE(wants_answer)

/* The report has the line: `waiter` waits for number `id`, and `other` has to fill it. */
static bool tells(const char *waiter, STREAM_ID id, const char *other) {
  char line[200], after[100];
  snprintf(line, sizeof line, "  %s waits for 1 of the stream number %d (0 of 4096)", waiter, id);
  snprintf(after, sizeof after, "; %s has to fill it\n", other);
  const char *at = strstr(pb_error_text(), line), *end = at ? strstr(at, after) : NULL;
  return end && end < strchr(at, '\n');
}

static bool tells_cycle(void) {
  const char *cycle = "in a cycle, each waits for the next:\n";
  return strncmp(pb_error_text(), cycle, strlen(cycle)) == 0;
}

/* The name of a child's task in reports. */
static void name_there(char name[80], const char *task, int process) {
  const char *base = strrchr(LEVADA_CHILD, '/') + 1;
  snprintf(name, 80, "%s in process %d (%.20s)", task, process, base);
}

void test_deadlock_of_srpc(void) {
  pb_set_diagnostics(false);
  can_start();
  for (int round = 0; round < 6; round++) {
    asks = round & 1;
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
    TASKID there = pb_create("remote_pipe", 0), here = pb_create("wants_answer", 0);
    char name[80];
    name_there(name, "remote_pipe", pb_process());
    CHECK_EQ(pb_rpc(there), LVD_OK);
    if (round < 3) lvd_fiber_sleep(50000000); /* which one parks first */
    CHECK_EQ(pb_rpc(here), LVD_OK);
    CHECK_EQ(pb_wait(here), LVD_OK);
    CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
    CHECK(tells_cycle());
    CHECK(tells("wants_answer", 1, name));
    CHECK(tells(name, 0, "wants_answer"));
  }
}

/* One here and one there, each a fiber or a thread, in either order. */
void test_deadlock_of_srpc_ring(void) {
  pb_set_diagnostics(false);
  static const struct {
    const char *here, *there; /* null: the thread main */
    bool first;               /* it exists before the other one has begun */
  } way[] = {{"here_wants", "remote_wants", true},  {"here_wants", "remote_wants", false},
             {NULL, "remote_wants", true},          {NULL, "remote_wants", false},
             {"here_wants", "remote_thread", true}, {NULL, "remote_thread", false}};
  char path[32], name[80];
  show_children(path);
  for (size_t i = 0; i < COUNT(way); i++) {
    bool thread = strcmp(way[i].there, "remote_thread") == 0;
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
    TASKID there = pb_create(way[i].there, 0);
    name_there(name, thread ? "the thread wants" : way[i].there, pb_process());
    told_here[0] = LVD_OK;
    if (way[i].first) {
      CHECK_EQ(pb_rpc(there), LVD_OK);
      lvd_fiber_sleep(30000000);
    }
    if (way[i].here) CHECK_EQ(pb_rpc(pb_create(way[i].here, 0)), LVD_OK);
    if (!way[i].first) {
      if (way[i].here) lvd_fiber_sleep(30000000);
      CHECK_EQ(pb_rpc(there), LVD_OK);
    }
    if (!way[i].here) wants(1, 0, 0);
    CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
    const char *here = way[i].here ? way[i].here : "the thread main";
    CHECK(tells_cycle());
    CHECK(tells(here, 1, name));
    CHECK(tells(name, 0, here));
    CHECK_EQ(told_here[0], LVD_E_DEADLOCK);
    CHECK_EQ(lvd_load_acquire_u32(&shown->told[0]), 1 + LVD_E_DEADLOCK);
    lvd_store_relaxed_u32(&shown->told[0], 0);
  }
  show_no_more(path);
}

/* main has announced that it will send, and waits for the task instead. */
void test_deadlock_of_srpc_task(void) {
  pb_set_diagnostics(false);
  char path[32], name[80], line[200];
  show_children(path);
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID there = pb_create("remote_wants", 0);
  name_there(name, "remote_wants", pb_process());
  CHECK_EQ(stream_create(0), LVD_OK);
  CHECK_EQ(stream_create(1), LVD_OK);
  CHECK_EQ(pb_rpc(there), LVD_OK);
  CHECK_EQ(pb_wait(there), LVD_E_DEADLOCK);
  CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
  CHECK(tells_cycle());
  CHECK(tells(name, 0, "the thread main"));
  snprintf(line, sizeof line,
           "  the thread main waits for what it has called in %s: remote_wants\n",
           strstr(name, "process"));
  CHECK(strstr(pb_error_text(), line));
  CHECK_EQ(lvd_load_acquire_u32(&shown->told[0]), 1 + LVD_E_DEADLOCK);
  show_no_more(path);
}

static void here_left(void) { wants(1, 4, 0); }
static void here_right(void) { wants(5, 0, 1); }
PB_PROCEDURE(here_left)
PB_PROCEDURE(here_right)

/* left -> one child -> right -> another -> left. */
void test_deadlock_of_srpc_three(void) {
  pb_set_diagnostics(false);
  char path[32], name[2][80];
  int process[2];
  show_children(path);
  for (int round = 0; round < 3; round++) {
    TASKID there[2];
    for (int i = 0; i < 2; i++) {
      const char *task = i ? "remote_wants_too" : "remote_wants";
      CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
      process[i] = pb_process();
      CHECK((there[i] = pb_create_in(process[i], task, 0)) != NULL);
      name_there(name[i], task, process[i]);
    }
    for (STREAM_ID id = 0; id < 6; id++)
      if (id < 2 || id > 3) CHECK_EQ(stream_with(id, there[id > 1]), LVD_OK);
    for (int i = 0; i < 4; i++) {
      TASKID t = i < 2 ? there[(i + round) % 2] : pb_create(i == 2 ? "here_left" : "here_right", 0);
      CHECK_EQ(pb_rpc(t), LVD_OK);
      lvd_fiber_sleep(round * 10000000);
    }
    CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
    CHECK(tells_cycle());
    CHECK(tells("here_left", 1, name[0]));
    CHECK(tells(name[0], 0, "here_right"));
    CHECK(tells("here_right", 5, name[1]));
    CHECK(tells(name[1], 4, "here_left"));
    for (int i = 0; i < 2; i++) {
      CHECK_EQ(told_here[i], LVD_E_DEADLOCK);
      CHECK_EQ(lvd_load_acquire_u32(&shown->told[i]), 1 + LVD_E_DEADLOCK);
      lvd_store_relaxed_u32(&shown->told[i], 0);
    }
  }
  show_no_more(path);
}

/* Two here wait for each other, and one there, which is not probed, for one of them: deadlocked as
 * well. */
static void here_ring(void) {
  stream_create(0); /* what the other one waits for */
  wants(2, 3, 0);
}
static void here_ring_too(void) { wants(3, 2, 1); }
PB_PROCEDURE(here_ring)
PB_PROCEDURE(here_ring_too)

void test_deadlock_of_srpc_waiter_outside(void) {
  pb_set_diagnostics(false);
  char path[32];
  show_children(path);
  for (int round = 0; round < 3; round++) {
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
    CHECK_EQ(pb_rpc(pb_create("remote_wants", 0)), LVD_OK);
    while (lvd_load_acquire_u32(&shown->told[0]) != UINT32_MAX) lvd_fiber_sleep(1000000);
    lvd_fiber_sleep(100000000); /* it waits: a later one finds that all has ended */
    CHECK_EQ(pb_rpc(pb_create("here_ring", 0)), LVD_OK);
    CHECK_EQ(pb_rpc(pb_create("here_ring_too", 0)), LVD_OK);
    CHECK_EQ(pb_finish(), LVD_E_DEADLOCK);
    CHECK(tells_cycle());
    CHECK(told_here[0] == LVD_E_DEADLOCK && told_here[1] == LVD_E_DEADLOCK);
    CHECK_EQ(lvd_load_acquire_u32(&shown->told[0]), 1 + LVD_E_DEADLOCK);
    lvd_store_relaxed_u32(&shown->told[0], 0);
  }
  show_no_more(path);
}
