/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Broadcasts: packet channels with several receivers, which join, are slow, leave and die. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  PACKETS = SCALED(20000) + 2000, /* more than there is room for: the sender has to wait */
  HEARERS = 3
};

static _Thread_local mcapi_status_t s;
static _Thread_local size_t size;

static void done(mcapi_request_t *r) {
  CHECK(s == MCAPI_SUCCESS || s == MCAPI_PENDING);
  CHECK(mcapi_wait(r, &size, 20000, &s));
  SAYS(s, MCAPI_SUCCESS);
}

static void connect_more(mcapi_endpoint_t from, mcapi_endpoint_t to) {
  mcapi_request_t r;
  lvd_mcapi_broadcast_connect_i(from, to, &r, &s);
  done(&r);
}
static mcapi_pktchan_recv_hndl_t opened(mcapi_endpoint_t to) {
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_pktchan_recv_open_i(&in, to, &r, &s);
  done(&r);
  return in;
}
static void close_in(mcapi_pktchan_recv_hndl_t in) {
  mcapi_request_t r;
  mcapi_pktchan_recv_close_i(in, &r, &s);
  done(&r);
}
static void close_out(mcapi_pktchan_send_hndl_t out) {
  mcapi_request_t r;
  mcapi_pktchan_send_close_i(out, &r, &s);
  done(&r);
}

/* Packet number `i`: many lengths, and contents that depend on i. */
static size_t length_of(uint32_t i) { return sizeof i + i * 7 % 500; }
static void fill(unsigned char *b, uint32_t i) {
  memset(b, (int)(i % 251), length_of(i));
  memcpy(b, &i, sizeof i);
}
static uint32_t number_in(const void *packet, size_t n) {
  uint32_t i;
  CHECK(n >= sizeof i);
  memcpy(&i, packet, sizeof i);
  CHECK_EQ(n, length_of(i));
  for (size_t k = sizeof i; k < n; k++) CHECK(((const unsigned char *)packet)[k] == i % 251);
  return i;
}
static void send_number(mcapi_pktchan_send_hndl_t out, uint32_t i) {
  unsigned char b[512];
  fill(b, i);
  mcapi_pktchan_send(out, b, length_of(i), &s);
}
static uint32_t receive_number(mcapi_pktchan_recv_hndl_t in) {
  void *packet;
  mcapi_pktchan_recv(in, &packet, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  uint32_t i = number_in(packet, size);
  mcapi_pktchan_release(packet, &s);
  SAYS(s, MCAPI_SUCCESS);
  return i;
}

/* Receives all packets from `first` on until the end; returns the next number. Recent packets stay
 * held while others arrive. */
static uint32_t hear_all(mcapi_pktchan_recv_hndl_t in, uint32_t next, int slow) {
  void *held[4] = {0};
  for (;; next++) {
    void *packet;
    mcapi_pktchan_recv(in, &packet, &size, &s);
    if (s != MCAPI_SUCCESS) break;
    CHECK_EQ(number_in(packet, size), next);
    void **place = &held[next % 4];
    mcapi_status_t status = MCAPI_SUCCESS;
    if (*place) mcapi_pktchan_release(*place, &status);
    SAYS(status, MCAPI_SUCCESS);
    *place = packet;
    if (slow && next % 1000 == 0) sleep_ms(2);
  }
  return next;
}

static bool is_refused(void) {
  if (!over_queues()) return false;
  mcapi_request_t r;
  node_is(1);
  lvd_mcapi_broadcast_connect_i(endpoint_at(1), endpoint_at(2), &r, &s);
  SAYS(s, MCAPI_ERR_ATTR_NOTSUPPORTED);
  node_ends();
  return true;
}

/* ---- nodes that are threads; one is slow ----------------------------------------------------- */

static void *hear(void *number) {
  mcapi_node_t node = (mcapi_node_t)(intptr_t)number;
  node_is(node);
  mcapi_endpoint_t mine = endpoint_at(1), gate = endpoint_at(2), from = endpoint_of(1, 1);
  connect_more(from, mine);
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_pktchan_recv_open_i(&in, mine, &r, &s);
  CHECK(s == MCAPI_PENDING || s == MCAPI_SUCCESS);
  mcapi_msg_send(gate, endpoint_of(1, 2), "", 1, 0, &s); /* wait until it has been requested */
  done(&r);
  CHECK_EQ(hear_all(in, 0, node == 2), PACKETS);
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  close_in(in);
  node_ends();
  return NULL;
}

void test_mcapi_broadcast(void) {
  if (is_refused()) return;
  pthread_t thread[HEARERS];
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), gate = endpoint_at(2);
  for (int round = 0; round < 2; round++) { /* a closed end can be used again */
    for (intptr_t i = 0; i < HEARERS; i++) pthread_create(&thread[i], NULL, hear, (void *)(2 + i));
    char c;
    for (int i = 0; i < HEARERS; i++) mcapi_msg_recv(gate, &c, 1, &size, &s);
    mcapi_pktchan_send_open_i(&out, from, &r, &s);
    done(&r);
    for (uint32_t i = 0; i < PACKETS; i++) {
      if (i % 3) {
        send_number(out, i);
      } else {
        void *loan = lvd_mcapi_buffer_acquire(out, 600, &s);
        SAYS(s, MCAPI_SUCCESS);
        fill(loan, i);
        lvd_mcapi_buffer_send(out, loan, length_of(i), &s);
      }
      SAYS(s, MCAPI_SUCCESS);
    }
    close_out(out);
    for (int i = 0; i < HEARERS; i++) pthread_join(thread[i], NULL);
  }
  node_ends();
}

/* ---- receivers join and leave, in one thread ------------------------------------------------- */

void test_mcapi_broadcast_of_loans(void) {
  if (is_refused()) return;
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), to[3] = {endpoint_at(2), endpoint_at(3), endpoint_at(4)};
  mcapi_pktchan_recv_hndl_t in[3];
  mcapi_pktchan_send_hndl_t out;
  mcapi_request_t r;
  connect_more(from, to[0]);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  in[0] = opened(to[0]);
  done(&r);
  for (uint32_t i = 1; i < 3; i++) { /* a receiver that joined during a loan gets it, too */
    void *lent = lvd_mcapi_buffer_acquire(out, 512, &s);
    SAYS(s, MCAPI_SUCCESS);
    fill(lent, i);
    connect_more(from, to[i]);
    in[i] = opened(to[i]);
    lvd_mcapi_buffer_send(out, lent, length_of(i), &s);
    SAYS(s, MCAPI_SUCCESS);
    for (uint32_t k = 0; k <= i; k++) CHECK_EQ(receive_number(in[k]), i);
  }
  for (uint32_t n = 0; n < 700; n++) {
    send_number(out, n);
    SAYS(s, MCAPI_SUCCESS);
  }
  for (uint32_t k = 0; k < 3; k++) {
    CHECK_EQ(mcapi_pktchan_available(in[k], &s), 700);
    for (uint32_t n = 0; n < 700; n++) {
      CHECK_EQ(receive_number(in[k]), n);
      if (n % 100 == 0) CHECK_EQ(mcapi_pktchan_available(in[k], &s), 699 - n);
    }
  }
  for (uint32_t k = 0; k < 3; k++) close_in(in[k]);
  close_out(out);
  node_ends();
}

void test_mcapi_broadcast_comes_and_goes(void) {
  if (is_refused()) return;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in[3];
  mcapi_endpoint_t to[18];
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(100), other = endpoint_at(101);
  for (uint32_t i = 0; i < 18; i++) to[i] = endpoint_at(i);
  const mcapi_timeout_t limit = 30;
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_TIMEOUT, &limit, sizeof limit, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  SAYS(s, MCAPI_PENDING);
  connect_more(from, to[0]);
  CHECK(!mcapi_test(&r, &size, &s)); /* no receiver has opened its end */
  mcapi_request_t q;
  mcapi_pktchan_recv_open_i(&in[0], to[0], &q, &s);
  done(&r);
  done(&q);
  for (uint32_t i = 0; i < 3; i++) send_number(out, i);
  /* A second receiver gets what is sent from then on. */
  connect_more(from, to[1]);
  in[1] = opened(to[1]);
  CHECK_EQ(mcapi_pktchan_available(in[1], &s), 0);
  for (uint32_t i = 3; i < 6; i++) send_number(out, i);
  SAYS(s, MCAPI_SUCCESS);
  for (uint32_t i = 0; i < 6; i++) CHECK_EQ(receive_number(in[0]), i);
  CHECK_EQ(mcapi_pktchan_available(in[1], &s), 3);
  CHECK_EQ(lvd_mcapi_pending_count(to[1], &s), 3);
  for (uint32_t i = 3; i < 6; i++) CHECK_EQ(receive_number(in[1]), i);
  /* The slowest receiver blocks the sender, until it leaves. */
  uint32_t sent = 6, heard = 6;
  for (;; sent++) {
    send_number(out, sent);
    if (s != MCAPI_SUCCESS) break;
    CHECK_EQ(receive_number(in[0]), heard++);
  }
  SAYS(s, MCAPI_TIMEOUT);
  CHECK(sent > 100);
  CHECK_EQ(receive_number(in[1]), 6);
  close_in(in[1]);
  for (uint32_t last = sent + 5000; sent < last; sent++) {
    send_number(out, sent);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(receive_number(in[0]), heard++);
  }
  /* Its index is reused by another receiver, which gets nothing old. */
  connect_more(from, to[2]);
  in[2] = opened(to[2]);
  send_number(out, sent);
  CHECK_EQ(receive_number(in[0]), sent);
  CHECK_EQ(receive_number(in[2]), sent++);
  /* Calls that are refused. */
  lvd_mcapi_broadcast_connect_i(from, to[2], &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  lvd_mcapi_broadcast_connect_i(from, from, &r, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  lvd_mcapi_broadcast_connect_i(from, to[3], NULL, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  lvd_mcapi_broadcast_connect_i(0, to[3], &r, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_pktchan_connect_i(from, to[3], &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  mcapi_pktchan_connect_i(other, to[2], &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  mcapi_sclchan_connect_i(to[2], other, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  for (int i = 3; i < 17; i++) connect_more(from, to[i]);
  lvd_mcapi_broadcast_connect_i(from, to[17], &r, &s);
  SAYS(s, MCAPI_ERR_MEM_LIMIT);
  /* No receiver is left: packets are dropped, and the sender does not wait. */
  close_in(in[0]);
  close_in(in[2]);
  for (uint32_t i = 0; i < 5000; i++) {
    send_number(out, i);
    SAYS(s, MCAPI_SUCCESS);
  }
  in[0] = opened(to[3]);
  send_number(out, 77);
  /* Packets, then the end; the channel is not reused while it is read. */
  close_out(out);
  mcapi_endpoint_delete(from, &s);
  SAYS(s, MCAPI_SUCCESS);
  from = endpoint_at(100);
  connect_more(from, to[0]);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  in[1] = opened(to[0]);
  done(&r);
  send_number(out, 1);
  CHECK_EQ(receive_number(in[0]), 77);
  void *packet;
  mcapi_pktchan_recv(in[0], &packet, &size, &s);
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  CHECK_EQ(receive_number(in[1]), 1);
  close_in(in[0]);
  node_ends(); /* with open ends */
}

/* ---- processes and deaths -------------------------------------------------------------------- */

/* Receives `most` packets, reports that, and continues or stops receiving. */
static pid_t hearer(mcapi_node_t node, uint32_t most) {
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  node_is(node);
  mcapi_endpoint_t mine = endpoint_at(1), gate = endpoint_at(2), from = endpoint_of(1, 1);
  connect_more(from, mine);
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_pktchan_recv_open_i(&in, mine, &r, &s);
  mcapi_msg_send(gate, endpoint_of(1, 2), "", 1, 0, &s);
  done(&r);
  if (most)
    for (uint32_t i = 0; i < most; i++) CHECK_EQ(receive_number(in), i);
  else
    CHECK_EQ(hear_all(in, 0, 0), PACKETS);
  while (most) pause();
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  close_in(in);
  node_ends();
  _exit(0);
}

void test_mcapi_broadcast_receiver_dies(void) {
  if (is_refused()) return;
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  test_domain();
  pid_t well[2] = {hearer(2, 0), hearer(3, 0)}, dies = hearer(4, 10);
  node_is(1);
  mcapi_endpoint_t from = endpoint_at(1), gate = endpoint_at(2);
  char c;
  for (int i = 0; i < 3; i++) mcapi_msg_recv(gate, &c, 1, &size, &s);
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  done(&r);
  const mcapi_uint_t eager = MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT;
  mcapi_endpoint_set_attribute(from, MCAPI_ENDP_ATTR_MEMORY_TYPE, &eager, sizeof eager, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  uint32_t i = 0;
  pid_t killer = fork();
  CHECK(killer >= 0);
  if (!killer) { /* the sender waits for the one that has stopped */
    sleep_ms(300);
    kill(dies, SIGKILL);
    _exit(0);
  }
  double begun = seconds();
  for (; i < PACKETS; i++) {
    send_number(out, i);
    SAYS(s, MCAPI_SUCCESS);
  }
  printf("all sent after %.0f ms\n", (seconds() - begun) * 1e3);
  close_out(out);
  int how;
  for (int k = 0; k < 2; k++) CHECK(waitpid(well[k], &how, 0) == well[k] && how == 0);
  CHECK_EQ(waitpid(killer, &how, 0), killer);
  CHECK_EQ(waitpid(dies, &how, 0), dies);
  /* Its receiver index and its endpoint are free. */
  mcapi_pktchan_connect_i(from, gate, &r, &s);
  done(&r);
  node_ends();
}

void test_mcapi_broadcast_sender_dies(void) {
  if (is_refused()) return;
  test_domain();
  for (int round = 0; round < SCALED(40) + 2; round++) {
    mcapi_pktchan_recv_hndl_t in[2];
    mcapi_request_t r[2];
    pid_t id = fork();
    CHECK(id >= 0);
    if (!id) {
      mcapi_request_t q;
      mcapi_pktchan_send_hndl_t out;
      node_is(1);
      mcapi_endpoint_t from = endpoint_at(1), gate = endpoint_at(2);
      char c;
      mcapi_msg_recv(gate, &c, 1, &size, &s);
      mcapi_pktchan_send_open_i(&out, from, &q, &s);
      done(&q);
      for (uint32_t i = 0;; i++) send_number(out, i);
    }
    node_is(2);
    mcapi_endpoint_t to[2] = {endpoint_at(1), endpoint_at(2)}, from = endpoint_of(1, 1);
    for (int i = 0; i < 2; i++) {
      connect_more(from, to[i]);
      mcapi_pktchan_recv_open_i(&in[i], to[i], &r[i], &s);
      CHECK(s == MCAPI_PENDING || s == MCAPI_SUCCESS);
    }
    mcapi_msg_send(endpoint_at(3), endpoint_of(1, 2), "", 1, 0, &s);
    for (int i = 0; i < 2; i++) done(&r[i]);
    CHECK_EQ(receive_number(in[0]), 0);
    for (uint32_t i = 0; i < (uint32_t)round * 13; i++) {
      CHECK_EQ(receive_number(in[0]), i + 1);
      CHECK_EQ(receive_number(in[1]), i);
    }
    kill(id, SIGKILL);
    uint32_t first = hear_all(in[0], (uint32_t)round * 13 + 1, 0);
    SAYS(s, MCAPI_ERR_TRANSMISSION);
    CHECK_EQ(hear_all(in[1], (uint32_t)round * 13, 0), first); /* both received the same */
    SAYS(s, MCAPI_ERR_TRANSMISSION);
    CHECK_EQ(waitpid(id, NULL, 0), id);
    if (round % 2)
      for (int i = 0; i < 2; i++) close_in(in[i]);
    node_ends();
  }
}
