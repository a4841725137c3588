/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Which fiber or thread waits for which, in words. */
#include "../stream/stream.h"
#include "deadlock_report.h"
#include "wait_report.h"

#include <stdlib.h>

bool lvd_app_awaits_outside(lvd_app *app) {
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

void lvd_report_wait_node(text_buffer *s, const lvd_wait_graph *c, uint32_t i) {
  const lvd_wait_node *m = &c->member[i];
  char name[LVD_FIBER_NAME];
  if (m->fiber) {
    text_append(s, "%s", m->fiber->entity.name);
  } else {
    lvd_os_thread_name(m->thread->thread, name, sizeof name);
    text_append(s, "the thread %s", name);
  }
}

void lvd_report_wait_edge(text_buffer *s, const lvd_wait_graph *c, const lvd_wait_edge *h) {
  static const char *const blocked[] = {[LVD_BLOCKED_IN_CALL] = "a call that blocks",
                                        [LVD_BLOCKED_IN_QUEUE] =
                                            "a thread for a call that blocks: all are in one",
                                        [LVD_BLOCKED_AT_DESCRIPTOR] = "a descriptor"};
  if (h->end) {
    text_append(s, "the end of ");
    if (h->other < c->count)
      lvd_report_wait_node(s, c, h->other);
    else
      text_append(s, "another fiber");
  } else if (h->call) {
    text_append(s, "what it has called in %s", lvd_unit_name(h->call->unit));
  } else if (h->blocked) {
    text_append(s, "%s", blocked[h->blocked]);
  } else if (!h->s) {
    text_append(s, "an event");
  } else {
    const lvd_channel *ch = h->s->channel;
    uint32_t fill = lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[0].head);
    text_append(s, h->room ? "room for %u in the stream %s" : "%u of the stream %s", h->n,
                h->s->name);
    text_append(s, " (%u of %u)", fill, h->s->face.put.capacity);
    if (h->turn == LVD_OWNER_NONE) text_append(s, ", whose other end nobody has taken");
  }
}

/* ---- somebody, here or in a process that has told of itself ------------------------------------ */

typedef struct node {
  lvd_link *link; /* null: a member of the crowd, here */
  uint32_t who;   /* his number; among those here the crowd's count: nobody */
} node;

static bool is_somebody(const lvd_wait_graph *c, node at) { return at.link || at.who < c->count; }

/* The other side of it has answered the last question (deadlock_detect.h). */
static bool has_told(const lvd_link *link) { return link && link->knot.answered; }

/* The nth thing that one of theirs waits for; null: there are not so many. */
static lvd_wait_info *line_of(node at, uint32_t nth) {
  lvd_deadlock_probe *k = &at.link->knot;
  for (uint32_t i = 0; i < k->lines; i++)
    if (k->line[i].said.who == at.who && nth-- == 0) return &k->line[i];
  return NULL;
}

/* Who of theirs has what is waited for here. */
static node theirs(const lvd_wait_graph *c, lvd_link *link, const lvd_a32 *told,
                   const lvd_a32 *by) {
  node at = {link, lvd_load_relaxed_u32(by)};
  bool said = has_told(link) && lvd_load_relaxed_u32(told) == link->knot.answered;
  return said && line_of(at, 0) ? at : (node){NULL, c->count};
}

static node whose_turn(const lvd_wait_graph *c, const lvd_wait_edge *h) {
  node other = {NULL, c->count};
  if (h->call) other = theirs(c, lvd_unit_link(h->call->unit), &h->call->told, &h->call->told_by);
  if (c->still && h->s && h->s->shared &&
      (h->turn == LVD_OWNER_PROCESS || h->turn == LVD_OWNER_NONE)) {
    const lvd_shared_stream *ss = h->s->shared;
    int end = h->room ? LVD_RECEIVER : LVD_SENDER;
    other = theirs(c, ss->link, &ss->told[end], &ss->told_by[end]);
  }
  return other.link ? other : (node){NULL, h->other};
}

/* Whom he waits for with the nth thing that he waits for. */
static node next_of(const lvd_wait_graph *c, node at, uint32_t nth) {
  const node nobody = {NULL, c->count};
  lvd_wait_edge h;
  if (!at.link) return lvd_wait_graph_blocked(c, at.who, nth, &h) ? whose_turn(c, &h) : nobody;
  const lvd_wait_info *l = line_of(at, nth);
  if (!l || (!l->said.other && !l->user.who)) return nobody;
  if (!l->said.other) return (node){NULL, lvd_wait_graph_owner(c, l->user)};
  node other = {at.link, l->said.other - 1};
  return line_of(other, 0) ? other : nobody;
}

static bool waits_for_one(const lvd_wait_graph *c, node at) {
  if (!at.link) return c->member[at.who].wants == 1 && !c->member[at.who].timed;
  return line_of(at, 0) && line_of(at, 0)->said.alone;
}

static uint32_t *mark_of(const lvd_wait_graph *c, node at) {
  return at.link ? &line_of(at, 0)->mark : &c->mark[at.who];
}

/* One on a circle of those that wait for nothing but the next, without a time limit; or nobody. It is
 * one of ours: no process that has told waits for another but through us. */
static node find_circle(const lvd_wait_graph *c) {
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

static void unmark(const lvd_wait_graph *c) {
  memset(c->mark, 0, c->most * sizeof *c->mark);
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    for (uint32_t i = 0; has_told(link) && i < link->knot.lines; i++) link->knot.line[i].mark = 0;
  }
}

/* ---- lines -------------------------------------------------------------------------------------- */

static void say_node(text_buffer *s, const lvd_wait_graph *c, node at, const lvd_link *under) {
  if (!at.link) {
    lvd_report_wait_node(s, c, at.who);
  } else {
    text_append(s, "%s", line_of(at, 0)->name);
    if (at.link != under) text_append(s, " in %s", lvd_link_name(at.link));
  }
}

/* What the other side of a stream has to do, in words. */
static void say_turn(text_buffer *s, const lvd_wait_graph *c, node other, const char *unknown,
                     bool room, const lvd_link *under) {
  if (!is_somebody(c, other) && !unknown) return;
  text_append(s, "; ");
  if (is_somebody(c, other))
    say_node(s, c, other, under);
  else
    text_append(s, "%s", unknown);
  text_append(s, " has to %s it", room ? "empty" : "fill");
}

static void tell_ours(text_buffer *s, const lvd_wait_graph *c, const lvd_wait_edge *h) {
  node other = whose_turn(c, h);
  lvd_report_wait_edge(s, c, h);
  if (h->s)
    say_turn(s, c, other,
             h->turn == LVD_OWNER_NONE      ? NULL
             : h->turn == LVD_OWNER_PROCESS ? lvd_link_name(h->s->shared->link)
                                            : "the program",
             h->room, NULL);
  if (h->call && other.link) {
    text_append(s, ": ");
    say_node(s, c, other, other.link);
  }
}

static void tell_theirs(text_buffer *s, const lvd_wait_graph *c, node other, const lvd_wait_info *l,
                        const lvd_link *under) {
  text_append(s, "%s", l->said.text);
  if (l->said.turn == LVD_AWAITS_FILL || l->said.turn == LVD_AWAITS_DRAIN)
    say_turn(s, c, other, l->said.item ? "the program" : NULL, l->said.turn == LVD_AWAITS_DRAIN,
             under);
  else if (l->said.item && is_somebody(c, other)) {
    text_append(s, ": ");
    say_node(s, c, other, under);
  }
}

/* `under`: whose lines these are, anyway. */
static void tell(text_buffer *s, const lvd_wait_graph *c, node at, uint32_t nth,
                 const lvd_link *under) {
  lvd_wait_edge h;
  text_append(s, "  ");
  say_node(s, c, at, under);
  text_append(s, " waits for ");
  if (at.link)
    tell_theirs(s, c, next_of(c, at, nth), line_of(at, nth), under);
  else if (lvd_wait_graph_blocked(c, at.who, nth, &h))
    tell_ours(s, c, &h);
  text_append(s, "\n");
}

/* A thread that waits for nothing but the end of the application. */
static void tell_of_end(text_buffer *s, const lvd_wait_graph *c, uint32_t i) {
  if (!c->member[i].thread || c->member[i].wants) return;
  text_append(s, "  ");
  lvd_report_wait_node(s, c, i);
  text_append(s, " waits for the end of %s\n", c->app->name);
}

/* It has its worker, and waits for nothing that we would know of. For how long is told when others may wonder. */
LVD_RACY_READ static void tell_of_run(text_buffer *s, const lvd_entity *e) {
  enum { LONG_MS = 100 };
  const lvd_worker *w = &e->app->rt->worker[lvd_load_relaxed_u32(&e->worker)];
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  uint64_t ms = lvd_runs_ns(e) / 1000000;
  bool sleeps = number && lvd_os_thread_is_blocked(number);
  text_append(s, "  %s %s", e->name, sleeps ? "sleeps in the system" : "computes");
  if (ms >= LONG_MS)
    text_append(s, ", and has had worker %u for %u.%u s", w->index % w->rt->workers,
                (uint32_t)(ms / 1000), (uint32_t)(ms / 100 % 10));
  text_append(s, "\n");
}

size_t lvd_fibers_running_report(lvd_app *app, char *text, size_t size) {
  text_buffer s = {text, size, 0};
  lvd_wait_graph c;
  lvd_os_lock(&app->blocks_lock);
  if (lvd_wait_graph_build(app, &c, false))
    for (uint32_t i = 0; i < c.fibers; i++)
      if (c.member[i].runs) tell_of_run(&s, &c.member[i].fiber->entity);
  lvd_wait_graph_free(&c);
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

/* Those that wait for nobody. */
static void tell_of_awake(text_buffer *s, const lvd_wait_graph *c) {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < c->fibers; i++) {
    const lvd_wait_node *m = &c->member[i];
    if (m->runs) tell_of_run(s, &m->fiber->entity);
    ready += !m->runs && !m->rests;
  }
  if (ready)
    text_append(s, "%u of %u fibers wait%s turn on a worker\n", ready, c->fibers,
                ready == 1 ? "s for its" : " for their");
}

/* What processes have said of themselves when they were asked, but for the circle. */
static void tell_others(text_buffer *s, const lvd_wait_graph *c) {
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    bool heading = false;
    for (uint32_t i = 0, nth = 0; has_told(link) && i < link->knot.lines; i++) {
      node at = {link, link->knot.line[i].said.who};
      nth = line_of(at, nth + 1) == &link->knot.line[i] ? nth + 1 : 0;
      if (*mark_of(c, at)) continue;
      if (!heading) text_append(s, "in %s:\n", lvd_unit_name(u));
      heading = true;
      tell(s, c, at, nth, link);
    }
  }
}

static size_t write_story(lvd_app *app, char *text, size_t size, bool still) {
  text_buffer s = {text, size, 0};
  lvd_wait_graph c;
  if (text && size) text[0] = 0;
  lvd_os_lock(&app->blocks_lock);
  if (lvd_wait_graph_build(app, &c, still)) {
    node first = find_circle(&c), at = first;
    bool circle = is_somebody(&c, first), heading = false;
    lvd_wait_edge h;
    unmark(&c);
    if (circle) text_append(&s, "in a circle, each waits for the next:\n");
    for (; circle && !*mark_of(&c, at); at = next_of(&c, at, 0)) {
      *mark_of(&c, at) = 1;
      tell(&s, &c, at, 0, NULL);
    }
    for (uint32_t i = 0; i < c.count; i++) {
      for (uint32_t n = c.mark[i]; lvd_wait_graph_blocked(&c, i, n, &h); n++) {
        if (circle && !heading) text_append(&s, "besides:\n");
        heading = true;
        tell(&s, &c, (node){NULL, i}, n, NULL);
      }
    }
    for (uint32_t i = c.fibers; c.fibers && i < c.count; i++) tell_of_end(&s, &c, i);
    uint32_t all = lvd_load_relaxed_u32(&app->fibers);
    if (c.count == c.most && all > c.fibers)
      text_append(&s, "and %u more fibers\n", all - c.fibers);
    if (still) tell_others(&s, &c);
    tell_of_awake(&s, &c);
  }
  lvd_wait_graph_free(&c);
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

/* What fibers waited for when they were told that they wait for each other. */
void lvd_app_save_wait_report(lvd_app *app) {
  size_t size = write_story(app, NULL, 0, true) + 1;
  char *text = malloc(size);
  if (!text) return;
  write_story(app, text, size, true);
  void *none = NULL;
  if (!lvd_cas_acq_rel_ptr(&app->story, &none, text)) free(text);
}

size_t lvd_fibers_wait_report(lvd_app *app, char *text, size_t size) {
  const char *before = lvd_load_acquire_ptr(&app->story);
  if (before) {
    text_buffer s = {text, size, 0};
    text_append(&s, "%s", before);
    return s.length;
  }
  lvd_os_lock(&app->gate);
  bool still = lvd_load_acquire_u32(&app->live) == 0 &&
               lvd_load_acquire_u32(&app->phase) == LVD_PHASE_RUNNING;
  size_t length = write_story(app, text, size, still);
  lvd_os_unlock(&app->gate);
  return length;
}
