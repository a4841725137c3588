/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Crowd: who may wait for whom in an application, and what each waits for, as those see it who judge
 * them: its fibers, and the threads of the program that wait for something of it without a time
 * limit (thread_waiters.h). What is said of the one holds for the other.
 *
 * What somebody waits for lies on his own stack. While the application is at rest, with the gate
 * closed, a fiber's stays there, and pointers lead from one to the other. While it runs, what is
 * read of fibers may be stale: then pointers are compared with what we find ourselves, never
 * followed, and only of some fibers. Threads keep still as long as there is a crowd. */
#ifndef LVD_SRC_CROWD_H
#define LVD_SRC_CROWD_H

#include "../rpc/unit.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"

/* Whose turn it is at the other end of a stream. */
typedef enum lvd_wait_owner {
  LVD_OWNER_NONE, /* nobody has taken that end */
  LVD_OWNER_FIBER,
  LVD_OWNER_THREAD,
  LVD_OWNER_PROCESS /* it is another process's */
} lvd_wait_owner;

/* One thing that a member waits for. */
typedef struct lvd_wait_edge {
  const lvd_want *want; /* while all keep still */
  stream *s;            /* a stream, ... */
  bool room;            /* ... for room in it, or for elements */
  uint32_t n;
  lvd_wait_owner turn;
  uint32_t other;   /* the member whose turn it is, has said that it will take that end, or is to
                           end; the crowd's count: none */
  bool end;         /* for the end of `other` */
  uint32_t blocked; /* 0, or for a call that blocks (fiber.h) */
  const lvd_call *call; /* for the return of this one, from another process */
} lvd_wait_edge;

typedef struct lvd_wait_node {
  const lvd_fiber *fiber; /* null: a thread, in this wait: */
  lvd_thread_waiter *thread;
  const lvd_want *want;
  uint32_t wants; /* none: it does not wait, or for time, or a thread for the application's end */
  bool timed;     /* it goes on by itself after a while */
  bool rests;     /* it waits */
  bool runs;      /* it has its worker; with neither it waits for its turn there */
} lvd_wait_node;

typedef struct lvd_wait_graph {
  lvd_app *app;
  bool still; /* at rest, and the gate is closed */
  lvd_wait_node *member;
  uint32_t *mark;
  uint32_t count, most;
  uint32_t fibers; /* the first so many are fibers */
} lvd_wait_graph;

/* With the application's list of streams in hand. False: no memory. To be freed in either case. */
bool lvd_wait_graph_build(lvd_app *app, lvd_wait_graph *c, bool still);
void lvd_wait_graph_free(lvd_wait_graph *c);
/* c->count: it is not in it. */
uint32_t lvd_wait_graph_index(const lvd_wait_graph *c, const lvd_fiber *f);
uint32_t lvd_wait_graph_owner(const lvd_wait_graph *c, lvd_user user);
/* The nth thing that member `i` waits for; false: there are not so many, or it does not wait. */
bool lvd_wait_graph_blocked(const lvd_wait_graph *c, uint32_t i, uint32_t nth, lvd_wait_edge *h);

/* What is waited for, as far as the library knows what it lies in. */
typedef struct lvd_awaited {
  lvd_app *app;                /* null: it is none of these */
  struct stream *s;            /* an end of this stream, or ... */
  const lvd_fiber *end;        /* ... the end of this fiber, or ... */
  const struct lvd_call *call; /* ... the return of this call */
} lvd_awaited;
lvd_awaited lvd_want_awaited(const lvd_want *want);
lvd_app *lvd_app_awaited(const lvd_want *want); /* null: none of one alone */

#endif
