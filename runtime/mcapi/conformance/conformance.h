/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Conformance: what the cases share, and what a porter can set for another implementation of MCAPI.
 * Nothing is included but <mcapi.h> and what POSIX has. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#ifndef _XOPEN_SOURCE
#define _XOPEN_SOURCE 700
#endif

#include <mcapi.h>

#include <stddef.h>
#include <stdint.h>

/* ---- for the porter, by -D ------------------------------------------------------------------ */

/* What mcapi_timeout_t counts: so many are a millisecond. */
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
/* CONFORM_STRUCT_HANDLES: handles cannot be compared with ==; that is one failure, and the rest is built.
 * CONFORM_NO_RELEASE_TEST: there is no mcapi_pktchan_release_test.
 * CONFORM_RELEASE_TEST_BY_VALUE: its status is no pointer, as the standard's header prints it.
 * CONFORM_FIBERS: nodes may be fibers; conform_fibers and conform_nap (below) are there.
 * CONFORM_NO_THREADS: there is no <pthread.h>; the cases that are about threads are left out.
 * CONFORM_ELSEWHERE: one node may be where this program is not; conform_elsewhere (below) is there.
 * CONFORM_NO_DISPLAY_STATUS, CONFORM_NO_DEBUG_LEVEL: there is no mcapi_display_status,
 * mcapi_set_debug_level; they are not in the standard. */

/* The largest message and packet, the most urgent priority and the least. */
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
/* Numbers that can be no domain, node, port. */
#ifndef CONFORM_NO_DOMAIN
#define CONFORM_NO_DOMAIN MCAPI_DOMAIN_INVALID
#endif
#ifndef CONFORM_NO_NODE
#define CONFORM_NO_NODE MCAPI_NODE_INVALID
#endif
#ifndef CONFORM_NO_PORT
#define CONFORM_NO_PORT (MCAPI_PORT_ANY - 1)
#endif
/* Variables that each node of a process has to itself; empty, where there are no threads. */
#ifndef CONFORM_OWN
#define CONFORM_OWN _Thread_local
#endif
/* How many of something are tried before it counts as without a limit; seconds that a case may take. */
#ifndef CONFORM_MANY
#define CONFORM_MANY 5000
#endif
#ifndef CONFORM_SECONDS
#define CONFORM_SECONDS 30
#endif
/* The domain, where the command says none. */
#ifndef CONFORM_DOMAIN
#define CONFORM_DOMAIN 1
#endif
/* Ports that the cases use are CONFORM_PORT + 1 ... 9. */
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

/* ---- checks --------------------------------------------------------------------------------- */

extern CONFORM_OWN mcapi_status_t s; /* what the last call has left */
extern mcapi_domain_t domain;

/* Counts that `name` was called: every function of the standard must have been. */
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
/* What the case cannot go on without. */
#define MUST(what, expected)                                                                       \
  do {                                                                                             \
    SAYS(what, expected);                                                                          \
    if (s != (mcapi_status_t)(expected)) give_up();                                                \
  } while (0)
void give_up(void);

/* ---- the two nodes of a case ---------------------------------------------------------------- */

enum { ONE = 1, TWO = 2 };

typedef struct conform_case {
  const char *name;
  void (*one)(void); /* in a process of its own */
  void (*two)(void); /* beside it, a thread or a process; null: there is no other */
  int processes;     /* 1: only where the other is a process */
} conform_case;
extern const conform_case node_cases[], endpoint_cases[], message_cases[], request_cases[],
    channel_cases[], packet_cases[], scalar_cases[]; /* the last has no name */
extern const conform_case *const conform_cases[];    /* all of these; the last is null */

#ifdef CONFORM_FIBERS
/* The porter's: runs both on fibers, the second unless it is null, and comes back when they have ended. The
 * other fibers of a thread may run while one waits in a call of MCAPI's, and at no other time. */
void conform_fibers(void (*one)(void), void (*two)(void));
int conform_nap(int ms); /* 0: the caller is on no fiber */
#endif

#ifdef CONFORM_ELSEWHERE
/* The porter's: runs `one` of the case (else `two`) where this program is not, and does here what is said there:
 * is_so, says, meet and the others. Comes back when it has ended; 0: there is no such place. */
int conform_elsewhere(const char *name, int one);
void conform_kill_elsewhere(void); /* it is no more; from any thread */
#endif

void begin(mcapi_node_t node); /* mcapi_initialize */
void end(void);                /* mcapi_finalize */
/* Both have come so far. */
void meet(void);
void kill_other(void); /* the process of the other node, and waits for its end */
void nap(int ms);
mcapi_endpoint_t created(int port); /* CONFORM_PORT + port */
mcapi_endpoint_t got(mcapi_node_t node, int port);
void deleted(mcapi_endpoint_t endpoint);
/* Limits the blocking calls of an endpoint to `ms`. */
void limited(mcapi_endpoint_t endpoint, int ms);
/* ONE, and two endpoints of it; `ms` limits them unless it is 0. */
void begin_pair(mcapi_endpoint_t *from, mcapi_endpoint_t *to, int ms);
void done(const char *what, mcapi_request_t *request); /* mcapi_wait says MCAPI_SUCCESS */
/* Fills with what only `seed` makes, and looks whether it is so. */
void fill(void *data, size_t size, unsigned seed);
int is_filled(const void *data, size_t size, unsigned seed);

#endif
