/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steps of most cases: nodes, endpoints, contents of buffers. Uses only <mcapi.h>. */
#include "conformance.h"

CONFORM_OWN mcapi_status_t s;
mcapi_domain_t domain;

const conform_case *const conform_cases[] = {
    node_cases,    endpoint_cases, message_cases, request_cases,
    channel_cases, packet_cases,   scalar_cases,  NULL};

void begin(mcapi_node_t node) {
  mcapi_info_t info;
  C(initialize)(domain, node, NULL, NULL, &info, &s);
  MUST("mcapi_initialize", MCAPI_SUCCESS);
}
void end(void) {
  C(finalize)(&s);
  SAYS("mcapi_finalize", MCAPI_SUCCESS);
}

mcapi_endpoint_t created(int port) {
  mcapi_endpoint_t e = C(endpoint_create)(CONFORM_PORT + (unsigned)port, &s);
  MUST("mcapi_endpoint_create", MCAPI_SUCCESS);
  return e;
}
mcapi_endpoint_t got(mcapi_node_t node, int port) {
  mcapi_endpoint_t e = C(endpoint_get)(domain, node, CONFORM_PORT + (unsigned)port,
                                       (mcapi_timeout_t)CONFORM_SECONDS * 1000 * CONFORM_MS, &s);
  MUST("mcapi_endpoint_get", MCAPI_SUCCESS);
  return e;
}
void deleted(mcapi_endpoint_t endpoint) {
  C(endpoint_delete)(endpoint, &s);
  SAYS("mcapi_endpoint_delete", MCAPI_SUCCESS);
}

void limited(mcapi_endpoint_t endpoint, int ms) {
#ifdef CONFORM_2000
  (void)endpoint, (void)ms;
#else
  const mcapi_endp_attr_timeout_t t = (mcapi_endp_attr_timeout_t)ms * CONFORM_MS;
  C(endpoint_set_attribute)(endpoint, MCAPI_ENDP_ATTR_TIMEOUT, &t, sizeof t, &s);
  MUST("a time limit is set", MCAPI_SUCCESS);
#endif
}
void begin_pair(mcapi_endpoint_t *from, mcapi_endpoint_t *to, int ms) {
  begin(ONE);
  *from = created(1);
  *to = created(2);
  if (ms) {
    limited(*from, ms);
    limited(*to, ms);
  }
}

void done(const char *what, mcapi_request_t *request) {
  size_t size = 0;
  C(wait)(request, &size, (mcapi_timeout_t)CONFORM_SECONDS * 1000 * CONFORM_MS, &s);
  MUST(what, MCAPI_SUCCESS);
}

void fill(void *data, size_t size, unsigned seed) {
  unsigned char *to = data;
  for (size_t i = 0; i < size; i++) to[i] = (unsigned char)(seed * 31 + i * 7 + i / 251);
}
int is_filled(const void *data, size_t size, unsigned seed) {
  const unsigned char *from = data;
  for (size_t i = 0; i < size; i++)
    if (from[i] != (unsigned char)(seed * 31 + i * 7 + i / 251)) return 0;
  return 1;
}
