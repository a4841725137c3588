/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalars: four sizes, and receives of another size. */
#include "conformance.h"

#include <string.h>

static mcapi_sclchan_send_hndl_t out;
static mcapi_sclchan_recv_hndl_t in;
static mcapi_endpoint_t from, to;

static void opened(int ms) {
  mcapi_request_t r, q, c;
  begin_pair(&from, &to, ms);
  C(sclchan_connect_i)(from, to, &c, &s);
  C(sclchan_recv_open_i)(&in, to, &r, &s);
  C(sclchan_send_open_i)(&out, from, &q, &s);
  done("connected", &c);
  done("opened", &r);
  done("opened to send", &q);
}

/* With a size of `bits`. */
static void send(int bits, mcapi_uint64_t value) {
  switch (bits) {
  case 8:
    C(sclchan_send_uint8)(out, (mcapi_uint8_t)value, &s);
    break;
  case 16:
    C(sclchan_send_uint16)(out, (mcapi_uint16_t)value, &s);
    break;
  case 32:
    C(sclchan_send_uint32)(out, (mcapi_uint32_t)value, &s);
    break;
  default:
    C(sclchan_send_uint64)(out, value, &s);
  }
}
static mcapi_uint64_t receive(int bits) {
  switch (bits) {
  case 8:
    return C(sclchan_recv_uint8)(in, &s);
  case 16:
    return C(sclchan_recv_uint16)(in, &s);
  case 32:
    return C(sclchan_recv_uint32)(in, &s);
  default:
    return C(sclchan_recv_uint64)(in, &s);
  }
}
static mcapi_uint64_t ones(int bits) {
  return bits == 64 ? ~(mcapi_uint64_t)0 : ((mcapi_uint64_t)1 << bits) - 1;
}

static void sizes(void) {
  opened(0);
  for (int bits = 8; bits <= 64; bits *= 2) {
    const mcapi_uint64_t values[] = {0, 1, ones(bits) / 3, ones(bits)};
    for (int i = 0; i < 4; i++) {
      send(bits, values[i]);
      SAYS("a scalar is sent", MCAPI_SUCCESS);
    }
    IS(C(sclchan_available)(in, &s) == 4, "four are available");
    SAYS("mcapi_sclchan_available", MCAPI_SUCCESS);
    for (int i = 0; i < 4; i++) {
      IS(receive(bits) == values[i], "it is the one that was sent");
      SAYS("a scalar is received", MCAPI_SUCCESS);
    }
    IS(C(sclchan_available)(in, &s) == 0, "none is available");
  }
  end();
}

static void other_sizes(void) {
  opened(0);
  for (int sent = 8; sent <= 64; sent *= 2) {
    send(sent, (mcapi_uint64_t)sent);
    for (int asked = 8; asked <= 64; asked *= 2) {
      if (asked == sent) continue;
      receive(asked);
      SAYS("a scalar of another size", MCAPI_ERR_SCL_SIZE);
    }
    IS(C(sclchan_available)(in, &s) == 1, "it is still there");
    IS(receive(sent) == (mcapi_uint64_t)sent, "and received with its own size");
    SAYS("received", MCAPI_SUCCESS);
  }
  end();
}

static void errors(void) {
  mcapi_request_t r;
  mcapi_sclchan_send_hndl_t no_out, right_out;
  mcapi_sclchan_recv_hndl_t no_in, right_in;
  mcapi_endpoint_t none;
  memset(&no_out, 0, sizeof no_out);
  memset(&no_in, 0, sizeof no_in);
  memset(&none, 0, sizeof none);
  opened(0);
  right_out = out;
  right_in = in;
  out = no_out;
  in = no_in;
  for (int bits = 8; bits <= 64; bits *= 2) {
    send(bits, 1);
    SAYS("sent on nothing", MCAPI_ERR_CHAN_INVALID);
    receive(bits);
    SAYS("received on nothing", MCAPI_ERR_CHAN_INVALID);
  }
  C(sclchan_available)(no_in, &s);
  SAYS("available on nothing", MCAPI_ERR_CHAN_INVALID);
  C(sclchan_recv_close_i)(no_in, &r, &s);
  SAYS("nothing is closed", MCAPI_ERR_CHAN_INVALID);
  C(sclchan_send_close_i)(no_out, &r, &s);
  SAYS("nothing is closed to send", MCAPI_ERR_CHAN_INVALID);
  out = right_out;
  in = right_in;
  C(sclchan_connect_i)(none, to, &r, &s);
  SAYS("connected from nothing", MCAPI_ERR_ENDP_INVALID);
  C(sclchan_connect_i)(from, to, &r, &s);
  SAYS("connected again", MCAPI_ERR_CHAN_CONNECTED);
  mcapi_pktchan_recv_hndl_t packets_in;
  mcapi_pktchan_send_hndl_t packets_out;
  C(pktchan_recv_open_i)(&packets_in, to, &r, &s);
  SAYS_EITHER("opened for packets", MCAPI_ERR_CHAN_TYPE, MCAPI_ERR_CHAN_OPEN);
  C(pktchan_send_open_i)(&packets_out, from, &r, &s);
  SAYS_EITHER("opened to send packets", MCAPI_ERR_CHAN_TYPE, MCAPI_ERR_CHAN_OPEN);
  C(sclchan_recv_open_i)(&no_in, from, &r, &s);
  SAYS_EITHER("the sender opened to receive", MCAPI_ERR_CHAN_DIRECTION, MCAPI_ERR_CHAN_OPEN);
  C(sclchan_recv_open_i)(&no_in, to, &r, &s);
  SAYS("opened again", MCAPI_ERR_CHAN_OPEN);
  C(sclchan_recv_open_i)(&no_in, none, &r, &s);
  SAYS("nothing is opened", MCAPI_ERR_ENDP_INVALID);
  C(sclchan_send_open_i)(&no_out, none, &r, &s);
  SAYS("nothing is opened to send", MCAPI_ERR_ENDP_INVALID);
  C(sclchan_recv_close_i)(in, NULL, &s);
  SAYS("closed without a request", MCAPI_ERR_PARAMETER);

  /* Closed by the sender: what was sent is received. */
  C(sclchan_send_uint32)(out, 7, &s);
  C(sclchan_send_close_i)(out, &r, &s);
  done("the sender has closed", &r);
  C(sclchan_send_uint32)(out, 8, &s);
  SAYS("sent from a closed end", MCAPI_ERR_CHAN_INVALID);
  IS(C(sclchan_recv_uint32)(in, &s) == 7, "what was sent before the end");
  C(sclchan_recv_close_i)(in, &r, &s);
  done("the receiver has closed", &r);
  C(sclchan_recv_uint32)(in, &s);
  SAYS("received at a closed end", MCAPI_ERR_CHAN_INVALID);
  end();
}

static void full(void) {
#ifndef CONFORM_2000
  opened(30);
  C(sclchan_recv_uint8)(in, &s);
  SAYS("nothing comes in time", MCAPI_TIMEOUT);
  int count = 0;
  for (s = MCAPI_SUCCESS; count < CONFORM_MANY; count++) {
    C(sclchan_send_uint32)(out, (mcapi_uint32_t)count, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  choice_number("scalars that a channel holds", (unsigned long)count);
  choice("one more, with a time limit", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_TIMEOUT || s == MCAPI_ERR_MEM_LIMIT,
     "it is refused as the standard says");
  int taken = 0;
  while (taken < count && C(sclchan_recv_uint32)(in, &s) == (mcapi_uint32_t)taken) taken++;
  IS(taken == count, "all that fit are received in turn");
  C(sclchan_send_uint8)(out, 1, &s);
  SAYS("there is room again", MCAPI_SUCCESS);
  end();
#endif
}

/* ---- between two nodes; connected by the sender ---------------------------------------------- */

enum { SCALARS = 5000 };
static mcapi_uint64_t scalar(int i) { return (mcapi_uint64_t)i * 2654435761u; }

static void between_one(void) {
  mcapi_request_t r;
  mcapi_sclchan_send_hndl_t h;
  begin(ONE);
  mcapi_endpoint_t mine = created(1);
  C(sclchan_connect_i)(mine, got(TWO, 1), &r, &s);
  done("connected", &r);
  C(sclchan_send_open_i)(&h, mine, &r, &s);
  done("opened to send", &r);
  for (int i = 0; i < SCALARS; i++) {
    C(sclchan_send_uint64)(h, scalar(i), &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS("all are sent", MCAPI_SUCCESS);
  C(sclchan_send_close_i)(h, &r, &s);
  done("closed", &r);
  meet();
  end();
}
static void between_two(void) {
  mcapi_request_t r;
  mcapi_sclchan_recv_hndl_t h;
  begin(TWO);
  C(sclchan_recv_open_i)(&h, created(1), &r, &s);
  done("opened", &r);
  int well = 0;
  for (int i = 0; i < SCALARS; i++) {
    mcapi_uint64_t value = C(sclchan_recv_uint64)(h, &s);
    if (s != MCAPI_SUCCESS) break;
    well += value == scalar(i);
  }
  IS(well == SCALARS, "all have come, in turn");
  C(sclchan_recv_close_i)(h, &r, &s);
  done("closed", &r);
  meet();
  end();
}

const conform_case scalar_cases[] = {{"scalars", sizes, NULL, 0},
                                     {"scalars of another size", other_sizes, NULL, 0},
                                     {"scalar errors", errors, NULL, 0},
                                     {"a full scalar channel", full, NULL, 0},
                                     {"scalars between nodes", between_one, between_two, 0},
                                     {NULL, NULL, NULL, 0}};
