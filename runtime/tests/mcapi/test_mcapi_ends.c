/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Early and concurrent ends: finalizing a node during its calls, cancelling an open, testing a
 * request from two threads, unlimited references, deleted endpoints. */
#include "mcapi/domain/domain.h"

#include "test_mcapi.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static mcapi_status_t s;
static mcapi_request_t r;
static size_t size;

static void nap(void) { nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); }

/* ---- finalizing a node during its calls ------------------------------------------------------ */

typedef struct caller {
  mcapi_endpoint_t at, to;
  int how;
  mcapi_status_t status;
} caller;

static void *call(void *argument) {
  caller *c = argument;
  mcapi_request_t q;
  size_t got;
  char in[8];
  switch (c->how) {
  case 0:
    mcapi_msg_recv(c->at, in, sizeof in, &got, &c->status);
    break;
  case 1:
    mcapi_endpoint_get(test_domain(), 77, 7, MCAPI_TIMEOUT_INFINITE, &c->status);
    break;
  case 2:
    mcapi_endpoint_get_i(test_domain(), 77, 7, &c->to, &q, &c->status);
    mcapi_wait(&q, &got, MCAPI_TIMEOUT_INFINITE, &c->status);
    break;
  case 3:
    for (;;) {
      mcapi_msg_send(c->at, c->to, in, sizeof in, 0, &c->status);
      if (c->status != MCAPI_SUCCESS) break;
    }
    break;
  }
  return NULL;
}

/* All calls return an error, whatever they wait for, and touch nothing of the node any more. */
void test_mcapi_finalize_inside(void) {
  for (int round = 0; round < SCALED(40) + 1; round++) {
    pthread_t thread[4];
    caller c[4];
    node_is(1);
    mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2);
    for (int i = 0; i < 4; i++) {
      c[i] = (caller){.at = a, .to = b, .how = i};
      CHECK_EQ(pthread_create(&thread[i], NULL, call, &c[i]), 0);
    }
    if (round % 4 == 0) nap();
    node_ends();
    for (int i = 0; i < 4; i++) CHECK_EQ(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 4; i++) CHECK(c[i].status != MCAPI_SUCCESS);
    mcapi_finalize(&s);
    SAYS(s, MCAPI_ERR_NODE_NOTINIT);
  }
}

/* ---- cancelling an open ---------------------------------------------------------------------- */

void test_mcapi_open_cancelled(void) {
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  mcapi_pktchan_recv_hndl_t in;
  mcapi_pktchan_send_hndl_t out;
  mcapi_sclchan_recv_hndl_t scalars;
  mcapi_request_t q;
  mcapi_uint_t status;
  void *packet;
  /* Not connected yet: no state of the open is left, not even its type. */
  mcapi_pktchan_recv_open_i(&in, to, &r, &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_cancel(&r, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_endpoint_get_attribute(to, MCAPI_ENDP_ATTR_ENDP_STATUS, &status, sizeof status, &s);
  CHECK_EQ(status, 0);
  mcapi_sclchan_recv_open_i(&scalars, to, &r, &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_cancel(&r, &s);
  SAYS(s, MCAPI_SUCCESS);
  /* The end can be opened again, and works when it is connected. */
  for (int i = 0; i < 3; i++) {
    mcapi_pktchan_recv_open_i(&in, to, &r, &s);
    SAYS(s, MCAPI_PENDING);
    mcapi_pktchan_recv_open_i(&in, to, &q, &s);
    SAYS(s, MCAPI_ERR_CHAN_OPENPENDING);
    mcapi_cancel(&r, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_pktchan_connect_i(from, to, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_wait(&r, &size, MCAPI_TIMEOUT_INFINITE, &s);
  mcapi_pktchan_recv_open_i(&in, to, &r, &s);
  mcapi_pktchan_send_open_i(&out, from, &q, &s);
  CHECK(mcapi_wait(&r, &size, 1000, &s));
  CHECK(mcapi_wait(&q, &size, 1000, &s));
  mcapi_pktchan_send(out, "x", 1, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_recv(in, &packet, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  node_ends();
}

/* ---- testing a request from two threads ------------------------------------------------------ */

static mcapi_request_t shared;
static int concluded;

static void *test_it(void *barrier) {
  mcapi_status_t mine;
  size_t got;
  pthread_barrier_wait(barrier);
  if (mcapi_test(&shared, &got, &mine)) __atomic_add_fetch(&concluded, 1, __ATOMIC_RELAXED);
  return NULL;
}

void test_mcapi_tested_twice(void) {
  pthread_barrier_t both;
  pthread_barrier_init(&both, NULL, 2);
  node_is(1);
  for (int round = 0; round < SCALED(400); round++) {
    mcapi_endpoint_t found = 0;
    mcapi_uint_t count;
    pthread_t one, two;
    mcapi_endpoint_get_i(test_domain(), 1, 5, &found, &shared, &s);
    SAYS(s, MCAPI_PENDING);
    mcapi_endpoint_t e = endpoint_at(5);
    CHECK_EQ(pthread_create(&one, NULL, test_it, &both), 0);
    CHECK_EQ(pthread_create(&two, NULL, test_it, &both), 0);
    pthread_join(one, NULL);
    pthread_join(two, NULL);
    CHECK_EQ(found, e);
    mcapi_endpoint_get_attribute(e, MCAPI_ENDP_ATTR_GET_COUNT, &count, sizeof count, &s);
    CHECK_EQ(count, 1);
    mcapi_endpoint_delete(e, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  CHECK_EQ(concluded, SCALED(400)); /* each by exactly one of them */
  node_ends();
}

/* ---- many references; deleted endpoints ------------------------------------------------------ */

void test_mcapi_get_limit(void) {
  char path[96];
  node_is(1);
  mcapi_endpoint_t e = endpoint_at(1);
  snprintf(path, sizeof path, "/dev/shm/levada-%u.0/mcapi-%u", (unsigned)geteuid(), test_domain());
  /* A billion references, set directly. The descriptor stays open: closing it would release the
   * file lock. */
  int fd = open(path, O_RDWR | O_CLOEXEC);
  CHECK(fd >= 0);
  mc_tables *t = mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(t != MAP_FAILED);
  lvd_store_relaxed_u32(&t->endpoint[e % MC_ENDPOINTS].get_count, (1u << 30) - 1);
  CHECK_EQ(mcapi_endpoint_get(test_domain(), 1, 1, 0, &s), e);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(mcapi_endpoint_get(test_domain(), 1, 1, 0, &s), 0);
  SAYS(s, MCAPI_ERR_ENDP_GET_LIMIT);
  mcapi_endpoint_release(e, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(mcapi_endpoint_get(test_domain(), 1, 1, 0, &s), e);
  SAYS(s, MCAPI_SUCCESS);
  munmap(t, sizeof *t);
  node_ends();
}

/* A message to a deleted endpoint is dropped; one to an endpoint that never existed is refused. */
void test_mcapi_deleted(void) {
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2);
  mcapi_endpoint_delete(b, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_msg_send(a, b, "x", 1, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_endpoint_t next = endpoint_at(2); /* with the same index and port */
  CHECK(next != b);
  mcapi_msg_send(a, b, "x", 1, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(mcapi_msg_available(next, &s), 0);
  mcapi_msg_send(a, b + MC_ENDPOINTS * 100, "x", 1, 0, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_msg_send(b, a, "x", 1, 0, &s); /* sending from it is not possible any more */
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  node_ends();
}
