/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Protocol between an MCAPI node behind a memory window and its agent (levada/mcapi_window.h): a
 * call, then its reply. Each is a header and lines of data, in two streams with names that end with
 * the agent's number. This header needs no operating system. */
#ifndef LVD_MCAPI_REMOTE_NODE_H
#define LVD_MCAPI_REMOTE_NODE_H

#include <mcapi.h>

enum { RN_LINE_BYTES = 64, RN_STREAM_LINES = 256 /* capacity of a stream */, RN_NAME_BYTES = 64 };
#define RN_CALLS_NAME     "mcapi calls "
#define RN_REPLIES_NAME   "mcapi answers "
#define RN_PROCEDURE_NAME "levada_mcapi_node" /* called by the host; runs the node's procedure */

/* Its argument, followed by that of the node's procedure. */
typedef struct rn_begin {
  uint32_t agent, reserved[3];
  char procedure[RN_NAME_BYTES];
} rn_begin;

enum rn_call {
  RN_INITIALIZE = 1, /* words: domain, node, type, transport, group */
  RN_FINALIZE,
  RN_DOMAIN_ID,
  RN_NODE_ID,
  RN_NODE_ATTRIBUTE, /* domain, node, number, size */
  RN_CREATE,         /* port */
  RN_GET,            /* domain, node, port, timeout */
  RN_GET_BEGIN,
  RN_RELEASE,
  RN_DELETE,
  RN_GET_ATTRIBUTE, /* endpoint, number, size */
  RN_SET_ATTRIBUTE, /* endpoint, number; data */
  RN_MESSAGE_SEND,  /* from, to, priority; data */
  RN_MESSAGE_SEND_BEGIN,
  RN_MESSAGE_RECEIVE, /* endpoint, room */
  RN_MESSAGE_RECEIVE_BEGIN,
  RN_MESSAGES_AVAILABLE,
  RN_PACKET_CONNECT, /* from, to */
  RN_PACKET_OPEN_RECEIVER,
  RN_PACKET_OPEN_SENDER,
  RN_PACKET_CLOSE_RECEIVER,
  RN_PACKET_CLOSE_SENDER,
  RN_PACKET_SEND, /* handle; data */
  RN_PACKET_SEND_BEGIN,
  RN_PACKET_RECEIVE,
  RN_PACKET_RECEIVE_BEGIN,
  RN_PACKETS_AVAILABLE,
  RN_SCALAR_CONNECT,
  RN_SCALAR_OPEN_RECEIVER,
  RN_SCALAR_OPEN_SENDER,
  RN_SCALAR_CLOSE_RECEIVER,
  RN_SCALAR_CLOSE_SENDER,
  RN_SCALAR_SEND,    /* handle, bytes; value */
  RN_SCALAR_RECEIVE, /* handle, bytes */
  RN_SCALARS_AVAILABLE,
  RN_WAIT,     /* request, timeout */
  RN_WAIT_ANY, /* count, timeout; the requests as data */
  RN_TEST,
  RN_CANCEL
};

/* Arguments of the caller that are null pointers: the agent passes null, too, so that errors are
 * reported in the same order as for a local node. */
enum { RN_NO_BUFFER = 1, RN_NO_SIZE = 2, RN_NO_REQUEST = 4, RN_NO_ATTRIBUTES = 8 };

/* In word[0] of a reply to a wait, test or cancel: the request has completed and its number is
 * free. Received bytes follow as data; an endpoint that it got is word[1]. */
enum { RN_REQUEST_CONSUMED = 1, RN_WAIT_ANY_REQUESTS = 1024 /* at most, in one RN_WAIT_ANY */ };

/* Words of a reply: request, handle. */
typedef struct rn_head {
  uint32_t what, status;
  uint32_t size; /* bytes of data in the lines that follow */
  uint32_t full; /* reply: bytes before truncation; call: bytes that the caller passed */
  uint64_t value;
  uint32_t word[9], absent;
} rn_head;

_Static_assert(sizeof(rn_head) == RN_LINE_BYTES, "one line");

static inline uint32_t rn_lines(size_t size) {
  return (uint32_t)((size + RN_LINE_BYTES - 1) / RN_LINE_BYTES);
}

/* Appends the number, in decimal, to the name. */
static inline void rn_name(char to[32], const char *name, uint32_t number) {
  char digit[10];
  int digits = 0, n = 0;
  for (; *name; name++) to[n++] = *name;
  do digit[digits++] = (char)('0' + number % 10);
  while (number /= 10);
  while (digits) to[n++] = digit[--digits];
  to[n] = 0;
}

#endif
