/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by the tests of MCAPI. Each test has a domain of its own. */
#ifndef LVD_TEST_MCAPI_H
#define LVD_TEST_MCAPI_H

#include "../support/test.h"

#include <mcapi.h>
#include <mcapi_impl_spec.h>

/* Checks a status, and prints its name if it is another. */
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

/* First in tests that fork while they have threads. The thread sanitizer does not support that, nor
 * does an emulator of another processor (qemu asserts that its own threads exist). */
#ifdef __SANITIZE_THREAD__
#define FORKS_LATE SKIP("the thread sanitizer does not bear a fork of threads")
#elif defined(LVD_EMULATED)
#define FORKS_LATE SKIP("the emulator does not bear a fork of threads")
#else
#define FORKS_LATE (void)0
#endif

mcapi_domain_t test_domain(void); /* the same in processes that the test forks */
double seconds(void);
/* The tests run over both transports: is this one message queues? And the number of messages that a
 * queue holds under the system's limits. */
bool over_queues(void);
int test_slots(void);

/* Initializes and finalizes this thread's node; creates an endpoint of it; waits for an endpoint of
 * any node. */
void node_is(mcapi_node_t node);
/* The same with requested attributes (0 and LVD_MCAPI_NO_GROUP: none); returns the status. */
mcapi_status_t node_with(mcapi_node_t node, mcapi_uint_t transport, mcapi_uint_t group);
void node_ends(void);
mcapi_endpoint_t endpoint_at(mcapi_port_t port);
mcapi_endpoint_t endpoint_of(mcapi_node_t node, mcapi_port_t port);

#endif
