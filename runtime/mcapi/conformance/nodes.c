/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Nodes: constants, calls before initialize and after finalize, attributes. */
#include "conformance.h"

#ifndef CONFORM_NO_THREADS
#include <pthread.h>
#endif
#include <string.h>

static void constants(void) {
  IS(MCAPI_SUCCESS == 1 && MCAPI_PENDING == 2 && MCAPI_TIMEOUT == 3,
     "the first statuses are 1, 2, 3");
  IS(MCAPI_TRUE && !MCAPI_FALSE, "true and false");
  IS(MCAPI_TIMEOUT_IMMEDIATE == 0, "no time is 0");
  IS(MCAPI_TIMEOUT_INFINITE == (mcapi_timeout_t)~0u, "endless time is all ones");
  IS(MCAPI_PORT_ANY == (mcapi_port_t)~0u, "any port is all ones");
  IS(sizeof(mcapi_uint8_t) == 1 && sizeof(mcapi_uint16_t) == 2 && sizeof(mcapi_uint32_t) == 4 &&
         sizeof(mcapi_uint64_t) == 8,
     "sizes of the scalars");
  IS(sizeof(mcapi_int8_t) == 1 && sizeof(mcapi_int16_t) == 2 && sizeof(mcapi_int32_t) == 4 &&
         sizeof(mcapi_int64_t) == 8,
     "sizes of the signed scalars");
#ifdef CONFORM_STRUCT_HANDLES
  IS(0, "handles can be compared with ==");
#else
  mcapi_endpoint_t e = 0;
  mcapi_request_t r = 0;
  mcapi_pktchan_recv_hndl_t a = 0;
  mcapi_pktchan_send_hndl_t b = 0;
  mcapi_sclchan_recv_hndl_t c = 0;
  mcapi_sclchan_send_hndl_t d = 0;
  IS(e == 0 && r == 0 && a == 0 && b == 0 && c == 0 && d == 0, "handles can be compared with ==");
#endif
#ifndef CONFORM_NO_DISPLAY_STATUS
  char text[64] = "";
  const char *name = C(display_status)(MCAPI_ERR_PARAMETER, text, sizeof text);
  IS(name && name[0], "a status has a name");
#endif
#ifndef CONFORM_NO_DEBUG_LEVEL
  C(set_debug_level)(0);
#endif
}

/* Every call that needs a node. */
static void says_not_initialized(void) {
  mcapi_request_t r, *rs = &r;
  mcapi_endpoint_t e, g;
  mcapi_pktchan_recv_hndl_t pr;
  mcapi_pktchan_send_hndl_t ps;
  mcapi_sclchan_recv_hndl_t sr;
  mcapi_sclchan_send_hndl_t ss;
  memset(&r, 0, sizeof r);
  memset(&e, 0, sizeof e);
  memset(&pr, 0, sizeof pr);
  memset(&ps, 0, sizeof ps);
  memset(&sr, 0, sizeof sr);
  memset(&ss, 0, sizeof ss);
  char b[8];
  void *p;
  size_t n;
  mcapi_uint_t v = 0;
#define NO(name, ...)                                                                              \
  do {                                                                                             \
    s = 0;                                                                                         \
    C(name) __VA_ARGS__;                                                                           \
    SAYS("mcapi_" #name " without a node", MCAPI_ERR_NODE_NOTINIT);                                \
  } while (0)
  NO(finalize, (&s));
  NO(domain_id_get, (&s));
  NO(node_id_get, (&s));
  NO(node_get_attribute, (domain, ONE, MCAPI_NODE_ATTR_TYPE, &v, sizeof v, &s));
  NO(endpoint_create, (MCAPI_PORT_ANY, &s));
  NO(endpoint_get_i, (domain, ONE, 1, &g, &r, &s));
  NO(endpoint_get, (domain, ONE, 1, MCAPI_TIMEOUT_IMMEDIATE, &s));
  NO(endpoint_release, (e, &s));
  NO(endpoint_delete, (e, &s));
  NO(endpoint_get_attribute, (e, MCAPI_ENDP_ATTR_TYPE, &v, sizeof v, &s));
  NO(endpoint_set_attribute, (e, MCAPI_ENDP_ATTR_TYPE, &v, sizeof v, &s));
  NO(msg_send_i, (e, e, b, 1, 0, &r, &s));
  NO(msg_send, (e, e, b, 1, 0, &s));
  NO(msg_recv_i, (e, b, sizeof b, &r, &s));
  NO(msg_recv, (e, b, sizeof b, &n, &s));
  NO(msg_available, (e, &s));
  NO(pktchan_connect_i, (e, e, &r, &s));
  NO(pktchan_recv_open_i, (&pr, e, &r, &s));
  NO(pktchan_send_open_i, (&ps, e, &r, &s));
  NO(pktchan_send_i, (ps, b, 1, &r, &s));
  NO(pktchan_send, (ps, b, 1, &s));
  NO(pktchan_recv_i, (pr, &p, &r, &s));
  NO(pktchan_recv, (pr, &p, &n, &s));
  NO(pktchan_available, (pr, &s));
  NO(pktchan_release, (b, &s));
#if !defined(CONFORM_NO_RELEASE_TEST) && !defined(CONFORM_RELEASE_TEST_BY_VALUE)
  NO(pktchan_release_test, (b, &s));
#endif
  NO(pktchan_recv_close_i, (pr, &r, &s));
  NO(pktchan_send_close_i, (ps, &r, &s));
  NO(sclchan_connect_i, (e, e, &r, &s));
  NO(sclchan_recv_open_i, (&sr, e, &r, &s));
  NO(sclchan_send_open_i, (&ss, e, &r, &s));
  NO(sclchan_send_uint64, (ss, 1, &s));
  NO(sclchan_send_uint32, (ss, 1, &s));
  NO(sclchan_send_uint16, (ss, 1, &s));
  NO(sclchan_send_uint8, (ss, 1, &s));
  NO(sclchan_recv_uint64, (sr, &s));
  NO(sclchan_recv_uint32, (sr, &s));
  NO(sclchan_recv_uint16, (sr, &s));
  NO(sclchan_recv_uint8, (sr, &s));
  NO(sclchan_available, (sr, &s));
  NO(sclchan_recv_close_i, (sr, &r, &s));
  NO(sclchan_send_close_i, (ss, &r, &s));
  NO(test, (&r, &n, &s));
  NO(wait, (&r, &n, MCAPI_TIMEOUT_IMMEDIATE, &s));
  NO(wait_any, (1, &rs, &n, MCAPI_TIMEOUT_IMMEDIATE, &s));
  NO(cancel, (&r, &s));
#undef NO
}

static void before_and_after(void) {
  says_not_initialized();
  begin(ONE);
  end();
  says_not_initialized();
}

static void initialize(void) {
  mcapi_info_t info;
  memset(&info, 0, sizeof info);
  C(initialize)(domain, CONFORM_NO_NODE, NULL, NULL, &info, &s);
  SAYS("no such node", MCAPI_ERR_NODE_INVALID);
  C(initialize)(CONFORM_NO_DOMAIN, ONE, NULL, NULL, &info, &s);
  SAYS("no such domain", MCAPI_ERR_DOMAIN_INVALID);
  C(initialize)(domain, ONE, NULL, NULL, NULL, &s);
  SAYS("nowhere for the information", MCAPI_ERR_PARAMETER);

  C(initialize)(domain, ONE, NULL, NULL, &info, &s);
  MUST("mcapi_initialize", MCAPI_SUCCESS);
  choice_number("mcapi_version of the information", info.mcapi_version);
  choice_number("implementation_version of the information", info.implementation_version);
  IS(info.number_of_domains >= 1, "there is a domain");
  IS(info.number_of_nodes >= 1, "there is a node");
  IS(info.number_of_ports >= 1, "there are ports");
  IS(C(domain_id_get)(&s) == domain, "the domain's number");
  SAYS("mcapi_domain_id_get", MCAPI_SUCCESS);
  IS(C(node_id_get)(&s) == ONE, "the node's number");
  SAYS("mcapi_node_id_get", MCAPI_SUCCESS);
  C(initialize)(domain, ONE, NULL, NULL, &info, &s);
  SAYS("the same node again", MCAPI_ERR_NODE_INITIALIZED);
  end();
  C(finalize)(&s);
  FAILS("a second mcapi_finalize");
  begin(ONE);
  end();
  begin(TWO);
  IS(C(node_id_get)(&s) == TWO, "another number after a finalize");
  end();
}

static void attributes(void) {
  mcapi_node_attributes_t a;
  mcapi_uint_t type = 77;
  C(node_init_attributes)(NULL, &s);
  SAYS("attributes nowhere", MCAPI_ERR_PARAMETER);
  C(node_init_attributes)(&a, &s);
  SAYS("mcapi_node_init_attributes", MCAPI_SUCCESS);
  const mcapi_uint_t regular = MCAPI_NODE_ATTR_TYPE_REGULAR;
  C(node_set_attribute)(&a, 9999, &regular, sizeof regular, &s);
  SAYS("to set an attribute that is none", MCAPI_ERR_ATTR_NUM);
  C(node_set_attribute)(&a, MCAPI_NODE_ATTR_TYPE, &regular, sizeof regular + 1, &s);
  SAYS("to set one of a wrong size", MCAPI_ERR_ATTR_SIZE);
  C(node_set_attribute)(&a, MCAPI_NODE_ATTR_TYPE, NULL, sizeof regular, &s);
  SAYS("to set it from nowhere", MCAPI_ERR_PARAMETER);
  C(node_set_attribute)(NULL, MCAPI_NODE_ATTR_TYPE, &regular, sizeof regular, &s);
  SAYS("to set it nowhere", MCAPI_ERR_PARAMETER);
  C(node_set_attribute)(&a, MCAPI_NODE_ATTR_TYPE, &regular, sizeof regular, &s);
  SAYS_EITHER("to set the type", MCAPI_SUCCESS, MCAPI_ERR_ATTR_READONLY);
  choice("to set a node's type", s);

  mcapi_info_t info;
  C(initialize)(domain, ONE, &a, NULL, &info, &s);
  MUST("mcapi_initialize with attributes", MCAPI_SUCCESS);
  C(node_get_attribute)(domain, ONE, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &s);
  SAYS("mcapi_node_get_attribute", MCAPI_SUCCESS);
  IS(type == MCAPI_NODE_ATTR_TYPE_REGULAR, "a regular node");
  C(node_get_attribute)(domain, ONE, 9999, &type, sizeof type, &s);
  SAYS("to get an attribute that is none", MCAPI_ERR_ATTR_NUM);
  C(node_get_attribute)(domain, ONE, MCAPI_NODE_ATTR_TYPE, &type, sizeof type + 1, &s);
  SAYS("to get one of a wrong size", MCAPI_ERR_ATTR_SIZE);
  C(node_get_attribute)(domain, ONE, MCAPI_NODE_ATTR_TYPE, NULL, sizeof type, &s);
  SAYS("to get it nowhere", MCAPI_ERR_PARAMETER);
  C(node_get_attribute)(domain, ONE + 77, MCAPI_NODE_ATTR_TYPE, &type, sizeof type, &s);
  choice("an attribute of a node that is none", s);
  end();
}

/* Two nodes with one number. */
static void taken_one(void) {
  begin(ONE);
  meet();
  meet();
  end();
}
static void taken_two(void) {
  mcapi_info_t info;
  meet();
  C(initialize)(domain, ONE, NULL, NULL, &info, &s);
  SAYS("a number that another node has", MCAPI_ERR_NODE_INITIALIZED);
  begin(TWO);
  end();
  meet();
}

#ifndef CONFORM_NO_THREADS
/* Initializes as many nodes as possible, one per thread, until one fails. */
enum { MOST_NODES = 400 };
static pthread_barrier_t all_tried;
static mcapi_status_t tried[MOST_NODES];
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static void *one_of_many(void *what) {
  int i = (int)(intptr_t)what;
  mcapi_info_t info;
  pthread_mutex_lock(&turn);
  mcapi_initialize(domain, (mcapi_node_t)(100 + i), NULL, NULL, &info, &tried[i]);
  pthread_mutex_unlock(&turn);
  pthread_barrier_wait(&all_tried);
  if (tried[i] == MCAPI_SUCCESS) {
    mcapi_status_t status;
    mcapi_finalize(&status);
  }
  return NULL;
}

static void many(void) {
  pthread_t thread[MOST_NODES];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 * 1024);
  pthread_barrier_init(&all_tried, NULL, MOST_NODES);
  for (int i = 0; i < MOST_NODES; i++)
    if (pthread_create(&thread[i], &small, one_of_many, (void *)(intptr_t)i)) give_up();
  for (int i = 0; i < MOST_NODES; i++) pthread_join(thread[i], NULL);
  unsigned long count = 0;
  s = MCAPI_SUCCESS;
  for (int i = 0; i < MOST_NODES; i++) {
    count += tried[i] == MCAPI_SUCCESS;
    if (tried[i] != MCAPI_SUCCESS) s = tried[i];
  }
  choice_number("nodes that the threads of a process could be", count);
  choice("one more", s);
  IS(s == MCAPI_SUCCESS || s == MCAPI_ERR_NODE_INITFAILED || s == MCAPI_ERR_NODE_INITIALIZED,
     "what is too many is refused as the standard says");
  begin(ONE);
  end();
}

#endif

const conform_case node_cases[] = {{"constants", constants, NULL, 0},
                                   {"before and after", before_and_after, NULL, 0},
                                   {"initialize", initialize, NULL, 0},
                                   {"node attributes", attributes, NULL, 0},
                                   {"a node's number", taken_one, taken_two, 0},
#ifndef CONFORM_NO_THREADS
                                   {"many nodes", many, NULL, 0},
#endif
                                   {NULL, NULL, NULL, 0}};
