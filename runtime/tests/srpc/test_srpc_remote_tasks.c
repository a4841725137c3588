/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Creating tasks in processes that come and go. LEVADA_CHILD is child.c. */
#include "../support/bench.h"

#include <levada/srpc.h>

#include <pthread.h>
#include <signal.h>

/* A name that no procedure can have matches no other, here or there. */
void test_process_task_names(void) {
  pb_set_diagnostics(false);
  char name[100];
  can_start();
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  for (size_t length = 60; length < 70; length++) {
    memset(name, 'n', length);
    name[length] = 0;
    const lvd_status status = length < 64 ? LVD_E_NOT_FOUND : LVD_E_ARGUMENT;
    CHECK(pb_create(name, 0) == NULL);
    CHECK_EQ(pb_status(), status);
    CHECK(pb_create_in(pb_process(), name, 0) == NULL);
    CHECK_EQ(pb_status(), status);
  }
  CHECK(pb_create("remote_nothing", 0) != NULL);
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- a process that exits while it is asked
 * ------------------------------------------------------- */

static void *kills(void *unused) {
  sleep_ms(30);
  CHECK_EQ(kill((pid_t)pb_process(), SIGKILL), 0);
  return unused;
}

static void local_one(void) {}
PB_PROCEDURE(local_one)

void test_process_task_request_to_dead_process(void) {
  pb_set_diagnostics(false);
  can_start();
  for (int round = 0; round < 6; round++) {
    pthread_t killer;
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
    stop_process((pid_t)pb_process());
    CHECK_EQ(pthread_create(&killer, NULL, kills, NULL), 0);
    TASKID t = round % 3 == 0   ? pb_create_in(pb_process(), "remote_nothing", 0)
               : round % 3 == 1 ? pb_create("remote_nothing", 0)
                                : pb_create("local_one", 0);
    CHECK_EQ(t != NULL, round % 3 == 2);
    if (!t) CHECK_EQ(pb_status(), LVD_E_PEER_GONE);
    CHECK_EQ(pthread_join(killer, NULL), 0);
  }
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- tasks are created while processes die and are loaded
 * ------------------------------------------ */

static lvd_a32 over;

static void *makes_tasks(void *unused) {
  while (!lvd_load_acquire_u32(&over)) {
    TASKID t = pb_create("remote_nothing", 0);
    if (!t) {
      lvd_status status = pb_status();
      CHECK(status == LVD_E_NOT_FOUND || status == LVD_E_PEER_GONE || status == LVD_E_STATE);
      continue;
    }
    pb_rpc(t);
    pb_release(t);
  }
  return unused;
}

void test_process_tasks_while_loaded(void) {
  pb_set_diagnostics(false);
  enum { MAKERS = 2 };
  pthread_t maker[MAKERS];
  can_start();
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  for (int i = 0; i < MAKERS; i++) CHECK_EQ(pthread_create(&maker[i], NULL, makes_tasks, NULL), 0);
  for (int round = 0; round < SCALED(40) + 5; round++) {
    sleep_ms(round % 7);
    CHECK_EQ(kill((pid_t)pb_process(), SIGKILL), 0);
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  }
  lvd_store_release_u32(&over, 1);
  for (int i = 0; i < MAKERS; i++) CHECK_EQ(pthread_join(maker[i], NULL), 0);
  CHECK_EQ(pb_finish(), LVD_OK);
}
