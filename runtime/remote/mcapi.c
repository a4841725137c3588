/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* MCAPI behind a window: each of the standard's calls goes to the task's agent at the host, and the task
 * waits for the answer, as others go on. What a packet receives lies in a buffer here. */
#include "../mcapi/remote_node/remote_node.h"

#include <string.h>

#include "remote.h"

enum { PACKETS = 16, PENDING = 64 /* requests that give something when they are done */ };

/* A task that does a call of the host's; its place may be another's afterwards, however it ended. */
typedef struct owner {
  const far_task *task; /* null: nobody */
  uint32_t number;
} owner;

static struct node {
  owner owner;
  lvd_stream *calls, *answers;
  bool broken; /* an answer was not waited for: what comes is not that of the next call */
  bool is_node;
} nodes[LVD_FAR_TASKS];

static struct {
  owner owner;
  LVD_ALIGNED(16) unsigned char bytes[MCAPI_MAX_PACKET_SIZE];
} packets[PACKETS];

/* Where what a request receives is put when it is done. */
typedef struct pending {
  owner owner;
  mcapi_request_t request;
  void *to; /* `room` bytes */
  uint32_t room;
  mcapi_endpoint_t *endpoint;
  void **packet; /* `to` is a packet's place, which is to be said here */
} pending;

static pending pendings[PENDING];

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

static bool is_node(void) {
  const struct node *n = node_of(is_mine);
  return n && n->is_node;
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

/* Where the data of an answer go: by its head. */
typedef struct place {
  void *at;
  size_t room;
} place;
typedef place finder(const mb_head *answer, void *of);

static bool receive(struct node *n, mb_head *answer, finder *find, void *of) {
  if (lvd_stream_get(n->answers, answer, MB_LINE) != LVD_OK) return false;
  place to = find(answer, of);
  if (answer->size > to.room) return false;
  unsigned char *at = to.at;
  for (uint32_t left = answer->size, i = 1; left; i++) {
    uint32_t some = left < MB_LINE ? left : MB_LINE;
    const void *line;
    if (lvd_stream_get_span(n->answers, 1, &line) != LVD_OK) return false;
    memcpy(at, line, some);
    lvd_get_done(&n->answers->get, 1);
    at += some;
    left -= some;
    if (i % (MB_LINES / 4) == 0) lvd_stream_pop(n->answers);
  }
  lvd_stream_pop(n->answers);
  return true;
}

/* The head becomes the answer's. */
static mcapi_status_t ask_and_find(mb_head *head, const void *out, finder *find, void *of) {
  struct node *n = node_of(is_mine);
  if (!n) {
    *head = (mb_head){0};
    return MCAPI_ERR_NODE_NOTINIT;
  }
  n->broken = n->broken || !send(n, head, out) || !receive(n, head, find, of);
  if (n->broken) {
    *head = (mb_head){0};
    return MCAPI_ERR_GENERAL;
  }
  return head->status;
}

static place as_given(const mb_head *answer, void *of) {
  (void)answer;
  return *(place *)of;
}

static mcapi_status_t ask(mb_head *head, const void *out, void *in, size_t room) {
  place to = {in, in ? room : 0};
  return ask_and_find(head, out, as_given, &to);
}

static void say(mcapi_status_t *to, mcapi_status_t status) {
  if (to) *to = status;
}

#define ASK(name, of, ...) mb_head name = {.what = of, .word = {__VA_ARGS__}}

static uint32_t absent(const void *pointer, uint32_t which) { return pointer ? 0 : which; }

static uint32_t least(size_t size, uint32_t most) { return size < most ? (uint32_t)size : most; }

static uint64_t ask_value(mb_head *head, mcapi_status_t *status) {
  say(status, ask(head, NULL, NULL, 0));
  return head->value;
}

/* What is too large, or nowhere, does not go along: the agent says so. */
static void carry(mb_head *head, const void *data, size_t size, uint32_t most) {
  head->full = least(size, UINT32_MAX);
  head->size = data && size <= most ? head->full : 0;
  head->absent |= absent(data, MB_NO_BUFFER);
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
  n->broken = n->is_node = false;
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

/* ---- packets that are held ------------------------------------------------------------------- */

static int packet_of(const void *bytes) {
  for (int i = 0; i < PACKETS; i++)
    if (is_mine(&packets[i].owner) && packets[i].bytes == bytes) return i;
  return PACKETS;
}

static void give_back(const void *bytes) {
  int i = bytes ? packet_of(bytes) : PACKETS;
  if (i < PACKETS) packets[i].owner.task = NULL;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* `handle`: that an end which is opened gets; or null. */
static mcapi_status_t begin(mb_head *h, const void *data, uint32_t *handle,
                            mcapi_request_t *request) {
  h->absent |= absent(request, MB_NO_REQUEST);
  mcapi_status_t s = ask(h, data, NULL, 0);
  if (s != MCAPI_SUCCESS && s != MCAPI_PENDING) return s;
  *request = h->word[0];
  if (handle) *handle = h->word[1];
  return s;
}

/* One that gives something when it is done. */
static mcapi_status_t begin_pending(mb_head *h, pending what, mcapi_request_t *request) {
  pending *p = NULL;
  for (int i = 0; i < PENDING && !p; i++)
    if (is_free(&pendings[i].owner)) p = &pendings[i];
  if (!p && is_node()) return MCAPI_ERR_REQUEST_LIMIT;
  mcapi_status_t s = begin(h, NULL, NULL, request);
  if (p && (s == MCAPI_SUCCESS || s == MCAPI_PENDING)) {
    *p = what;
    p->owner = self();
    p->request = *request;
  }
  return s;
}

/* A wait's, a test's or a cancel's: what it is about, and of this the one that is done. */
typedef struct asked {
  const mcapi_request_t *request;
  size_t count;
  pending *done;
} asked;

static place of_the_done(const mb_head *answer, void *of) {
  asked *a = of;
  uint64_t which = a->count > 1 ? answer->value : 0;
  a->done = NULL;
  for (int i = 0; i < PENDING && which < a->count && answer->word[0] == MB_OVER; i++)
    if (is_mine(&pendings[i].owner) && pendings[i].request == a->request[which])
      a->done = &pendings[i];
  return a->done ? (place){a->done->to, a->done->room} : (place){NULL, 0};
}

static mcapi_status_t conclude(mb_head *h, const void *out, asked *a, size_t *size) {
  mcapi_status_t s = ask_and_find(h, out, of_the_done, a);
  bool well = s == MCAPI_SUCCESS && h->what != MB_CANCEL;
  if (size && h->word[0] == MB_OVER) *size = h->full;
  pending *p = a->done;
  if (!p) return s;
  if (well && p->endpoint) *p->endpoint = h->word[1];
  if (well && p->packet) *p->packet = p->to;
  if (!well && p->packet) give_back(p->to);
  p->owner.task = NULL;
  return s;
}

static mcapi_boolean_t conclude_one(mb_head *h, const mcapi_request_t *request, size_t *size,
                                    mcapi_status_t *status) {
  asked a = {request, request != NULL, NULL};
  h->word[0] = request ? *request : 0;
  h->absent = absent(request, MB_NO_REQUEST);
  say(status, conclude(h, NULL, &a, size));
  return h->value ? MCAPI_TRUE : MCAPI_FALSE;
}

mcapi_boolean_t mcapi_test(const mcapi_request_t *request, size_t *size, mcapi_status_t *status) {
  ASK(h, MB_TEST, 0);
  return conclude_one(&h, request, size, status);
}

mcapi_boolean_t mcapi_wait(const mcapi_request_t *request, size_t *size, mcapi_timeout_t timeout,
                           mcapi_status_t *status) {
  ASK(h, MB_WAIT, 0, timeout);
  return conclude_one(&h, request, size, status);
}

void mcapi_cancel(const mcapi_request_t *request, mcapi_status_t *status) {
  ASK(h, MB_CANCEL, 0);
  conclude_one(&h, request, NULL, status);
}

mcapi_uint_t mcapi_wait_any(size_t number, mcapi_request_t **requests, size_t *size,
                            mcapi_timeout_t timeout, mcapi_status_t *status) {
  mcapi_request_t all[MB_REQUESTS];
  asked a = {all, requests && number <= MB_REQUESTS ? number : 0, NULL};
  for (size_t i = 0; i < a.count; i++) all[i] = requests[i] ? *requests[i] : 0;
  ASK(h, MB_WAIT_ANY, (uint32_t)a.count, timeout);
  h.size = (uint32_t)(a.count * sizeof *all);
  say(status, conclude(&h, all, &a, size));
  return h.word[0] == MB_OVER ? (mcapi_uint_t)h.value : MCAPI_RETURN_VALUE_INVALID;
}

/* ---- nodes and endpoints -------------------------------------------------------------------- */

void mcapi_initialize(mcapi_domain_t domain, mcapi_node_t node, const mcapi_node_attributes_t *a,
                      const mcapi_param_t *p, mcapi_info_t *info, mcapi_status_t *status) {
  (void)p;
  ASK(h, MB_INITIALIZE, domain, node, a ? a->type : 0, a ? a->transport : 0, a ? a->group : 0);
  h.absent = absent(a, MB_NO_ATTRIBUTES) | absent(info, MB_NO_BUFFER);
  mcapi_status_t s = ask(&h, NULL, info, sizeof *info);
  struct node *n = node_of(is_mine);
  if (n && s == MCAPI_SUCCESS) n->is_node = true;
  say(status, s);
}

void mcapi_finalize(mcapi_status_t *status) {
  ASK(h, MB_FINALIZE, 0);
  mcapi_status_t s = ask(&h, NULL, NULL, 0);
  say(status, s);
  if (s != MCAPI_SUCCESS) return;
  node_of(is_mine)->is_node = false;
  for (int i = 0; i < PACKETS; i++)
    if (is_mine(&packets[i].owner)) packets[i].owner.task = NULL;
  for (int i = 0; i < PENDING; i++)
    if (is_mine(&pendings[i].owner)) pendings[i].owner.task = NULL;
}

mcapi_domain_t mcapi_domain_id_get(mcapi_status_t *status) {
  ASK(h, MB_DOMAIN_ID, 0);
  mcapi_status_t s = ask(&h, NULL, NULL, 0);
  say(status, s);
  return s == MCAPI_SUCCESS ? (mcapi_domain_t)h.value : MCAPI_DOMAIN_INVALID;
}

mcapi_node_t mcapi_node_id_get(mcapi_status_t *status) {
  ASK(h, MB_NODE_ID, 0);
  mcapi_status_t s = ask(&h, NULL, NULL, 0);
  say(status, s);
  return s == MCAPI_SUCCESS ? (mcapi_node_t)h.value : MCAPI_NODE_INVALID;
}

void mcapi_node_get_attribute(mcapi_domain_t domain, mcapi_node_t node, mcapi_uint_t number,
                              void *attribute, size_t size, mcapi_status_t *status) {
  uint32_t most = least(size, MCAPI_MAX_MESSAGE_SIZE);
  ASK(h, MB_NODE_ATTRIBUTE, domain, node, number, most);
  h.absent = absent(attribute, MB_NO_BUFFER);
  say(status, ask(&h, NULL, attribute, most));
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

void mcapi_endpoint_get_i(mcapi_domain_t domain, mcapi_node_t node, mcapi_port_t port,
                          mcapi_endpoint_t *endpoint, mcapi_request_t *request,
                          mcapi_status_t *status) {
  ASK(h, MB_GET_BEGIN, domain, node, port);
  h.absent = absent(endpoint, MB_NO_BUFFER);
  say(status, begin_pending(&h, (pending){.endpoint = endpoint}, request));
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
  uint32_t most = least(size, MCAPI_MAX_MESSAGE_SIZE);
  ASK(h, MB_GET_ATTRIBUTE, endpoint, number, most);
  h.absent = absent(attribute, MB_NO_BUFFER);
  say(status, ask(&h, NULL, attribute, most));
}

void mcapi_endpoint_set_attribute(mcapi_endpoint_t endpoint, mcapi_uint_t number,
                                  const void *attribute, size_t size, mcapi_status_t *status) {
  ASK(h, MB_SET_ATTRIBUTE, endpoint, number);
  carry(&h, attribute, size, MCAPI_MAX_MESSAGE_SIZE);
  say(status, ask(&h, attribute, NULL, 0));
}

/* ---- messages ------------------------------------------------------------------------------- */

void mcapi_msg_send(mcapi_endpoint_t from, mcapi_endpoint_t to, const void *buffer, size_t size,
                    mcapi_priority_t priority, mcapi_status_t *status) {
  ASK(h, MB_MESSAGE_OUT, from, to, priority);
  carry(&h, buffer, size, MCAPI_MAX_MESSAGE_SIZE);
  say(status, ask(&h, buffer, NULL, 0));
}

void mcapi_msg_send_i(mcapi_endpoint_t from, mcapi_endpoint_t to, const void *buffer, size_t size,
                      mcapi_priority_t priority, mcapi_request_t *request, mcapi_status_t *status) {
  ASK(h, MB_MESSAGE_OUT_BEGIN, from, to, priority);
  carry(&h, buffer, size, MCAPI_MAX_MESSAGE_SIZE);
  say(status, begin(&h, buffer, NULL, request));
}

void mcapi_msg_recv(mcapi_endpoint_t endpoint, void *buffer, size_t room, size_t *size,
                    mcapi_status_t *status) {
  uint32_t most = least(room, MCAPI_MAX_MESSAGE_SIZE);
  ASK(h, MB_MESSAGE_IN, endpoint, most);
  h.absent = absent(buffer, MB_NO_BUFFER) | absent(size, MB_NO_SIZE);
  mcapi_status_t s = ask(&h, NULL, buffer, most);
  if (s == MCAPI_SUCCESS || s == MCAPI_ERR_MSG_TRUNCATED) *size = h.full;
  say(status, s);
}

void mcapi_msg_recv_i(mcapi_endpoint_t endpoint, void *buffer, size_t room,
                      mcapi_request_t *request, mcapi_status_t *status) {
  uint32_t most = least(room, MCAPI_MAX_MESSAGE_SIZE);
  ASK(h, MB_MESSAGE_IN_BEGIN, endpoint, most);
  h.absent = absent(buffer, MB_NO_BUFFER);
  say(status, begin_pending(&h, (pending){.to = buffer, .room = most}, request));
}

mcapi_uint_t mcapi_msg_available(mcapi_endpoint_t endpoint, mcapi_status_t *status) {
  ASK(h, MB_MESSAGES, endpoint);
  return (mcapi_uint_t)ask_value(&h, status);
}

/* ---- channels ------------------------------------------------------------------------------- */

#define CONNECT(name, what)                                                                        \
  void name(mcapi_endpoint_t from, mcapi_endpoint_t to, mcapi_request_t *request,                  \
            mcapi_status_t *status) {                                                              \
    ASK(h, what, from, to);                                                                        \
    say(status, begin(&h, NULL, NULL, request));                                                   \
  }
#define OPEN(name, what)                                                                           \
  void name(uint32_t *handle, mcapi_endpoint_t endpoint, mcapi_request_t *request,                 \
            mcapi_status_t *status) {                                                              \
    ASK(h, what, endpoint);                                                                        \
    h.absent = absent(handle, MB_NO_BUFFER);                                                       \
    say(status, begin(&h, NULL, handle, request));                                                 \
  }
#define CLOSE(name, what)                                                                          \
  void name(uint32_t handle, mcapi_request_t *request, mcapi_status_t *status) {                   \
    ASK(h, what, handle);                                                                          \
    say(status, begin(&h, NULL, NULL, request));                                                   \
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
  carry(&h, buffer, size, MCAPI_MAX_PACKET_SIZE);
  say(status, ask(&h, buffer, NULL, 0));
}

void mcapi_pktchan_send_i(mcapi_pktchan_send_hndl_t handle, const void *buffer, size_t size,
                          mcapi_request_t *request, mcapi_status_t *status) {
  ASK(h, MB_PACKET_OUT_BEGIN, handle);
  carry(&h, buffer, size, MCAPI_MAX_PACKET_SIZE);
  say(status, begin(&h, buffer, NULL, request));
}

/* A place for one, from before others go on; null: all are held. */
static void *packet_place(void) {
  for (int i = 0; i < PACKETS; i++) {
    if (!is_free(&packets[i].owner)) continue;
    packets[i].owner = self();
    return packets[i].bytes;
  }
  return NULL;
}

void mcapi_pktchan_recv(mcapi_pktchan_recv_hndl_t handle, void **buffer, size_t *size,
                        mcapi_status_t *status) {
  ASK(h, MB_PACKET_IN, handle);
  h.absent = absent(buffer, MB_NO_BUFFER) | absent(size, MB_NO_SIZE);
  void *to = is_node() ? packet_place() : NULL;
  if (!to && is_node()) {
    say(status, MCAPI_ERR_MEM_LIMIT);
    return;
  }
  mcapi_status_t s = ask(&h, NULL, to, MCAPI_MAX_PACKET_SIZE);
  if (s == MCAPI_SUCCESS) {
    *buffer = to;
    *size = h.size;
  } else {
    give_back(to);
  }
  say(status, s);
}

void mcapi_pktchan_recv_i(mcapi_pktchan_recv_hndl_t handle, void **buffer, mcapi_request_t *request,
                          mcapi_status_t *status) {
  ASK(h, MB_PACKET_IN_BEGIN, handle);
  h.absent = absent(buffer, MB_NO_BUFFER);
  void *to = is_node() ? packet_place() : NULL;
  mcapi_status_t s = MCAPI_ERR_MEM_LIMIT;
  if (to || !is_node())
    s = begin_pending(&h, (pending){.to = to, .room = MCAPI_MAX_PACKET_SIZE, .packet = buffer},
                      request);
  if (s != MCAPI_SUCCESS && s != MCAPI_PENDING) give_back(to);
  say(status, s);
}

static mcapi_status_t held(const void *buffer, bool released) {
  if (!is_node()) return MCAPI_ERR_NODE_NOTINIT;
  int i = buffer ? packet_of(buffer) : PACKETS;
  if (i == PACKETS) return MCAPI_ERR_BUF_INVALID;
  for (int k = 0; k < PENDING; k++) /* nothing is in it yet */
    if (is_mine(&pendings[k].owner) && pendings[k].to == buffer) return MCAPI_ERR_BUF_INVALID;
  if (released) packets[i].owner.task = NULL;
  return MCAPI_SUCCESS;
}

mcapi_boolean_t mcapi_pktchan_release_test(const void *buffer, mcapi_status_t *status) {
  mcapi_status_t s = held(buffer, false);
  say(status, s);
  return s == MCAPI_SUCCESS ? MCAPI_TRUE : MCAPI_FALSE;
}

void mcapi_pktchan_release(const void *buffer, mcapi_status_t *status) {
  say(status, held(buffer, true));
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
