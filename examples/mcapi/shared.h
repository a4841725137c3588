/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the two programs agree on. Everything else they tell each other. */
#ifndef SHARED_H
#define SHARED_H

#include <mcapi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
  SENSOR = 1, /* nodes */
  STATION = 2,
  ORDERS = 1, /* the sensor's port for messages; no other port needs a number */
  SAMPLES = 256
};

/* From the station to the sensor. Endpoints are numbers that mean the same everywhere in the domain, so a
 * message can say where to answer. */
typedef struct order {
  mcapi_endpoint_t answers, blocks, peaks;
  uint32_t count;
} order;

static inline void must(mcapi_status_t status, const char *what) {
  char name[MCAPI_MAX_STATUS_MSG_LEN] = "?";
  if (status == MCAPI_SUCCESS) return;
  mcapi_display_status(status, name, sizeof name);
  fprintf(stderr, "%s: %s\n", what, name);
  exit(1);
}

/* Calls that end in _i return at once; their request says when it is done. */
static inline void must_end(mcapi_request_t *request, mcapi_status_t status, const char *what) {
  size_t size;
  if (status != MCAPI_PENDING) must(status, what);
  mcapi_wait(request, &size, MCAPI_TIMEOUT_INFINITE, &status);
  must(status, what);
}

/* The domain is the program's argument, or 1. */
static inline void begin(int argc, char **argv, mcapi_node_t node) {
  mcapi_info_t info;
  mcapi_status_t status;
  mcapi_domain_t domain = argc > 1 ? (mcapi_domain_t)strtoul(argv[1], NULL, 10) : 1;
  mcapi_initialize(domain, node, NULL, NULL, &info, &status);
  must(status, "initialize");
}

#endif
