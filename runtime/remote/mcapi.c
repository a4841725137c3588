/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI behind a window: each call is sent to the task's agent at the host, and the task waits for
 * the reply while other tasks run. A received packet is stored in a buffer here. */
#include "../mcapi/remote_node/remote_node.h"

#include <string.h>

#include "remote.h"

enum { PACKETS = 16, PENDING = 64 /* requests that store a result when they complete */ };

/* A task that executes a call of the host. The task object may be reused after that call has ended
 * in any way. */
typedef struct owner {
  const remote_task *task; /* null: none */
  uint32_t number;
} owner;

static struct node {
  owner owner;
  lvd_stream *calls, *replies;
  bool broken; /* a reply was not read: the next one belongs to an earlier call */
  bool is_node;
} nodes[LVD_REMOTE_TASKS];

static struct {
  owner owner;
  LVD_ALIGNED(16) unsigned char bytes[MCAPI_MAX_PACKET_SIZE];
} packets[PACKETS];

/* Where the result of a request is stored. */
typedef struct pending {
  owner owner;
  mcapi_request_t request;
  void *to; /* `room` bytes */
  uint32_t room;
  mcapi_endpoint_t *endpoint;
  void **packet; /* `to` is a packet buffer; its address is stored here */
} pending;

static pending pendings[PENDING];

static owner current_owner(void) {
  return (owner){lvd_remote_self, lvd_remote_self->record.number};
}

static bool is_mine(const owner *o) {
  return o->task == lvd_remote_self && o->number == lvd_remote_self->record.number;
}

static bool is_free(const owner *o) {
  return !o->task || !o->task->used || o->number != o->task->record.number;
}

/* ---- a call to the agent --------------------------------------------------------------------- */

static struct node *node_of(bool (*is)(const owner *o)) {
  for (int i = 0; i < LVD_REMOTE_TASKS; i++)
    if (is(&nodes[i].owner)) return &nodes[i];
  return NULL;
}

static bool is_node(void) {
  const struct node *n = node_of(is_mine);
  return n && n->is_node;
}

static bool send(struct node *n, const rn_head *call, const void *data) {
  if (lvd_stream_put(n->calls, call, RN_LINE_BYTES) != LVD_OK) return false;
  const unsigned char *from = data;
  for (uint32_t left = call->size; left;) {
    uint32_t some = left < RN_LINE_BYTES ? left : RN_LINE_BYTES;
    void *line;
    if (lvd_stream_put_span(n->calls, 1, &line) != LVD_OK) return false;
    memcpy(line, from, some);
    lvd_put_done(&n->calls->producer, 1);
    from += some;
    left -= some;
  }
  lvd_stream_flush(n->calls);
  return true;
}

/* Where the data of a reply are stored, which depends on its header. */
typedef struct place {
  void *at;
  size_t room;
} place;
typedef place finder(const rn_head *reply, void *of);

static bool receive(struct node *n, rn_head *reply, finder *find, void *of) {
  if (lvd_stream_get(n->replies, reply, RN_LINE_BYTES) != LVD_OK) return false;
  place to = find(reply, of);
  if (reply->size > to.room) return false;
  unsigned char *at = to.at;
  for (uint32_t left = reply->size, i = 1; left; i++) {
    uint32_t some = left < RN_LINE_BYTES ? left : RN_LINE_BYTES;
    const void *line;
    if (lvd_stream_get_span(n->replies, 1, &line) != LVD_OK) return false;
    memcpy(at, line, some);
    lvd_get_done(&n->replies->consumer, 1);
    at += some;
    left -= some;
    if (i % (RN_STREAM_LINES / 4) == 0) lvd_stream_pop(n->replies);
  }
  lvd_stream_pop(n->replies);
  return true;
}

/* Sends a call and receives the reply into *head. */
static mcapi_status_t call_agent_into(rn_head *head, const void *out, finder *find, void *of) {
  struct node *n = node_of(is_mine);
  if (!n) {
    *head = (rn_head){0};
    return MCAPI_ERR_NODE_NOTINIT;
  }
  n->broken = n->broken || !send(n, head, out) || !receive(n, head, find, of);
  if (n->broken) {
    *head = (rn_head){0};
    return MCAPI_ERR_GENERAL;
  }
  return head->status;
}

static place fixed_place(const rn_head *reply, void *of) {
  (void)reply;
  return *(place *)of;
}

static mcapi_status_t call_agent(rn_head *head, const void *out, void *in, size_t room) {
  place to = {in, in ? room : 0};
  return call_agent_into(head, out, fixed_place, &to);
}

static void set_status(mcapi_status_t *to, mcapi_status_t status) {
  if (to) *to = status;
}

#define CALL(name, of, ...) rn_head name = {.what = of, .word = {__VA_ARGS__}}

static uint32_t absent(const void *pointer, uint32_t which) { return pointer ? 0 : which; }

static uint32_t least(size_t size, uint32_t most) { return size < most ? (uint32_t)size : most; }

static uint64_t call_agent_value(rn_head *head, mcapi_status_t *status) {
  set_status(status, call_agent(head, NULL, NULL, 0));
  return head->value;
}

/* Data that are too long, or null, are not sent: the agent reports the error. */
static void attach_data(rn_head *head, const void *data, size_t size, uint32_t most) {
  head->full = least(size, UINT32_MAX);
  head->size = data && size <= most ? head->full : 0;
  head->absent |= absent(data, RN_NO_BUFFER);
}

/* ---- the procedure --------------------------------------------------------------------------- */

static lvd_status open_stream(const char *name, uint32_t agent, lvd_stream **out) {
  char text[32];
  rn_name(text, name, agent);
  const lvd_stream_options o = {
      .name = text, .elem_size = RN_LINE_BYTES, .capacity = RN_STREAM_LINES, .threshold = 1};
  return lvd_stream_open(lvd_unit_parent(), &o, out);
}

static lvd_status levada_mcapi_node(lvd_call_frame *f) {
  rn_begin begin;
  if (f->argument_size < sizeof begin) return LVD_E_ARGUMENT;
  memcpy(&begin, f->argument, sizeof begin);
  begin.procedure[RN_NAME_BYTES - 1] = 0;
  lvd_procedure *procedure = lvd_procedure_find(begin.procedure);
  if (!procedure) return LVD_E_NOT_FOUND;
  struct node *n = node_of(is_free); /* there are as many as tasks */
  n->owner = current_owner();
  n->broken = n->is_node = false;
  lvd_status status = open_stream(RN_CALLS_NAME, begin.agent, &n->calls);
  if (status == LVD_OK) status = open_stream(RN_REPLIES_NAME, begin.agent, &n->replies);
  if (status == LVD_OK) {
    f->argument = (const unsigned char *)f->argument + sizeof begin;
    f->argument_size -= sizeof begin;
    status = procedure(f);
  }
  return status; /* the streams are closed with the task, and what it held becomes free */
}
LVD_PROCEDURE(levada_mcapi_node)

/* ---- packets that are held ------------------------------------------------------------------- */

static int packet_of(const void *bytes) {
  for (int i = 0; i < PACKETS; i++)
    if (is_mine(&packets[i].owner) && packets[i].bytes == bytes) return i;
  return PACKETS;
}

static void free_packet(const void *bytes) {
  int i = bytes ? packet_of(bytes) : PACKETS;
  if (i < PACKETS) packets[i].owner.task = NULL;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* `handle`: receives the handle of an end that is opened; or null. */
static mcapi_status_t begin(rn_head *h, const void *data, uint32_t *handle,
                            mcapi_request_t *request) {
  h->absent |= absent(request, RN_NO_REQUEST);
  mcapi_status_t s = call_agent(h, data, NULL, 0);
  if (s != MCAPI_SUCCESS && s != MCAPI_PENDING) return s;
  *request = h->word[0];
  if (handle) *handle = h->word[1];
  return s;
}

/* Starts a request that stores a result when it completes. */
static mcapi_status_t begin_pending(rn_head *h, pending what, mcapi_request_t *request) {
  pending *p = NULL;
  for (int i = 0; i < PENDING && !p; i++)
    if (is_free(&pendings[i].owner)) p = &pendings[i];
  if (!p && is_node()) return MCAPI_ERR_REQUEST_LIMIT;
  mcapi_status_t s = begin(h, NULL, NULL, request);
  if (p && (s == MCAPI_SUCCESS || s == MCAPI_PENDING)) {
    *p = what;
    p->owner = current_owner();
    p->request = *request;
  }
  return s;
}

/* The requests of a wait, test or cancel, and which of them has completed. */
typedef struct awaited {
  const mcapi_request_t *request;
  size_t count;
  pending *done;
} awaited;

static place place_of_completed(const rn_head *reply, void *of) {
  awaited *a = of;
  uint64_t which = a->count > 1 ? reply->value : 0;
  a->done = NULL;
  for (int i = 0; i < PENDING && which < a->count && reply->word[0] == RN_REQUEST_CONSUMED; i++)
    if (is_mine(&pendings[i].owner) && pendings[i].request == a->request[which])
      a->done = &pendings[i];
  return a->done ? (place){a->done->to, a->done->room} : (place){NULL, 0};
}

static mcapi_status_t finish(rn_head *h, const void *out, awaited *a, size_t *size) {
  mcapi_status_t s = call_agent_into(h, out, place_of_completed, a);
  bool well = s == MCAPI_SUCCESS && h->what != RN_CANCEL;
  if (size && h->word[0] == RN_REQUEST_CONSUMED) *size = h->full;
  pending *p = a->done;
  if (!p) return s;
  if (well && p->endpoint) *p->endpoint = h->word[1];
  if (well && p->packet) *p->packet = p->to;
  if (!well && p->packet) free_packet(p->to);
  p->owner.task = NULL;
  return s;
}

static mcapi_boolean_t finish_one(rn_head *h, const mcapi_request_t *request, size_t *size,
                                  mcapi_status_t *status) {
  awaited a = {request, request != NULL, NULL};
  h->word[0] = request ? *request : 0;
  h->absent = absent(request, RN_NO_REQUEST);
  set_status(status, finish(h, NULL, &a, size));
  return h->value ? MCAPI_TRUE : MCAPI_FALSE;
}

mcapi_boolean_t mcapi_test(const mcapi_request_t *request, size_t *size, mcapi_status_t *status) {
  CALL(h, RN_TEST, 0);
  return finish_one(&h, request, size, status);
}

mcapi_boolean_t mcapi_wait(const mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
                           mcapi_status_t *status) {
  CALL(h, RN_WAIT, 0, timeout);
  return finish_one(&h, request, size, status);
}

void mcapi_cancel(const mcapi_request_t *request, mcapi_status_t *status) {
  CALL(h, RN_CANCEL, 0);
  finish_one(&h, request, NULL, status);
}

mcapi_uint_t mcapi_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
                            mcapi_timeout_t timeout, mcapi_status_t *status) {
  mcapi_request_t all[RN_WAIT_ANY_REQUESTS];
  awaited a = {all, requests && number <= RN_WAIT_ANY_REQUESTS ? number : 0, NULL};
  for (size_t i = 0; i < a.count; i++) all[i] = requests[i] ? *requests[i] : 0;
  CALL(h, RN_WAIT_ANY, (uint32_t)a.count, timeout);
  h.size = (uint32_t)(a.count * sizeof *all);
  set_status(status, finish(&h, all, &a, size));
  return h.word[0] == RN_REQUEST_CONSUMED ? (mcapi_uint_t)h.value : MCAPI_RETURN_VALUE_INVALID;
}

/* ---- nodes and endpoints --------------------------------------------------------------------- */

void mcapi_initialize(mcapi_domain_t domain, mcapi_node_t node, const mcapi_node_attributes_t *a,
                      const mcapi_param_t *p, mcapi_info_t *info, mcapi_status_t *status) {
  (void)p;
  CALL(h, RN_INITIALIZE, domain, node, a ? a->type : 0, a ? a->transport : 0, a ? a->group : 0);
  h.absent = absent(a, RN_NO_ATTRIBUTES) | absent(info, RN_NO_BUFFER);
  mcapi_status_t s = call_agent(&h, NULL, info, sizeof *info);
  struct node *n = node_of(is_mine);
  if (n && s == MCAPI_SUCCESS) n->is_node = true;
  set_status(status, s);
}

void mcapi_finalize(mcapi_status_t *status) {
  CALL(h, RN_FINALIZE, 0);
  mcapi_status_t s = call_agent(&h, NULL, NULL, 0);
  set_status(status, s);
  if (s != MCAPI_SUCCESS) return;
  node_of(is_mine)->is_node = false;
  for (int i = 0; i < PACKETS; i++)
    if (is_mine(&packets[i].owner)) packets[i].owner.task = NULL;
  for (int i = 0; i < PENDING; i++)
    if (is_mine(&pendings[i].owner)) pendings[i].owner.task = NULL;
}

mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *status) {
  CALL(h, RN_DOMAIN_ID, 0);
  mcapi_status_t s = call_agent(&h, NULL, NULL, 0);
  set_status(status, s);
  return s == MCAPI_SUCCESS ? (mcapi_domain_t)h.value : MCAPI_DOMAIN_INVALID;
}

mcapi_node_t mcapi_node_id_get(mcapi_status_t *status) {
  CALL(h, RN_NODE_ID, 0);
  mcapi_status_t s = call_agent(&h, NULL, NULL, 0);
  set_status(status, s);
  return s == MCAPI_SUCCESS ? (mcapi_node_t)h.value : MCAPI_NODE_INVALID;
}

void mcapi_node_get_attribute(mcapi_domain_t domain, mcapi_node_t node, mcapi_uint_t number,
                              void *attribute, size_t size, mcapi_status_t *status) {
  uint32_t most = least(size, MCAPI_MAX_MESSAGE_SIZE);
  CALL(h, RN_NODE_ATTRIBUTE, domain, node, number, most);
  h.absent = absent(attribute, RN_NO_BUFFER);
  set_status(status, call_agent(&h, NULL, attribute, most));
}

mcapi_endpoint_t mcapi_endpoint_create(mcapi_port_t port, mcapi_status_t *status) {
  CALL(h, RN_CREATE, port);
  return (mcapi_endpoint_t)call_agent_value(&h, status);
}

mcapi_endpoint_t mcapi_endpoint_get(mcapi_domain_t domain, mcapi_node_t node, mcapi_port_t port,
                                    mcapi_timeout_t timeout, mcapi_status_t *status) {
  CALL(h, RN_GET, domain, node, port, timeout);
  return (mcapi_endpoint_t)call_agent_value(&h, status);
}

void mcapi_endpoint_get_i(mcapi_domain_t domain, mcapi_node_t node, mcapi_port_t port,
                          mcapi_endpoint_t *endpoint, mcapi_request_t *request,
                          mcapi_status_t *status) {
  CALL(h, RN_GET_BEGIN, domain, node, port);
  h.absent = absent(endpoint, RN_NO_BUFFER);
  set_status(status, begin_pending(&h, (pending){.endpoint = endpoint}, request));
}

void mcapi_endpoint_release(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  CALL(h, RN_RELEASE, endpoint);
  call_agent_value(&h, status);
}

void mcapi_endpoint_delete(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  CALL(h, RN_DELETE, endpoint);
  call_agent_value(&h, status);
}

void mcapi_endpoint_get_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t number, void *attribute,
                                  size_t size, mcapi_status_t *status) {
  uint32_t most = least(size, MCAPI_MAX_MESSAGE_SIZE);
  CALL(h, RN_GET_ATTRIBUTE, endpoint, number, most);
  h.absent = absent(attribute, RN_NO_BUFFER);
  set_status(status, call_agent(&h, NULL, attribute, most));
}

void mcapi_endpoint_set_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t number,
                                  const void *attribute, size_t size, mcapi_status_t *status) {
  CALL(h, RN_SET_ATTRIBUTE, endpoint, number);
  attach_data(&h, attribute, size, MCAPI_MAX_MESSAGE_SIZE);
  set_status(status, call_agent(&h, attribute, NULL, 0));
}

/* ---- messages -------------------------------------------------------------------------------- */

void mcapi_msg_send(mcapi_endpoint_t from, mcapi_endpoint_t to, const void *buffer, size_t size,
                    mcapi_priority_t priority, mcapi_status_t *status) {
  CALL(h, RN_MESSAGE_SEND, from, to, priority);
  attach_data(&h, buffer, size, MCAPI_MAX_MESSAGE_SIZE);
  set_status(status, call_agent(&h, buffer, NULL, 0));
}

void mcapi_msg_send_i(mcapi_endpoint_t from, mcapi_endpoint_t to, const void *buffer, size_t size,
                      mcapi_priority_t priority, mcapi_request_t *request, mcapi_status_t *status) {
  CALL(h, RN_MESSAGE_SEND_BEGIN, from, to, priority);
  attach_data(&h, buffer, size, MCAPI_MAX_MESSAGE_SIZE);
  set_status(status, begin(&h, buffer, NULL, request));
}

void mcapi_msg_recv(mcapi_endpoint_t endpoint, void *buffer, size_t room, size_t *size,
                    mcapi_status_t *status) {
  uint32_t most = least(room, MCAPI_MAX_MESSAGE_SIZE);
  CALL(h, RN_MESSAGE_RECEIVE, endpoint, most);
  h.absent = absent(buffer, RN_NO_BUFFER) | absent(size, RN_NO_SIZE);
  mcapi_status_t s = call_agent(&h, NULL, buffer, most);
  if (s == MCAPI_SUCCESS || s == MCAPI_ERR_MSG_TRUNCATED) *size = h.full;
  set_status(status, s);
}

void mcapi_msg_recv_i(mcapi_endpoint_t endpoint, void *buffer, size_t room,
                      mcapi_request_t *request, mcapi_status_t *status) {
  uint32_t most = least(room, MCAPI_MAX_MESSAGE_SIZE);
  CALL(h, RN_MESSAGE_RECEIVE_BEGIN, endpoint, most);
  h.absent = absent(buffer, RN_NO_BUFFER);
  set_status(status, begin_pending(&h, (pending){.to = buffer, .room = most}, request));
}

mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  CALL(h, RN_MESSAGES_AVAILABLE, endpoint);
  return (mcapi_uint_t)call_agent_value(&h, status);
}

/* ---- channels -------------------------------------------------------------------------------- */

#define CONNECT(name, what)                                                                        \
  void name(mcapi_endpoint_t from, mcapi_endpoint_t to, mcapi_request_t *request,                  \
            mcapi_status_t *status) {                                                              \
    CALL(h, what, from, to);                                                                       \
    set_status(status, begin(&h, NULL, NULL, request));                                            \
  }
#define OPEN(name, what)                                                                           \
  void name(uint32_t *handle, mcapi_endpoint_t endpoint, mcapi_request_t *request,                 \
            mcapi_status_t *status) {                                                              \
    CALL(h, what, endpoint);                                                                       \
    h.absent = absent(handle, RN_NO_BUFFER);                                                       \
    set_status(status, begin(&h, NULL, handle, request));                                          \
  }
#define CLOSE(name, what)                                                                          \
  void name(uint32_t handle, mcapi_request_t *request, mcapi_status_t *status) {                   \
    CALL(h, what, handle);                                                                         \
    set_status(status, begin(&h, NULL, NULL, request));                                            \
  }
#define AVAILABLE(name, what)                                                                      \
  mcapi_uint_t name(uint32_t handle, mcapi_status_t *status) {                                     \
    CALL(h, what, handle);                                                                         \
    return (mcapi_uint_t)call_agent_value(&h, status);                                             \
  }

CONNECT(mcapi_pktchan_connect_i, RN_PACKET_CONNECT)
OPEN(mcapi_pktchan_recv_open_i, RN_PACKET_OPEN_RECEIVER)
OPEN(mcapi_pktchan_send_open_i, RN_PACKET_OPEN_SENDER)
CLOSE(mcapi_pktchan_recv_close_i, RN_PACKET_CLOSE_RECEIVER)
CLOSE(mcapi_pktchan_send_close_i, RN_PACKET_CLOSE_SENDER)
AVAILABLE(mcapi_pktchan_available, RN_PACKETS_AVAILABLE)
CONNECT(mcapi_sclchan_connect_i, RN_SCALAR_CONNECT)
OPEN(mcapi_sclchan_recv_open_i, RN_SCALAR_OPEN_RECEIVER)
OPEN(mcapi_sclchan_send_open_i, RN_SCALAR_OPEN_SENDER)
CLOSE(mcapi_sclchan_recv_close_i, RN_SCALAR_CLOSE_RECEIVER)
CLOSE(mcapi_sclchan_send_close_i, RN_SCALAR_CLOSE_SENDER)
AVAILABLE(mcapi_sclchan_available, RN_SCALARS_AVAILABLE)

/* ---- packets --------------------------------------------------------------------------------- */

void mcapi_pktchan_send(mcapi_pktchan_send_hndl_t handle, const void *buffer, size_t size,
                        mcapi_status_t *status) {
  CALL(h, RN_PACKET_SEND, handle);
  attach_data(&h, buffer, size, MCAPI_MAX_PACKET_SIZE);
  set_status(status, call_agent(&h, buffer, NULL, 0));
}

void mcapi_pktchan_send_i(mcapi_pktchan_send_hndl_t handle, const void *buffer, size_t size,
                          mcapi_request_t *request, mcapi_status_t *status) {
  CALL(h, RN_PACKET_SEND_BEGIN, handle);
  attach_data(&h, buffer, size, MCAPI_MAX_PACKET_SIZE);
  set_status(status, begin(&h, buffer, NULL, request));
}

/* Reserves a packet buffer before other tasks run; null: all are held. */
static void *packet_place(void) {
  for (int i = 0; i < PACKETS; i++) {
    if (!is_free(&packets[i].owner)) continue;
    packets[i].owner = current_owner();
    return packets[i].bytes;
  }
  return NULL;
}

void mcapi_pktchan_recv(mcapi_pktchan_recv_hndl_t handle, void **buffer, size_t *size,
                        mcapi_status_t *status) {
  CALL(h, RN_PACKET_RECEIVE, handle);
  h.absent = absent(buffer, RN_NO_BUFFER) | absent(size, RN_NO_SIZE);
  void *to = is_node() ? packet_place() : NULL;
  if (!to && is_node()) {
    set_status(status, MCAPI_ERR_MEM_LIMIT);
    return;
  }
  mcapi_status_t s = call_agent(&h, NULL, to, MCAPI_MAX_PACKET_SIZE);
  if (s == MCAPI_SUCCESS) {
    *buffer = to;
    *size = h.size;
  } else {
    free_packet(to);
  }
  set_status(status, s);
}

void mcapi_pktchan_recv_i(mcapi_pktchan_recv_hndl_t handle, void **buffer, mcapi_request_t *request,
                          mcapi_status_t *status) {
  CALL(h, RN_PACKET_RECEIVE_BEGIN, handle);
  h.absent = absent(buffer, RN_NO_BUFFER);
  void *to = is_node() ? packet_place() : NULL;
  mcapi_status_t s = MCAPI_ERR_MEM_LIMIT;
  if (to || !is_node())
    s = begin_pending(&h, (pending){.to = to, .room = MCAPI_MAX_PACKET_SIZE, .packet = buffer},
                      request);
  if (s != MCAPI_SUCCESS && s != MCAPI_PENDING) free_packet(to);
  set_status(status, s);
}

static mcapi_status_t held(const void *buffer, bool released) {
  if (!is_node()) return MCAPI_ERR_NODE_NOTINIT;
  int i = buffer ? packet_of(buffer) : PACKETS;
  if (i == PACKETS) return MCAPI_ERR_BUF_INVALID;
  for (int k = 0; k < PENDING; k++) /* it is reserved, but not filled yet */
    if (is_mine(&pendings[k].owner) && pendings[k].to == buffer) return MCAPI_ERR_BUF_INVALID;
  if (released) packets[i].owner.task = NULL;
  return MCAPI_SUCCESS;
}

mcapi_boolean_t mcapi_pktchan_release_test(const void *buffer, mcapi_status_t *status) {
  mcapi_status_t s = held(buffer, false);
  set_status(status, s);
  return s == MCAPI_SUCCESS ? MCAPI_TRUE : MCAPI_FALSE;
}

void mcapi_pktchan_release(const void *buffer, mcapi_status_t *status) {
  set_status(status, held(buffer, true));
}

/* ---- scalars --------------------------------------------------------------------------------- */

#define SCALAR(bits)                                                                               \
  void mcapi_sclchan_send_uint##bits(mcapi_sclchan_send_hndl_t handle, mcapi_uint##bits##_t value, \
                                     mcapi_status_t *status) {                                     \
    CALL(h, RN_SCALAR_SEND, handle, bits / 8);                                                     \
    h.value = value;                                                                               \
    call_agent_value(&h, status);                                                                  \
  }                                                                                                \
  mcapi_uint##bits##_t mcapi_sclchan_recv_uint##bits(mcapi_sclchan_recv_hndl_t handle,             \
                                                     mcapi_status_t *status) {                     \
    CALL(h, RN_SCALAR_RECEIVE, handle, bits / 8);                                                  \
    return (mcapi_uint##bits##_t)call_agent_value(&h, status);                                     \
  }

SCALAR(8)
SCALAR(16)
SCALAR(32)
SCALAR(64)
