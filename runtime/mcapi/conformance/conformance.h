/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Conformance: what the cases share, and what can be set to port the program to another
 * implementation of MCAPI. Includes only <mcapi.h> and POSIX headers. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif

#include <mcapi.h>

#include <stddef.h>
#include <stdint.h>

/* ---- porting, by -D -------------------------------------------------------------------------- */

/* Units of mcapi_timeout_t per millisecond. */
#ifndef CONFORM_MS
#define CONFORM_MS 1
#endif
/* The header is of 2.000. */
#if !defined(CONFORM_2000) && !defined(MCAPI_MAX_STATUS_MSG_LEN)
#define CONFORM_2000
#endif
#ifdef CONFORM_2000
#define CONFORM_NO_RELEASE_TEST
#endif
/* CONFORM_STRUCT_HANDLES: handles cannot be compared with ==; that is one failure, and the rest is
 * built. CONFORM_NO_RELEASE_TEST: there is no mcapi_pktchan_release_test.
 * CONFORM_RELEASE_TEST_BY_VALUE: its status is no pointer, as the standard's header prints it.
 * CONFORM_FIBERS: nodes may be fibers; conform_fibers and conform_nap (below) exist.
 * CONFORM_NO_THREADS: there is no <pthread.h>; cases with threads are left out. CONFORM_ELSEWHERE:
 * one node may run outside this program; conform_elsewhere (below) exists.
 * CONFORM_NO_DISPLAY_STATUS, CONFORM_NO_DEBUG_LEVEL: there is no mcapi_display_status,
 * mcapi_set_debug_level, which are not in the standard. */

/* Bytes of the largest message and packet; the highest and the lowest priority. */
#ifndef CONFORM_MESSAGE
#if defined(MCAPI_MAX_MESSAGE_SIZE)
#define CONFORM_MESSAGE MCAPI_MAX_MESSAGE_SIZE
#else
#define CONFORM_MESSAGE MCAPI_MAX_MSG_SIZE
#endif
#endif
#ifndef CONFORM_PACKET
#if defined(MCAPI_MAX_PACKET_SIZE)
#define CONFORM_PACKET MCAPI_MAX_PACKET_SIZE
#else
#define CONFORM_PACKET MCAPI_MAX_PKT_SIZE
#endif
#endif
#ifndef CONFORM_URGENT
#define CONFORM_URGENT 0
#endif
#ifndef CONFORM_PATIENT
#if defined(MCAPI_MIN_PRORITY)
#define CONFORM_PATIENT MCAPI_MIN_PRORITY
#else
#define CONFORM_PATIENT 1
#endif
#endif
/* Invalid numbers of a domain, node, port. */
#ifndef CONFORM_NO_DOMAIN
#define CONFORM_NO_DOMAIN MCAPI_DOMAIN_INVALID
#endif
#ifndef CONFORM_NO_NODE
#define CONFORM_NO_NODE MCAPI_NODE_INVALID
#endif
#ifndef CONFORM_NO_PORT
#define CONFORM_NO_PORT (MCAPI_PORT_ANY - 1)
#endif
/* Storage class of variables that each node of a process has separately; empty without threads. */
#ifndef CONFORM_OWN
#define CONFORM_OWN _Thread_local
#endif
/* Number of attempts after which a resource counts as unlimited; seconds that a case may take. */
#ifndef CONFORM_MANY
#define CONFORM_MANY 5000
#endif
#ifndef CONFORM_SECONDS
#define CONFORM_SECONDS 30
#endif
/* The domain, unless the command line names one. */
#ifndef CONFORM_DOMAIN
#define CONFORM_DOMAIN 1
#endif
/* The cases use ports CONFORM_PORT + 1 ... 9. */
#ifndef CONFORM_PORT
#define CONFORM_PORT 10
#endif

#ifdef CONFORM_2000
#define TOO_LARGE_MESSAGE MCAPI_ERR_MSG_LIMIT
#define TOO_LARGE_PACKET  MCAPI_ERR_PKT_LIMIT
#else
#define TOO_LARGE_MESSAGE MCAPI_ERR_MSG_SIZE
#define TOO_LARGE_PACKET  MCAPI_ERR_PKT_SIZE
#endif

/* ---- checks ---------------------------------------------------------------------------------- */

extern CONFORM_OWN mcapi_status_t s; /* status of the last call */
extern mcapi_domain_t domain;

/* Records that `name` was called: every function of the standard must be. */
void called(const char *name);
#define C(name) (called(#name), mcapi_##name)

void is_so(int so, const char *what, int line);
void says(const char *what, mcapi_status_t expected, int line);
void says_either(const char *what, mcapi_status_t one, mcapi_status_t other, int line);
void fails(const char *what, int line); /* any error, also MCAPI_TIMEOUT */
void choice(const char *question, mcapi_status_t chosen);
void choice_number(const char *question, unsigned long chosen);

#define IS(so, what)                  is_so((so) != 0, what, __LINE__)
#define SAYS(what, expected)          says(what, expected, __LINE__)
#define SAYS_EITHER(what, one, other) says_either(what, one, other, __LINE__)
#define FAILS(what)                   fails(what, __LINE__)
/* A check without which the case cannot continue. */
#define MUST(what, expected)                                                                       \
  do {                                                                                             \
    SAYS(what, expected);                                                                          \
    if (s != (mcapi_status_t)(expected)) give_up();                                                \
  } while (0)
void give_up(void);

/* ---- the two nodes of a case ----------------------------------------------------------------- */

enum { ONE = 1, TWO = 2 };

typedef struct conform_case {
  const char *name;
  void (*one)(void); /* in a process of its own */
  /* in another thread or process at the same time; null: there is no other node */
  void (*two)(void);
  int processes; /* 1: only if the other node is a process */
} conform_case;
extern const conform_case node_cases[], endpoint_cases[], message_cases[], request_cases[],
    channel_cases[], packet_cases[], scalar_cases[]; /* the last has no name */
extern const conform_case *const conform_cases[];    /* all of these; the last is null */

#ifdef CONFORM_FIBERS
/* Provided by the port: runs both functions on fibers (the second may be null), and returns when
 * they have ended. Other fibers of a thread may run while one waits in a call of MCAPI, and at no
 * other time. */
void conform_fibers(void (*one)(void), void (*two)(void));
int conform_nap(int ms); /* 0: the caller is not on a fiber */
#endif

#ifdef CONFORM_ELSEWHERE
/* Provided by the port: runs `one` of the case (else `two`) outside this program, and repeats here
 * its calls of is_so, says, meet and the others. Returns when it has ended; 0: there is no such
 * place. */
int conform_elsewhere(const char *name, int one);
void conform_kill_elsewhere(void); /* ends it; from any thread */
#endif

void begin(mcapi_node_t node); /* mcapi_initialize */
void end(void);                /* mcapi_finalize */
/* A barrier of both nodes. */
void meet(void);
void kill_other(void); /* kills the other node's process, and waits for its exit */
void nap(int ms);
mcapi_endpoint_t created(int port); /* at CONFORM_PORT + port */
mcapi_endpoint_t got(mcapi_node_t node, int port);
void deleted(mcapi_endpoint_t endpoint);
/* Sets the timeout of blocking calls of an endpoint, in milliseconds. */
void limited(mcapi_endpoint_t endpoint, int ms);
/* Node ONE with two endpoints; `ms`: their timeout, 0: none. */
void begin_pair(mcapi_endpoint_t *from, mcapi_endpoint_t *to, int ms);
void done(const char *what, mcapi_request_t *request); /* mcapi_wait returns MCAPI_SUCCESS */
/* Fills with bytes that depend on `seed`, and checks them. */
void fill(void *data, size_t size, unsigned seed);
int is_filled(const void *data, size_t size, unsigned seed);

#endif
