/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scenarios other than a packet channel between victim and survivor: a victim that connects other
 * nodes' endpoints, one with scalars, one with loans, and either end of a broadcast. */
#include "life.h"

#include <string.h>

/* The survivor's two ends, and the requests that open them. */
static struct {
  mcapi_endpoint_t in, out;
  mcapi_pktchan_recv_hndl_t receive[2];
  mcapi_pktchan_send_hndl_t send;
  mcapi_sclchan_recv_hndl_t scalars_in;
  mcapi_sclchan_send_hndl_t scalars_out;
  mcapi_request_t opened[2];
  bool is_open[2];
  long got[2], sent;
} mine;

static void make_ends(void) {
  memset(&mine, 0, sizeof mine);
  mine.in = make(IN);
  mine.out = make(OUT);
}

static bool test_open(int i) {
  if (!mine.is_open[i]) mine.is_open[i] = mcapi_test(&mine.opened[i], &size, &s);
  return mine.is_open[i];
}
static void test_opens(void) {
  for (int i = 0; i < 2; i++) test_open(i);
}

static void put_ends_away(void) {
  put_away(mine.in);
  put_away(mine.out);
}

static void close_receive(mcapi_pktchan_recv_hndl_t h) {
  mcapi_request_t r;
  mcapi_pktchan_recv_close_i(h, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
}
static void close_send(mcapi_pktchan_send_hndl_t h) {
  mcapi_request_t r;
  mcapi_pktchan_send_close_i(h, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
}

static void begin_life(void) {
  counted = true;
  at("initialize");
  begin(VICTIM);
}

/* Receives all queued packets, in order. */
static void take_packets(int i) {
  while (test_open(i) && mcapi_pktchan_available(mine.receive[i], &s)) {
    void *packet;
    mcapi_pktchan_recv(mine.receive[i], &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(mine.got[i]) && is_filled(packet, size, mine.got[i]));
    mine.got[i]++;
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
}
/* All packets that the victim had reported as sent have arrived; perhaps also the one that it had
 * not reported yet. */
static void all_came(int i) {
  if (!mine.is_open[i]) {
    CHECK(seen->packets == 0);
    return;
  }
  CHECK(mine.got[i] == seen->packets || mine.got[i] == seen->packets + 1);
  void *packet;
  mcapi_pktchan_recv(mine.receive[i], &packet, &size, &s);
  if (s != MCAPI_ERR_TRANSMISSION && s != MCAPI_ERR_CHAN_CLOSEPENDING)
    FAIL("status %d instead of an end", (int)s);
}

/* ---- a third node that connects two others --------------------------------------------------- */

static void third_before(void) {
  make_ends();
  mcapi_pktchan_recv_open_i(&mine.receive[0], mine.in, &mine.opened[0], &s);
  SAYS(MCAPI_PENDING);
  mcapi_pktchan_send_open_i(&mine.send, mine.out, &mine.opened[1], &s);
  SAYS(MCAPI_PENDING);
}
static void third_lives(void) {
  mcapi_request_t r;
  begin_life();
  at("get");
  mcapi_endpoint_t from = get(SURVIVOR, OUT), to = get(SURVIVOR, IN);
  at("connect");
  mcapi_pktchan_connect_i(from, to, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  end_life();
}
/* The ends are connected, or can be, and carry packets. */
static void third_after(void) {
  unsigned char data[BIG];
  double begun = seconds();
  for (test_opens(); !mine.is_open[0] || !mine.is_open[1]; test_opens()) {
    mcapi_request_t r;
    mcapi_pktchan_connect_i(mine.out, mine.in, &r, &s);
    if (s == MCAPI_SUCCESS || s == MCAPI_PENDING)
      finish(&r);
    else
      SAYS(MCAPI_ERR_CHAN_CONNECTED);
    CHECK(seconds() - begun < LIMIT_MS * 1e-3);
  }
  for (long i = 0; i < PACKETS; i++) {
    fill(data, size_of(i), i);
    mcapi_pktchan_send(mine.send, data, size_of(i), &s);
    SAYS(MCAPI_SUCCESS);
  }
  take_packets(0);
  CHECK(mine.got[0] == PACKETS);
}
static void third_away(void) {
  close_send(mine.send);
  close_receive(mine.receive[0]);
  put_ends_away();
}

/* ---- scalars in both directions -------------------------------------------------------------- */

enum { SCALARS = 9 };
static uint64_t scalar(long i) {
  static const uint64_t mask[] = {UINT64_MAX, UINT32_MAX, UINT16_MAX, UINT8_MAX};
  return ((uint64_t)i + 1) * 0x0123456789abcdefu & mask[i % 4];
}
static void send_scalar(mcapi_sclchan_send_hndl_t h, long i) {
  uint64_t x = scalar(i);
  if (i % 4 == 0) mcapi_sclchan_send_uint64(h, x, &s);
  if (i % 4 == 1) mcapi_sclchan_send_uint32(h, (mcapi_uint32_t)x, &s);
  if (i % 4 == 2) mcapi_sclchan_send_uint16(h, (mcapi_uint16_t)x, &s);
  if (i % 4 == 3) mcapi_sclchan_send_uint8(h, (mcapi_uint8_t)x, &s);
}
static uint64_t receive_scalar(mcapi_sclchan_recv_hndl_t h, long i) {
  if (i % 4 == 0) return mcapi_sclchan_recv_uint64(h, &s);
  if (i % 4 == 1) return mcapi_sclchan_recv_uint32(h, &s);
  if (i % 4 == 2) return mcapi_sclchan_recv_uint16(h, &s);
  return mcapi_sclchan_recv_uint8(h, &s);
}

static void scalars_before(void) {
  make_ends();
  mcapi_sclchan_recv_open_i(&mine.scalars_in, mine.in, &mine.opened[0], &s);
  SAYS(MCAPI_PENDING);
  mcapi_sclchan_send_open_i(&mine.scalars_out, mine.out, &mine.opened[1], &s);
  SAYS(MCAPI_PENDING);
}
static void scalars_live(void) {
  mcapi_request_t r[4];
  mcapi_sclchan_send_hndl_t out;
  mcapi_sclchan_recv_hndl_t in;
  begin_life();
  mcapi_endpoint_t mine_in = make(IN), mine_out = make(OUT);
  at("connect");
  mcapi_sclchan_connect_i(mine_out, get(SURVIVOR, IN), &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_sclchan_connect_i(get(SURVIVOR, OUT), mine_in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  at("open");
  mcapi_sclchan_send_open_i(&out, mine_out, &r[2], &s);
  mcapi_sclchan_recv_open_i(&in, mine_in, &r[3], &s);
  for (int i = 0; i < 4; i++) finish(&r[i]);
  at("scalars out");
  for (long i = 0; i < SCALARS; i++) {
    send_scalar(out, i);
    SAYS(MCAPI_SUCCESS);
    seen->packets = i + 1;
  }
  at("scalars in");
  for (long i = 0; i < SCALARS / 2; i++) {
    CHECK(receive_scalar(in, i) == scalar(i));
    SAYS(MCAPI_SUCCESS);
  }
  at("close");
  mcapi_sclchan_send_close_i(out, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_sclchan_recv_close_i(in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  end_life();
}
static void take_scalars(void) {
  for (; test_open(0) && mcapi_sclchan_available(mine.scalars_in, &s); mine.got[0]++) {
    CHECK(receive_scalar(mine.scalars_in, mine.got[0]) == scalar(mine.got[0]));
    SAYS(MCAPI_SUCCESS);
  }
}
static void scalars_serve(void) {
  take_scalars();
  for (; test_open(1) && mine.sent < SCALARS; mine.sent++) {
    send_scalar(mine.scalars_out, mine.sent);
    if (s != MCAPI_SUCCESS) return;
  }
}
static void scalars_after(void) {
  test_opens();
  take_scalars();
  if (!mine.is_open[0]) {
    CHECK(seen->packets == 0);
    return;
  }
  CHECK(mine.got[0] == seen->packets || mine.got[0] == seen->packets + 1);
  receive_scalar(mine.scalars_in, mine.got[0]);
  if (s != MCAPI_ERR_TRANSMISSION && s != MCAPI_ERR_CHAN_CLOSEPENDING)
    FAIL("status %d instead of an end", (int)s);
}
static void scalars_away(void) {
  mcapi_request_t r;
  mcapi_sclchan_recv_close_i(mine.scalars_in, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  mcapi_sclchan_send_close_i(mine.scalars_out, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  put_ends_away();
}

/* ---- loans ----------------------------------------------------------------------------------- */

static void loans_before(void) {
  make_ends();
  mcapi_pktchan_recv_open_i(&mine.receive[0], mine.in, &mine.opened[0], &s);
  SAYS(MCAPI_PENDING);
}
static void loans_live(void) {
  mcapi_request_t r[2];
  mcapi_pktchan_send_hndl_t out;
  begin_life();
  mcapi_endpoint_t from = make(OUT);
  mcapi_pktchan_connect_i(from, get(SURVIVOR, IN), &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_send_open_i(&out, from, &r[1], &s);
  finish(&r[0]);
  finish(&r[1]);
  for (long i = 0; i < 2 * PACKETS; i++) {
    at("loan");
    void *loan = lvd_mcapi_buffer_acquire(out, BIG, &s);
    SAYS(MCAPI_SUCCESS);
    if (i % 2) {
      at("return");
      memset(loan, 0xee, BIG);
      lvd_mcapi_buffer_release(out, loan, &s);
      SAYS(MCAPI_SUCCESS);
      continue;
    }
    at("send");
    fill(loan, size_of(i / 2), i / 2);
    lvd_mcapi_buffer_send(out, loan, size_of(i / 2), &s);
    SAYS(MCAPI_SUCCESS);
    seen->packets = i / 2 + 1;
  }
  at("close");
  mcapi_pktchan_send_close_i(out, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  end_life();
}
static void loans_serve(void) { take_packets(0); }
static void loans_after(void) {
  take_packets(0);
  all_came(0);
}
static void loans_away(void) {
  close_receive(mine.receive[0]);
  put_ends_away();
}

/* ---- one of two receivers of a broadcast ----------------------------------------------------- */

static void connect_more(mcapi_endpoint_t from, mcapi_endpoint_t to) {
  mcapi_request_t r;
  lvd_mcapi_broadcast_connect_i(from, to, &r, &s);
  if (s != MCAPI_SUCCESS) SAYS(MCAPI_PENDING);
  finish(&r);
}
static void hears_before(void) {
  make_ends();
  connect_more(mine.out, mine.in);
  mcapi_pktchan_recv_open_i(&mine.receive[0], mine.in, &mine.opened[0], &s);
  mcapi_pktchan_send_open_i(&mine.send, mine.out, &mine.opened[1], &s);
  finish(&mine.opened[0]);
  finish(&mine.opened[1]);
  mine.is_open[0] = mine.is_open[1] = true;
}
static void hears_live(void) {
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t in;
  begin_life();
  mcapi_endpoint_t to = make(IN);
  at("connect");
  connect_more(get(SURVIVOR, OUT), to);
  at("open");
  mcapi_pktchan_recv_open_i(&in, to, &r, &s);
  finish(&r);
  at("hear");
  for (long i = 0, first = -1; i < 3; i++) { /* from some packet on, all of them */
    void *packet;
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    for (long k = 0; first < 0 && k < 2 * PACKETS; k++)
      if (size == size_of(k) && is_filled(packet, size, k)) first = k;
    CHECK(first >= 0);
    long k = (first + i) % (2 * PACKETS);
    CHECK(size == size_of(k) && is_filled(packet, size, k));
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
  at("close");
  mcapi_pktchan_recv_close_i(in, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  end_life();
}
/* Sends one packet, if there is a receiver. */
static void say_one(void) {
  unsigned char data[BIG];
  void *packet;
  long k = mine.sent++ % (2 * PACKETS);
  fill(data, size_of(k), k);
  mcapi_pktchan_send(mine.send, data, size_of(k), &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_recv(mine.receive[0], &packet, &size, &s);
  SAYS(MCAPI_SUCCESS);
  CHECK(size == size_of(k) && is_filled(packet, size, k));
  mcapi_pktchan_release(packet, &s);
  SAYS(MCAPI_SUCCESS);
}
static void hears_serve(void) {
  nap(20000);
  say_one();
}
/* The sender does not wait for the dead receiver: more passes than there is room for. */
static void hears_after(void) {
  for (int i = 0; i < 200; i++) say_one();
}

/* ---- the sender of a broadcast with two receivers -------------------------------------------- */

static void broadcasts_before(void) {
  make_ends();
  for (int i = 0; i < 2; i++) {
    mcapi_pktchan_recv_open_i(&mine.receive[i], i ? mine.out : mine.in, &mine.opened[i], &s);
    SAYS(MCAPI_PENDING);
  }
}
static void broadcasts_live(void) {
  unsigned char data[BIG];
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t out;
  begin_life();
  mcapi_endpoint_t from = make(MAIL);
  at("connect");
  connect_more(from, get(SURVIVOR, IN));
  connect_more(from, get(SURVIVOR, OUT));
  at("open");
  mcapi_pktchan_send_open_i(&out, from, &r, &s);
  finish(&r);
  at("send");
  for (long i = 0; i < PACKETS; i++) {
    fill(data, size_of(i), i);
    mcapi_pktchan_send(out, data, size_of(i), &s);
    SAYS(MCAPI_SUCCESS);
    seen->packets = i + 1;
  }
  at("close");
  mcapi_pktchan_send_close_i(out, &r, &s);
  SAYS(MCAPI_SUCCESS);
  end_life();
}
static void broadcasts_serve(void) {
  for (int i = 0; i < 2; i++) take_packets(i);
}
static void broadcasts_after(void) {
  broadcasts_serve();
  for (int i = 0; i < 2; i++) all_came(i);
}
static void broadcasts_away(void) {
  for (int i = 0; i < 2; i++) close_receive(mine.receive[i]);
  put_ends_away();
}

const life ends_lives[] = {
    {"third", third_before, third_lives, test_opens, third_after, third_away},
    {"scalars", scalars_before, scalars_live, scalars_serve, scalars_after, scalars_away},
    {"loans", loans_before, loans_live, loans_serve, loans_after, loans_away},
    {"hears", hears_before, hears_live, hears_serve, hears_after, third_away},
    {"broadcasts", broadcasts_before, broadcasts_live, broadcasts_serve, broadcasts_after,
     broadcasts_away},
    {.name = NULL}};
