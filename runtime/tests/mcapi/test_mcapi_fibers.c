/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI among fibers: nodes that are fibers, fibers that wait for messages of other fibers and
 * other processes, and a worker that continues meanwhile. */
#include "../support/ranks.h"
#include "test_mcapi.h"

#include <levada/fiber.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FIBERS = 8, EACH = SCALED(500) };

/* A ring of nodes: each receives a number from the previous one and passes it on, incremented. */
static void pass_on(void *argument) {
  mcapi_node_t me = (mcapi_node_t)(uintptr_t)argument;
  mcapi_status_t s;
  node_is(me);
  CHECK_EQ(mcapi_node_id_get(&s), me);
  mcapi_endpoint_t mine = endpoint_at(1), ends = endpoint_at(2),
                   next = endpoint_of((me + 1) % FIBERS, 1);
  for (uint32_t i = 0; i < EACH; i++) {
    uint32_t number = 0;
    size_t size;
    if (me == 0) mcapi_msg_send(mine, next, &number, sizeof number, 0, &s);
    if (me == 0) SAYS(s, MCAPI_SUCCESS); /* else all would wait forever */
    mcapi_msg_recv(mine, &number, sizeof number, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(mcapi_node_id_get(&s), me);
    CHECK_EQ(number, me ? me - 1 : FIBERS - 1);
    number++;
    if (me) mcapi_msg_send(mine, next, &number, sizeof number, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  /* A node ends only after the next one has received everything, since its endpoint would
   * vanish. */
  if (me) {
    mcapi_msg_send(mine, endpoint_of(0, 2), "", 1, 0, &s);
  } else {
    char end;
    size_t size;
    for (int i = 1; i < FIBERS; i++) {
      mcapi_msg_recv(ends, &end, 1, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
  }
  SAYS(s, MCAPI_SUCCESS);
  node_ends();
}

static lvd_app *app_of(lvd_runtime *rt) {
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  return app;
}

void test_mcapi_fibers(void) {
  test_domain();
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = app_of(rt);
  lvd_fiber *f[FIBERS];
  for (uintptr_t i = 0; i < FIBERS; i++)
    CHECK_EQ(lvd_fiber_start(app, pass_on, (void *)i, NULL, &f[i]), LVD_OK);
  for (int i = 0; i < FIBERS; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A message from another process wakes a fiber, and its worker is free until then; a cancelled
 * fiber stops waiting. */
static void answer(void *argument) {
  int *answered = argument;
  mcapi_status_t s;
  mcapi_endpoint_t mine = endpoint_at(5), other = endpoint_of(2, 5);
  for (int i = 0; i < 50; i++) {
    uint32_t number;
    size_t size;
    mcapi_msg_recv(mine, &number, sizeof number, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_msg_send(mine, other, &number, sizeof number, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
    ++*answered;
  }
  char never;
  size_t size;
  mcapi_msg_recv(mine, &never, 1, &size, &s);
  SAYS(s, MCAPI_ERR_REQUEST_CANCELLED);
}

static void say_hello(void *argument) { ++*(int *)argument; }

void test_mcapi_fiber_and_process(void) {
  int answered = 0, hellos = 0;
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id == 0) {
    mcapi_status_t s;
    node_is(2);
    mcapi_endpoint_t mine = endpoint_at(5), other = endpoint_of(1, 5);
    for (uint32_t i = 0; i < 50; i++) {
      uint32_t number = i;
      size_t size;
      nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); /* it sleeps by now */
      mcapi_msg_send(mine, other, &number, sizeof number, 0, &s);
      SAYS(s, MCAPI_SUCCESS);
      mcapi_msg_recv(mine, &number, sizeof number, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(number, i);
    }
    node_ends();
    _exit(0);
  }
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = app_of(rt);
  lvd_fiber *f, *hello;
  node_is(1); /* the node of the process, to which its fibers belong */
  CHECK_EQ(lvd_fiber_start(app, answer, &answered, NULL, &f), LVD_OK);
  for (int i = 0; i < 100; i++) {
    CHECK_EQ(lvd_fiber_start(app, say_hello, &hellos, NULL, &hello), LVD_OK);
    CHECK_EQ(lvd_fiber_join(hello, -1), LVD_OK);
  }
  CHECK_EQ(hellos, 100);
  int how;
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK_EQ(how, 0);
  lvd_fiber_cancel(f);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  CHECK_EQ(answered, 50);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  node_ends();
}

static void waits_for_ever(void *unused) {
  char never;
  size_t size;
  mcapi_status_t s;
  (void)unused;
  mcapi_msg_recv(endpoint_at(5), &never, 1, &size, &s);
  SAYS(s, MCAPI_ERR_REQUEST_CANCELLED);
}

/* The notifier, which wakes fibers, gets a higher priority than their workers, which could
 * otherwise keep it from running: from the first wait of a fiber on, whichever thread has
 * initialized the node. */
void test_mcapi_fibers_realtime(void) {
  test_domain();
  lvd_runtime *rt = realtime_runtime();
  lvd_app *app = app_of(rt);
  lvd_fiber *f;
  node_is(1);
  has_rank("levada/mcapi", 0);
  CHECK_EQ(lvd_fiber_start(app, waits_for_ever, NULL, NULL, &f), LVD_OK);
  has_rank("levada/mcapi", 5);
  lvd_fiber_cancel(f);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  node_ends();
}
