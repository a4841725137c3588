/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The life of a node that exchanges messages with the survivor, and packets over a channel in each
 * direction. */
#include "life.h"
#include "mcapi/domain/domain.h"

static struct {
  mcapi_endpoint_t mail, in, out;
  mcapi_pktchan_recv_hndl_t receive;
  mcapi_pktchan_send_hndl_t send;
  mcapi_request_t opened[2];
  bool is_open[2];
  long messages, packets, sent, posted;
} mine;
/* The whole life of a node, with the survivor's help. */
static void live(void) {
  unsigned char data[BIG];
  mcapi_request_t r[4];
  mcapi_pktchan_send_hndl_t out;
  mcapi_pktchan_recv_hndl_t in;
  counted = true;
  at("initialize");
  begin(VICTIM);
  at("create");
  mcapi_endpoint_t mail = make(MAIL), mine_in = make(IN), mine_out = make(OUT);
  at("get");
  mcapi_endpoint_t to = get(SURVIVOR, MAIL), their_in = get(SURVIVOR, IN),
                   their_out = get(SURVIVOR, OUT);
  at("send");
  for (long i = 0; i < MESSAGES; i++) {
    fill(data, size_of(i), i);
    mcapi_msg_send(mail, to, data, size_of(i), (mcapi_priority_t)3, &s);
    SAYS(MCAPI_SUCCESS);
    seen->messages = i + 1;
  }
  at("receive");
  for (long i = 0; i < 3; i++) { /* the others are still queued when it ends */
    mcapi_msg_recv(mail, data, sizeof data, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(i) && is_filled(data, size, i));
  }
  at("connect");
  mcapi_pktchan_connect_i(mine_out, their_in, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_connect_i(their_out, mine_in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  at("open");
  mcapi_pktchan_send_open_i(&out, mine_out, &r[2], &s);
  mcapi_pktchan_recv_open_i(&in, mine_in, &r[3], &s);
  for (int i = 0; i < 4; i++) finish(&r[i]);
  at("packets out");
  for (long i = 0; i < PACKETS; i++) {
    fill(data, size_of(i), i);
    mcapi_pktchan_send(out, data, size_of(i), &s);
    SAYS(MCAPI_SUCCESS);
    seen->packets = i + 1;
  }
  at("packets in");
  for (long i = 0; i < 3; i++) {
    void *packet;
    mcapi_pktchan_recv(in, &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(i) && is_filled(packet, size, i));
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
  at("close");
  mcapi_pktchan_send_close_i(out, &r[0], &s);
  SAYS(MCAPI_SUCCESS);
  mcapi_pktchan_recv_close_i(in, &r[1], &s);
  SAYS(MCAPI_SUCCESS);
  at("delete");
  mcapi_endpoint_delete(mine_in, &s);
  SAYS(MCAPI_SUCCESS);
  end_life();
}

static void open_ends(void) {
  mine.mail = get(SURVIVOR, MAIL);
  mine.in = make(IN);
  mine.out = make(OUT);
  mcapi_pktchan_recv_open_i(&mine.receive, mine.in, &mine.opened[0], &s);
  SAYS(MCAPI_PENDING);
  mcapi_pktchan_send_open_i(&mine.send, mine.out, &mine.opened[1], &s);
  SAYS(MCAPI_PENDING);
  mine.is_open[0] = mine.is_open[1] = false;
  mine.messages = mine.packets = mine.sent = mine.posted = 0;
}

static void take_messages(void) {
  unsigned char data[BIG];
  while (mcapi_msg_available(mine.mail, &s)) {
    mcapi_msg_recv(mine.mail, data, sizeof data, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(mine.messages) && is_filled(data, size, mine.messages));
    mine.messages++;
  }
}

/* False: no more packets will arrive. */
static bool take_packets(void) {
  while (mine.is_open[0]) {
    void *packet;
    if (!mcapi_pktchan_available(mine.receive, &s)) return true;
    mcapi_pktchan_recv(mine.receive, &packet, &size, &s);
    SAYS(MCAPI_SUCCESS);
    CHECK(size == size_of(mine.packets) && is_filled(packet, size, mine.packets));
    mine.packets++;
    mcapi_pktchan_release(packet, &s);
    SAYS(MCAPI_SUCCESS);
  }
  return false;
}

/* What the survivor does for the victim, as far as possible now. */
static void serve(void) {
  unsigned char data[BIG];
  take_messages();
  if (mine.posted < MESSAGES) {
    mcapi_endpoint_t e = mcapi_endpoint_get(number, VICTIM, MAIL, 0, &s);
    for (; s == MCAPI_SUCCESS && mine.posted < MESSAGES; mine.posted++) {
      fill(data, size_of(mine.posted), mine.posted);
      mcapi_msg_send(mine.mail, e, data, size_of(mine.posted), 3, &s);
    }
  }
  for (int i = 0; i < 2; i++)
    if (!mine.is_open[i]) mine.is_open[i] = mcapi_test(&mine.opened[i], &size, &s);
  take_packets();
  for (; mine.is_open[1] && mine.sent < PACKETS; mine.sent++) {
    fill(data, size_of(mine.sent), mine.sent);
    mcapi_pktchan_send(mine.send, data, size_of(mine.sent), &s);
    if (s != MCAPI_SUCCESS) break;
  }
}

static void check(void) {
  /* Requests that waited for the victim have completed, or wait for the next one. */
  for (int i = 0; i < 2; i++)
    if (!mine.is_open[i]) mine.is_open[i] = mcapi_test(&mine.opened[i], &size, &s);
  take_messages();
  CHECK(mine.messages == seen->messages || mine.messages == seen->messages + 1);
  take_packets();
  /* The end is not open, and cannot be opened any more: what was sent is lost only if it could not
   * have been received. */
  if (mine.is_open[0])
    CHECK(mine.packets == seen->packets || mine.packets == seen->packets + 1);
  else
    CHECK(seen->packets == 0);
  if (mine.is_open[0]) {
    void *packet;
    mcapi_pktchan_recv(mine.receive, &packet, &size, &s);
    if (s != MCAPI_ERR_TRANSMISSION && s != MCAPI_ERR_CHAN_CLOSEPENDING)
      FAIL("status %d instead of an end", (int)s);
  }
  mcapi_uint_t room;
  mcapi_endpoint_get_attribute(mine.mail, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, &room, sizeof room, &s);
  CHECK(room == MC_SLOTS);
}

static void close_ends(void) {
  mcapi_request_t r;
  mcapi_pktchan_recv_close_i(mine.receive, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  mcapi_pktchan_send_close_i(mine.send, &r, &s);
  SAYS(MCAPI_SUCCESS);
  finish(&r);
  /* A request that waited for an open that never happened has completed, and is freed. */
  for (int i = 0; i < 2; i++)
    if (!mine.is_open[i] && !mcapi_test(&mine.opened[i], &size, &s) && s == MCAPI_PENDING) {
      mcapi_cancel(&mine.opened[i], &s);
      SAYS(MCAPI_SUCCESS);
    }
  put_away(mine.in);
  put_away(mine.out);
}

const life packets_life = {"store", open_ends, live, serve, check, close_ends};
