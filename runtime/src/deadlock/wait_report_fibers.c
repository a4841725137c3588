/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which fiber or thread waits for which, in words. */
#include "../stream/stream.h"
#include "deadlock_report.h"
#include "wait_report.h"

#include <stdlib.h>

bool lvd_streams_await_threads(lvd_app *app) {
  bool any = false;
  lvd_os_lock(&app->blocks_lock);
  for (const stream *s = app->streams; s; s = s->next) {
    const stream_end *end[2] = {&s->sender, &s->receiver};
    for (int i = 0; i < 2; i++) any |= lvd_load_acquire_ptr(&end[i]->owner) && !end[i]->fiber;
    any |= s->shared && lvd_shared_is_alive(s->shared);
  }
  for (const lvd_unit *u = app->units; u; u = u->next)
    any |= u->kind->awaited && u->kind->awaited(u);
  lvd_os_unlock(&app->blocks_lock);
  return any;
}

/* ---- in words ----------------------------------------------------------------------------- */

void lvd_say_member(story *s, const lvd_crowd *c, uint32_t i) {
  const lvd_member *m = &c->member[i];
  char name[LVD_FIBER_NAME];
  if (m->fiber) {
    say(s, "%s", m->fiber->entity.name);
  } else {
    lvd_os_thread_name(m->thread->thread, name, sizeof name);
    say(s, "the thread %s", name);
  }
}

void lvd_say_hold_up(story *s, const lvd_crowd *c, const lvd_hold_up *h) {
  static const char *const blocked[] = {[LVD_BLOCKED_IN_CALL] = "a call that blocks",
                                        [LVD_BLOCKED_IN_QUEUE] =
                                            "a thread for a call that blocks: all are in one",
                                        [LVD_BLOCKED_AT_DESCRIPTOR] = "a descriptor"};
  if (h->end) {
    say(s, "the end of ");
    if (h->other < c->count)
      lvd_say_member(s, c, h->other);
    else
      say(s, "another fiber");
  } else if (h->call) {
    say(s, "what it has called in %s", lvd_unit_name(h->call->unit));
  } else if (h->blocked) {
    say(s, "%s", blocked[h->blocked]);
  } else if (!h->s) {
    say(s, "an event");
  } else {
    const lvd_channel *ch = h->s->channel;
    uint32_t fill = lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[0].head);
    say(s, h->room ? "room for %u in the stream %s" : "%u of the stream %s", h->n, h->s->name);
    say(s, " (%u of %u)", fill, h->s->face.put.capacity);
    if (h->turn == LVD_TURN_NOBODYS) say(s, ", whose other end nobody has taken");
  }
}

/* ---- somebody, here or in a process that has told of itself ------------------------------------ */

typedef struct node {
  lvd_link *link; /* null: a member of the crowd, here */
  uint32_t who;   /* his number; among those here the crowd's count: nobody */
} node;

static bool is_somebody(const lvd_crowd *c, node at) { return at.link || at.who < c->count; }

/* The other side of it has answered the last question (deadlock_detect.h). */
static bool has_told(const lvd_link *link) { return link && link->knot.answered; }

/* The nth thing that one of theirs waits for; null: there are not so many. */
static lvd_line *line_of(node at, uint32_t nth) {
  lvd_knot *k = &at.link->knot;
  for (uint32_t i = 0; i < k->lines; i++)
    if (k->line[i].said.who == at.who && nth-- == 0) return &k->line[i];
  return NULL;
}

/* Who of theirs has what is waited for here. */
static node theirs(const lvd_crowd *c, lvd_link *link, const lvd_a32 *told, const lvd_a32 *by) {
  node at = {link, lvd_load_relaxed_u32(by)};
  bool said = has_told(link) && lvd_load_relaxed_u32(told) == link->knot.answered;
  return said && line_of(at, 0) ? at : (node){NULL, c->count};
}

static node whose_turn(const lvd_crowd *c, const lvd_hold_up *h) {
  node other = {NULL, c->count};
  if (h->call) other = theirs(c, lvd_unit_link(h->call->unit), &h->call->told, &h->call->told_by);
  if (c->still && h->s && h->s->shared &&
      (h->turn == LVD_TURN_PROCESS || h->turn == LVD_TURN_NOBODYS)) {
    const lvd_shared_stream *ss = h->s->shared;
    int end = h->room ? LVD_RECEIVER : LVD_SENDER;
    other = theirs(c, ss->link, &ss->told[end], &ss->told_by[end]);
  }
  return other.link ? other : (node){NULL, h->other};
}

/* Whom he waits for with the nth thing that he waits for. */
static node next_of(const lvd_crowd *c, node at, uint32_t nth) {
  const node nobody = {NULL, c->count};
  lvd_hold_up h;
  if (!at.link) return lvd_crowd_held_up(c, at.who, nth, &h) ? whose_turn(c, &h) : nobody;
  const lvd_line *l = line_of(at, nth);
  if (!l || (!l->said.other && !l->user.who)) return nobody;
  if (!l->said.other) return (node){NULL, lvd_crowd_user(c, l->user)};
  node other = {at.link, l->said.other - 1};
  return line_of(other, 0) ? other : nobody;
}

static bool waits_for_one(const lvd_crowd *c, node at) {
  if (!at.link) return c->member[at.who].wants == 1 && !c->member[at.who].timed;
  return line_of(at, 0) && line_of(at, 0)->said.alone;
}

static uint32_t *mark_of(const lvd_crowd *c, node at) {
  return at.link ? &line_of(at, 0)->mark : &c->mark[at.who];
}

/* One on a circle of those that wait for nothing but the next, without a time limit; or nobody. It is
 * one of ours: no process that has told waits for another but through us. */
static node find_circle(const lvd_crowd *c) {
  for (uint32_t start = 0; start < c->count; start++) {
    node at = {NULL, start};
    while (is_somebody(c, at) && *mark_of(c, at) == 0 && waits_for_one(c, at)) {
      *mark_of(c, at) = start + 1;
      at = next_of(c, at, 0);
    }
    if (!is_somebody(c, at) || *mark_of(c, at) != start + 1) continue;
    while (at.link) at = next_of(c, at, 0);
    return at;
  }
  return (node){NULL, c->count};
}

static void unmark(const lvd_crowd *c) {
  memset(c->mark, 0, c->most * sizeof *c->mark);
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    for (uint32_t i = 0; has_told(link) && i < link->knot.lines; i++) link->knot.line[i].mark = 0;
  }
}

/* ---- lines -------------------------------------------------------------------------------------- */

static void say_node(story *s, const lvd_crowd *c, node at, const lvd_link *under) {
  if (!at.link) {
    lvd_say_member(s, c, at.who);
  } else {
    say(s, "%s", line_of(at, 0)->name);
    if (at.link != under) say(s, " in %s", lvd_link_name(at.link));
  }
}

/* What the other side of a stream has to do, in words. */
static void say_turn(story *s, const lvd_crowd *c, node other, const char *unknown, bool room,
                     const lvd_link *under) {
  if (!is_somebody(c, other) && !unknown) return;
  say(s, "; ");
  if (is_somebody(c, other))
    say_node(s, c, other, under);
  else
    say(s, "%s", unknown);
  say(s, " has to %s it", room ? "empty" : "fill");
}

static void tell_ours(story *s, const lvd_crowd *c, const lvd_hold_up *h) {
  node other = whose_turn(c, h);
  lvd_say_hold_up(s, c, h);
  if (h->s)
    say_turn(s, c, other,
             h->turn == LVD_TURN_NOBODYS   ? NULL
             : h->turn == LVD_TURN_PROCESS ? lvd_link_name(h->s->shared->link)
                                           : "the program",
             h->room, NULL);
  if (h->call && other.link) {
    say(s, ": ");
    say_node(s, c, other, other.link);
  }
}

static void tell_theirs(story *s, const lvd_crowd *c, node other, const lvd_line *l,
                        const lvd_link *under) {
  say(s, "%s", l->said.text);
  if (l->said.turn == LVD_LINE_FILLS || l->said.turn == LVD_LINE_EMPTIES)
    say_turn(s, c, other, l->said.item ? "the program" : NULL, l->said.turn == LVD_LINE_EMPTIES,
             under);
  else if (l->said.item && is_somebody(c, other)) {
    say(s, ": ");
    say_node(s, c, other, under);
  }
}

/* `under`: whose lines these are, anyway. */
static void tell(story *s, const lvd_crowd *c, node at, uint32_t nth, const lvd_link *under) {
  lvd_hold_up h;
  say(s, "  ");
  say_node(s, c, at, under);
  say(s, " waits for ");
  if (at.link)
    tell_theirs(s, c, next_of(c, at, nth), line_of(at, nth), under);
  else if (lvd_crowd_held_up(c, at.who, nth, &h))
    tell_ours(s, c, &h);
  say(s, "\n");
}

/* A thread that waits for nothing but the end of the application. */
static void tell_of_end(story *s, const lvd_crowd *c, uint32_t i) {
  if (!c->member[i].thread || c->member[i].wants) return;
  say(s, "  ");
  lvd_say_member(s, c, i);
  say(s, " waits for the end of %s\n", c->app->name);
}

/* It has its worker, and waits for nothing that we would know of. For how long is told when others may wonder. */
LVD_READS_LIVE static void tell_of_run(story *s, const lvd_entity *e) {
  enum { LONG_MS = 100 };
  const lvd_worker *w = &e->app->rt->worker[lvd_load_relaxed_u32(&e->worker)];
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  uint64_t ms = lvd_runs_ns(e) / 1000000;
  bool sleeps = number && lvd_os_thread_is_blocked(number);
  say(s, "  %s %s", e->name, sleeps ? "sleeps in the system" : "computes");
  if (ms >= LONG_MS)
    say(s, ", and has had worker %u for %u.%u s", w->index % w->rt->workers, (uint32_t)(ms / 1000),
        (uint32_t)(ms / 100 % 10));
  say(s, "\n");
}

size_t lvd_fibers_runs(lvd_app *app, char *text, size_t size) {
  story s = {text, size, 0};
  lvd_crowd c;
  lvd_os_lock(&app->blocks_lock);
  if (lvd_crowd_of(app, &c, false))
    for (uint32_t i = 0; i < c.fibers; i++)
      if (c.member[i].runs) tell_of_run(&s, &c.member[i].fiber->entity);
  lvd_crowd_free(&c);
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

/* Those that wait for nobody. */
static void tell_of_awake(story *s, const lvd_crowd *c) {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < c->fibers; i++) {
    const lvd_member *m = &c->member[i];
    if (m->runs) tell_of_run(s, &m->fiber->entity);
    ready += !m->runs && !m->rests;
  }
  if (ready)
    say(s, "%u of %u fibers wait%s turn on a worker\n", ready, c->fibers,
        ready == 1 ? "s for its" : " for their");
}

/* What processes have said of themselves when they were asked, but for the circle. */
static void tell_others(story *s, const lvd_crowd *c) {
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    bool heading = false;
    for (uint32_t i = 0, nth = 0; has_told(link) && i < link->knot.lines; i++) {
      node at = {link, link->knot.line[i].said.who};
      nth = line_of(at, nth + 1) == &link->knot.line[i] ? nth + 1 : 0;
      if (*mark_of(c, at)) continue;
      if (!heading) say(s, "in %s:\n", lvd_unit_name(u));
      heading = true;
      tell(s, c, at, nth, link);
    }
  }
}

static size_t write_story(lvd_app *app, char *text, size_t size, bool still) {
  story s = {text, size, 0};
  lvd_crowd c;
  if (text && size) text[0] = 0;
  lvd_os_lock(&app->blocks_lock);
  if (lvd_crowd_of(app, &c, still)) {
    node first = find_circle(&c), at = first;
    bool circle = is_somebody(&c, first), heading = false;
    lvd_hold_up h;
    unmark(&c);
    if (circle) say(&s, "in a circle, each waits for the next:\n");
    for (; circle && !*mark_of(&c, at); at = next_of(&c, at, 0)) {
      *mark_of(&c, at) = 1;
      tell(&s, &c, at, 0, NULL);
    }
    for (uint32_t i = 0; i < c.count; i++) {
      for (uint32_t n = c.mark[i]; lvd_crowd_held_up(&c, i, n, &h); n++) {
        if (circle && !heading) say(&s, "besides:\n");
        heading = true;
        tell(&s, &c, (node){NULL, i}, n, NULL);
      }
    }
    for (uint32_t i = c.fibers; c.fibers && i < c.count; i++) tell_of_end(&s, &c, i);
    uint32_t all = lvd_load_relaxed_u32(&app->fibers);
    if (c.count == c.most && all > c.fibers) say(&s, "and %u more fibers\n", all - c.fibers);
    if (still) tell_others(&s, &c);
    tell_of_awake(&s, &c);
  }
  lvd_crowd_free(&c);
  lvd_os_unlock(&app->blocks_lock);
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
  lvd_os_lock(&app->gate);
  bool still = lvd_load_acquire_u32(&app->live) == 0 &&
               lvd_load_acquire_u32(&app->phase) == LVD_PHASE_RUNNING;
  size_t length = write_story(app, text, size, still);
  lvd_os_unlock(&app->gate);
  return length;
}
