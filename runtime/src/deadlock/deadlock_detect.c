/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Deadlock detection in the OR model (Chandy, Misra, Haas 1983); a deadlock is a knot of the
 * wait-for graph (Holt 1972).
 *
 * A waiter is a fiber or a program thread. It waits for one or more items, and any of them resumes
 * it. Each waiter that can proceed on its own is marked live, and liveness is propagated along
 * reverse wait edges. Waiters that are left unmarked are deadlocked.
 *
 * Treated as live, since this process cannot know better:
 *   - a program thread, unless it is blocked without a timeout in this application;
 *   - an event, which anything may set;
 *   - another process, unless it has reported itself blocked (deadlock_detect.h).
 *
 * Lock order: the link's lock, the application's gate, its list of streams, the list of waiting
 * threads. The last one is held during an analysis. */
#include "deadlock_detect.h"
#include "../stream/stream.h"
#include "wait_report.h"

#include <stdlib.h>

#include "../ipc/link.h"
#include "deadlock_report.h"
#include "wait_graph.h"

enum { ITEMS_PER_RECORD = LVD_RECORD_INLINE_BYTES / 8 };

typedef struct edge {
  uint32_t to, next; /* 1 + index; 0: end of list */
} edge;

typedef enum probe_scope { SCOPE_LOCAL, SCOPE_WITH_CHILDREN, SCOPE_WITH_PARENT } probe_scope;

typedef struct analysis {
  lvd_wait_graph graph; /* marks: 1: live */
  probe_scope scope;    /* processes that may be blocked, too; all others count as live */
  uint32_t *first; /* first reverse edge of each waiter, and of a virtual node that all depend on */
  uint32_t *live;
  uint32_t live_count;
  edge *edge;
  uint32_t edges, max_edges;
  uint32_t blocked;
  bool open;   /* it may start more fibers: its end does not follow from theirs */
  bool closed; /* only nodes of the graph can take stream ends without owner */
  /* the parent's application is deadlocked: that it closes its streams resolves no wait */
  bool parent_deadlocked;
} analysis;

/* ---- liveness -------------------------------------------------------------------------------- */

/* The condition holds already, and only the wake-up is outstanding. */
static bool is_met(const analysis *j, const lvd_wait_edge *h) {
  const lvd_wait_item *w = h->want;
  if (w->event) return lvd_event_is_set(w->event);
  const lvd_channel *ch = w->room ? w->room->channel : w->elements->channel;
  const lvd_consumer_shared *c = &ch->consumer[0];
  const lvd_wake_mark *m = w->room ? &c->room : &c->elements;
  if (!lvd_load_relaxed_u32(&m->armed)) return true; /* a wake-up is under way */
  bool over = lvd_load_relaxed_u32(w->room ? &c->state : &ch->state) != LVD_OPEN;
  if (j->parent_deadlocked && h->s && h->s->shared) over = false;
  return w->room ? lvd_mark_due(m, lvd_load_acquire_u32(&c->head),
                                lvd_load_relaxed_u32(&c->released), over)
                 : lvd_mark_due(m, lvd_load_acquire_u32(&ch->tail),
                                lvd_load_relaxed_u32(&ch->flushed), over);
}

/* The other process has reported that its own part of this is blocked, or may still report it. */
static bool may_be_blocked_there(const analysis *j, lvd_link *link, const lvd_a32 *listed_in) {
  probe_scope s = link->side == LVD_PARENT ? SCOPE_WITH_CHILDREN : SCOPE_WITH_PARENT;
  if (j->scope != s || lvd_link_state(link) != LVD_OK) return false;
  return !link->probe.answered || lvd_load_relaxed_u32(listed_in) == link->probe.answered;
}

static void mark_live(analysis *j, uint32_t i) {
  if (i < j->graph.count && j->graph.mark[i]) return;
  if (i < j->graph.count) j->graph.mark[i] = 1;
  j->live[j->live_count++] = i;
}

/* Adds the edge "waiter i is live if `on` is". Returns false if there is no room for it. */
static bool depends(analysis *j, uint32_t i, uint32_t on) {
  if (on > j->graph.count || j->edges == j->max_edges) return false;
  j->edge[++j->edges] = (edge){i, j->first[on]};
  j->first[on] = j->edges;
  return true;
}

static bool depends_on(analysis *j, uint32_t i, uint32_t on) {
  return on < j->graph.count && depends(j, i, on);
}

/* A stream end without owner. Returns false unless all its possible users are known. */
static bool depends_on_parties(analysis *j, uint32_t i, const lvd_wait_edge *h) {
  stream *s = h->s;
  lvd_shared_stream *ss = s->shared;
  int end = h->room ? LVD_RECEIVER : LVD_SENDER;
  /* Both ends belong to two users of this process, even if the other process was asked first. */
  if (ss && s->parties < 2 &&
      (!s->parties || !may_be_blocked_there(j, ss->link, &ss->listed_in[end])))
    return false;
  if (!ss && s->parties < 2) return j->closed && depends(j, i, j->graph.count);
  for (uint32_t k = 0; k < s->parties; k++) {
    uint32_t on = lvd_wait_graph_owner(&j->graph, s->party[k]);
    if (on != i && !depends_on(j, i, on)) return false;
  }
  return true;
}

/* Returns false if the item may be resolved by something live. */
static bool may_be_blocked(analysis *j, uint32_t i, const lvd_wait_edge *h) {
  if (is_met(j, h)) return false;
  if (h->end) return depends_on(j, i, h->other);
  if (h->call) {
    lvd_link *link = lvd_unit_link(h->call->unit);
    return link && may_be_blocked_there(j, link, &h->call->listed_in);
  }
  if (!h->s) return false;
  switch (h->owner) {
  case LVD_OWNER_FIBER:
  case LVD_OWNER_THREAD:
    return depends_on(j, i, h->other);
  case LVD_OWNER_PROCESS:
    return may_be_blocked_there(j, h->s->shared->link,
                                &h->s->shared->listed_in[h->room ? LVD_RECEIVER : LVD_SENDER]);
  case LVD_OWNER_NONE:
    return depends_on_parties(j, i, h);
  }
  return false;
}

/* A thread that waits for the end of the application, which comes when its fibers have ended. */
static bool may_never_end(analysis *j, uint32_t i) {
  return j->graph.node[i].thread && !j->open && depends(j, i, j->graph.count);
}

static void propagate_live(analysis *j) {
  for (uint32_t at = 0; at < j->live_count; at++) {
    uint32_t i = j->live[at];
    if (at == 0) mark_live(j, j->graph.count);
    for (uint32_t e = j->first[i]; e; e = j->edge[e].next) mark_live(j, j->edge[e].to);
  }
}

/* Returns true if any waiter is deadlocked. Can be called again with another `scope`. */
LVD_RACY_READ static bool analyze(analysis *j, probe_scope scope) {
  lvd_wait_graph *c = &j->graph;
  j->scope = scope;
  j->edges = j->live_count = 0;
  memset(j->first, 0, (c->count + 1) * sizeof *j->first);
  memset(c->mark, 0, c->capacity * sizeof *c->mark);
  lvd_wait_edge h;
  for (uint32_t i = 0; i < c->count; i++) {
    const lvd_wait_node *m = &c->node[i];
    bool blocked = !m->timed && (m->wants || may_never_end(j, i));
    for (uint32_t n = 0; blocked && n < m->wants; n++)
      blocked = lvd_wait_graph_blocked(c, i, n, &h) && may_be_blocked(j, i, &h);
    if (!blocked) mark_live(j, i);
  }
  propagate_live(j);
  j->blocked = 0;
  for (uint32_t i = 0; i < c->count; i++) j->blocked += !c->mark[i];
  return j->blocked != 0;
}

/* The caller holds the list of streams from here to end(). Returns false if memory is short. */
LVD_RACY_READ static bool begin(analysis *j, lvd_app *app) {
  memset(j, 0, sizeof *j);
  if (!lvd_wait_graph_build(app, &j->graph, true)) return false;
  j->open = lvd_load_acquire_u32(&app->open);
  j->closed = !j->open;
  for (const stream *s = app->streams; s && j->closed; s = s->next) {
    const stream_end *end[2] = {&s->sender, &s->receiver};
    for (int i = 0; i < 2; i++) { /* a thread that owns one end may take another */
      void *owner = lvd_load_acquire_ptr(&end[i]->owner);
      j->closed &= !owner || end[i]->fiber ||
                   lvd_wait_graph_owner(&j->graph, (lvd_user){owner, NULL}) < j->graph.count;
    }
  }
  for (uint32_t i = 0; i < j->graph.count; i++) j->max_edges += 1 + 2 * j->graph.node[i].wants;
  j->first = calloc(j->graph.count + 1, sizeof *j->first);
  j->live = calloc(j->graph.count + 2, sizeof *j->live);
  j->edge = calloc(j->max_edges + 1, sizeof *j->edge);
  return j->first && j->live && j->edge;
}

static void end(analysis *j) {
  lvd_wait_graph_free(&j->graph);
  free(j->first);
  free(j->live);
  free(j->edge);
}

/* ---- across processes ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Hash of the deadlocked waiters and of the waits they are in. It changes when one of them has run,
 * since each wait at a wait point has its own number. Sets `concerned` in each link that one of
 * them waits for. */
LVD_RACY_READ static uint64_t fingerprint(const analysis *j) {
  const lvd_wait_graph *c = &j->graph;
  uint64_t sum = 1;
  lvd_wait_edge h;
  for (lvd_unit *u = c->app->units; u; u = u->next)
    if (lvd_unit_link(u)) lvd_unit_link(u)->probe.concerned = false;
  for (uint32_t i = 0; i < c->count; i++)
    for (uint32_t n = 0; !c->mark[i] && lvd_wait_graph_blocked(c, i, n, &h); n++) {
      const lvd_wait_node *m = &c->node[i];
      const lvd_wait_point *wait_point = lvd_wait_item_point(h.want);
      uint64_t x = mix((uintptr_t)wait_point);
      x += m->fiber ? mix((uintptr_t)m->fiber) + wait_point->sleeps : mix(~m->thread->serial);
      if (h.s) x = mix(x) + h.s->serial;
      sum += mix(x);
      lvd_link *link = h.call ? lvd_unit_link(h.call->unit) : NULL;
      if (h.s && h.s->shared && h.owner != LVD_OWNER_FIBER) link = h.s->shared->link;
      if (link) link->probe.concerned = true;
    }
  return sum ? sum : 1;
}

static void request_probe(lvd_link *link, uint32_t what) {
  lvd_exchange_acq_rel_u32(&link->probe.pending, what);
  lvd_os_eventfd_signal(link->own_bell);
}

/* Sends a probe to each concerned link that has not replied to this very set. Returns true if all
 * have replied and waiters are still deadlocked. */
static bool probe_children(analysis *j) {
  if (!analyze(j, SCOPE_WITH_CHILDREN)) return false;
  bool all = true;
  uint64_t set = fingerprint(j);
  for (lvd_unit *u = j->graph.app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link || !link->probe.concerned) continue;
    if (link->probe.asked_for == set && link->probe.answered == link->probe.asked) continue;
    if (link->probe.asked_for != set) request_probe(link, LVD_PROBE_SEND);
    all = false;
  }
  return all;
}

/* Marks the threads that are told LVD_E_DEADLOCK. A thread that only waits for the end of the
 * application is not: it returns when the fibers have ended. */
static void mark_threads(const analysis *j) {
  const lvd_wait_graph *c = &j->graph;
  lvd_wait_edge h;
  for (uint32_t i = c->fibers; i < c->count; i++)
    for (uint32_t n = 0; !c->mark[i] && lvd_wait_graph_blocked(c, i, n, &h); n++)
      c->node[i].thread->is_deadlocked |= h.s || h.call;
}

/* The application is about to end: tells the children why, before the streams they wait for
 * close. */
static void notify_children(const lvd_app *app) {
  for (lvd_unit *u = app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link || link->side != LVD_PARENT) continue;
    lvd_store_relaxed_u32(&link->segment->deadlocked, 1);
    link->bell.wake(&link->bell);
  }
}

/* Called at quiescence, with the gate closed. `restart`: earlier replies are dropped. Returns true
 * if the application is to be ended. */
static bool is_deadlocked(lvd_app *app, bool restart) {
  analysis j;
  bool blocked = false;
  lvd_link *parent = NULL;
  lvd_os_lock(&app->blocks_lock); /* no stream or unit is added or removed */
  for (lvd_unit *u = app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link) continue;
    if (link->side == LVD_CHILD) parent = link;
    if (restart) link->probe.answered = 0;
    if (restart) link->probe.asked_for = 0;
  }
  if (begin(&j, app) && !(blocked = analyze(&j, SCOPE_LOCAL)) && app->units) {
    blocked = probe_children(&j);
    /* Possibly deadlocked: only the parent can find out. */
    if (restart && parent && analyze(&j, SCOPE_WITH_PARENT)) request_probe(parent, LVD_PROBE_REPLY);
  }
  if (blocked) mark_threads(&j);
  if (blocked) notify_children(app);
  end(&j);
  lvd_os_unlock(&app->blocks_lock);
  return blocked;
}

bool lvd_app_is_deadlocked(lvd_app *app) { return is_deadlocked(app, true); }

/* ---- probes and replies ---------------------------------------------------------------------- */

/* Items packed into records. `items` counts as if all records but the last were full. */
typedef struct message_batch {
  lvd_record *record;
  uint32_t records, items;
  bool failed;
} message_batch;

static lvd_record *next_record(message_batch *l) {
  lvd_record *more = realloc(l->record, (l->records + 1) * sizeof *more);
  l->failed |= !more;
  if (!more) return NULL;
  l->record = more;
  return memset(&more[l->records++], 0, sizeof *more);
}

/* `waiter`: index of the blocked waiter that owns the item. */
static void add_item(message_batch *l, uint32_t waiter, uint32_t number, uint32_t what) {
  uint64_t item = (uint64_t)waiter << 34 | lvd_deadlock_item(number, what);
  if (l->items % ITEMS_PER_RECORD == 0 && !next_record(l)) return;
  memcpy(l->record[l->records - 1].data + l->items % ITEMS_PER_RECORD * 8, &item, 8);
  l->record[l->records - 1].size += 8;
  l->items++;
}

/* Its index if it is deadlocked, else graph.count. */
static uint32_t blocked_index(const analysis *j, lvd_user user) {
  uint32_t i = lvd_wait_graph_owner(&j->graph, user);
  return i < j->graph.count && !j->graph.mark[i] ? i : j->graph.count;
}

/* Index of one of them if all are deadlocked, else graph.count. */
static uint32_t blocked_party(const analysis *j, const lvd_user party[2], uint32_t parties) {
  uint32_t one = j->graph.count;
  for (uint32_t i = 0; i < parties; i++)
    if ((one = blocked_index(j, party[i])) == j->graph.count) break;
  return one;
}

/* Index of the end's owner if that is deadlocked, else graph.count. */
LVD_RACY_READ static uint32_t blocked_owner(const analysis *j, lvd_shared_stream *ss, int end) {
  const stream *s = ss->stream;
  const stream_end *e = end == LVD_SENDER ? &s->sender : &s->receiver;
  void *owner = lvd_load_relaxed_ptr(&e->owner);
  if (owner) return blocked_index(j, (lvd_user){owner, e->fiber});
  if (e->closed || lvd_shared_is_theirs(ss, end == LVD_SENDER)) return j->graph.count;
  return blocked_party(j, s->party, s->parties);
}

/* A stream that this process has not opened: lists both ends, since the other process has one of
 * them. Only the parent knows its number; a child sends the name, in a record of its own. */
static void add_expected(const analysis *j, lvd_link *link, const lvd_expected_users *x,
                         message_batch *l) {
  uint32_t waiter = blocked_party(j, x->party, x->parties);
  if (waiter == j->graph.count) return;
  if (link->side == LVD_PARENT) {
    uint32_t number = lvd_shared_half_open(link, LVD_CHILD, x->name);
    for (uint32_t end = 0; number && end < 2; end++) add_item(l, waiter, number, end);
    return;
  }
  lvd_record *r = next_record(l);
  if (r) memcpy(r->name, x->name, sizeof x->name);
  if (r) r->offset = waiter;
  l->items += r ? ITEMS_PER_RECORD : 0; /* the next item starts a new record */
}

typedef struct serving {
  const analysis *j;
  message_batch *batch;
} serving;

static void add_served(uint32_t number, const lvd_fiber *f, void *argument) {
  serving *s = argument;
  uint32_t waiter = lvd_wait_graph_index(&s->j->graph, f);
  if (waiter < s->j->graph.count && !s->j->graph.mark[waiter])
    add_item(s->batch, waiter, number, LVD_ITEM_CALL);
}

/* Lists the items of this process that deadlocked waiters own. The caller holds the link's lock,
 * too. */
static void list_items(const analysis *j, lvd_link *link, message_batch *l) {
  for (lvd_shared_stream *ss = link->streams; ss; ss = ss->next)
    for (uint32_t end = 0; end < 2; end++) {
      uint32_t waiter = blocked_owner(j, ss, (int)end);
      if (waiter < j->graph.count) add_item(l, waiter, ss->number, end);
    }
  for (const lvd_expected_users *x = link->probe.expected; x; x = x->next)
    add_expected(j, link, x, l);
  if (l->items % ITEMS_PER_RECORD) l->items += ITEMS_PER_RECORD - l->items % ITEMS_PER_RECORD;
  serving s = {j, l};
  lvd_link_served(link, add_served, &s);
}

/* Sends the batch; `room` marks its last record. An empty batch is one record. */
static void send_batch(lvd_link *link, message_batch *l, uint32_t number) {
  const lvd_record none = {.kind = LVD_RECORD_PROBE, .number = number, .room = 1};
  for (uint32_t i = 0; i < l->records && !l->failed; i++) {
    l->record[i].kind = LVD_RECORD_PROBE;
    l->record[i].number = number;
    l->record[i].room = i + 1 == l->records;
    lvd_link_send(link, &l->record[i]);
  }
  if (l->failed || l->records == 0) lvd_link_send(link, &none);
  free(l->record);
}

static bool close_gate(lvd_app *app) {
  lvd_os_lock(&app->gate);
  return lvd_load_acquire_u32(&app->live) == 0 &&
         lvd_load_acquire_u32(&app->phase) == LVD_PHASE_RUNNING;
}

static void send_probe(lvd_link *link) {
  lvd_app *app = link->app;
  message_batch l = {0};
  analysis j;
  uint32_t number = 0;
  lvd_os_lock(&link->lock);
  if (close_gate(app)) {
    lvd_os_lock(&app->blocks_lock);
    if (begin(&j, app) && analyze(&j, SCOPE_WITH_CHILDREN)) {
      link->probe.asked_for = fingerprint(&j);
      number = ++link->probe.asked;
      if (!number) number = link->probe.asked = 1;
      lvd_wait_info_forget(link);
      list_items(&j, link, &l);
    }
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
  }
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
  if (number) send_batch(link, &l, number);
}

/* ---- deadlock of the parent ------------------------------------------------------------------ */

bool lvd_deadlock_is_parents(const lvd_link *link) {
  if (link->side == LVD_PARENT || link->probe.applied) return false;
  /* orders this after the caller's look at the closed stream, which was closed later */
  lvd_fence_seq_cst();
  return lvd_load_relaxed_u32(&link->segment->deadlocked);
}

/* The parent's application ends since it is deadlocked. Cancels the waiters of this process that
 * wait for it, once; what they wait for afterwards has ended. */
static void apply_parent_deadlock(lvd_link *link) {
  lvd_app *app = link->app;
  analysis j;
  bool rests = close_gate(app);
  if (rests) {
    lvd_os_lock(&app->blocks_lock);
    link->probe.answered = 0; /* the parent resolves no wait any more */
    bool begun = begin(&j, app);
    j.parent_deadlocked = true;
    if (begun && analyze(&j, SCOPE_WITH_PARENT)) {
      mark_threads(&j);
      for (uint32_t i = 0; i < j.graph.fibers; i++)
        if (!j.graph.mark[i]) lvd_fiber_set_cancelled(j.graph.node[i].fiber, LVD_E_DEADLOCK);
    }
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
    lvd_thread_waiters_tell(app, LVD_E_DEADLOCK);
  }
  lvd_os_unlock(&app->gate);
  if (rests) lvd_fibers_wake(app); /* takes the gate */
  lvd_os_lock(&link->lock);
  link->probe.applied = true;
  lvd_shared_wake(link); /* has let go of the lock before */
  lvd_os_unlock(&link->lock);
}

void lvd_deadlock_probe_run(lvd_link *link) {
  uint32_t what = lvd_exchange_acq_rel_u32(&link->probe.pending, 0);
  const lvd_record rests = {.kind = LVD_RECORD_QUIESCENT};
  if (what == LVD_PROBE_SEND) send_probe(link);
  if (what == LVD_PROBE_REPLY) lvd_link_send(link, &rests);
  if (lvd_deadlock_is_parents(link)) apply_parent_deadlock(link);
}

/* ---- records of the other side --------------------------------------------------------------- */

static void mark_stream(lvd_link *link, uint32_t number, uint64_t end, uint32_t probe,
                        uint32_t waiter) {
  lvd_shared_stream *ss = link->streams;
  while (ss && ss->number != number) ss = ss->next;
  if (!ss || end > LVD_RECEIVER) return;
  lvd_store_relaxed_u32(&ss->listed_by[end], waiter);
  lvd_store_relaxed_u32(&ss->listed_in[end], probe);
}

/* Stores which items the other side has listed. */
static void store_listed(lvd_link *link, const lvd_record *r) {
  lvd_os_lock(&link->lock);
  if (r->name[0] && link->side == LVD_PARENT) {
    uint32_t number = lvd_shared_half_open(link, LVD_PARENT, r->name);
    for (uint64_t end = 0; number && end < 2; end++)
      mark_stream(link, number, end, r->number, (uint32_t)r->offset);
  }
  for (uint32_t at = 0; at + 8 <= r->size && at + 8 <= LVD_RECORD_INLINE_BYTES; at += 8) {
    uint64_t item;
    memcpy(&item, r->data + at, 8);
    uint32_t number = (uint32_t)(item >> 2), what = item & 3, waiter = (uint32_t)(item >> 34);
    if (what == LVD_ITEM_CALL) {
      lvd_call *c = lvd_link_call(link, number);
      if (c) lvd_store_relaxed_u32(&c->listed_by, waiter);
      if (c) lvd_store_relaxed_u32(&c->listed_in, r->number);
      continue;
    }
    mark_stream(link, number, what, r->number, waiter);
  }
  lvd_os_unlock(&link->lock);
}

/* The child has received the whole probe, and replies to it. */
static void send_reply(lvd_link *link, uint32_t number) {
  lvd_app *app = link->app;
  message_batch l = {0};
  analysis j;
  lvd_record *line = NULL;
  uint32_t lines = 0;
  lvd_os_lock(&link->lock);
  if (close_gate(app)) {
    lvd_os_lock(&app->blocks_lock);
    link->probe.answered = number;
    if (begin(&j, app) && analyze(&j, SCOPE_WITH_PARENT)) list_items(&j, link, &l);
    if (l.items) lines = lvd_wait_info_records(&j.graph, link, number, &line);
    link->probe.answered = 0;
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
  }
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
  for (uint32_t i = 0; i < lines; i++) lvd_link_send(link, &line[i]);
  free(line);
  send_batch(link, &l, number);
}

/* The parent has received a record of a child. */
static void reassess(lvd_link *link, bool restart) {
  lvd_app *app = link->app;
  if (close_gate(app)) {
    if (!restart) link->probe.answered = link->probe.asked;
    if (is_deadlocked(app, restart)) {
      lvd_app_save_wait_report(app);
      lvd_app_end(app, LVD_E_DEADLOCK);
      lvd_thread_waiters_tell(app, LVD_E_DEADLOCK);
    }
  }
  lvd_os_unlock(&app->gate);
}

bool lvd_deadlock_take_record(lvd_link *link, const lvd_record *r) {
  bool parent = link->side == LVD_PARENT;
  if (r->kind != LVD_RECORD_PROBE && r->kind != LVD_RECORD_WAIT_INFO &&
      r->kind != LVD_RECORD_QUIESCENT)
    return false;
  if (r->kind == LVD_RECORD_QUIESCENT) {
    if (parent) reassess(link, true);
    return true;
  }
  if (parent && r->number != link->probe.asked) return true; /* belongs to an earlier probe */
  if (r->kind == LVD_RECORD_WAIT_INFO) {
    if (parent) lvd_wait_info_take(link, r);
    return true;
  }
  store_listed(link, r);
  if (r->room && parent) reassess(link, false);
  if (r->room && !parent) send_reply(link, r->number);
  return true;
}

void lvd_deadlock_expect_users(lvd_link *link, const char *name, const lvd_user party[2],
                               uint32_t parties) {
  lvd_os_lock(&link->lock);
  lvd_expected_users **at = &link->probe.expected, *x;
  while ((x = *at) && strcmp(x->name, name) != 0) at = &x->next;
  if (x && !parties) {
    *at = x->next;
    free(x);
  } else if (parties &&
             /* without memory its users stay unknown, thus live */
             (x || (x = calloc(1, sizeof *x)))) {
    copy_name(x->name, name);
    for (uint32_t i = 0; i < parties; i++) x->party[i] = party[i];
    x->parties = parties;
    *at = x;
  }
  lvd_os_unlock(&link->lock);
}

void lvd_deadlock_probe_free(lvd_link *link) {
  for (lvd_expected_users *x = link->probe.expected, *next; x; x = next) {
    next = x->next;
    free(x);
  }
  free(link->probe.entry);
}
