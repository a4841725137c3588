/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI behind a window: each of the standard's calls goes to the task's agent at the host, and the task
 * waits for the answer, as others go on. What a packet receives lies in a buffer here. */
#include "../mcapi/behind.h"

#include <string.h>

#include "far.h"

enum { PACKETS = 16 };

/* A task that does a call of the host's; its place may be another's afterwards, however it ended. */
typedef struct owner {
  const far_task *task; /* null: nobody */
  uint32_t number;
} owner;

static struct node {
  owner owner;
  lvd_stream *calls, *answers;
  bool broken; /* an answer was not waited for: what comes is not that of the next call */
} nodes[LVD_FAR_TASKS];

static struct {
  owner owner;
  LVD_ALIGNED(16) unsigned char bytes[MCAPI_MAX_PACKET_SIZE];
} packets[PACKETS];

static owner self(void) { return (owner){lvd_far_self, lvd_far_self->record.number}; }

static bool is_mine(const owner *o) {
  return o->task == lvd_far_self && o->number == lvd_far_self->record.number;
}

static bool is_free(const owner *o) {
  return !o->task || !o->task->used || o->number != o->task->record.number;
}

/* ---- a call to the agent -------------------------------------------------------------------- */

static struct node *node_of(bool (*is)(const owner *o)) {
  for (int i = 0; i < LVD_FAR_TASKS; i++)
    if (is(&nodes[i].owner)) return &nodes[i];
  return NULL;
}

static bool send(struct node *n, const mb_head *call, const void *data) {
  if (lvd_stream_put(n->calls, call, MB_LINE) != LVD_OK) return false;
  const unsigned char *from = data;
  for (uint32_t left = call->size; left;) {
    uint32_t some = left < MB_LINE ? left : MB_LINE;
    void *line;
    if (lvd_stream_put_span(n->calls, 1, &line) != LVD_OK) return false;
    memcpy(line, from, some);
    lvd_put_done(&n->calls->put, 1);
    from += some;
    left -= some;
  }
  lvd_stream_flush(n->calls);
  return true;
}

static bool receive(struct node *n, mb_head *answer, void *data, size_t room) {
  if (lvd_stream_get(n->answers, answer, MB_LINE) != LVD_OK || answer->size > room) return false;
  unsigned char *to = data;
  for (uint32_t left = answer->size, i = 1; left; i++) {
    uint32_t some = left < MB_LINE ? left : MB_LINE;
    const void *line;
    if (lvd_stream_get_span(n->answers, 1, &line) != LVD_OK) return false;
    memcpy(to, line, some);
    lvd_get_done(&n->answers->get, 1);
    to += some;
    left -= some;
    if (i % (MB_LINES / 4) == 0) lvd_stream_pop(n->answers);
  }
  lvd_stream_pop(n->answers);
  return true;
}

/* The head becomes the answer's. */
static mcapi_status_t ask(mb_head *head, const void *out, void *in, size_t room) {
  struct node *n = node_of(is_mine);
  if (!n) {
    *head = (mb_head){0};
    return MCAPI_ERR_NODE_NOTINIT;
  }
  n->broken = n->broken || !send(n, head, out) || !receive(n, head, in, room);
  if (n->broken) {
    *head = (mb_head){0};
    return MCAPI_ERR_GENERAL;
  }
  return head->status;
}

static void say(mcapi_status_t *to, mcapi_status_t status) {
  if (to) *to = status;
}

#define ASK(name, of, ...) mb_head name = {.what = of, .word = {__VA_ARGS__}}

static uint64_t ask_value(mb_head *head, mcapi_status_t *status) {
  say(status, ask(head, NULL, NULL, 0));
  return head->value;
}

/* ---- the procedure -------------------------------------------------------------------------- */

static lvd_status open_stream(const char *name, uint32_t agent, lvd_stream **out) {
  char text[32];
  mb_name(text, name, agent);
  const lvd_stream_options o = {
      .name = text, .elem_size = MB_LINE, .capacity = MB_LINES, .threshold = 1};
  return lvd_stream_open(lvd_unit_parent(), &o, out);
}

static lvd_status levada_mcapi_node(lvd_frame *f) {
  mb_begin begin;
  if (f->argument_size < sizeof begin) return LVD_E_ARGUMENT;
  memcpy(&begin, f->argument, sizeof begin);
  begin.procedure[MB_NAME - 1] = 0;
  lvd_procedure *procedure = lvd_procedure_find(begin.procedure);
  if (!procedure) return LVD_E_UNKNOWN;
  struct node *n = node_of(is_free); /* there are as many as tasks */
  n->owner = self();
  n->broken = false;
  lvd_status status = open_stream(MB_CALLS, begin.agent, &n->calls);
  if (status == LVD_OK) status = open_stream(MB_ANSWERS, begin.agent, &n->answers);
  if (status == LVD_OK) {
    f->argument = (const unsigned char *)f->argument + sizeof begin;
    f->argument_size -= sizeof begin;
    status = procedure(f);
  }
  return status; /* the streams end with the task, and what it held is free */
}
LVD_PROCEDURE(levada_mcapi_node)

/* ---- nodes and endpoints -------------------------------------------------------------------- */

void mcapi_initialize(mcapi_domain_t domain, mcapi_node_t node, const mcapi_node_attributes_t *a,
                      const mcapi_param_t *p, mcapi_info_t *info, mcapi_status_t *status) {
  (void)a, (void)p;
  ASK(h, MB_INITIALIZE, domain, node);
  mcapi_info_t said;
  mcapi_status_t s = info ? ask(&h, NULL, &said, sizeof said) : MCAPI_ERR_PARAMETER;
  if (s == MCAPI_SUCCESS) *info = said;
  say(status, s);
}

void mcapi_finalize(mcapi_status_t *status) {
  ASK(h, MB_FINALIZE, 0);
  ask_value(&h, status);
}

mcapi_endpoint_t mcapi_endpoint_create(mcapi_port_t port, mcapi_status_t *status) {
  ASK(h, MB_CREATE, port);
  return (mcapi_endpoint_t)ask_value(&h, status);
}

mcapi_endpoint_t mcapi_endpoint_get(mcapi_domain_t domain, mcapi_node_t node, mcapi_port_t port,
                                    mcapi_timeout_t timeout, mcapi_status_t *status) {
  ASK(h, MB_GET, domain, node, port, timeout);
  return (mcapi_endpoint_t)ask_value(&h, status);
}

void mcapi_endpoint_release(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  ASK(h, MB_RELEASE, endpoint);
  ask_value(&h, status);
}

void mcapi_endpoint_delete(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  ASK(h, MB_DELETE, endpoint);
  ask_value(&h, status);
}

void mcapi_endpoint_get_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t number, void *attribute,
                                  size_t size, mcapi_status_t *status) {
  if (!attribute || size > MCAPI_MAX_MESSAGE_SIZE) {
    say(status, attribute ? MCAPI_ERR_ATTR_SIZE : MCAPI_ERR_PARAMETER);
    return;
  }
  ASK(h, MB_GET_ATTRIBUTE, endpoint, number, (uint32_t)size);
  say(status, ask(&h, NULL, attribute, size));
}

void mcapi_endpoint_set_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t number,
                                  const void *attribute, size_t size, mcapi_status_t *status) {
  if (!attribute || size > MCAPI_MAX_MESSAGE_SIZE) {
    say(status, attribute ? MCAPI_ERR_ATTR_SIZE : MCAPI_ERR_PARAMETER);
    return;
  }
  ASK(h, MB_SET_ATTRIBUTE, endpoint, number);
  h.size = (uint32_t)size;
  say(status, ask(&h, attribute, NULL, 0));
}

/* ---- messages ------------------------------------------------------------------------------- */

void mcapi_msg_send(mcapi_endpoint_t from, mcapi_endpoint_t to, const void *buffer, size_t size,
                    mcapi_priority_t priority, mcapi_status_t *status) {
  ASK(h, MB_MESSAGE_OUT, from, to, priority);
  h.size = (uint32_t)size;
  say(status, size > MCAPI_MAX_MESSAGE_SIZE ? MCAPI_ERR_MSG_SIZE
              : !buffer && size             ? MCAPI_ERR_PARAMETER
                                            : ask(&h, buffer, NULL, 0));
}

void mcapi_msg_recv(mcapi_endpoint_t endpoint, void *buffer, size_t room, size_t *size,
                    mcapi_status_t *status) {
  uint32_t most = room < MCAPI_MAX_MESSAGE_SIZE ? (uint32_t)room : MCAPI_MAX_MESSAGE_SIZE;
  ASK(h, MB_MESSAGE_IN, endpoint, most);
  mcapi_status_t s = MCAPI_ERR_PARAMETER;
  if (size && (buffer || !room)) {
    s = ask(&h, NULL, buffer, most);
    if (s == MCAPI_SUCCESS || s == MCAPI_ERR_MSG_TRUNCATED) *size = h.full;
  }
  say(status, s);
}

mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  ASK(h, MB_MESSAGES, endpoint);
  return (mcapi_uint_t)ask_value(&h, status);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void ask_request(mb_head *h, uint32_t *handle, mcapi_request_t *request,
                        mcapi_status_t *status) {
  mcapi_status_t s = request ? ask(h, NULL, NULL, 0) : MCAPI_ERR_PARAMETER;
  if (s == MCAPI_SUCCESS || s == MCAPI_PENDING) {
    *request = h->word[0];
    if (handle) *handle = h->word[1];
  }
  say(status, s);
}

static mcapi_boolean_t await(mb_head *h, const mcapi_request_t *request, size_t *size,
                             mcapi_status_t *status) {
  if (!request) {
    say(status, MCAPI_ERR_PARAMETER);
    return MCAPI_FALSE;
  }
  h->word[0] = *request;
  mcapi_status_t s = ask(h, NULL, NULL, 0);
  if (size && h->value) *size = h->full;
  say(status, s);
  return h->value ? MCAPI_TRUE : MCAPI_FALSE;
}

mcapi_boolean_t mcapi_test(const mcapi_request_t *request, size_t *size, mcapi_status_t *status) {
  ASK(h, MB_TEST, 0);
  return await(&h, request, size, status);
}

mcapi_boolean_t mcapi_wait(const mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
                           mcapi_status_t *status) {
  ASK(h, MB_WAIT, 0, timeout);
  return await(&h, request, size, status);
}

void mcapi_cancel(const mcapi_request_t *request, mcapi_status_t *status) {
  ASK(h, MB_CANCEL, 0);
  await(&h, request, NULL, status);
}

/* ---- channels ------------------------------------------------------------------------------- */

#define CONNECT(name, what)                                                                        \
  void name(mcapi_endpoint_t from, mcapi_endpoint_t to, mcapi_request_t *request,                  \
            mcapi_status_t *status) {                                                              \
    ASK(h, what, from, to);                                                                        \
    ask_request(&h, NULL, request, status);                                                        \
  }
#define OPEN(name, what)                                                                           \
  void name(uint32_t *handle, mcapi_endpoint_t endpoint, mcapi_request_t *request,                 \
            mcapi_status_t *status) {                                                              \
    ASK(h, what, endpoint);                                                                        \
    if (handle)                                                                                    \
      ask_request(&h, handle, request, status);                                                    \
    else                                                                                           \
      say(status, MCAPI_ERR_PARAMETER);                                                            \
  }
#define CLOSE(name, what)                                                                          \
  void name(uint32_t handle, mcapi_request_t *request, mcapi_status_t *status) {                   \
    ASK(h, what, handle);                                                                          \
    ask_request(&h, NULL, request, status);                                                        \
  }
#define AVAILABLE(name, what)                                                                      \
  mcapi_uint_t name(uint32_t handle, mcapi_status_t *status) {                                     \
    ASK(h, what, handle);                                                                          \
    return (mcapi_uint_t)ask_value(&h, status);                                                    \
  }

CONNECT(mcapi_pktchan_connect_i, MB_PACKET_CONNECT)
OPEN(mcapi_pktchan_recv_open_i, MB_PACKET_OPEN_IN)
OPEN(mcapi_pktchan_send_open_i, MB_PACKET_OPEN_OUT)
CLOSE(mcapi_pktchan_recv_close_i, MB_PACKET_CLOSE_IN)
CLOSE(mcapi_pktchan_send_close_i, MB_PACKET_CLOSE_OUT)
AVAILABLE(mcapi_pktchan_available, MB_PACKETS)
CONNECT(mcapi_sclchan_connect_i, MB_SCALAR_CONNECT)
OPEN(mcapi_sclchan_recv_open_i, MB_SCALAR_OPEN_IN)
OPEN(mcapi_sclchan_send_open_i, MB_SCALAR_OPEN_OUT)
CLOSE(mcapi_sclchan_recv_close_i, MB_SCALAR_CLOSE_IN)
CLOSE(mcapi_sclchan_send_close_i, MB_SCALAR_CLOSE_OUT)
AVAILABLE(mcapi_sclchan_available, MB_SCALARS)

/* ---- packets -------------------------------------------------------------------------------- */

void mcapi_pktchan_send(mcapi_pktchan_send_hndl_t handle, const void *buffer, size_t size,
                        mcapi_status_t *status) {
  ASK(h, MB_PACKET_OUT, handle);
  h.size = (uint32_t)size;
  say(status, size > MCAPI_MAX_PACKET_SIZE ? MCAPI_ERR_PKT_SIZE
              : !buffer && size            ? MCAPI_ERR_PARAMETER
                                           : ask(&h, buffer, NULL, 0));
}

static int packet_at(bool (*is)(const owner *o), const void *at) {
  for (int i = 0; i < PACKETS; i++)
    if (is(&packets[i].owner) && (!at || packets[i].bytes == at)) return i;
  return PACKETS;
}

void mcapi_pktchan_recv(mcapi_pktchan_recv_hndl_t handle, void **buffer, size_t *size,
                        mcapi_status_t *status) {
  ASK(h, MB_PACKET_IN, handle);
  int i = packet_at(is_free, NULL);
  if (!buffer || !size || i == PACKETS) {
    say(status, buffer && size ? MCAPI_ERR_MEM_LIMIT : MCAPI_ERR_PARAMETER);
    return;
  }
  packets[i].owner = self(); /* before others go on */
  mcapi_status_t s = ask(&h, NULL, packets[i].bytes, MCAPI_MAX_PACKET_SIZE);
  if (s == MCAPI_SUCCESS) {
    *buffer = packets[i].bytes;
    *size = h.size;
  } else {
    packets[i].owner.task = NULL;
  }
  say(status, s);
}

mcapi_boolean_t mcapi_pktchan_release_test(const void *buffer, mcapi_status_t *status) {
  bool held = buffer && packet_at(is_mine, buffer) < PACKETS;
  say(status, held ? MCAPI_SUCCESS : MCAPI_ERR_BUF_INVALID);
  return held ? MCAPI_TRUE : MCAPI_FALSE;
}

void mcapi_pktchan_release(const void *buffer, mcapi_status_t *status) {
  int i = buffer ? packet_at(is_mine, buffer) : PACKETS;
  if (i < PACKETS) packets[i].owner.task = NULL;
  say(status, i < PACKETS ? MCAPI_SUCCESS : MCAPI_ERR_BUF_INVALID);
}

/* ---- scalars -------------------------------------------------------------------------------- */

#define SCALAR(bits)                                                                               \
  void mcapi_sclchan_send_uint##bits(mcapi_sclchan_send_hndl_t handle, mcapi_uint##bits##_t value, \
                                     mcapi_status_t *status) {                                     \
    ASK(h, MB_SCALAR_OUT, handle, bits / 8);                                                       \
    h.value = value;                                                                               \
    ask_value(&h, status);                                                                         \
  }                                                                                                \
  mcapi_uint##bits##_t mcapi_sclchan_recv_uint##bits(mcapi_sclchan_recv_hndl_t handle,             \
                                                     mcapi_status_t *status) {                     \
    ASK(h, MB_SCALAR_IN, handle, bits / 8);                                                        \
    return (mcapi_uint##bits##_t)ask_value(&h, status);                                            \
  }

SCALAR(8)
SCALAR(16)
SCALAR(32)
SCALAR(64)
