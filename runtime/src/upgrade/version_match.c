/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Version match: which actors, variables and ports of two versions of an application correspond, by
 * their names.
 *
 * Actors that a compiler has fused are named `a+b`, of class `A+B`, with variables `a.x` and `b.x`.
 * Another version may fuse other actors; so state is matched by parts. */
#include "version_match.h"

#include <string.h>

lvd_entity *lvd_entity_named(const lvd_app *app, const char *name) {
  for (uint32_t i = 0; i < app->net->actors; i++)
    if (strcmp(app->entity[i].name, name) == 0) return &app->entity[i];
  return NULL;
}

static const char *past_digits(const char *s) {
  while (*s >= '0' && *s <= '9') s++;
  return s;
}

/* Skips a parameter value as the compiler writes it into a name: 7, m7 (-7), true, false, or x for
 * any other. Returns null if there is none. */
static const char *past_value(const char *s) {
  static const char *const words[] = {"true", "false", "x"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strncmp(s, words[i], strlen(words[i])) == 0) return s + strlen(words[i]);
  if (*s == 'm') s++;
  const char *end = past_digits(s);
  return end > s ? end : NULL;
}

/* Parameter values, with an optional number that tells apart classes with equal values. */
static bool are_values(const char *s) {
  while ((s = past_value(s)) && s[0] == '_' && s[1] != '_') s++;
  if (!s || *s == 0) return s != NULL;
  const char *number = strncmp(s, "__", 2) == 0 ? s + 2 : s, *end = past_digits(number);
  return number > s && end > number && *end == 0;
}

/* The name of a class contains the values of its parameters, if it has some. They are not
 * compared. */
size_t lvd_class_length(const char *class_name) {
  for (const char *s = class_name; (s = strstr(s, "__")); s++)
    if (are_values(s + 2)) return (size_t)(s - class_name);
  return strlen(class_name);
}

bool lvd_same_class(const lvd_actor_class *a, const lvd_actor_class *b) {
  size_t n = lvd_class_length(a->name);
  return n == lvd_class_length(b->name) && strncmp(a->name, b->name, n) == 0;
}

static size_t parts_of(const char *s) {
  size_t n = 1;
  for (; (s = strchr(s, '+')); s++) n++;
  return n;
}

/* A compiler gives both the same number of parts. */
static bool are_joined(const char *name, const char *class_name) {
  size_t n = parts_of(name);
  return n > 1 && n == parts_of(class_name);
}

static size_t length_of_part(const char *s, bool joined) {
  return joined ? strcspn(s, "+") : strlen(s);
}

bool lvd_is_joined(const lvd_entity *e) { return are_joined(e->name, e->actor.cls->name); }

lvd_fused_part lvd_fused_part_first(const lvd_entity *e) {
  const char *class_name = e->actor.cls->name;
  bool joined = lvd_is_joined(e);
  return (lvd_fused_part){e->name, class_name, length_of_part(e->name, joined),
                          length_of_part(class_name, joined)};
}

bool lvd_fused_part_next(lvd_fused_part *m) {
  const char *name = m->name + m->length, *class_name = m->class_name + m->class_length;
  if (*name != '+' || *class_name != '+') return false;
  name++, class_name++;
  *m = (lvd_fused_part){name, class_name, length_of_part(name, true),
                        length_of_part(class_name, true)};
  return true;
}

static bool same_text(const char *a, size_t n, const char *b, size_t m) {
  return n == m && memcmp(a, b, n) == 0;
}

lvd_entity *lvd_with_fused_part(const lvd_app *app, const lvd_fused_part *like,
                                lvd_fused_part *is) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    *is = lvd_fused_part_first(&app->entity[i]);
    do {
      if (same_text(is->name, is->length, like->name, like->length)) return &app->entity[i];
    } while (lvd_fused_part_next(is));
  }
  return NULL;
}

/* Length of a class name without the values of its parameters. */
size_t lvd_fused_part_class_length(const lvd_fused_part *m) {
  char text[256]; /* a longer name is taken to have no values */
  if (m->class_length >= sizeof text) return m->class_length;
  memcpy(text, m->class_name, m->class_length);
  text[m->class_length] = 0;
  return lvd_class_length(text);
}

bool lvd_same_class_of(const lvd_fused_part *a, const lvd_fused_part *b) {
  return same_text(a->class_name, lvd_fused_part_class_length(a), b->class_name,
                   lvd_fused_part_class_length(b));
}

/* The prefix of its variables in a fused actor: its name in its own network. */
static const char *own_name(const lvd_fused_part *m, size_t *n) {
  const char *at = m->name;
  for (size_t i = 0; i < m->length; i++)
    if (m->name[i] == '.') at = m->name + i + 1;
  *n = m->length - (size_t)(at - m->name);
  return at;
}

const char *lvd_variable_of(const lvd_entity *e, const lvd_fused_part *m, const char *name) {
  if (!lvd_is_joined(e)) return name;
  size_t n;
  const char *own = own_name(m, &n);
  return strncmp(name, own, n) == 0 && name[n] == '.' ? name + n + 1 : NULL;
}

bool lvd_are_ambiguous(const lvd_entity *e) {
  lvd_fused_part a = lvd_fused_part_first(e);
  do {
    for (lvd_fused_part b = a; lvd_fused_part_next(&b);) {
      size_t n, k;
      const char *s = own_name(&a, &n), *t = own_name(&b, &k);
      if (same_text(s, n, t, k)) return true;
    }
  } while (lvd_fused_part_next(&a));
  return false;
}

const lvd_entity *lvd_holder(const lvd_app *old, const lvd_fused_part *m, lvd_fused_part *is) {
  const lvd_entity *o = lvd_with_fused_part(old, m, is);
  return o && lvd_same_class_of(m, is) && !lvd_are_ambiguous(o) ? o : NULL;
}

/* All parts of `o` are parts of `e`. */
static bool has_all_of(const lvd_entity *e, const lvd_entity *o) {
  lvd_fused_part m = lvd_fused_part_first(o);
  do {
    bool has = false;
    lvd_fused_part is = lvd_fused_part_first(e);
    do has |= same_text(is.name, is.length, m.name, m.length);
    while (lvd_fused_part_next(&is));
    if (!has) return false;
  } while (lvd_fused_part_next(&m));
  return true;
}

/* True unless all initial firings of `e` are those of its parts that are not new. */
bool lvd_begins_with_others(const lvd_app *old, const lvd_entity *e) {
  const lvd_state_schema *n = e->actor.cls->state_schema;
  uint32_t done = 0;
  bool all = true;
  lvd_fused_part m = lvd_fused_part_first(e), is;
  do {
    const lvd_entity *o = lvd_holder(old, &m, &is);
    all &= o != NULL;
    if (o && is.name == o->name && o->actor.cls->state_schema && has_all_of(e, o))
      done += o->actor.cls->state_schema->first;
  } while (lvd_fused_part_next(&m));
  return n && !all && done < n->first;
}

/* Name of the port in the fused part that owns it: `a.In`. The inputs belong to the first part, the
 * outputs to the last. */
static const char *port_of(const lvd_actor_desc *a, uint32_t port, bool input,
                           lvd_fused_part *owner) {
  const lvd_port_class *all = input ? a->cls->input : a->cls->output;
  const char *name = all[port].name;
  bool joined = are_joined(a->name, a->cls->name);
  owner->name = a->name;
  if (joined && !input) owner->name = strrchr(a->name, '+') + 1;
  owner->length = length_of_part(owner->name, joined);
  return joined && name && strrchr(name, '.') ? strrchr(name, '.') + 1 : name;
}

bool lvd_same_end(const lvd_network *a, lvd_port_ref x, const lvd_network *b, lvd_port_ref y,
                  bool input) {
  if (x.actor == LVD_EXTERNAL || y.actor == LVD_EXTERNAL) return false;
  lvd_fused_part from, to;
  const char *s = port_of(&a->actor[x.actor], x.port, input, &from),
             *t = port_of(&b->actor[y.actor], y.port, input, &to);
  return s && t && strcmp(s, t) == 0 && same_text(from.name, from.length, to.name, to.length);
}
