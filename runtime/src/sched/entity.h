/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entities: what a worker runs, an actor of an application or a fiber (fiber.h).
 *
 * An entity belongs to one worker at a time; only that worker runs it, arms its channels and
 * hands it over. Other threads only touch its state word (entity.c has the state machine). */
#ifndef LVD_SCHED_ENTITY_H
#define LVD_SCHED_ENTITY_H

#include <levada/fiber.h>
#include <levada/inbox.h>
#include <levada/runtime.h>

#include "../core/counters.h"

enum lvd_entity_state {
  /* Waits for its wake marks; the thread that makes it READY hands it to its worker. */
  LVD_IDLE,
  LVD_READY,    /* queued, or in transit to its worker */
  LVD_RUNNING,  /* its worker runs it */
  LVD_NOTIFIED, /* RUNNING, and a wake-up has arrived: it will run again */
  LVD_FINISHED  /* never runs again */
};

typedef struct lvd_actor_timer lvd_actor_timer;

typedef struct lvd_entity {
  lvd_waiter waiter; /* first: a waiter of a channel is an entity or a wait point */
  lvd_a32 state;
  lvd_a32 worker; /* its owner; only changed by the owner */
  lvd_a32 target; /* the worker it should be moved to */
  /* 1: an actor with a pending call (actor_call.c): RUNNING, but on no worker */
  lvd_a32 call_pending;
  uint32_t slot;          /* its index in the runtime's table, for inboxes */
  uint32_t level;         /* priority level; LVD_INBOX_LEVELS - 1 is the highest */
  bool is_fiber;          /* it is the head of an lvd_fiber and has no actor */
  bool initialised;       /* init has run */
  bool park_pending;      /* it is on its worker's list of pending parks */
  bool in_knot;           /* it is part of a knot of the wait graph (quiescence.c) */
  bool forks;             /* an actor that has forked: from now on it may wait for its forks */
  lvd_aptr fd_watches;    /* list of the descriptors that an actor has polled (blocking_pool.c) */
  lvd_fiber *stack;       /* the stack of an actor that can block (actor_stack.c) */
  bool in_input_wait;     /* it waits in lvd_wait_input_restartable */
  lvd_a32 light;          /* its application is light on this worker (ready_queue.h) */
  uint32_t sent_from;     /* 1 + its worker before the core was vacated; 0: none (runtime.c) */
  lvd_actor_timer *alarm; /* the timer that it waits for (actor_timer.c) */
  struct lvd_restored_state *restored; /* state from the previous version (state_transfer.c) */
  struct lvd_entity *next;             /* in a ready queue or the list of held entities */
  lvd_app *app;
  const char *name;
  lvd_actor actor;
  /* Counters, written by the owner. */
  lvd_a64 activations, busy_ticks, longest_ticks;
  /* Ticks: the largest reported busy time, the running activation included
   * (lvd_counter_monotonic). */
  lvd_a64 busy_told;
  uint64_t recent_longest_ticks; /* the longest activation, decaying by 1/16 per activation */
  lvd_a64 clocked; /* 1 + the number of an activation that the clock or the watchdog has found */
} lvd_entity;

#endif
