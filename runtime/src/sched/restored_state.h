/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Heritage: what an actor of a new version has of the one before it, from the time that it takes over
 * (state_transfer.c) until it begins. */
#ifndef LVD_SRC_HERITAGE_H
#define LVD_SRC_HERITAGE_H

#include "no_abandon.h"
#include "sched.h"

#include <stdlib.h>
#include <string.h>

/* Of its state: `count` bytes for `offset`. */
struct lvd_heritage_part {
  uint32_t offset, count;
};

typedef struct lvd_heritage {
  bool over;      /* the one before it had come to its own end */
  uint32_t parts; /* one after the other in `bytes` */
  struct lvd_heritage_part *part;
  unsigned char *bytes;
} lvd_heritage;

/* Strings live as long as the application, as those that it puts together itself. */
typedef struct lvd_texts {
  struct lvd_texts *next;
  char text[];
} lvd_texts;

static inline void lvd_texts_free(lvd_texts *t) {
  for (lvd_texts *next; t; t = next) {
    next = t->next;
    free(t);
  }
}

static inline void lvd_heritage_leave(lvd_entity *e) {
  LVD_INSIDE; /* the C library's locks */
  lvd_heritage *h = e->heritage;
  e->heritage = NULL;
  free(h);
}

/* Before an actor first runs, where it may be abandoned. False: it has no more to do. */
static inline bool lvd_actor_begins(lvd_entity *e) {
  lvd_heritage *h = e->heritage;
  if (h && h->over) return false;
  e->begun = true;
  if (e->actor.cls->init) e->actor.cls->init(&e->actor);
  if (!h) return true;
  const unsigned char *from = h->bytes;
  for (uint32_t i = 0; i < h->parts; i++) {
    memcpy((unsigned char *)e->actor.state + h->part[i].offset, from, h->part[i].count);
    from += h->part[i].count;
  }
  lvd_heritage_leave(e);
  return true;
}

#endif
