/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages: sizes, priorities, errors, full queues; between two nodes; to endpoints that have
 * ended. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static void alone(void) {
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  char *out = malloc(CONFORM_MESSAGE + 1), *in = malloc(CONFORM_MESSAGE);
  const size_t sizes[] = {0, 1, 7, 64, 1000, CONFORM_MESSAGE / 2, CONFORM_MESSAGE};
  size_t n;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    fill(out, sizes[i], (unsigned)i);
    C(msg_send)(from, to, out, sizes[i], CONFORM_URGENT, &s);
    SAYS("mcapi_msg_send", MCAPI_SUCCESS);
    memset(out, 0xee, sizes[i]); /* the buffer belongs to the sender again */
    IS(C(msg_available)(to, &s) == 1, "one is available");
    SAYS("mcapi_msg_available", MCAPI_SUCCESS);
    n = 77;
    C(msg_recv)(to, in, CONFORM_MESSAGE, &n, &s);
    SAYS("mcapi_msg_recv", MCAPI_SUCCESS);
    IS(n == sizes[i] && is_filled(in, n, (unsigned)i), "it is whole");
    IS(C(msg_available)(to, &s) == 0, "none is available");
  }
  C(msg_send)(to, to, "self", 5, CONFORM_URGENT, &s);
  SAYS("an endpoint sends to itself", MCAPI_SUCCESS);
  C(msg_recv)(to, in, CONFORM_MESSAGE, &n, &s);
  IS(s == MCAPI_SUCCESS && n == 5 && strcmp(in, "self") == 0, "and receives it");
  end();
  free(out);
  free(in);
}

static void priorities(void) {
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  const struct {
    char what;
    mcapi_priority_t priority;
  } sent[] = {
      {'c', CONFORM_PATIENT}, {'a', CONFORM_URGENT}, {'d', CONFORM_PATIENT}, {'b', CONFORM_URGENT}};
  char got_in[5] = "";
  size_t n;
  for (int i = 0; i < 4; i++) {
    C(msg_send)(from, to, &sent[i].what, 1, sent[i].priority, &s);
    SAYS("a message of some priority", MCAPI_SUCCESS);
  }
  for (int i = 0; i < 4; i++) C(msg_recv)(to, &got_in[i], 1, &n, &s);
  IS(strcmp(got_in, "abcd") == 0, "the most urgent first, and those alike in turn");
  end();
}

static void errors(void) {
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2), none;
  memset(&none, 0, sizeof none);
  mcapi_request_t r;
  static char b[CONFORM_MESSAGE + 1];
  size_t n;
  C(msg_send)(none, to, b, 1, CONFORM_URGENT, &s);
  SAYS("from nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_send)(from, none, b, 1, CONFORM_URGENT, &s);
  SAYS("to nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_send)(from, to, NULL, 1, CONFORM_URGENT, &s);
  SAYS("of nothing", MCAPI_ERR_PARAMETER);
  C(msg_send)(from, to, b, CONFORM_MESSAGE + 1, CONFORM_URGENT, &s);
  SAYS("too large", TOO_LARGE_MESSAGE);
  C(msg_send)(from, to, b, 1, (mcapi_priority_t)CONFORM_PATIENT + 1, &s);
  SAYS("no priority", MCAPI_ERR_PRIORITY);
  C(msg_send_i)(none, to, b, 1, CONFORM_URGENT, &r, &s);
  SAYS("begun from nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_send_i)(from, none, b, 1, CONFORM_URGENT, &r, &s);
  SAYS("begun to nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_send_i)(from, to, NULL, 1, CONFORM_URGENT, &r, &s);
  SAYS("begun of nothing", MCAPI_ERR_PARAMETER);
  C(msg_send_i)(from, to, b, 1, CONFORM_URGENT, NULL, &s);
  SAYS("begun without a request", MCAPI_ERR_PARAMETER);
  C(msg_send_i)(from, to, b, CONFORM_MESSAGE + 1, CONFORM_URGENT, &r, &s);
  SAYS("begun, too large", TOO_LARGE_MESSAGE);
  C(msg_send_i)(from, to, b, 1, (mcapi_priority_t)CONFORM_PATIENT + 1, &r, &s);
  SAYS("begun, no priority", MCAPI_ERR_PRIORITY);
  C(msg_recv)(none, b, 1, &n, &s);
  SAYS("received at nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_recv)(to, NULL, 1, &n, &s);
  SAYS("received into nothing", MCAPI_ERR_PARAMETER);
  C(msg_recv)(to, b, 1, NULL, &s);
  SAYS("received, its size nowhere", MCAPI_ERR_PARAMETER);
  C(msg_recv_i)(none, b, 1, &r, &s);
  SAYS("begun to receive at nothing", MCAPI_ERR_ENDP_INVALID);
  C(msg_recv_i)(to, NULL, 1, &r, &s);
  SAYS("begun to receive into nothing", MCAPI_ERR_PARAMETER);
  C(msg_recv_i)(to, b, 1, NULL, &s);
  SAYS("begun to receive without a request", MCAPI_ERR_PARAMETER);
  C(msg_available)(none, &s);
  SAYS("available at nothing", MCAPI_ERR_ENDP_INVALID);
  IS(C(msg_available)(to, &s) == 0, "none of these was sent");

  C(msg_send)(from, to, "truncated", 10, CONFORM_URGENT, &s);
  C(msg_recv)(to, b, 5, &n, &s);
  SAYS("received into too little", MCAPI_ERR_MSG_TRUNCATED);
  IS(memcmp(b, "trunc", 5) == 0, "what there was room for has come");
  choice_number("what is left of a truncated message", C(msg_available)(to, &s));
  end();
}

static void full(void) {
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2), eager = created(3);
#ifndef CONFORM_2000
  char b[8];
  size_t n;
  limited(from, 30);
  limited(to, 30);
  C(msg_recv)(to, b, sizeof b, &n, &s);
  SAYS("nothing comes in time", MCAPI_TIMEOUT);
  int count = 0;
  for (s = MCAPI_SUCCESS; count < CONFORM_MANY; count++) {
    C(msg_send)(from, to, &count, sizeof count, CONFORM_URGENT, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  choice_number("messages that an endpoint holds", (unsigned long)count);
  choice("one more, with a time limit", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_TIMEOUT || s == MCAPI_ERR_MEM_LIMIT,
     "it is refused as the standard says");
  const mcapi_uint_t eagerly = MCAPI_ENDP_ATTR_FAIL_ON_MEM_LIMIT;
  C(endpoint_set_attribute)(eager, MCAPI_ENDP_ATTR_MEMORY_TYPE, &eagerly, sizeof eagerly, &s);
  choice("to set that a send fails rather than blocks", s);
  if (s == MCAPI_SUCCESS && count < CONFORM_MANY) {
    C(msg_send)(eager, to, b, 1, CONFORM_URGENT, &s);
    SAYS("then one more", MCAPI_ERR_MEM_LIMIT);
  }
  for (int i = 0; i < count; i++) {
    int in = -1;
    C(msg_recv)(to, &in, sizeof in, &n, &s);
    if (s != MCAPI_SUCCESS || in != i) {
      IS(0, "all that fit are received in turn");
      break;
    }
  }
  C(msg_send)(from, to, b, 1, CONFORM_URGENT, &s);
  SAYS("there is room again", MCAPI_SUCCESS);
#else
  (void)from, (void)to, (void)eager;
#endif
  end();
}

static void gone(void) {
  begin(ONE);
  mcapi_endpoint_t from = created(1), to = created(2);
  char b[8];
  size_t n;
  C(msg_send)(from, to, "old", 4, CONFORM_URGENT, &s);
  deleted(to);
  C(msg_send)(from, to, b, 1, CONFORM_URGENT, &s);
  choice("a message to an endpoint that has been deleted", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_ERR_ENDP_INVALID, "it is dropped, or refused");
  C(msg_recv)(to, b, sizeof b, &n, &s);
  SAYS("received at a deleted one", MCAPI_ERR_ENDP_INVALID);
  to = created(2);
  IS(C(msg_available)(to, &s) == 0, "what was pending is dropped");
  end();
}

/* ---- between two nodes ----------------------------------------------------------------------- */

enum { LETTERS = 400, ECHOES = 50 };
static size_t letter_size(int i) { return (size_t)(i * 37 % 900 + 1); }

static void between_one(void) {
  begin(ONE);
  mcapi_endpoint_t mine = created(1), to = got(TWO, 1);
  /* An endpoint at any port, passed by value. */
  mcapi_endpoint_t nameless = C(endpoint_create)(MCAPI_PORT_ANY, &s);
  MUST("any port", MCAPI_SUCCESS);
  C(msg_send)(mine, to, &nameless, sizeof nameless, CONFORM_URGENT, &s);
  MUST("its handle is sent", MCAPI_SUCCESS);
  char b[1000];
  size_t n;
  C(msg_recv)(nameless, b, sizeof b, &n, &s);
  SAYS("a handle from a message can be sent to", MCAPI_SUCCESS);
  IS(n == 6 && strcmp(b, "hello") == 0, "what was sent has come");
  mcapi_request_t r;
  for (int i = 0; i < LETTERS; i++) {
    fill(b, letter_size(i), (unsigned)i);
    if (i % 2) {
      C(msg_send)(mine, to, b, letter_size(i), CONFORM_URGENT, &s);
    } else {
      C(msg_send_i)(mine, to, b, letter_size(i), CONFORM_URGENT, &r, &s);
      if (s == MCAPI_SUCCESS || s == MCAPI_PENDING) {
        C(wait)(&r, &n, MCAPI_TIMEOUT_INFINITE, &s);
        if (n != letter_size(i)) IS(0, "the size that was sent");
      }
    }
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS("all are sent", MCAPI_SUCCESS);
  for (int i = 0; i < ECHOES; i++) {
    C(msg_send)(mine, to, &i, sizeof i, CONFORM_URGENT, &s);
    int back = -1;
    C(msg_recv)(mine, &back, sizeof back, &n, &s);
    if (s != MCAPI_SUCCESS || back != i + 1) break;
  }
  SAYS("all echoes come", MCAPI_SUCCESS);
  meet();
  C(msg_recv)(to, b, sizeof b, &n, &s);
  FAILS("to receive at another node's endpoint");
  choice("to receive at another node's endpoint", s);
  C(msg_available)(to, &s);
  choice("what is available at another node's", s);
  C(msg_send)(to, mine, b, 1, CONFORM_URGENT, &s);
  choice("to send from another node's endpoint", s);
  meet();
  end();
}

static void between_two(void) {
  begin(TWO);
  mcapi_endpoint_t mine = created(1), nameless;
  mcapi_endpoint_t other = got(ONE, 1);
  char b[1000];
  size_t n;
  C(msg_recv)(mine, &nameless, sizeof nameless, &n, &s);
  MUST("a handle is received", MCAPI_SUCCESS);
  C(msg_send)(mine, nameless, "hello", 6, CONFORM_URGENT, &s);
  SAYS("and can be sent to", MCAPI_SUCCESS);
  int well = 0;
  for (int i = 0; i < LETTERS; i++) {
    if (i % 3) {
      C(msg_recv)(mine, b, sizeof b, &n, &s);
    } else {
      mcapi_request_t r;
      C(msg_recv_i)(mine, b, sizeof b, &r, &s);
      if (s == MCAPI_SUCCESS || s == MCAPI_PENDING) C(wait)(&r, &n, MCAPI_TIMEOUT_INFINITE, &s);
    }
    well += s == MCAPI_SUCCESS && n == letter_size(i) && is_filled(b, n, (unsigned)i);
  }
  IS(well == LETTERS, "all have come, whole and in turn");
  for (int i = 0; i < ECHOES; i++) {
    int in = -1;
    C(msg_recv)(mine, &in, sizeof in, &n, &s);
    in++;
    C(msg_send)(mine, other, &in, sizeof in, CONFORM_URGENT, &s);
  }
  meet();
  meet();
  end();
}

#ifndef CONFORM_2000 /* it has no timeouts, so a call may block forever */
/* The other node's process is killed. The standard does not specify this; a program needs an
 * error. */
static void killed_one(void) {
  begin(ONE);
  mcapi_endpoint_t mine = created(1), to = got(TWO, 1);
  char b[8];
  size_t n;
  limited(mine, 3000);
  meet();
  C(msg_recv)(mine, b, sizeof b, &n, &s);
  SAYS("what it sent before", MCAPI_SUCCESS);
  kill_other();
  nap(150);
  C(msg_send)(mine, to, b, 1, CONFORM_URGENT, &s);
  choice("a message to a node of a process that has been killed", s);
  IS(s != MCAPI_ERR_GENERAL, "it does not hang");
  end();
}
static void killed_two(void) {
  begin(TWO);
  mcapi_endpoint_t mine = created(1);
  C(msg_send)(mine, got(ONE, 1), "last", 5, CONFORM_URGENT, &s);
  meet();
  for (;;) nap(1000);
}
#endif

const conform_case message_cases[] = {{"messages", alone, NULL, 0},
                                      {"priorities", priorities, NULL, 0},
                                      {"message errors", errors, NULL, 0},
                                      {"a full queue", full, NULL, 0},
                                      {"a deleted endpoint", gone, NULL, 0},
                                      {"messages between nodes", between_one, between_two, 0},
#ifndef CONFORM_2000
                                      {"a killed node", killed_one, killed_two, 1},
#endif
                                      {NULL, NULL, NULL, 0}};
