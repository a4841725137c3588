/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams behind a window. The host allocates them. An end of a stream is requested from the host
 * when it is first used, since only the host records the owner of an end: claiming it from two
 * sides would need a compare-and-swap that works across both. The ring is mapped once here, so a
 * span ends at its edge. */
#include "remote.h"

#include <string.h>

enum { STREAMS = 32 };

typedef struct remote_stream {
  lvd_stream base;    /* first */
  remote_task *owner; /* null: no task has used it yet */
  bool used, opened, closed;
  uint32_t capacity, threshold, number, request_number;
  lvd_status refused; /* the status of a request that was refused */
  bool sender, answered;
  lvd_record answer;
  lvd_waiter *doorbells;
  char name[LVD_REMOTE_STREAM_NAME_BYTES];
} remote_stream;

static remote_stream streams[STREAMS];
static uint32_t last_request;

lvd_unit *lvd_unit_parent(void) {
  return (lvd_unit *)(void *)streams; /* there is only one parent */
}

static uint32_t capacity_of(const lvd_stream_options *o) {
  uint32_t usual = (16u << 10) / o->elem_size;
  return o->capacity ? o->capacity : usual < 64 ? 64 : usual;
}

lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *o, lvd_stream **out) {
  if (unit != lvd_unit_parent() || !o || !out || !o->name || !o->name[0] ||
      strlen(o->name) >= LVD_REMOTE_STREAM_NAME_BYTES || !o->elem_size ||
      o->elem_size > LVD_STREAM_ELEMENT || o->capacity > LVD_CHANNEL_CAPACITY)
    return LVD_E_ARGUMENT;
  remote_stream *s = NULL;
  for (int i = 0; i < STREAMS && !s; i++)
    if (!streams[i].used) s = &streams[i];
  if (!s) return LVD_E_LIMIT;
  memset(s, 0, sizeof *s);
  s->used = true;
  s->owner = lvd_remote_self;
  s->capacity = capacity_of(o);
  s->threshold = o->threshold ? o->threshold : 1;
  s->base.producer.elem_size = s->base.consumer.elem_size = o->elem_size;
  s->base.timeout_ns = o->timeout_ns ? o->timeout_ns : -1;
  s->doorbells = lvd_remote_doorbell();
  memcpy(s->name, o->name, strlen(o->name) + 1);
  *out = &s->base;
  return LVD_OK;
}

const char *lvd_stream_name(const lvd_stream *s) { return ((const remote_stream *)s)->name; }

/* ---- opening --------------------------------------------------------------------------------- */

static void send_close(uint32_t number) {
  const lvd_record r = {.kind = LVD_RECORD_CLOSE, .number = number};
  lvd_remote_send(&r);
}

void lvd_remote_stream_opened(const lvd_record *r) {
  for (int i = 0; i < STREAMS; i++)
    if (streams[i].used && streams[i].request_number && streams[i].request_number == r->number) {
      streams[i].answer = *r;
      streams[i].answered = true;
    }
}

static bool is_answered(void *of) { return ((remote_stream *)of)->answered; }

/* What the host has sent is checked as far as it is used. */
static lvd_status attach(remote_stream *s, uint32_t unit) {
  uint64_t offset = s->answer.offset, extent = s->answer.extent, room = lvd_remote_room(offset);
  if (!offset || offset % LVD_CACHE_LINE || room < unit || extent > room - unit)
    return LVD_E_CORRUPT;
  lvd_channel *ch = (lvd_channel *)(void *)lvd_remote_at(offset);
  size_t size = (size_t)(unit + 2 * extent); /* as mapped by the host */
  lvd_cache_invalidate(ch, sizeof *ch);
  uint32_t elem_size = s->base.producer.elem_size;
  lvd_status status =
      lvd_producer_attach_shared(&s->base.producer, ch, size, elem_size, &s->doorbells);
  if (status == LVD_OK)
    status = lvd_consumer_attach_shared(&s->base.consumer, ch, size, elem_size, 0, s->doorbells);
  if (status != LVD_OK) return status;
  if ((uint64_t)(s->base.producer.mask + 1) * elem_size > extent) return LVD_E_CORRUPT;
  s->base.producer.mirrored = s->base.consumer.mirrored = false;
  s->base.consumer.threshold = s->threshold;
  return LVD_OK;
}

static lvd_status open_as(remote_stream *s, bool sender) {
  if (s->closed) return LVD_E_STATE;
  if (s->opened) return s->sender == sender && s->owner == lvd_remote_self ? LVD_OK : LVD_E_STATE;
  if (s->refused != LVD_OK) return s->refused;
  if (s->request_number) return LVD_E_STATE; /* another task is opening it */
  lvd_record r = {.kind = LVD_RECORD_OPEN,
                  .size = s->base.producer.elem_size,
                  .room = s->capacity,
                  .priority = 1 + (sender ? LVD_SENDER : LVD_RECEIVER)};
  memcpy(r.name, s->name, sizeof s->name);
  r.number = s->request_number = ++last_request ? last_request : ++last_request;
  s->owner = lvd_remote_self;
  lvd_remote_send(&r);
  lvd_status status = lvd_remote_wait(is_answered, s, -1);
  if (status == LVD_OK) status = (lvd_status)s->answer.status;
  if (status == LVD_OK) {
    s->number = s->answer.room;
    status = attach(s, ((const lvd_segment *)(const void *)lvd_remote_at(0))->unit);
    if (status != LVD_OK) send_close(s->number);
  }
  s->sender = sender;
  s->opened = status == LVD_OK;
  s->refused = status;
  return status;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Before a wait: publishes what the task has put, and releases what it has got. */
static void flush_all(void) {
  for (int i = 0; i < STREAMS; i++) {
    remote_stream *s = &streams[i];
    if (!s->used || !s->opened || s->closed || s->owner != lvd_remote_self) continue;
    if (s->sender)
      lvd_flush(&s->base.producer);
    else
      lvd_release(&s->base.consumer);
  }
}

typedef struct wanted {
  remote_stream *s;
  uint32_t n;
} wanted;

static bool has_room(void *of) {
  const wanted *w = of;
  lvd_producer *p = &w->s->base.producer;
  if (lvd_room(p, w->n) >= w->n || p->corrupt || lvd_consumers_closed(p)) return true;
  return lvd_remote_arming && lvd_producer_arm(p, w->n);
}

static bool has_elements(void *of) {
  const wanted *w = of;
  lvd_consumer *c = &w->s->base.consumer;
  if (lvd_elements(c, w->n) >= w->n || c->corrupt) return true;
  if (lvd_load_relaxed_u32(&c->channel->state) != LVD_OPEN) return true;
  return lvd_remote_arming && lvd_consumer_arm(c, w->n);
}

lvd_status lvd_stream_wait_room(lvd_stream *stream, uint32_t n, int64_t timeout_ns) {
  wanted w = {(remote_stream *)stream, n};
  lvd_status status = open_as(w.s, true);
  if (status != LVD_OK) return status;
  if (n > stream->producer.capacity) return LVD_E_ARGUMENT;
  if (!has_room(&w)) {
    flush_all();
    status = lvd_remote_wait(has_room, &w, timeout_ns);
  }
  lvd_producer_disarm(&stream->producer);
  if (stream->producer.corrupt) return LVD_E_CORRUPT;
  if (lvd_consumers_closed(&stream->producer)) return LVD_E_PEER_GONE;
  return status;
}

lvd_status lvd_stream_wait_elements(lvd_stream *stream, uint32_t n, int64_t timeout_ns) {
  wanted w = {(remote_stream *)stream, n};
  lvd_status status = open_as(w.s, false);
  if (status != LVD_OK) return status;
  if (n > stream->consumer.capacity) return LVD_E_ARGUMENT;
  if (!has_elements(&w)) {
    flush_all();
    status = lvd_remote_wait(has_elements, &w, timeout_ns);
  }
  lvd_consumer_disarm(&stream->consumer);
  if (stream->consumer.corrupt) return LVD_E_CORRUPT;
  if (status != LVD_OK || lvd_elements(&stream->consumer, n) >= n) return status;
  uint32_t state = lvd_load_acquire_u32(&stream->consumer.channel->state);
  return lvd_elements_refresh(&stream->consumer) >= n ? LVD_OK
                                                      : lvd_end_status(&stream->consumer, state);
}

/* ---- closing --------------------------------------------------------------------------------- */

bool lvd_stream_is_owner(const lvd_stream *stream, bool sender) {
  const remote_stream *s = (const remote_stream *)stream;
  return s->opened && !s->closed && s->owner == lvd_remote_self && s->sender == sender;
}

lvd_status lvd_stream_close_sender(lvd_stream *stream, lvd_status why) {
  lvd_status status = open_as((remote_stream *)stream, true);
  if (status != LVD_OK) return status;
  lvd_producer_close(&stream->producer, why);
  ((remote_stream *)stream)->closed = true;
  return LVD_OK;
}

lvd_status lvd_stream_close_receiver(lvd_stream *stream) {
  lvd_status status = open_as((remote_stream *)stream, false);
  if (status != LVD_OK) return status;
  lvd_consumer_close(&stream->consumer);
  ((remote_stream *)stream)->closed = true;
  return LVD_OK;
}

/* Elements that were put and never pushed must not be written back over what is stored there
 * next. */
static void discard_unpushed(const remote_stream *s) {
  const lvd_producer *p = &s->base.producer;
  if (s->sender) lvd_cache_invalidate(p->data, (size_t)(p->mask + 1) * p->elem_size);
}

bool lvd_stream_close(lvd_stream *stream) {
  remote_stream *s = (remote_stream *)stream;
  if (!s->opened || s->closed || s->owner != lvd_remote_self) return false;
  return (s->sender ? lvd_stream_close_sender(stream, LVD_OK)
                    : lvd_stream_close_receiver(stream)) == LVD_OK;
}

lvd_status lvd_stream_destroy(lvd_stream *stream) {
  remote_stream *s = (remote_stream *)stream;
  if (s->owner && s->owner != lvd_remote_self) return LVD_E_STATE;
  lvd_stream_close(stream);
  if (s->opened) {
    discard_unpushed(s);
    send_close(s->number);
  } else if (!s->request_number || s->refused == LVD_E_ARGUMENT) {
    /* The host's stream of that name, with elements of another size, must not wait for another
     * task. */
    lvd_record r = {.kind = LVD_RECORD_LEAVE};
    memcpy(r.name, s->name, sizeof s->name);
    lvd_remote_send(&r);
  }
  s->used = false;
  return LVD_OK;
}

void lvd_remote_end_streams(remote_task *t, lvd_status status) {
  for (int i = 0; i < STREAMS; i++) {
    remote_stream *s = &streams[i];
    if (s->used && s->owner == t && s->sender && s->opened && !s->closed)
      lvd_stream_close_sender(&s->base, status);
  }
}

void lvd_remote_close_streams(remote_task *t) {
  for (int i = 0; i < STREAMS; i++)
    if (streams[i].used && streams[i].owner == t) lvd_stream_destroy(&streams[i].base);
}
