/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fibers of an application, and what each waits for. */
#include "crowd.h"

#include <stdlib.h>

static void gather(lvd_entity *e, void *argument) {
  lvd_crowd *c = argument;
  lvd_fiber *f = (lvd_fiber *)e;
  if (c->count >= c->most) return;
  if (c->still) f->number = c->count;
  c->fiber[c->count++] = f;
}

enum { SOME = 256 }; /* of those that do not keep still */

bool lvd_crowd_of(lvd_app *app, lvd_crowd *c, bool still) {
  c->app = app;
  c->still = still;
  c->count = 0;
  c->most = lvd_load_acquire_u32(&app->fibers) + 16;
  if (!still && c->most > SOME) c->most = SOME;
  c->fiber = calloc(c->most, sizeof *c->fiber);
  c->mark = calloc(c->most, sizeof *c->mark);
  if (c->fiber && c->mark) lvd_fibers_each(app, gather, c);
  return c->fiber && c->mark;
}

void lvd_crowd_free(lvd_crowd *c) {
  free(c->fiber);
  free(c->mark);
}

uint32_t lvd_crowd_number(const lvd_crowd *c, const lvd_fiber *f) {
  if (c->still) return f->number < c->count && c->fiber[f->number] == f ? f->number : c->count;
  for (uint32_t i = 0; i < c->count; i++)
    if (c->fiber[i] == f) return i;
  return c->count;
}

/* `f`, if it is one that we have found ourselves, or all keep still. */
static const lvd_fiber *known(const lvd_crowd *c, const lvd_fiber *f) {
  return f && (c->still || lvd_crowd_number(c, f) < c->count) ? f : NULL;
}

static void at_stream(const lvd_crowd *c, const lvd_fiber *f, stream *s, lvd_hold_up *h) {
  const stream_end *e = h->room ? &s->receiver : &s->sender;
  h->s = s;
  if (lvd_load_relaxed_ptr(&e->owner)) {
    h->other = known(c, e->fiber);
    h->turn = e->fiber ? LVD_TURN_FIBERS : LVD_TURN_THREADS;
  } else if (s->shared && lvd_shared_is_theirs(s->shared, !h->room)) {
    h->turn = LVD_TURN_PROCESS;
  } else {
    for (uint32_t i = 0; i < s->parties; i++)
      if (s->party[i] && s->party[i] != f) h->other = known(c, s->party[i]);
  }
}

LVD_READS_LIVE bool lvd_crowd_held_up(const lvd_crowd *c, const lvd_fiber *f, uint32_t nth,
                                      lvd_hold_up *h) {
  if (lvd_load_relaxed_u32(&f->entity.state) != LVD_IDLE || nth >= f->wants) return false;
  const unsigned char *at = (const unsigned char *)(f->want + nth);
  if (!c->still && (at < f->low + f->guard || at + sizeof(lvd_want) > (const unsigned char *)f))
    return false;
  const lvd_want *want = (const lvd_want *)(const void *)at;
  *h = (lvd_hold_up){.n = want->n, .room = want->room != NULL};
  if (want->event == &f->unblocked) h->blocked = lvd_load_relaxed_u32(&f->blocked);
  if (c->still) {
    lvd_sleeper *sleeper = lvd_want_sleeper(want);
    h->want = want;
    if (sleeper->kind == LVD_SLEEPS_AT_STREAM) at_stream(c, f, ((stream_end *)sleeper)->stream, h);
    if (sleeper->kind == LVD_SLEEPS_AT_END)
      h->other = (const lvd_fiber *)((const char *)want->event - offsetof(lvd_fiber, done));
    if (sleeper->kind == LVD_SLEEPS_AT_CALL) {
      const lvd_call *call =
          (const lvd_call *)((const char *)want->event - offsetof(lvd_call, returned));
      h->other = lvd_load_acquire_ptr(&call->fiber); /* of this process; else a child's */
      if (!h->other) h->call = call;
    }
    h->end = h->other && !h->s;
    return true;
  }
  for (stream *s = c->app->streams; s && !h->s; s = s->next)
    if (h->room ? want->room == &s->face.put : want->elements == &s->face.get)
      at_stream(c, f, s, h);
  for (uint32_t i = 0; i < c->count && !h->s && !h->end; i++)
    if (want->event && want->event == c->fiber[i]->end) {
      h->other = c->fiber[i];
      h->end = true;
    }
  return true;
}
