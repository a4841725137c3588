/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Extensions: descriptors for poll, wait policies, packets without a copy. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static mcapi_status_t s;
static size_t size;

static void nap(int ms) { nanosleep(&(struct timespec){.tv_nsec = ms * 1000000L}, NULL); }

static void done(mcapi_request_t *r) {
  CHECK(s == MCAPI_SUCCESS || s == MCAPI_PENDING);
  CHECK(mcapi_wait(r, &size, 20000, &s));
  SAYS(s, MCAPI_SUCCESS);
}

/* True: the descriptor becomes readable within that time. */
static bool comes(int fd, int ms) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  return poll(&p, 1, ms) == 1 && p.revents == POLLIN;
}

/* Nothing has arrived, and the descriptor is not readable. */
static void is_quiet(int fd, mcapi_endpoint_t e) {
  while (comes(fd, 0)) {
    CHECK_EQ(lvd_mcapi_pending_count(e, &s), 0);
    SAYS(s, MCAPI_SUCCESS);
  }
}

/* ---- descriptors ----------------------------------------------------------------------------- */

enum { ROUNDS = SCALED(200) };

/* Node 2 answers messages, then sends packets, closes, opens again and is killed. */
static void other(void) {
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  char in;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1), e = endpoint_of(1, 1), p = endpoint_of(1, 2);
  for (int i = 0; i < ROUNDS; i++) {
    mcapi_msg_recv(mine, &in, 1, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (i % 10 == 0) nap(2);
    mcapi_msg_send(mine, e, &in, 1, 1, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_pktchan_connect_i(mine, p, &r, &s);
  done(&r);
  mcapi_pktchan_send_open_i(&out, mine, &r, &s);
  done(&r);
  for (int i = 0; i < 3; i++) mcapi_pktchan_send(out, &in, 1, &s);
  SAYS(s, MCAPI_SUCCESS);
  pause();
}

void test_mcapi_descriptors(void) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (!id) {
    other();
    _exit(0);
  }
  node_is(1);
  mcapi_endpoint_t e = endpoint_at(1), p = endpoint_at(2), to = endpoint_of(2, 1);
  int fd = lvd_mcapi_descriptor(e, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(fd >= 0);
  CHECK_EQ(lvd_mcapi_descriptor(e, &s), fd);
  is_quiet(fd, e);
  char c = 'x';
  for (int i = 0; i < ROUNDS; i++) {
    mcapi_msg_send(e, to, &c, 1, 1, &s);
    SAYS(s, MCAPI_SUCCESS);
    while (!lvd_mcapi_pending_count(e, &s)) CHECK(comes(fd, 20000));
    SAYS(s, MCAPI_SUCCESS);
    CHECK(comes(fd, 0)); /* as long as it has not been received */
    mcapi_msg_recv(e, &c, 1, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    is_quiet(fd, e);
  }
  /* Packets, and the end of the channel. */
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  int channel = lvd_mcapi_descriptor(p, &s);
  mcapi_pktchan_recv_open_i(&in, p, &r, &s);
  done(&r);
  for (int i = 0; i < 3; i++) {
    void *packet;
    while (!lvd_mcapi_pending_count(p, &s)) CHECK(comes(channel, 20000));
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_release(packet, &s);
  }
  is_quiet(channel, p);
  kill(id, SIGKILL);
  waitpid(id, NULL, 0);
  CHECK(comes(channel, 20000));
  while (!lvd_mcapi_pending_count(p, &s) && s == MCAPI_SUCCESS) CHECK(comes(channel, 20000));
  SAYS(s, MCAPI_ERR_TRANSMISSION);
  CHECK(comes(channel, 0));
  /* It is closed with its endpoint. */
  mcapi_endpoint_delete(e, &s);
  SAYS(s, MCAPI_SUCCESS);
  struct pollfd closed = {.fd = fd, .events = POLLIN};
  CHECK(poll(&closed, 1, 0) == 1 && closed.revents & POLLNVAL);
  CHECK_EQ(lvd_mcapi_descriptor(e, &s), -1);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  CHECK_EQ(lvd_mcapi_pending_count(e, &s), 0);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  node_ends();
  lvd_mcapi_descriptor(p, &s);
  SAYS(s, MCAPI_ERR_NODE_NOTINIT);
}

/* ---- wait policies --------------------------------------------------------------------------- */

static void *echo(void *how) {
  mcapi_status_t status;
  char c;
  size_t n;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1), e = endpoint_of(1, 1);
  lvd_mcapi_set_wait_policy(mine, (int)(intptr_t)how, 20, &status);
  SAYS(status, MCAPI_SUCCESS);
  for (int i = 0; i < ROUNDS; i++) {
    mcapi_msg_recv(mine, &c, 1, &n, &status);
    SAYS(status, MCAPI_SUCCESS);
    mcapi_msg_send(mine, e, &c, 1, 1, &status);
    SAYS(status, MCAPI_SUCCESS);
  }
  node_ends();
  return NULL;
}

void test_mcapi_ways_to_wait(void) {
  char c = 'x';
  mcapi_timeout_t limit = 300;
  for (int how = LVD_MCAPI_SPIN_THEN_SLEEP; how <= LVD_MCAPI_SLEEP; how++) {
    pthread_t thread;
    node_is(1);
    mcapi_endpoint_t e = endpoint_at(1);
    lvd_mcapi_set_wait_policy(e, how, 20, &s);
    SAYS(s, MCAPI_SUCCESS);
    pthread_create(&thread, NULL, echo, (void *)(intptr_t)how);
    mcapi_endpoint_t to = endpoint_of(2, 1);
    for (int i = 0; i < ROUNDS; i++) {
      mcapi_msg_send(e, to, &c, 1, 1, &s);
      SAYS(s, MCAPI_SUCCESS);
      mcapi_msg_recv(e, &c, 1, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    pthread_join(thread, NULL);
    /* Measures the CPU time of a wait without an event. */
    mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
    uint64_t before = cpu_ns();
    double start = seconds();
    mcapi_msg_recv(e, &c, 1, &size, &s);
    SAYS(s, MCAPI_TIMEOUT);
    double used = (double)(cpu_ns() - before) * 1e-9, took = seconds() - start;
    printf("%d: %.1f ms of CPU time in %.1f ms\n", how, used * 1e3, took * 1e3);
    CHECK(took >= 0.29);
    if (how == LVD_MCAPI_SPIN)
      CHECK(used > 0.01);
    else
      CHECK(used < 0.1 * took);
    lvd_mcapi_set_wait_policy(e, 3, 0, &s);
    SAYS(s, MCAPI_ERR_PARAMETER);
    lvd_mcapi_set_wait_policy(to, how, 0, &s);
    SAYS(s, MCAPI_ERR_ENDP_INVALID);
    node_ends();
  }
}

/* ---- loans ----------------------------------------------------------------------------------- */

void test_mcapi_loans(void) {
  mcapi_request_t r, q;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  void *packet;
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  mcapi_pktchan_connect_i(from, to, &r, &s);
  done(&r);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  mcapi_pktchan_recv_open_i(&in, to, &q, &s);
  done(&r);
  done(&q);
  size_t all = 0;
  for (uint32_t i = 0; i < 2000; i++) {
    size_t room = i * 37 % (MCAPI_MAX_PACKET_SIZE + 1), length = room - room / 3;
    unsigned char *loan = lvd_mcapi_buffer_acquire(out, room, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(loan != NULL && (uintptr_t)loan % 64 == 0);
    memset(loan, (int)i, room);
    if (i % 7 == 0) { /* the loan is returned */
      lvd_mcapi_buffer_release(out, loan, &s);
      SAYS(s, MCAPI_SUCCESS);
      mcapi_pktchan_send(out, &i, sizeof i, &s);
      SAYS(s, MCAPI_SUCCESS);
      length = sizeof i;
    } else {
      lvd_mcapi_buffer_send(out, loan, length, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(size, length);
    if (i % 7 == 0) {
      CHECK(memcmp(packet, &i, sizeof i) == 0);
    } else {
      const unsigned char *at = packet;
      for (size_t k = 0; k < size; k += 101) CHECK_EQ(at[k], (unsigned char)i);
    }
    mcapi_pktchan_release(packet, &s);
    SAYS(s, MCAPI_SUCCESS);
    all += size;
  }
  CHECK(all > 10000000);
  /* One loan at a time, and no other packet meanwhile. */
  void *loan = lvd_mcapi_buffer_acquire(out, 100, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK(!lvd_mcapi_buffer_acquire(out, 100, &s));
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  mcapi_pktchan_send(out, &r, sizeof r, &s);
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  lvd_mcapi_buffer_send(out, &r, 1, &s);
  SAYS(s, MCAPI_ERR_BUF_INVALID);
  lvd_mcapi_buffer_send(out, loan, 101, &s);
  SAYS(s, MCAPI_ERR_PKT_SIZE);
  lvd_mcapi_buffer_send(in, loan, 100, &s);
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  lvd_mcapi_buffer_release(out, loan, &s);
  SAYS(s, MCAPI_SUCCESS);
  lvd_mcapi_buffer_release(out, loan, &s);
  SAYS(s, MCAPI_ERR_BUF_INVALID);
  CHECK(!lvd_mcapi_buffer_acquire(out, MCAPI_MAX_PACKET_SIZE + 1, &s));
  SAYS(s, MCAPI_ERR_PKT_SIZE);
  CHECK(!lvd_mcapi_buffer_acquire(in, 100, &s));
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  /* A loan waits for room, up to its timeout. */
  uint32_t sent = 0;
  uint32_t most = over_queues() ? 1 : 6;
  while (sent < most && (loan = lvd_mcapi_buffer_acquire(out, MCAPI_MAX_PACKET_SIZE, &s))) {
    lvd_mcapi_buffer_send(out, loan, MCAPI_MAX_PACKET_SIZE, &s);
    SAYS(s, MCAPI_SUCCESS);
    sent++;
  }
  mcapi_pktchan_recv_close_i(in, &r, &s);
  done(&r);
  loan = lvd_mcapi_buffer_acquire(out, 10, &s);
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  node_ends();
}

/* If the user's limit made the queue small, it never has room for a long packet: a loan fails like
 * a send. */
void test_mcapi_loan_too_long(void) {
  static char packet[20000];
  mcapi_request_t r, q;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_timeout_t limit = 5000;
  struct rlimit queues;
  CHECK_EQ(getrlimit(RLIMIT_MSGQUEUE, &queues), 0);
  if (over_queues() && queues.rlim_max < 200000) SKIP("the limit of message queues cannot be set");
  /* so little is left of the limit that a queue holds messages of 1 KiB */
  queues.rlim_cur = queues.rlim_max = 200000;
  if (over_queues()) CHECK_EQ(setrlimit(RLIMIT_MSGQUEUE, &queues), 0);
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_connect_i(from, to, &r, &s);
  done(&r);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  mcapi_pktchan_recv_open_i(&in, to, &q, &s);
  done(&q);
  done(&r);
  mcapi_status_t expected = over_queues() ? MCAPI_ERR_MEM_LIMIT : MCAPI_SUCCESS;
  mcapi_pktchan_send(out, packet, sizeof packet, &s);
  SAYS(s, expected);
  CHECK((lvd_mcapi_buffer_acquire(out, sizeof packet, &s) == NULL) == over_queues());
  SAYS(s, expected);
  node_ends();
}
