/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a death leaves: ends that were connected to those of the dead process are free again,
 * whatever their state, and its endpoints are known to be dead, however many there have been at
 * their index since. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_MS = 5000 };
static mcapi_status_t s;
static size_t size;

static void done(mcapi_request_t *r) {
  mcapi_wait(r, &size, LIMIT_MS, &s);
  SAYS(s, MCAPI_SUCCESS);
}

/* The other process: creates an endpoint, does what it is told, reports it, and waits to be
 * killed. */
typedef struct life {
  void (*body)(mcapi_endpoint_t mine);
  mcapi_port_t port;
} life;

static pid_t begin(life l) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(l.port), news = endpoint_of(1, 9);
  l.body(mine);
  mcapi_msg_send(mine, news, "x", 1, 0, &s);
  SAYS(s, MCAPI_SUCCESS);
  for (;;) pause();
}

static void await_news(mcapi_endpoint_t news) {
  char x;
  mcapi_msg_recv(news, &x, 1, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
}

/* Kills it, and waits until its endpoint is known to be gone. */
static void dies(pid_t id, mcapi_endpoint_t from, mcapi_endpoint_t its) {
  CHECK_EQ(kill(id, SIGKILL), 0);
  CHECK_EQ(waitpid(id, NULL, 0), id);
  double start = seconds();
  do {
    mcapi_msg_send(from, its, "", 0, 0, &s);
    CHECK(seconds() - start < LIMIT_MS * 1e-3);
  } while (s == MCAPI_SUCCESS || s == MCAPI_ERR_MEM_LIMIT);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
}

static mcapi_uint_t attribute(mcapi_endpoint_t e, mcapi_uint_t number) {
  mcapi_uint_t value;
  mcapi_endpoint_get_attribute(e, number, &value, sizeof value, &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}

/* The end is free: it carries a scalar in either direction. */
static void is_free(mcapi_endpoint_t e, bool sends) {
  mcapi_request_t r, q;
  mcapi_sclchan_send_hndl_t out;
  mcapi_sclchan_recv_hndl_t in;
  mcapi_timeout_t limit = LIMIT_MS;
  double start = seconds();
  while (attribute(e, MCAPI_ENDP_ATTR_ENDP_STATUS)) CHECK(seconds() - start < LIMIT_MS * 1e-3);
  mcapi_endpoint_t other = endpoint_at(77), from = sends ? e : other, to = sends ? other : e;
  mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_sclchan_send_open_i(&out, from, &r, &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_request_t c;
  mcapi_sclchan_connect_i(from, to, &c, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&c);
  mcapi_sclchan_recv_open_i(&in, to, &q, &s);
  done(&q);
  done(&r);
  mcapi_sclchan_send_uint16(out, 4711, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(mcapi_sclchan_recv_uint16(in, &s), 4711);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_sclchan_send_close_i(out, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_sclchan_recv_close_i(in, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_endpoint_delete(other, &s);
  SAYS(s, MCAPI_SUCCESS);
}

/* ---- it died after this side had closed ------------------------------------------------------ */

static void opens_to_send(mcapi_endpoint_t mine) {
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_connect_i(mine, endpoint_of(1, 1), &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_pktchan_send_open_i(&out, mine, &r, &s);
  done(&r);
}

void test_mcapi_closed_before_death(void) {
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  pid_t id = begin((life){opens_to_send, 3});
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1), news = endpoint_at(9), its = endpoint_of(2, 3);
  mcapi_pktchan_recv_open_i(&in, mine, &r, &s);
  done(&r);
  await_news(news);
  mcapi_pktchan_recv_close_i(in, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_pktchan_recv_open_i(&in, mine, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  dies(id, news, its);
  is_free(mine, false);
  mcapi_pktchan_recv_close_i(in, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_NOTOPEN);
  is_free(mine, true);
  node_ends();
}

/* ---- it died before this side opened --------------------------------------------------------- */

static void connects(mcapi_endpoint_t mine) {
  mcapi_request_t r;
  mcapi_pktchan_connect_i(mine, endpoint_of(1, 1), &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
}

void test_mcapi_connected_before_death(void) {
  for (int sends = 0; sends < 2; sends++) {
    pid_t id = begin((life){connects, 3});
    node_is(1);
    mcapi_endpoint_t mine = endpoint_at(1), news = endpoint_at(9), its = endpoint_of(2, 3);
    await_news(news);
    CHECK(attribute(mine, MCAPI_ENDP_ATTR_ENDP_STATUS) & MCAPI_ENDP_ATTR_STATUS_CONNECTED);
    dies(id, news, its);
    is_free(mine, sends);
    node_ends();
  }
}

/* ---- the same for a broadcast ---------------------------------------------------------------- */

static void hears(mcapi_endpoint_t mine) {
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  lvd_mcapi_broadcast_connect_i(endpoint_of(1, 1), mine, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  mcapi_pktchan_recv_open_i(&in, mine, &r, &s);
  done(&r);
}

void test_mcapi_last_hearer_dies(void) {
  if (over_queues()) SKIP("there are no broadcasts over message queues");
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  pid_t id = begin((life){hears, 3});
  node_is(1);
  mcapi_endpoint_t mine = endpoint_at(1), news = endpoint_at(9), its = endpoint_of(2, 3);
  mcapi_pktchan_send_open_i(&out, mine, &r, &s);
  done(&r);
  await_news(news);
  mcapi_pktchan_send_close_i(out, &r, &s);
  SAYS(s, MCAPI_SUCCESS);
  done(&r);
  dies(id, news, its);
  is_free(mine, true);
  is_free(mine, false);
  node_ends();
}

/* ---- several have died at one index ---------------------------------------------------------- */

static void nothing_more(mcapi_endpoint_t mine) { (void)mine; }

void test_mcapi_deaths_at_a_place(void) {
  mcapi_endpoint_t its[4] = {0};
  FORKS_LATE;
  test_domain();
  for (size_t i = 0; i < COUNT(its); i++) {
    pid_t id = begin((life){nothing_more, 3});
    if (i == 0) node_is(1);
    mcapi_endpoint_t news = i == 0 ? endpoint_at(9) : endpoint_of(1, 9);
    await_news(news);
    its[i] = endpoint_of(2, 3);
    CHECK(i == 0 || its[i] % 1024 == its[0] % 1024); /* else this tests nothing */
    dies(id, news, its[i]);
    for (size_t k = 0; k < i; k++) {
      mcapi_msg_send(news, its[k], "", 0, 0, &s);
      SAYS(s, MCAPI_ERR_ENDP_INVALID);
    }
    /* A deleted endpoint has not died. */
    mcapi_endpoint_t mine = endpoint_at(5);
    CHECK_EQ(mine % 1024, its[0] % 1024);
    mcapi_endpoint_delete(mine, &s);
    mcapi_msg_send(news, mine, "", 0, 0, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}
