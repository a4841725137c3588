/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Builds the wait-for graph of an application, and finds what each node waits for. */
#include "wait_graph.h"
#include "../stream/stream.h"

#include <stdlib.h>

LVD_RACY_READ static void gather(lvd_entity *e, void *argument) {
  lvd_wait_graph *c = argument;
  lvd_fiber *f = (lvd_fiber *)e;
  if (c->count >= c->capacity) return;
  if (c->still) f->number = c->count;
  uint32_t state = lvd_load_relaxed_u32(&e->state);
  bool rests = state == LVD_IDLE;
  c->node[c->count++] = (lvd_wait_node){.fiber = f,
                                        .want = f->want,
                                        .wants = rests ? f->wants : 0,
                                        .timed = f->timer.set,
                                        .rests = rests,
                                        .runs = state == LVD_RUNNING || state == LVD_NOTIFIED};
}

static void gather_threads(lvd_wait_graph *c) {
  for (lvd_thread_waiter *w = lvd_thread_waiters_first(); w && c->count < c->capacity; w = w->next)
    if (w->app == c->app && !w->timed)
      c->node[c->count++] =
          (lvd_wait_node){.thread = w, .want = w->want, .wants = w->wants, .rests = true};
}

enum { RUNNING_FIBERS_MAX = 256 }; /* limit while fibers run */

bool lvd_wait_graph_build(lvd_app *app, lvd_wait_graph *c, bool still) {
  uint32_t threads = 0, fibers = lvd_load_acquire_u32(&app->fibers) + 16;
  if (!still && fibers > RUNNING_FIBERS_MAX) fibers = RUNNING_FIBERS_MAX;
  memset(c, 0, sizeof *c);
  c->app = app;
  c->still = still;
  lvd_thread_waiters_lock();
  for (const lvd_thread_waiter *w = lvd_thread_waiters_first(); w; w = w->next)
    threads += w->app == app && !w->timed;
  c->node = calloc(fibers + threads, sizeof *c->node);
  c->mark = calloc(fibers + threads, sizeof *c->mark);
  if (!c->node || !c->mark) return false;
  c->capacity = fibers;
  lvd_fibers_each(app, gather, c);
  c->fibers = c->count;
  c->capacity += threads;
  gather_threads(c);
  return true;
}

void lvd_wait_graph_free(lvd_wait_graph *c) {
  lvd_thread_waiters_unlock();
  free(c->node);
  free(c->mark);
}

uint32_t lvd_wait_graph_index(const lvd_wait_graph *c, const lvd_fiber *f) {
  if (!f) return c->count;
  if (c->still)
    return f->number < c->fibers && c->node[f->number].fiber == f ? f->number : c->count;
  for (uint32_t i = 0; i < c->fibers; i++)
    if (c->node[i].fiber == f) return i;
  return c->count;
}

uint32_t lvd_wait_graph_owner(const lvd_wait_graph *c, lvd_user user) {
  if (user.fiber) return lvd_wait_graph_index(c, user.fiber);
  for (uint32_t i = c->fibers; i < c->count; i++)
    if (c->node[i].thread->user == user.id) return i;
  return c->count;
}

static void set_stream(const lvd_wait_graph *c, uint32_t i, stream *s, lvd_wait_edge *h) {
  const stream_end *e = h->room ? &s->receiver : &s->sender;
  void *owner = lvd_load_relaxed_ptr(&e->owner);
  h->s = s;
  if (owner) {
    h->owner = e->fiber ? LVD_OWNER_FIBER : LVD_OWNER_THREAD;
    h->other = lvd_wait_graph_owner(c, (lvd_user){owner, e->fiber});
  } else if (s->shared && lvd_shared_is_theirs(s->shared, !h->room)) {
    h->owner = LVD_OWNER_PROCESS;
  } else {
    for (uint32_t k = 0; k < s->parties; k++) {
      uint32_t other = lvd_wait_graph_owner(c, s->party[k]);
      if (other != i && other < c->count) h->other = other;
    }
  }
}

static void set_awaited(const lvd_wait_graph *c, uint32_t i, lvd_wait_edge *h) {
  lvd_awaited a = lvd_wait_item_awaited(h->want);
  const lvd_fiber *f = a.call ? lvd_load_acquire_ptr(&a.call->fiber) : a.end;
  if (a.s) set_stream(c, i, a.s, h);
  if (a.call && !f) h->call = a.call; /* otherwise it runs in this process */
  if (!f) return;
  h->end = true;
  h->other = lvd_wait_graph_index(c, f);
}

/* What a fiber that may be running waits for: compares addresses with those of known objects. */
LVD_RACY_READ static void set_known(const lvd_wait_graph *c, uint32_t i, const lvd_wait_item *want,
                                    lvd_wait_edge *h) {
  for (stream *s = c->app->streams; s && !h->s; s = s->next)
    if (h->room ? want->room == &s->base.producer : want->elements == &s->base.consumer)
      set_stream(c, i, s, h);
  for (uint32_t k = 0; k < c->fibers && !h->s && !h->end; k++)
    if (want->event && want->event == c->node[k].fiber->end) {
      h->other = k;
      h->end = true;
    }
}

LVD_RACY_READ bool lvd_wait_graph_blocked(const lvd_wait_graph *c, uint32_t i, uint32_t nth,
                                          lvd_wait_edge *h) {
  const lvd_wait_node *m = &c->node[i];
  const lvd_fiber *f = m->fiber;
  if (nth >= m->wants) return false;
  const unsigned char *at = (const unsigned char *)(m->want + nth);
  if (f && !c->still &&
      (at < f->low + f->guard || at + sizeof(lvd_wait_item) > (const unsigned char *)f))
    return false;
  const lvd_wait_item *want = (const lvd_wait_item *)(const void *)at;
  *h = (lvd_wait_edge){.n = want->n, .room = want->room != NULL, .other = c->count};
  if (f && want->event == &f->unblocked) h->blocked = lvd_load_relaxed_u32(&f->blocked);
  if (c->still || !f) {
    h->want = want;
    set_awaited(c, i, h);
  } else {
    set_known(c, i, want, h);
  }
  return true;
}

lvd_awaited lvd_wait_item_awaited(const lvd_wait_item *want) {
  const lvd_wait_point *wait_point = lvd_wait_item_point(want);
  lvd_awaited a = {0};
  if (!wait_point || want->source) return a;
  if (wait_point->kind == LVD_SLEEPS_AT_STREAM) {
    a.s = ((const stream_end *)wait_point)->stream;
    a.app = a.s->app;
  } else if (wait_point->kind == LVD_SLEEPS_AT_END) {
    a.end = (const lvd_fiber *)((const char *)want->event - offsetof(lvd_fiber, done));
    a.app = a.end->entity.app;
  } else if (wait_point->kind == LVD_SLEEPS_AT_CALL) {
    a.call = (const lvd_call *)((const char *)want->event - offsetof(lvd_call, returned));
    a.app = a.call->unit->app;
  }
  return a;
}

lvd_app *lvd_app_awaited(const lvd_wait_item *want) { return lvd_wait_item_awaited(want).app; }
