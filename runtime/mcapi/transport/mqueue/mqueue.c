/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* POSIX message queues as a transport: names, pieces, and the messages of endpoints.
 *
 * Names are for the domain and the place of the endpoint, so that they can be taken away by
 * anybody who looks after the dead. An endpoint's queue is made by the first who sends to it: those that
 * only send cost nothing. */
#include "mqueue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PARTIALS = 64 }; /* more only of senders that are there */

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

static void clear(mc_domain *d) {
  for (uint32_t i = 0; i < MC_ENDPOINTS; i++) remove_names(d, i);
}

/* ---- pieces --------------------------------------------------------------------------------- */

lvd_status mc_pmq_put(const lvd_os_queue *q, unsigned char *piece, pmq_head head, const void *data,
                      uint32_t level) {
  uint32_t pieces = pmq_pieces(q, head.size), each = q->size - (uint32_t)sizeof head;
  if (pieces > q->messages) return LVD_E_MEMORY;
  if (pieces > 1 && lvd_os_queue_count(q) + pieces > q->messages) return LVD_E_TIME;
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
  *status = LVD_E_TIME;
  while (*left && (*status = lvd_os_queue_receive(q, piece, &size, level)) == LVD_OK) {
    --*left;
    if (size < sizeof *head) continue;
    memcpy(head, piece, sizeof *head);
    *length = size - sizeof *head;
    if (head->size <= MCAPI_MAX_MESSAGE_SIZE && head->offset <= head->size &&
        *length <= head->size - head->offset)
      return true;
  }
  if (*status == LVD_OK) *status = LVD_E_TIME;
  return false;
}

/* ---- opening and closing -------------------------------------------------------------------- */

lvd_status mc_pmq_open(mc_domain *d, mc_local *local) {
  pmq_endpoint *o = calloc(1, sizeof *o);
  if (o) o->piece = malloc(PMQ_MOST);
  if (!o || !o->piece) {
    free(o);
    return LVD_E_MEMORY;
  }
  o->in.id = -1;
  for (uint32_t i = 0; i < PMQ_TARGETS; i++) o->target[i].queue.id = -1;
  remove_names(d, local->index);
  local->own = o;
  return LVD_OK;
}

static void free_all(pmq_parcel *p) {
  for (pmq_parcel *next; p; p = next) {
    next = p->next;
    free(p);
  }
}

void mc_pmq_close(mc_domain *d, mc_local *local) {
  pmq_endpoint *o = local->own;
  remove_names(d, local->index);
  lvd_os_queue_close(&o->in);
  for (uint32_t i = 0; i < PMQ_TARGETS; i++) lvd_os_queue_close(&o->target[i].queue);
  free_all(o->partial);
  free_all(o->whole);
  free(o->piece);
  free(o);
  local->own = NULL;
  mc_ring_all(d, &d->tables->rooms);
}

/* ---- sending -------------------------------------------------------------------------------- */

/* The queue of endpoint `to`, made if there is none. */
static lvd_status target(mc_domain *d, pmq_endpoint *o, mcapi_endpoint_t to, lvd_os_queue **out) {
  for (uint32_t i = 0; i < PMQ_TARGETS; i++)
    if (o->target[i].to == to && o->target[i].queue.id >= 0) {
      *out = &o->target[i].queue;
      return LVD_OK;
    }
  uint32_t n = o->next_target++ % PMQ_TARGETS;
  char name[64];
  lvd_os_queue_close(&o->target[n].queue);
  mc_pmq_name(name, sizeof name, d->number, mc_index(to), false);
  lvd_status status =
      lvd_os_queue_create(name, PMQ_MESSAGES, PMQ_LEAST, PMQ_MOST, &o->target[n].queue);
  if (status != LVD_OK) return LVD_E_MEMORY;
  if (o->target[n].queue.size > PMQ_MOST || o->target[n].queue.size < PMQ_LEAST) {
    lvd_os_queue_close(&o->target[n].queue); /* not as we make them */
    return LVD_E_MEMORY;
  }
  o->target[n].to = to;
  *out = &o->target[n].queue;
  return LVD_OK;
}

lvd_status mc_pmq_send(mc_domain *d, mc_local *local, mcapi_endpoint_t to, const void *buffer,
                       size_t size, uint32_t level) {
  const mc_endpoint *e = &d->tables->endpoint[mc_index(to)];
  pmq_endpoint *o = local->own;
  lvd_os_queue *q;
  if (!to || lvd_load_acquire_u32(&e->handle) != to) return LVD_E_PEER;
  lvd_status status = target(d, o, to, &q);
  if (status != LVD_OK) return status;
  uint32_t most = mc_attribute(d, mc_index(to), MCAPI_ENDP_ATTR_NUM_RECV_BUFFERS);
  if (most < q->messages && lvd_os_queue_count(q) >= most) return LVD_E_TIME;
  uint32_t node = lvd_load_relaxed_u32(&e->node);
  const pmq_head head = {.to = to,
                         .from = lvd_load_relaxed_u32(&local->handle),
                         .claim = ++o->claims,
                         .size = (uint32_t)size};
  status = mc_pmq_put(q, o->piece, head, buffer, level);
  if (status == LVD_OK) mc_ring(d, node);
  return status == LVD_E_SYSTEM ? LVD_E_PEER : status;
}

/* ---- receiving ------------------------------------------------------------------------------ */

static void drop(pmq_endpoint *o, pmq_parcel **at) {
  pmq_parcel *p = *at;
  *at = p->next;
  o->partials--;
  free(p);
}

/* What a sender had begun that is there no more never gets whole. */
static void drop_begun(mc_domain *d, pmq_endpoint *o) {
  for (pmq_parcel **at = &o->partial; *at;)
    if (mc_endpoint_is(d, (*at)->head.from))
      at = &(*at)->next;
    else
      drop(o, at);
}

/* Puts a piece to those of the same message that came before. The whole message; null: not yet. Messages of
 * one sender come one after the other at one level; a more urgent one comes between the pieces of others. */
static pmq_parcel *gather(mc_domain *d, pmq_endpoint *o, const pmq_head *head, size_t length,
                          uint32_t level) {
  pmq_parcel **at = &o->partial;
  while (*at && ((*at)->head.from != head->from || (*at)->level != level)) at = &(*at)->next;
  pmq_parcel *p = *at;
  if (p &&
      (p->head.claim != head->claim || p->head.size != head->size || p->have != head->offset)) {
    drop(o, at); /* given up by its sender */
    p = NULL;
  }
  if (!p) {
    if (o->partials >= PARTIALS) drop_begun(d, o);
    if (head->offset || o->partials == MC_ENDPOINTS) return NULL;
    if (!(p = malloc(sizeof *p + head->size))) return NULL;
    *p = (pmq_parcel){.next = o->partial, .head = *head, .level = level};
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

/* Behind all that are as urgent. */
static void keep(pmq_endpoint *o, pmq_parcel *p) {
  pmq_parcel **at = &o->whole;
  while (*at && (*at)->level >= p->level) at = &(*at)->next;
  p->next = *at;
  *at = p;
  o->wholes++;
}

static bool is_open(mc_domain *d, mc_local *local, pmq_endpoint *o) {
  if (o->in.id >= 0) return true;
  char name[64];
  mc_pmq_name(name, sizeof name, d->number, local->index, false);
  if (lvd_os_queue_find(name, &o->in) != LVD_OK) return false;
  if (o->in.size <= PMQ_MOST && o->in.size >= PMQ_LEAST) return true;
  lvd_os_queue_close(&o->in);
  return false;
}

/* Takes all that has come to ourselves, as far as we have room. */
static void drain(mc_domain *d, mc_local *local) {
  pmq_endpoint *o = local->own;
  pmq_head head;
  size_t length;
  uint32_t level, left = PMQ_AT_ONCE;
  lvd_status status;
  if (!is_open(d, local, o)) return;
  while (o->wholes < PMQ_MESSAGES &&
         mc_pmq_take(&o->in, o->piece, &head, &length, &level, &left, &status))
    if (head.to == lvd_load_relaxed_u32(&local->handle)) {
      pmq_parcel *p = gather(d, o, &head, length, level);
      if (p) keep(o, p);
    }
  mc_pmq_more(d, local, left);
  mc_ring_all(d, &d->tables->rooms);
}

static lvd_status deliver(const void *data, size_t all, void *buffer, size_t room, size_t *size) {
  *size = all < room ? all : room;
  if (*size) mc_copy(buffer, data, *size);
  return all > room ? LVD_E_LIMIT : LVD_OK;
}

static lvd_status deliver_parcel(pmq_parcel *p, void *buffer, size_t room, size_t *size) {
  lvd_status status = deliver(p->data, p->head.size, buffer, room, size);
  free(p);
  return status;
}

static lvd_status receive(mc_domain *d, mc_local *local, void *buffer, size_t room, size_t *size) {
  pmq_endpoint *o = local->own;
  if (o->whole) drain(d, local); /* something more urgent may have come */
  pmq_parcel *p = o->whole;
  if (p) {
    o->whole = p->next;
    o->wholes--;
    return deliver_parcel(p, buffer, room, size);
  }
  pmq_head head;
  size_t length;
  uint32_t level, left = PMQ_AT_ONCE;
  lvd_status status;
  if (!is_open(d, local, o)) return LVD_E_TIME;
  while (mc_pmq_take(&o->in, o->piece, &head, &length, &level, &left, &status)) {
    mc_ring_all(d, &d->tables->rooms);
    if (head.to != lvd_load_relaxed_u32(&local->handle)) continue;
    if (length == head.size) return deliver(o->piece + sizeof head, length, buffer, room, size);
    if ((p = gather(d, o, &head, length, level))) return deliver_parcel(p, buffer, room, size);
  }
  mc_pmq_more(d, local, left);
  return status == LVD_E_TIME ? LVD_E_TIME : LVD_E_CORRUPT;
}

lvd_status mc_pmq_receive(mc_domain *d, mc_local *local, void *buffer, size_t room, size_t *size) {
  lvd_status status = receive(d, local, buffer, room, size);
  if (status == LVD_OK || status == LVD_E_LIMIT) mc_count(d->tables, local->index, *size);
  return status;
}

uint32_t mc_pmq_count(mc_domain *d, mc_local *local) {
  drain(d, local);
  return ((const pmq_endpoint *)local->own)->wholes;
}

uint32_t mc_pmq_buffers(mc_domain *d, uint32_t index) {
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
  mc_set_add(&d->tables->rooms, node);
}

const mc_transport mc_pmq = {MC_TRANSPORT(MC_PMQ_ENTRY).name = "pmq", .clear = clear,
                             .bury = remove_names};
