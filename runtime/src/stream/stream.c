/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streams: channels with ends that belong to fibers or threads.
 *
 * The first user of an end claims it by one compare-and-swap, on the way into its first wait (the
 * cached cursors of the other side start as full and empty, so the first access waits);
 * afterwards only waits check the owner. The ends of a fiber are on its list: when it waits,
 * whatever for, what it has pushed is flushed, and when it returns, its streams end. The same
 * holds for the ends of a thread; those are on a list that several threads may share. */
#include "stream.h"
#include "../channel/channel_ring.h"
#include "../sched/no_abandon.h"
#include "../wait/thread_waiters.h"

#include <stdlib.h>

enum { RING_BYTES = 16 * 1024, RING_SLOTS_MIN = 64, SPIN_US = 20 };

lvd_thread_list lvd_threads[1 << LVD_THREAD_LISTS_LOG2];

static stream *stream_of(lvd_stream *s) { return (stream *)s; }

lvd_status lvd_stream_check(const lvd_stream_options *o) {
  bool fits = o->elem_size > 0 && o->elem_size <= LVD_STREAM_ELEMENT &&
              o->capacity <= LVD_CHANNEL_CAPACITY && o->threshold <= LVD_CHANNEL_CAPACITY;
  return fits ? LVD_OK : LVD_E_ARGUMENT;
}

uint32_t lvd_stream_capacity(const lvd_stream_options *o) {
  if (o->capacity) return o->capacity;
  uint32_t capacity = RING_BYTES / o->elem_size;
  return capacity < RING_SLOTS_MIN ? RING_SLOTS_MIN : capacity;
}

static stream *new_stream(lvd_app *app, lvd_channel *ch, const lvd_stream_options *o) {
  stream *s = lvd_os_alloc(sizeof *s);
  if (!s) return NULL;
  uint32_t spin = lvd_spin_us(app->rt) ? SPIN_US : 0;
  s->app = app;
  s->channel = ch;
  copy_name(s->name, o->name ? o->name : "stream");
  lvd_wait_point_init(&s->sender.wait_point, spin);
  lvd_wait_point_init(&s->receiver.wait_point, spin);
  s->sender.wait_point.kind = s->receiver.wait_point.kind = LVD_SLEEPS_AT_STREAM;
  s->sender.stream = s->receiver.stream = s;
  s->sender.is_sender = true;
  static lvd_a32 last_serial;
  s->serial = lvd_add_relaxed_u32(&last_serial, 1);
  if (!o->threshold) lvd_threshold_begin(s);
  return s;
}

/* Adds the stream to its application; its handles are attached. */
static void enter(stream *s, const lvd_stream_options *o) {
  lvd_app *app = s->app;
  s->base.producer.self = &s->sender.wait_point.waiter;
  s->base.consumer.self = &s->receiver.wait_point.waiter;
  s->base.producer.threshold = (s->base.producer.capacity + 3) / 4;
  s->base.consumer.threshold = o->threshold ? o->threshold : 1;
  s->base.timeout_ns = o->timeout_ns ? o->timeout_ns : -1;
  lvd_os_lock(&app->blocks_lock);
  s->next = app->streams;
  if (s->next) s->next->previous = s;
  app->streams = s;
  lvd_os_unlock(&app->blocks_lock);
}

lvd_status lvd_stream_create(lvd_app *app, const lvd_stream_options *o, lvd_stream **out) {
  LVD_NO_ABANDON;
  if (!app || !o || !out) return LVD_E_ARGUMENT;
  lvd_channel *ch;
  lvd_status status = lvd_stream_check(o);
  if (status != LVD_OK) return status;
  uint32_t slots = lvd_ring_slots(lvd_stream_capacity(o), o->elem_size);
  if (!slots || (uint64_t)slots * o->elem_size > LVD_STREAM_BYTES)
    return lvd_limit("the ring of a stream is at most LVD_STREAM_BYTES: a smaller capacity");
  status = lvd_channel_create(o->elem_size, lvd_stream_capacity(o), 1, &ch);
  if (status != LVD_OK) return status;
  stream *s = new_stream(app, ch, o);
  if (!s) {
    lvd_channel_destroy(ch);
    return LVD_E_MEMORY;
  }
  bool fenced = app->rt->fenced;
  s->peer = lvd_stream_waiter(s, false);
  lvd_producer_attach(&s->base.producer, ch, &s->peer, fenced);
  lvd_consumer_attach(&s->base.consumer, ch, 0, &s->sender.wait_point.waiter, fenced);
  enter(s, o);
  *out = &s->base;
  return LVD_OK;
}

lvd_status lvd_stream_over(lvd_app *app, lvd_shared_stream *shared, lvd_channel *ch, size_t size,
                           const lvd_stream_options *o, lvd_stream **out) {
  stream *s = new_stream(app, ch, o);
  if (!s) return LVD_E_MEMORY;
  s->shared = shared;
  s->peer = lvd_hooks.shared.waiter(shared, false);
  lvd_status status =
      lvd_producer_attach_shared(&s->base.producer, ch, size, o->elem_size, &s->peer);
  if (status == LVD_OK)
    status = lvd_consumer_attach_shared(&s->base.consumer, ch, size, o->elem_size, 0,
                                        lvd_hooks.shared.waiter(shared, true));
  if (status != LVD_OK) {
    lvd_os_free(s, sizeof *s);
    return status;
  }
  enter(s, o);
  *out = &s->base;
  return LVD_OK;
}

/* Closes an end: nothing passes through it any more, and its peer is told. */
static void shut(stream_end *e, lvd_status why) {
  stream *s = e->stream;
  if (e->closed) return;
  e->closed = true;
  if (e->is_sender) {
    lvd_producer_close(&s->base.producer, why);
    /* So that the next put takes the slow path and is refused. */
    s->base.producer.limit = s->base.producer.put;
  } else {
    s->base.consumer.limit = s->base.consumer.got;
    lvd_consumer_close(&s->base.consumer);
  }
}

/* ---- the ends of threads -------------------------------------------------------------------- */

static lvd_thread_list *list_of(const void *thread) {
  uint64_t spread = (uint64_t)(uintptr_t)thread * 0x9e3779b97f4a7c15u;
  return &lvd_threads[spread >> (64 - LVD_THREAD_LISTS_LOG2)];
}

/* With the list's lock held. */
static void unlist(stream_end *e, lvd_thread_list *l) {
  if (e->previous)
    e->previous->next = e->next;
  else
    lvd_store_relaxed_ptr(&l->first, e->next);
  if (e->next) e->next->previous = e->previous;
}

/* At a thread's end: closes its ends, as for a procedure that returns. The address `thread` is not
 * reused while it is on the lists. A thread that frees one of the streams meanwhile waits for the
 * list's lock. */
static void end_thread(void *thread) {
  lvd_thread_list *l = list_of(thread);
  lvd_os_lock(&l->lock);
  for (stream_end *e = lvd_load_relaxed_ptr(&l->first), *next; e; e = next) {
    next = e->next;
    if (lvd_load_relaxed_ptr(&e->owner) != thread) continue;
    shut(e, LVD_OK);
    unlist(e, l);
    lvd_store_release_ptr(&e->owner, NULL);
  }
  lvd_os_unlock(&l->lock);
}

static void enter_list(stream_end *e, void *thread) {
  if (!lvd_this_worker()) lvd_os_at_thread_exit(LVD_EXIT_HOOK_STREAMS, end_thread, thread);
  lvd_thread_list *l = list_of(thread);
  lvd_os_lock(&l->lock);
  e->previous = NULL;
  e->next = lvd_load_relaxed_ptr(&l->first);
  if (e->next) e->next->previous = e;
  lvd_store_relaxed_ptr(&l->first, e);
  lvd_os_unlock(&l->lock);
}

/* No effect if the thread has ended meanwhile. */
static void leave_list(stream_end *e, const void *thread) {
  lvd_thread_list *l = list_of(thread);
  lvd_os_lock(&l->lock);
  if (lvd_load_relaxed_ptr(&e->owner) == thread) unlist(e, l);
  lvd_os_unlock(&l->lock);
}

/* ---- freeing -------------------------------------------------------------------------------- */

static void free_stream(stream *s) {
  stream_end *end[2] = {&s->sender, &s->receiver};
  for (int i = 0; i < 2; i++) {
    const void *owner = lvd_load_acquire_ptr(&end[i]->owner);
    if (owner && !end[i]->fiber) leave_list(end[i], owner);
  }
  if (s->shared)
    lvd_hooks.shared.free(s->shared);
  else
    lvd_channel_destroy(s->channel);
  lvd_os_free(s, sizeof *s);
}

lvd_status lvd_stream_destroy(lvd_stream *handle) {
  LVD_NO_ABANDON;
  if (!handle) return LVD_OK;
  stream *s = stream_of(handle);
  lvd_app *app = s->app;
  lvd_stream_close(handle);
  lvd_os_lock(&app->blocks_lock);
  if (lvd_load_acquire_ptr(&s->sender.owner) || lvd_load_acquire_ptr(&s->receiver.owner)) {
    lvd_os_unlock(&app->blocks_lock);
    return LVD_E_STATE;
  }
  if (s->previous)
    s->previous->next = s->next;
  else
    app->streams = s->next;
  if (s->next) s->next->previous = s->previous;
  lvd_os_unlock(&app->blocks_lock);
  free_stream(s);
  return LVD_OK;
}

void lvd_streams_free(lvd_app *app) {
  for (stream *s = app->streams, *next; s; s = next) {
    next = s->next;
    free_stream(s);
  }
  app->streams = NULL;
}

void lvd_stream_say_parties(lvd_stream *handle, const lvd_user party[2], uint32_t parties) {
  stream *s = stream_of(handle);
  lvd_os_lock(&s->app->blocks_lock);
  for (uint32_t i = 0; i < parties; i++) s->party[i] = party[i];
  s->parties = parties;
  lvd_os_unlock(&s->app->blocks_lock);
}

const char *lvd_stream_name(const lvd_stream *s) { return s ? ((const stream *)s)->name : ""; }

/* ---- claiming an end ------------------------------------------------------------------------ */

bool lvd_stream_is_owner(const lvd_stream *s, bool sender) {
  return s && lvd_stream_has(s, lvd_caller(), sender);
}

static lvd_status claim_end(stream_end *e) {
  void *me = lvd_caller(), *owner = lvd_load_relaxed_ptr(&e->owner);
  if (owner == me) return LVD_OK;
  if (owner || !lvd_cas_acquire_ptr(&e->owner, &owner, me)) return LVD_E_STATE;
  /* Only the owner can read reliably whether it is closed. */
  lvd_shared_stream *shared = e->stream->shared;
  if (e->closed || (shared && !lvd_hooks.shared.claim(shared, e->is_sender))) {
    lvd_store_release_ptr(&e->owner, NULL);
    return LVD_E_STATE;
  }
  lvd_fiber *f = lvd_fiber_self();
  if (!f) {
    enter_list(e, me);
    return LVD_OK;
  }
  e->fiber = f;
  e->previous = NULL;
  e->next = f->ends;
  if (f->ends) f->ends->previous = e;
  f->ends = e;
  return LVD_OK;
}

static void close_end(stream_end *e, lvd_status why);

/* Called with the lock of the streams of an application that has ended: closes the other end of
 * `e`, if `e` has an owner and the other end has none. */
static void end_other(stream_end *e, lvd_status outcome) {
  stream *s = e->stream;
  stream_end *other = e->is_sender ? &s->receiver : &s->sender;
  if (!s->shared && lvd_load_relaxed_ptr(&e->owner) && !lvd_load_relaxed_ptr(&other->owner) &&
      claim_end(other) == LVD_OK)
    close_end(other, outcome);
}

static lvd_status claim(stream_end *e) {
  if (lvd_load_relaxed_ptr(&e->owner) == lvd_caller()) return LVD_OK;
  lvd_status status = claim_end(e);
  if (status != LVD_OK) return status;
  stream *s = e->stream;
  lvd_os_lock(&s->app->blocks_lock);
  if (s->over) end_other(e, s->outcome);
  lvd_os_unlock(&s->app->blocks_lock);
  return LVD_OK;
}

lvd_status lvd_stream_take(lvd_stream *handle, bool sender) {
  stream *s = stream_of(handle);
  return claim(sender ? &s->sender : &s->receiver);
}

static void unclaim(stream_end *e) {
  if (e->fiber) {
    if (e->previous)
      e->previous->next = e->next;
    else
      e->fiber->ends = e->next;
    if (e->next) e->next->previous = e->previous;
    e->fiber = NULL;
  } else {
    leave_list(e, lvd_load_relaxed_ptr(&e->owner));
  }
  lvd_store_release_ptr(&e->owner, NULL);
}

/* Closes an end for good; called by its owner, or by its worker afterwards. */
static void close_end(stream_end *e, lvd_status why) {
  shut(e, why);
  unclaim(e);
}

lvd_status lvd_stream_close_sender(lvd_stream *handle, lvd_status why) {
  LVD_NO_ABANDON;
  stream_end *e = &stream_of(handle)->sender;
  lvd_status status = claim(e);
  if (status == LVD_OK) close_end(e, why);
  return status;
}

lvd_status lvd_stream_close_receiver(lvd_stream *handle) {
  LVD_NO_ABANDON;
  stream_end *e = &stream_of(handle)->receiver;
  lvd_status status = claim(e);
  if (status == LVD_OK) close_end(e, LVD_OK);
  return status;
}

/* All fibers have ended and released their ends: the owned ends belong to threads. A thread waits
 * without result for an end that has no owner, so such ends are closed. If neither end is owned,
 * a thread may still claim one for what a fiber has left in the stream. An end shared with
 * another process is not closed here. */
void lvd_streams_end(lvd_app *app, lvd_status outcome) {
  lvd_os_lock(&app->blocks_lock);
  for (stream *s = app->streams; s; s = s->next) {
    s->over = true; /* for threads that claim an end later */
    s->outcome = outcome;
    end_other(&s->sender, outcome);
    end_other(&s->receiver, outcome);
  }
  lvd_os_unlock(&app->blocks_lock);
}

bool lvd_stream_close(lvd_stream *handle) {
  LVD_NO_ABANDON;
  stream *s = stream_of(handle);
  void *me = lvd_caller();
  stream_end *end[2] = {&s->sender, &s->receiver};
  bool any = false;
  for (int i = 0; i < 2; i++)
    if (lvd_load_relaxed_ptr(&end[i]->owner) == me) {
      close_end(end[i], LVD_OK);
      any = true;
    }
  return any;
}

lvd_status lvd_stream_release_end(lvd_stream *handle) {
  LVD_NO_ABANDON;
  stream *s = stream_of(handle);
  void *me = lvd_caller();
  bool sender = lvd_load_relaxed_ptr(&s->sender.owner) == me,
       receiver = lvd_load_relaxed_ptr(&s->receiver.owner) == me;
  /* The limits are reset so that the next owner has to wait at its first access, where it claims
   * the end. */
  if (sender) {
    lvd_flush(&handle->producer);
    handle->producer.limit = handle->producer.put;
    unclaim(&s->sender);
  }
  if (receiver) {
    lvd_release(&handle->consumer);
    handle->consumer.limit = handle->consumer.got;
    unclaim(&s->receiver);
  }
  return sender || receiver ? LVD_OK : LVD_E_STATE;
}

static void flush_end(stream_end *e) {
  if (e->is_sender) {
    /* What was put and not pushed stays unpublished. */
    lvd_producer *p = &e->stream->base.producer;
    uint32_t unpushed = (uint32_t)(p->put - p->pushed);
    if (LVD_UNLIKELY(unpushed != lvd_load_relaxed_u32(&e->stream->unpushed)))
      lvd_store_relaxed_u32(&e->stream->unpushed, unpushed);
    if (lvd_load_relaxed_u32(&p->channel->flushed) == (uint32_t)p->pushed) return;
    lvd_store_relaxed_u32(&p->channel->flushed, (uint32_t)p->pushed);
    lvd_membarrier_light(p->fenced);
    lvd_wake_consumers(p, true);
  } else {
    lvd_consumer *c = &e->stream->base.consumer;
    if (lvd_load_relaxed_u32(&c->shared->released) == (uint32_t)c->popped) return;
    lvd_store_relaxed_u32(&c->shared->released, (uint32_t)c->popped);
    lvd_membarrier_light(c->fenced);
    lvd_wake_producer(c, true);
  }
}

void lvd_stream_ends_flush(lvd_fiber *f) {
  for (stream_end *e = f->ends; e; e = e->next) flush_end(e);
}

/* A thread has listed its own ends itself, so it reads reliably whether the list is empty. */
void lvd_stream_thread_flush(void) {
  LVD_NO_ABANDON;
  const void *me = lvd_caller();
  lvd_thread_list *l = list_of(me);
  if (!lvd_load_relaxed_ptr(&l->first)) return;
  lvd_os_lock(&l->lock);
  for (stream_end *e = lvd_load_relaxed_ptr(&l->first); e; e = e->next)
    if (lvd_load_relaxed_ptr(&e->owner) == me) flush_end(e);
  lvd_os_unlock(&l->lock);
}

void lvd_stream_ends_close(lvd_fiber *f, lvd_status outcome) {
  while (f->ends) close_end(f->ends, outcome);
}

/* ---- waiting -------------------------------------------------------------------------------- */

lvd_status lvd_stream_wait_room(lvd_stream *handle, uint32_t n, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!handle || n == 0 || n > handle->producer.capacity) return LVD_E_ARGUMENT;
  stream *s = stream_of(handle);
  lvd_status status = claim(&s->sender);
  if (status != LVD_OK) return status;
  lvd_app *app = s->app;
  lvd_thread_waiters_inside(app);
  status = lvd_wait_room(&handle->producer, n, timeout_ns);
  lvd_thread_waiters_outside(app);
  return status;
}

lvd_status lvd_stream_wait_elements(lvd_stream *handle, uint32_t n, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!handle || n == 0 || n > handle->consumer.capacity) return LVD_E_ARGUMENT;
  stream *s = stream_of(handle);
  lvd_status status = claim(&s->receiver);
  if (status != LVD_OK) return status;
  lvd_app *app = s->app;
  uint32_t which;
  lvd_wait_item want = {.elements = &handle->consumer, .n = n};
  lvd_thread_waiters_inside(app);
  if (!s->automatic.on || lvd_elements(&handle->consumer, n) >= n)
    status = lvd_wait_elements(&handle->consumer, n, timeout_ns);
  else
    status = lvd_threshold_wait(&want, 1, timeout_ns, &which);
  lvd_thread_waiters_outside(app);
  return status;
}

/* Streams after the last selected one come first, so that each gets its turn. */
lvd_status lvd_stream_select(lvd_stream *const *handle, uint32_t count, int64_t timeout_ns,
                             uint32_t *which) {
  LVD_NO_ABANDON;
  if (!handle || !which || count == 0 || count > LVD_WAIT_ITEMS_MAX) return LVD_E_ARGUMENT;
  lvd_wait_item want[LVD_WAIT_ITEMS_MAX];
  uint32_t first = 0, at = count;
  uint64_t last = 0;
  lvd_app *app =
      handle[0] ? stream_of(handle[0])->app : NULL; /* the common application; else null */
  for (uint32_t i = 0; i < count; i++) {
    if (!handle[i]) return LVD_E_ARGUMENT;
    if (stream_of(handle[i])->app != app) app = NULL;
    lvd_status status = claim(&stream_of(handle[i])->receiver);
    if (status != LVD_OK) return status;
    if (stream_of(handle[i])->selected <= last) continue;
    last = stream_of(handle[i])->selected;
    first = (i + 1) % count;
  }
  for (uint32_t i = 0; i < count; i++)
    want[i] = (lvd_wait_item){.elements = &handle[(first + i) % count]->consumer, .n = 1};
  if (app) lvd_thread_waiters_inside(app);
  lvd_status status = lvd_threshold_wait(want, count, timeout_ns, &at);
  if (at < count) { /* else no stream was selected */
    *which = (first + at) % count;
    stream_of(handle[*which])->selected = last + 1;
  }
  if (app) lvd_thread_waiters_outside(app);
  return status;
}

/* ---- counters ------------------------------------------------------------------------------- */

/* Callable while a fiber releases the end: its memory stays mapped, including the name. */
LVD_RACY_READ static void read_owner(const stream_end *e, char name[LVD_FIBER_NAME]) {
  const lvd_shared_stream *shared = e->stream->shared;
  const lvd_fiber *f = e->fiber;
  if (f)
    copy_name(name, f->entity.name);
  else if (lvd_load_relaxed_ptr(&e->owner))
    copy_name(name, "a thread");
  else if (shared && lvd_hooks.shared.is_theirs(shared, e->is_sender))
    copy_name(name, "another process");
}

/* The other process counts its own puts and gets; here they follow from the fill. */
LVD_RACY_READ static void read_stream(const stream *s, lvd_stream_counters *out) {
  const lvd_producer *p = &s->base.producer;
  const lvd_consumer *c = &s->base.consumer;
  memset(out, 0, sizeof *out);
  copy_name(out->name, s->name);
  read_owner(&s->sender, out->sender);
  read_owner(&s->receiver, out->receiver);
  out->elem_size = p->elem_size;
  out->capacity = p->capacity;
  out->fill =
      lvd_load_relaxed_u32(&s->channel->tail) - lvd_load_relaxed_u32(&s->channel->consumer[0].head);
  if (out->fill > p->capacity) out->fill = 0; /* the two were read at different times */
  out->threshold = c->threshold;
  out->automatic = s->automatic.on;
  out->put = p->pushed;
  out->got = c->popped;
  if (s->shared && lvd_hooks.shared.is_theirs(s->shared, true)) out->put = out->got + out->fill;
  if (s->shared && lvd_hooks.shared.is_theirs(s->shared, false)) out->got = out->put - out->fill;
  out->receiver_wakes = p->wakes;
  out->sender_wakes = c->wakes;
  out->receiver_waits = s->receiver.wait_point.sleeps;
  out->sender_waits = s->sender.wait_point.sleeps;
}

lvd_status lvd_stream_counters_read(const lvd_stream *handle, lvd_stream_counters *out) {
  if (!handle || !out) return LVD_E_ARGUMENT;
  read_stream((const stream *)handle, out);
  return LVD_OK;
}

lvd_status lvd_app_streams(lvd_app *app, lvd_stream_counters *out, uint32_t *count) {
  LVD_NO_ABANDON;
  if (!app || !count || (*count && !out)) return LVD_E_ARGUMENT;
  uint32_t n = 0;
  lvd_os_lock(&app->blocks_lock);
  for (const stream *s = app->streams; s; s = s->next, n++)
    if (n < *count) read_stream(s, &out[n]);
  lvd_os_unlock(&app->blocks_lock);
  *count = n;
  return LVD_OK;
}
