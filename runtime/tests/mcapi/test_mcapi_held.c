/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Buffers that a program holds, packets and a loan, stay unchanged until they are released, and the
 * release succeeds: after the close of the end, the deletion of the endpoint, the end of the node,
 * and any end of the other side. */
#include "test_mcapi.h"

#include <levada/mcapi_ext.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static mcapi_status_t s;
static mcapi_request_t r;
static size_t size;

enum { HELD = 5, LONGEST = 8000, AFTER = 200 };

static void done(void) {
  CHECK(s == MCAPI_SUCCESS || s == MCAPI_PENDING);
  CHECK(mcapi_wait(&r, &size, 20000, &s));
  SAYS(s, MCAPI_SUCCESS);
}

static void fill(unsigned char *to, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; i++) to[i] = (unsigned char)(seed + i * 13);
}
static bool is_filled(const unsigned char *at, size_t length, unsigned seed) {
  for (size_t i = 0; i < length; i++)
    if (at[i] != (unsigned char)(seed + i * 13)) return false;
  return true;
}

typedef struct channel {
  mcapi_endpoint_t from, to;
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
} channel;

static void open_in(channel *c) {
  mcapi_pktchan_recv_open_i(&c->in, c->to, &r, &s);
  done();
}
static void open_out(channel *c) {
  mcapi_pktchan_send_open_i(&c->out, c->from, &r, &s);
  done();
}
static void close_in(const channel *c) {
  mcapi_pktchan_recv_close_i(c->in, &r, &s);
  done();
}
static void close_out(const channel *c) {
  mcapi_pktchan_send_close_i(c->out, &r, &s);
  done();
}
static void connect(const channel *c) {
  mcapi_pktchan_connect_i(c->from, c->to, &r, &s);
  done();
}

static channel opened(mcapi_port_t from, mcapi_port_t to) {
  channel c = {.from = endpoint_at(from), .to = endpoint_at(to)};
  connect(&c);
  open_in(&c);
  open_out(&c);
  return c;
}

/* Different lengths, so that packets cross pages. */
static size_t length_of(int i) { return (size_t)(100 + i * (LONGEST - 100) / HELD); }

static void send_one(const channel *c, size_t length, unsigned seed) {
  unsigned char data[LONGEST];
  fill(data, length, seed);
  mcapi_pktchan_send(c->out, data, length, &s);
  SAYS(s, MCAPI_SUCCESS);
}

static void *received(const channel *c, size_t length, unsigned seed) {
  void *at;
  mcapi_pktchan_recv(c->in, &at, &size, &s);
  SAYS(s, MCAPI_SUCCESS);
  CHECK_EQ(size, length);
  CHECK(is_filled(at, length, seed));
  return at;
}

/* Some packets between the held ones have been released. */
static void hold(const channel *c, void *held[HELD]) {
  for (int i = 0; i < HELD; i++) {
    send_one(c, length_of(i), (unsigned)i);
    send_one(c, 10, 99);
    held[i] = received(c, length_of(i), (unsigned)i);
    mcapi_pktchan_release(received(c, 10, 99), &s);
    SAYS(s, MCAPI_SUCCESS);
  }
}

static void as_they_were(void *const held[HELD]) {
  for (int i = 0; i < HELD; i++) CHECK(is_filled(held[i], length_of(i), (unsigned)i));
}

/* In another order than they arrived. */
static void release_all(void *const held[HELD]) {
  for (int k = 0; k < HELD; k++) {
    int i = (k * 3 + 1) % HELD;
    CHECK(is_filled(held[i], length_of(i), (unsigned)i));
    CHECK(mcapi_pktchan_release_test(held[i], &s));
    mcapi_pktchan_release(held[i], &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(!mcapi_pktchan_release_test(held[i], &s));
    mcapi_pktchan_release(held[i], &s);
    SAYS(s, MCAPI_ERR_BUF_INVALID);
  }
}

/* Sends and receives many packets. */
static void use(const channel *c) {
  for (int i = 0; i < AFTER; i++) {
    size_t length = 1 + (size_t)(i * 977) % LONGEST;
    send_one(c, length, 200);
    mcapi_pktchan_release(received(c, length, 200), &s);
    SAYS(s, MCAPI_SUCCESS);
  }
}

static void close_both(const channel *c, bool sender_first) {
  if (sender_first) close_out(c);
  close_in(c);
  if (!sender_first) close_out(c);
}

void test_mcapi_held_across_close(void) {
  void *held[HELD], *again[HELD];
  node_is(1);
  channel c = opened(1, 2);
  for (int round = 0; round < 4; round++) {
    hold(&c, held);
    close_both(&c, round & 1);
    as_they_were(held);
    connect(&c);
    open_out(&c); /* sends before the other end is open */
    send_one(&c, LONGEST, 200);
    open_in(&c);
    mcapi_pktchan_release(received(&c, LONGEST, 200), &s);
    as_they_were(held);
    use(&c);
    hold(&c, again); /* buffers of two channels are distinguished */
    release_all(held);
    as_they_were(again);
    close_both(&c, round & 1);
    release_all(again);
    connect(&c);
    open_in(&c);
    open_out(&c);
  }
  node_ends();
}

/* No address range and no page of them is left after the release. */
static size_t mapped(void) {
  size_t pages = 0;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%zu", &pages) == 1);
  fclose(f);
  return pages;
}

void test_mcapi_held_given_back(void) {
  void *held[HELD];
  size_t before = 0;
  node_is(1);
  for (int round = 0; round < 30; round++) {
    if (round == 10) before = mapped();
    channel c = opened(1, 2);
    hold(&c, held);
    close_both(&c, false);
    mcapi_endpoint_delete(c.from, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_endpoint_delete(c.to, &s);
    SAYS(s, MCAPI_SUCCESS);
    release_all(held);
  }
  size_t grown = mapped() - before;
  CHECK(mapped() <= before || grown < 512); /* less than one view in 20 rounds */
  node_ends();
}

void test_mcapi_held_across_delete(void) {
  void *held[HELD];
  node_is(1);
  channel c = opened(1, 2);
  hold(&c, held);
  close_both(&c, true);
  mcapi_endpoint_delete(c.from, &s);
  SAYS(s, MCAPI_SUCCESS);
  mcapi_endpoint_delete(c.to, &s);
  SAYS(s, MCAPI_SUCCESS);
  as_they_were(held);
  c = opened(1, 2); /* at the same indices */
  use(&c);
  release_all(held);
  node_ends();
}

/* Ending a node closes its ends. The memory still belongs to the program; any node of the process
 * can release it. */
void test_mcapi_held_across_finalize(void) {
  void *held[HELD];
  for (int round = 0; round < 3; round++) {
    node_is(1);
    channel c = opened(1, 2);
    hold(&c, held);
    node_ends();
    as_they_were(held);
    mcapi_pktchan_release(held[0], &s);
    SAYS(s, MCAPI_ERR_NODE_NOTINIT);
    node_is(2);
    c = opened(1, 2);
    use(&c);
    release_all(held);
    node_ends();
  }
}

/* ---- the other side ends --------------------------------------------------------------------- */

enum { FINALIZES, EXITS, KILLED, ENDS };

static pid_t sender(mcapi_node_t node, int how, unsigned seed) {
  test_domain();
  pid_t id = fork();
  CHECK(id >= 0);
  if (id) return id;
  node_is(node);
  channel c = {.from = endpoint_at(1), .to = endpoint_of(1, 1)};
  connect(&c);
  open_out(&c);
  for (int i = 0; i < HELD; i++) send_one(&c, length_of(i), seed + (unsigned)i);
  if (how == FINALIZES) {
    close_out(&c);
    node_ends();
  }
  if (how == KILLED) kill(getpid(), SIGKILL);
  _exit(0);
}

void test_mcapi_held_from_others(void) {
  FORKS_LATE;
  void *held[HELD], *at;
  for (int how = 0; how < ENDS; how++) {
    pid_t first = sender(2, how, 0), second;
    node_is(1);
    channel c = {.to = endpoint_at(1)};
    open_in(&c);
    for (int i = 0; i < HELD; i++) held[i] = received(&c, length_of(i), (unsigned)i);
    CHECK_EQ(waitpid(first, NULL, 0), first);
    mcapi_pktchan_recv(c.in, &at, &size, &s);
    SAYS(s, how == FINALIZES ? MCAPI_ERR_CHAN_CLOSEPENDING : MCAPI_ERR_TRANSMISSION);
    as_they_were(held);
    close_in(&c);
    as_they_were(held);
    node_ends();
    second = sender(3, FINALIZES, 100); /* in the domain's present file */
    node_is(1);
    c.to = endpoint_at(1);
    open_in(&c);
    for (int i = 0; i < HELD; i++) {
      mcapi_pktchan_release(received(&c, length_of(i), 100 + (unsigned)i), &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    CHECK_EQ(waitpid(second, NULL, 0), second);
    release_all(held);
    node_ends();
  }
}

/* ---- broadcasts, loans ----------------------------------------------------------------------- */

/* The ring remains in use by the sender and the other receiver. */
void test_mcapi_held_of_broadcast(void) {
  if (over_queues()) SKIP("there are no broadcasts over message queues");
  enum { TWO = 2 };
  void *held[HELD];
  node_is(1);
  channel c[TWO] = {{.from = endpoint_at(1), .to = endpoint_at(2)}, {.to = endpoint_at(3)}};
  for (int k = 0; k < TWO; k++) {
    lvd_mcapi_broadcast_connect_i(c->from, c[k].to, &r, &s);
    done();
    open_in(&c[k]);
  }
  open_out(c);
  for (int i = 0; i < HELD; i++) {
    send_one(c, length_of(i), (unsigned)i);
    held[i] = received(&c[0], length_of(i), (unsigned)i);
    mcapi_pktchan_release(received(&c[1], length_of(i), (unsigned)i), &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  close_in(&c[0]);
  c[1].out = c->out;
  use(&c[1]);
  as_they_were(held);
  close_in(&c[1]);
  close_out(c);
  release_all(held);
  node_ends();
}

void test_mcapi_held_loan(void) {
  node_is(1);
  channel c = opened(1, 2);
  for (int round = 0; round < 3; round++) {
    unsigned char *loan = lvd_mcapi_buffer_acquire(c.out, LONGEST, &s);
    SAYS(s, MCAPI_SUCCESS);
    fill(loan, LONGEST, 1);
    close_both(&c, round & 1);
    CHECK(is_filled(loan, LONGEST, 1));
    connect(&c);
    open_in(&c);
    open_out(&c);
    send_one(&c, LONGEST, 200);
    CHECK(is_filled(loan, LONGEST, 1));
    fill(loan, LONGEST, 2); /* it belongs to the program, and to no channel */
    mcapi_pktchan_release(received(&c, LONGEST, 200), &s);
    use(&c);
    lvd_mcapi_buffer_send(c.out, loan, LONGEST, &s);
    SAYS(s, MCAPI_ERR_BUF_INVALID);
    CHECK(is_filled(loan, LONGEST, 2));
    lvd_mcapi_buffer_release(c.out, loan, &s);
    SAYS(s, MCAPI_SUCCESS);
    lvd_mcapi_buffer_release(c.out, loan, &s);
    SAYS(s, MCAPI_ERR_BUF_INVALID);
  }
  node_ends();
}

/* ---- sending before the other end is open ---------------------------------------------------- */

/* One thread opens and uses both ends, one after the other, and waits for each. */
void test_mcapi_open_in_one_thread(void) {
  mcapi_sclchan_send_hndl_t out;
  mcapi_sclchan_recv_hndl_t in;
  node_is(1);
  for (int sender_first = 0; sender_first < 2; sender_first++) {
    channel c = {.from = endpoint_at(1), .to = endpoint_at(2)};
    connect(&c);
    if (sender_first) open_out(&c);
    open_in(&c);
    if (!sender_first) open_out(&c);
    use(&c);
    close_both(&c, sender_first);
    mcapi_sclchan_connect_i(c.from, c.to, &r, &s);
    done();
    if (!sender_first) mcapi_sclchan_recv_open_i(&in, c.to, &r, &s);
    if (!sender_first) done();
    mcapi_sclchan_send_open_i(&out, c.from, &r, &s);
    done();
    mcapi_sclchan_send_uint16(out, 4711, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (sender_first) mcapi_sclchan_recv_open_i(&in, c.to, &r, &s);
    if (sender_first) done();
    CHECK_EQ(mcapi_sclchan_recv_uint16(in, &s), 4711);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_recv_close_i(in, &r, &s);
    done();
    mcapi_sclchan_send_close_i(out, &r, &s);
    done();
    mcapi_endpoint_delete(c.from, &s);
    mcapi_endpoint_delete(c.to, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}

/* The sender has opened, sent and ended before the receiver opens: it gets everything, and then the
 * status of that end. */
void test_mcapi_sent_and_gone(void) {
  FORKS_LATE;
  void *at;
  for (int how = 0; how < ENDS; how++) {
    for (int opens = 0; opens < 2; opens++) { /* else it is connected again */
      pid_t id = sender(2, how, 0);
      node_is(1);
      channel c = {.to = endpoint_at(1)};
      CHECK_EQ(waitpid(id, NULL, 0), id);
      if (opens) {
        open_in(&c);
        for (int i = 0; i < HELD; i++)
          mcapi_pktchan_release(received(&c, length_of(i), (unsigned)i), &s);
        mcapi_pktchan_recv(c.in, &at, &size, &s);
        SAYS(s, how == FINALIZES ? MCAPI_ERR_CHAN_CLOSEPENDING : MCAPI_ERR_TRANSMISSION);
        close_in(&c);
      } else {
        for (int i = 0; i < 20000; i++) { /* until its death is known */
          c.from = endpoint_at(MCAPI_PORT_ANY);
          mcapi_pktchan_connect_i(c.from, c.to, &r, &s);
          if (s != MCAPI_ERR_CHAN_CONNECTED) break;
          mcapi_status_t deleted;
          mcapi_endpoint_delete(c.from, &deleted);
          sleep_ms(1);
        }
        done();
        open_out(&c);
        open_in(&c);
        use(&c);
      }
      node_ends();
    }
  }
}

/* The sender sent nothing: the end is like one that was never connected. */
void test_mcapi_gone_without_a_word(void) {
  node_is(1);
  for (int opens = 0; opens < 2; opens++) {
    channel c = {.from = endpoint_at(1), .to = endpoint_at(2)};
    connect(&c);
    mcapi_endpoint_delete(c.from, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_request_t opening;
    mcapi_pktchan_recv_open_i(&c.in, c.to, &opening, &s);
    SAYS(s, MCAPI_PENDING);
    c.from = endpoint_at(1);
    connect(&c);
    CHECK(mcapi_wait(&opening, &size, 20000, &s));
    open_out(&c);
    use(&c);
    close_both(&c, true);
    mcapi_endpoint_delete(c.from, &s);
    mcapi_endpoint_delete(c.to, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}
