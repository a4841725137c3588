/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait-for graph of an application: its fibers, and the program threads that wait for something of
 * it without a timeout (thread_waiters.h). A node is one of these, an edge is one item that it
 * waits for.
 *
 * The list of items lies on the waiter's stack. While the application is quiescent and the gate is
 * closed, fibers do not move, and pointers may be followed. While it runs, what is read of a fiber
 * may be stale: pointers are then only compared with known addresses, never followed, and only some
 * of the fibers are included. The list of waiting threads is locked until the graph is freed. */
#ifndef LVD_DEADLOCK_WAIT_GRAPH_H
#define LVD_DEADLOCK_WAIT_GRAPH_H

#include "../rpc/unit.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"

/* What has to act at the other end of a stream. */
typedef enum lvd_wait_owner {
  LVD_OWNER_NONE, /* that end has no owner */
  LVD_OWNER_FIBER,
  LVD_OWNER_THREAD,
  LVD_OWNER_PROCESS /* it belongs to another process */
} lvd_wait_owner;

/* One item that a node waits for. */
typedef struct lvd_wait_edge {
  const lvd_wait_item *want; /* valid while the graph is `still` */
  stream *s;                 /* a stream, if any */
  bool room;                 /* room in it, else elements */
  uint32_t n;
  lvd_wait_owner owner;
  /* node that has to act, has announced that it will take that end, or has to end; graph.count:
   * none */
  uint32_t other;
  bool end;             /* waits for the end of `other` */
  uint32_t blocked;     /* 0, or the kind of blocking call (fiber.h) */
  const lvd_call *call; /* waits for the return of this call from another process */
} lvd_wait_edge;

typedef struct lvd_wait_node {
  const lvd_fiber *fiber; /* null: a thread, in this wait: */
  lvd_thread_waiter *thread;
  const lvd_wait_item *want;
  /* 0: it does not wait, or for time, or (a thread) for the end of the application */
  uint32_t wants;
  bool timed; /* it has a timeout */
  bool rests; /* it is parked */
  bool runs;  /* it has a worker; neither `rests` nor `runs`: it is queued */
} lvd_wait_node;

typedef struct lvd_wait_graph {
  lvd_app *app;
  bool still; /* quiescent, with the gate closed */
  lvd_wait_node *node;
  uint32_t *mark;
  uint32_t count, capacity;
  uint32_t fibers; /* nodes below this index are fibers */
} lvd_wait_graph;

/* The caller holds the application's list of streams. Returns false if memory is short. Free the
 * graph in either case. */
bool lvd_wait_graph_build(lvd_app *app, lvd_wait_graph *c, bool still);
void lvd_wait_graph_free(lvd_wait_graph *c);
/* Both return c->count if it is not in the graph. */
uint32_t lvd_wait_graph_index(const lvd_wait_graph *c, const lvd_fiber *f);
uint32_t lvd_wait_graph_owner(const lvd_wait_graph *c, lvd_user user);
/* The nth item that node `i` waits for. Returns false if there is none. */
bool lvd_wait_graph_blocked(const lvd_wait_graph *c, uint32_t i, uint32_t nth, lvd_wait_edge *h);

/* The object that contains an awaited item, if the library knows it. */
typedef struct lvd_awaited {
  lvd_app *app;                /* null: none of these */
  struct stream *s;            /* an end of this stream, */
  const lvd_fiber *end;        /* the end of this fiber, */
  const struct lvd_call *call; /* or the return of this call */
} lvd_awaited;
lvd_awaited lvd_wait_item_awaited(const lvd_wait_item *want);
lvd_app *lvd_app_awaited(const lvd_wait_item *want); /* null: not of a single application */

#endif
