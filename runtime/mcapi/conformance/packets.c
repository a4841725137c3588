/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Packets: sizes, buffers that are held and released, full channels. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static mcapi_pktchan_send_hndl_t out;
static mcapi_pktchan_recv_hndl_t in;
static mcapi_endpoint_t from, to;

/* Both ends in this node. */
static void opened(int ms) {
  mcapi_request_t r, q, c;
  begin_pair(&from, &to, ms);
  C(pktchan_connect_i)(from, to, &c, &s);
  C(pktchan_recv_open_i)(&in, to, &r, &s);
  C(pktchan_send_open_i)(&out, from, &q, &s);
  done("connected", &c);
  done("opened", &r);
  done("opened to send", &q);
}

static void sizes(void) {
  const size_t size[] = {0, 1, 63, 64, 65, 1000, CONFORM_PACKET / 2, CONFORM_PACKET};
  char *b = malloc(CONFORM_PACKET);
  mcapi_request_t r;
  void *p;
  size_t n;
  opened(0);
  for (size_t i = 0; i < sizeof size / sizeof *size; i++) {
    fill(b, size[i], (unsigned)i);
    if (i % 2) {
      C(pktchan_send)(out, b, size[i], &s);
      SAYS("mcapi_pktchan_send", MCAPI_SUCCESS);
    } else {
      C(pktchan_send_i)(out, b, size[i], &r, &s);
      SAYS_EITHER("mcapi_pktchan_send_i", MCAPI_SUCCESS, MCAPI_PENDING);
      C(wait)(&r, &n, 2000 * CONFORM_MS, &s);
      IS(s == MCAPI_SUCCESS && n == size[i], "all of it is sent");
    }
    memset(b, 0xee, size[i]);
    IS(C(pktchan_available)(in, &s) == 1, "one is available");
    SAYS("mcapi_pktchan_available", MCAPI_SUCCESS);
    n = 77;
    if (i % 3) {
      C(pktchan_recv)(in, &p, &n, &s);
      MUST("mcapi_pktchan_recv", MCAPI_SUCCESS);
    } else {
      C(pktchan_recv_i)(in, &p, &r, &s);
      SAYS_EITHER("mcapi_pktchan_recv_i", MCAPI_SUCCESS, MCAPI_PENDING);
      C(wait)(&r, &n, 2000 * CONFORM_MS, &s);
      MUST("it is received", MCAPI_SUCCESS);
    }
    IS(n == size[i] && is_filled(p, n, (unsigned)i), "it is whole");
    IS(C(pktchan_available)(in, &s) == 0, "none is available");
    C(pktchan_release)(p, &s);
    SAYS("mcapi_pktchan_release", MCAPI_SUCCESS);
  }
  end();
  free(b);
}

static void errors(void) {
  static char b[CONFORM_PACKET + 1];
  mcapi_request_t r;
  void *p;
  size_t n;
  mcapi_pktchan_send_hndl_t no_out;
  mcapi_pktchan_recv_hndl_t no_in;
  memset(&no_out, 0, sizeof no_out);
  memset(&no_in, 0, sizeof no_in);
  opened(0);
  C(pktchan_send)(no_out, b, 1, &s);
  SAYS("sent on nothing", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_send_i)(no_out, b, 1, &r, &s);
  SAYS("begun on nothing", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_send)(out, NULL, 1, &s);
  SAYS("nothing is sent", MCAPI_ERR_PARAMETER);
  C(pktchan_send_i)(out, NULL, 1, &r, &s);
  SAYS("begun to send nothing", MCAPI_ERR_PARAMETER);
  C(pktchan_send_i)(out, b, 1, NULL, &s);
  SAYS("begun to send without a request", MCAPI_ERR_PARAMETER);
  C(pktchan_send)(out, b, CONFORM_PACKET + 1, &s);
  SAYS("too large", TOO_LARGE_PACKET);
  C(pktchan_send_i)(out, b, CONFORM_PACKET + 1, &r, &s);
  SAYS("begun, too large", TOO_LARGE_PACKET);
  C(pktchan_recv)(no_in, &p, &n, &s);
  SAYS("received on nothing", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_recv_i)(no_in, &p, &r, &s);
  SAYS("begun to receive on nothing", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_recv)(in, NULL, &n, &s);
  SAYS("received nowhere", MCAPI_ERR_PARAMETER);
  C(pktchan_recv)(in, &p, NULL, &s);
  SAYS("received, its size nowhere", MCAPI_ERR_PARAMETER);
  C(pktchan_recv_i)(in, NULL, &r, &s);
  SAYS("begun to receive nowhere", MCAPI_ERR_PARAMETER);
  C(pktchan_recv_i)(in, &p, NULL, &s);
  SAYS("begun to receive without a request", MCAPI_ERR_PARAMETER);
  C(pktchan_available)(no_in, &s);
  SAYS("available on nothing", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_recv_close_i)(no_in, &r, &s);
  SAYS("nothing is closed", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_send_close_i)(no_out, &r, &s);
  SAYS("nothing is closed to send", MCAPI_ERR_CHAN_INVALID);
  C(pktchan_release)(b, &s);
  SAYS("released what was not received", MCAPI_ERR_BUF_INVALID);
  C(pktchan_release)(NULL, &s);
  FAILS("released nothing");
  choice("released nothing", s);
  IS(C(pktchan_available)(in, &s) == 0, "none of these was sent");
  end();
}

/* Several packets are held, and released in another order than they arrived. */
static void held(void) {
  enum { HELD = 5 };
  static const int order[HELD] = {3, 0, 4, 2, 1};
  void *p[HELD];
  size_t n;
  opened(0);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < HELD; i++) C(pktchan_send)(out, &i, sizeof i, &s);
    for (int i = 0; i < HELD; i++) {
      C(pktchan_recv)(in, &p[i], &n, &s);
      if (s != MCAPI_SUCCESS || memcmp(p[i], &i, sizeof i) != 0) {
        IS(0, "each has come");
        give_up();
      }
    }
    for (int k = 0; k < HELD; k++) {
      int i = order[k];
      if (memcmp(p[i], &i, sizeof i) != 0) IS(0, "what is held stays as it is");
#if !defined(CONFORM_NO_RELEASE_TEST)
      if (round == 0) {
#if defined(CONFORM_RELEASE_TEST_BY_VALUE)
        IS(C(pktchan_release_test)(p[i], s), "it could be released");
#else
        IS(C(pktchan_release_test)(p[i], &s), "it could be released");
        choice("mcapi_pktchan_release_test of what is held", s);
#endif
      }
#endif
      C(pktchan_release)(p[i], &s);
      if (s != MCAPI_SUCCESS) SAYS("released in any order", MCAPI_SUCCESS);
    }
  }
  SAYS("all are released in any order", MCAPI_SUCCESS);
  C(pktchan_release)(p[0], &s);
  SAYS("released again", MCAPI_ERR_BUF_INVALID);
  end();
}

static void full(void) {
#ifndef CONFORM_2000
  char b[64] = "";
  void *p;
  size_t n;
  opened(30);
  C(pktchan_recv)(in, &p, &n, &s);
  SAYS("nothing comes in time", MCAPI_TIMEOUT);
  int count = 0;
  for (s = MCAPI_SUCCESS; count < CONFORM_MANY; count++) {
    memcpy(b, &count, sizeof count);
    C(pktchan_send)(out, b, sizeof b, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  choice_number("packets of 64 bytes that a channel holds", (unsigned long)count);
  choice("one more, with a time limit", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_TIMEOUT || s == MCAPI_ERR_MEM_LIMIT,
     "it is refused as the standard says");
  static void *all[CONFORM_MANY];
  int taken = 0;
  for (; taken < count; taken++) {
    C(pktchan_recv)(in, &all[taken], &n, &s);
    if (s != MCAPI_SUCCESS) break;
    if (memcmp(all[taken], &taken, sizeof taken) != 0) IS(0, "in turn");
  }
  choice_number("packets that can be held", (unsigned long)taken);
  choice("one more, with a time limit", s);
  for (int i = 0; i < taken; i++) C(pktchan_release)(all[i], &s);
  SAYS("all are released", MCAPI_SUCCESS);
  for (; taken < count; taken++) {
    C(pktchan_recv)(in, &p, &n, &s);
    if (s != MCAPI_SUCCESS || memcmp(p, &taken, sizeof taken) != 0) break;
    C(pktchan_release)(p, &s);
  }
  IS(taken == count, "all that fit are received in turn");
  C(pktchan_send)(out, b, sizeof b, &s);
  SAYS("there is room again", MCAPI_SUCCESS);
  end();
#endif
}

/* ---- between two nodes ----------------------------------------------------------------------- */

enum { PACKETS = 2000 };
static size_t packet_size(int i) { return (size_t)(i * 53 % 1400); }

static void between_one(void) {
  mcapi_request_t r;
  mcapi_pktchan_send_hndl_t h;
  char b[1400];
  begin(ONE);
  mcapi_endpoint_t mine = created(1);
  C(pktchan_connect_i)(mine, got(TWO, 1), &r, &s);
  done("connected", &r);
  C(pktchan_send_open_i)(&h, mine, &r, &s);
  done("opened to send", &r);
  for (int i = 0; i < PACKETS; i++) {
    fill(b, packet_size(i), (unsigned)i);
    C(pktchan_send)(h, b, packet_size(i), &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS("all are sent", MCAPI_SUCCESS);
  C(pktchan_send_close_i)(h, &r, &s);
  done("closed", &r);
  meet();
  end();
}
static void between_two(void) {
  mcapi_request_t r;
  mcapi_pktchan_recv_hndl_t h;
  begin(TWO);
  C(pktchan_recv_open_i)(&h, created(1), &r, &s);
  done("opened", &r);
  int well = 0;
  void *before = NULL;
  for (int i = 0; i < PACKETS; i++) {
    void *p;
    size_t n = 0;
    C(pktchan_recv)(h, &p, &n, &s);
    if (s != MCAPI_SUCCESS) break;
    well += n == packet_size(i) && is_filled(p, n, (unsigned)i);
    if (before) C(pktchan_release)(before, &s); /* one is held all the time */
    before = p;
  }
  IS(well == PACKETS, "all have come, whole and in turn");
  C(pktchan_release)(before, &s);
  SAYS("the last is released after the sender has closed", MCAPI_SUCCESS);
  C(pktchan_recv_close_i)(h, &r, &s);
  done("closed", &r);
  meet();
  end();
}

const conform_case packet_cases[] = {{"packets", sizes, NULL, 0},
                                     {"packet errors", errors, NULL, 0},
                                     {"packets that are held", held, NULL, 0},
                                     {"a full channel", full, NULL, 0},
                                     {"packets between nodes", between_one, between_two, 0},
                                     {NULL, NULL, NULL, 0}};
