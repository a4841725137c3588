/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which fiber or thread waits for which, in words. */
#include "crowd.h"
#include "link.h"
#include "story.h"

#include <stdlib.h>

/* One on a circle of those that wait for nothing but the next, without a time limit; c->count: there
 * is none. */
static uint32_t find_circle(const lvd_crowd *c) {
  for (uint32_t start = 0; start < c->count; start++) {
    uint32_t i = start;
    lvd_hold_up h;
    while (i < c->count && c->mark[i] == 0 && c->member[i].wants == 1 && !c->member[i].timed &&
           lvd_crowd_held_up(c, i, 0, &h)) {
      c->mark[i] = start + 1;
      i = h.other;
    }
    if (i < c->count && c->mark[i] == start + 1) return i;
  }
  return c->count;
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

static void say_who(story *s, const lvd_crowd *c, uint32_t i) {
  const lvd_member *m = &c->member[i];
  char name[LVD_FIBER_NAME];
  if (m->fiber) {
    say(s, "%s", m->fiber->entity.name);
  } else {
    lvd_port_thread_name(m->thread->thread, name, sizeof name);
    say(s, "the thread %s", name);
  }
}

/* The other side of a stream, in words; nothing, if there is nobody. */
static void say_other(story *s, const lvd_crowd *c, const lvd_hold_up *h) {
  if (h->other == c->count && h->turn == LVD_TURN_NOBODYS) return;
  say(s, "; ");
  if (h->other < c->count)
    say_who(s, c, h->other);
  else
    say(s, "%s", h->turn == LVD_TURN_PROCESS ? lvd_link_name(h->s->shared->link) : "the program");
  say(s, " has to %s it", h->room ? "empty" : "fill");
}

static void tell(story *s, const lvd_crowd *c, uint32_t i, const lvd_hold_up *h) {
  say(s, "  ");
  say_who(s, c, i);
  say(s, " waits for ");
  if (h->end) {
    say(s, "the end of ");
    if (h->other < c->count)
      say_who(s, c, h->other);
    else
      say(s, "another fiber");
    say(s, "\n");
    return;
  }
  if (h->call) {
    say(s, "what it has called in %s\n", lvd_unit_name(h->call->unit));
    return;
  }
  if (h->blocked) {
    static const char *const what[] = {[LVD_BLOCKED_IN_CALL] = "a call that blocks",
                                       [LVD_BLOCKED_IN_QUEUE] =
                                           "a thread for a call that blocks: all are in one",
                                       [LVD_BLOCKED_AT_DESCRIPTOR] = "a descriptor"};
    say(s, "%s\n", what[h->blocked]);
    return;
  }
  if (!h->s) {
    say(s, "an event\n");
    return;
  }
  const lvd_channel *ch = h->s->channel;
  uint32_t fill = lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[0].head);
  say(s, h->room ? "room for %u in the stream %s" : "%u of the stream %s", h->n, h->s->name);
  say(s, " (%u of %u)", fill, h->s->face.put.capacity);
  if (h->turn == LVD_TURN_NOBODYS) say(s, ", whose other end nobody has taken");
  say_other(s, c, h);
  say(s, "\n");
}

/* A thread that waits for nothing but the end of the application. */
static void tell_of_end(story *s, const lvd_crowd *c, uint32_t i) {
  if (!c->member[i].thread || c->member[i].wants) return;
  say(s, "  ");
  say_who(s, c, i);
  say(s, " waits for the end of %s\n", c->app->name);
}

/* What processes have said of themselves when they were asked (knot.h). */
static void tell_others(story *s, const lvd_app *app) {
  for (const lvd_unit *u = app->units; u; u = u->next) {
    const lvd_link *link = lvd_unit_link(u);
    if (link && link->knot.answered && link->knot.story_length)
      say(s, "in %s:\n%s", lvd_unit_name(u), link->knot.story);
  }
}

static size_t write_story(lvd_app *app, char *text, size_t size, bool still) {
  story s = {text, size, 0};
  lvd_crowd c;
  if (text && size) text[0] = 0;
  lvd_port_lock(&app->blocks_lock);
  if (lvd_crowd_of(app, &c, still)) {
    uint32_t first = find_circle(&c), i = first, running = 0;
    lvd_hold_up h;
    memset(c.mark, 0, c.most * sizeof *c.mark);
    if (first < c.count) say(&s, "in a circle, each waits for the next:\n");
    for (; i < c.count && !c.mark[i] && lvd_crowd_held_up(&c, i, 0, &h); i = h.other) {
      c.mark[i] = 1;
      tell(&s, &c, i, &h);
    }
    bool heading = false;
    for (i = 0; i < c.count; i++) {
      for (uint32_t n = c.mark[i] ? 1 : 0; lvd_crowd_held_up(&c, i, n, &h); n++) {
        if (!heading && first < c.count) say(&s, "besides:\n");
        heading = true;
        tell(&s, &c, i, &h);
      }
      running += !c.member[i].rests;
    }
    for (i = c.fibers; c.fibers && i < c.count; i++) tell_of_end(&s, &c, i);
    uint32_t all = lvd_load_relaxed_u32(&app->fibers);
    if (c.count == c.most && all > c.fibers) say(&s, "and %u more fibers\n", all - c.fibers);
    if (still) tell_others(&s, app);
    if (running) say(&s, "%u of %u fibers can go on\n", running, c.fibers);
  }
  lvd_crowd_free(&c);
  lvd_port_unlock(&app->blocks_lock);
  return s.length;
}

size_t lvd_fibers_tell(lvd_app *app, char *text, size_t size) {
  return write_story(app, text, size, true);
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
