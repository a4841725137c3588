/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Restored state: what an actor of a new version gets from the previous version, from the
 * transfer (state_transfer.c) until the actor begins. */
#ifndef LVD_RESTORED_STATE_H
#define LVD_RESTORED_STATE_H

#include "no_abandon.h"
#include "sched.h"

#include <stdlib.h>
#include <string.h>

/* A part of the actor's state: `count` bytes at `offset`. */
struct lvd_restored_state_part {
  uint32_t offset, count;
};

typedef struct lvd_restored_state {
  bool over;      /* the previous version's actor had finished */
  uint32_t parts; /* consecutive in `bytes` */
  struct lvd_restored_state_part *part;
  unsigned char *bytes;
} lvd_restored_state;

/* Inherited strings live as long as the application, like those that it builds itself. */
typedef struct lvd_inherited_strings {
  struct lvd_inherited_strings *next;
  char text[];
} lvd_inherited_strings;

static inline void lvd_inherited_strings_free(lvd_inherited_strings *t) {
  for (lvd_inherited_strings *next; t; t = next) {
    next = t->next;
    free(t);
  }
}

static inline void lvd_restored_state_leave(lvd_entity *e) {
  LVD_NO_ABANDON; /* the C library's locks */
  lvd_restored_state *h = e->restored;
  e->restored = NULL;
  free(h);
}

/* Called before an actor first runs, where it may be abandoned. False: it has finished. */
static inline bool lvd_actor_init(lvd_entity *e) {
  lvd_restored_state *h = e->restored;
  if (h && h->over) return false;
  e->initialised = true;
  if (e->actor.cls->init) e->actor.cls->init(&e->actor);
  if (!h) return true;
  const unsigned char *from = h->bytes;
  for (uint32_t i = 0; i < h->parts; i++) {
    memcpy((unsigned char *)e->actor.state + h->part[i].offset, from, h->part[i].count);
    from += h->part[i].count;
  }
  lvd_restored_state_leave(e);
  return true;
}

#endif
