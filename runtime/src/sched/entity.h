/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entities: what a worker runs, an actor of an application or a fiber (fiber.h).
 *
 * An entity belongs to one worker at a time; only that worker runs it, arms its channels and gives it
 * away. Its state word is the one thing that others touch (entity.c has the machine). */
#ifndef LVD_SCHED_ENTITY_H
#define LVD_SCHED_ENTITY_H

#include <levada/fiber.h>
#include <levada/inbox.h>
#include <levada/runtime.h>

#include "../core/counters.h"

enum lvd_entity_state {
  LVD_IDLE,     /* waits for its marks; whoever makes it READY hands it to its worker */
  LVD_READY,    /* queued, or on its way */
  LVD_RUNNING,  /* its worker is in it */
  LVD_NOTIFIED, /* RUNNING, and something came meanwhile: it will run once more */
  LVD_FINISHED  /* will never run again */
};

typedef struct lvd_actor_timer lvd_actor_timer;

typedef struct lvd_entity {
  lvd_waiter waiter; /* first: a waiter of a channel is an entity, or a sleeper */
  lvd_a32 state;
  lvd_a32 worker; /* its owner; changed by the owner only */
  lvd_a32 target; /* the worker it should be moved to */
  lvd_a32
      call_pending;    /* an actor whose call is out (blocking_pool.c): RUNNING, and on no worker */
  uint32_t slot;       /* its slot of the runtime's table, for inboxes */
  uint32_t level;      /* of priority: LVD_INBOX_LEVELS - 1 goes first */
  bool is_fiber;       /* it is the head of an lvd_fiber, and has no actor */
  bool initialised;    /* init has run */
  bool unsettled;      /* on its worker's list */
  bool in_knot;        /* quiescence.c, once all is at rest */
  bool forks;          /* an actor that has forked: from now on it may wait, for its forks */
  lvd_aptr fd_watches; /* an actor's: descriptors that it has asked about (blocking_pool.c) */
  lvd_fiber *stack;    /* the one an actor that may wait runs on (actor_stack.c) */
  bool in_input_wait;  /* it waits there in lvd_wait_input */
  lvd_a32 light;       /* its application needs little of the worker (ready_queue.h) */
  uint32_t sent_from;  /* 1 + where it was to be before its core was emptied (runtime.c) */
  lvd_actor_timer *alarm;              /* it waits there for this (actor_timer.c) */
  struct lvd_restored_state *heritage; /* of the version before it (state_transfer.c) */
  struct lvd_entity *next;             /* in a ready queue or the held list */
  lvd_app *app;
  const char *name;
  lvd_actor actor;
  /* Counters, written by the owner. */
  lvd_a64 activations, busy_ticks, longest_ticks;
  lvd_a64 busy_told; /* the most that was said of it, with what ran then (lvd_counter_monotonic) */
  uint64_t lately_longest; /* the longest activation in ticks, of long ago ones less and less */
  lvd_a64 clocked; /* 1 + the number of an activation that the clock, or the watchdog, has met */
} lvd_entity;

#endif
