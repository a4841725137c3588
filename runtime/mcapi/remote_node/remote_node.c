/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The agent of a node behind a window: a fiber that takes the node's calls from one stream, does them as its
 * own, and answers in another. What comes is checked as far as it is used. A second fiber waits for the
 * procedure's return, however that comes about, and then ends the agent's waits. */
#include "remote_node.h"

#include <levada/mcapi_window.h>

#include <stdlib.h>
#include <string.h>

#define AGENT_STACK (128u << 10)

enum { BEGUN = 64 };

/* A request of the node's that has something on this side until the node has asked for it. */
typedef struct begun {
  mcapi_request_t request; /* 0: none */
  uint32_t room;           /* that it receives into */
  void *bytes;             /* that are sent, or are received; or null */
  void *packet;
  mcapi_endpoint_t endpoint;
} begun;

struct lvd_mcapi_far {
  lvd_stream *calls, *answers;
  lvd_call *call;
  lvd_fiber *agent, *keeper;
  bool is_node;
  lvd_status status; /* what the procedure returned */
  mb_head in, out;
  const void *data; /* that go with the answer */
  void *packet;     /* lies where it lies until it has been sent on */
  void *spent;      /* memory that is given back then */
  begun begun[BEGUN];
  unsigned char buffer[MCAPI_MAX_MESSAGE_SIZE + MB_LINE];
};

_Static_assert((int)MCAPI_MAX_PACKET_SIZE <= (int)MCAPI_MAX_MESSAGE_SIZE, "room for either");
_Static_assert(sizeof(mb_begin) + LVD_MCAPI_FAR_ARGUMENT <= 256, "fits into a record");

/* ---- calls ---------------------------------------------------------------------------------- */

static uint32_t whole(uint32_t size) {
  return size < MCAPI_MAX_MESSAGE_SIZE ? size : MCAPI_MAX_MESSAGE_SIZE;
}

static void carries(lvd_mcapi_far *f, const void *data, size_t size) {
  f->data = data;
  f->out.size = whole((uint32_t)size);
}

/* Null, where the caller's pointer is. */
static void *given(const lvd_mcapi_far *f, void *pointer, uint32_t which) {
  return f->in.absent & which ? NULL : pointer;
}

/* How much the caller sends: as many bytes as have come along, unless it is from nowhere, or too much. */
static size_t sent(const lvd_mcapi_far *f) {
  bool none = f->in.absent & MB_NO_BUFFER || f->in.full > MCAPI_MAX_MESSAGE_SIZE;
  return none ? f->in.full : f->in.size;
}

static void initialize(lvd_mcapi_far *f) {
  const uint32_t *w = f->in.word;
  mcapi_info_t info = {0};
  mcapi_node_attributes_t attributes = {w[2], w[3], w[4]};
  if (f->is_node) {
    f->out.status = MCAPI_ERR_NODE_INITIALIZED;
    return;
  }
  mcapi_initialize(w[0], w[1], given(f, &attributes, MB_NO_ATTRIBUTES), NULL,
                   given(f, &info, MB_NO_BUFFER), &f->out.status);
  f->is_node = f->out.status == MCAPI_SUCCESS;
  memcpy(f->buffer, &info, sizeof info);
  if (f->is_node) carries(f, f->buffer, sizeof info);
}

static void forget(begun *b) {
  free(b->bytes);
  *b = (begun){0};
}

static void finalize(lvd_mcapi_far *f) {
  mcapi_finalize(&f->out.status);
  if (f->out.status != MCAPI_SUCCESS) return;
  f->is_node = false;
  for (int i = 0; i < BEGUN; i++) forget(&f->begun[i]); /* nobody writes there any more */
}

static void node_attribute(lvd_mcapi_far *f) {
  const uint32_t *w = f->in.word;
  uint32_t size = whole(w[3]);
  mcapi_node_get_attribute(w[0], w[1], w[2], given(f, f->buffer, MB_NO_BUFFER), size,
                           &f->out.status);
  if (f->out.status == MCAPI_SUCCESS) carries(f, f->buffer, size);
}

static void get_attribute(lvd_mcapi_far *f) {
  uint32_t size = whole(f->in.word[2]);
  mcapi_endpoint_get_attribute(f->in.word[0], f->in.word[1], given(f, f->buffer, MB_NO_BUFFER),
                               size, &f->out.status);
  if (f->out.status == MCAPI_SUCCESS) carries(f, f->buffer, size);
}

static void message_in(lvd_mcapi_far *f) {
  uint32_t room = whole(f->in.word[1]);
  size_t size = 0;
  mcapi_msg_recv(f->in.word[0], given(f, f->buffer, MB_NO_BUFFER), room,
                 given(f, &size, MB_NO_SIZE), &f->out.status);
  if (f->out.status != MCAPI_SUCCESS && f->out.status != MCAPI_ERR_MSG_TRUNCATED) return;
  f->out.full = (uint32_t)size;
  carries(f, f->buffer, size < room ? size : room);
}

static void packet_in(lvd_mcapi_far *f) {
  size_t size = 0;
  mcapi_pktchan_recv(f->in.word[0], given(f, &f->packet, MB_NO_BUFFER), given(f, &size, MB_NO_SIZE),
                     &f->out.status);
  if (f->out.status == MCAPI_SUCCESS)
    carries(f, f->packet, size);
  else
    f->packet = NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

static begun *begun_of(lvd_mcapi_far *f, mcapi_request_t request) {
  for (int i = 0; i < BEGUN; i++)
    if (f->begun[i].request == request) return &f->begun[i];
  return NULL;
}

/* With memory of its own for as long as the request goes on. */
static void begin(lvd_mcapi_far *f) {
  const uint32_t *w = f->in.word;
  mcapi_request_t request = 0, *r = given(f, &request, MB_NO_REQUEST);
  mcapi_status_t *s = &f->out.status;
  bool sends = f->in.what == MB_MESSAGE_OUT_BEGIN || f->in.what == MB_PACKET_OUT_BEGIN;
  bool receives = f->in.what == MB_MESSAGE_IN_BEGIN;
  size_t room = sends ? f->in.size : receives ? whole(w[1]) : 0;
  begun *b = begun_of(f, 0);
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
  void *bytes = given(f, b->bytes ? b->bytes : f->buffer, MB_NO_BUFFER);
  switch (f->in.what) {
  case MB_GET_BEGIN:
    mcapi_endpoint_get_i(w[0], w[1], w[2], given(f, &b->endpoint, MB_NO_BUFFER), r, s);
    break;
  case MB_MESSAGE_OUT_BEGIN:
    mcapi_msg_send_i(w[0], w[1], bytes, sent(f), w[2], r, s);
    break;
  case MB_MESSAGE_IN_BEGIN:
    mcapi_msg_recv_i(w[0], bytes, room, r, s);
    break;
  case MB_PACKET_OUT_BEGIN:
    mcapi_pktchan_send_i(w[0], bytes, sent(f), r, s);
    break;
  default:
    mcapi_pktchan_recv_i(w[0], given(f, &b->packet, MB_NO_BUFFER), r, s);
  }
  b->request = f->out.word[0] = request;
  if ((*s != MCAPI_SUCCESS && *s != MCAPI_PENDING) || (sends && *s == MCAPI_SUCCESS)) forget(b);
}

/* `request` is used up: what it has on this side goes with the answer. */
static void conclude(lvd_mcapi_far *f, mcapi_request_t request, size_t size) {
  f->out.word[0] = MB_OVER;
  f->out.full = (uint32_t)size;
  begun *b = request ? begun_of(f, request) : NULL;
  if (!b) return;
  bool well = f->out.status == MCAPI_SUCCESS || f->out.status == MCAPI_ERR_MSG_TRUNCATED;
  f->out.word[1] = b->endpoint;
  if (well && b->packet) {
    f->packet = b->packet;
    carries(f, b->packet, size);
  } else if (well && b->room) {
    carries(f, b->bytes, size < b->room ? size : b->room);
  }
  f->spent = b->bytes;
  b->bytes = NULL;
  forget(b);
}

/* (A wait that is cancelled is the agent's own, which ends: the request still stands in its line.) */
static bool is_over(mcapi_status_t status) {
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

static void await_request(lvd_mcapi_far *f) {
  mcapi_request_t request = f->in.word[0], *r = given(f, &request, MB_NO_REQUEST);
  size_t size = 0;
  if (f->in.what == MB_WAIT)
    f->out.value = mcapi_wait(r, &size, f->in.word[1], &f->out.status);
  else if (f->in.what == MB_TEST)
    f->out.value = mcapi_test(r, &size, &f->out.status);
  else
    mcapi_cancel(r, &f->out.status);
  if (is_over(f->out.status)) conclude(f, request, size);
}

static void await_any(lvd_mcapi_far *f) {
  mcapi_request_t request[MB_REQUESTS], *all[MB_REQUESTS];
  size_t count = f->in.size / sizeof *request, size = 0;
  if (count > f->in.word[0]) count = f->in.word[0];
  if (count > MB_REQUESTS) count = MB_REQUESTS;
  memcpy(request, f->buffer, count * sizeof *request);
  for (size_t i = 0; i < count; i++) all[i] = &request[i];
  mcapi_uint_t which = mcapi_wait_any(count, all, &size, f->in.word[1], &f->out.status);
  f->out.value = which;
  if (which < count && is_over(f->out.status)) conclude(f, request[which], size);
}

static void scalar_out(lvd_mcapi_far *f) {
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

static void scalar_in(lvd_mcapi_far *f) {
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

/* ---- all of them ---------------------------------------------------------------------------- */

static void do_call(lvd_mcapi_far *f) {
  const uint32_t *w = f->in.word;
  uint32_t *handle = given(f, &f->out.word[1], MB_NO_BUFFER);
  mcapi_request_t *request = given(f, &f->out.word[0], MB_NO_REQUEST);
  void *bytes = given(f, f->buffer, MB_NO_BUFFER);
  mcapi_status_t *s = &f->out.status;
  switch (f->in.what) {
  case MB_FINALIZE:
    finalize(f);
    break;
  case MB_DOMAIN_ID:
    f->out.value = mcapi_domain_id_get(s);
    break;
  case MB_NODE_ID:
    f->out.value = mcapi_node_id_get(s);
    break;
  case MB_NODE_ATTRIBUTE:
    node_attribute(f);
    break;
  case MB_CREATE:
    f->out.value = mcapi_endpoint_create(w[0], s);
    break;
  case MB_GET:
    f->out.value = mcapi_endpoint_get(w[0], w[1], w[2], w[3], s);
    break;
  case MB_RELEASE:
    mcapi_endpoint_release(w[0], s);
    break;
  case MB_DELETE:
    mcapi_endpoint_delete(w[0], s);
    break;
  case MB_GET_ATTRIBUTE:
    get_attribute(f);
    break;
  case MB_SET_ATTRIBUTE:
    mcapi_endpoint_set_attribute(w[0], w[1], bytes, sent(f), s);
    break;
  case MB_MESSAGE_OUT:
    mcapi_msg_send(w[0], w[1], bytes, sent(f), w[2], s);
    break;
  case MB_MESSAGE_IN:
    message_in(f);
    break;
  case MB_MESSAGES:
    f->out.value = mcapi_msg_available(w[0], s);
    break;
  case MB_PACKET_CONNECT:
    mcapi_pktchan_connect_i(w[0], w[1], request, s);
    break;
  case MB_PACKET_OPEN_IN:
    mcapi_pktchan_recv_open_i(handle, w[0], request, s);
    break;
  case MB_PACKET_OPEN_OUT:
    mcapi_pktchan_send_open_i(handle, w[0], request, s);
    break;
  case MB_PACKET_CLOSE_IN:
    mcapi_pktchan_recv_close_i(w[0], request, s);
    break;
  case MB_PACKET_CLOSE_OUT:
    mcapi_pktchan_send_close_i(w[0], request, s);
    break;
  case MB_PACKET_OUT:
    mcapi_pktchan_send(w[0], bytes, sent(f), s);
    break;
  case MB_PACKET_IN:
    packet_in(f);
    break;
  case MB_PACKETS:
    f->out.value = mcapi_pktchan_available(w[0], s);
    break;
  case MB_SCALAR_CONNECT:
    mcapi_sclchan_connect_i(w[0], w[1], request, s);
    break;
  case MB_SCALAR_OPEN_IN:
    mcapi_sclchan_recv_open_i(handle, w[0], request, s);
    break;
  case MB_SCALAR_OPEN_OUT:
    mcapi_sclchan_send_open_i(handle, w[0], request, s);
    break;
  case MB_SCALAR_CLOSE_IN:
    mcapi_sclchan_recv_close_i(w[0], request, s);
    break;
  case MB_SCALAR_CLOSE_OUT:
    mcapi_sclchan_send_close_i(w[0], request, s);
    break;
  case MB_SCALAR_OUT:
    scalar_out(f);
    break;
  case MB_SCALAR_IN:
    scalar_in(f);
    break;
  case MB_SCALARS:
    f->out.value = mcapi_sclchan_available(w[0], s);
    break;
  case MB_GET_BEGIN:
  case MB_MESSAGE_OUT_BEGIN:
  case MB_MESSAGE_IN_BEGIN:
  case MB_PACKET_OUT_BEGIN:
  case MB_PACKET_IN_BEGIN:
    begin(f);
    break;
  case MB_WAIT:
  case MB_TEST:
  case MB_CANCEL:
    await_request(f);
    break;
  case MB_WAIT_ANY:
    await_any(f);
    break;
  default:
    *s = MCAPI_ERR_GENERAL;
  }
}

/* ---- the two streams ------------------------------------------------------------------------ */

static bool take(lvd_mcapi_far *f) {
  if (lvd_stream_get(f->calls, &f->in, MB_LINE) != LVD_OK) return false;
  lvd_stream_pop(f->calls);
  if (f->in.size > MCAPI_MAX_MESSAGE_SIZE) return false;
  for (uint32_t i = 0; i < mb_lines(f->in.size); i++) {
    if (lvd_stream_get(f->calls, f->buffer + (size_t)i * MB_LINE, MB_LINE) != LVD_OK) return false;
    if (i % (MB_LINES / 4) == 0) lvd_stream_pop(f->calls);
  }
  lvd_stream_pop(f->calls);
  return true;
}

static bool answer(lvd_mcapi_far *f) {
  if (lvd_stream_put(f->answers, &f->out, MB_LINE) != LVD_OK) return false;
  const unsigned char *from = f->data;
  for (uint32_t left = f->out.size; left;) {
    uint32_t n = left < MB_LINE ? left : MB_LINE;
    void *line;
    if (lvd_stream_put_span(f->answers, 1, &line) != LVD_OK) return false;
    memcpy(line, from, n);
    lvd_put_done(&f->answers->put, 1);
    from += n;
    left -= n;
  }
  lvd_stream_flush(f->answers);
  return true;
}

static bool serve(lvd_mcapi_far *f) {
  if (!take(f)) return false;
  f->out = (mb_head){.what = f->in.what};
  f->packet = f->spent = NULL;
  if (f->in.what == MB_INITIALIZE)
    initialize(f);
  else if (f->is_node)
    do_call(f);
  else /* a fiber that is none belongs to the process's first */
    f->out.status = MCAPI_ERR_NODE_NOTINIT;
  bool more = answer(f);
  mcapi_status_t ignored;
  if (f->packet) mcapi_pktchan_release(f->packet, &ignored);
  free(f->spent);
  return more;
}

static void act(void *argument) {
  lvd_mcapi_far *f = argument;
  while (serve(f)) {
  }
  if (f->is_node) finalize(f);
  f->is_node = false;
  lvd_stream_close(f->calls);
  lvd_stream_close(f->answers);
}

/* ---- the procedure -------------------------------------------------------------------------- */

static void keep(void *argument) {
  lvd_mcapi_far *f = argument;
  bool returned = false;
  f->status = lvd_call_wait(f->call, NULL, NULL, -1, &returned);
  lvd_fiber_cancel(f->agent);
  lvd_fiber_join(f->agent, -1);
}

static lvd_status open_stream(lvd_unit *unit, const char *name, uint32_t number, lvd_stream **out) {
  char text[32];
  mb_name(text, name, number);
  const lvd_stream_options o = {
      .name = text, .elem_size = MB_LINE, .capacity = MB_LINES, .threshold = 1};
  return lvd_stream_open(unit, &o, out);
}

static void free_far(lvd_mcapi_far *f) {
  if (f->calls) lvd_stream_destroy(f->calls);
  if (f->answers) lvd_stream_destroy(f->answers);
  for (int i = 0; i < BEGUN; i++) forget(&f->begun[i]);
  free(f);
}

lvd_status lvd_mcapi_far_start(lvd_app *app, lvd_unit *unit, const char *procedure,
                               const void *argument, size_t size, lvd_mcapi_far **out) {
  static lvd_a32 agents;
  struct {
    mb_begin begin;
    unsigned char argument[LVD_MCAPI_FAR_ARGUMENT];
  } all = {0};
  size_t length = procedure ? strlen(procedure) : 0;
  if (!app || !unit || !out || !length || length >= MB_NAME || size > LVD_MCAPI_FAR_ARGUMENT ||
      (size && !argument))
    return LVD_E_ARGUMENT;
  lvd_mcapi_far *f = calloc(1, sizeof *f);
  if (!f) return LVD_E_MEMORY;
  all.begin.agent = lvd_add_relaxed_u32(&agents, 1);
  memcpy(all.begin.procedure, procedure, length);
  if (size) memcpy(all.argument, argument, size);
  lvd_status status = open_stream(unit, MB_CALLS, all.begin.agent, &f->calls);
  if (status == LVD_OK) status = open_stream(unit, MB_ANSWERS, all.begin.agent, &f->answers);
  if (status == LVD_OK)
    status = lvd_call_start(unit, MB_PROCEDURE, &all, sizeof all.begin + size, NULL, &f->call);
  if (status != LVD_OK) {
    free_far(f);
    return status;
  }
  const lvd_fiber_options acts = {.name = "mcapi agent", .stack = AGENT_STACK},
                          keeps = {.name = "mcapi keeper"};
  status = lvd_fiber_start(app, act, f, &acts, &f->agent);
  if (status == LVD_OK) status = lvd_fiber_start(app, keep, f, &keeps, &f->keeper);
  if (status != LVD_OK) {
    /* It can do nothing without an agent, so it returns. */
    lvd_call_cancel(f->call);
    if (f->agent) lvd_fiber_cancel(f->agent);
    lvd_call_wait(f->call, NULL, NULL, -1, NULL);
    if (f->agent) lvd_fiber_join(f->agent, -1);
    free_far(f);
    return status;
  }
  *out = f;
  return LVD_OK;
}

lvd_status lvd_mcapi_far_wait(lvd_mcapi_far *f, int64_t timeout_ns, bool *returned) {
  if (returned) *returned = false;
  if (!f) return LVD_E_ARGUMENT;
  lvd_status status = lvd_fiber_join(f->keeper, timeout_ns);
  if (status != LVD_OK) return status; /* stopped: the agent may still be about it */
  if (returned) *returned = true;
  status = f->status;
  free_far(f);
  return status;
}

void lvd_mcapi_far_cancel(lvd_mcapi_far *f) {
  lvd_call_cancel(f->call);
  lvd_fiber_cancel(f->agent);
}
