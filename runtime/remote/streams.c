/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams behind a window: the host says where they lie. A stream is opened with the end that is used
 * first, since whose an end is only the host's words say: two sides that take one need a
 * compare-and-swap that reaches both. The ring lies there once: a span ends at its edge. */
#include "remote.h"

#include <string.h>

enum { STREAMS = 32 };

typedef struct far_stream {
  lvd_stream face; /* first */
  far_task *owner; /* null: nobody has an end yet */
  bool used, opened, closed;
  uint32_t capacity, threshold, number, asked;
  lvd_status refused; /* once it was asked for and not given */
  bool sender, answered;
  lvd_record answer;
  lvd_waiter *bells;
  char name[LVD_FAR_STREAM_NAME];
} far_stream;

static far_stream streams[STREAMS];
static uint32_t last_asked;

lvd_unit *lvd_unit_parent(void) { return (lvd_unit *)(void *)streams; /* there is one */ }

static uint32_t capacity_of(const lvd_stream_options *o) {
  uint32_t usual = (16u << 10) / o->elem_size;
  return o->capacity ? o->capacity : usual < 64 ? 64 : usual;
}

lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *o, lvd_stream **out) {
  if (unit != lvd_unit_parent() || !o || !out || !o->name || !o->name[0] ||
      strlen(o->name) >= LVD_FAR_STREAM_NAME || !o->elem_size ||
      o->elem_size > LVD_STREAM_ELEMENT || o->capacity > LVD_CHANNEL_CAPACITY)
    return LVD_E_ARGUMENT;
  far_stream *s = NULL;
  for (int i = 0; i < STREAMS && !s; i++)
    if (!streams[i].used) s = &streams[i];
  if (!s) return LVD_E_LIMIT;
  memset(s, 0, sizeof *s);
  s->used = true;
  s->owner = lvd_far_self;
  s->capacity = capacity_of(o);
  s->threshold = o->threshold ? o->threshold : 1;
  s->face.put.elem_size = s->face.get.elem_size = o->elem_size;
  s->face.time_limit_ns = o->time_limit_ns ? o->time_limit_ns : -1;
  s->bells = lvd_far_bell();
  memcpy(s->name, o->name, strlen(o->name) + 1);
  *out = &s->face;
  return LVD_OK;
}

const char *lvd_stream_name(const lvd_stream *s) { return ((const far_stream *)s)->name; }

/* ---- opening --------------------------------------------------------------------------------- */

static void send_close(uint32_t number) {
  const lvd_record r = {.kind = LVD_RECORD_CLOSE, .number = number};
  lvd_far_send(&r);
}

void lvd_far_opened(const lvd_record *r) {
  for (int i = 0; i < STREAMS; i++)
    if (streams[i].used && streams[i].asked && streams[i].asked == r->number) {
      streams[i].answer = *r;
      streams[i].answered = true;
    }
}

static bool is_answered(void *of) { return ((far_stream *)of)->answered; }

/* What the host has said is checked as far as it is used. */
static lvd_status attach(far_stream *s, uint32_t unit) {
  uint64_t offset = s->answer.offset, extent = s->answer.extent, room = lvd_far_room(offset);
  if (!offset || offset % LVD_LINE || room < unit || extent > room - unit) return LVD_E_CORRUPT;
  lvd_channel *ch = (lvd_channel *)(void *)lvd_far_at(offset);
  size_t size = (size_t)(unit + 2 * extent); /* as the host has mapped it */
  lvd_cache_drop(ch, sizeof *ch);
  uint32_t elem_size = s->face.put.elem_size;
  lvd_status status = lvd_producer_attach_shared(&s->face.put, ch, size, elem_size, &s->bells);
  if (status == LVD_OK)
    status = lvd_consumer_attach_shared(&s->face.get, ch, size, elem_size, 0, s->bells);
  if (status != LVD_OK) return status;
  if ((uint64_t)(s->face.put.mask + 1) * elem_size > extent) return LVD_E_CORRUPT;
  s->face.put.mirrored = s->face.get.mirrored = false;
  s->face.get.threshold = s->threshold;
  return LVD_OK;
}

static lvd_status open_as(far_stream *s, bool sender) {
  if (s->closed) return LVD_E_STATE;
  if (s->opened) return s->sender == sender && s->owner == lvd_far_self ? LVD_OK : LVD_E_STATE;
  if (s->refused != LVD_OK) return s->refused;
  if (s->asked) return LVD_E_STATE; /* another task opens it */
  lvd_record r = {.kind = LVD_RECORD_OPEN,
                  .size = s->face.put.elem_size,
                  .room = s->capacity,
                  .priority = 1 + (sender ? LVD_SENDER : LVD_RECEIVER)};
  memcpy(r.name, s->name, sizeof s->name);
  r.number = s->asked = ++last_asked ? last_asked : ++last_asked;
  s->owner = lvd_far_self;
  lvd_far_send(&r);
  lvd_status status = lvd_far_wait(is_answered, s, -1);
  if (status == LVD_OK) status = (lvd_status)s->answer.status;
  if (status == LVD_OK) {
    s->number = s->answer.room;
    status = attach(s, ((const lvd_segment *)(const void *)lvd_far_at(0))->unit);
    if (status != LVD_OK) send_close(s->number);
  }
  s->sender = sender;
  s->opened = status == LVD_OK;
  s->refused = status;
  return status;
}

/* ---- waiting --------------------------------------------------------------------------------- */

/* Who waits lets others see what he has put, and have what he has got. */
static void flush_all(void) {
  for (int i = 0; i < STREAMS; i++) {
    far_stream *s = &streams[i];
    if (!s->used || !s->opened || s->closed || s->owner != lvd_far_self) continue;
    if (s->sender)
      lvd_flush(&s->face.put);
    else
      lvd_release(&s->face.get);
  }
}

typedef struct wanted {
  far_stream *s;
  uint32_t n;
} wanted;

static bool has_room(void *of) {
  const wanted *w = of;
  lvd_producer *p = &w->s->face.put;
  if (lvd_room(p, w->n) >= w->n || p->corrupt || lvd_deserted(p)) return true;
  return lvd_far_arms && lvd_producer_arm(p, w->n);
}

static bool has_elements(void *of) {
  const wanted *w = of;
  lvd_consumer *c = &w->s->face.get;
  if (lvd_elements(c, w->n) >= w->n || c->corrupt) return true;
  if (lvd_load_relaxed_u32(&c->channel->state) != LVD_OPEN) return true;
  return lvd_far_arms && lvd_consumer_arm(c, w->n);
}

lvd_status lvd_stream_wait_room(lvd_stream *face, uint32_t n, int64_t timeout_ns) {
  wanted w = {(far_stream *)face, n};
  lvd_status status = open_as(w.s, true);
  if (status != LVD_OK) return status;
  if (n > face->put.capacity) return LVD_E_ARGUMENT;
  if (!has_room(&w)) {
    flush_all();
    status = lvd_far_wait(has_room, &w, timeout_ns);
  }
  lvd_producer_disarm(&face->put);
  if (face->put.corrupt) return LVD_E_CORRUPT;
  if (lvd_deserted(&face->put)) return LVD_E_PEER;
  return status;
}

lvd_status lvd_stream_wait_elements(lvd_stream *face, uint32_t n, int64_t timeout_ns) {
  wanted w = {(far_stream *)face, n};
  lvd_status status = open_as(w.s, false);
  if (status != LVD_OK) return status;
  if (n > face->get.capacity) return LVD_E_ARGUMENT;
  if (!has_elements(&w)) {
    flush_all();
    status = lvd_far_wait(has_elements, &w, timeout_ns);
  }
  lvd_consumer_disarm(&face->get);
  if (face->get.corrupt) return LVD_E_CORRUPT;
  if (status != LVD_OK || lvd_elements(&face->get, n) >= n) return status;
  uint32_t state = lvd_load_acquire_u32(&face->get.channel->state);
  return lvd_elements_refresh(&face->get) >= n ? LVD_OK : lvd_end_status(&face->get, state);
}

/* ---- the end --------------------------------------------------------------------------------- */

bool lvd_stream_is_mine(const lvd_stream *face, bool sender) {
  const far_stream *s = (const far_stream *)face;
  return s->opened && !s->closed && s->owner == lvd_far_self && s->sender == sender;
}

lvd_status lvd_stream_end(lvd_stream *face, lvd_status why) {
  lvd_status status = open_as((far_stream *)face, true);
  if (status != LVD_OK) return status;
  lvd_end(&face->put, why);
  ((far_stream *)face)->closed = true;
  return LVD_OK;
}

lvd_status lvd_stream_leave(lvd_stream *face) {
  lvd_status status = open_as((far_stream *)face, false);
  if (status != LVD_OK) return status;
  lvd_leave(&face->get);
  ((far_stream *)face)->closed = true;
  return LVD_OK;
}

/* What was put and never pushed is not to be written over what lies there next. */
static void give_back(const far_stream *s) {
  const lvd_producer *p = &s->face.put;
  if (s->sender) lvd_cache_drop(p->data, (size_t)(p->mask + 1) * p->elem_size);
}

bool lvd_stream_close(lvd_stream *face) {
  far_stream *s = (far_stream *)face;
  if (!s->opened || s->closed || s->owner != lvd_far_self) return false;
  return (s->sender ? lvd_stream_end(face, LVD_OK) : lvd_stream_leave(face)) == LVD_OK;
}

lvd_status lvd_stream_destroy(lvd_stream *face) {
  far_stream *s = (far_stream *)face;
  if (s->owner && s->owner != lvd_far_self) return LVD_E_STATE;
  lvd_stream_close(face);
  if (s->opened) {
    give_back(s);
    send_close(s->number);
  } else if (!s->asked || s->refused == LVD_E_ARGUMENT) {
    /* What the host has by that name, with elements of another size, is not to wait for somebody else. */
    lvd_record r = {.kind = LVD_RECORD_LEAVE};
    memcpy(r.name, s->name, sizeof s->name);
    lvd_far_send(&r);
  }
  s->used = false;
  return LVD_OK;
}

void lvd_far_end_streams(far_task *t, lvd_status status) {
  for (int i = 0; i < STREAMS; i++) {
    far_stream *s = &streams[i];
    if (s->used && s->owner == t && s->sender && s->opened && !s->closed)
      lvd_stream_end(&s->face, status);
  }
}

void lvd_far_leave_streams(far_task *t) {
  for (int i = 0; i < STREAMS; i++)
    if (streams[i].used && streams[i].owner == t) lvd_stream_destroy(&streams[i].face);
}
