/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Views: where an end that is open sees its channel. Each has a mapping of its own, so that what the program still holds
 * when the end is closed, packets and a loan, can stay where it is: a copy takes the place of the mapping, at the same
 * addresses, and the channel can be laid out anew for others.
 *
 * What a view has mapped stays mapped, as this or as that, until the domain is left: who looks without the endpoint's
 * lock may look at a channel that has been closed meanwhile. */
#include "../transport.h"

#include <stdlib.h>
#include <string.h>

enum { NOWHERE = MC_ENDPOINTS, ALL = MC_UNIT + 2 * MC_RING };

struct mc_view {
  mc_lent lent;      /* first */
  mc_domain *domain; /* null: it has been left */
  mc_view *next;
  lvd_channel *channel;
  uint32_t index; /* whose channel is mapped there; NOWHERE: a copy */
  bool used;
};

lvd_channel *mc_view_channel(const mc_view *v) { return v->channel; }

/* With the domain's lock. */
static bool map(mc_domain *d, mc_view *v, uint32_t index) {
  if (v->channel && v->index == index) return true;
  lvd_channel *at =
      lvd_os_shared_map_at(v->channel, d->file, mc_channel_at(index), MC_UNIT, MC_RING);
  v->index = at ? index : NOWHERE;
  if (at) v->channel = at;
  return at != NULL;
}

static mc_view *find(const mc_domain *d, uint32_t index) {
  mc_view *v = d->views;
  while (v && (v->used || (index != NOWHERE && v->index != index))) v = v->next;
  return v;
}

mc_view *mc_view_open(mc_domain *d, uint32_t index) {
  lvd_os_lock(&d->lock);
  mc_view *v = find(d, index);
  if (!v) v = find(d, NOWHERE);
  if (!v && (v = calloc(1, sizeof *v))) {
    v->domain = d;
    v->next = d->views;
    d->views = v;
  }
  if (v && !map(d, v, index)) v = NULL;
  if (v) v->used = true;
  lvd_os_unlock(&d->lock);
  return v;
}

/* ---- closed --------------------------------------------------------------------------------- */

static void give_back(mc_view *v) {
  mc_domain *d = v->domain;
  lvd_os_lock(&d->lock);
  v->used = false;
  lvd_os_unlock(&d->lock);
}

static void unmap(mc_view *v) {
  lvd_os_shared_unmap(v->channel, MC_UNIT, MC_RING);
  free(v);
}

/* Nothing is held there any more. The copy's memory goes back to the system. */
static void end(mc_lent *l) {
  mc_view *v = (mc_view *)l;
  mc_domain *d = v->domain;
  if (!d) {
    unmap(v);
    return;
  }
  lvd_os_lock(&d->lock);
  map(d, v, 0);
  v->used = false;
  lvd_os_unlock(&d->lock);
}

static void lend(mc_view *v, unsigned char *copy, const void *buffer, size_t size) {
  size_t at = (size_t)((const unsigned char *)buffer - (const unsigned char *)v->channel);
  v->lent.buffer[v->lent.count++] = buffer;
  if (copy) memcpy(copy + at, buffer, size);
}

/* Where there is no memory for a copy, what is held lasts until the channel is connected anew. */
void mc_view_close(const mc_local *local) {
  const mc_channel *c = &local->channel;
  mc_view *v = c->view;
  if (!c->out_there && !c->loan) {
    give_back(v);
    return;
  }
  unsigned char *copy = lvd_os_alloc(ALL);
  v->lent.count = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    const mc_held *h = &c->held[(c->first + i) % MC_HELD];
    if (!h->released) lend(v, copy, h->at, (size_t)(h->lines - 1) * MC_PACKET_LINE);
  }
  if (c->loan) lend(v, copy, c->loan, c->loan_size);
  if (copy && lvd_os_replace_mapping(v->channel, copy, ALL))
    v->index = NOWHERE;
  else
    lvd_os_free(copy, ALL);
  v->lent.end = end;
  mc_lent_keep(&v->lent, local->node);
}

/* Nobody is in a call any more. What is held stays. */
void mc_views_leave(mc_domain *d) {
  mc_lents_lock();
  for (mc_view *v = d->views, *next; v; v = next) {
    next = v->next;
    v->domain = NULL;
    if (!v->used) unmap(v);
  }
  mc_lents_unlock();
  d->views = NULL;
}
