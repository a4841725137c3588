/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who waits in vain. Everybody, be it a fiber or a thread of the program, waits for one or more
 * things; each can come from certain others, and any one of them is enough. So hope spreads
 * backwards, from those who may go on by themselves to those who wait for them; whom it does not
 * reach waits in vain.
 *
 * What is hoped for, rather than known to be vain: that a thread of the program, unless it waits for
 * something of this application itself and without a time limit, does something with what it has or
 * may take, that somebody sets an event, that another process does something, unless it has said
 * that it will not (deadlock_detect.h).
 *
 * Locks: the link's, then the application's gate, then its list of streams, then the list of the
 * threads that wait, as long as there is a judgement. */
#include "deadlock_detect.h"
#include "../stream/stream.h"
#include "wait_report.h"

#include <stdlib.h>

#include "../ipc/link.h"
#include "deadlock_report.h"
#include "wait_graph.h"

enum { ITEMS = LVD_RECORD_INLINE / 8 /* in a record */ };

typedef struct edge {
  uint32_t to, next; /* 1 + index; 0: no more */
} edge;

typedef enum reaching { WITHIN, WITH_CHILDREN, WITH_PARENT } reaching;

typedef struct judgement {
  lvd_wait_graph crowd; /* marks: 1: there is hope */
  reaching reach;       /* the processes that may wait in vain, too; of all others there is hope */
  uint32_t *first;      /* edges from each, and from one who stands for all */
  uint32_t *reached;
  uint32_t reached_count;
  edge *edge;
  uint32_t edges, most_edges;
  uint32_t vain;
  bool open;   /* its end is nobody's here to wait for */
  bool closed; /* nobody but its members takes ends that nobody has */
  bool heeds;  /* the parent's application ends, in vain: so do its streams, which is no help */
} judgement;

/* ---- hope ----------------------------------------------------------------------------------- */

/* What is awaited has come, and he who waits is only not told yet. */
static bool is_met(const judgement *j, const lvd_wait_edge *h) {
  const lvd_want *w = h->want;
  if (w->event) return lvd_event_is_set(w->event);
  const lvd_channel *ch = w->room ? w->room->channel : w->elements->channel;
  const lvd_consumer_lines *c = &ch->consumer[0];
  const lvd_mark *m = w->room ? &c->room : &c->elements;
  if (!lvd_load_relaxed_u32(&m->armed)) return true; /* somebody is about to tell him */
  bool over = lvd_load_relaxed_u32(w->room ? &c->state : &ch->state) != LVD_OPEN;
  if (j->heeds && h->s && h->s->shared) over = false;
  return w->room ? lvd_mark_due(m, lvd_load_acquire_u32(&c->head),
                                lvd_load_relaxed_u32(&c->released), over)
                 : lvd_mark_due(m, lvd_load_acquire_u32(&ch->tail),
                                lvd_load_relaxed_u32(&ch->flushed), over);
}

/* Has the other side said that this of its own waits in vain, or may it yet say so? */
static bool is_vain_there(const judgement *j, lvd_link *link, const lvd_a32 *told) {
  reaching s = link->side == LVD_PARENT ? WITH_CHILDREN : WITH_PARENT;
  if (j->reach != s || lvd_link_state(link) != LVD_OK) return false;
  return !link->knot.answered || lvd_load_relaxed_u32(told) == link->knot.answered;
}

static void hope_for(judgement *j, uint32_t i) {
  if (i < j->crowd.count && j->crowd.mark[i]) return;
  if (i < j->crowd.count) j->crowd.mark[i] = 1;
  j->reached[j->reached_count++] = i;
}

/* If there is hope for `f`, there is for number i. False: there is. */
static bool depends(judgement *j, uint32_t i, uint32_t on) {
  if (on > j->crowd.count || j->edges == j->most_edges) return false;
  j->edge[++j->edges] = (edge){i, j->first[on]};
  j->first[on] = j->edges;
  return true;
}

static bool depends_on(judgement *j, uint32_t i, uint32_t on) {
  return on < j->crowd.count && depends(j, i, on);
}

/* The other end of a stream that nobody has taken: false, unless all who may take it are known. */
static bool depends_on_parties(judgement *j, uint32_t i, const lvd_wait_edge *h) {
  stream *s = h->s;
  lvd_shared_stream *ss = s->shared;
  int end = h->room ? LVD_RECEIVER : LVD_SENDER;
  /* Two here have both of its ends, also when the other process was asked for it first. */
  if (ss && s->parties < 2 && (!s->parties || !is_vain_there(j, ss->link, &ss->told[end])))
    return false;
  if (!ss && s->parties < 2) return j->closed && depends(j, i, j->crowd.count);
  for (uint32_t k = 0; k < s->parties; k++) {
    uint32_t on = lvd_wait_graph_owner(&j->crowd, s->party[k]);
    if (on != i && !depends_on(j, i, on)) return false;
  }
  return true;
}

/* False: there is hope that it comes. */
static bool may_be_vain(judgement *j, uint32_t i, const lvd_wait_edge *h) {
  if (is_met(j, h)) return false;
  if (h->end) return depends_on(j, i, h->other);
  if (h->call) {
    lvd_link *link = lvd_unit_link(h->call->unit);
    return link && is_vain_there(j, link, &h->call->told);
  }
  if (!h->s) return false;
  switch (h->turn) {
  case LVD_OWNER_FIBER:
  case LVD_OWNER_THREAD:
    return depends_on(j, i, h->other);
  case LVD_OWNER_PROCESS:
    return is_vain_there(j, h->s->shared->link,
                         &h->s->shared->told[h->room ? LVD_RECEIVER : LVD_SENDER]);
  case LVD_OWNER_NONE:
    return depends_on_parties(j, i, h);
  }
  return false;
}

/* A thread that waits for the end of the application: that comes when its fibers have ended. */
static bool may_never_end(judgement *j, uint32_t i) {
  return j->crowd.member[i].thread && !j->open && depends(j, i, j->crowd.count);
}

static void spread(judgement *j) {
  for (uint32_t at = 0; at < j->reached_count; at++) {
    uint32_t i = j->reached[at];
    if (at == 0) hope_for(j, j->crowd.count);
    for (uint32_t e = j->first[i]; e; e = j->edge[e].next) hope_for(j, j->edge[e].to);
  }
}

/* False: no memory. `reach` may be changed, and all judged again. */
LVD_RACY_READ static bool judge(judgement *j, reaching reach) {
  lvd_wait_graph *c = &j->crowd;
  j->reach = reach;
  j->edges = j->reached_count = 0;
  memset(j->first, 0, (c->count + 1) * sizeof *j->first);
  memset(c->mark, 0, c->most * sizeof *c->mark);
  lvd_wait_edge h;
  for (uint32_t i = 0; i < c->count; i++) {
    const lvd_wait_node *m = &c->member[i];
    bool vain = !m->timed && (m->wants || may_never_end(j, i));
    for (uint32_t n = 0; vain && n < m->wants; n++)
      vain = lvd_wait_graph_blocked(c, i, n, &h) && may_be_vain(j, i, &h);
    if (!vain) hope_for(j, i);
  }
  spread(j);
  j->vain = 0;
  for (uint32_t i = 0; i < c->count; i++) j->vain += !c->mark[i];
  return j->vain != 0;
}

/* With the list of streams in hand, from here on. */
LVD_RACY_READ static bool begin(judgement *j, lvd_app *app) {
  memset(j, 0, sizeof *j);
  if (!lvd_wait_graph_build(app, &j->crowd, true)) return false;
  j->open = lvd_load_acquire_u32(&app->open);
  j->closed = !j->open;
  for (const stream *s = app->streams; s && j->closed; s = s->next) {
    const stream_end *end[2] = {&s->sender, &s->receiver};
    for (int i = 0; i < 2; i++) { /* a thread that has one may take another */
      void *owner = lvd_load_acquire_ptr(&end[i]->owner);
      j->closed &= !owner || end[i]->fiber ||
                   lvd_wait_graph_owner(&j->crowd, (lvd_user){owner, NULL}) < j->crowd.count;
    }
  }
  for (uint32_t i = 0; i < j->crowd.count; i++) j->most_edges += 1 + 2 * j->crowd.member[i].wants;
  j->first = calloc(j->crowd.count + 1, sizeof *j->first);
  j->reached = calloc(j->crowd.count + 2, sizeof *j->reached);
  j->edge = calloc(j->most_edges + 1, sizeof *j->edge);
  return j->first && j->reached && j->edge;
}

static void end(judgement *j) {
  lvd_wait_graph_free(&j->crowd);
  free(j->first);
  free(j->reached);
  free(j->edge);
}

/* ---- with other processes ------------------------------------------------------------------- */

static uint64_t mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

/* Who waits in vain, and since when: it changes when one of them has moved, since no wait at a
 * sleeper has the number of an earlier one. Marks the links that they wait for. */
LVD_RACY_READ static uint64_t who(const judgement *j) {
  const lvd_wait_graph *c = &j->crowd;
  uint64_t sum = 1;
  lvd_wait_edge h;
  for (lvd_unit *u = c->app->units; u; u = u->next)
    if (lvd_unit_link(u)) lvd_unit_link(u)->knot.concerned = false;
  for (uint32_t i = 0; i < c->count; i++)
    for (uint32_t n = 0; !c->mark[i] && lvd_wait_graph_blocked(c, i, n, &h); n++) {
      const lvd_wait_node *m = &c->member[i];
      const lvd_sleeper *sleeper = lvd_want_sleeper(h.want);
      uint64_t x = mix((uintptr_t)sleeper);
      x += m->fiber ? mix((uintptr_t)m->fiber) + sleeper->sleeps : mix(~m->thread->serial);
      if (h.s) x = mix(x) + h.s->serial;
      sum += mix(x);
      lvd_link *link = h.call ? lvd_unit_link(h.call->unit) : NULL;
      if (h.s && h.s->shared && h.turn != LVD_OWNER_FIBER) link = h.s->shared->link;
      if (link) link->knot.concerned = true;
    }
  return sum ? sum : 1;
}

static void hurry(lvd_link *link, uint32_t what) {
  lvd_exchange_acq_rel_u32(&link->knot.look, what);
  lvd_os_eventfd_signal(link->own_bell);
}

/* Asks the links that are concerned, unless they have answered this very question. True: all have,
 * and still some of ours wait in vain. */
static bool ask_children(judgement *j) {
  if (!judge(j, WITH_CHILDREN)) return false;
  bool all = true;
  uint64_t vain = who(j);
  for (lvd_unit *u = j->crowd.app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link || !link->knot.concerned) continue;
    if (link->knot.asked_for == vain && link->knot.answered == link->knot.asked) continue;
    if (link->knot.asked_for != vain) hurry(link, LVD_PROBE_SEND);
    all = false;
  }
  return all;
}

/* Threads that wait in vain will be told so, but those whose wait ends by itself when the fibers have
 * heard of it. */
static void note_threads(const judgement *j) {
  const lvd_wait_graph *c = &j->crowd;
  lvd_wait_edge h;
  for (uint32_t i = c->fibers; i < c->count; i++)
    for (uint32_t n = 0; !c->mark[i] && lvd_wait_graph_blocked(c, i, n, &h); n++)
      c->member[i].thread->in_vain |= h.s || h.call;
}

/* The application is about to end: the children learn why, before what they wait for ends. */
static void tell_children(const lvd_app *app) {
  for (lvd_unit *u = app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link || link->side != LVD_PARENT) continue;
    lvd_store_relaxed_u32(&link->segment->knotted, 1);
    link->bell.wake(&link->bell);
  }
}

/* At rest, with the gate closed. `anew`: what was answered is forgotten. True: then the application is
 * to be ended. */
static bool in_vain(lvd_app *app, bool anew) {
  judgement j;
  bool vain = false;
  lvd_link *parent = NULL;
  lvd_os_lock(&app->blocks_lock); /* streams and units do not come or go */
  for (lvd_unit *u = app->units; u; u = u->next) {
    lvd_link *link = lvd_unit_link(u);
    if (!link) continue;
    if (link->side == LVD_CHILD) parent = link;
    if (anew) link->knot.answered = 0;
    if (anew) link->knot.asked_for = 0;
  }
  if (begin(&j, app) && !(vain = judge(&j, WITHIN)) && app->units) {
    vain = ask_children(&j);
    /* Perhaps in vain, and it is for our parent to find out. */
    if (anew && parent && judge(&j, WITH_PARENT)) hurry(parent, LVD_PROBE_REPLY);
  }
  if (vain) note_threads(&j);
  if (vain) tell_children(app);
  end(&j);
  lvd_os_unlock(&app->blocks_lock);
  return vain;
}

bool lvd_app_is_deadlocked(lvd_app *app) { return in_vain(app, true); }

/* ---- questions and answers ------------------------------------------------------------------ */

/* Items, in records. `items` counts as if all records but the last were full. */
typedef struct letter {
  lvd_record *record;
  uint32_t records, items;
  bool failed;
} letter;

static lvd_record *next_record(letter *l) {
  lvd_record *more = realloc(l->record, (l->records + 1) * sizeof *more);
  l->failed |= !more;
  if (!more) return NULL;
  l->record = more;
  return memset(&more[l->records++], 0, sizeof *more);
}

/* `who` it is that has it and waits in vain, by his number. */
static void add_item(letter *l, uint32_t who, uint32_t number, uint32_t what) {
  uint64_t item = (uint64_t)who << 34 | lvd_deadlock_item(number, what);
  if (l->items % ITEMS == 0 && !next_record(l)) return;
  memcpy(l->record[l->records - 1].data + l->items % ITEMS * 8, &item, 8);
  l->record[l->records - 1].size += 8;
  l->items++;
}

/* His number, if he waits in vain; else nobody's. */
static uint32_t vain_one(const judgement *j, lvd_user user) {
  uint32_t i = lvd_wait_graph_owner(&j->crowd, user);
  return i < j->crowd.count && !j->crowd.mark[i] ? i : j->crowd.count;
}

/* One of them, if all wait in vain. */
static uint32_t vain_party(const judgement *j, const lvd_user party[2], uint32_t parties) {
  uint32_t one = j->crowd.count;
  for (uint32_t i = 0; i < parties; i++)
    if ((one = vain_one(j, party[i])) == j->crowd.count) break;
  return one;
}

/* Whose end it is, if he waits in vain. */
LVD_RACY_READ static uint32_t vain_at(const judgement *j, lvd_shared_stream *ss, int end) {
  const stream *s = ss->stream;
  const stream_end *e = end == LVD_SENDER ? &s->sender : &s->receiver;
  void *owner = lvd_load_relaxed_ptr(&e->owner);
  if (owner) return vain_one(j, (lvd_user){owner, e->fiber});
  if (e->closed || lvd_shared_is_theirs(ss, end == LVD_SENDER)) return j->crowd.count;
  return vain_party(j, s->party, s->parties);
}

/* Of a stream that we have not opened: both ends, since the other side has one of them. It is known
 * by number to the parent alone; a child says its name, in a record of its own. */
static void add_expected(const judgement *j, lvd_link *link, const lvd_expected_users *x,
                         letter *l) {
  uint32_t who = vain_party(j, x->party, x->parties);
  if (who == j->crowd.count) return;
  if (link->side == LVD_PARENT) {
    uint32_t number = lvd_shared_half_open(link, LVD_CHILD, x->name);
    for (uint32_t end = 0; number && end < 2; end++) add_item(l, who, number, end);
    return;
  }
  lvd_record *r = next_record(l);
  if (r) memcpy(r->name, x->name, sizeof x->name);
  if (r) r->offset = who;
  l->items += r ? ITEMS : 0; /* the next item begins another one */
}

typedef struct serving {
  const judgement *j;
  letter *letter;
} serving;

static void add_served(uint32_t number, const lvd_fiber *f, void *argument) {
  serving *s = argument;
  uint32_t who = lvd_wait_graph_index(&s->j->crowd, f);
  if (who < s->j->crowd.count && !s->j->crowd.mark[who])
    add_item(s->letter, who, number, LVD_ITEM_CALL);
}

/* What is ours and waits in vain. With the link's lock, too. */
static void list_items(const judgement *j, lvd_link *link, letter *l) {
  for (lvd_shared_stream *ss = link->streams; ss; ss = ss->next)
    for (uint32_t end = 0; end < 2; end++) {
      uint32_t who = vain_at(j, ss, (int)end);
      if (who < j->crowd.count) add_item(l, who, ss->number, end);
    }
  for (const lvd_expected_users *x = link->knot.expected; x; x = x->next)
    add_expected(j, link, x, l);
  if (l->items % ITEMS) l->items += ITEMS - l->items % ITEMS;
  serving s = {j, l};
  lvd_link_served(link, add_served, &s);
}

/* The last one says that it is. An empty letter is one record. */
static void post(lvd_link *link, letter *l, uint32_t number) {
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

static void ask(lvd_link *link) {
  lvd_app *app = link->app;
  letter l = {0};
  judgement j;
  uint32_t number = 0;
  lvd_os_lock(&link->lock);
  if (close_gate(app)) {
    lvd_os_lock(&app->blocks_lock);
    if (begin(&j, app) && judge(&j, WITH_CHILDREN)) {
      link->knot.asked_for = who(&j);
      number = ++link->knot.asked;
      if (!number) number = link->knot.asked = 1;
      lvd_wait_info_forget(link);
      list_items(&j, link, &l);
    }
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
  }
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
  if (number) post(link, &l, number);
}

/* ---- told by the parent ------------------------------------------------------------------------ */

bool lvd_deadlock_is_parents(const lvd_link *link) {
  if (link->side == LVD_PARENT || link->knot.heeded) return false;
  lvd_fence_seq_cst(); /* after the look at what has ended: it was said before that */
  return lvd_load_relaxed_u32(&link->segment->knotted);
}

/* The parent's application ends, since some of its own wait in vain: so does who waits for it here. They
 * are told once; what they wait for afterwards has ended. */
static void heed(lvd_link *link) {
  lvd_app *app = link->app;
  judgement j;
  bool rests = close_gate(app);
  if (rests) {
    lvd_os_lock(&app->blocks_lock);
    link->knot.answered = 0; /* nothing of the parent's comes any more */
    bool begun = begin(&j, app);
    j.heeds = true;
    if (begun && judge(&j, WITH_PARENT)) {
      note_threads(&j);
      for (uint32_t i = 0; i < j.crowd.fibers; i++)
        if (!j.crowd.mark[i]) lvd_fiber_set_cancelled(j.crowd.member[i].fiber, LVD_E_DEADLOCK);
    }
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
    lvd_thread_waiters_tell(app, LVD_E_DEADLOCK);
  }
  lvd_os_unlock(&app->gate);
  if (rests) lvd_fibers_wake(app); /* which knocks at the gate */
  lvd_os_lock(&link->lock);
  link->knot.heeded = true;
  lvd_shared_wake(link); /* which has let this go first */
  lvd_os_unlock(&link->lock);
}

void lvd_deadlock_probe_run(lvd_link *link) {
  uint32_t what = lvd_exchange_acq_rel_u32(&link->knot.look, 0);
  const lvd_record rests = {.kind = LVD_RECORD_QUIESCENT};
  if (what == LVD_PROBE_SEND) ask(link);
  if (what == LVD_PROBE_REPLY) lvd_link_send(link, &rests);
  if (lvd_deadlock_is_parents(link)) heed(link);
}

/* ---- told by the other side ------------------------------------------------------------------- */

static void mark_stream(lvd_link *link, uint32_t number, uint64_t end, uint32_t question,
                        uint32_t who) {
  lvd_shared_stream *ss = link->streams;
  while (ss && ss->number != number) ss = ss->next;
  if (!ss || end > LVD_RECEIVER) return;
  lvd_store_relaxed_u32(&ss->told_by[end], who);
  lvd_store_relaxed_u32(&ss->told[end], question);
}

/* The other side's items. */
static void mark_told(lvd_link *link, const lvd_record *r) {
  lvd_os_lock(&link->lock);
  if (r->name[0] && link->side == LVD_PARENT) {
    uint32_t number = lvd_shared_half_open(link, LVD_PARENT, r->name);
    for (uint64_t end = 0; number && end < 2; end++)
      mark_stream(link, number, end, r->number, (uint32_t)r->offset);
  }
  for (uint32_t at = 0; at + 8 <= r->size && at + 8 <= LVD_RECORD_INLINE; at += 8) {
    uint64_t item;
    memcpy(&item, r->data + at, 8);
    uint32_t number = (uint32_t)(item >> 2), what = item & 3, who = (uint32_t)(item >> 34);
    if (what == LVD_ITEM_CALL) {
      lvd_call *c = lvd_link_call(link, number);
      if (c) lvd_store_relaxed_u32(&c->told_by, who);
      if (c) lvd_store_relaxed_u32(&c->told, r->number);
      continue;
    }
    mark_stream(link, number, what, r->number, who);
  }
  lvd_os_unlock(&link->lock);
}

/* The child: the whole question is there. */
static void answer(lvd_link *link, uint32_t number) {
  lvd_app *app = link->app;
  letter l = {0};
  judgement j;
  lvd_record *line = NULL;
  uint32_t lines = 0;
  lvd_os_lock(&link->lock);
  if (close_gate(app)) {
    lvd_os_lock(&app->blocks_lock);
    link->knot.answered = number;
    if (begin(&j, app) && judge(&j, WITH_PARENT)) list_items(&j, link, &l);
    if (l.items) lines = lvd_wait_info_records(&j.crowd, link, number, &line);
    link->knot.answered = 0;
    end(&j);
    lvd_os_unlock(&app->blocks_lock);
  }
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
  for (uint32_t i = 0; i < lines; i++) lvd_link_send(link, &line[i]);
  free(line);
  post(link, &l, number);
}

/* The parent, when something has come from a child. */
static void consider(lvd_link *link, bool anew) {
  lvd_app *app = link->app;
  if (close_gate(app)) {
    if (!anew) link->knot.answered = link->knot.asked;
    if (in_vain(app, anew)) {
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
    if (parent) consider(link, true);
    return true;
  }
  if (parent && r->number != link->knot.asked) return true; /* of a question that is no more */
  if (r->kind == LVD_RECORD_WAIT_INFO) {
    if (parent) lvd_wait_info_take(link, r);
    return true;
  }
  mark_told(link, r);
  if (r->room && parent) consider(link, false);
  if (r->room && !parent) answer(link, r->number);
  return true;
}

void lvd_deadlock_expect_users(lvd_link *link, const char *name, const lvd_user party[2],
                               uint32_t parties) {
  lvd_os_lock(&link->lock);
  lvd_expected_users **at = &link->knot.expected, *x;
  while ((x = *at) && strcmp(x->name, name) != 0) at = &x->next;
  if (x && !parties) {
    *at = x->next;
    free(x);
  } else if (parties &&
             (x || (x = calloc(1, sizeof *x)))) { /* else it is not known, and hoped for */
    copy_name(x->name, name);
    for (uint32_t i = 0; i < parties; i++) x->party[i] = party[i];
    x->parties = parties;
    *at = x;
  }
  lvd_os_unlock(&link->lock);
}

void lvd_deadlock_probe_free(lvd_link *link) {
  for (lvd_expected_users *x = link->knot.expected, *next; x; x = next) {
    next = x->next;
    free(x);
  }
  free(link->knot.line);
}
