/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the tests of MCAPI use. Each test has a domain of its own. */
#ifndef LVD_TEST_MCAPI_H
#define LVD_TEST_MCAPI_H

#include "../support/test.h"

#include <mcapi.h>
#include <mcapi_impl_spec.h>

/* Checks a status, and says its name where it is another. */
#define SAYS(status, expected)                                                                     \
  do {                                                                                             \
    mcapi_status_t is_ = (status);                                                                 \
    char text_[64] = "?";                                                                          \
    if (is_ != (mcapi_status_t)(expected)) {                                                       \
      mcapi_display_status(is_, text_, sizeof text_);                                              \
      fprintf(stderr, "%s:%d: %s, not %s\n", __FILE__, __LINE__, text_, #expected);                \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

/* First in tests that fork when they have threads, which neither the thread sanitizer bears nor an
 * emulator of another processor: qemu's has asserted that its own threads are all there. */
#ifdef __SANITIZE_THREAD__
#define FORKS_LATE SKIP("the thread sanitizer does not bear a fork of threads")
#elif defined(LVD_EMULATED)
#define FORKS_LATE SKIP("the emulator does not bear a fork of threads")
#else
#define FORKS_LATE (void)0
#endif

mcapi_domain_t test_domain(void); /* the same in processes that the test forks */
double seconds(void);
/* The tests run over both transports. Is it message queues now? And how many messages does a queue hold, as
 * the system's limits are? */
bool over_queues(void);
int test_slots(void);

/* This thread is a node of it, and is none any more; an endpoint of its own, and anybody's, which is
 * waited for. */
void node_is(mcapi_node_t node);
/* The same with wishes, 0 and LVD_MCAPI_NO_GROUP: none; the status it got. */
mcapi_status_t node_with(mcapi_node_t node, mcapi_uint_t transport, mcapi_uint_t group);
void node_ends(void);
mcapi_endpoint_t endpoint_at(mcapi_port_t port);
mcapi_endpoint_t endpoint_of(mcapi_node_t node, mcapi_port_t port);

#endif
