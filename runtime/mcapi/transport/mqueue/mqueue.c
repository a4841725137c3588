/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* POSIX message queues as a transport: names, pieces, and the messages of endpoints.
 *
 * Names contain the domain and the endpoint's index, so that any process can remove those of a dead
 * one. The queue of an endpoint is created by the first process that sends to it, so endpoints that
 * only send have none. */
#include "mqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INCOMPLETE_MAX = 64 }; /* exceeded only by messages of living senders */

void mc_pmq_name(char *out, size_t size, mcapi_domain_t number, uint32_t index, bool channel) {
  snprintf(out, size, "mcapi-%u.%u%s", (unsigned)number, (unsigned)index, channel ? "c" : "m");
}

static void remove_names(mc_domain *d, uint32_t index) {
  char name[64];
  for (int channel = 0; channel < 2; channel++) {
    mc_pmq_name(name, sizeof name, d->number, index, channel);
    lvd_os_queue_remove(name);
  }
}

static void remove_all_names(mc_domain *d) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) remove_names(d, i);
}

/* ---- pieces ---------------------------------------------------------------------------------- */

lvd_status mc_pmq_put(const lvd_os_queue *q, unsigned char *piece, pmq_head head, const void *data,
                      uint32_t level) {
  uint32_t pieces = pmq_pieces(q, head.size), each = q->size - (uint32_t)sizeof head;
  if (pieces > q->messages) return LVD_E_MEMORY;
  if (pieces > 1 && lvd_os_queue_count(q) + pieces > q->messages) return LVD_E_TIMEOUT;
  do {
    uint32_t length = head.size - head.offset < each ? head.size - head.offset : each;
    memcpy(piece, &head, sizeof head);
    if (length) mc_copy(piece + sizeof head, (const char *)data + head.offset, length);
    lvd_status status = lvd_os_queue_send(q, piece, sizeof head + length, level);
    if (status != LVD_OK) return status;
    head.offset += length;
  } while (head.offset < head.size);
  return LVD_OK;
}

bool mc_pmq_take(const lvd_os_queue *q, unsigned char *piece, pmq_head *head, size_t *length,
                 uint32_t *level, uint32_t *left, lvd_status *status) {
  size_t size;
  *status = LVD_E_TIMEOUT;
  while (*left && (*status = lvd_os_queue_receive(q, piece, &size, level)) == LVD_OK) {
    --*left;
    if (size < sizeof *head) continue;
    memcpy(head, piece, sizeof *head);
    *length = size - sizeof *head;
    if (head->size <= MCAPI_MAX_MESSAGE_SIZE && head->offset <= head->size &&
        *length <= head->size - head->offset)
      return true;
  }
  if (*status == LVD_OK) *status = LVD_E_TIMEOUT;
  return false;
}

/* ---- opening and closing --------------------------------------------------------------------- */

lvd_status mc_pmq_open(mc_domain *d, mc_local_endpoint *local) {
  pmq_endpoint *o = calloc(1, sizeof *o);
  if (o) o->piece = malloc(PMQ_MESSAGE_MAX_BYTES);
  if (!o || !o->piece) {
    free(o);
    return LVD_E_MEMORY;
  }
  o->in.id = -1;
  for (uint32_t i = 0; i < PMQ_OPEN_TARGETS; i++) o->target[i].queue.id = -1;
  remove_names(d, local->index);
  local->transport_data = o;
  return LVD_OK;
}

static void free_list(pmq_assembly *p) {
  for (pmq_assembly *next; p; p = next) {
    next = p->next;
    free(p);
  }
}

void mc_pmq_close(mc_domain *d, mc_local_endpoint *local) {
  pmq_endpoint *o = local->transport_data;
  remove_names(d, local->index);
  lvd_os_queue_close(&o->in);
  for (uint32_t i = 0; i < PMQ_OPEN_TARGETS; i++) lvd_os_queue_close(&o->target[i].queue);
  free_list(o->partial);
  free_list(o->whole);
  free(o->piece);
  free(o);
  local->transport_data = NULL;
  mc_notify_all(d, &d->tables->room_waiters);
}

/* ---- sending --------------------------------------------------------------------------------- */

/* The queue of endpoint `to`, created if there is none. */
static lvd_status target(mc_domain *d, pmq_endpoint *o, mcapi_endpoint_t to, lvd_os_queue **out) {
  for (uint32_t i = 0; i < PMQ_OPEN_TARGETS; i++)
    if (o->target[i].to == to && o->target[i].queue.id >= 0) {
      *out = &o->target[i].queue;
      return LVD_OK;
    }
  uint32_t n = o->next_target++ % PMQ_OPEN_TARGETS;
  char name[64];
  lvd_os_queue_close(&o->target[n].queue);
  mc_pmq_name(name, sizeof name, d->number, mc_index(to), false);
  lvd_status status = lvd_os_queue_create(name, PMQ_QUEUE_MESSAGES, PMQ_MESSAGE_MIN_BYTES,
                                          PMQ_MESSAGE_MAX_BYTES, &o->target[n].queue);
  if (status != LVD_OK) return LVD_E_MEMORY;
  if (o->target[n].queue.size > PMQ_MESSAGE_MAX_BYTES ||
      o->target[n].queue.size < PMQ_MESSAGE_MIN_BYTES) {
    lvd_os_queue_close(&o->target[n].queue); /* created with other limits than ours */
    return LVD_E_MEMORY;
  }
  o->target[n].to = to;
  *out = &o->target[n].queue;
  return LVD_OK;
}

lvd_status mc_pmq_send(mc_domain *d, mc_local_endpoint *local, mcapi_endpoint_t to,
                       const void *buffer, size_t size, uint32_t level) {
  const mc_endpoint *e = &d->tables->endpoint[mc_index(to)];
  pmq_endpoint *o = local->transport_data;
  lvd_os_queue *q;
  if (!to || lvd_load_acquire_u32(&e->handle) != to) return LVD_E_PEER_GONE;
  lvd_status status = target(d, o, to, &q);
  if (status != LVD_OK) return status;
  uint32_t most = mc_attribute(d, mc_index(to), MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS);
  if (most < q->messages && lvd_os_queue_count(q) >= most) return LVD_E_TIMEOUT;
  uint32_t node = lvd_load_relaxed_u32(&e->node);
  const pmq_head head = {.to = to,
                         .from = lvd_load_relaxed_u32(&local->handle),
                         .sending_id = ++o->sending_ids,
                         .size = (uint32_t)size};
  status = mc_pmq_put(q, o->piece, head, buffer, level);
  if (status == LVD_OK) mc_notify(d, node);
  return status == LVD_E_SYSTEM ? LVD_E_PEER_GONE : status;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void drop(pmq_endpoint *o, pmq_assembly **at) {
  pmq_assembly *p = *at;
  *at = p->next;
  o->partials--;
  free(p);
}

/* Drops incomplete messages of senders that have ended. */
static void drop_abandoned(mc_domain *d, pmq_endpoint *o) {
  for (pmq_assembly **at = &o->partial; *at;)
    if (mc_endpoint_exists(d, (*at)->head.from))
      at = &(*at)->next;
    else
      drop(o, at);
}

/* Appends a piece to its message. The message once it is complete; else null. A sender's messages
 * of one priority level arrive one after the other; a more urgent message may arrive between the
 * pieces of another. */
static pmq_assembly *assemble(mc_domain *d, pmq_endpoint *o, const pmq_head *head, size_t length,
                              uint32_t level) {
  pmq_assembly **at = &o->partial;
  while (*at && ((*at)->head.from != head->from || (*at)->level != level)) at = &(*at)->next;
  pmq_assembly *p = *at;
  if (p && (p->head.sending_id != head->sending_id || p->head.size != head->size ||
            p->have != head->offset)) {
    drop(o, at); /* abandoned by its sender */
    p = NULL;
  }
  if (!p) {
    if (o->partials >= INCOMPLETE_MAX) drop_abandoned(d, o);
    if (head->offset || o->partials == MC_ENDPOINTS) return NULL;
    if (!(p = malloc(sizeof *p + head->size))) return NULL;
    *p = (pmq_assembly){.next = o->partial, .head = *head, .level = level};
    o->partial = p;
    o->partials++;
    at = &o->partial;
  }
  if (length) mc_copy(p->data + p->have, o->piece + sizeof *head, length);
  p->have += (uint32_t)length;
  if (p->have < head->size) return NULL;
  *at = p->next;
  o->partials--;
  return p;
}

/* Inserts it behind the messages of the same or a higher level. */
static void enqueue_whole(pmq_endpoint *o, pmq_assembly *p) {
  pmq_assembly **at = &o->whole;
  while (*at && (*at)->level >= p->level) at = &(*at)->next;
  p->next = *at;
  *at = p;
  o->wholes++;
}

static bool is_open(mc_domain *d, mc_local_endpoint *local, pmq_endpoint *o) {
  if (o->in.id >= 0) return true;
  char name[64];
  mc_pmq_name(name, sizeof name, d->number, local->index, false);
  if (lvd_os_queue_find(name, &o->in) != LVD_OK) return false;
  if (o->in.size <= PMQ_MESSAGE_MAX_BYTES && o->in.size >= PMQ_MESSAGE_MIN_BYTES) return true;
  lvd_os_queue_close(&o->in);
  return false;
}

/* Receives all queued messages into memory, up to a limit. */
static void drain(mc_domain *d, mc_local_endpoint *local) {
  pmq_endpoint *o = local->transport_data;
  pmq_head head;
  size_t length;
  uint32_t level, left = PMQ_PIECES_PER_CALL;
  lvd_status status;
  if (!is_open(d, local, o)) return;
  while (o->wholes < PMQ_QUEUE_MESSAGES &&
         mc_pmq_take(&o->in, o->piece, &head, &length, &level, &left, &status))
    if (head.to == lvd_load_relaxed_u32(&local->handle)) {
      pmq_assembly *p = assemble(d, o, &head, length, level);
      if (p) enqueue_whole(o, p);
    }
  mc_pmq_renotify(d, local, left);
  mc_notify_all(d, &d->tables->room_waiters);
}

static lvd_status deliver(const void *data, size_t all, void *buffer, size_t room, size_t *size) {
  *size = all < room ? all : room;
  if (*size) mc_copy(buffer, data, *size);
  return all > room ? LVD_E_LIMIT : LVD_OK;
}

static lvd_status deliver_parcel(pmq_assembly *p, void *buffer, size_t room, size_t *size) {
  lvd_status status = deliver(p->data, p->head.size, buffer, room, size);
  free(p);
  return status;
}

static lvd_status receive(mc_domain *d, mc_local_endpoint *local, void *buffer, size_t room,
                          size_t *size) {
  pmq_endpoint *o = local->transport_data;
  if (o->whole) drain(d, local); /* a more urgent message may have arrived */
  pmq_assembly *p = o->whole;
  if (p) {
    o->whole = p->next;
    o->wholes--;
    return deliver_parcel(p, buffer, room, size);
  }
  pmq_head head;
  size_t length;
  uint32_t level, left = PMQ_PIECES_PER_CALL;
  lvd_status status;
  if (!is_open(d, local, o)) return LVD_E_TIMEOUT;
  while (mc_pmq_take(&o->in, o->piece, &head, &length, &level, &left, &status)) {
    mc_notify_all(d, &d->tables->room_waiters);
    if (head.to != lvd_load_relaxed_u32(&local->handle)) continue;
    if (length == head.size) return deliver(o->piece + sizeof head, length, buffer, room, size);
    if ((p = assemble(d, o, &head, length, level))) return deliver_parcel(p, buffer, room, size);
  }
  mc_pmq_renotify(d, local, left);
  return status == LVD_E_TIMEOUT ? LVD_E_TIMEOUT : LVD_E_CORRUPT;
}

lvd_status mc_pmq_receive(mc_domain *d, mc_local_endpoint *local, void *buffer, size_t room,
                          size_t *size) {
  lvd_status status = receive(d, local, buffer, room, size);
  if (status == LVD_OK || status == LVD_E_LIMIT) mc_count_received(d->tables, local->index, *size);
  return status;
}

uint32_t mc_pmq_count(mc_domain *d, mc_local_endpoint *local) {
  drain(d, local);
  return ((const pmq_endpoint *)local->transport_data)->wholes;
}

uint32_t mc_pmq_free_buffers(mc_domain *d, uint32_t index) {
  uint32_t most = mc_attribute(d, index, MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS);
  char name[64];
  lvd_os_queue q;
  mc_pmq_name(name, sizeof name, d->number, index, false);
  if (lvd_os_queue_find(name, &q) != LVD_OK) return most;
  uint32_t used = lvd_os_queue_count(&q);
  if (most > q.messages) most = q.messages;
  lvd_os_queue_close(&q);
  return used < most ? most - used : 0;
}

void mc_pmq_await_room(mc_domain *d, uint32_t index, uint32_t node) {
  (void)index;
  mc_node_set_add(&d->tables->room_waiters, node);
}

const mc_transport mc_pmq = {MC_TRANSPORT_FUNCTIONS(MC_PMQ_ENTRY).name = "pmq",
                             .remove_all = remove_all_names, .reap = remove_names};
