/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The agent of a node behind a window: a fiber that takes the node's calls from one stream, does them as its
 * own, and answers in another. What comes is checked as far as it is used. A second fiber waits for the
 * procedure's return, however that comes about, and then ends the agent's waits. */
#include "behind.h"

#include <levada/mcapi_window.h>

#include <stdlib.h>
#include <string.h>

#define AGENT_STACK (128u << 10)

struct lvd_mcapi_far {
  lvd_stream *calls, *answers;
  lvd_call *call;
  lvd_fiber *agent, *keeper;
  bool is_node;
  lvd_status status; /* what the procedure returned */
  mb_head in, out;
  const void *data; /* that go with the answer */
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

static void initialize(lvd_mcapi_far *f) {
  mcapi_info_t info = {0};
  if (f->is_node) {
    f->out.status = MCAPI_ERR_NODE_INITIALIZED;
    return;
  }
  mcapi_initialize(f->in.word[0], f->in.word[1], NULL, NULL, &info, &f->out.status);
  f->is_node = f->out.status == MCAPI_SUCCESS;
  memcpy(f->buffer, &info, sizeof info);
  if (f->is_node) carries(f, f->buffer, sizeof info);
}

static void finalize(lvd_mcapi_far *f) {
  mcapi_finalize(&f->out.status);
  if (f->out.status == MCAPI_SUCCESS) f->is_node = false;
}

static void get_attribute(lvd_mcapi_far *f) {
  uint32_t size = whole(f->in.word[2]);
  mcapi_endpoint_get_attribute(f->in.word[0], f->in.word[1], f->buffer, size, &f->out.status);
  if (f->out.status == MCAPI_SUCCESS) carries(f, f->buffer, size);
}

static void message_in(lvd_mcapi_far *f) {
  uint32_t room = whole(f->in.word[1]);
  size_t size = 0;
  mcapi_msg_recv(f->in.word[0], f->buffer, room, &size, &f->out.status);
  if (f->out.status != MCAPI_SUCCESS && f->out.status != MCAPI_ERR_MSG_TRUNCATED) return;
  f->out.full = (uint32_t)size;
  carries(f, f->buffer, size < room ? size : room);
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

static void await_request(lvd_mcapi_far *f, bool waits) {
  mcapi_request_t request = f->in.word[0];
  size_t size = 0;
  f->out.value = waits ? mcapi_wait(&request, &size, f->in.word[1], &f->out.status)
                       : mcapi_test(&request, &size, &f->out.status);
  f->out.full = (uint32_t)size;
}

/* All but packets that are received, which lie where they lie until they have been sent on. */
static void do_call(lvd_mcapi_far *f) {
  const uint32_t *w = f->in.word;
  uint32_t *handle = &f->out.word[1];
  mcapi_request_t *request = &f->out.word[0];
  mcapi_status_t *s = &f->out.status;
  switch (f->in.what) {
  case MB_FINALIZE:
    finalize(f);
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
    mcapi_endpoint_set_attribute(w[0], w[1], f->buffer, f->in.size, s);
    break;
  case MB_MESSAGE_OUT:
    mcapi_msg_send(w[0], w[1], f->buffer, f->in.size, w[2], s);
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
    mcapi_pktchan_send(w[0], f->buffer, f->in.size, s);
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
  case MB_WAIT:
    await_request(f, true);
    break;
  case MB_TEST:
    await_request(f, false);
    break;
  case MB_CANCEL:
    *request = w[0];
    mcapi_cancel(request, s);
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
  void *packet = NULL;
  if (f->in.what == MB_INITIALIZE) {
    initialize(f);
  } else if (!f->is_node) { /* a fiber that is none belongs to the process's first */
    f->out.status = MCAPI_ERR_NODE_NOTINIT;
  } else if (f->in.what == MB_PACKET_IN) {
    size_t size = 0;
    mcapi_pktchan_recv(f->in.word[0], &packet, &size, &f->out.status);
    if (f->out.status != MCAPI_SUCCESS)
      packet = NULL;
    else
      carries(f, packet, size);
  } else {
    do_call(f);
  }
  bool more = answer(f);
  mcapi_status_t ignored;
  if (packet) mcapi_pktchan_release(packet, &ignored);
  return more;
}

static void act(void *argument) {
  lvd_mcapi_far *f = argument;
  mcapi_status_t ignored;
  while (serve(f)) {
  }
  if (f->is_node) mcapi_finalize(&ignored);
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
