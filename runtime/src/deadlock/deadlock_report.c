/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait information that a child sends with the reply to a deadlock probe, and that the parent
 * keeps. */
#include "deadlock_report.h"
#include "../stream/stream.h"

#include <stdlib.h>

enum { ENTRIES_MAX = 1024, ENTRIES_MIN = 16 };

_Static_assert(sizeof(lvd_wait_info_wire) == LVD_RECORD_INLINE_BYTES,
               "as long as a record has room");
_Static_assert(sizeof((lvd_wait_info *)0)->name == sizeof((lvd_record *)0)->name, "as long");

/* ---- the child: sending ---------------------------------------------------------------------- */

static void fill_action(lvd_wait_info_wire *l, const lvd_wait_graph *c, const lvd_link *link,
                        const lvd_wait_edge *h) {
  const lvd_shared_stream *ss = h->s ? h->s->shared : NULL;
  uint32_t end = h->room ? LVD_RECEIVER : LVD_SENDER;
  bool remote = h->owner == LVD_OWNER_PROCESS || h->owner == LVD_OWNER_NONE;
  if (h->s) l->action = h->room ? LVD_AWAITS_DRAIN : LVD_AWAITS_FILL;
  if (ss && ss->link == link && remote)
    l->item = 1 + lvd_deadlock_item(ss->number, end);
  else if (h->call && lvd_unit_link(h->call->unit) == link)
    l->item = 1 + lvd_deadlock_item(h->call->number, LVD_ITEM_CALL);
  else if (h->other < c->count)
    l->other = 1 + h->other;
}

static void write_entry(lvd_record *r, const lvd_wait_graph *c, const lvd_link *link,
                        uint32_t number, uint32_t waiter, const lvd_wait_edge *h) {
  lvd_wait_info_wire l = {.waiter = waiter};
  const lvd_wait_node *m = &c->node[waiter];
  text_buffer name = {r->name, sizeof r->name, 0}, text = {l.text, sizeof l.text, 0};
  memset(r, 0, sizeof *r);
  l.alone = m->wants == 1 && !m->timed;
  lvd_report_wait_node(&name, c, waiter);
  lvd_report_wait_edge(&text, c, h);
  fill_action(&l, c, link, h);
  r->kind = LVD_RECORD_WAIT_INFO;
  r->number = number;
  r->size = sizeof l;
  memcpy(r->data, &l, sizeof l);
}

uint32_t lvd_wait_info_records(const lvd_wait_graph *c, lvd_link *link, uint32_t number,
                               lvd_record **out) {
  uint32_t lines = 0, max_entries = 0;
  lvd_wait_edge h;
  for (uint32_t i = 0; i < c->count; i++) max_entries += c->node[i].wants;
  if (max_entries > ENTRIES_MAX) max_entries = ENTRIES_MAX;
  if (!(*out = calloc(max_entries + 1, sizeof **out))) return 0;
  for (uint32_t live = 0; live < 2; live++)
    for (uint32_t i = 0; i < c->count; i++)
      for (uint32_t n = 0;
           c->mark[i] == live && lines < max_entries && lvd_wait_graph_blocked(c, i, n, &h); n++)
        write_entry(&(*out)[lines++], c, link, number, i, &h);
  return lines;
}

/* ---- the parent: keeping --------------------------------------------------------------------- */

typedef struct search {
  uint32_t number;
  lvd_user found;
} search;

static void match_served(uint32_t number, const lvd_fiber *f, void *argument) {
  search *s = argument;
  lvd_fiber *fiber = (lvd_fiber *)(uintptr_t)f;
  if (number == s->number) s->found = (lvd_user){fiber, fiber};
}

/* The user that owns the item or will take it. The caller holds the link's lock and the list of
 * streams. */
LVD_RACY_READ static lvd_user user_of(lvd_link *link, uint64_t item) {
  uint32_t number = (uint32_t)(item >> 2), what = item & 3;
  search s = {.number = number};
  if (what == LVD_ITEM_CALL) {
    lvd_link_served(link, match_served, &s);
    return s.found;
  }
  const lvd_shared_stream *ss = link->streams;
  while (ss && ss->number != number) ss = ss->next;
  if (ss) {
    const stream_end *e = what == LVD_SENDER ? &ss->stream->sender : &ss->stream->receiver;
    void *owner = lvd_load_relaxed_ptr(&e->owner);
    return owner ? (lvd_user){owner, e->fiber} : ss->stream->party[0];
  }
  for (const lvd_expected_users *x = link->probe.expected; x; x = x->next)
    if (lvd_shared_half_open(link, LVD_CHILD, x->name) == number) return x->party[0];
  return s.found;
}

/* Returns null if there are too many, or memory is short. */
static lvd_wait_info *next_entry(lvd_deadlock_probe *k) {
  if (k->entries == k->entries_capacity) {
    uint32_t room = k->entries ? 2 * k->entries : ENTRIES_MIN;
    lvd_wait_info *more = room <= ENTRIES_MAX ? realloc(k->entry, room * sizeof *more) : NULL;
    if (!more) return NULL;
    k->entry = more;
    k->entries_capacity = room;
  }
  return memset(&k->entry[k->entries++], 0, sizeof *k->entry);
}

/* Copies the first line only. */
static void sanitize_line(char *to, size_t max_entries, const char *from) {
  char line[LVD_RECORD_INLINE_BYTES];
  size_t n = strcspn(from, "\n");
  memcpy(line, from, n);
  lvd_link_sanitize(to, 0, max_entries, (const unsigned char *)line, n);
}

/* The content is not trusted: indices of the child select only its own entries, and control
 * characters are removed. */
void lvd_wait_info_take(lvd_link *link, const lvd_record *r) {
  lvd_app *app = link->app;
  lvd_wait_info_wire wire;
  memcpy(&wire, r->data, sizeof wire);
  wire.text[sizeof wire.text - 1] = 0;
  lvd_os_lock(&link->lock);
  lvd_os_lock(&app->gate);
  lvd_os_lock(&app->blocks_lock);
  lvd_wait_info *l = next_entry(&link->probe);
  if (l) {
    l->wire = wire;
    if (wire.item) l->user = user_of(link, wire.item - 1);
    sanitize_line(l->wire.text, sizeof l->wire.text, wire.text);
    sanitize_line(l->name, sizeof l->name, r->name);
  }
  lvd_os_unlock(&app->blocks_lock);
  lvd_os_unlock(&app->gate);
  lvd_os_unlock(&link->lock);
}

void lvd_wait_info_forget(lvd_link *link) { link->probe.entries = 0; }
