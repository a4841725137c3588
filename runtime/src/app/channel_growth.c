/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Growth of channels: where an application is deadlocked only because a channel is full, that
 * channel gets twice its capacity, and the application continues.
 *
 * Such a deadlock is artificial: with unbounded channels it would not exist (T. M. Parks, Bounded
 * Scheduling of Process Networks, 1995). As there, the smallest full channel grows, so that each
 * deadlock costs the least memory and no channel grows for ever where another one would do. As in
 * M. Geilen and T. Basten, Requirements on the Execution of Kahn Process Networks, 2003, it must be
 * in a cycle of waits: where a consumer waits for an actor that has ended, a producer without end
 * fills its channel, and no more memory. (A channel with a smaller capacity at load grows outside
 * of a cycle, too, up to the capacity of its description.)
 *
 * The graph of waits: an actor that waits for room waits for each consumer that leaves too little
 * of it; one that waits for elements waits for their producer. An actor that waits for several
 * items has an edge for each. An open channel end of the program is live, and so is each actor that
 * something live may resume; the rest is deadlocked, since the application is quiescent.
 *
 * Exclusion. Called at quiescence with the gate closed (quiescence.c): nothing of the application
 * is ready, runs or is in transit, and no thread can change that without the gate. So handles and
 * ring have no other user, and each entity that runs afterwards was woken after the exchange: under
 * the gate, or by an entity that was. Its worker sees the exchange as it sees all that happened
 * before a wake-up. Channels with an end of the program do not grow, since a thread of the program
 * uses that handle at any time. Threads that read counters read the capacity of a handle (which may
 * be the old one), never a ring; an upgrade, which copies rings, holds the gate.
 *
 * No orders of its own. */
#include "../channel/channel_ring.h"
#include "app.h"

#include <stdlib.h>
#include <string.h>

/* ---- exchanging a ring ----------------------------------------------------------------------- */

static lvd_producer *producer_of(lvd_app *app, uint32_t channel) {
  const lvd_port_ref from = app->net->channel[channel].from;
  return &app->entity[from.actor].actor.out[from.port];
}

static lvd_consumer *consumer_of(lvd_app *app, uint32_t channel, uint32_t k) {
  const lvd_port_ref to = app->net->channel[channel].to[k];
  return &app->entity[to.actor].actor.in[to.port];
}

/* Number of elements in the channel for consumer `k`; 0 if that has left. */
static uint32_t fill_of(const lvd_channel *ch, uint32_t k) {
  const lvd_consumer_shared *c = &ch->consumer[k];
  if (lvd_load_relaxed_u32(&c->state) != LVD_OPEN) return 0;
  return lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&c->head);
}

static uint32_t fill_max(const lvd_channel *ch) {
  uint32_t most = 0;
  for (uint32_t k = 0; k < ch->consumers; k++) {
    uint32_t fill = fill_of(ch, k);
    if (fill > most) most = fill;
  }
  return most;
}

/* Copies what some consumer has yet to read to the same cursors of a ring of `slots`. */
static void copy_elements(const lvd_channel *ch, unsigned char *to, uint32_t slots) {
  const unsigned char *from = (const unsigned char *)ch + ch->data;
  uint32_t tail = lvd_load_relaxed_u32(&ch->tail), at = tail - fill_max(ch);
  while (at != tail) { /* the old ring is the smaller one: it alone can wrap within a step */
    uint32_t first = at & (ch->slots - 1), n = ch->slots - first;
    if (n > tail - at) n = tail - at;
    memcpy(to + (size_t)(at & (slots - 1)) * ch->elem_size, from + (size_t)first * ch->elem_size,
           (size_t)n * ch->elem_size);
    at += n;
  }
}

static lvd_status exchange_ring(lvd_app *app, uint32_t channel, uint32_t capacity) {
  lvd_channel *ch = app->channel[channel];
  lvd_channel_growth *g = &app->growth[channel];
  uint32_t slots = lvd_ring_slots(capacity, ch->elem_size);
  if (!slots) return LVD_E_LIMIT;
  size_t size = (size_t)slots * ch->elem_size;
  uint64_t bytes = lvd_load_relaxed_u64(&app->bytes) - g->ring_bytes + size;
  app->refused.bytes = bytes;
  if (bytes > app->bytes_max) return LVD_E_LIMIT;
  lvd_os_rings rings;
  void *ring;
  lvd_status status = lvd_os_rings_alloc(&rings, 1, &size, &ring);
  if (status != LVD_OK) return status;
  copy_elements(ch, ring, slots);
  lvd_os_rings_free(&g->rings);
  g->rings = rings;
  g->ring_bytes = size;
  ch->data = (int64_t)((intptr_t)ring - (intptr_t)ch);
  ch->slots = slots;
  lvd_store_relaxed_u64(&app->bytes, bytes);
  return LVD_OK;
}

static bool has_external_end(const lvd_channel_desc *d) {
  bool any = d->from.actor == LVD_EXTERNAL;
  for (uint32_t k = 0; k < d->consumers; k++) any |= d->to[k].actor == LVD_EXTERNAL;
  return any;
}

lvd_status lvd_channel_grow(lvd_app *app, uint32_t channel, uint32_t capacity) {
  const lvd_channel_desc *d = &app->net->channel[channel];
  lvd_channel *ch = app->channel[channel];
  lvd_status status = LVD_OK;
  app->refused = (lvd_growth_refused){.channel = channel, .capacity = capacity};
  if (app->fixed_buffers || has_external_end(d))
    status = LVD_E_STATE;
  else if (capacity > LVD_CHANNEL_CAPACITY)
    status = LVD_E_LIMIT;
  else if (capacity > ch->slots) /* else the ring has slots to spare */
    status = exchange_ring(app, channel, capacity);
  app->refused.status = status;
  if (status != LVD_OK) return status;
  ch->capacity = capacity;
  lvd_producer *p = producer_of(app, channel);
  p->data = (unsigned char *)ch + ch->data;
  p->mask = ch->slots - 1;
  p->capacity = capacity;
  p->threshold = lvd_default_threshold(capacity, d->elem_size);
  for (uint32_t k = 0; k < d->consumers; k++) {
    lvd_consumer *c = consumer_of(app, channel, k);
    c->data = p->data;
    c->mask = p->mask;
    c->capacity = capacity;
    if (!d->threshold) c->threshold = p->threshold;
  }
  return LVD_OK;
}

/* ---- the graph of waits ---------------------------------------------------------------------- */

typedef struct wait_edge {
  uint32_t to, next; /* 1 + index; 0: end of list */
} wait_edge;

typedef struct wait_graph {
  lvd_app *app;
  /* One block of memory: four numbers per actor, and the edges. */
  uint32_t *first; /* 1 + the index of its first edge */
  uint32_t *mark;  /* number of the last search that has reached it */
  uint32_t *live;  /* 1: something live may resume it */
  uint32_t *queue; /* actors that a search has reached */
  wait_edge *edge;
  uint32_t edges, searches;
} wait_graph;

/* Does the producer wait because consumer `k` leaves too little room? */
static bool waits_for_room(lvd_app *app, uint32_t channel, uint32_t k) {
  const lvd_channel *ch = app->channel[channel];
  uint32_t from = app->net->channel[channel].from.actor;
  if (from == LVD_EXTERNAL || lvd_load_relaxed_u32(&app->entity[from].state) == LVD_FINISHED)
    return false;
  uint32_t n = producer_of(app, channel)->await;
  return n && lvd_load_relaxed_u32(&ch->consumer[k].state) == LVD_OPEN &&
         (uint64_t)fill_of(ch, k) + n > ch->capacity;
}

static bool waits_for_elements(lvd_app *app, uint32_t channel, uint32_t k) {
  uint32_t to = app->net->channel[channel].to[k].actor;
  return to != LVD_EXTERNAL && lvd_load_relaxed_u32(&app->entity[to].state) != LVD_FINISHED &&
         consumer_of(app, channel, k)->await;
}

static bool is_live(const wait_graph *g, uint32_t actor) {
  return actor == LVD_EXTERNAL || g->live[actor];
}

/* May the actors at both ends of the channel be resumed by something live? Returns true if one has
 * become live. There is room when all consumers have made it. */
static bool spread_live(wait_graph *g, uint32_t channel) {
  const lvd_channel_desc *d = &g->app->net->channel[channel];
  uint32_t from = d->from.actor, waits = 0, dead = 0;
  bool closed = lvd_load_relaxed_u32(&g->app->channel[channel]->state) != LVD_OPEN, any = false;
  for (uint32_t k = 0; k < d->consumers; k++) {
    uint32_t to = d->to[k].actor;
    if (waits_for_room(g->app, channel, k)) {
      waits++;
      dead += !is_live(g, to);
    }
    if (!closed && is_live(g, from) && waits_for_elements(g->app, channel, k) && !g->live[to])
      g->live[to] = any = 1;
  }
  if (waits && !dead && !g->live[from]) g->live[from] = any = 1;
  return any;
}

static void add_edge(wait_graph *g, uint32_t from, uint32_t to) {
  if (is_live(g, from) || is_live(g, to)) return;
  g->edge[g->edges++] = (wait_edge){to, g->first[from]};
  g->first[from] = g->edges;
}

/* Returns false if memory is short; else the caller frees g->first. */
static bool build(wait_graph *g, lvd_app *app) {
  const lvd_network *net = app->net;
  size_t actors = net->actors, ends = 0;
  for (uint32_t i = 0; i < net->channels; i++) ends += net->channel[i].consumers;
  uint32_t *block = calloc(4 * actors * sizeof *block + 2 * ends * sizeof *g->edge, 1);
  if (!block) return false;
  *g = (wait_graph){.app = app,
                    .first = block,
                    .mark = block + actors,
                    .live = block + 2 * actors,
                    .queue = block + 3 * actors,
                    .edge = (wait_edge *)(block + 4 * actors)};
  /* In turn from the first channel and from the last: a chain is done in two sweeps. */
  for (bool again = app->external_ends, last = true; again; last = !last) {
    again = false;
    for (uint32_t i = 0; i < net->channels; i++)
      again |= spread_live(g, last ? net->channels - 1 - i : i);
  }
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++) {
      uint32_t from = net->channel[i].from.actor, to = net->channel[i].to[k].actor;
      if (waits_for_room(app, i, k)) add_edge(g, from, to);
      if (waits_for_elements(app, i, k)) add_edge(g, to, from);
    }
  return true;
}

/* Does `from` wait for `to`, directly or through others? */
static bool reaches(wait_graph *g, uint32_t from, uint32_t to) {
  uint32_t count = 0, search = ++g->searches;
  g->queue[count++] = from;
  g->mark[from] = search;
  for (uint32_t at = 0; at < count; at++) {
    if (g->queue[at] == to) return true;
    for (uint32_t e = g->first[g->queue[at]]; e; e = g->edge[e - 1].next) {
      uint32_t next = g->edge[e - 1].to;
      if (g->mark[next] == search) continue;
      g->mark[next] = search;
      g->queue[count++] = next;
    }
  }
  return false;
}

/* Is the channel full in a deadlock, and either its producer in a cycle of waits through it, or its
 * capacity less than that of its description? */
static bool may_grow(wait_graph *g, uint32_t channel) {
  const lvd_channel_desc *d = &g->app->net->channel[channel];
  bool is_reduced = g->app->channel[channel]->capacity < g->app->growth[channel].described_capacity;
  for (uint32_t k = 0; k < d->consumers; k++)
    if (waits_for_room(g->app, channel, k) && !is_live(g, d->from.actor) &&
        !is_live(g, d->to[k].actor) && (is_reduced || reaches(g, d->to[k].actor, d->from.actor)))
      return true;
  return false;
}

/* Does any producer wait for room? Usually none does, and this is all that a quiescence costs. */
static bool any_waits_for_room(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->channels; i++)
    for (uint32_t k = 0; k < app->net->channel[i].consumers; k++)
      if (waits_for_room(app, i, k)) return true;
  return false;
}

/* Of the full channels that may grow, the one with the fewest bytes. LVD_NOWHERE: there is none. */
static uint32_t smallest_full(lvd_app *app) {
  uint32_t found = LVD_NOWHERE;
  uint64_t least = UINT64_MAX;
  wait_graph g;
  if (!build(&g, app)) return LVD_NOWHERE;
  for (uint32_t i = 0; i < app->net->channels; i++) {
    uint64_t bytes = (uint64_t)app->channel[i]->capacity * app->channel[i]->elem_size;
    if (bytes >= least || has_external_end(&app->net->channel[i]) || !may_grow(&g, i)) continue;
    found = i;
    least = bytes;
  }
  free(g.first);
  return found;
}

bool lvd_channels_grow(lvd_app *app) {
  if (!any_waits_for_room(app)) return false;
  uint32_t channel = smallest_full(app);
  if (channel == LVD_NOWHERE) return false;
  const lvd_channel *ch = app->channel[channel];
  uint64_t capacity = 2 * (uint64_t)ch->capacity,
           needed = (uint64_t)fill_max(ch) + producer_of(app, channel)->await;
  uint32_t described = app->growth[channel].described_capacity;
  while (capacity < needed) capacity *= 2;
  if (ch->capacity < described && needed <= described && capacity > described) capacity = described;
  if (capacity > LVD_CHANNEL_CAPACITY && needed <= LVD_CHANNEL_CAPACITY &&
      ch->capacity < LVD_CHANNEL_CAPACITY)
    capacity = LVD_CHANNEL_CAPACITY;
  if (capacity > UINT32_MAX) capacity = UINT32_MAX; /* refused */
  if (lvd_channel_grow(app, channel, (uint32_t)capacity) != LVD_OK) return false;
  lvd_entity_wake_locked(&app->entity[app->net->channel[channel].from.actor]);
  return true;
}
