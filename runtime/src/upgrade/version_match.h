/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Members: who is who in two versions of an application (version_match.c). */
#ifndef LVD_SRC_MEMBERS_H
#define LVD_SRC_MEMBERS_H

#include "../sched/sched.h"

/* Null: there is none of that name. */
lvd_entity *lvd_entity_named(const lvd_app *app, const char *name);

/* Of a class's name, without the values of its parameters. */
size_t lvd_class_length(const char *class_name);
bool lvd_same_class(const lvd_actor_class *a, const lvd_actor_class *b);

/* One of those that were joined, or the only one: its name, and that of its class. */
typedef struct lvd_fused_part {
  const char *name, *class_name;
  size_t length, class_length;
} lvd_fused_part;

bool lvd_is_joined(const lvd_entity *e);
lvd_fused_part lvd_fused_part_first(const lvd_entity *e);
bool lvd_fused_part_next(lvd_fused_part *m);
size_t lvd_fused_part_class_length(const lvd_fused_part *m);
bool lvd_same_class_of(const lvd_fused_part *a, const lvd_fused_part *b);

/* The actor of which this one is a member, and as which; null: there is none. */
lvd_entity *lvd_with_fused_part(const lvd_app *app, const lvd_fused_part *like, lvd_fused_part *is);
/* The one that has what member `m` of the new version had, of the same class, and in which it can be told what is whose;
 * null: there is none. */
const lvd_entity *lvd_holder(const lvd_app *old, const lvd_fused_part *m, lvd_fused_part *is);

/* The name of a variable as the member has it that is called so; null: it is another's. */
const char *lvd_variable_of(const lvd_entity *e, const lvd_fused_part *m, const char *name);
/* Are there two of them whose variables nobody could tell apart? */
bool lvd_are_ambiguous(const lvd_entity *e);
/* It is joined with who is new, and that one does something before all else: so would they all, once more. */
bool lvd_begins_with_others(const lvd_app *old, const lvd_entity *e);
/* Ends of channels: the same port, whoever it is joined with. */
bool lvd_same_end(const lvd_network *a, lvd_port_ref x, const lvd_network *b, lvd_port_ref y,
                  bool input);

#endif
