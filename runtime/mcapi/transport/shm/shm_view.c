/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Views: the mapping through which an open end accesses its channel. Each end has its own, so that
 * packets and a loan that the program still holds when the end is closed can stay at their
 * addresses: a private copy replaces the mapping, and the channel can be initialized for others.
 *
 * A view's address range stays mapped until the domain is left, to the file or to a copy: a thread
 * may read a channel without the endpoint's lock after it has been closed. */
#include "../transport.h"

#include <stdlib.h>
#include <string.h>

enum { PRIVATE_COPY = MC_ENDPOINTS, VIEW_BYTES = MC_MAP_GRANULE + 2 * MC_RING_MAX_BYTES };

struct mc_view {
  mc_detached detached; /* first */
  mc_domain *domain;    /* null: the domain has been left */
  mc_view *next;
  lvd_channel *channel;
  uint32_t index; /* of the channel that is mapped; or PRIVATE_COPY */
  bool used;
};

lvd_channel *mc_view_channel(const mc_view *v) { return v->channel; }

/* With the domain's lock. */
static bool map(mc_domain *d, mc_view *v, uint32_t index) {
  if (v->channel && v->index == index) return true;
  lvd_channel *at = lvd_os_shared_map_at(v->channel, d->file, mc_channel_at(index), MC_MAP_GRANULE,
                                         MC_RING_MAX_BYTES);
  v->index = at ? index : PRIVATE_COPY;
  if (at) v->channel = at;
  return at != NULL;
}

static mc_view *find(const mc_domain *d, uint32_t index) {
  mc_view *v = d->views;
  while (v && (v->used || (index != PRIVATE_COPY && v->index != index))) v = v->next;
  return v;
}

mc_view *mc_view_open(mc_domain *d, uint32_t index) {
  lvd_os_lock(&d->lock);
  mc_view *v = find(d, index);
  if (!v) v = find(d, PRIVATE_COPY);
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

/* ---- closing --------------------------------------------------------------------------------- */

static void mark_unused(mc_view *v) {
  mc_domain *d = v->domain;
  lvd_os_lock(&d->lock);
  v->used = false;
  lvd_os_unlock(&d->lock);
}

static void unmap(mc_view *v) {
  lvd_os_shared_unmap(v->channel, MC_MAP_GRANULE, MC_RING_MAX_BYTES);
  free(v);
}

/* Called when no buffer in it is held any more. The copy's memory is given back to the system. */
static void end_detached(mc_detached *l) {
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

static void add_held(mc_view *v, unsigned char *copy, const void *buffer, size_t size) {
  size_t at = (size_t)((const unsigned char *)buffer - (const unsigned char *)v->channel);
  v->detached.buffer[v->detached.count++] = buffer;
  if (copy) memcpy(copy + at, buffer, size);
}

/* If there is no memory for a copy, held buffers stay valid until the channel is connected
 * again. */
void mc_view_close(const mc_local_endpoint *local) {
  const mc_channel *c = &local->channel;
  mc_view *v = c->view;
  if (!c->held_count && !c->loan) {
    mark_unused(v);
    return;
  }
  unsigned char *copy = lvd_os_alloc(VIEW_BYTES);
  v->detached.count = 0;
  for (uint32_t i = 0; i < c->count; i++) {
    const mc_held_packet *h = &c->held[(c->first + i) % MC_HELD_ENTRIES];
    if (!h->released) add_held(v, copy, h->at, (size_t)(h->lines - 1) * MC_PACKET_LINE_BYTES);
  }
  if (c->loan) add_held(v, copy, c->loan, c->loan_size);
  if (copy && lvd_os_replace_mapping(v->channel, copy, VIEW_BYTES))
    v->index = PRIVATE_COPY;
  else
    lvd_os_free(copy, VIEW_BYTES);
  v->detached.end = end_detached;
  mc_detached_add(&v->detached, mc_owner(local));
}

/* Called when no call can access the domain. Held buffers stay valid. */
void mc_views_leave(mc_domain *d) {
  mc_detached_lock();
  for (mc_view *v = d->views, *next; v; v = next) {
    next = v->next;
    v->domain = NULL;
    if (!v->used) unmap(v);
  }
  mc_detached_unlock();
  d->views = NULL;
}
