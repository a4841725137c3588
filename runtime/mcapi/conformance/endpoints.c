/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Endpoints: creating, getting, releasing, deleting; their attributes. */
#include "conformance.h"

#include <stdlib.h>
#include <string.h>

static int equals(mcapi_endpoint_t a, mcapi_endpoint_t b) {
#ifdef CONFORM_STRUCT_HANDLES
  return memcmp(&a, &b, sizeof a) == 0;
#else
  return a == b;
#endif
}

static void create(void) {
  begin(ONE);
  mcapi_endpoint_t a = created(1), any[3];
  C(endpoint_create)(CONFORM_PORT + 1, &s);
  SAYS("a port that is used", MCAPI_ERR_ENDP_EXISTS);
  C(endpoint_create)(CONFORM_NO_PORT, &s);
  SAYS("a port that can be none", MCAPI_ERR_PORT_INVALID);
  for (int i = 0; i < 3; i++) {
    any[i] = C(endpoint_create)(MCAPI_PORT_ANY, &s);
    MUST("any port", MCAPI_SUCCESS);
    IS(!equals(any[i], a) && (!i || !equals(any[i], any[i - 1])), "an endpoint of its own");
  }
  IS(equals(a, got(ONE, 1)), "an endpoint that is got is the one that was created");
  C(endpoint_release)(a, &s);
  SAYS("mcapi_endpoint_release", MCAPI_SUCCESS);
  C(endpoint_release)(a, &s);
  choice("one release more than gets", s);
  for (int i = 0; i < 3; i++) deleted(any[i]);
  deleted(a);
  C(endpoint_delete)(a, &s);
  SAYS("deleted again", MCAPI_ERR_ENDP_INVALID);
  C(endpoint_release)(a, &s);
  SAYS("released when deleted", MCAPI_ERR_ENDP_INVALID);
  mcapi_uint_t v;
  C(endpoint_get_attribute)(a, MCAPI_ENDP_ATTR_TYPE, &v, sizeof v, &s);
  SAYS("an attribute of a deleted one", MCAPI_ERR_ENDP_INVALID);
  C(endpoint_set_attribute)(a, MCAPI_ENDP_ATTR_PRIORITY, &v, sizeof v, &s);
  SAYS("to set it", MCAPI_ERR_ENDP_INVALID);
  a = created(1);
  mcapi_endpoint_t none;
  memset(&none, 0, sizeof none);
  C(endpoint_delete)(none, &s);
  SAYS("what is all zeros is none", MCAPI_ERR_ENDP_INVALID);
  end();
}

static void limit(void) {
  mcapi_endpoint_t *all = malloc(CONFORM_MANY * sizeof *all);
  int n = 0;
  begin(ONE);
  s = MCAPI_SUCCESS;
  for (; n < CONFORM_MANY; n++) {
    all[n] = C(endpoint_create)(MCAPI_PORT_ANY, &s);
    if (s != MCAPI_SUCCESS) break;
  }
  choice_number("endpoints that a node could create", (unsigned long)n);
  choice("one more", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_ERR_ENDP_LIMIT || s == MCAPI_ERR_ENDP_NOPORTS ||
         s == MCAPI_ERR_MEM_LIMIT,
     "what is too many is refused as the standard says");
  for (int i = 0; i < n; i++) {
    mcapi_endpoint_delete(all[i], &s);
    if (s != MCAPI_SUCCESS) break;
  }
  SAYS("all are deleted", MCAPI_SUCCESS);
  created(1);
  end();
  free(all);
}

static void get_errors(void) {
  mcapi_endpoint_t e, found;
  mcapi_request_t r;
  size_t n;
  begin(ONE);
  C(endpoint_get)(domain, ONE, CONFORM_PORT + 9, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("got at once, when there is none", MCAPI_TIMEOUT);
  C(endpoint_get)(domain, ONE, CONFORM_PORT + 9, 20 * CONFORM_MS, &s);
  SAYS("got within a time", MCAPI_TIMEOUT);
  C(endpoint_get)(CONFORM_NO_DOMAIN, ONE, 1, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("of no domain", MCAPI_ERR_DOMAIN_INVALID);
  C(endpoint_get)(domain, CONFORM_NO_NODE, 1, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("of no node", MCAPI_ERR_NODE_INVALID);
  C(endpoint_get)(domain, ONE, CONFORM_NO_PORT, MCAPI_TIMEOUT_IMMEDIATE, &s);
  SAYS("of no port", MCAPI_ERR_PORT_INVALID);
  C(endpoint_get_i)(CONFORM_NO_DOMAIN, ONE, 1, &found, &r, &s);
  SAYS("begun of no domain", MCAPI_ERR_DOMAIN_INVALID);
  C(endpoint_get_i)(domain, CONFORM_NO_NODE, 1, &found, &r, &s);
  SAYS("begun of no node", MCAPI_ERR_NODE_INVALID);
  C(endpoint_get_i)(domain, ONE, CONFORM_NO_PORT, &found, &r, &s);
  SAYS("begun of no port", MCAPI_ERR_PORT_INVALID);
  C(endpoint_get_i)(domain, ONE, 1, NULL, &r, &s);
  SAYS("begun, to be said nowhere", MCAPI_ERR_PARAMETER);
  C(endpoint_get_i)(domain, ONE, 1, &found, NULL, &s);
  SAYS("begun without a request", MCAPI_ERR_PARAMETER);

  C(endpoint_get_i)(domain, ONE, CONFORM_PORT + 2, &found, &r, &s);
  SAYS("begun before there is one", MCAPI_PENDING);
  IS(!C(test)(&r, &n, &s), "it is not done");
  SAYS("mcapi_test", MCAPI_PENDING);
  e = created(2);
  done("it is got when it has been created", &r);
  IS(equals(found, e), "it is the one");
  C(endpoint_get_i)(domain, ONE, CONFORM_PORT + 2, &found, &r, &s);
  SAYS_EITHER("begun when there is one", MCAPI_SUCCESS, MCAPI_PENDING);
  done("it is got", &r);
  end();
}

/* Getting an endpoint of the other node before it exists; its owner; a handle passed by value. */
static void others_one(void) {
  begin(ONE);
  meet();
  nap(30); /* the other node waits by now, or soon */
  mcapi_endpoint_t mine = created(1);
  meet();
  C(endpoint_delete)(got(TWO, 2), &s);
  SAYS("another node's is deleted", MCAPI_ERR_ENDP_NOTOWNER);
  const mcapi_uint_t priority = 0;
  C(endpoint_set_attribute)(got(TWO, 2), MCAPI_ENDP_ATTR_PRIORITY, &priority, sizeof priority, &s);
  FAILS("to set an attribute of another node's");
  choice("to set an attribute of another node's", s);
  mcapi_uint_t type = 77;
  C(endpoint_get_attribute)(got(TWO, 2), MCAPI_ENDP_ATTR_TYPE, &type, sizeof type, &s);
  choice("to get an attribute of another node's", s);
  meet();
  deleted(mine);
  end();
}
static void others_two(void) {
  begin(TWO);
  meet();
  mcapi_endpoint_t other = got(ONE, 1), mine = created(2);
  IS(!equals(other, mine), "two nodes' endpoints are two");
  meet();
  meet();
  C(endpoint_release)(other, &s);
  SAYS_EITHER("released", MCAPI_SUCCESS, MCAPI_ERR_ENDP_INVALID); /* it may have been deleted */
  deleted(mine);
  end();
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void attribute_errors(mcapi_endpoint_t e) {
  mcapi_uint_t v = 0;
  C(endpoint_get_attribute)(e, 9999, &v, sizeof v, &s);
  SAYS("to get an attribute that is none", MCAPI_ERR_ATTR_NUM);
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_TYPE, &v, sizeof v + 1, &s);
  SAYS("to get one of a wrong size", MCAPI_ERR_ATTR_SIZE);
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_TYPE, NULL, sizeof v, &s);
  SAYS("to get it nowhere", MCAPI_ERR_PARAMETER);
  C(endpoint_set_attribute)(e, 9999, &v, sizeof v, &s);
  SAYS("to set an attribute that is none", MCAPI_ERR_ATTR_NUM);
  C(endpoint_set_attribute)(e, MCAPI_ENDP_ATTR_PRIORITY, &v, sizeof v + 1, &s);
  SAYS("to set one of a wrong size", MCAPI_ERR_ATTR_SIZE);
  C(endpoint_set_attribute)(e, MCAPI_ENDP_ATTR_PRIORITY, NULL, sizeof v, &s);
  SAYS("to set it from nowhere", MCAPI_ERR_PARAMETER);
  C(endpoint_set_attribute)(e, MCAPI_ENDP_ATTR_GET_COUNT, &v, sizeof v, &s);
  SAYS("to set what can only be read", MCAPI_ERR_ATTR_READONLY);
  v = (mcapi_uint_t)CONFORM_PATIENT + 1000;
  C(endpoint_set_attribute)(e, MCAPI_ENDP_ATTR_PRIORITY, &v, sizeof v, &s);
  FAILS("to set a priority that is none");
  choice("to set a priority that is none", s);
}

static void attributes(void) {
  begin(ONE);
  mcapi_endpoint_t e = created(1);
  mcapi_uint_t v = 77;
  static const struct {
    mcapi_uint_t number;
    const char *name;
  } numbers[] = {{MCAPI_ENDP_ATTR_TYPE, "the type"},
                 {MCAPI_ENDP_ATTR_GET_COUNT, "how often it has been got"},
                 {MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, "the largest payload"},
                 {MCAPI_ENDP_ATTR_BUFFER_TYPE, "the type of buffers"},
                 {MCAPI_ENDP_ATTR_MEMORY_TYPE, "the type of memory"},
                 {MCAPI_ENDP_ATTR_NUM_PRIORITIES, "the number of priorities"},
                 {MCAPI_ENDP_ATTR_PRIORITY, "the priority"},
                 {MCAPI_ENDP_ATTR_NUM_SEND_BUFFERS, "buffers to send"},
                 {MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS, "buffers to receive"},
#ifndef CONFORM_2000
                 {MCAPI_ENDP_ATTR_TIMEOUT, "the time limit"},
#endif
                 {MCAPI_ENDP_ATTR_ENDP_STATUS, "the status"}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    v = 77;
    C(endpoint_get_attribute)(e, numbers[i].number, &v, sizeof v, &s);
    SAYS_EITHER(numbers[i].name, MCAPI_SUCCESS, MCAPI_ERR_ATTR_NOTSUPPORTED);
    if (s == MCAPI_SUCCESS) choice_number(numbers[i].name, v);
  }
  mcapi_endp_attr_get_source_t source;
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_GET_SOURCE, &source, sizeof source, &s);
  SAYS_EITHER("the last node that got it", MCAPI_SUCCESS, MCAPI_ERR_ATTR_NOTSUPPORTED);
  got(ONE, 1);
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_GET_COUNT, &v, sizeof v, &s);
  IS(s == MCAPI_ERR_ATTR_NOTSUPPORTED || v == 1, "it has been got once");
  C(endpoint_release)(e, &s);
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_GET_COUNT, &v, sizeof v, &s);
  IS(s == MCAPI_ERR_ATTR_NOTSUPPORTED || v == 0, "and released");
  attribute_errors(e);
#ifndef CONFORM_2000
  mcapi_endp_attr_timeout_t t = 0;
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_TIMEOUT, &t, sizeof t, &s);
  IS(s == MCAPI_SUCCESS && t == MCAPI_TIMEOUT_INFINITE, "at first there is no time limit");
  limited(e, 25);
  C(endpoint_get_attribute)(e, MCAPI_ENDP_ATTR_TIMEOUT, &t, sizeof t, &s);
  IS(s == MCAPI_SUCCESS && t == 25 * CONFORM_MS, "what was set is got");
#endif
  mcapi_uint_t size = 16;
  C(endpoint_set_attribute)(e, MCAPI_ENDP_ATTR_MAX_PAYLOAD_SIZE, &size, sizeof size, &s);
  choice("to set the largest payload", s);
  if (s == MCAPI_SUCCESS) {
    char b[17] = "";
    C(msg_send)(e, e, b, 17, CONFORM_URGENT, &s);
    SAYS("a message that is larger", TOO_LARGE_MESSAGE);
    C(msg_send)(e, e, b, 16, CONFORM_URGENT, &s);
    SAYS("one that is not", MCAPI_SUCCESS);
  }
  end();
}

const conform_case endpoint_cases[] = {{"endpoints", create, NULL, 0},
                                       {"many endpoints", limit, NULL, 0},
                                       {"getting", get_errors, NULL, 0},
                                       {"another's endpoints", others_one, others_two, 0},
                                       {"endpoint attributes", attributes, NULL, 0},
                                       {NULL, NULL, NULL, 0}};
