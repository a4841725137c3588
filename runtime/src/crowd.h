/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Crowd: the fibers of an application, and what each waits for, as those see it who judge them.
 *
 * What a fiber waits for lies on its own stack. While its application is at rest, with the gate
 * closed, it stays there, and pointers lead from fiber to fiber. While it runs, what is read may be
 * stale: then pointers are compared with what we find ourselves, never followed, and only of some
 * fibers. */
#ifndef LVD_SRC_CROWD_H
#define LVD_SRC_CROWD_H

#include "stream.h"
#include "unit.h"

/* Whose turn it is at the other end of a stream. */
typedef enum lvd_turn {
  LVD_TURN_NOBODYS, /* nobody has taken that end */
  LVD_TURN_FIBERS,
  LVD_TURN_THREADS,
  LVD_TURN_PROCESS /* it is another process's */
} lvd_turn;

/* One thing that a fiber waits for. */
typedef struct lvd_hold_up {
  const lvd_want *want; /* while all keep still */
  stream *s;            /* a stream, ... */
  bool room;            /* ... for room in it, or for elements */
  uint32_t n;
  lvd_turn turn;
  const lvd_fiber *other; /* the fiber whose turn it is, has said that it will take that end, or is
                             to end; null: none */
  bool end;               /* for the end of `other` */
  uint32_t blocked;       /* 0, or for a call that blocks (fiber.h) */
  const lvd_call *call;   /* for the return of this one, from another process */
} lvd_hold_up;

typedef struct lvd_crowd {
  lvd_app *app;
  bool still; /* at rest, and the gate is closed */
  const lvd_fiber **fiber;
  uint32_t *mark;
  uint32_t count, most;
} lvd_crowd;

/* With the application's list of streams in hand. False: no memory. */
bool lvd_crowd_of(lvd_app *app, lvd_crowd *c, bool still);
void lvd_crowd_free(lvd_crowd *c);
uint32_t lvd_crowd_number(const lvd_crowd *c, const lvd_fiber *f); /* c->count: it is not in it */
/* The nth thing that `f` waits for; false: there are not so many, or it does not wait. */
bool lvd_crowd_held_up(const lvd_crowd *c, const lvd_fiber *f, uint32_t nth, lvd_hold_up *h);

#endif
