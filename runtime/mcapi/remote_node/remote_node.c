/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Agent of a node behind a memory window: a fiber that reads the node's calls from one stream,
 * makes them as a node of its own, and writes the replies to another stream. Input is checked as
 * far as it is used. A second fiber waits until the node's procedure returns, for whatever reason,
 * and then cancels the agent's waits. */
#include "remote_node.h"

#include <levada/mcapi_window.h>

#include <stdlib.h>
#include <string.h>

#define AGENT_STACK_BYTES (128u << 10)

enum { PENDING_MAX = 64 };

/* A request of the node for which the agent waiter_options memory until the node has consumed
 * it. */
typedef struct pending_request {
  mcapi_request_t request; /* 0: unused */
  uint32_t room;           /* bytes that it can receive */
  void *bytes;             /* data to send or received; or null */
  void *packet;
  mcapi_endpoint_t endpoint;
} pending_request;

struct lvd_mcapi_remote {
  lvd_stream *calls, *replies;
  lvd_call *call;
  lvd_fiber *agent, *waiter;
  bool is_node;
  lvd_status status; /* returned by the procedure */
  rn_head in, out;
  const void *data; /* data of the reply */
  void *packet;     /* received packet, released after the reply has been written */
  void *free_after; /* memory to be freed then */
  pending_request pending[PENDING_MAX];
  unsigned char buffer[MCAPI_MAX_MESSAGE_SIZE + RN_LINE_BYTES];
};

_Static_assert((int)MCAPI_MAX_PACKET_SIZE <= (int)MCAPI_MAX_MESSAGE_SIZE, "room for either");
_Static_assert(sizeof(rn_begin) + LVD_MCAPI_REMOTE_ARGUMENT <= 256, "fits into a record");

/* ---- calls ----------------------------------------------------------------------------------- */

static uint32_t clamp_size(uint32_t size) {
  return size < MCAPI_MAX_MESSAGE_SIZE ? size : MCAPI_MAX_MESSAGE_SIZE;
}

static void set_reply_data(lvd_mcapi_remote *f, const void *data, size_t size) {
  f->data = data;
  f->out.size = clamp_size((uint32_t)size);
}

/* `pointer`, or null if the caller's pointer was null. */
static void *null_if_absent(const lvd_mcapi_remote *f, void *pointer, uint32_t which) {
  return f->in.absent & which ? NULL : pointer;
}

/* The size that the caller passed: the number of bytes that came with the call, unless its buffer
 * was null or the size too large to send. */
static size_t sent_size(const lvd_mcapi_remote *f) {
  bool none = f->in.absent & RN_NO_BUFFER || f->in.full > MCAPI_MAX_MESSAGE_SIZE;
  return none ? f->in.full : f->in.size;
}

static void initialize(lvd_mcapi_remote *f) {
  const uint32_t *w = f->in.word;
  mcapi_info_t info = {0};
  mcapi_node_attributes_t attributes = {w[2], w[3], w[4]};
  if (f->is_node) {
    f->out.status = MCAPI_ERR_NODE_INITIALIZED;
    return;
  }
  mcapi_initialize(w[0], w[1], null_if_absent(f, &attributes, RN_NO_ATTRIBUTES), NULL,
                   null_if_absent(f, &info, RN_NO_BUFFER), &f->out.status);
  f->is_node = f->out.status == MCAPI_SUCCESS;
  memcpy(f->buffer, &info, sizeof info);
  if (f->is_node) set_reply_data(f, f->buffer, sizeof info);
}

static void free_pending(pending_request *b) {
  free(b->bytes);
  *b = (pending_request){0};
}

static void finalize(lvd_mcapi_remote *f) {
  mcapi_finalize(&f->out.status);
  if (f->out.status != MCAPI_SUCCESS) return;
  f->is_node = false;
  /* no request writes there any more */
  for (int i = 0; i < PENDING_MAX; i++) free_pending(&f->pending[i]);
}

static void node_attribute(lvd_mcapi_remote *f) {
  const uint32_t *w = f->in.word;
  uint32_t size = clamp_size(w[3]);
  mcapi_node_get_attribute(w[0], w[1], w[2], null_if_absent(f, f->buffer, RN_NO_BUFFER), size,
                           &f->out.status);
  if (f->out.status == MCAPI_SUCCESS) set_reply_data(f, f->buffer, size);
}

static void get_attribute(lvd_mcapi_remote *f) {
  uint32_t size = clamp_size(f->in.word[2]);
  mcapi_endpoint_get_attribute(f->in.word[0], f->in.word[1],
                               null_if_absent(f, f->buffer, RN_NO_BUFFER), size, &f->out.status);
  if (f->out.status == MCAPI_SUCCESS) set_reply_data(f, f->buffer, size);
}

static void message_receive(lvd_mcapi_remote *f) {
  uint32_t room = clamp_size(f->in.word[1]);
  size_t size = 0;
  mcapi_msg_recv(f->in.word[0], null_if_absent(f, f->buffer, RN_NO_BUFFER), room,
                 null_if_absent(f, &size, RN_NO_SIZE), &f->out.status);
  if (f->out.status != MCAPI_SUCCESS && f->out.status != MCAPI_ERR_MSG_TRUNCATED) return;
  f->out.full = (uint32_t)size;
  set_reply_data(f, f->buffer, size < room ? size : room);
}

static void packet_receive(lvd_mcapi_remote *f) {
  size_t size = 0;
  mcapi_pktchan_recv(f->in.word[0], null_if_absent(f, &f->packet, RN_NO_BUFFER),
                     null_if_absent(f, &size, RN_NO_SIZE), &f->out.status);
  if (f->out.status == MCAPI_SUCCESS)
    set_reply_data(f, f->packet, size);
  else
    f->packet = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

static pending_request *pending_of(lvd_mcapi_remote *f, mcapi_request_t request) {
  for (int i = 0; i < PENDING_MAX; i++)
    if (f->pending[i].request == request) return &f->pending[i];
  return NULL;
}

/* Starts a request, with a buffer that lives as long as the request. */
static void begin(lvd_mcapi_remote *f) {
  const uint32_t *w = f->in.word;
  mcapi_request_t request = 0, *r = null_if_absent(f, &request, RN_NO_REQUEST);
  mcapi_status_t *s = &f->out.status;
  bool sends = f->in.what == RN_MESSAGE_SEND_BEGIN || f->in.what == RN_PACKET_SEND_BEGIN;
  bool receives = f->in.what == RN_MESSAGE_RECEIVE_BEGIN;
  size_t room = sends ? f->in.size : receives ? clamp_size(w[1]) : 0;
  pending_request *b = pending_of(f, 0);
  if (!b) {
    *s = MCAPI_ERR_REQUEST_LIMIT;
    return;
  }
  if (room && !(b->bytes = malloc(room))) {
    *s = MCAPI_ERR_MEM_LIMIT;
    return;
  }
  if (sends && room) memcpy(b->bytes, f->buffer, room);
  b->room = receives ? (uint32_t)room : 0;
  void *bytes = null_if_absent(f, b->bytes ? b->bytes : f->buffer, RN_NO_BUFFER);
  switch (f->in.what) {
  case RN_GET_BEGIN:
    mcapi_endpoint_get_i(w[0], w[1], w[2], null_if_absent(f, &b->endpoint, RN_NO_BUFFER), r, s);
    break;
  case RN_MESSAGE_SEND_BEGIN:
    mcapi_msg_send_i(w[0], w[1], bytes, sent_size(f), w[2], r, s);
    break;
  case RN_MESSAGE_RECEIVE_BEGIN:
    mcapi_msg_recv_i(w[0], bytes, room, r, s);
    break;
  case RN_PACKET_SEND_BEGIN:
    mcapi_pktchan_send_i(w[0], bytes, sent_size(f), r, s);
    break;
  default:
    mcapi_pktchan_recv_i(w[0], null_if_absent(f, &b->packet, RN_NO_BUFFER), r, s);
  }
  b->request = f->out.word[0] = request;
  if ((*s != MCAPI_SUCCESS && *s != MCAPI_PENDING) || (sends && *s == MCAPI_SUCCESS))
    free_pending(b);
}

/* `request` has completed: what it has received goes with the reply. */
static void complete_request(lvd_mcapi_remote *f, mcapi_request_t request, size_t size) {
  f->out.word[0] = RN_REQUEST_CONSUMED;
  f->out.full = (uint32_t)size;
  pending_request *b = request ? pending_of(f, request) : NULL;
  if (!b) return;
  bool well = f->out.status == MCAPI_SUCCESS || f->out.status == MCAPI_ERR_MSG_TRUNCATED;
  f->out.word[1] = b->endpoint;
  if (well && b->packet) {
    f->packet = b->packet;
    set_reply_data(f, b->packet, size);
  } else if (well && b->room) {
    set_reply_data(f, b->bytes, size < b->room ? size : b->room);
  }
  f->free_after = b->bytes;
  b->bytes = NULL;
  free_pending(b);
}

/* True: the status ends the request. (A cancelled wait is one that was cancelled with the agent, as
 * the agent ends; the request remains queued.) */
static bool ends_request(mcapi_status_t status) {
  switch (status) {
  case MCAPI_PENDING:
  case MCAPI_TIMEOUT:
  case MCAPI_ERR_WAIT_PENDING:
  case MCAPI_ERR_REQUEST_INVALID:
  case MCAPI_ERR_REQUEST_CANCELLED:
  case MCAPI_ERR_PARAMETER:
    return false;
  default:
    return true;
  }
}

static void do_wait(lvd_mcapi_remote *f) {
  mcapi_request_t request = f->in.word[0], *r = null_if_absent(f, &request, RN_NO_REQUEST);
  size_t size = 0;
  if (f->in.what == RN_WAIT)
    f->out.value = mcapi_wait(r, &size, f->in.word[1], &f->out.status);
  else if (f->in.what == RN_TEST)
    f->out.value = mcapi_test(r, &size, &f->out.status);
  else
    mcapi_cancel(r, &f->out.status);
  if (ends_request(f->out.status)) complete_request(f, request, size);
}

static void do_wait_any(lvd_mcapi_remote *f) {
  mcapi_request_t request[RN_WAIT_ANY_REQUESTS], *all[RN_WAIT_ANY_REQUESTS];
  size_t count = f->in.size / sizeof *request, size = 0;
  if (count > f->in.word[0]) count = f->in.word[0];
  if (count > RN_WAIT_ANY_REQUESTS) count = RN_WAIT_ANY_REQUESTS;
  memcpy(request, f->buffer, count * sizeof *request);
  for (size_t i = 0; i < count; i++) all[i] = &request[i];
  mcapi_uint_t which = mcapi_wait_any(count, all, &size, f->in.word[1], &f->out.status);
  f->out.value = which;
  if (which < count && ends_request(f->out.status)) complete_request(f, request[which], size);
}

static void scalar_send(lvd_mcapi_remote *f) {
  uint32_t handle = f->in.word[0];
  uint64_t value = f->in.value;
  mcapi_status_t *s = &f->out.status;
  switch (f->in.word[1]) {
  case 1:
    mcapi_sclchan_send_uint8(handle, (uint8_t)value, s);
    break;
  case 2:
    mcapi_sclchan_send_uint16(handle, (uint16_t)value, s);
    break;
  case 4:
    mcapi_sclchan_send_uint32(handle, (uint32_t)value, s);
    break;
  default:
    mcapi_sclchan_send_uint64(handle, value, s);
  }
}

static void scalar_receive(lvd_mcapi_remote *f) {
  uint32_t handle = f->in.word[0];
  mcapi_status_t *s = &f->out.status;
  switch (f->in.word[1]) {
  case 1:
    f->out.value = mcapi_sclchan_recv_uint8(handle, s);
    break;
  case 2:
    f->out.value = mcapi_sclchan_recv_uint16(handle, s);
    break;
  case 4:
    f->out.value = mcapi_sclchan_recv_uint32(handle, s);
    break;
  default:
    f->out.value = mcapi_sclchan_recv_uint64(handle, s);
  }
}

/* ---- dispatch -------------------------------------------------------------------------------- */

static void do_call(lvd_mcapi_remote *f) {
  const uint32_t *w = f->in.word;
  uint32_t *handle = null_if_absent(f, &f->out.word[1], RN_NO_BUFFER);
  mcapi_request_t *request = null_if_absent(f, &f->out.word[0], RN_NO_REQUEST);
  void *bytes = null_if_absent(f, f->buffer, RN_NO_BUFFER);
  mcapi_status_t *s = &f->out.status;
  switch (f->in.what) {
  case RN_FINALIZE:
    finalize(f);
    break;
  case RN_DOMAIN_ID:
    f->out.value = mcapi_domain_id_get(s);
    break;
  case RN_NODE_ID:
    f->out.value = mcapi_node_id_get(s);
    break;
  case RN_NODE_ATTRIBUTE:
    node_attribute(f);
    break;
  case RN_CREATE:
    f->out.value = mcapi_endpoint_create(w[0], s);
    break;
  case RN_GET:
    f->out.value = mcapi_endpoint_get(w[0], w[1], w[2], w[3], s);
    break;
  case RN_RELEASE:
    mcapi_endpoint_release(w[0], s);
    break;
  case RN_DELETE:
    mcapi_endpoint_delete(w[0], s);
    break;
  case RN_GET_ATTRIBUTE:
    get_attribute(f);
    break;
  case RN_SET_ATTRIBUTE:
    mcapi_endpoint_set_attribute(w[0], w[1], bytes, sent_size(f), s);
    break;
  case RN_MESSAGE_SEND:
    mcapi_msg_send(w[0], w[1], bytes, sent_size(f), w[2], s);
    break;
  case RN_MESSAGE_RECEIVE:
    message_receive(f);
    break;
  case RN_MESSAGES_AVAILABLE:
    f->out.value = mcapi_msg_available(w[0], s);
    break;
  case RN_PACKET_CONNECT:
    mcapi_pktchan_connect_i(w[0], w[1], request, s);
    break;
  case RN_PACKET_OPEN_RECEIVER:
    mcapi_pktchan_recv_open_i(handle, w[0], request, s);
    break;
  case RN_PACKET_OPEN_SENDER:
    mcapi_pktchan_send_open_i(handle, w[0], request, s);
    break;
  case RN_PACKET_CLOSE_RECEIVER:
    mcapi_pktchan_recv_close_i(w[0], request, s);
    break;
  case RN_PACKET_CLOSE_SENDER:
    mcapi_pktchan_send_close_i(w[0], request, s);
    break;
  case RN_PACKET_SEND:
    mcapi_pktchan_send(w[0], bytes, sent_size(f), s);
    break;
  case RN_PACKET_RECEIVE:
    packet_receive(f);
    break;
  case RN_PACKETS_AVAILABLE:
    f->out.value = mcapi_pktchan_available(w[0], s);
    break;
  case RN_SCALAR_CONNECT:
    mcapi_sclchan_connect_i(w[0], w[1], request, s);
    break;
  case RN_SCALAR_OPEN_RECEIVER:
    mcapi_sclchan_recv_open_i(handle, w[0], request, s);
    break;
  case RN_SCALAR_OPEN_SENDER:
    mcapi_sclchan_send_open_i(handle, w[0], request, s);
    break;
  case RN_SCALAR_CLOSE_RECEIVER:
    mcapi_sclchan_recv_close_i(w[0], request, s);
    break;
  case RN_SCALAR_CLOSE_SENDER:
    mcapi_sclchan_send_close_i(w[0], request, s);
    break;
  case RN_SCALAR_SEND:
    scalar_send(f);
    break;
  case RN_SCALAR_RECEIVE:
    scalar_receive(f);
    break;
  case RN_SCALARS_AVAILABLE:
    f->out.value = mcapi_sclchan_available(w[0], s);
    break;
  case RN_GET_BEGIN:
  case RN_MESSAGE_SEND_BEGIN:
  case RN_MESSAGE_RECEIVE_BEGIN:
  case RN_PACKET_SEND_BEGIN:
  case RN_PACKET_RECEIVE_BEGIN:
    begin(f);
    break;
  case RN_WAIT:
  case RN_TEST:
  case RN_CANCEL:
    do_wait(f);
    break;
  case RN_WAIT_ANY:
    do_wait_any(f);
    break;
  default:
    *s = MCAPI_ERR_GENERAL;
  }
}

/* ---- the two streams ------------------------------------------------------------------------- */

static bool read_call(lvd_mcapi_remote *f) {
  if (lvd_stream_get(f->calls, &f->in, RN_LINE_BYTES) != LVD_OK) return false;
  lvd_stream_pop(f->calls);
  if (f->in.size > MCAPI_MAX_MESSAGE_SIZE) return false;
  for (uint32_t i = 0; i < rn_lines(f->in.size); i++) {
    if (lvd_stream_get(f->calls, f->buffer + (size_t)i * RN_LINE_BYTES, RN_LINE_BYTES) != LVD_OK)
      return false;
    if (i % (RN_STREAM_LINES / 4) == 0) lvd_stream_pop(f->calls);
  }
  lvd_stream_pop(f->calls);
  return true;
}

static bool write_reply(lvd_mcapi_remote *f) {
  if (lvd_stream_put(f->replies, &f->out, RN_LINE_BYTES) != LVD_OK) return false;
  const unsigned char *from = f->data;
  for (uint32_t left = f->out.size; left;) {
    uint32_t n = left < RN_LINE_BYTES ? left : RN_LINE_BYTES;
    void *line;
    if (lvd_stream_put_span(f->replies, 1, &line) != LVD_OK) return false;
    memcpy(line, from, n);
    lvd_put_done(&f->replies->producer, 1);
    from += n;
    left -= n;
  }
  lvd_stream_flush(f->replies);
  return true;
}

static bool serve_call(lvd_mcapi_remote *f) {
  if (!read_call(f)) return false;
  f->out = (rn_head){.what = f->in.what};
  f->packet = f->free_after = NULL;
  if (f->in.what == RN_INITIALIZE)
    initialize(f);
  else if (f->is_node)
    do_call(f);
  else /* without its own node, a fiber would use the first node of its process */
    f->out.status = MCAPI_ERR_NODE_NOTINIT;
  bool more = write_reply(f);
  mcapi_status_t ignored;
  if (f->packet) mcapi_pktchan_release(f->packet, &ignored);
  free(f->free_after);
  return more;
}

static void agent_main(void *argument) {
  lvd_mcapi_remote *f = argument;
  while (serve_call(f)) {
  }
  if (f->is_node) finalize(f);
  f->is_node = false;
  lvd_stream_close(f->calls);
  lvd_stream_close(f->replies);
}

/* ---- the procedure --------------------------------------------------------------------------- */

static void waiter_main(void *argument) {
  lvd_mcapi_remote *f = argument;
  bool returned = false;
  f->status = lvd_call_wait(f->call, NULL, NULL, -1, &returned);
  lvd_fiber_cancel(f->agent);
  lvd_fiber_join(f->agent, -1);
}

static lvd_status open_stream(lvd_unit *unit, const char *name, uint32_t number, lvd_stream **out) {
  char text[32];
  rn_name(text, name, number);
  const lvd_stream_options o = {
      .name = text, .elem_size = RN_LINE_BYTES, .capacity = RN_STREAM_LINES, .threshold = 1};
  return lvd_stream_open(unit, &o, out);
}

static void free_node(lvd_mcapi_remote *f) {
  if (f->calls) lvd_stream_destroy(f->calls);
  if (f->replies) lvd_stream_destroy(f->replies);
  for (int i = 0; i < PENDING_MAX; i++) free_pending(&f->pending[i]);
  free(f);
}

lvd_status lvd_mcapi_remote_start(lvd_app *app, lvd_unit *unit, const char *procedure,
                                  const void *argument, size_t size, lvd_mcapi_remote **out) {
  static lvd_a32 agents;
  struct {
    rn_begin begin;
    unsigned char argument[LVD_MCAPI_REMOTE_ARGUMENT];
  } all = {0};
  size_t length = procedure ? strlen(procedure) : 0;
  if (!app || !unit || !out || !length || length >= RN_NAME_BYTES ||
      size > LVD_MCAPI_REMOTE_ARGUMENT || (size && !argument))
    return LVD_E_ARGUMENT;
  lvd_mcapi_remote *f = calloc(1, sizeof *f);
  if (!f) return LVD_E_MEMORY;
  all.begin.agent = lvd_add_relaxed_u32(&agents, 1);
  memcpy(all.begin.procedure, procedure, length);
  if (size) memcpy(all.argument, argument, size);
  lvd_status status = open_stream(unit, RN_CALLS_NAME, all.begin.agent, &f->calls);
  if (status == LVD_OK) status = open_stream(unit, RN_REPLIES_NAME, all.begin.agent, &f->replies);
  if (status == LVD_OK)
    status = lvd_call_start(unit, RN_PROCEDURE_NAME, &all, sizeof all.begin + size, NULL, &f->call);
  if (status != LVD_OK) {
    free_node(f);
    return status;
  }
  const lvd_fiber_options agent_options = {.name = "mcapi agent", .stack = AGENT_STACK_BYTES},
                          waiter_options = {.name = "mcapi waiter"};
  status = lvd_fiber_start(app, agent_main, f, &agent_options, &f->agent);
  if (status == LVD_OK) status = lvd_fiber_start(app, waiter_main, f, &waiter_options, &f->waiter);
  if (status != LVD_OK) {
    /* Without an agent the procedure can do nothing, and returns. */
    lvd_call_cancel(f->call);
    if (f->agent) lvd_fiber_cancel(f->agent);
    lvd_call_wait(f->call, NULL, NULL, -1, NULL);
    if (f->agent) lvd_fiber_join(f->agent, -1);
    free_node(f);
    return status;
  }
  *out = f;
  return LVD_OK;
}

lvd_status lvd_mcapi_remote_wait(lvd_mcapi_remote *f, int64_t timeout_ns, bool *returned) {
  if (returned) *returned = false;
  if (!f) return LVD_E_ARGUMENT;
  lvd_status status = lvd_fiber_join(f->waiter, timeout_ns);
  if (status != LVD_OK) return status; /* timed out or stopped: the agent may still be running */
  if (returned) *returned = true;
  status = f->status;
  free_node(f);
  return status;
}

void lvd_mcapi_remote_cancel(lvd_mcapi_remote *f) {
  lvd_call_cancel(f->call);
  lvd_fiber_cancel(f->agent);
}
