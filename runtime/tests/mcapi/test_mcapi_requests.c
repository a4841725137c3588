/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests: the limit, several threads that test, cancel and wait for the same ones, and requests
 * in one list for several targets. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>
#include <pthread.h>
#include <time.h>

static mcapi_status_t s;
static size_t size;

static void done(mcapi_request_t *r) {
  mcapi_wait(r, &size, 5000, &s);
  SAYS(s, MCAPI_SUCCESS);
}

/* ---- the limit ------------------------------------------------------------------------------- */

enum { REQUESTS_MAX = 1 << 17 };
static mcapi_request_t taken[REQUESTS_MAX];

/* Uses all requests. */
static uint32_t take_all(mcapi_endpoint_t at) {
  static char in;
  for (uint32_t i = 0; i < REQUESTS_MAX; i++) {
    mcapi_msg_recv_i(at, &in, 1, &taken[i], &s);
    if (s == MCAPI_ERR_REQUEST_LIMIT) return i;
    SAYS(s, MCAPI_PENDING);
  }
  CHECK(!"there is a limit");
  return 0;
}
static void give_back(uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    mcapi_cancel(&taken[i], &s);
    SAYS(s, MCAPI_SUCCESS);
  }
}

/* A call that fails for lack of a request has had no effect. */
void test_mcapi_request_limit(void) {
  mcapi_request_t r, q;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_uint_t status;
  node_is(1);
  mcapi_endpoint_t mail = endpoint_at(1), from = endpoint_at(2), to = endpoint_at(3);
  uint32_t count = take_all(mail);
  mcapi_pktchan_connect_i(from, to, &r, &s);
  SAYS(s, MCAPI_ERR_REQUEST_LIMIT);
  mcapi_endpoint_get_attribute(from, MCAPI_ENDP_ATTR_ENDP_STATUS, &status, sizeof status, &s);
  CHECK_EQ(status, 0);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  SAYS(s, MCAPI_ERR_REQUEST_LIMIT);
  if (!over_queues()) {
    lvd_mcapi_broadcast_connect_i(from, to, &r, &s);
    SAYS(s, MCAPI_ERR_REQUEST_LIMIT);
  }
  give_back(count);
  mcapi_pktchan_connect_i(from, to, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  done(&r);
  mcapi_pktchan_recv_open_i(&in, to, &q, &s);
  done(&q);
  CHECK_EQ(take_all(mail), count); /* all are free again */
  mcapi_pktchan_send_close_i(out, &r, &s);
  SAYS(s, MCAPI_ERR_REQUEST_LIMIT);
  mcapi_pktchan_send(out, "x", 1, &s);
  SAYS(s, MCAPI_SUCCESS);
  give_back(count);
  mcapi_pktchan_send_close_i(out, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  node_ends();
}

/* ---- concurrent use -------------------------------------------------------------------------- */

enum { REQUESTS = 3, ROUNDS = SCALED(3000) };
static mcapi_request_t shared[REQUESTS];
static uint32_t started, finished, cancelled;
static bool over;

/* Cancels what the other thread waits for; each request is cancelled at most once, and never a
 * newer one. */
static void *cancels(void *nothing) {
  for (uint32_t round = 1; !__atomic_load_n(&over, __ATOMIC_RELAXED);) {
    if (__atomic_load_n(&started, __ATOMIC_ACQUIRE) != round) continue;
    mcapi_status_t t;
    for (int i = 0; i < REQUESTS - 1; i++) {
      mcapi_request_t r = shared[i];
      mcapi_cancel(&r, &t);
      if (t == MCAPI_SUCCESS)
        cancelled++;
      else
        SAYS(t, MCAPI_ERR_REQUEST_INVALID);
      mcapi_cancel(&r, &t);
      SAYS(t, MCAPI_ERR_REQUEST_INVALID);
    }
    __atomic_store_n(&finished, round++, __ATOMIC_RELEASE);
  }
  return nothing;
}

/* Several requests are cancelled during a wait, which reports one of them: none is lost, and all
 * can be used afterwards. */
void test_mcapi_cancel_while_any(void) {
  pthread_t other;
  mcapi_endpoint_t found[REQUESTS];
  mcapi_request_t *all[REQUESTS];
  uint32_t heard = 0, late = 0;
  node_is(1);
  mcapi_endpoint_t mail = endpoint_at(1);
  uint32_t count = take_all(mail);
  give_back(count);
  CHECK_EQ(pthread_create(&other, NULL, cancels, NULL), 0);
  for (uint32_t round = 1; round <= ROUNDS; round++) {
    for (int i = 0; i < REQUESTS; i++) {
      mcapi_endpoint_get_i(test_domain(), 1, 70, &found[i], &shared[i], &s);
      SAYS(s, MCAPI_PENDING);
      all[i] = &shared[i];
    }
    __atomic_store_n(&started, round, __ATOMIC_RELEASE);
    mcapi_uint_t which = mcapi_wait_any(REQUESTS, all, &size, 5000, &s);
    if (s == MCAPI_ERR_REQUEST_CANCELLED) {
      CHECK(which < REQUESTS - 1);
      heard++;
    } else {
      SAYS(s, MCAPI_ERR_REQUEST_INVALID); /* it had completed before the call */
      late++;
    }
    while (__atomic_load_n(&finished, __ATOMIC_ACQUIRE) != round) sched_yield();
    for (int i = 0; i < REQUESTS - 1; i++) {
      mcapi_test(&shared[i], &size, &s);
      SAYS(s, MCAPI_ERR_REQUEST_INVALID);
    }
    mcapi_cancel(&shared[REQUESTS - 1], &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  __atomic_store_n(&over, true, __ATOMIC_RELAXED);
  CHECK_EQ(pthread_join(other, NULL), 0);
  CHECK_EQ(cancelled, ROUNDS * (REQUESTS - 1));
  printf("%u heard of a cancel, %u came too late\n", heard, late);
  CHECK_EQ(take_all(mail), count);
  give_back(count);
  node_ends();
}

/* ---- one list, several targets --------------------------------------------------------------- */

/* A send to a full endpoint delays later sends to it, and none to other endpoints. */
void test_mcapi_full_elsewhere(void) {
  mcapi_request_t last[3];
  mcapi_timeout_t limit = 5000;
  uint32_t n = 0, got, k = 0;
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), full = endpoint_at(2), empty = endpoint_at(3);
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  for (;; n++) {
    mcapi_msg_send_i(from, full, &n, sizeof n, 0, &last[0], &s);
    if (s == MCAPI_PENDING) break;
    SAYS(s, MCAPI_SUCCESS);
    done(&last[0]);
  }
  uint32_t second = n + 1, third = n + 2; /* `n` and these stay unchanged until they are sent */
  mcapi_msg_send_i(from, full, &second, sizeof second, 0, &last[1], &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_msg_send(from, empty, "x", 1, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_msg_send_i(from, empty, "yy", 2, 0, &last[2], &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&last[2]);
  CHECK_EQ(mcapi_msg_available(empty, &s), 2);
  /* Sends to the same endpoint stay in order. */
  mcapi_msg_recv(full, &got, sizeof got, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(got, k++);
  mcapi_msg_send_i(from, full, &third, sizeof third, 0, &last[2], &s);
  SAYS(s, MCAPI_PENDING);
  for (; k <= third; k++) {

    mcapi_msg_recv(full, &got, sizeof got, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(got, k);
    for (int i = 0; i < 3; i++) mcapi_test(&last[i], &size, &s);
  }
  node_ends();
}
