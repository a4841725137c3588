/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which node a caller has: threads and fibers that become nodes, end and become nodes again, and
 * calls in progress when their node ends. */
#include "test_mcapi.h"

#include <levada/fiber.h>
#include <pthread.h>

static mcapi_status_t try_node(mcapi_node_t node) { return node_with(node, 0, UINT32_MAX); }

/* Two threads that alternate, by `turn`. */
static uint32_t turn;
static void is_turn(uint32_t n) {
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != n) sched_yield();
}
static void next_turn(void) { __atomic_fetch_add(&turn, 1, __ATOMIC_RELEASE); }

static void *stays(void *port) {
  mcapi_status_t t;
  is_turn(0);
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at((mcapi_port_t)(uintptr_t)port);
  next_turn();
  is_turn(2);
  CHECK_EQ(mcapi_node_id_get(&t), 2);
  SAYS(t, MCAPI_SUCCESS);
  mcapi_msg_available(mine, &t); /* its endpoint still exists */
  SAYS(t, MCAPI_SUCCESS);
  node_ends();
  return NULL;
}

/* A node that has ended can be initialized again, whatever node uses its object meanwhile. */
void test_mcapi_node_again(void) {
  pthread_t other;
  mcapi_status_t t;
  node_is(1);
  node_ends();
  CHECK_EQ(pthread_create(&other, NULL, stays, (void *)1), 0);
  is_turn(1);
  SAYS(try_node(1), MCAPI_SUCCESS);
  CHECK_EQ(mcapi_node_id_get(&t), 1);
  SAYS(try_node(3), MCAPI_ERR_NODE_INITIALIZED);
  node_ends();
  next_turn();
  CHECK_EQ(pthread_join(other, NULL), 0);
}

/* After its node has ended, a caller does not use another's node, and cannot end it. */
void test_mcapi_end_twice(void) {
  pthread_t other;
  mcapi_status_t t;
  node_is(1);
  CHECK_EQ(pthread_create(&other, NULL, stays, (void *)1), 0);
  is_turn(1);
  node_ends();
  CHECK_EQ(mcapi_node_id_get(&t), MCAPI_NODE_INVALID);
  SAYS(t, MCAPI_ERR_NODE_NOTINIT);
  mcapi_finalize(&t);
  SAYS(t, MCAPI_ERR_NODE_NOTINIT);
  next_turn();
  CHECK_EQ(pthread_join(other, NULL), 0);
}

/* The same for a caller that has ended the process's node, which it had not initialized. */
static void *ends_the_first(void *nothing) {
  mcapi_status_t t;
  mcapi_finalize(&t);
  SAYS(t, MCAPI_SUCCESS);
  mcapi_finalize(&t);
  SAYS(t, MCAPI_ERR_NODE_NOTINIT);
  return nothing;
}

void test_mcapi_guest_ends(void) {
  pthread_t other, guest;
  node_is(1);
  CHECK_EQ(pthread_create(&other, NULL, stays, (void *)1), 0);
  is_turn(1);
  CHECK_EQ(pthread_create(&guest, NULL, ends_the_first, NULL), 0);
  CHECK_EQ(pthread_join(guest, NULL), 0);
  next_turn();
  CHECK_EQ(pthread_join(other, NULL), 0);
}

/* ---- fibers ---------------------------------------------------------------------------------- */

static void leaves_its_node(void *node) { node_is((mcapi_node_t)(uintptr_t)node); }

static void is_no_node_yet(void *node) {
  mcapi_status_t t;
  SAYS(try_node((mcapi_node_t)(uintptr_t)node), MCAPI_SUCCESS);
  CHECK_EQ(mcapi_node_id_get(&t), (mcapi_node_t)(uintptr_t)node);
  node_ends();
  mcapi_finalize(&t);
  SAYS(t, MCAPI_ERR_NODE_NOTINIT); /* and not the first node's */
}

static void *ends_one(void *nothing) {
  mcapi_status_t t;
  mcapi_finalize(&t);
  SAYS(t, MCAPI_SUCCESS);
  return nothing;
}

/* A fiber that ends without ending its node leaves it, and the next fiber on its stack does not get
 * it. */
void test_mcapi_fiber_leaves(void) {
  test_domain();
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  lvd_fiber *f;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (uintptr_t i = 0; i < 4; i++) {
    CHECK_EQ(lvd_fiber_start(app, leaves_its_node, (void *)(2 * i), NULL, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    CHECK_EQ(lvd_fiber_start(app, is_no_node_yet, (void *)(2 * i + 1), NULL, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  }
  for (int i = 0; i < 4;
       i++) { /* these nodes are the process's: any thread can end one, so none is left */
    pthread_t guest;
    CHECK_EQ(pthread_create(&guest, NULL, ends_one, NULL), 0);
    CHECK_EQ(pthread_join(guest, NULL), 0);
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- ending during calls --------------------------------------------------------------------- */

enum { ENDS = SCALED(300), MEETINGS = SCALED(800) };
static bool over;
static mcapi_endpoint_t here, there;
static mcapi_pktchan_send_hndl_t out;
static mcapi_pktchan_recv_hndl_t in;

/* Calls of the process's node, whichever it is: any status of a node or endpoint that does not
 * exist. */
static void *goes_on(void *what) {
  for (uint32_t n = 0; !__atomic_load_n(&over, __ATOMIC_RELAXED); n++) {
    mcapi_status_t t;
    mcapi_request_t r;
    size_t size;
    void *packet;
    mcapi_endpoint_t from = __atomic_load_n(&here, __ATOMIC_RELAXED),
                     to = __atomic_load_n(&there, __ATOMIC_RELAXED);
    switch ((n + (uint32_t)(uintptr_t)what) % 6) {
    case 0:
      mcapi_msg_send(from, to, &n, sizeof n, 0, &t);
      break;
    case 1:
      mcapi_msg_recv(to, &n, sizeof n, &size, &t);
      break;
    case 2:
      mcapi_msg_recv_i(to, &n, sizeof n, &r, &t);
      if (t == MCAPI_PENDING || t == MCAPI_SUCCESS) mcapi_wait(&r, &size, 1, &t);
      if (t == MCAPI_TIMEOUT) mcapi_cancel(&r, &t);
      break;
    case 3:
      mcapi_pktchan_send(__atomic_load_n(&out, __ATOMIC_RELAXED), &n, sizeof n, &t);
      break;
    case 4:
      mcapi_pktchan_recv(__atomic_load_n(&in, __ATOMIC_RELAXED), &packet, &size, &t);
      if (t == MCAPI_SUCCESS) mcapi_pktchan_release(packet, &t);
      break;
    default:
      mcapi_msg_available(to, &t);
    }
  }
  return NULL;
}

static mcapi_endpoint_t hasty(mcapi_port_t port) {
  mcapi_status_t t;
  mcapi_timeout_t limit = 1;
  mcapi_endpoint_t e = endpoint_at(port);
  mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &t);
  SAYS(t, MCAPI_SUCCESS);
  return e;
}

/* Threads are in calls of all kinds, short and long, whenever their node ends. Its memory is
 * unmapped then, so a call that is still in progress traps. */
void test_mcapi_end_amid_calls(void) {
  pthread_t thread[3];
  test_domain();
  for (uintptr_t i = 0; i < COUNT(thread); i++)
    CHECK_EQ(pthread_create(&thread[i], NULL, goes_on, (void *)i), 0);
  for (int i = 0; i < ENDS; i++) {
    mcapi_request_t r[2];
    mcapi_status_t t;
    mcapi_pktchan_send_hndl_t sends;
    mcapi_pktchan_recv_hndl_t receives;
    node_is(1);
    mcapi_endpoint_t a = hasty(1), b = hasty(2), c = hasty(3), d = hasty(4);
    mcapi_pktchan_connect_i(c, d, &r[0], &t);
    SAYS(t, MCAPI_SUCCESS);
    mcapi_pktchan_send_open_i(&sends, c, &r[0], &t);
    mcapi_pktchan_recv_open_i(&receives, d, &r[1], &t);
    __atomic_store_n(&out, sends, __ATOMIC_RELAXED);
    __atomic_store_n(&in, receives, __ATOMIC_RELAXED);
    __atomic_store_n(&here, a, __ATOMIC_RELAXED);
    __atomic_store_n(&there, b, __ATOMIC_RELAXED);
    for (int k = 0; k < i % 7; k++) sched_yield();
    node_ends();
  }
  __atomic_store_n(&over, true, __ATOMIC_RELAXED);
  for (size_t i = 0; i < COUNT(thread); i++) CHECK_EQ(pthread_join(thread[i], NULL), 0);
}

/* One of several threads that delete an endpoint succeeds; the node may end meanwhile. */
static uint32_t deleted, round_of;
static void *deletes(void *nothing) {
  for (uint32_t seen = 0;;) {
    uint32_t now = __atomic_load_n(&round_of, __ATOMIC_ACQUIRE);
    if (now == UINT32_MAX) return nothing;
    if (now == seen) sched_yield();
    if (now == seen) continue;
    seen = now;
    mcapi_status_t t;
    mcapi_endpoint_delete(__atomic_load_n(&here, __ATOMIC_RELAXED), &t);
    if (t == MCAPI_SUCCESS)
      __atomic_fetch_add(&deleted, 1, __ATOMIC_RELAXED);
    else if (t != MCAPI_ERR_NODE_NOTINIT)
      SAYS(t, MCAPI_ERR_ENDP_INVALID);
    next_turn();
  }
}

void test_mcapi_delete_twice(void) {
  pthread_t thread[2];
  mcapi_status_t t;
  test_domain();
  for (size_t i = 0; i < COUNT(thread); i++)
    CHECK_EQ(pthread_create(&thread[i], NULL, deletes, NULL), 0);
  for (uint32_t i = 1; i <= MEETINGS; i++) {
    bool ends = i % 4 == 0;
    if (i == 1 || i % 4 == 1) node_is(1);
    mcapi_endpoint_t first = i % 2 ? endpoint_at(9) : 0; /* not always at the first index */
    __atomic_store_n(&here, endpoint_at(1), __ATOMIC_RELAXED);
    __atomic_store_n(&deleted, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&turn, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&round_of, i, __ATOMIC_RELEASE);
    if (ends) node_ends();
    is_turn(COUNT(thread));
    CHECK(ends ? deleted <= 1 : deleted == 1);
    if (!ends && first) {
      mcapi_endpoint_delete(first, &t);
      SAYS(t, MCAPI_SUCCESS);
    }
  }
  __atomic_store_n(&round_of, UINT32_MAX, __ATOMIC_RELEASE);
  for (size_t i = 0; i < COUNT(thread); i++) CHECK_EQ(pthread_join(thread[i], NULL), 0);
  if (MEETINGS % 4) node_ends();
}
