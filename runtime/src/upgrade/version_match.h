/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Version match: what corresponds in two versions of an application (version_match.c). */
#ifndef LVD_UPGRADE_VERSION_MATCH_H
#define LVD_UPGRADE_VERSION_MATCH_H

#include "../sched/sched.h"

/* Returns null if there is none of that name. */
lvd_entity *lvd_entity_named(const lvd_app *app, const char *name);

/* Length of a class name without the values of its parameters. */
size_t lvd_class_length(const char *class_name);
bool lvd_same_class(const lvd_actor_class *a, const lvd_actor_class *b);

/* One part of a fused actor, or the only one: its name, and its class's name. */
typedef struct lvd_fused_part {
  const char *name, *class_name;
  size_t length, class_length;
} lvd_fused_part;

bool lvd_is_joined(const lvd_entity *e);
lvd_fused_part lvd_fused_part_first(const lvd_entity *e);
bool lvd_fused_part_next(lvd_fused_part *m);
size_t lvd_fused_part_class_length(const lvd_fused_part *m);
bool lvd_same_class_of(const lvd_fused_part *a, const lvd_fused_part *b);

/* The actor that has this part, and the part in `is`. Returns null if there is none. */
lvd_entity *lvd_with_fused_part(const lvd_app *app, const lvd_fused_part *like, lvd_fused_part *is);
/* The old actor that has the state of part `m`: of the same class, and with variables that can be
 * attributed to its parts. Returns null if there is none. */
const lvd_entity *lvd_holder(const lvd_app *old, const lvd_fused_part *m, lvd_fused_part *is);

/* The part's own name of a variable. Returns null if the variable belongs to another part. */
const char *lvd_variable_of(const lvd_entity *e, const lvd_fused_part *m, const char *name);
/* Two of its parts have variables that cannot be told apart. */
bool lvd_are_ambiguous(const lvd_entity *e);
/* A part of it is new and has initial firings, which the others would repeat. */
bool lvd_begins_with_others(const lvd_app *old, const lvd_entity *e);
/* The same port at the end of a channel, whatever the actor is fused with. */
bool lvd_same_end(const lvd_network *a, lvd_port_ref x, const lvd_network *b, lvd_port_ref y,
                  bool input);

#endif
