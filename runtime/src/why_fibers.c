/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which fiber waits for which, in words; and whether some wait for each other alone.
 *
 * What a fiber waits for lies on its own stack. While its application is at rest, with the gate
 * closed, it stays there, and pointers lead from fiber to fiber. While it runs, what is read may be
 * stale: then pointers are compared with what we find ourselves, never followed, and only of some
 * fibers. */
#include "story.h"
#include "stream.h"
#include "unit.h"

#include <stdlib.h>

/* One thing that a fiber waits for, and whose turn it is. */
typedef struct hold_up {
  const stream *s; /* a stream, ... */
  bool room;       /* ... for room in it, or for elements */
  uint32_t n;
  const lvd_fiber *ended; /* or for this one's end */
  const lvd_fiber *other; /* the fiber whose turn it is; null: a thread's, or nobody's */
  bool claimed;           /* the other end of the stream is somebody's */
} hold_up;

typedef struct crowd {
  lvd_app *app;
  bool still; /* at rest, and the gate is closed */
  const lvd_fiber **fiber;
  uint32_t *mark;
  uint32_t count, most;
} crowd;

static void gather(lvd_entity *e, void *argument) {
  crowd *c = argument;
  lvd_fiber *f = (lvd_fiber *)e;
  if (c->count >= c->most) return;
  if (c->still) f->number = c->count;
  c->fiber[c->count++] = f;
}

enum { SOME = 256 }; /* of those that do not keep still */

static bool crowd_of(lvd_app *app, crowd *c, bool still) {
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
static void crowd_free(crowd *c) {
  free(c->fiber);
  free(c->mark);
}

static void at_stream(const crowd *c, const stream *s, hold_up *h) {
  const stream_end *e = h->room ? &s->receiver : &s->sender;
  h->s = s;
  h->claimed = lvd_load_relaxed_ptr(&e->owner) != NULL;
  if (c->still) {
    h->other = e->fiber;
    return;
  }
  for (uint32_t i = 0; i < c->count; i++)
    if (e->fiber == c->fiber[i]) h->other = c->fiber[i];
}

/* The nth thing that `f` waits for; false: there are not so many, or it does not wait. */
LVD_READS_LIVE static bool held_up(const crowd *c, const lvd_fiber *f, uint32_t nth, hold_up *h) {
  if (lvd_load_relaxed_u32(&f->entity.state) != LVD_IDLE || nth >= f->wants) return false;
  const unsigned char *at = (const unsigned char *)(f->want + nth);
  if (at < f->low + f->guard || at + sizeof(lvd_want) > (const unsigned char *)f) return false;
  const lvd_want *want = (const lvd_want *)(const void *)at;
  memset(h, 0, sizeof *h);
  h->n = want->n;
  h->room = want->room != NULL;
  if (c->still) {
    lvd_sleeper *sleeper = lvd_want_sleeper(want);
    if (sleeper->kind == LVD_SLEEPS_AT_STREAM) at_stream(c, ((stream_end *)sleeper)->stream, h);
    if (sleeper->kind == LVD_SLEEPS_AT_END)
      h->ended = h->other =
          (const lvd_fiber *)((const char *)want->event - offsetof(lvd_fiber, done));
    return true;
  }
  for (const stream *s = c->app->streams; s && !h->s; s = s->next)
    if (h->room ? want->room == &s->face.put : want->elements == &s->face.get) at_stream(c, s, h);
  for (uint32_t i = 0; i < c->count && !h->s && !h->ended; i++)
    if (want->event == &c->fiber[i]->done) h->ended = h->other = c->fiber[i];
  return true;
}

static uint32_t number_of(const crowd *c, const lvd_fiber *f) {
  if (c->still) return f->number < c->count && c->fiber[f->number] == f ? f->number : c->count;
  for (uint32_t i = 0; i < c->count; i++)
    if (c->fiber[i] == f) return i;
  return c->count;
}

/* A fiber on a circle of fibers that wait for nothing but the next, without a time limit; c->count:
 * there is none. */
static uint32_t find_circle(const crowd *c) {
  for (uint32_t start = 0; start < c->count; start++) {
    uint32_t i = start;
    hold_up h;
    while (i < c->count && c->mark[i] == 0 && c->fiber[i]->wants == 1 && !c->fiber[i]->timed &&
           held_up(c, c->fiber[i], 0, &h)) {
      c->mark[i] = start + 1;
      i = h.other ? number_of(c, h.other) : c->count;
    }
    if (i < c->count && c->mark[i] == start + 1) return i;
  }
  return c->count;
}

/* At rest, with the gate closed. */
bool lvd_fibers_in_circle(lvd_app *app) {
  crowd c;
  lvd_port_lock(&app->blocks_lock); /* streams do not come or go */
  bool circle = crowd_of(app, &c, true) && find_circle(&c) < c.count;
  crowd_free(&c);
  lvd_port_unlock(&app->blocks_lock);
  return circle;
}

bool lvd_streams_await_threads(lvd_app *app) {
  bool any = false;
  lvd_port_lock(&app->blocks_lock);
  for (const stream *s = app->streams; s; s = s->next) {
    const stream_end *end[2] = {&s->sender, &s->receiver};
    for (int i = 0; i < 2; i++) any |= lvd_load_acquire_ptr(&end[i]->owner) && !end[i]->fiber;
    any |= s->shared && lvd_shared_is_alive(s->shared);
  }
  for (const lvd_unit *u = app->units; u; u = u->next)
    any |= u->kind->awaited && u->kind->awaited(u);
  lvd_port_unlock(&app->blocks_lock);
  return any;
}

/* ---- in words ----------------------------------------------------------------------------- */

static void tell(story *s, const lvd_fiber *f, const hold_up *h) {
  say(s, "  %s waits for ", f->name);
  if (h->ended) {
    say(s, "the end of %s\n", h->ended->name);
    return;
  }
  if (!h->s) {
    say(s, "an event\n");
    return;
  }
  const lvd_channel *ch = h->s->channel;
  uint32_t fill = lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[0].head);
  say(s, h->room ? "room for %u in the stream %s" : "%u of the stream %s", h->n, h->s->name);
  say(s, " (%u of %u); ", fill, h->s->face.put.capacity);
  if (h->other)
    say(s, "%s has to %s it\n", h->other->name, h->room ? "empty" : "fill");
  else if (h->s->shared)
    say(s, "another process has to %s it\n", h->room ? "empty" : "fill");
  else if (h->claimed)
    say(s, "the program has to %s it\n", h->room ? "empty" : "fill");
  else
    say(s, "nobody has its other end\n");
}

static size_t write_story(lvd_app *app, char *text, size_t size, bool still) {
  story s = {text, size, 0};
  crowd c;
  if (text && size) text[0] = 0;
  lvd_port_lock(&app->blocks_lock);
  if (crowd_of(app, &c, still)) {
    uint32_t first = find_circle(&c), i = first, running = 0;
    hold_up h;
    memset(c.mark, 0, c.most * sizeof *c.mark);
    if (first < c.count) say(&s, "in a circle, each waits for the next:\n");
    for (; i < c.count && !c.mark[i] && held_up(&c, c.fiber[i], 0, &h);
         i = h.other ? number_of(&c, h.other) : c.count) {
      c.mark[i] = 1;
      tell(&s, c.fiber[i], &h);
    }
    bool heading = false;
    for (i = 0; i < c.count; i++) {
      for (uint32_t n = c.mark[i] ? 1 : 0; held_up(&c, c.fiber[i], n, &h); n++) {
        if (!heading && first < c.count) say(&s, "besides:\n");
        heading = true;
        tell(&s, c.fiber[i], &h);
      }
      running += lvd_load_relaxed_u32(&c.fiber[i]->entity.state) != LVD_IDLE;
    }
    uint32_t all = lvd_load_relaxed_u32(&app->fibers);
    if (all > c.count) say(&s, "and %u more fibers\n", all - c.count);
    if (running) say(&s, "%u of %u fibers can go on\n", running, c.count);
  }
  crowd_free(&c);
  lvd_port_unlock(&app->blocks_lock);
  return s.length;
}

/* What fibers waited for when they were told that they wait for each other. */
void lvd_fibers_story(lvd_app *app) {
  size_t size = write_story(app, NULL, 0, true) + 1;
  char *text = malloc(size);
  if (!text) return;
  write_story(app, text, size, true);
  void *none = NULL;
  if (!lvd_cas_acq_rel_ptr(&app->story, &none, text)) free(text);
}

size_t lvd_fibers_why(lvd_app *app, char *text, size_t size) {
  const char *before = lvd_load_acquire_ptr(&app->story);
  if (before) {
    story s = {text, size, 0};
    say(&s, "%s", before);
    return s.length;
  }
  lvd_port_lock(&app->gate);
  bool still = lvd_load_acquire_u32(&app->live) == 0 &&
               lvd_load_acquire_u32(&app->phase) == LVD_PHASE_RUNNING;
  size_t length = write_story(app, text, size, still);
  lvd_port_unlock(&app->gate);
  return length;
}
