/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The wait report of fibers and program threads: which waits for which. */
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

/* ---- nodes and edges as text ----------------------------------------------------------------- */

void lvd_report_wait_node(text_buffer *s, const lvd_wait_graph *c, uint32_t i) {
  const lvd_wait_node *m = &c->node[i];
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
    text_append(s, " (%u of %u)", fill, h->s->base.producer.capacity);
    if (h->owner == LVD_OWNER_NONE) text_append(s, ", and its other end has no owner");
  }
}

/* ---- a waiter, here or in a process that has replied ----------------------------------------- */

typedef struct waiter_ref {
  lvd_link *link; /* null: a node of the graph */
  uint32_t index; /* its index there; graph.count: none */
} waiter_ref;

static bool is_known(const lvd_wait_graph *c, waiter_ref at) {
  return at.link || at.index < c->count;
}

/* The other process has replied to the last probe (deadlock_detect.h). */
static bool has_replied(const lvd_link *link) { return link && link->probe.answered; }

/* The nth entry of a waiter in another process. Returns null if there is none. */
static lvd_wait_info *entry_of(waiter_ref at, uint32_t nth) {
  lvd_deadlock_probe *k = &at.link->probe;
  for (uint32_t i = 0; i < k->entries; i++)
    if (k->entry[i].wire.waiter == at.index && nth-- == 0) return &k->entry[i];
  return NULL;
}

/* The waiter in the other process that has to act. */
static waiter_ref remote_waiter(const lvd_wait_graph *c, lvd_link *link, const lvd_a32 *listed_in,
                                const lvd_a32 *by) {
  waiter_ref at = {link, lvd_load_relaxed_u32(by)};
  bool listed = has_replied(link) && lvd_load_relaxed_u32(listed_in) == link->probe.answered;
  return listed && entry_of(at, 0) ? at : (waiter_ref){NULL, c->count};
}

static waiter_ref acting_waiter(const lvd_wait_graph *c, const lvd_wait_edge *h) {
  waiter_ref other = {NULL, c->count};
  if (h->call)
    other =
        remote_waiter(c, lvd_unit_link(h->call->unit), &h->call->listed_in, &h->call->listed_by);
  if (c->still && h->s && h->s->shared &&
      (h->owner == LVD_OWNER_PROCESS || h->owner == LVD_OWNER_NONE)) {
    const lvd_shared_stream *ss = h->s->shared;
    int end = h->room ? LVD_RECEIVER : LVD_SENDER;
    other = remote_waiter(c, ss->link, &ss->listed_in[end], &ss->listed_by[end]);
  }
  return other.link ? other : (waiter_ref){NULL, h->other};
}

/* The waiter that has to act for the nth item of `at`. */
static waiter_ref next_waiter(const lvd_wait_graph *c, waiter_ref at, uint32_t nth) {
  const waiter_ref none = {NULL, c->count};
  lvd_wait_edge h;
  if (!at.link) return lvd_wait_graph_blocked(c, at.index, nth, &h) ? acting_waiter(c, &h) : none;
  const lvd_wait_info *l = entry_of(at, nth);
  if (!l || (!l->wire.other && !l->user.id)) return none;
  if (!l->wire.other) return (waiter_ref){NULL, lvd_wait_graph_owner(c, l->user)};
  waiter_ref other = {at.link, l->wire.other - 1};
  return entry_of(other, 0) ? other : none;
}

static bool waits_for_one(const lvd_wait_graph *c, waiter_ref at) {
  if (!at.link) return c->node[at.index].wants == 1 && !c->node[at.index].timed;
  return entry_of(at, 0) && entry_of(at, 0)->wire.alone;
}

static uint32_t *mark_of(const lvd_wait_graph *c, waiter_ref at) {
  return at.link ? &entry_of(at, 0)->mark : &c->mark[at.index];
}

/* A waiter on a cycle of which each waits for the next alone, without a timeout. It is one of this
 * process: a child waits for another child only through its parent. */
static waiter_ref find_cycle(const lvd_wait_graph *c) {
  for (uint32_t start = 0; start < c->count; start++) {
    waiter_ref at = {NULL, start};
    while (is_known(c, at) && *mark_of(c, at) == 0 && waits_for_one(c, at)) {
      *mark_of(c, at) = start + 1;
      at = next_waiter(c, at, 0);
    }
    if (!is_known(c, at) || *mark_of(c, at) != start + 1) continue;
    while (at.link) at = next_waiter(c, at, 0);
    return at;
  }
  return (waiter_ref){NULL, c->count};
}

static void unmark(const lvd_wait_graph *c) {
  memset(c->mark, 0, c->capacity * sizeof *c->mark);
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    for (uint32_t i = 0; has_replied(link) && i < link->probe.entries; i++)
      link->probe.entry[i].mark = 0;
  }
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void append_waiter(text_buffer *s, const lvd_wait_graph *c, waiter_ref at,
                          const lvd_link *under) {
  if (!at.link) {
    lvd_report_wait_node(s, c, at.index);
  } else {
    text_append(s, "%s", entry_of(at, 0)->name);
    if (at.link != under) text_append(s, " in %s", lvd_link_name(at.link));
  }
}

/* What the other side of a stream has to do. */
static void append_action(text_buffer *s, const lvd_wait_graph *c, waiter_ref other,
                          const char *unknown, bool room, const lvd_link *under) {
  if (!is_known(c, other) && !unknown) return;
  text_append(s, "; ");
  if (is_known(c, other))
    append_waiter(s, c, other, under);
  else
    text_append(s, "%s", unknown);
  text_append(s, " has to %s it", room ? "empty" : "fill");
}

static void append_local(text_buffer *s, const lvd_wait_graph *c, const lvd_wait_edge *h) {
  waiter_ref other = acting_waiter(c, h);
  lvd_report_wait_edge(s, c, h);
  if (h->s)
    append_action(s, c, other,
                  h->owner == LVD_OWNER_NONE      ? NULL
                  : h->owner == LVD_OWNER_PROCESS ? lvd_link_name(h->s->shared->link)
                                                  : "the program",
                  h->room, NULL);
  if (h->call && other.link) {
    text_append(s, ": ");
    append_waiter(s, c, other, other.link);
  }
}

static void append_remote(text_buffer *s, const lvd_wait_graph *c, waiter_ref other,
                          const lvd_wait_info *l, const lvd_link *under) {
  text_append(s, "%s", l->wire.text);
  if (l->wire.action == LVD_AWAITS_FILL || l->wire.action == LVD_AWAITS_DRAIN)
    append_action(s, c, other, l->wire.item ? "the program" : NULL,
                  l->wire.action == LVD_AWAITS_DRAIN, under);
  else if (l->wire.item && is_known(c, other)) {
    text_append(s, ": ");
    append_waiter(s, c, other, under);
  }
}

/* `under`: the process that the heading names already. */
static void append_wait(text_buffer *s, const lvd_wait_graph *c, waiter_ref at, uint32_t nth,
                        const lvd_link *under) {
  lvd_wait_edge h;
  text_append(s, "  ");
  append_waiter(s, c, at, under);
  text_append(s, " waits for ");
  if (at.link)
    append_remote(s, c, next_waiter(c, at, nth), entry_of(at, nth), under);
  else if (lvd_wait_graph_blocked(c, at.index, nth, &h))
    append_local(s, c, &h);
  text_append(s, "\n");
}

/* A thread that waits for the end of the application only. */
static void append_end_wait(text_buffer *s, const lvd_wait_graph *c, uint32_t i) {
  if (!c->node[i].thread || c->node[i].wants) return;
  text_append(s, "  ");
  lvd_report_wait_node(s, c, i);
  text_append(s, " waits for the end of %s\n", c->app->name);
}

/* The fiber has a worker, and no known wait. Its time is added from LONG_MS on. */
LVD_RACY_READ static void append_run(text_buffer *s, const lvd_entity *e) {
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
      if (c.node[i].runs) append_run(&s, &c.node[i].fiber->entity);
  lvd_wait_graph_free(&c);
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

/* Fibers that are ready or run. */
static void append_awake(text_buffer *s, const lvd_wait_graph *c) {
  uint32_t ready = 0;
  for (uint32_t i = 0; i < c->fibers; i++) {
    const lvd_wait_node *m = &c->node[i];
    if (m->runs) append_run(s, &m->fiber->entity);
    ready += !m->runs && !m->rests;
  }
  if (ready)
    text_append(s, "%u of %u fibers wait%s turn on a worker\n", ready, c->fibers,
                ready == 1 ? "s for its" : " for their");
}

/* What other processes have reported, except the cycle. */
static void append_processes(text_buffer *s, const lvd_wait_graph *c) {
  for (const lvd_unit *u = c->app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    bool heading = false;
    for (uint32_t i = 0, nth = 0; has_replied(link) && i < link->probe.entries; i++) {
      waiter_ref at = {link, link->probe.entry[i].wire.waiter};
      nth = entry_of(at, nth + 1) == &link->probe.entry[i] ? nth + 1 : 0;
      if (*mark_of(c, at)) continue;
      if (!heading) text_append(s, "in %s:\n", lvd_unit_name(u));
      heading = true;
      append_wait(s, c, at, nth, link);
    }
  }
}

static size_t write_report(lvd_app *app, char *text, size_t size, bool still) {
  text_buffer s = {text, size, 0};
  lvd_wait_graph c;
  if (text && size) text[0] = 0;
  lvd_os_lock(&app->blocks_lock);
  if (lvd_wait_graph_build(app, &c, still)) {
    waiter_ref first = find_cycle(&c), at = first;
    bool cycle = is_known(&c, first), heading = false;
    lvd_wait_edge h;
    unmark(&c);
    if (cycle) text_append(&s, "in a cycle, each waits for the next:\n");
    for (; cycle && !*mark_of(&c, at); at = next_waiter(&c, at, 0)) {
      *mark_of(&c, at) = 1;
      append_wait(&s, &c, at, 0, NULL);
    }
    for (uint32_t i = 0; i < c.count; i++) {
      for (uint32_t n = c.mark[i]; lvd_wait_graph_blocked(&c, i, n, &h); n++) {
        if (cycle && !heading) text_append(&s, "besides:\n");
        heading = true;
        append_wait(&s, &c, (waiter_ref){NULL, i}, n, NULL);
      }
    }
    for (uint32_t i = c.fibers; c.fibers && i < c.count; i++) append_end_wait(&s, &c, i);
    uint32_t all = lvd_load_relaxed_u32(&app->fibers);
    if (c.count == c.capacity && all > c.fibers)
      text_append(&s, "and %u more fibers\n", all - c.fibers);
    if (still) append_processes(&s, &c);
    append_awake(&s, &c);
  }
  lvd_wait_graph_free(&c);
  lvd_os_unlock(&app->blocks_lock);
  return s.length;
}

/* Saves what fibers wait for, before they are told of the deadlock. */
void lvd_app_save_wait_report(lvd_app *app) {
  size_t size = write_report(app, NULL, 0, true) + 1;
  char *text = malloc(size);
  if (!text) return;
  write_report(app, text, size, true);
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
  size_t length = write_report(app, text, size, still);
  lvd_os_unlock(&app->gate);
  return length;
}
