/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reports which state of the old version a new version does not take over although both have it
 * (state_transfer.c). */
#include "../core/text_buffer.h"
#include "version_match.h"

#include <string.h>

static bool has_state(const lvd_actor_class *c) {
  return c->state_schema ? c->state_schema->variables || c->state_schema->states > 1
                         : c->state_size > 0;
}

/* Its parts are fused in another way than before. */
static void report_parts(text_buffer *s, const lvd_app *app, const lvd_app *old,
                         const lvd_entity *o) {
  lvd_fused_part m = lvd_fused_part_first(o), is;
  do {
    const lvd_entity *e = lvd_with_fused_part(app, &m, &is);
    if (!e || !has_state(o->actor.cls)) continue;
    if (!lvd_same_class_of(&m, &is))
      text_append(s, "%.*s is reset: it is a %.*s now, and was a %.*s\n", (int)m.length, m.name,
                  (int)lvd_fused_part_class_length(&is), is.class_name,
                  (int)lvd_fused_part_class_length(&m), m.class_name);
    else if (lvd_begins_with_others(old, e))
      text_append(s, "%.*s is reset: it is fused with a new actor that has initial firings\n",
                  (int)m.length, m.name);
    else if (lvd_are_ambiguous(e) || lvd_are_ambiguous(o))
      text_append(
          s,
          "%.*s is reset: it is fused with other actors than before, one of which has the same "
          "name\n",
          (int)m.length, m.name);
  } while (lvd_fused_part_next(&m));
}

static void report_actor(text_buffer *s, const lvd_app *app, const lvd_app *old,
                         const lvd_entity *o) {
  const lvd_entity *e = lvd_entity_named(app, o->name);
  if (!e || (!lvd_same_class(e->actor.cls, o->actor.cls) && lvd_is_joined(o))) {
    report_parts(s, app, old, o);
    return;
  }
  const lvd_actor_class *is = e->actor.cls, *was = o->actor.cls;
  if (!has_state(was)) return;
  if (!lvd_same_class(is, was)) {
    text_append(s, "%s is reset: it is a %.*s now, and was a %.*s\n", e->name,
                (int)lvd_class_length(is->name), is->name, (int)lvd_class_length(was->name),
                was->name);
    return;
  }
  if (!is->state_schema || !was->state_schema) {
    text_append(s, "%s is reset: its class does not describe its state (lvd_state_schema)\n",
                e->name);
    return;
  }
  for (uint32_t i = 0; i < is->state_schema->variables; i++) {
    const lvd_state_var *v = &is->state_schema->variable[i];
    for (uint32_t k = 0; k < was->state_schema->variables; k++) {
      const lvd_state_var *w = &was->state_schema->variable[k];
      if (strcmp(v->name, w->name) == 0 && (strcmp(v->type, w->type) || v->size != w->size))
        text_append(s, "%s of %s is reset: its type is %s now, and was %s\n", v->name, e->name,
                    v->type, w->type);
    }
  }
}

size_t lvd_app_reset_report(const lvd_app *app, const lvd_app *old, char *text, size_t size) {
  text_buffer s = {text, text ? size : 0, 0};
  if (s.size) text[0] = 0;
  for (uint32_t i = 0; app && old && i < old->net->actors; i++) {
    const lvd_entity *o = &old->entity[i];
    report_actor(&s, app, old, o);
  }
  return s.length;
}
