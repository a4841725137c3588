/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Requests: testing, waiting, cancelling, completed ones. */
#include "conformance.h"

#ifndef CONFORM_NO_THREADS
#include <pthread.h>
#endif
#include <stdlib.h>
#include <string.h>

static mcapi_endpoint_t from, to;

static void test_and_wait(void) {
  mcapi_request_t r, none;
  char b[16] = "";
  size_t n = 77;
  memset(&none, 0, sizeof none);
  begin(ONE);
  from = created(1);
  to = created(2);
  IS(!C(test)(&none, &n, &s), "what is all zeros is not done");
  SAYS("mcapi_test of nothing", MCAPI_ERR_REQUEST_INVALID);
  IS(!C(wait)(&none, &n, MCAPI_TIMEOUT_IMMEDIATE, &s), "nor waited for");
  SAYS("mcapi_wait for nothing", MCAPI_ERR_REQUEST_INVALID);
  C(test)(NULL, &n, &s);
  FAILS("mcapi_test without a request");
  C(wait)(NULL, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
  FAILS("mcapi_wait without a request");
  C(cancel)(&none, &s);
  SAYS("mcapi_cancel of nothing", MCAPI_ERR_REQUEST_INVALID);
  C(cancel)(NULL, &s);
  FAILS("mcapi_cancel without a request");

  C(msg_recv_i)(to, b, sizeof b, &r, &s);
  SAYS("begun to receive", MCAPI_PENDING);
  IS(!C(test)(&r, &n, &s), "not done");
  SAYS("mcapi_test", MCAPI_PENDING);
  IS(!C(wait)(&r, &n, 20 * CONFORM_MS, &s), "not in time");
  SAYS("mcapi_wait", MCAPI_TIMEOUT);
  IS(!C(wait)(&r, &n, MCAPI_TIMEOUT_IMMEDIATE, &s), "nor at once");
  SAYS("mcapi_wait at once", MCAPI_TIMEOUT);
  C(msg_send)(from, to, "come", 5, CONFORM_URGENT, &s);
  IS(C(wait)(&r, &n, 2000 * CONFORM_MS, &s), "done");
  SAYS("mcapi_wait", MCAPI_SUCCESS);
  IS(n == 5 && strcmp(b, "come") == 0, "it has come");
  IS(!C(wait)(&r, &n, MCAPI_TIMEOUT_IMMEDIATE, &s), "used up");
  SAYS("mcapi_wait again", MCAPI_ERR_REQUEST_INVALID);
  C(test)(&r, &n, &s);
  SAYS("mcapi_test again", MCAPI_ERR_REQUEST_INVALID);
  C(cancel)(&r, &s);
  SAYS("mcapi_cancel of what is done", MCAPI_ERR_REQUEST_INVALID);

  C(msg_send)(from, to, "first", 6, CONFORM_URGENT, &s);
  C(msg_recv_i)(to, b, 2, &r, &s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_PENDING || s == MCAPI_ERR_MSG_TRUNCATED,
     "begun to receive into too little");
  if (s != MCAPI_ERR_MSG_TRUNCATED) {
    C(wait)(&r, &n, 2000 * CONFORM_MS, &s);
    SAYS("then it says so", MCAPI_ERR_MSG_TRUNCATED);
  }
  end();
}

static void several(void) {
  mcapi_request_t r[3], *rs[3] = {&r[0], &r[1], &r[2]}, none, *with_none[2] = {&none, &r[0]};
  char b[3][16];
  size_t n = 77;
  memset(&none, 0, sizeof none);
  begin(ONE);
  from = created(1);
  mcapi_endpoint_t at[3] = {created(2), created(3), created(4)};
  for (int i = 0; i < 3; i++) {
    C(msg_recv_i)(at[i], b[i], sizeof b[i], &r[i], &s);
    SAYS("begun to receive", MCAPI_PENDING);
  }
  C(wait_any)(3, rs, &n, 20 * CONFORM_MS, &s);
  SAYS("none is done in time", MCAPI_TIMEOUT);
  C(wait_any)(2, with_none, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("one is none", MCAPI_ERR_REQUEST_INVALID);
  C(wait_any)(3, NULL, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
  FAILS("without requests");
  C(wait_any)(0, rs, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
  choice("mcapi_wait_any for 0 requests", s);
  for (int i = 2; i >= 0; i--) {
    C(msg_send)(from, at[i], "some", (size_t)i + 1, CONFORM_URGENT, &s);
    mcapi_uint_t which = C(wait_any)((size_t)i + 1, rs, &n, 2000 * CONFORM_MS, &s);
    SAYS("one is done", MCAPI_SUCCESS);
    IS(which == (mcapi_uint_t)i && n == (size_t)i + 1, "it is the one that was sent to");
  }
  C(wait_any)(1, rs, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("used up", MCAPI_ERR_REQUEST_INVALID);
  end();
}

static void cancelled(void) {
  mcapi_request_t r, g;
  mcapi_endpoint_t found;
  char b[16], c[16] = "";
  size_t n = 0;
  begin(ONE);
  from = created(1);
  to = created(2);
  C(msg_recv_i)(to, b, sizeof b, &r, &s);
  C(cancel)(&r, &s);
  SAYS("mcapi_cancel", MCAPI_SUCCESS);
  IS(!C(test)(&r, &n, &s), "it is not done");
  SAYS_EITHER("mcapi_test of a cancelled one", MCAPI_ERR_REQUEST_INVALID,
              MCAPI_ERR_REQUEST_CANCELLED);
  choice("mcapi_test of a cancelled request", s);
  C(msg_send)(from, to, "kept", 5, CONFORM_URGENT, &s);
  C(msg_recv)(to, c, sizeof c, &n, &s);
  IS(s == MCAPI_SUCCESS && strcmp(c, "kept") == 0, "what comes later is not the cancelled one's");
  C(endpoint_get_i)(domain, TWO, CONFORM_PORT + 9, &found, &g, &s);
  SAYS("begun to get", MCAPI_PENDING);
  C(cancel)(&g, &s);
  SAYS("it can be cancelled", MCAPI_SUCCESS);
  C(msg_recv_i)(to, b, sizeof b, &r, &s);
  C(msg_send)(from, to, "done", 5, CONFORM_URGENT, &s);
  C(cancel)(&r, &s);
  choice("to cancel what could be done, and was not asked for", s);
  end();
}

/* Pending when the endpoint is deleted. */
static void deleted_under(void) {
  mcapi_request_t r;
  char b[16];
  size_t n;
  begin(ONE);
  to = created(2);
  C(msg_recv_i)(to, b, sizeof b, &r, &s);
  SAYS("begun to receive", MCAPI_PENDING);
  C(endpoint_delete)(to, &s);
  choice("to delete an endpoint at which a receive is pending", s);
  if (s == MCAPI_SUCCESS) {
    C(wait)(&r, &n, 2000 * CONFORM_MS, &s);
    FAILS("that receive");
    choice("that receive", s);
  }
  end();
}

static void limit(void) {
  mcapi_request_t *all = malloc(CONFORM_MANY * sizeof *all);
  static char b[CONFORM_MANY];
  int n = 0;
  begin(ONE);
  to = created(2);
  for (; n < CONFORM_MANY; n++) {
    C(msg_recv_i)(to, &b[n], 1, &all[n], &s);
    if (s != MCAPI_PENDING) break;
  }
  choice_number("requests that a node could begin", (unsigned long)n);
  choice("one more", s);
  IS(s == MCAPI_PENDING || s == MCAPI_ERR_REQUEST_LIMIT || s == MCAPI_ERR_MEM_LIMIT,
     "what is too many is refused as the standard says");
  for (int i = 0; i < n; i++) {
    mcapi_cancel(&all[i], &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS("all are cancelled", MCAPI_SUCCESS);
  C(msg_recv_i)(to, b, 1, &all[0], &s);
  SAYS("there is one again", MCAPI_PENDING);
  end();
  free(all);
}

#ifndef CONFORM_NO_THREADS
/* ---- a second thread ------------------------------------------------------------------------- */

static mcapi_request_t shared;
static volatile mcapi_status_t others;

static void *waits(void *unused) {
  mcapi_status_t status;
  size_t n;
  mcapi_wait(&shared, &n, 5000 * CONFORM_MS, &status);
  others = status;
  return unused;
}

/* Another thread of the node waits for what this one cancels, and for what this one waits for, too.
 * Whether a node can have several threads depends on the implementation. */
static void second_thread(void) {
  pthread_t thread;
  char b[16];
  size_t n;
  begin(ONE);
  from = created(1);
  to = created(2);
  C(msg_recv_i)(to, b, sizeof b, &shared, &s);
  pthread_create(&thread, NULL, waits, NULL);
  nap(100);
  C(cancel)(&shared, &s);
  mcapi_status_t how = s;
  pthread_join(thread, NULL);
  if (others == MCAPI_ERR_NODE_NOTINIT || others == MCAPI_ERR_REQUEST_INVALID) {
    choice("another thread that waits for a node's request", others);
  } else {
    s = how;
    SAYS("mcapi_cancel of what another waits for", MCAPI_SUCCESS);
    s = others;
    SAYS("the waiter gets the cancellation", MCAPI_ERR_REQUEST_CANCELLED);
    C(msg_recv_i)(to, b, sizeof b, &shared, &s);
    pthread_create(&thread, NULL, waits, NULL);
    nap(100);
    C(wait)(&shared, &n, MCAPI_TIMEOUT_IMMEDIATE, &s);
    choice("to wait for what another thread waits for", s);
    C(msg_send)(from, to, "x", 1, CONFORM_URGENT, &s);
    pthread_join(thread, NULL);
    s = others;
    SAYS("the first waiter gets it", MCAPI_SUCCESS);
  }
  end();
}

#endif

const conform_case request_cases[] = {{"test and wait", test_and_wait, NULL, 0},
                                      {"wait for any", several, NULL, 0},
                                      {"cancel", cancelled, NULL, 0},
                                      {"a deleted endpoint's request", deleted_under, NULL, 0},
                                      {"many requests", limit, NULL, 0},
#ifndef CONFORM_NO_THREADS
                                      {"another thread's request", second_thread, NULL, 0},
#endif
                                      {NULL, NULL, NULL, 0}};
