/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forks of actors, and abandoned forks: an actor that waits for a stolen call leaves its worker
 * to others, stays where its forks are, and can be stopped, or fail, at any time. */
#include <unistd.h>

#include "../support/test.h"

static void spin_ns(uint64_t ns) {
  uint64_t until = now_ns() + ns;
  while (now_ns() < until) {
  }
}

static lvd_runtime *rt;
static lvd_app *load(const lvd_actor_class *cls, const void *params, uint32_t actors,
                     const uint32_t *placement) {
  builder b;
  lvd_app *app;
  builder_init(&b, "forks");
  for (uint32_t i = 0; i < actors; i++) builder_actor(&b, "actor", cls, params);
  lvd_app_options options = {.placement = placement};
  CHECK_EQ(lvd_app_load(rt, &b.net, &options, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

/* ---- its worker continues ------------------------------------------------------------------ */

/* The call ends when an entity on the worker of its owner has set the event. */
static lvd_event question, reply;
static lvd_a32 begun;
static int ask(int n) {
  uint32_t data;
  lvd_store_release_u32(&begun, 1);
  lvd_event_set(&question, 1);
  CHECK_EQ(lvd_event_wait(&reply, &data, -1), LVD_OK);
  return n + (int)data;
}
static int quick(int n) {
  lvd_store_release_u32(&begun, 1);
  return n;
}
static int twice(int n) { return 2 * n; }
LVD_FORKABLE(int, twice, int)
LVD_FORKABLE(int, ask, int)
LVD_FORKABLE(int, quick, int)

/* The oldest fork is stolen soon: further forks serve requests. */
static void until(const lvd_a32 *is) {
  while (!lvd_load_acquire_u32(is)) {
    LVD_FORK(f, twice, 1);
    spin_ns(1000);
    CHECK_EQ(LVD_JOIN(f, twice), 2);
  }
}

/* In its first activation an actor without LVD_CLASS_CAN_BLOCK has shown that it forks. */
static lvd_run_result asking_run(lvd_actor *self) {
  int *round = self->state;
  if ((*round)++ == 0) {
    LVD_FORK(f, quick, 3);
    until(&begun);
    CHECK_EQ(LVD_JOIN(f, quick), 3);
    lvd_store_release_u32(&begun, 0);
    return LVD_RUN_YIELD;
  }
  LVD_FORK(f, ask, 20);
  until(&begun);
  CHECK_EQ(LVD_JOIN(f, ask), 42);
  return LVD_RUN_DONE;
}
static const lvd_actor_class asking_class = {.name = "asking",
                                             .state_size = sizeof(int),
                                             .run = asking_run},
                             waiting_class = {.name = "waiting",
                                              .state_size = sizeof(int),
                                              .flags = LVD_CLASS_CAN_BLOCK,
                                              .run = asking_run};

static void answer(void *unused) {
  uint32_t data;
  (void)unused;
  CHECK_EQ(lvd_event_wait(&question, &data, -1), LVD_OK);
  CHECK_EQ(lvd_event_set(&reply, 22), LVD_OK);
}

void test_fork_actor_goes_on(void) {
  rt = runtime_of(3);
  const lvd_actor_class *const classes[] = {&asking_class, &waiting_class};
  for (uint32_t i = 0; i < 20; i++) {
    lvd_app *fibers;
    lvd_fiber *f;
    lvd_fiber_options here = {.place = LVD_WORKER(0)};
    lvd_event_init(&question);
    lvd_event_init(&reply);
    lvd_store_relaxed_u32(&begun, 0);
    CHECK_EQ(lvd_app_open(rt, NULL, &fibers), LVD_OK);
    CHECK_EQ(lvd_fiber_start(fibers, answer, NULL, &here, &f), LVD_OK);
    lvd_app *app = load(classes[i % 2], NULL, 1, (uint32_t[]){0});
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
    lvd_app_unload(app);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    lvd_app_unload(fibers);
  }
  lvd_runtime_destroy(rt);
}

/* ---- it stays where its forks are ---------------------------------------------------------- */

static void sleep_shortly(void *unused) {
  (void)unused;
  usleep(300);
}

/* Its blocking call is pending, with and without open forks. */
static lvd_run_result staying_run(lvd_actor *self) {
  uint32_t *round = self->state;
  const pid_t here = gettid();
  LVD_FORK(f, twice, (int)*round);
  LVD_FORK(g, twice, 1);
  CHECK_EQ(lvd_run_blocking(sleep_shortly, NULL), LVD_OK);
  CHECK_EQ(gettid(), here);
  CHECK_EQ(LVD_JOIN(g, twice), 2);
  CHECK_EQ(lvd_run_blocking(sleep_shortly, NULL), LVD_OK);
  CHECK_EQ(gettid(), here);
  CHECK_EQ(LVD_JOIN(f, twice), 2 * (int)*round);
  CHECK_EQ(lvd_run_blocking(sleep_shortly, NULL), LVD_OK);
  return ++*round == SCALED(200) ? LVD_RUN_DONE : LVD_RUN_YIELD;
}
static const lvd_actor_class staying_class = {.name = "staying",
                                              .state_size = sizeof(uint32_t),
                                              .flags = LVD_CLASS_CAN_BLOCK,
                                              .run = staying_run};

void test_fork_actor_stays(void) {
  enum { ACTORS = 4 };
  rt = runtime_of(2);
  lvd_app *app = load(&staying_class, NULL, ACTORS, NULL);
  for (uint32_t i = 0; lvd_app_get_state(app) == LVD_APP_RUNNING; i++) {
    if (i % 8 == 0) {
      CHECK_EQ(lvd_core_reserve(rt, i / 8 % 2), LVD_OK);
      CHECK_EQ(lvd_core_release(rt, i / 8 % 2), LVD_OK);
    } else {
      CHECK_EQ(lvd_app_move(app, i % ACTORS, i / ACTORS % 2), LVD_OK);
    }
    usleep(100);
  }
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- it is stopped, whatever it waits for ---------------------------------------------------- */

static lvd_event never;
static lvd_a32 going;
typedef struct big {
  long x[20];
} big;
/* Its result lies on the stack of the owner. */
static big wait_long(big b) {
  uint32_t data;
  lvd_add_relaxed_u32(&going, 1);
  CHECK_EQ(lvd_event_wait(&never, &data, -1), LVD_E_STOPPED);
  b.x[0]++;
  return b;
}
LVD_FORKABLE(big, wait_long, big)

static lvd_run_result stopped_run(lvd_actor *self) {
  const int *fd = self->params;
  big b = {{1}};
  LVD_FORK(f, wait_long, b);
  if (fd) CHECK_EQ(lvd_wait_readable(*fd), LVD_OK); /* never returns */
  until(&going);
  LVD_FORK(g, twice, 1);
  b = (LVD_JOIN(g, twice), LVD_JOIN(f, wait_long));
  return b.x[0] == 2 ? LVD_RUN_DONE : LVD_RUN_WAIT;
}
static const lvd_actor_class stopped_class = {
    .name = "stopped", .flags = LVD_CLASS_CAN_BLOCK, .run = stopped_run};

void test_fork_actor_stops(void) {
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  rt = runtime_of(3);
  for (int i = 0; i < 40; i++) {
    lvd_event_init(&never);
    lvd_store_relaxed_u32(&going, 0);
    lvd_app *app = load(&stopped_class, i % 2 ? fd : NULL, 1, NULL);
    uint64_t start = now_ns();
    while (lvd_load_relaxed_u32(&going) < 1 && now_ns() - start < 300000000000u) usleep(100);
    if (i % 4 < 2) usleep(1000);
    CHECK_EQ(lvd_app_stop(app), LVD_OK);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- what fails --------------------------------------------------------------------------- */

/* A tree of forks in which one leaf fails, wherever it runs: at the owner, at a thief, or at an
 * owner that leapfrogs. */
static int tumble(int depth, uint32_t at, uint32_t bad);
LVD_FORKABLE(int, tumble, int, uint32_t, uint32_t)
static int tumble(int depth, uint32_t at, uint32_t bad) {
  if (depth == 0) {
    spin_ns(2000);
    if (at == bad) lvd_actor_fail(NULL, LVD_FAULT_CHECK, 1, "leaf %u", at);
    return 1;
  }
  LVD_FORK(f, tumble, depth - 1, 2 * at, bad);
  int right = tumble(depth - 1, 2 * at + 1, bad);
  return LVD_JOIN(f, tumble) + right;
}

static void fiber_tumbles(void *argument) {
  uint32_t bad = *(uint32_t *)argument;
  CHECK_EQ(tumble(6, 0, bad), 64);
}
static lvd_run_result tumbling_run(lvd_actor *self) {
  CHECK_EQ(tumble(6, 0, *(const uint32_t *)self->params), 64);
  return LVD_RUN_DONE;
}
static const lvd_actor_class tumbling_class = {.name = "tumbling", .run = tumbling_run},
                             may_class = {.name = "may",
                                          .flags = LVD_CLASS_CAN_BLOCK | LVD_CLASS_ABANDONABLE,
                                          .run = tumbling_run};

void test_fork_tumbles(void) {
  rt = runtime_of(3);
  for (uint32_t i = 0; i < SCALED(600) + 65; i++) {
    uint32_t bad = i % 65; /* 64: none */
    lvd_status end = bad < 64 ? LVD_E_FAULT : LVD_OK;
    lvd_app *app;
    if (i % 3 == 0) {
      lvd_fiber *f;
      CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
      CHECK_EQ(lvd_fiber_start(app, fiber_tumbles, &bad, NULL, &f), LVD_OK);
      CHECK_EQ(lvd_fiber_join(f, -1), end);
      lvd_app_close(app);
    } else {
      app = load(i % 3 == 1 ? &tumbling_class : &may_class, &bad, 2, NULL);
    }
    CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), end);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}
