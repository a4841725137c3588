/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What an MCAPI node behind a window and its agent (levada/mcapi_window.h) say to each other: a call, and
 * its answer, one after the other. Each is a head and the lines of data that follow it, in two streams whose
 * names end with the agent's number. No operating system is needed to read this. */
#ifndef LVD_MCAPI_BEHIND_H
#define LVD_MCAPI_BEHIND_H

#include <mcapi.h>

enum { MB_LINE = 64, MB_LINES = 256 /* that a stream holds */, MB_NAME = 64 };
#define MB_CALLS     "mcapi calls "
#define MB_ANSWERS   "mcapi answers "
#define MB_PROCEDURE "levada_mcapi_node" /* what the host calls: runs another as a node's */

/* Its argument; behind it the other's. */
typedef struct mb_begin {
  uint32_t agent, reserved[3];
  char procedure[MB_NAME];
} mb_begin;

enum mb_what {
  MB_INITIALIZE = 1, /* word: domain, node; type, transport, group */
  MB_FINALIZE,
  MB_DOMAIN_ID,
  MB_NODE_ID,
  MB_NODE_ATTRIBUTE, /* domain, node, number, size */
  MB_CREATE,         /* port */
  MB_GET,            /* domain, node, port, time limit */
  MB_GET_BEGIN,
  MB_RELEASE,
  MB_DELETE,
  MB_GET_ATTRIBUTE, /* endpoint, number, size */
  MB_SET_ATTRIBUTE, /* endpoint, number; data */
  MB_MESSAGE_OUT,   /* from, to, priority; data */
  MB_MESSAGE_OUT_BEGIN,
  MB_MESSAGE_IN, /* endpoint, room */
  MB_MESSAGE_IN_BEGIN,
  MB_MESSAGES,
  MB_PACKET_CONNECT, /* from, to */
  MB_PACKET_OPEN_IN,
  MB_PACKET_OPEN_OUT,
  MB_PACKET_CLOSE_IN,
  MB_PACKET_CLOSE_OUT,
  MB_PACKET_OUT, /* handle; data */
  MB_PACKET_OUT_BEGIN,
  MB_PACKET_IN,
  MB_PACKET_IN_BEGIN,
  MB_PACKETS,
  MB_SCALAR_CONNECT,
  MB_SCALAR_OPEN_IN,
  MB_SCALAR_OPEN_OUT,
  MB_SCALAR_CLOSE_IN,
  MB_SCALAR_CLOSE_OUT,
  MB_SCALAR_OUT, /* handle, bytes; value */
  MB_SCALAR_IN,  /* handle, bytes */
  MB_SCALARS,
  MB_WAIT,     /* request, time limit */
  MB_WAIT_ANY, /* how many, time limit; the requests as data */
  MB_TEST,
  MB_CANCEL
};

/* Pointers of the caller's that are null: the agent passes null, too, so what is wrong is said in the order in
 * which it is said anywhere. */
enum { MB_NO_BUFFER = 1, MB_NO_SIZE = 2, MB_NO_REQUEST = 4, MB_NO_ATTRIBUTES = 8 };

/* Of an answer to a wait, a test or a cancel: the request that it was about is used up. What that has
 * received comes as data, and an endpoint that it got is the second word. */
enum { MB_OVER = 1, MB_REQUESTS = 1024 /* that are waited for at a time */ };

/* An answer's words: a request, a handle. */
typedef struct mb_head {
  uint32_t what, status;
  uint32_t size; /* bytes of data, in so many lines as they take */
  uint32_t full; /* of an answer: before they were cut; of a call: that were meant */
  uint64_t value;
  uint32_t word[9], absent;
} mb_head;

_Static_assert(sizeof(mb_head) == MB_LINE, "one line");

static inline uint32_t mb_lines(size_t size) { return (uint32_t)((size + MB_LINE - 1) / MB_LINE); }

/* The name and the number, in decimal. */
static inline void mb_name(char to[32], const char *name, uint32_t number) {
  char digit[10];
  int digits = 0, n = 0;
  for (; *name; name++) to[n++] = *name;
  do digit[digits++] = (char)('0' + number % 10);
  while (number /= 10);
  while (digits) to[n++] = digit[--digits];
  to[n] = 0;
}

#endif
