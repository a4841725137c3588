/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a process says of those that wait there, and what of that the parent keeps. */
#include "deadlock_report.h"
#include "../stream/stream.h"

#include <stdlib.h>

enum { MOST_LINES = 1024, FEW_LINES = 16 };

_Static_assert(sizeof(lvd_wait_info_wire) == LVD_RECORD_INLINE, "as long as a record has room");
_Static_assert(sizeof((lvd_wait_info *)0)->name == sizeof((lvd_record *)0)->name, "as long");

/* ---- the child: saying ---------------------------------------------------------------------- */

static void say_whose_turn(lvd_wait_info_wire *l, const lvd_wait_graph *c, const lvd_link *link,
                           const lvd_wait_edge *h) {
  const lvd_shared_stream *ss = h->s ? h->s->shared : NULL;
  uint32_t end = h->room ? LVD_RECEIVER : LVD_SENDER;
  bool theirs = h->turn == LVD_OWNER_PROCESS || h->turn == LVD_OWNER_NONE;
  if (h->s) l->turn = h->room ? LVD_AWAITS_DRAIN : LVD_AWAITS_FILL;
  if (ss && ss->link == link && theirs)
    l->item = 1 + lvd_deadlock_item(ss->number, end);
  else if (h->call && lvd_unit_link(h->call->unit) == link)
    l->item = 1 + lvd_deadlock_item(h->call->number, LVD_ITEM_CALL);
  else if (h->other < c->count)
    l->other = 1 + h->other;
}

static void write_line(lvd_record *r, const lvd_wait_graph *c, const lvd_link *link,
                       uint32_t number, uint32_t who, const lvd_wait_edge *h) {
  lvd_wait_info_wire l = {.who = who};
  const lvd_wait_node *m = &c->member[who];
  text_buffer name = {r->name, sizeof r->name, 0}, text = {l.text, sizeof l.text, 0};
  memset(r, 0, sizeof *r);
  l.alone = m->wants == 1 && !m->timed;
  lvd_report_wait_node(&name, c, who);
  lvd_report_wait_edge(&text, c, h);
  say_whose_turn(&l, c, link, h);
  r->kind = LVD_RECORD_WAIT_INFO;
  r->number = number;
  r->size = sizeof l;
  memcpy(r->data, &l, sizeof l);
}

uint32_t lvd_wait_info_records(const lvd_wait_graph *c, lvd_link *link, uint32_t number,
                               lvd_record **out) {
  uint32_t lines = 0, most = 0;
  lvd_wait_edge h;
  for (uint32_t i = 0; i < c->count; i++) most += c->member[i].wants;
  if (most > MOST_LINES) most = MOST_LINES;
  if (!(*out = calloc(most + 1, sizeof **out))) return 0;
  for (uint32_t hope = 0; hope < 2; hope++)
    for (uint32_t i = 0; i < c->count; i++)
      for (uint32_t n = 0;
           c->mark[i] == hope && lines < most && lvd_wait_graph_blocked(c, i, n, &h); n++)
        write_line(&(*out)[lines++], c, link, number, i, &h);
  return lines;
}

/* ---- the parent: keeping -------------------------------------------------------------------- */

typedef struct search {
  uint32_t number;
  lvd_user found;
} search;

static void find_served(uint32_t number, const lvd_fiber *f, void *argument) {
  search *s = argument;
  lvd_fiber *fiber = (lvd_fiber *)(uintptr_t)f;
  if (number == s->number) s->found = (lvd_user){fiber, fiber};
}

/* Who has it, or will. With the link's lock and the list of streams. */
LVD_RACY_READ static lvd_user user_of(lvd_link *link, uint64_t item) {
  uint32_t number = (uint32_t)(item >> 2), what = item & 3;
  search s = {.number = number};
  if (what == LVD_ITEM_CALL) {
    lvd_link_served(link, find_served, &s);
    return s.found;
  }
  const lvd_shared_stream *ss = link->streams;
  while (ss && ss->number != number) ss = ss->next;
  if (ss) {
    const stream_end *e = what == LVD_SENDER ? &ss->stream->sender : &ss->stream->receiver;
    void *owner = lvd_load_relaxed_ptr(&e->owner);
    return owner ? (lvd_user){owner, e->fiber} : ss->stream->party[0];
  }
  for (const lvd_expected_users *x = link->knot.expected; x; x = x->next)
    if (lvd_shared_half_open(link, LVD_CHILD, x->name) == number) return x->party[0];
  return s.found;
}

/* Null: there are too many, or there is no memory. */
static lvd_wait_info *next_line(lvd_deadlock_probe *k) {
  if (k->lines == k->lines_room) {
    uint32_t room = k->lines ? 2 * k->lines : FEW_LINES;
    lvd_wait_info *more = room <= MOST_LINES ? realloc(k->line, room * sizeof *more) : NULL;
    if (!more) return NULL;
    k->line = more;
    k->lines_room = room;
  }
  return memset(&k->line[k->lines++], 0, sizeof *k->line);
}

/* A line is one line. */
static void quote(char *to, size_t most, const char *from) {
  char line[LVD_RECORD_INLINE];
  size_t n = strcspn(from, "\n");
  memcpy(line, from, n);
  lvd_link_sanitize(to, 0, most, (const unsigned char *)line, n);
}

/* What a child says is the child's: its numbers lead nowhere but into its own lines, and what could spoil
 * a terminal is left out. */
void lvd_wait_info_take(lvd_link *link, const lvd_record *r) {
  lvd_app *app = link->app;
  lvd_wait_info_wire said;
  memcpy(&said, r->data, sizeof said);
  said.text[sizeof said.text - 1] = 0;
  lvd_os_lock(&link->lock);
  lvd_os_lock(&app->gate);
  lvd_os_lock(&app->blocks_lock);
  lvd_wait_info *l = next_line(&link->knot);
  if (l) {
    l->said = said;
    if (said.item) l->user = user_of(link, said.item - 1);
    quote(l->said.text, sizeof l->said.text, said.text);
    quote(l->name, sizeof l->name, r->name);
  }
  lvd_os_unlock(&app->blocks_lock);
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
}

void lvd_wait_info_forget(lvd_link *link) { link->knot.lines = 0; }
