/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Workers: one per core. A worker owns its ready queues, its list of unsettled entities and its counters. Others reach it
 * through its inbox (an entity has become ready), its list of commands (run this function between two activations) and
 * its yield word. */
#ifndef LVD_SCHED_WORKER_H
#define LVD_SCHED_WORKER_H

#include <levada/fork.h>

#include "../../platform/context.h"
#include "../../platform/platform.h"
#include "../lease/lease_client.h"
#include "entity.h"
#include "timer.h"

enum { LVD_WATCHED = 256 }; /* lists of who waits for descriptors */
enum { LVD_STACKS = 17 };   /* sizes of stacks: 16 KiB, doubled up to 1 GiB */
#define LVD_NOWHERE UINT32_MAX

typedef struct lvd_worker lvd_worker;

/* A function to be run by a worker between two activations; the sender waits for `done`
 * (lvd_command_done), unless it is posted. */
typedef struct lvd_command {
  void (*run)(lvd_worker *w, struct lvd_command *c);
  struct lvd_command *next;
  lvd_a32 done;
  bool posted; /* nobody waits for `done` */
  bool
      soon; /* a stuck worker obeys it from its clock: no memory, no lock of the C library's (overrun.c) */
  void *argument;
  uint32_t number;
} lvd_command;

typedef struct lvd_queue {
  lvd_entity *first, *last;
  uint32_t
      turn; /* the slot of the actor that has run last from here: round robin goes on behind it */
} lvd_queue;

/* Of each level, the last one first (ready_queue.h): of who has had a turn and could go on; of who has become ready; of those of
 * them that are promised a rate; of those others whose applications' actors need little of the worker. */
enum { LVD_Q_YIELDED, LVD_Q_READY, LVD_Q_RESERVED, LVD_Q_LIGHT, LVD_Q_CLASSES };
enum { LVD_Q_COUNT = LVD_Q_CLASSES * LVD_INBOX_LEVELS };
_Static_assert(LVD_Q_COUNT <= 32, "a bit for each in ready_queues");

struct lvd_worker {
  lvd_inbox inbox;
  LVD_ALIGNED(LVD_LINE) lvd_a32 yield; /* read by what runs; whoever wants its place asks for it */
  lvd_a32 running_queue;               /* 1 + that of the entity that runs; 0: none */
  lvd_a64
      started_at; /* ticks: when what runs began, later by what fibers looked around and by what it lost */
  /* 1 + the number of the activation in which a fiber was met computing (preempt.c); 0: none */
  lvd_a64 fiber_activation;
  lvd_a32 run_seq;  /* counts the changes of `running`; who awaits one sleeps on it */
  lvd_aptr running; /* the application of what runs, or is about to; null: none; LVD_ANY_APP */
  lvd_aptr commands;
  LVD_ALIGNED(LVD_LINE) lvd_runtime *rt; /* from here on the worker's own */
  uint32_t index;
  int32_t cpu;
  lvd_leased leased;
  lvd_os_thread *thread;
  const unsigned char *low; /* of the thread's stack */
  lvd_a32 runs;             /* its thread has been started */
  lvd_a32 given;            /* its core is in the running set */
  lvd_aptr alone;           /* whose it is, if it is not; null: nobody's */
  bool clearing;            /* somebody empties it; under the runtime's lock */
  lvd_queue ready[LVD_Q_COUNT];
  uint32_t ready_queues; /* a bit for each queue that is not empty */
  bool yielded;          /* the activation that ends, after a turn */
  bool relief;           /* it is a core's third (backup_worker.c) */
  bool round_robin;      /* actors are queued in the order of their slots */
  /* Ticks, of each level: until others have had as long as who gave way last. */
  uint64_t others_left[LVD_INBOX_LEVELS];
  /* Ticks, of each level: so much more than others those have had that need little. */
  uint64_t light_had[LVD_INBOX_LEVELS];
  /* Ticks that promises have had before others, and before those that have had a turn; below 0: these have had more than
   * their part. */
  int64_t reserved_had, reserved_long;
  uint64_t light_burst_ticks; /* so much may be had at once */
  lvd_entity *held;
  bool ending;
  /* Entities that are IDLE and armed towards another worker since the last barrier. */
  lvd_entity **unsettled;
  uint32_t pending_park_count;
  uint64_t park_barrier_at;           /* ticks */
  uint64_t park_barrier_ticks;        /* so long after that, what has gathered since is settled */
  uint64_t retired;                   /* ticks: what settling took before the last sleep */
  uint32_t since_poll;                /* activations since the unsettled were last looked at */
  uint32_t look_from;                 /* where the next look begins, when they are many */
  struct lvd_app_worker_state *quiet; /* applications that may have come to rest here */
  /* The activation that runs. */
  lvd_entity *current;
  lvd_os_escape *escape;
  lvd_verdict verdict;
  volatile uint32_t abandonable;  /* a trap may jump to `escape` now */
  const lvd_entity *clock_entity; /* what ran when the clock last looked, ... */
  uint64_t clock_activations;     /* ... since its activation of this number ... */
  uint64_t clock_turn;            /* ... and the worker's: another one may lie where it lay ... */
  uint32_t clock_ticks;           /* ... for so many ticks */
  /* Fibers (fiber.c). */
  lvd_os_context home;     /* the worker's own stack, while a fiber runs */
  uint32_t switches_left;  /* switches from fiber to fiber until the next look up; not 0 */
  uint32_t loop_countdown; /* looks that are left until the loop has its turn */
  /* The block of an application that was asked for here last (native.c); serial 0: none. */
  struct {
    uint64_t serial;
    const void *key;
    void *data;
  } asked;
  uint32_t until_sample; /* looks */
  uint32_t look;         /* switches from one look to the next */
  uint32_t random;
  uint64_t sampled_at;          /* ticks; 0: what runs is not measured; else `turns` is 1 */
  lvd_timer *timers;            /* of those that wait with a time limit: its own alone */
  lvd_fiber *spare[LVD_STACKS]; /* by size of stack */
  uint32_t spares[LVD_STACKS];
  /* Forks (fork.h). */
  struct lvd_fork_state *forker; /* its own, from the first fork of the runtime on */
  lvd_fork *fork_base;           /* the head of a deque on which none is open */
  lvd_a32 fork_sleeps;           /* it sleeps, and forks should wake it */
  lvd_aptr lender;               /* the thread of the program that computes in its place */
  void *lender_seen;
  uint64_t lender_looked, lender_cpu;
  bool lender_computes;
  struct lvd_call *spare_calls;
  uint32_t spare_call_count;
  /* Actors that wait for a time (actor_timer.c). */
  lvd_os_mutex alarms_lock;
  lvd_timer *alarms;
  lvd_a64 next_alarm; /* ticks: none is due before that */
  lvd_a64 asks_at;    /* ticks: what runs is asked to give way then; 0: it is not */
  lvd_fiber *stack;   /* at hand for the next actor that may wait */
  /* What was seen when it was last looked whether something was lost (steal_time.c). */
  struct {
    uint64_t least;        /* ticks: a shorter activation has lost nothing */
    uint64_t lasts, known; /* ticks: for how long it is known what was waited, and since when */
    bool by_sleeps;        /* the system does not say that, but counts these */
    uint64_t sleeps;
    lvd_a64 awake; /* ticks */
    lvd_a64 cpu_ns, waited_ns;
    lvd_a32 clock; /* of its thread's CPU time, for others */
    lvd_a64 turn,
        of_it; /* by how many ticks `since` was moved on in the activation of this number */
  } steal;
  /* Counters. */
  lvd_a64 busy_ticks, steal_ticks, slept, activations, sleeps, wakes_sent;
  lvd_a64 busy_told, slept_told; /* the most that was said of both */
  lvd_a64 stuck; /* 1 + the number of the activation that does not end (overrun.c) */
  lvd_a64
      blocked_activation; /* 1 + that of the one that sleeps in the system, as the watchdog saw it; 0: has been done */
  bool in_offload;        /* it is in the handler that gives away what is behind that one */
  lvd_a32 migrate_failed; /* something is behind that one which no other worker could have then */
  lvd_a64
      next_due; /* ticks: when somebody who waits for a time wakes up behind it; UINT64_MAX: nobody does */
  lvd_a32 number; /* its thread's; 0: it has not begun */
  lvd_aptr
      exiting_app; /* an application there that is to end, for which a keeper waits; only compared */
  lvd_aptr pausing_app; /* a C program there that was paused and goes on; only compared */
};

#endif
