/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channels: connecting, opening and closing, in every order, by every node; calls that are
 * refused. */
#include "conformance.h"

#include <string.h>

static mcapi_pktchan_send_hndl_t out;
static mcapi_pktchan_recv_hndl_t in;

static void carries_one(void) {
  void *p;
  size_t n;
  C(pktchan_send)(out, "packet", 7, &s);
  SAYS("a packet is sent", MCAPI_SUCCESS);
  C(pktchan_recv)(in, &p, &n, &s);
  SAYS("and received", MCAPI_SUCCESS);
  IS(s == MCAPI_SUCCESS && n == 7 && strcmp(p, "packet") == 0, "it is whole");
  C(pktchan_release)(p, &s);
  SAYS("and released", MCAPI_SUCCESS);
}

static void close_both(int sender_first) {
  mcapi_request_t r;
  for (int i = 0; i < 2; i++) {
    if (i == !sender_first)
      C(pktchan_send_close_i)(out, &r, &s);
    else
      C(pktchan_recv_close_i)(in, &r, &s);
    SAYS_EITHER("an end is closed", MCAPI_SUCCESS, MCAPI_PENDING);
    done("and it is done", &r);
  }
}

/* Three steps in all six orders, closed in both orders. */
static void orders(void) {
  static const char order[6][4] = {"crs", "csr", "rcs", "rsc", "scr", "src"};
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  for (int i = 0; i < 6; i++) {
    mcapi_request_t c, r, q;
    for (const char *step = order[i]; *step; step++) {
      if (*step == 'c')
        C(pktchan_connect_i)(from, to, &c, &s);
      else if (*step == 'r')
        C(pktchan_recv_open_i)(&in, to, &r, &s);
      else
        C(pktchan_send_open_i)(&out, from, &q, &s);
      SAYS_EITHER("a step to a channel", MCAPI_SUCCESS, MCAPI_PENDING);
    }
    done("connected", &c);
    done("opened to receive", &r);
    done("opened to send", &q);
    carries_one();
    close_both(i % 2);
  }
  end();
}

static void pending(void) {
  mcapi_request_t r, q, c;
  size_t n;
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  SAYS("opened before it is connected", MCAPI_PENDING);
  IS(!C(test)(&r, &n, &s), "it is not open");
  SAYS("mcapi_test", MCAPI_PENDING);
  C(pktchan_recv_open_i)(&in, to, &q, &s);
  SAYS("opened again meanwhile", MCAPI_ERR_CHAN_OPENPENDING);
  mcapi_uint_t state = 0;
  C(endpoint_get_attribute)(to, MCAPI_ENDP_ATTR_ENDP_STATUS, &state, sizeof state, &s);
#ifndef CONFORM_2000
  if (s == MCAPI_SUCCESS)
    IS(state & MCAPI_ENDP_ATTR_STATUS_OPEN_PENDING, "its status says that it is being opened");
#endif
  C(pktchan_connect_i)(from, to, &c, &s);
  done("connected", &c);
  done("then it is open, though the other end is not", &r);
  C(pktchan_send_open_i)(&out, from, &q, &s);
  done("opened to send", &q);
  C(endpoint_get_attribute)(to, MCAPI_ENDP_ATTR_ENDP_STATUS, &state, sizeof state, &s);
#ifndef CONFORM_2000
  if (s == MCAPI_SUCCESS)
    IS(state & MCAPI_ENDP_ATTR_STATUS_CONNECTED && state & MCAPI_ENDP_ATTR_STATUS_OPEN,
       "its status says that it is connected and open");
#endif
  carries_one();
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  SAYS("opened when it is open", MCAPI_ERR_CHAN_OPEN);
  C(pktchan_send_open_i)(&out, from, &r, &s);
  SAYS("the same of the end that sends", MCAPI_ERR_CHAN_OPEN);
  C(endpoint_delete)(to, &s);
  SAYS("deleted when it is open", MCAPI_ERR_CHAN_OPEN);
  const mcapi_uint_t priority = 0;
  C(endpoint_set_attribute)(to, MCAPI_ENDP_ATTR_PRIORITY, &priority, sizeof priority, &s);
  SAYS("an attribute set when it is connected", MCAPI_ERR_CHAN_CONNECTED);
  C(msg_send)(from, to, "message", 8, CONFORM_URGENT, &s);
  choice("a message to an endpoint that is connected", s);
  close_both(1);
  deleted(to);
  deleted(from);
  end();
}

static void refused(void) {
  mcapi_request_t r;
  mcapi_endpoint_t none;
  mcapi_sclchan_recv_hndl_t scalars_in;
  mcapi_sclchan_send_hndl_t scalars_out;
  memset(&none, 0, sizeof none);
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2), other = created(3);
  C(pktchan_connect_i)(none, to, &r, &s);
  SAYS("connected from nothing", MCAPI_ERR_ENDP_INVALID);
  C(pktchan_connect_i)(from, none, &r, &s);
  SAYS("connected to nothing", MCAPI_ERR_ENDP_INVALID);
  C(pktchan_connect_i)(from, to, NULL, &s);
  SAYS("connected without a request", MCAPI_ERR_PARAMETER);
  C(pktchan_connect_i)(from, from, &r, &s);
  choice("connected to itself", s);
  IS(s != MCAPI_SUCCESS && s != MCAPI_PENDING, "to itself it is refused");
  C(pktchan_recv_open_i)(&in, none, &r, &s);
  SAYS("nothing is opened", MCAPI_ERR_ENDP_INVALID);
  C(pktchan_send_open_i)(&out, none, &r, &s);
  SAYS("nothing is opened to send", MCAPI_ERR_ENDP_INVALID);
  C(pktchan_recv_open_i)(NULL, to, &r, &s);
  SAYS("opened, its handle nowhere", MCAPI_ERR_PARAMETER);
  C(pktchan_send_open_i)(&out, from, NULL, &s);
  SAYS("opened without a request", MCAPI_ERR_PARAMETER);

  C(pktchan_connect_i)(from, to, &r, &s);
  done("connected", &r);
  C(pktchan_connect_i)(from, other, &r, &s);
  SAYS("the sender connected again", MCAPI_ERR_CHAN_CONNECTED);
  C(pktchan_connect_i)(other, to, &r, &s);
  SAYS("the receiver connected again", MCAPI_ERR_CHAN_CONNECTED);
  C(sclchan_connect_i)(from, to, &r, &s);
  SAYS("connected again for scalars", MCAPI_ERR_CHAN_CONNECTED);
  C(pktchan_recv_open_i)(&in, from, &r, &s);
  SAYS("the sender opened to receive", MCAPI_ERR_CHAN_DIRECTION);
  C(pktchan_send_open_i)(&out, to, &r, &s);
  SAYS("the receiver opened to send", MCAPI_ERR_CHAN_DIRECTION);
  C(sclchan_recv_open_i)(&scalars_in, to, &r, &s);
  SAYS("opened for scalars", MCAPI_ERR_CHAN_TYPE);
  C(sclchan_send_open_i)(&scalars_out, from, &r, &s);
  SAYS("opened to send scalars", MCAPI_ERR_CHAN_TYPE);
  end();
}

static void closed(void) {
  mcapi_request_t r, q, c;
  void *p;
  size_t n;
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  C(pktchan_connect_i)(from, to, &c, &s);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  C(pktchan_send_open_i)(&out, from, &q, &s);
  done("connected", &c);
  done("opened", &r);
  done("opened to send", &q);
  C(pktchan_recv_close_i)(in, NULL, &s);
  SAYS("closed without a request", MCAPI_ERR_PARAMETER);
  C(pktchan_send_close_i)(out, NULL, &s);
  SAYS("the other, too", MCAPI_ERR_PARAMETER);
  /* What was sent before the sender closed is received. */
  for (int i = 0; i < 3; i++) C(pktchan_send)(out, &i, sizeof i, &s);
  C(pktchan_send_close_i)(out, &r, &s);
  done("the sender has closed", &r);
  C(pktchan_send)(out, "x", 1, &s);
  SAYS("sent from a closed end", MCAPI_ERR_CHAN_INVALID);
  for (int i = 0; i < 3; i++) {
    C(pktchan_recv)(in, &p, &n, &s);
    SAYS("sent before the end", MCAPI_SUCCESS);
    IS(s == MCAPI_SUCCESS && n == sizeof i && memcmp(p, &i, n) == 0, "it is whole");
    if (s == MCAPI_SUCCESS) C(pktchan_release)(p, &s);
  }
#ifndef CONFORM_2000
  C(pktchan_recv_i)(in, &p, &r, &s);
  if (s == MCAPI_SUCCESS || s == MCAPI_PENDING) C(wait)(&r, &n, 50 * CONFORM_MS, &s);
  choice("received after the sender has closed", s);
  IS(s != MCAPI_SUCCESS, "no packet comes after the end");
#endif
  C(pktchan_send_close_i)(out, &r, &s);
  FAILS("closed again");
  choice("closed again before the other end", s);
  C(pktchan_recv_close_i)(in, &r, &s);
  done("the receiver has closed", &r);
  C(pktchan_recv)(in, &p, &n, &s);
  SAYS("received at a closed end", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_available)(in, &s);
  SAYS("available at a closed end", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_recv_close_i)(in, &r, &s);
  SAYS_EITHER("closed when neither is open", MCAPI_ERR_CHAN_NOTOPEN, MCAPI_ERR_CHAN_INVALID);
  choice("closed when neither end is open", s);

  /* The receiver closes first: queued elements are dropped, sends fail. */
  C(pktchan_connect_i)(from, to, &c, &s);
  done("connected again", &c);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  C(pktchan_send_open_i)(&out, from, &q, &s);
  done("opened", &r);
  done("opened to send", &q);
  IS(C(pktchan_available)(in, &s) == 0, "nothing of the former channel is there");
  C(pktchan_send)(out, "dropped", 8, &s);
  C(pktchan_recv_close_i)(in, &r, &s);
  done("the receiver has closed", &r);
  C(pktchan_send)(out, "x", 1, &s);
  FAILS("sent to a closed end");
  choice("sent to a closed end", s);
  C(pktchan_send_close_i)(out, &r, &s);
  done("the sender has closed", &r);
  C(pktchan_connect_i)(from, to, &c, &s);
  done("they can be connected again", &c);
  end();
}

static void incompatible(void) {
  mcapi_request_t r;
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  const mcapi_uint_t size = 16;
  C(endpoint_set_attribute)(from, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &size, sizeof size, &s);
  choice("to set the largest payload", s);
  if (s == MCAPI_SUCCESS) {
    C(pktchan_connect_i)(from, to, &r, &s);
    SAYS("ends that do not agree on it", MCAPI_ERR_ATTR_INCOMPATIBLE);
    C(sclchan_connect_i)(from, to, &r, &s);
    SAYS("for scalars", MCAPI_ERR_ATTR_INCOMPATIBLE);
    C(endpoint_set_attribute)(to, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &size, sizeof size, &s);
    C(pktchan_connect_i)(from, to, &r, &s);
    done("then they do", &r);
    mcapi_request_t q;
    C(pktchan_recv_open_i)(&in, to, &r, &s);
    C(pktchan_send_open_i)(&out, from, &q, &s);
    done("opened", &r);
    done("opened to send", &q);
    char b[17] = "";
    C(pktchan_send)(out, b, 17, &s);
    SAYS("a packet that is larger", TOO_LARGE_PACKET);
  }
  end();
}

/* ---- between two nodes ----------------------------------------------------------------------- */

static void remote_one(void) {
  mcapi_request_t r;
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = got(TWO, 2);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  SAYS("another node's is opened", MCAPI_ERR_ENDP_REMOTE);
  C(pktchan_send_open_i)(&out, to, &r, &s);
  SAYS("to send", MCAPI_ERR_ENDP_REMOTE);
  meet(); /* 1: the other node, the receiver, connects */
  meet(); /* 2 */
  C(pktchan_send_open_i)(&out, from, &r, &s);
  done("opened to send", &r);
  C(pktchan_send)(out, "packet", 7, &s);
  SAYS("sent", MCAPI_SUCCESS);
  C(pktchan_send_close_i)(out, &r, &s);
  done("closed", &r);
  meet(); /* 3 */
  end();
}
static void remote_two(void) {
  mcapi_request_t r;
  void *p;
  size_t n;
  mcapi_pktchan_recv_hndl_t mine;
  begin(TWO);
  mcapi_endpoint_t to = created(2);
  meet(); /* 1 */
  C(pktchan_connect_i)(got(ONE, 1), to, &r, &s);
  done("connected by the receiver", &r);
  meet(); /* 2 */
  C(pktchan_recv_open_i)(&mine, to, &r, &s);
  done("opened", &r);
  C(pktchan_recv)(mine, &p, &n, &s);
  SAYS("received", MCAPI_SUCCESS);
  IS(s == MCAPI_SUCCESS && n == 7 && strcmp(p, "packet") == 0, "it is whole");
  C(pktchan_release)(p, &s);
  SAYS("released", MCAPI_SUCCESS);
  C(pktchan_recv_close_i)(mine, &r, &s);
  done("closed", &r);
  meet(); /* 3 */
  end();
}

#ifndef CONFORM_2000 /* it has no timeouts, so a call may block forever */
/* The sender's process is killed. */
static void killed_one(void) {
  mcapi_request_t r;
  void *p;
  size_t n;
  begin(ONE);
  mcapi_endpoint_t to = created(2);
  limited(to, 3000);
  C(pktchan_connect_i)(got(TWO, 1), to, &r, &s);
  done("connected", &r);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  done("opened", &r);
  meet();
  kill_other();
  C(pktchan_recv)(in, &p, &n, &s);
  SAYS("what it sent before", MCAPI_SUCCESS);
  C(pktchan_recv)(in, &p, &n, &s);
  choice("then, its process killed, within 3 s", s);
  FAILS("a packet from a dead process");
  C(pktchan_recv_close_i)(in, &r, &s);
  done("closed", &r);
  end();
}
static void killed_two(void) {
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t mine;
  begin(TWO);
  C(pktchan_send_open_i)(&mine, created(1), &r, &s);
  done("opened to send", &r);
  C(pktchan_send)(mine, "last", 5, &s);
  SAYS("sent", MCAPI_SUCCESS);
  meet();
  for (;;) nap(1000);
}
#endif

const conform_case channel_cases[] = {{"orders of a channel", orders, NULL, 0},
                                      {"a channel that is opened", pending, NULL, 0},
                                      {"what is refused of channels", refused, NULL, 0},
                                      {"a channel that is closed", closed, NULL, 0},
                                      {"ends that do not fit", incompatible, NULL, 0},
                                      {"a channel between nodes", remote_one, remote_two, 0},
#ifndef CONFORM_2000
                                      {"a sender that is killed", killed_one, killed_two, 1},
#endif
                                      {NULL, NULL, NULL, 0}};
