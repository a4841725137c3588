/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* State transfer: a new version of an application continues where the paused old one is.
 *
 * Transferred is what both have: the variables in common of actors of the same name and class, and
 * the elements in channels between the same ports. What only the new version has starts from its
 * initial state. What only the old one has must have nothing to lose: no elements in its channels,
 * and a schedule in its initial state. All is checked before anything is transferred, and the old
 * version is not changed, so that it may be resumed instead.
 *
 * What corresponds is found by names (version_match.c); what is not transferred is reported by
 * state_reset_report.c.
 *
 * No orders of its own: neither version runs, and the caller that has paused the old one has seen
 * all that it did (lvd_app_wait_inactive). Channels of the old one, which may be deadlocked, do not
 * grow meanwhile: its gate is held. */
#include "../app/app.h"
#include "../sched/no_abandon.h"
#include "../sched/restored_state.h"
#include "version_match.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct transfer {
  lvd_app *app, *old;
  char *why;
  size_t why_size;
} transfer;

LVD_PRINTF(2, 3) static lvd_status refuse(const transfer *t, const char *format, ...) {
  if (t->why && t->why_size) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->why, t->why_size, format, list);
    va_end(list);
  }
  return LVD_E_STATE;
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool keeps_state(const lvd_entity *e, const lvd_entity *of) {
  return e && e->actor.cls->state_schema && of->actor.cls->state_schema &&
         lvd_same_class(e->actor.cls, of->actor.cls);
}

static const lvd_state_var *variable(const lvd_state_schema *m, const lvd_state_var *like) {
  for (uint32_t i = 0; i < m->variables; i++) {
    const lvd_state_var *v = &m->variable[i];
    if (strcmp(v->name, like->name) == 0 && strcmp(v->type, like->type) == 0) return v;
  }
  return NULL;
}

/* The channel of the new version from the same port. Returns LVD_NOWHERE if there is none. */
static uint32_t matching_channel(const transfer *t, uint32_t i) {
  const lvd_network *net = t->app->net, *old = t->old->net;
  for (uint32_t k = 0; k < net->channels; k++)
    if (lvd_same_end(net, net->channel[k].from, old, old->channel[i].from, false)) return k;
  return LVD_NOWHERE;
}

static uint32_t matching_consumer(const transfer *t, uint32_t channel, lvd_port_ref to) {
  const lvd_channel_desc *d = &t->app->net->channel[channel];
  for (uint32_t k = 0; k < d->consumers; k++)
    if (lvd_same_end(t->app->net, d->to[k], t->old->net, to, true)) return k;
  return LVD_NOWHERE;
}

/* ---- checks ---------------------------------------------------------------------------------- */

/* The bytes at `offset` of its state, or of the state that it will start with. Returns null if that
 * is what `init` sets. */
static const unsigned char *state_at(const lvd_entity *e, uint32_t offset) {
  const lvd_restored_state *h = e->restored;
  if (e->initialised) return (const unsigned char *)e->actor.state + offset;
  if (!h) return NULL;
  const unsigned char *at = h->bytes;
  for (uint32_t i = 0; i < h->parts; at += h->part[i++].count)
    if (h->part[i].offset == offset) return at;
  return NULL;
}

/* The name of its schedule's state. Returns null if it has none, or is at its start. */
static const char *schedule_of(const lvd_entity *e) {
  const lvd_state_schema *m = e->actor.cls->state_schema;
  const unsigned char *at = m && m->states ? state_at(e, 0) : NULL;
  uint32_t state;
  if (!at) return NULL;
  memcpy(&state, at, sizeof state);
  bool inside = state >= m->first && state - m->first < m->states;
  return inside ? m->state[state - m->first] : NULL;
}

static bool is_over(const lvd_entity *e) {
  return lvd_load_relaxed_u32(&e->state) == LVD_FINISHED || (e->restored && e->restored->over);
}

/* Each old actor that one of its parts belongs to has come to its own end. */
static bool are_over(const transfer *t, const lvd_entity *e, bool *any) {
  bool all = true;
  lvd_fused_part m = lvd_fused_part_first(e), is;
  *any = false;
  do {
    const lvd_entity *o = lvd_with_fused_part(t->old, &m, &is);
    bool same = o && lvd_same_class_of(&m, &is);
    if (!o || (!same && is_over(o))) continue; /* a new part */
    bool over = same && is_over(o);
    *any |= over;
    all &= over;
  } while (lvd_fused_part_next(&m));
  return all;
}

static lvd_status check_actor(const transfer *t, const lvd_entity *o) {
  const lvd_entity *e = lvd_entity_named(t->app, o->name);
  if (is_over(o)) return LVD_OK;
  if (o->stack && !(o->in_input_wait && lvd_restarts(o)))
    return refuse(t, "%s is in the middle of a firing, and waits there", o->name);
  const char *name = schedule_of(o);
  const lvd_state_schema *m = o->actor.cls->state_schema;
  if (!name || strcmp(name, m->state[m->initial]) == 0) return LVD_OK;
  if (!keeps_state(e, o))
    return refuse(t, "the schedule of %s is at %s, and would be reset in its new version", o->name,
                  name);
  const lvd_state_schema *n = e->actor.cls->state_schema;
  for (uint32_t i = 0; i < n->states; i++)
    if (strcmp(n->state[i], name) == 0) return LVD_OK;
  return refuse(t, "the schedule of %s is at %s, which its new version has not", o->name, name);
}

/* It has done its initial firings. */
static bool has_begun(const lvd_entity *o) {
  const lvd_state_schema *m = o->actor.cls->state_schema;
  return m && (o->initialised || o->restored) && (!m->first || schedule_of(o));
}

/* Whether all old actors that its parts belonged to have begun, and whether any has. */
static bool have_begun(const lvd_app *old, const lvd_entity *e, bool *any) {
  bool all = true;
  lvd_fused_part m = lvd_fused_part_first(e), is;
  *any = false;
  do {
    const lvd_entity *o = lvd_holder(old, &m, &is);
    if (!o) continue;
    bool begun = has_begun(o);
    all &= begun;
    *any |= begun;
  } while (lvd_fused_part_next(&m));
  return all;
}

/* Parts that are fused now must agree: none may be at its end alone, or have done its initial
 * firings alone. */
static lvd_status check_fused(const transfer *t, const lvd_entity *e) {
  bool any;
  if (lvd_is_joined(e) && !are_over(t, e, &any) && any)
    return refuse(t, "some of %s have come to their end, and the others have not", e->name);
  const lvd_state_schema *n = e->actor.cls->state_schema;
  bool begins = n && n->first && !lvd_begins_with_others(t->old, e);
  if (begins && !have_begun(t->old, e, &any) && any)
    return refuse(t, "some of %s have begun, and the others have not", e->name);
  return LVD_OK;
}

/* Number of elements buffered for this consumer. */
static uint32_t elements(const lvd_channel *ch, uint32_t k) {
  if (lvd_load_relaxed_u32(&ch->consumer[k].state) != LVD_OPEN) return 0;
  return lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[k].head);
}

/* The capacity that channel `like` of the new version is to have: where the old channel `i` has
 * grown, at least that of the old one, or the same deadlock would come again. */
static uint32_t wanted_capacity(const transfer *t, uint32_t i, uint32_t like) {
  uint32_t old = t->old->channel[i]->capacity, now = t->app->channel[like]->capacity;
  bool grown = old > t->old->growth[i].loaded_capacity;
  return grown && old > now && !t->app->fixed_buffers ? old : now;
}

static lvd_status check_channel(const transfer *t, uint32_t i) {
  const lvd_channel_desc *d = &t->old->net->channel[i];
  const lvd_channel *ch = t->old->channel[i];
  uint32_t like = matching_channel(t, i);
  for (uint32_t k = 0; k < d->consumers; k++) {
    uint32_t n = elements(ch, k);
    if (n == 0) continue;
    if (d->from.actor == LVD_EXTERNAL || d->to[k].actor == LVD_EXTERNAL)
      return refuse(t, "%u elements are in channel %u, of which the program has an end", n, i);
    const char *from = t->old->entity[d->from.actor].name,
               *to = t->old->entity[d->to[k].actor].name;
    if (like == LVD_NOWHERE || matching_consumer(t, like, d->to[k]) == LVD_NOWHERE)
      return refuse(t,
                    "%u elements are on their way from %s to %s, a channel that its new version "
                    "has not",
                    n, from, to);
    const lvd_channel *now = t->app->channel[like];
    if (now->elem_size != ch->elem_size)
      return refuse(t,
                    "%u elements of %u bytes are on their way from %s to %s, and its new version "
                    "has elements of %u bytes there",
                    n, ch->elem_size, from, to, now->elem_size);
    if (n > wanted_capacity(t, i, like))
      return refuse(t,
                    "%u elements are on their way from %s to %s, and its new version has room "
                    "for %u",
                    n, from, to, now->capacity);
  }
  return LVD_OK;
}

static lvd_status check(const transfer *t) {
  lvd_status status = LVD_OK;
  for (uint32_t i = 0; status == LVD_OK && i < t->old->net->actors; i++)
    status = check_actor(t, &t->old->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < t->app->net->actors; i++)
    status = check_fused(t, &t->app->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < t->old->net->channels; i++)
    status = check_channel(t, i);
  return status;
}

/* ---- transfer -------------------------------------------------------------------------------- */

/* Copies each string that `count` bytes of pointers refer to, so that the new version owns it. */
static bool copy_texts(lvd_app *app, unsigned char *at, size_t count) {
  for (size_t i = 0; i + sizeof(char *) <= count; i += sizeof(char *)) {
    const char *text;
    memcpy(&text, at + i, sizeof text);
    if (!text) continue;
    size_t n = strlen(text) + 1;
    lvd_inherited_strings *copy = malloc(sizeof *copy + n);
    if (!copy) return false;
    memcpy(copy->text, text, n);
    copy->next = app->texts;
    app->texts = copy;
    text = copy->text;
    memcpy(at + i, &text, sizeof text);
  }
  return true;
}

/* Faults in the pages of the state (all zero so far) here, rather than on the worker that starts
 * the actor: that takes longer than to copy the bytes. */
static void prefault(unsigned char *at, size_t n) {
  enum { PAGE = 4096 };
  for (size_t i = 0; i < n; i += PAGE) *(volatile unsigned char *)(at + i) = 0;
  if (n) *(volatile unsigned char *)(at + n - 1) = 0;
}

static void put_part(lvd_restored_state *h, size_t *used, uint32_t offset, const void *from,
                     uint32_t n) {
  h->part[h->parts].offset = offset;
  h->part[h->parts++].count = n;
  memcpy(h->bytes + *used, from, n);
  *used += n;
}

/* Allocates the restored state of an actor. Returns null if memory is short. */
static lvd_restored_state *make_restored(lvd_entity *e, uint32_t parts) {
  size_t part_bytes = parts * sizeof(struct lvd_restored_state_part);
  size_t bytes = parts ? e->actor.cls->state_size + sizeof(uint32_t) : 0;
  lvd_restored_state *h = calloc(1, sizeof *h + part_bytes + bytes);
  if (!h) return NULL;
  h->part = (struct lvd_restored_state_part *)(h + 1);
  h->bytes = (unsigned char *)(h + 1) + part_bytes;
  free(e->restored);
  e->restored = h;
  return h;
}

static lvd_status transfer_variable(const transfer *t, lvd_entity *e, size_t *used,
                                    const lvd_state_var *v, const lvd_entity *o,
                                    const lvd_state_var *from) {
  lvd_restored_state *h = e->restored;
  const unsigned char *is = from && from->size == v->size ? state_at(o, from->offset) : NULL;
  if (!is) return LVD_OK;
  unsigned char *bytes = h->bytes + *used;
  put_part(h, used, v->offset, is, v->size);
  prefault((unsigned char *)e->actor.state + v->offset, v->size);
  return v->text && !copy_texts(t->app, bytes, v->size) ? LVD_E_MEMORY : LVD_OK;
}

/* The actor is as it was, alone or fused from the same parts. */
static lvd_status transfer_same(const transfer *t, lvd_entity *e, const lvd_entity *o) {
  const lvd_state_schema *m = o->actor.cls->state_schema, *n = e->actor.cls->state_schema;
  if (!m || !n || !(o->initialised || o->restored)) return LVD_OK;
  if (!make_restored(e, n->variables + 1)) return LVD_E_MEMORY;
  size_t used = 0;
  const char *schedule = schedule_of(o);
  for (uint32_t i = 0; schedule && i < n->states; i++) {
    uint32_t to = n->first + i;
    if (strcmp(n->state[i], schedule) == 0) put_part(e->restored, &used, 0, &to, sizeof to);
  }
  lvd_status status = LVD_OK;
  for (uint32_t i = 0; status == LVD_OK && i < n->variables; i++)
    status = transfer_variable(t, e, &used, &n->variable[i], o, variable(m, &n->variable[i]));
  return status;
}

/* The variable that part `m` of `o` calls `name`. */
static const lvd_state_var *matching_variable(const lvd_entity *o, const lvd_fused_part *m,
                                              const lvd_state_var *like, const char *name) {
  const lvd_state_schema *all = o->actor.cls->state_schema;
  for (uint32_t i = 0; all && i < all->variables; i++) {
    const lvd_state_var *v = &all->variable[i];
    const char *is = lvd_variable_of(o, m, v->name);
    if (is && strcmp(is, name) == 0 && strcmp(v->type, like->type) == 0) return v;
  }
  return NULL;
}

/* Its parts may have been alone, or fused in another way. */
static lvd_status transfer_parts(const transfer *t, lvd_entity *e) {
  const lvd_state_schema *n = e->actor.cls->state_schema;
  if (!n || lvd_are_ambiguous(e) || lvd_begins_with_others(t->old, e)) return LVD_OK;
  bool any;
  if (n->first && !have_begun(t->old, e, &any)) return LVD_OK;
  if (!make_restored(e, n->variables + 1)) return LVD_E_MEMORY;
  size_t used = 0;
  uint32_t schedule = n->first + n->initial;
  if (n->first) put_part(e->restored, &used, 0, &schedule, sizeof schedule);
  lvd_status status = LVD_OK;
  lvd_fused_part m = lvd_fused_part_first(e), is;
  do {
    const lvd_entity *o = lvd_holder(t->old, &m, &is);
    for (uint32_t i = 0; o && status == LVD_OK && i < n->variables; i++) {
      const char *name = lvd_variable_of(e, &m, n->variable[i].name);
      if (name)
        status = transfer_variable(t, e, &used, &n->variable[i], o,
                                   matching_variable(o, &is, &n->variable[i], name));
    }
  } while (lvd_fused_part_next(&m));
  return status;
}

static lvd_status transfer_actor(const transfer *t, lvd_entity *e) {
  bool any;
  if (are_over(t, e, &any) && any) {
    lvd_restored_state *h = make_restored(e, 0);
    if (!h) return LVD_E_MEMORY;
    h->over = true;
    return LVD_OK;
  }
  const lvd_entity *o = lvd_entity_named(t->old, e->name);
  return o && lvd_same_class(e->actor.cls, o->actor.cls) ? transfer_same(t, e, o)
                                                         : transfer_parts(t, e);
}

static lvd_status transfer_channel(const transfer *t, uint32_t i) {
  const lvd_channel_desc *d = &t->old->net->channel[i];
  const lvd_channel *ch = t->old->channel[i];
  uint32_t max_elements = 0, like = matching_channel(t, i);
  for (uint32_t k = 0; k < d->consumers; k++) {
    uint32_t n = elements(ch, k);
    if (n > max_elements) max_elements = n;
  }
  if (like != LVD_NOWHERE && wanted_capacity(t, i, like) > t->app->channel[like]->capacity &&
      lvd_channel_grow(t->app, like, wanted_capacity(t, i, like)) != LVD_OK &&
      max_elements > t->app->channel[like]->capacity)
    return refuse(t, "a channel of %s has grown to %u elements, and that of its new version cannot",
                  t->old->entity[d->from.actor].name, ch->capacity);
  if (max_elements == 0) return LVD_OK;
  const lvd_channel_desc *to = &t->app->net->channel[like];
  lvd_producer *p = &t->app->entity[to->from.actor].actor.out[to->from.port];
  uint32_t first = lvd_load_relaxed_u32(&ch->tail) - max_elements;
  const unsigned char *ring = (const unsigned char *)ch + ch->data;
  void *span = lvd_put_span(p); /* contiguous: both rings are mirrored */
  memcpy(span, ring + (size_t)(first & (ch->slots - 1)) * ch->elem_size,
         (size_t)max_elements * ch->elem_size);
  const lvd_state_schema *from = t->old->entity[d->from.actor].actor.cls->state_schema;
  if (from && from->texts && from->texts[d->from.port] &&
      !copy_texts(t->app, span, (size_t)max_elements * ch->elem_size))
    return LVD_E_MEMORY;
  lvd_put_done(p, max_elements);
  lvd_flush(p);
  for (uint32_t k = 0; k < to->consumers; k++) {
    lvd_consumer *c = &t->app->entity[to->to[k].actor].actor.in[to->to[k].port];
    uint32_t has = 0; /* a new consumer sees what is put from now on */
    for (uint32_t j = 0; j < d->consumers; j++)
      if (matching_consumer(t, like, d->to[j]) == k) has = elements(ch, j);
    lvd_elements_refresh(c);
    lvd_get_done(c, max_elements - has);
    lvd_release(c);
  }
  return LVD_OK;
}

lvd_status lvd_app_upgrade_from(lvd_app *app, lvd_app *old, char *why, size_t why_size) {
  LVD_NO_ABANDON;
  transfer t = {app, old, why, why_size};
  if (why && why_size) why[0] = 0;
  if (!app || !old || app == old) return LVD_E_ARGUMENT;
  if (lvd_app_get_state(app) != LVD_APP_LOADED)
    return refuse(&t, "the new version has begun already");
  lvd_app_state state = lvd_app_get_state(old);
  if (state != LVD_APP_PAUSED && state != LVD_APP_LOADED) return refuse(&t, "it is not paused");
  lvd_app_wait_inactive(old);
  if (lvd_load_relaxed_u32(&old->fibers))
    return refuse(&t, "%s has fibers, which run on where they are", old->name);
  lvd_os_lock(&old->gate); /* although it is paused, its channels may grow (channel_growth.c) */
  lvd_status status = check(&t);
  for (uint32_t i = 0; status == LVD_OK && i < app->net->actors; i++)
    status = transfer_actor(&t, &app->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < old->net->channels; i++)
    status = transfer_channel(&t, i);
  lvd_os_unlock(&old->gate);
  return status == LVD_OK ? lvd_app_set_data_successor(app, old) : status;
}
