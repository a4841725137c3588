/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels: packets and scalars, in one node, between nodes, and when the other side dies. */
#include "test_mcapi.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static mcapi_status_t s;
static mcapi_request_t r, q;
static size_t size;

static void done(mcapi_request_t *request) {
  CHECK(s == MCAPI_SUCCESS || s == MCAPI_PENDING);
  CHECK(mcapi_wait(request, &size, 20000, &s));
  SAYS(s, MCAPI_SUCCESS);
}

static mcapi_endp_attr_status_t state_of(mcapi_endpoint_t e) {
  mcapi_endp_attr_status_t value = 0;
  mcapi_endpoint_get_attribute(e, MCAPI_ENDP_ATTR_ENDP_STATUS, &value, sizeof value, &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}

static void limit(mcapi_endpoint_t e, mcapi_timeout_t ms) {
  mcapi_endpoint_set_attribute(e, MCAPI_ENDP_ATTR_TIMEOUT, &ms, sizeof ms, &s);
  SAYS(s, MCAPI_SUCCESS);
}

/* ---- connecting, opening, closing ------------------------------------------------------------ */

/* The endpoint's type, from the standard's attribute. */
static mcapi_uint_t type_of(mcapi_endpoint_t e) {
  mcapi_endp_attr_type_t value = 0;
  mcapi_endpoint_get_attribute(e, MCAPI_ENDP_ATTR_TYPE, &value, sizeof value, &s);
  SAYS(s, MCAPI_SUCCESS);
  return value;
}

void test_mcapi_endpoint_type(void) {
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2), c = endpoint_at(3), e = endpoint_at(4);
  CHECK_EQ(type_of(a), MCAPI_ENDP_ATTR_TYPE_MESSAGE);
  mcapi_pktchan_connect_i(a, b, &r, &s);
  done(&r);
  CHECK_EQ(type_of(a), MCAPI_ENDP_ATTR_TYPE_PKTCHAN);
  CHECK_EQ(type_of(b), MCAPI_ENDP_ATTR_TYPE_PKTCHAN);
  mcapi_sclchan_connect_i(c, e, &r, &s);
  done(&r);
  CHECK_EQ(type_of(c), MCAPI_ENDP_ATTR_TYPE_SCLCHAN);
  CHECK_EQ(type_of(e), MCAPI_ENDP_ATTR_TYPE_SCLCHAN);
  mcapi_pktchan_send_open_i(&out, a, &r, &s);
  mcapi_pktchan_send_close_i(out, &q, &s);
  done(&q);
  CHECK_EQ(type_of(a), MCAPI_ENDP_ATTR_TYPE_PKTCHAN); /* the second close disconnects */
  mcapi_pktchan_recv_open_i(&in, b, &r, &s);
  mcapi_pktchan_recv_close_i(in, &q, &s);
  done(&q);
  CHECK_EQ(type_of(a), MCAPI_ENDP_ATTR_TYPE_MESSAGE);
  CHECK_EQ(type_of(b), MCAPI_ENDP_ATTR_TYPE_MESSAGE);
  node_ends();
}

/* Connect and both opens in each order: an end is open when it has been opened and is connected. */
void test_mcapi_channel_orders(void) {
  static const char orders[][4] = {"csr", "crs", "scr", "src", "rcs", "rsc"};
  node_is(1);
  for (size_t i = 0; i < COUNT(orders); i++) {
    mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
    mcapi_pktchan_send_hndl_t out = 0;
    mcapi_pktchan_recv_hndl_t in = 0;
    mcapi_request_t open[2], connect;
    bool connected = false, waits[2] = {false, false};
    for (const char *at = orders[i]; *at; at++) {
      if (*at == 'c') {
        mcapi_pktchan_connect_i(from, to, &connect, &s);
        done(&connect);
        connected = true;
      } else if (*at == 's') {
        mcapi_pktchan_send_open_i(&out, from, &open[0], &s);
        waits[0] = true;
      } else {
        mcapi_pktchan_recv_open_i(&in, to, &open[1], &s);
        waits[1] = true;
      }
      CHECK(s == MCAPI_SUCCESS || s == MCAPI_PENDING);
      for (int k = 0; k < 2; k++) {
        if (!waits[k]) continue;
        CHECK_EQ(mcapi_test(&open[k], &size, &s), connected);
        SAYS(s, connected ? MCAPI_SUCCESS : MCAPI_PENDING);
        waits[k] = !connected;
      }
    }
    CHECK_EQ(state_of(from), MCAPI_ENDP_ATTR_STATUS_CONNECTED | MCAPI_ENDP_ATTR_STATUS_OPEN |
                                 MCAPI_ENDP_ATTR_STATUS_PKTCHAN | MCAPI_ENDP_ATTR_STATUS_SEND);
    CHECK_EQ(state_of(to), MCAPI_ENDP_ATTR_STATUS_CONNECTED | MCAPI_ENDP_ATTR_STATUS_OPEN |
                               MCAPI_ENDP_ATTR_STATUS_PKTCHAN | MCAPI_ENDP_ATTR_STATUS_RECEIVE);
    void *packet;
    mcapi_pktchan_send(out, "hello", 6, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK(size == 6 && strcmp(packet, "hello") == 0);
    mcapi_endpoint_delete(from, &s);
    SAYS(s, MCAPI_ERR_CHAN_OPEN);
    if (i % 2) {
      mcapi_pktchan_send_close_i(out, &r, &s);
      done(&r);
      mcapi_pktchan_send_close_i(out, &r, &s);
      SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
      mcapi_pktchan_send(out, "", 1, &s);
      SAYS(s, MCAPI_ERR_CHAN_INVALID);
      mcapi_pktchan_recv(in, &packet, &size, &s);
      SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
      mcapi_pktchan_recv_close_i(in, &r, &s);
      done(&r);
    } else {
      mcapi_pktchan_recv_close_i(in, &r, &s);
      done(&r);
      mcapi_pktchan_send(out, "", 1, &s);
      SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
      mcapi_pktchan_send_close_i(out, &r, &s);
      done(&r);
    }
    mcapi_pktchan_recv_close_i(in, &r, &s);
    SAYS(s, MCAPI_ERR_CHAN_NOTOPEN);
    CHECK_EQ(state_of(from), 0);
    CHECK_EQ(state_of(to), 0);
    mcapi_endpoint_delete(from, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_endpoint_delete(to, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}

/* The sender opens, sends, closes and ends before the receiver opens its end. */
void test_mcapi_channel_opens_late(void) {
  void *packet;
  node_is(1);
  for (int variant = 0; variant < 3; variant++) { /* it closes; it ends; it ends without opening */
    mcapi_endpoint_t from = endpoint_at(1), to = endpoint_at(2);
    mcapi_pktchan_send_hndl_t out;
    mcapi_pktchan_recv_hndl_t in;
    mcapi_request_t open;
    mcapi_pktchan_connect_i(from, to, &r, &s);
    done(&r);
    if (variant == 2) mcapi_pktchan_recv_open_i(&in, to, &open, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (variant < 2) {
      mcapi_pktchan_send_open_i(&out, from, &r, &s);
      done(&r);
      for (int i = 0; i < 3; i++) mcapi_pktchan_send(out, &i, sizeof i, &s);
      SAYS(s, MCAPI_SUCCESS);
      mcapi_pktchan_send_close_i(out, &r, &s);
      done(&r);
    }
    if (variant) mcapi_endpoint_delete(from, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (variant < 2) mcapi_pktchan_recv_open_i(&in, to, &open, &s);
    done(&open);
    for (int i = 0; i < 3 && variant < 2; i++) {
      mcapi_pktchan_recv(in, &packet, &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK(memcmp(packet, &i, sizeof i) == 0);
      mcapi_pktchan_release(packet, &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(s, variant < 2 ? MCAPI_ERR_CHAN_CLOSEPENDING : MCAPI_ERR_TRANSMISSION);
    mcapi_pktchan_recv_close_i(in, &r, &s);
    done(&r);
    if (!variant) mcapi_endpoint_delete(from, &s);
    mcapi_endpoint_delete(to, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  node_ends();
}

void test_mcapi_channel_refuses(void) {
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2), c = endpoint_at(3);
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  mcapi_sclchan_send_hndl_t numbers;
  void *packet;
  mcapi_pktchan_connect_i(a, a, &r, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_pktchan_connect_i(a, 4711, &r, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_pktchan_connect_i(a, b, NULL, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_endp_attr_max_payload_size_t less = 100;
  mcapi_endpoint_set_attribute(b, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &less, sizeof less, &s);
  mcapi_pktchan_connect_i(a, b, &r, &s);
  SAYS(s, MCAPI_ERR_ATTR_INCOMPATIBLE);
  mcapi_endpoint_set_attribute(a, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &less, sizeof less, &s);
  mcapi_pktchan_connect_i(a, b, &r, &s);
  done(&r);
  mcapi_pktchan_connect_i(a, c, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  mcapi_sclchan_connect_i(c, b, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  mcapi_endpoint_set_attribute(a, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &less, sizeof less, &s);
  SAYS(s, MCAPI_ERR_CHAN_CONNECTED);
  mcapi_sclchan_send_open_i(&numbers, a, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_TYPE);
  mcapi_pktchan_recv_open_i(&in, a, &r, &s);
  SAYS(s, MCAPI_ERR_CHAN_DIRECTION);
  mcapi_pktchan_send_open_i(&out, 4711, &r, &s);
  SAYS(s, MCAPI_ERR_ENDP_INVALID);
  mcapi_pktchan_send_open_i(&out, c, &r, &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_pktchan_send_open_i(&out, c, &q, &s);
  SAYS(s, MCAPI_ERR_CHAN_OPENPENDING);
  mcapi_pktchan_send(out, "", 1, &s);
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  mcapi_cancel(&r, &s);
  mcapi_pktchan_send_open_i(&out, a, &r, &s);
  mcapi_pktchan_recv_open_i(&in, b, &q, &s);
  done(&q);
  done(&r);
  mcapi_pktchan_send_open_i(&out, a, &q, &s);
  SAYS(s, MCAPI_ERR_CHAN_OPEN);
  mcapi_pktchan_send(out, NULL, 1, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_pktchan_send(out, "", 101, &s);
  SAYS(s, MCAPI_ERR_PKT_SIZE);
  mcapi_pktchan_send(in, "", 1, &s);
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  mcapi_pktchan_recv(in, NULL, &size, &s);
  SAYS(s, MCAPI_ERR_PARAMETER);
  mcapi_pktchan_recv(99, &packet, &size, &s);
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  mcapi_pktchan_release(&size, &s);
  SAYS(s, MCAPI_ERR_BUF_INVALID);
  mcapi_pktchan_release(NULL, &s);
  SAYS(s, MCAPI_ERR_BUF_INVALID);
  mcapi_sclchan_send_close_i(out, &q, &s);
  SAYS(s, MCAPI_ERR_CHAN_TYPE);
  mcapi_pktchan_recv_close_i(out, &q, &s);
  SAYS(s, MCAPI_ERR_CHAN_DIRECTION);
  node_ends(); /* with open ends */
}

/* ---- packets --------------------------------------------------------------------------------- */

typedef struct pair {
  mcapi_endpoint_t from, to;
  uint32_t out, in;
} pair;

static pair packets(void) {
  pair p = {.from = endpoint_at(11), .to = endpoint_at(12)};
  limit(p.from, 50);
  limit(p.to, 50);
  mcapi_pktchan_connect_i(p.from, p.to, &r, &s);
  done(&r);
  mcapi_pktchan_send_open_i(&p.out, p.from, &r, &s);
  mcapi_pktchan_recv_open_i(&p.in, p.to, &q, &s);
  done(&q);
  done(&r);
  return p;
}

void test_mcapi_packets(void) {
  static unsigned char data[MCAPI_MAX_PACKET_SIZE];
  /* Seven at a time must fit. */
  const uint64_t largest = over_queues() ? 8000 : MCAPI_MAX_PACKET_SIZE;
  uint64_t seed = 0x9e3779b97f4a7c15u;
  node_is(1);
  pair p = packets();
  void *held[64];
  /* Various sizes, released in any order. */
  for (int round = 0; round < SCALED(300); round++) {
    size_t sizes[7];
    for (int i = 0; i < 7; i++) {
      uint64_t x = next_random(&seed);
      sizes[i] = x % 4 == 0 ? x / 4 % (largest + 1) : x / 4 % 200;
      memset(data, round + i, sizes[i]);
      mcapi_pktchan_send(p.out, data, sizes[i], &s);
      SAYS(s, MCAPI_SUCCESS);
    }
    CHECK_EQ(mcapi_pktchan_available(p.in, &s), 7);
    for (int i = 0; i < 7; i++) {
      mcapi_pktchan_recv(p.in, &held[i], &size, &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK_EQ(size, sizes[i]);
    }
    for (int i = 0; i < 7; i++) {
      memset(data, round + i, sizes[i]);
      CHECK(memcmp(held[i], data, sizes[i]) == 0);
    }
    for (int n = 7; n > 0; n--) {
      int at = (int)(next_random(&seed) % (uint64_t)n);
      CHECK(mcapi_pktchan_release_test(held[at], &s));
      mcapi_pktchan_release(held[at], &s);
      SAYS(s, MCAPI_SUCCESS);
      CHECK(!mcapi_pktchan_release_test(held[at], &s));
      mcapi_pktchan_release(held[at], &s);
      SAYS(s, MCAPI_ERR_BUF_INVALID);
      held[at] = held[n - 1];
    }
  }
  /* The channel is full; then no buffer is left. */
  uint32_t sent = 0;
  for (;; sent++) {
    mcapi_pktchan_send(p.out, data, 4000, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS(s, MCAPI_TIMEOUT);
  CHECK(sent >= (uint32_t)test_slots());
  if (test_slots() < 64) { /* the queue is full before the buffers are */
    node_ends();
    return;
  }
  mcapi_pktchan_send_i(p.out, "late", 5, &r, &s);
  SAYS(s, MCAPI_PENDING);
  for (int i = 0; i < 64; i++) {
    mcapi_pktchan_recv(p.in, &held[i], &size, &s);
    SAYS(s, MCAPI_SUCCESS);
  }
  void *more;
  mcapi_pktchan_recv(p.in, &more, &size, &s);
  SAYS(s, MCAPI_TIMEOUT);
  CHECK(!mcapi_test(&r, &size, &s));
  mcapi_pktchan_recv_i(p.in, &more, &q, &s);
  SAYS(s, MCAPI_PENDING);
  mcapi_pktchan_release(held[63], &s); /* not the oldest */
  SAYS(s, MCAPI_SUCCESS);
  CHECK(!mcapi_test(&r, &size, &s));
  for (int i = 0; i < 63; i++) mcapi_pktchan_release(held[i], &s);
  CHECK(mcapi_wait(&r, &size, 1000, &s));
  CHECK(mcapi_wait(&q, &size, 1000, &s));
  CHECK_EQ(size, 4000);
  mcapi_pktchan_release(more, &s);
  for (uint32_t i = 65; i < sent; i++) {
    mcapi_pktchan_recv(p.in, &more, &size, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_pktchan_release(more, &s);
  }
  mcapi_pktchan_recv(p.in, &more, &size, &s);
  CHECK(size == 5 && strcmp(more, "late") == 0);
  node_ends();
}

/* ---- scalars --------------------------------------------------------------------------------- */

void test_mcapi_scalars(void) {
  node_is(1);
  mcapi_endpoint_t a = endpoint_at(1), b = endpoint_at(2);
  mcapi_sclchan_send_hndl_t out;
  mcapi_sclchan_recv_hndl_t in;
  limit(a, 30);
  limit(b, 30);
  mcapi_sclchan_connect_i(a, b, &r, &s);
  done(&r);
  mcapi_sclchan_recv_open_i(&in, b, &q, &s);
  mcapi_sclchan_send_open_i(&out, a, &r, &s);
  done(&q);
  done(&r);
  for (uint64_t i = 0; i < 3000; i++) {
    mcapi_sclchan_send_uint64(out, i << 33 | i, &s);
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_send_uint32(out, (uint32_t)i << 15 | 1, &s);
    mcapi_sclchan_send_uint16(out, (uint16_t)i, &s);
    mcapi_sclchan_send_uint8(out, (uint8_t)i, &s);
    SAYS(s, MCAPI_SUCCESS);
    CHECK_EQ(mcapi_sclchan_available(in, &s), 4);
    mcapi_sclchan_recv_uint8(in, &s);
    SAYS(s, MCAPI_ERR_SCL_SIZE);
    CHECK(mcapi_sclchan_recv_uint64(in, &s) == (i << 33 | i)); /* it stayed in the channel */
    SAYS(s, MCAPI_SUCCESS);
    mcapi_sclchan_recv_uint64(in, &s);
    SAYS(s, MCAPI_ERR_SCL_SIZE);
    CHECK_EQ(mcapi_sclchan_recv_uint32(in, &s), (uint32_t)i << 15 | 1);
    CHECK_EQ(mcapi_sclchan_recv_uint16(in, &s), (uint16_t)i);
    CHECK_EQ(mcapi_sclchan_recv_uint8(in, &s), (uint8_t)i);
    SAYS(s, MCAPI_SUCCESS);
  }
  mcapi_sclchan_recv_uint8(in, &s);
  SAYS(s, MCAPI_TIMEOUT);
  uint32_t sent = 0;
  for (;; sent++) {
    mcapi_sclchan_send_uint16(out, (uint16_t)sent, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS(s, MCAPI_TIMEOUT);
  CHECK(sent == 1024 || (over_queues() && sent >= 10));
  mcapi_sclchan_send_close_i(out, &r, &s);
  done(&r);
  for (uint32_t i = 0; i < sent; i++) CHECK_EQ(mcapi_sclchan_recv_uint16(in, &s), i);
  mcapi_sclchan_recv_uint16(in, &s);
  SAYS(s, MCAPI_ERR_CHAN_CLOSEPENDING);
  mcapi_sclchan_recv_close_i(in, &r, &s);
  done(&r);
  mcapi_sclchan_recv_uint16(in, &s);
  SAYS(s, MCAPI_ERR_CHAN_INVALID);
  node_ends();
}

/* ---- between processes ----------------------------------------------------------------------- */

enum { PACKETS = SCALED(20000) };

static void stream_packets(bool for_ever) {
  static unsigned char data[5000];
  uint32_t out, back;
  node_is(2);
  mcapi_endpoint_t mine = endpoint_at(1), ack = endpoint_at(2), to = endpoint_of(1, 1),
                   from = endpoint_of(1, 2);
  mcapi_pktchan_connect_i(mine, to, &r, &s);
  done(&r);
  mcapi_pktchan_send_open_i(&out, mine, &r, &s);
  done(&r);
  mcapi_sclchan_recv_open_i(&back, ack, &r, &s);
  mcapi_sclchan_connect_i(from, ack, &q, &s);
  done(&q);
  done(&r);
  for (uint32_t i = 0; for_ever || i < PACKETS; i++) {
    size_t n = 4 + i * 37 % 4900;
    memset(data, (int)i, n);
    memcpy(data, &i, sizeof i);
    mcapi_pktchan_send(out, data, n, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (i % 1000 == 999) CHECK_EQ(mcapi_sclchan_recv_uint32(back, &s), i);
  }
  node_ends();
}

static uint32_t receive_packets(uint32_t in, uint32_t out, uint32_t most) {
  unsigned char data[5000];
  for (uint32_t i = 0; i < most; i++) {
    void *packet;
    uint32_t number;
    mcapi_pktchan_recv(in, &packet, &size, &s);
    if (s != MCAPI_SUCCESS) return i;
    memcpy(&number, packet, sizeof number);
    CHECK_EQ(number, i);
    CHECK_EQ(size, 4 + i * 37 % 4900);
    memset(data, (int)i, size);
    memcpy(data, &i, sizeof i);
    CHECK(memcmp(data, packet, size) == 0);
    mcapi_pktchan_release(packet, &s);
    SAYS(s, MCAPI_SUCCESS);
    if (i % 1000 == 999) mcapi_sclchan_send_uint32(out, i, &s);
  }
  return most;
}

static pid_t start_streaming(bool for_ever) {
  test_domain();
  pid_t id = fork();
  if (id == 0) {
    stream_packets(for_ever);
    _exit(0);
  }
  return id;
}

static void open_both(uint32_t *in, uint32_t *out) {
  mcapi_endpoint_t mine = endpoint_at(1), control = endpoint_at(2);
  mcapi_pktchan_recv_open_i(in, mine, &r, &s);
  mcapi_sclchan_send_open_i(out, control, &q, &s);
  done(&r);
  done(&q);
}

void test_mcapi_channel_processes(void) {
  uint32_t in, out;
  int how;
  pid_t id = start_streaming(false);
  node_is(1);
  open_both(&in, &out);
  CHECK_EQ(receive_packets(in, out, PACKETS), PACKETS);
  CHECK_EQ(waitpid(id, &how, 0), id);
  CHECK(how == 0);
  node_ends();
}

/* What was sent is received; then the receiver gets an error. Its endpoints can be connected
 * again. */
void test_mcapi_channel_sender_dies(void) {
  FORKS_LATE;
  uint64_t seed = 0x2545f4914f6cdd1du, all = 0;
  node_is(1);
  for (int round = 0; round < SCALED(100); round++) {
    uint32_t in, out;
    pid_t id = start_streaming(true);
    open_both(&in, &out);
    all += receive_packets(in, out, (uint32_t)(next_random(&seed) % 500));
    nanosleep(&(struct timespec){.tv_nsec = (long)(next_random(&seed) % 300000)}, NULL);
    kill(id, SIGKILL);
    CHECK_EQ(waitpid(id, NULL, 0), id);
    double start = seconds();
    uint32_t left = 0;
    for (void *packet;; left++) {
      mcapi_pktchan_recv(in, &packet, &size, &s);
      if (s != MCAPI_SUCCESS) break;
      mcapi_pktchan_release(packet, &s);
    }
    SAYS(s, MCAPI_ERR_TRANSMISSION);
    CHECK(seconds() - start < 2);
    /* The death is seen at the other endpoint a moment later. */
    do mcapi_sclchan_send_uint8(out, 1, &s);
    while (s == MCAPI_SUCCESS && seconds() - start < 2.1);
    SAYS(s, MCAPI_ERR_TRANSMISSION);
    mcapi_pktchan_recv_close_i(in, &r, &s);
    done(&r);
    mcapi_sclchan_send_close_i(out, &r, &s);
    done(&r);
    mcapi_endpoint_delete(in, &s); /* handles of open ends are those of the endpoints */
    SAYS(s, MCAPI_SUCCESS);
    mcapi_endpoint_delete(out, &s);
    SAYS(s, MCAPI_SUCCESS);
    all += left;
  }
  printf("%llu packets\n", (unsigned long long)all);
  node_ends();
}
