/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams between two processes: channels in the memory of a link, opened by name.
 *
 * The parent decides where a stream lies, and keeps its own copy of that; the child asks. `taken`
 * holds the side that owns each end, and is set with one compare-and-swap. Both ends may belong to
 * one side: then it is a stream like any other. Which memory this side may touch is decided by
 * private words alone. */
#include "../channel/channel_ring.h"
#include "../stream/stream.h"
#include "link.h"

#include <stddef.h>
#include <stdlib.h>

enum { NAMES_MAX = 4096 }; /* open at a time, counting either side */

/* ---- wake-up --------------------------------------------------------------------------------- */

/* A waiter of this process has set `mine`, made a fence (what it has is published before it waits),
 * and armed, in this order. A thread that sees the mark but not yet `mine` has therefore pushed
 * before the waiter's look that follows the mark. */
static bool wake(lvd_shared_stream *ss, int end) {
  if (!lvd_load_relaxed_u32(&ss->mine[end])) return ss->link->bell.wake(&ss->link->bell);
  lvd_waiter *self = lvd_stream_waiter(ss->stream, end == LVD_SENDER);
  return self->wake(self);
}

static bool wake_sender(lvd_waiter *at) {
  return wake((lvd_shared_stream *)((char *)at - offsetof(lvd_shared_stream, at[LVD_SENDER])),
              LVD_SENDER);
}
static bool wake_receiver(lvd_waiter *at) {
  return wake((lvd_shared_stream *)((char *)at - offsetof(lvd_shared_stream, at[LVD_RECEIVER])),
              LVD_RECEIVER);
}

lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender) {
  return &ss->at[sender ? LVD_SENDER : LVD_RECEIVER];
}

bool lvd_mark_due(const lvd_wake_mark *m, uint32_t cursor, uint32_t published, bool over) {
  if (!lvd_load_relaxed_u32(&m->armed)) return false;
  uint32_t need = lvd_load_relaxed_u32(&m->need);
  return over || lvd_reached(cursor, lvd_load_relaxed_u32(&m->at)) ||
         (lvd_reached(cursor, need) && lvd_reached(published, need));
}

/* The end of a stream is held back until the parent's deadlock has been applied. */
static bool may_wake(const lvd_link *link, const lvd_wake_mark *m, uint32_t cursor,
                     uint32_t published, bool over) {
  return lvd_mark_due(m, cursor, published, over) &&
         !(over && lvd_hooks.deadlock.parent_decides(link));
}

/* Reads only the shared words: the handles belong to the owners of the ends. */
void lvd_shared_wake(lvd_link *link) {
  for (lvd_shared_stream *ss = link->streams; ss; ss = ss->next) {
    const lvd_channel *ch = &ss->slot->channel;
    const lvd_consumer_shared *c = &ch->consumer[0];
    if (lvd_load_relaxed_u32(&ss->mine[LVD_RECEIVER]) &&
        may_wake(link, &c->elements, lvd_load_relaxed_u32(&ch->tail),
                 lvd_load_relaxed_u32(&ch->flushed), lvd_load_relaxed_u32(&ch->state) != LVD_OPEN))
      wake(ss, LVD_RECEIVER);
    if (lvd_load_relaxed_u32(&ss->mine[LVD_SENDER]) &&
        may_wake(link, &c->room, lvd_load_relaxed_u32(&c->head), lvd_load_relaxed_u32(&c->released),
                 lvd_load_relaxed_u32(&c->state) != LVD_OPEN))
      wake(ss, LVD_SENDER);
  }
}

/* ---- ends ------------------------------------------------------------------------------------ */

bool lvd_shared_claim(lvd_shared_stream *ss, bool is_sender) {
  int end = is_sender ? LVD_SENDER : LVD_RECEIVER;
  uint32_t no_side = 0;
  lvd_os_lock(&ss->link->lock);
  bool mine = lvd_load_relaxed_u32(&ss->mine[end]) ||
              lvd_cas_relaxed_u32(&ss->slot->taken[end], &no_side, 1 + (uint32_t)ss->link->side);
  lvd_store_relaxed_u32(&ss->mine[end], mine);
  lvd_os_unlock(&ss->link->lock);
  return mine;
}

static bool is_open(const lvd_slot_head *slot, int end) {
  const lvd_channel *ch = &slot->channel;
  const lvd_a32 *state = end == LVD_SENDER ? &ch->state : &ch->consumer[0].state;
  return lvd_load_relaxed_u32(state) == LVD_OPEN;
}

bool lvd_shared_is_theirs(const lvd_shared_stream *ss, bool is_sender) {
  uint32_t side = lvd_load_relaxed_u32(&ss->slot->taken[is_sender ? LVD_SENDER : LVD_RECEIVER]);
  return side && side != 1 + (uint32_t)ss->link->side;
}

bool lvd_shared_is_taken(const lvd_shared_stream *ss) {
  bool taken = true;
  for (int end = 0; end < 2; end++)
    taken &= lvd_load_relaxed_u32(&ss->slot->taken[end]) || !is_open(ss->slot, end);
  return taken || lvd_link_state(ss->link) != LVD_OK;
}

bool lvd_shared_is_alive(const lvd_shared_stream *ss) { return lvd_link_state(ss->link) == LVD_OK; }

/* Closes `end` for its owner, unless it is closed. A receiver has given up what it was reading,
 * with a fence (lvd_release). */
static void conclude(lvd_slot_head *slot, int end, lvd_status status) {
  lvd_channel *ch = &slot->channel;
  if (end == LVD_RECEIVER) {
    lvd_store_relaxed_u32(&ch->consumer[0].state, LVD_CLOSED);
  } else if (lvd_load_relaxed_u32(&ch->state) == LVD_OPEN) {
    lvd_store_relaxed_u32(&ch->flushed, lvd_load_relaxed_u32(&ch->tail));
    lvd_store_release_u32(&ch->state, LVD_CLOSED + (uint32_t)status);
  }
}

void lvd_shared_end(lvd_link *link, lvd_status status) {
  link->probe.applied = true; /* nothing has to be applied before */
  for (lvd_shared_stream *ss = link->streams; ss; ss = ss->next)
    for (int end = 0; end < 2; end++)
      if (!lvd_load_relaxed_u32(&ss->mine[end])) conclude(ss->slot, end, status);
  lvd_fence_seq_cst();
  lvd_shared_wake(link);
  for (lvd_opening *o = link->openings; o; o = o->next) {
    o->answer.status = (uint32_t)status;
    lvd_event_set(&o->done, 1);
  }
}

/* ---- the parent: allocation ------------------------------------------------------------------ */

static lvd_slot_head *head_of(const lvd_link *link, const lvd_name *n) {
  return (lvd_slot_head *)(void *)((unsigned char *)link->segment + n->offset);
}

static lvd_status no_memory(void) {
  return lvd_limit("no memory is left between the processes: lvd_unit_options.memory");
}

/* Allocates the memory of a stream. */
static lvd_status give_place(lvd_link *link, lvd_name *n, uint32_t elem_size, uint32_t capacity) {
  if (elem_size == 0 || capacity == 0 || capacity > LVD_CHANNEL_CAPACITY) return LVD_E_ARGUMENT;
  uint32_t slots = lvd_ring_slots(capacity, elem_size);
  uint64_t ring = (uint64_t)slots * elem_size;
  if (!slots || ring > link->size) return no_memory();
  uint64_t offset = lvd_link_claim(link, link->unit + ring);
  if (!offset) return no_memory();
  n->elem_size = elem_size;
  n->offset = offset;
  n->ring = ring;
  lvd_slot_head *head = head_of(link, n);
  memset(head, 0, sizeof *head);
  lvd_channel_init(&head->channel, (unsigned char *)head + link->unit, elem_size, slots, capacity,
                   1, LVD_CHANNEL_MIRRORED);
  return LVD_OK;
}

static lvd_name *new_name(lvd_link *link, const char *name) {
  lvd_name *n, **last = &link->names;
  if (link->name_count >= NAMES_MAX || !(n = calloc(1, sizeof *n))) return NULL;
  link->name_count++;
  copy_name(n->name, name);
  n->number = ++link->next_number;
  while (*last) last = &(*last)->next; /* in order of opening */
  *last = n;
  return n;
}

static void drop_name(lvd_link *link, lvd_name *n) {
  lvd_name **at = &link->names;
  while (*at != n) at = &(*at)->next;
  *at = n->next;
  link->name_count--;
  if (n->offset) lvd_link_release(link, n->offset);
  free(n);
}

static lvd_name *find_name(lvd_link *link, enum lvd_side side, const char *name) {
  lvd_name *n = link->names;
  while (n && (n->opened[side] || strcmp(n->name, name) != 0)) n = n->next;
  return n;
}

uint32_t lvd_shared_half_open(const lvd_link *link, enum lvd_side opened, const char *name) {
  const lvd_name *n = link->names;
  while (n &&
         (!n->offset || !n->opened[opened] || n->opened[!opened] || strcmp(n->name, name) != 0))
    n = n->next;
  return n ? n->number : 0;
}

void lvd_shared_half_opens(lvd_link *link,
                           void (*visit)(const char *name, uint64_t *since_ns, void *),
                           void *argument) {
  for (lvd_name *n = link->names; n; n = n->next)
    if (n->opened[LVD_CHILD] && !n->closed[LVD_CHILD] && !n->opened[LVD_PARENT])
      visit(n->name, &n->since_ns, argument);
}

/* Closes the ends without owner: a user of one of them finds the other closed. */
static void conclude_free(lvd_slot_head *slot) {
  for (int end = 0; end < 2; end++)
    if (!lvd_load_relaxed_u32(&slot->taken[end])) conclude(slot, end, LVD_OK);
}

static lvd_status too_many(void) {
  return lvd_limit("too many streams are open between two processes: close some");
}

/* The stream that `side` opens; created if it comes first. Under the lock. */
static lvd_name *open_name(lvd_link *link, enum lvd_side side, const char *name, uint32_t elem_size,
                           uint32_t capacity, lvd_status *status) {
  lvd_name *n = find_name(link, side, name);
  bool fresh = !n;
  *status = too_many();
  if (fresh && !(n = new_name(link, name))) return NULL;
  *status = LVD_OK;
  if (!n->offset) {
    *status = give_place(link, n, elem_size, capacity);
    if (*status == LVD_OK && !fresh) conclude_free(head_of(link, n));
  } else if (n->elem_size != elem_size) {
    *status = LVD_E_ARGUMENT;
    n->refused = true;
  }
  if (*status == LVD_OK) {
    n->opened[side] = true;
    return n;
  }
  if (fresh) drop_name(link, n);
  return NULL;
}

/* The side that has not opened it will not. Under the lock. */
static lvd_status leave_name(lvd_link *link, enum lvd_side side, const char *name) {
  lvd_name *n = find_name(link, side, name);
  if (!n && !(n = new_name(link, name))) return too_many();
  n->opened[side] = n->closed[side] = true;
  if (n->offset) conclude_free(head_of(link, n));
  if (n->closed[LVD_PARENT] && n->closed[LVD_CHILD]) drop_name(link, n);
  lvd_fence_seq_cst();
  link->bell.wake(&link->bell);
  lvd_shared_wake(link);
  return LVD_OK;
}

static void close_name(lvd_link *link, enum lvd_side side, uint32_t number) {
  lvd_name *n = link->names;
  while (n && (n->number != number || !n->opened[side])) n = n->next;
  if (!n) return;
  n->closed[side] = true;
  if (n->closed[LVD_PARENT] && n->closed[LVD_CHILD]) drop_name(link, n);
}

void lvd_shared_forget(lvd_link *link) {
  for (lvd_name *n = link->names, *next; n; n = next) {
    next = n->next;
    free(n);
  }
  for (lvd_opening *o = link->openings, *next; o; o = next) {
    next = o->next;
    free(o);
  }
}

/* A child without compare-and-swap requests its end together with the stream. Under the lock. */
static bool take_for_child(lvd_link *link, const lvd_name *n, int32_t wish) {
  uint32_t no_side = 0;
  if (wish != 1 + LVD_SENDER && wish != 1 + LVD_RECEIVER) return true;
  return lvd_cas_relaxed_u32(&head_of(link, n)->taken[wish - 1], &no_side, 1 + LVD_CHILD);
}

static void answer_open(lvd_link *link, const lvd_record *r) {
  lvd_record answer = {.kind = LVD_RECORD_OPENED, .number = r->number};
  char name[LVD_FIBER_NAME];
  lvd_status status;
  copy_name(name, r->name);
  lvd_os_lock(&link->lock);
  lvd_name *n = open_name(link, LVD_CHILD, name, r->size, r->room, &status);
  if (n && !take_for_child(link, n, r->priority)) {
    close_name(link, LVD_CHILD, n->number);
    status = LVD_E_STATE;
    n = NULL;
  }
  if (n) {
    answer.offset = n->offset;
    answer.extent = n->ring;
    answer.room = n->number;
  }
  bool half_open = n && !n->opened[LVD_PARENT];
  if (half_open) n->since_ns = lvd_os_now_ns();
  void (*tell)(lvd_link *) = half_open ? link->half_open : NULL;
  lvd_os_unlock(&link->lock);
  answer.status = (uint32_t)status;
  lvd_link_send(link, &answer);
  if (tell) tell(link);
}

/* ---- the child: requests --------------------------------------------------------------------- */

static void send_close(lvd_link *link, uint32_t number) {
  const lvd_record r = {.kind = LVD_RECORD_CLOSE, .number = number};
  lvd_link_send(link, &r);
}

static void drop_opening(lvd_link *link, lvd_opening *o) {
  lvd_opening **at = &link->openings;
  while (*at && *at != o) at = &(*at)->next;
  if (*at) *at = o->next;
  free(o);
}

static void take_opened(lvd_link *link, const lvd_record *r) {
  bool unwanted = false;
  lvd_os_lock(&link->lock);
  lvd_opening *o = link->openings;
  while (o && o->number != r->number) o = o->next;
  if (o && o->abandoned) {
    unwanted = r->status == LVD_OK;
    drop_opening(link, o);
  } else if (o) {
    o->answer = *r;
    lvd_event_set(&o->done, 1); /* under the lock, since the waiter frees it under the lock */
  }
  lvd_os_unlock(&link->lock);
  if (unwanted) send_close(link, r->room);
}

static lvd_status request_open(lvd_link *link, const lvd_stream_options *o, uint32_t capacity,
                               lvd_record *answer) {
  lvd_record r = {.kind = LVD_RECORD_OPEN, .size = o->elem_size, .room = capacity};
  copy_name(r.name, o->name);
  lvd_opening *request = calloc(1, sizeof *request);
  if (!request) return LVD_E_MEMORY;
  lvd_event_init(&request->done);
  lvd_os_lock(&link->lock);
  r.number = request->number = ++link->next_number;
  request->next = link->openings;
  link->openings = request;
  lvd_os_unlock(&link->lock);
  lvd_status status = lvd_link_send(link, &r);
  int64_t limit = o->timeout_ns > 0 ? o->timeout_ns : -1;
  if (status == LVD_OK) status = lvd_event_wait(&request->done, NULL, limit);
  lvd_os_lock(&link->lock);
  if (status == LVD_OK) {
    *answer = request->answer;
    status = (lvd_status)answer->status;
    drop_opening(link, request);
  } else if (lvd_link_state(link) != LVD_OK) {
    drop_opening(link, request);
  } else {
    request->abandoned = true; /* the answer will find and free it */
  }
  lvd_os_unlock(&link->lock);
  return status;
}

/* ---- opening and closing --------------------------------------------------------------------- */

static lvd_status mount(lvd_link *link, uint32_t number, uint64_t offset, uint64_t ring,
                        const lvd_stream_options *o, lvd_stream **out) {
  lvd_shared_stream *ss = calloc(1, sizeof *ss);
  if (!ss) return LVD_E_MEMORY;
  ss->at[LVD_SENDER].wake = wake_sender;
  ss->at[LVD_RECEIVER].wake = wake_receiver;
  ss->link = link;
  ss->number = number;
  ss->ring = (size_t)ring;
  ss->slot = lvd_link_map(link, (size_t)offset, link->unit, ss->ring);
  lvd_status status = LVD_E_MEMORY;
  if (ss->slot)
    status = lvd_stream_over(link->app, ss, &ss->slot->channel, link->unit + 2 * ss->ring, o, out);
  if (status != LVD_OK) {
    lvd_os_shared_unmap(ss->slot, link->unit, ss->ring);
    free(ss);
    return status;
  }
  ss->stream = (stream *)*out;
  lvd_os_lock(&link->lock);
  ss->next = link->streams;
  if (ss->next) ss->next->previous = ss;
  link->streams = ss;
  lvd_status gone = lvd_link_state(link);
  if (gone != LVD_OK)
    for (int end = 0; end < 2; end++) conclude(ss->slot, end, gone);
  lvd_os_unlock(&link->lock);
  return LVD_OK;
}

lvd_status lvd_shared_open(lvd_link *link, const lvd_stream_options *o, lvd_stream **out) {
  if (!o->name || !*o->name || strlen(o->name) >= LVD_FIBER_NAME) return LVD_E_ARGUMENT;
  lvd_status status = lvd_stream_check(o);
  if (status == LVD_OK) status = lvd_link_state(link);
  if (status != LVD_OK) return status;
  uint32_t capacity = lvd_stream_capacity(o), number = 0;
  uint64_t offset = 0, ring = 0;
  if (link->side == LVD_CHILD) {
    lvd_record answer;
    status = request_open(link, o, capacity, &answer);
    if (status != LVD_OK) return status;
    number = answer.room;
    offset = answer.offset;
    ring = answer.extent;
  } else {
    char name[LVD_FIBER_NAME];
    copy_name(name, o->name);
    lvd_os_lock(&link->lock);
    lvd_name *n = open_name(link, LVD_PARENT, name, o->elem_size, capacity, &status);
    if (n) {
      number = n->number;
      offset = n->offset;
      ring = n->ring;
    }
    lvd_os_unlock(&link->lock);
    if (status != LVD_OK) return status;
  }
  status = mount(link, number, offset, ring, o, out);
  if (status == LVD_OK) return LVD_OK;
  if (link->side == LVD_CHILD) {
    send_close(link, number);
  } else {
    lvd_os_lock(&link->lock);
    close_name(link, LVD_PARENT, number);
    lvd_os_unlock(&link->lock);
  }
  return status;
}

bool lvd_shared_give_up(lvd_link *link, const char *name) {
  lvd_os_lock(&link->lock);
  lvd_name *n = link->names;
  while (n && (!n->opened[LVD_PARENT] || n->closed[LVD_PARENT] || strcmp(n->name, name) != 0))
    n = n->next;
  bool alone = n && !n->opened[LVD_CHILD], refused = n && n->refused;
  if (alone) {
    n->opened[LVD_CHILD] = n->closed[LVD_CHILD] = true;
    if (n->offset) conclude_free(head_of(link, n));
  }
  lvd_os_unlock(&link->lock);
  return alone || refused;
}

lvd_status lvd_shared_leave(lvd_link *link, const char *name) {
  lvd_status status = lvd_link_state(link);
  if (status != LVD_OK) return status;
  lvd_record r = {.kind = LVD_RECORD_LEAVE};
  copy_name(r.name, name);
  if (link->side == LVD_CHILD) return lvd_link_send(link, &r);
  lvd_os_lock(&link->lock);
  status = leave_name(link, LVD_PARENT, r.name);
  lvd_os_unlock(&link->lock);
  return status;
}

/* Frees the stream together with its owner on this side. */
void lvd_shared_free(lvd_shared_stream *ss) {
  lvd_link *link = ss->link;
  lvd_os_lock(&link->lock);
  for (int end = 0; end < 2; end++)
    if (lvd_load_relaxed_u32(&ss->mine[end]) && is_open(ss->slot, end))
      conclude(ss->slot, end, LVD_OK);
  conclude_free(ss->slot);
  if (ss->previous)
    ss->previous->next = ss->next;
  else
    link->streams = ss->next;
  if (ss->next) ss->next->previous = ss->previous;
  link->bell.wake(&link->bell);
  lvd_os_shared_unmap(ss->slot, link->unit, ss->ring);
  if (link->side == LVD_PARENT) close_name(link, LVD_PARENT, ss->number);
  lvd_os_unlock(&link->lock);
  if (link->side == LVD_CHILD) send_close(link, ss->number);
  free(ss);
}

bool lvd_shared_take(lvd_link *link, const lvd_record *r) {
  if (link->side == LVD_PARENT && r->kind == LVD_RECORD_OPEN) {
    answer_open(link, r);
  } else if (link->side == LVD_CHILD && r->kind == LVD_RECORD_OPENED) {
    take_opened(link, r);
  } else if (link->side == LVD_PARENT && r->kind == LVD_RECORD_CLOSE) {
    lvd_os_lock(&link->lock);
    close_name(link, LVD_CHILD, r->number);
    lvd_os_unlock(&link->lock);
  } else if (link->side == LVD_PARENT && r->kind == LVD_RECORD_LEAVE) {
    lvd_record named = *r;
    named.name[LVD_FIBER_NAME - 1] = 0;
    lvd_os_lock(&link->lock);
    leave_name(link, LVD_CHILD, named.name);
    lvd_os_unlock(&link->lock);
  } else {
    return false;
  }
  return true;
}
