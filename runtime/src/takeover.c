/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Taking over: a new version of an application goes on where the old one is, which stands still.
 *
 * What both have goes along: actors of the same name and class with the variables that they have in
 * common, and the elements in channels between the same ports. What only one has begins anew, or must
 * have nothing to leave: no elements, and a schedule that is at its beginning. First all of it is looked
 * at, and the old one is changed by none of it, so that it may go on as well.
 *
 * Actors that a compiler has joined into one are called `a+b`, of the class `A+B`, with the variables `a.x` and
 * `b.x`. Which are joined may be otherwise in another version: what such a one remembers is what its members do.
 *
 * No orders of its own: nobody runs either of them, and who has paused the old one has seen all that it
 * did (lvd_app_still). */
#include "heritage.h"
#include "inside.h"

#include <stdarg.h>
#include <stdio.h>

typedef struct takeover {
  lvd_app *app, *old;
  char *why;
  size_t why_size;
} takeover;

LVD_PRINTF(2, 3) static lvd_status not_now(const takeover *t, const char *format, ...) {
  if (t->why && t->why_size) {
    va_list list;
    va_start(list, format);
    vsnprintf(t->why, t->why_size, format, list);
    va_end(list);
  }
  return LVD_E_STATE;
}

/* ---- who is who --------------------------------------------------------------------------- */

/* Null: there is none of that name. */
static lvd_entity *named(const lvd_app *app, const char *name) {
  for (uint32_t i = 0; i < app->net->actors; i++)
    if (strcmp(app->entity[i].name, name) == 0) return &app->entity[i];
  return NULL;
}

static const char *past_digits(const char *s) {
  while (*s >= '0' && *s <= '9') s++;
  return s;
}

/* Behind a value as the compiler writes it into a name: 7, m7 (-7), true, false, or x for any other; null: there is none. */
static const char *past_value(const char *s) {
  static const char *const words[] = {"true", "false", "x"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strncmp(s, words[i], strlen(words[i])) == 0) return s + strlen(words[i]);
  if (*s == 'm') s++;
  const char *end = past_digits(s);
  return end > s ? end : NULL;
}

/* Values, and perhaps a number that tells apart who has the same ones. */
static bool are_values(const char *s) {
  while ((s = past_value(s)) && s[0] == '_' && s[1] != '_') s++;
  if (!s || *s == 0) return s != NULL;
  const char *number = strncmp(s, "__", 2) == 0 ? s + 2 : s, *end = past_digits(number);
  return number > s && end > number && *end == 0;
}

/* A class is named with the values of its parameters, where it has some: of these it makes no difference. */
static size_t length_of(const char *class_name) {
  for (const char *s = class_name; (s = strstr(s, "__")); s++)
    if (are_values(s + 2)) return (size_t)(s - class_name);
  return strlen(class_name);
}

static bool same_class(const lvd_actor_class *a, const lvd_actor_class *b) {
  size_t n = length_of(a->name);
  return n == length_of(b->name) && strncmp(a->name, b->name, n) == 0;
}

/* One of those that were joined, or the only one: its name, and that of its class. */
typedef struct member {
  const char *name, *class_name;
  size_t length, class_length;
} member;

static size_t length_of_part(const char *s) { return strcspn(s, "+"); }

static bool is_joined(const lvd_entity *e) { return strchr(e->name, '+') != NULL; }

static bool next_member(member *m) {
  const char *name = m->name + m->length, *class_name = m->class_name + m->class_length;
  if (*name != '+' || *class_name != '+') return false;
  *m = (member){name + 1, class_name + 1, length_of_part(name + 1), length_of_part(class_name + 1)};
  return true;
}

static member first_member(const lvd_entity *e) {
  const char *class_name = e->actor.cls->name;
  return (member){e->name, class_name, length_of_part(e->name), length_of_part(class_name)};
}

static bool same_text(const char *a, size_t n, const char *b, size_t m) {
  return n == m && memcmp(a, b, n) == 0;
}

/* The actor of which this one is a member, and with which class; null: there is none. */
static lvd_entity *with_member(const lvd_app *app, const member *like, member *is) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    *is = first_member(&app->entity[i]);
    do {
      if (same_text(is->name, is->length, like->name, like->length)) return &app->entity[i];
    } while (next_member(is));
  }
  return NULL;
}

/* A class's name up to the values of its parameters. */
static size_t length_without_values(const member *m) {
  char text[256]; /* longer than this it has no values, for all that is known */
  if (m->class_length >= sizeof text) return m->class_length;
  memcpy(text, m->class_name, m->class_length);
  text[m->class_length] = 0;
  return length_of(text);
}

static bool same_class_of(const member *a, const member *b) {
  return same_text(a->class_name, length_without_values(a), b->class_name,
                   length_without_values(b));
}

/* What stands before its variables where it was joined: its name in the network in which it is. */
static const char *own_name(const member *m, size_t *n) {
  const char *at = m->name;
  for (size_t i = 0; i < m->length; i++)
    if (m->name[i] == '.') at = m->name + i + 1;
  *n = m->length - (size_t)(at - m->name);
  return at;
}

/* The name of a variable as the member has it that is called so; null: it is another's. */
static const char *variable_of(const lvd_entity *e, const member *m, const char *name) {
  if (!is_joined(e)) return name;
  size_t n;
  const char *own = own_name(m, &n);
  return strncmp(name, own, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

/* Are there two of them whose variables nobody could tell apart? */
static bool are_ambiguous(const lvd_entity *e) {
  member a = first_member(e);
  do {
    for (member b = a; next_member(&b);) {
      size_t n, k;
      const char *s = own_name(&a, &n), *t = own_name(&b, &k);
      if (same_text(s, n, t, k)) return true;
    }
  } while (next_member(&a));
  return false;
}

static bool remembers(const lvd_entity *e, const lvd_entity *of) {
  return e && e->actor.cls->memory && of->actor.cls->memory &&
         same_class(e->actor.cls, of->actor.cls);
}

static const lvd_variable *variable(const lvd_memory *m, const lvd_variable *like) {
  for (uint32_t i = 0; i < m->variables; i++) {
    const lvd_variable *v = &m->variable[i];
    if (strcmp(v->name, like->name) == 0 && strcmp(v->type, like->type) == 0) return v;
  }
  return NULL;
}

static const char *port_name(const lvd_port_class *port, uint32_t i) { return port[i].name; }

static bool same_end(const lvd_network *a, lvd_port_ref x, const lvd_network *b, lvd_port_ref y,
                     bool input) {
  if (x.actor == LVD_OUTSIDE || y.actor == LVD_OUTSIDE) return false;
  const lvd_actor_desc *p = &a->actor[x.actor], *q = &b->actor[y.actor];
  const char *s = port_name(input ? p->cls->input : p->cls->output, x.port),
             *t = port_name(input ? q->cls->input : q->cls->output, y.port);
  if (!s || !t || strcmp(s, t) != 0) return false;
  /* What comes in comes to the first of those that were joined, and what goes out is the last one's. */
  const char *from = p->name, *to = q->name;
  if (!input && strrchr(from, '+')) from = strrchr(from, '+') + 1;
  if (!input && strrchr(to, '+')) to = strrchr(to, '+') + 1;
  return same_text(from, length_of_part(from), to, length_of_part(to));
}

/* The channel of the new version from the same port; LVD_NOWHERE: there is none. */
static uint32_t channel_like(const takeover *t, uint32_t i) {
  const lvd_network *net = t->app->net, *old = t->old->net;
  for (uint32_t k = 0; k < net->channels; k++)
    if (same_end(net, net->channel[k].from, old, old->channel[i].from, false)) return k;
  return LVD_NOWHERE;
}

static uint32_t consumer_like(const takeover *t, uint32_t channel, lvd_port_ref to) {
  const lvd_channel_desc *d = &t->app->net->channel[channel];
  for (uint32_t k = 0; k < d->consumers; k++)
    if (same_end(t->app->net, d->to[k], t->old->net, to, true)) return k;
  return LVD_NOWHERE;
}

/* ---- looking ------------------------------------------------------------------------------ */

/* What lies at `offset` of its state, or will lie there when it begins; null: what `init` makes of it. */
static const unsigned char *state_at(const lvd_entity *e, uint32_t offset) {
  const lvd_heritage *h = e->heritage;
  if (e->begun) return (const unsigned char *)e->actor.state + offset;
  if (!h) return NULL;
  const unsigned char *at = h->bytes;
  for (uint32_t i = 0; i < h->parts; at += h->part[i++].count)
    if (h->part[i].offset == offset) return at;
  return NULL;
}

/* Its schedule's state; null: it is in none, or at its beginning. */
static const char *schedule_of(const lvd_entity *e) {
  const lvd_memory *m = e->actor.cls->memory;
  const unsigned char *at = m && m->states ? state_at(e, 0) : NULL;
  uint32_t state;
  if (!at) return NULL;
  memcpy(&state, at, sizeof state);
  bool inside = state >= m->first && state - m->first < m->states;
  return inside ? m->state[state - m->first] : NULL;
}

static bool is_over(const lvd_entity *e) {
  return lvd_load_relaxed_u32(&e->state) == LVD_FINISHED || (e->heritage && e->heritage->over);
}

/* Has what each of its members is part of come to its own end? */
static bool are_over(const takeover *t, const lvd_entity *e, bool *any) {
  bool all = true;
  member m = first_member(e), is;
  *any = false;
  do {
    const lvd_entity *o = with_member(t->old, &m, &is);
    bool over = o && is_over(o) && same_class_of(&m, &is);
    *any |= over;
    all &= over;
  } while (next_member(&m));
  return all;
}

static lvd_status look_at_actor(const takeover *t, const lvd_entity *o) {
  const lvd_entity *e = named(t->app, o->name);
  if (is_over(o)) return LVD_OK;
  if (o->stack && !(o->at_input && lvd_restarts(o)))
    return not_now(t, "%s is in the middle of a firing, and waits there", o->name);
  const char *name = schedule_of(o);
  const lvd_memory *m = o->actor.cls->memory;
  if (!name || strcmp(name, m->state[m->initial]) == 0) return LVD_OK;
  if (!remembers(e, o))
    return not_now(t, "the schedule of %s is at %s, and its new version begins anew", o->name,
                   name);
  const lvd_memory *n = e->actor.cls->memory;
  for (uint32_t i = 0; i < n->states; i++)
    if (strcmp(n->state[i], name) == 0) return LVD_OK;
  return not_now(t, "the schedule of %s is at %s, which its new version has not", o->name, name);
}

/* Of those that are joined now none can have come to its end alone. */
static lvd_status look_at_joined(const takeover *t, const lvd_entity *e) {
  bool any;
  if (is_joined(e) && !are_over(t, e, &any) && any)
    return not_now(t, "some of %s have come to their end, and the others have not", e->name);
  return LVD_OK;
}

/* So many elements lie before this consumer. */
static uint32_t elements(const lvd_channel *ch, uint32_t k) {
  if (lvd_load_relaxed_u32(&ch->consumer[k].state) != LVD_OPEN) return 0;
  return lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[k].head);
}

static lvd_status look_at_channel(const takeover *t, uint32_t i) {
  const lvd_channel_desc *d = &t->old->net->channel[i];
  const lvd_channel *ch = t->old->channel[i];
  uint32_t like = channel_like(t, i);
  for (uint32_t k = 0; k < d->consumers; k++) {
    uint32_t n = elements(ch, k);
    if (n == 0) continue;
    if (d->from.actor == LVD_OUTSIDE || d->to[k].actor == LVD_OUTSIDE)
      return not_now(t, "%u elements are in channel %u, of which the program has an end", n, i);
    const char *from = t->old->entity[d->from.actor].name,
               *to = t->old->entity[d->to[k].actor].name;
    if (like == LVD_NOWHERE || consumer_like(t, like, d->to[k]) == LVD_NOWHERE)
      return not_now(t,
                     "%u elements are on their way from %s to %s, a channel that its new version "
                     "has not",
                     n, from, to);
    const lvd_channel *now = t->app->channel[like];
    if (now->elem_size != ch->elem_size)
      return not_now(t,
                     "%u elements of %u bytes are on their way from %s to %s, and its new version "
                     "has elements of %u bytes there",
                     n, ch->elem_size, from, to, now->elem_size);
    if (n > now->capacity)
      return not_now(t,
                     "%u elements are on their way from %s to %s, and its new version has room "
                     "for %u",
                     n, from, to, now->capacity);
  }
  return LVD_OK;
}

static lvd_status look(const takeover *t) {
  lvd_status status = LVD_OK;
  for (uint32_t i = 0; status == LVD_OK && i < t->old->net->actors; i++)
    status = look_at_actor(t, &t->old->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < t->app->net->actors; i++)
    status = look_at_joined(t, &t->app->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < t->old->net->channels; i++)
    status = look_at_channel(t, i);
  return status;
}

/* ---- taking ------------------------------------------------------------------------------- */

/* Makes the strings that `count` bytes of pointers lead to the new version's own. */
static bool copy_texts(lvd_app *app, unsigned char *at, size_t count) {
  for (size_t i = 0; i + sizeof(char *) <= count; i += sizeof(char *)) {
    const char *text;
    memcpy(&text, at + i, sizeof text);
    if (!text) continue;
    size_t n = strlen(text) + 1;
    lvd_texts *copy = malloc(sizeof *copy + n);
    if (!copy) return false;
    memcpy(copy->text, text, n);
    copy->next = app->texts;
    app->texts = copy;
    text = copy->text;
    memcpy(at + i, &text, sizeof text);
  }
  return true;
}

/* What nobody has touched yet the system makes memory of page by page, which takes longer than to copy it: it does so
 * here, and not on the worker on which the actor begins. Its state is all zeros until then. */
static void touch(unsigned char *at, size_t n) {
  enum { PAGE = 4096 };
  for (size_t i = 0; i < n; i += PAGE) *(volatile unsigned char *)(at + i) = 0;
  if (n) *(volatile unsigned char *)(at + n - 1) = 0;
}

static void put_part(lvd_heritage *h, size_t *used, uint32_t offset, const void *from, uint32_t n) {
  h->part[h->parts].offset = offset;
  h->part[h->parts++].count = n;
  memcpy(h->bytes + *used, from, n);
  *used += n;
}

/* For what the actor will have of the old version; null: there is no memory. */
static lvd_heritage *make_heritage(lvd_entity *e, uint32_t parts) {
  size_t part_bytes = parts * sizeof(struct lvd_heritage_part);
  size_t bytes = parts ? e->actor.cls->state_size + sizeof(uint32_t) : 0;
  lvd_heritage *h = calloc(1, sizeof *h + part_bytes + bytes);
  if (!h) return NULL;
  h->part = (struct lvd_heritage_part *)(h + 1);
  h->bytes = (unsigned char *)(h + 1) + part_bytes;
  free(e->heritage);
  e->heritage = h;
  return h;
}

static lvd_status take_variable(const takeover *t, lvd_entity *e, size_t *used,
                                const lvd_variable *v, const lvd_entity *o,
                                const lvd_variable *from) {
  lvd_heritage *h = e->heritage;
  const unsigned char *is = from && from->size == v->size ? state_at(o, from->offset) : NULL;
  if (!is) return LVD_OK;
  unsigned char *bytes = h->bytes + *used;
  put_part(h, used, v->offset, is, v->size);
  touch((unsigned char *)e->actor.state + v->offset, v->size);
  return v->text && !copy_texts(t->app, bytes, v->size) ? LVD_E_MEMORY : LVD_OK;
}

/* It is as it was, alone or joined with the same others. */
static lvd_status take_same(const takeover *t, lvd_entity *e, const lvd_entity *o) {
  const lvd_memory *m = o->actor.cls->memory, *n = e->actor.cls->memory;
  if (!m || !n || !(o->begun || o->heritage)) return LVD_OK;
  if (!make_heritage(e, n->variables + 1)) return LVD_E_MEMORY;
  size_t used = 0;
  const char *schedule = schedule_of(o);
  for (uint32_t i = 0; schedule && i < n->states; i++) {
    uint32_t to = n->first + i;
    if (strcmp(n->state[i], schedule) == 0) put_part(e->heritage, &used, 0, &to, sizeof to);
  }
  lvd_status status = LVD_OK;
  for (uint32_t i = 0; status == LVD_OK && i < n->variables; i++)
    status = take_variable(t, e, &used, &n->variable[i], o, variable(m, &n->variable[i]));
  return status;
}

/* What member `m` of `o` calls so. */
static const lvd_variable *variable_like(const lvd_entity *o, const member *m,
                                         const lvd_variable *like, const char *name) {
  const lvd_memory *all = o->actor.cls->memory;
  for (uint32_t i = 0; all && i < all->variables; i++) {
    const lvd_variable *v = &all->variable[i];
    const char *is = variable_of(o, m, v->name);
    if (is && strcmp(is, name) == 0 && strcmp(v->type, like->type) == 0) return v;
  }
  return NULL;
}

/* Of the members that it has, each may have been alone, or joined with others. */
static lvd_status take_members(const takeover *t, lvd_entity *e) {
  const lvd_memory *n = e->actor.cls->memory;
  if (!n || are_ambiguous(e)) return LVD_OK;
  if (!make_heritage(e, n->variables + 1)) return LVD_E_MEMORY;
  size_t used = 0;
  lvd_status status = LVD_OK;
  member m = first_member(e), is;
  do {
    const lvd_entity *o = with_member(t->old, &m, &is);
    if (!o || !same_class_of(&m, &is) || are_ambiguous(o) || !(o->begun || o->heritage)) continue;
    for (uint32_t i = 0; status == LVD_OK && i < n->variables; i++) {
      const char *name = variable_of(e, &m, n->variable[i].name);
      if (name)
        status = take_variable(t, e, &used, &n->variable[i], o,
                               variable_like(o, &is, &n->variable[i], name));
    }
  } while (next_member(&m));
  return status;
}

static lvd_status take_actor(const takeover *t, lvd_entity *e) {
  bool any;
  if (are_over(t, e, &any)) {
    lvd_heritage *h = make_heritage(e, 0);
    if (!h) return LVD_E_MEMORY;
    h->over = true;
    return LVD_OK;
  }
  const lvd_entity *o = named(t->old, e->name);
  return o && same_class(e->actor.cls, o->actor.cls) ? take_same(t, e, o) : take_members(t, e);
}

static lvd_status take_channel(const takeover *t, uint32_t i) {
  const lvd_channel_desc *d = &t->old->net->channel[i];
  const lvd_channel *ch = t->old->channel[i];
  uint32_t most = 0, like = channel_like(t, i);
  for (uint32_t k = 0; k < d->consumers; k++) {
    uint32_t n = elements(ch, k);
    if (n > most) most = n;
  }
  if (most == 0) return LVD_OK;
  const lvd_channel_desc *to = &t->app->net->channel[like];
  lvd_producer *p = &t->app->entity[to->from.actor].actor.out[to->from.port];
  uint32_t first = lvd_load_relaxed_u32(&ch->tail) - most;
  const unsigned char *ring = (const unsigned char *)ch + ch->data;
  void *span = lvd_put_span(p); /* both rings are mapped twice in a row */
  memcpy(span, ring + (size_t)(first & (ch->slots - 1)) * ch->elem_size,
         (size_t)most * ch->elem_size);
  const lvd_memory *from = t->old->entity[d->from.actor].actor.cls->memory;
  if (from && from->texts && from->texts[d->from.port] &&
      !copy_texts(t->app, span, (size_t)most * ch->elem_size))
    return LVD_E_MEMORY;
  lvd_put_done(p, most);
  lvd_flush(p);
  for (uint32_t k = 0; k < to->consumers; k++) {
    lvd_consumer *c = &t->app->entity[to->to[k].actor].actor.in[to->to[k].port];
    uint32_t has = 0; /* who was not there before sees what is put from now on */
    for (uint32_t j = 0; j < d->consumers; j++)
      if (consumer_like(t, like, d->to[j]) == k) has = elements(ch, j);
    lvd_elements_refresh(c);
    lvd_get_done(c, most - has);
    lvd_release(c);
  }
  return LVD_OK;
}

/* ---- what does not go along ----------------------------------------------------------------- */

typedef struct story {
  char *text;
  size_t size, used;
} story;

LVD_PRINTF(2, 3) static void tell(story *s, const char *format, ...) {
  va_list list;
  va_start(list, format);
  bool room = s->used < s->size;
  int n = vsnprintf(room ? s->text + s->used : NULL, room ? s->size - s->used : 0, format, list);
  va_end(list);
  if (n > 0) s->used += (size_t)n;
}

static bool knows(const lvd_actor_class *c) {
  return c->memory ? c->memory->variables || c->memory->states > 1 : c->state_size > 0;
}

/* It is joined otherwise than it was. */
static void tell_of_members(story *s, const lvd_app *app, const lvd_entity *o) {
  member m = first_member(o), is;
  do {
    const lvd_entity *e = with_member(app, &m, &is);
    if (!e || !knows(o->actor.cls)) continue;
    if (!same_class_of(&m, &is))
      tell(s, "%.*s begins anew: it is a %.*s now, and was a %.*s\n", (int)m.length, m.name,
           (int)length_without_values(&is), is.class_name, (int)length_without_values(&m),
           m.class_name);
    else if (are_ambiguous(e) || are_ambiguous(o))
      tell(s,
           "%.*s begins anew: it is joined with others than before, one of which is called like "
           "it\n",
           (int)m.length, m.name);
  } while (next_member(&m));
}

static void tell_of_actor(story *s, const lvd_app *app, const lvd_entity *e, const lvd_entity *o) {
  if (!e || (!same_class(e->actor.cls, o->actor.cls) && is_joined(o))) {
    tell_of_members(s, app, o);
    return;
  }
  const lvd_actor_class *is = e->actor.cls, *was = o->actor.cls;
  if (!knows(was)) return;
  if (!same_class(is, was)) {
    tell(s, "%s begins anew: it is a %.*s now, and was a %.*s\n", e->name, (int)length_of(is->name),
         is->name, (int)length_of(was->name), was->name);
    return;
  }
  if (!is->memory || !was->memory) {
    tell(s, "%s begins anew: its class does not say what it remembers (lvd_memory)\n", e->name);
    return;
  }
  for (uint32_t i = 0; i < is->memory->variables; i++) {
    const lvd_variable *v = &is->memory->variable[i];
    for (uint32_t k = 0; k < was->memory->variables; k++) {
      const lvd_variable *w = &was->memory->variable[k];
      if (strcmp(v->name, w->name) == 0 && (strcmp(v->type, w->type) || v->size != w->size))
        tell(s, "%s of %s begins anew: its type is %s now, and was %s\n", v->name, e->name, v->type,
             w->type);
    }
  }
}

size_t lvd_app_anew(const lvd_app *app, const lvd_app *old, char *text, size_t size) {
  story s = {text, text ? size : 0, 0};
  if (s.size) text[0] = 0;
  for (uint32_t i = 0; app && old && i < old->net->actors; i++) {
    const lvd_entity *o = &old->entity[i];
    tell_of_actor(&s, app, named(app, o->name), o);
  }
  return s.used;
}

lvd_status lvd_app_take_over(lvd_app *app, lvd_app *old, char *why, size_t why_size) {
  LVD_INSIDE;
  takeover t = {app, old, why, why_size};
  if (why && why_size) why[0] = 0;
  if (!app || !old || app == old) return LVD_E_ARGUMENT;
  if (lvd_app_get_state(app) != LVD_APP_LOADED)
    return not_now(&t, "the new version has begun already");
  lvd_app_state state = lvd_app_get_state(old);
  if (state != LVD_APP_PAUSED && state != LVD_APP_LOADED) return not_now(&t, "it is not paused");
  lvd_app_still(old);
  if (lvd_load_relaxed_u32(&old->fibers))
    return not_now(&t, "%s has fibers, which run on where they are", old->name);
  lvd_status status = look(&t);
  for (uint32_t i = 0; status == LVD_OK && i < app->net->actors; i++)
    status = take_actor(&t, &app->entity[i]);
  for (uint32_t i = 0; status == LVD_OK && i < old->net->channels; i++)
    status = take_channel(&t, i);
  return status == LVD_OK ? lvd_app_inherit(app, old) : status;
}
