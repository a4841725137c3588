/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Workers: one per core. A worker owns its ready queues, its list of pending parks and its
 * counters. Other threads communicate with it through its inbox (an entity has become ready), its
 * list of commands (run this function between two activations) and its yield word. */
#ifndef LVD_SCHED_WORKER_H
#define LVD_SCHED_WORKER_H

#include <levada/fork.h>

#include "../../platform/context.h"
#include "../../platform/platform.h"
#include "../lease/lease_client.h"
#include "entity.h"
#include "timer.h"

enum { LVD_WATCHED = 256 }; /* buckets of the hash table of watched descriptors */
enum { LVD_STACKS = 17 };   /* number of stack sizes: 16 KiB doubled up to 1 GiB */
#define LVD_NOWHERE UINT32_MAX

typedef struct lvd_worker lvd_worker;

/* A function that a worker runs between two activations. The sender waits for `done` with
 * lvd_command_done, unless the command is posted. */
typedef struct lvd_command {
  void (*run)(lvd_worker *w, struct lvd_command *c);
  struct lvd_command *next;
  lvd_a32 done;
  bool posted; /* no thread waits for `done` */
  /* A worker in an overrun runs it in its signal handler: `run` allocates no memory and takes no
   * lock of the C library (overrun.c). */
  bool soon;
  void *argument;
  uint32_t number;
} lvd_command;

typedef struct lvd_queue {
  lvd_entity *first, *last;
  uint32_t turn; /* slot of the actor that was last run from this queue, for round robin */
} lvd_queue;

/* The queue classes of a priority level, lowest first (ready_queue.h): entities that have
 * yielded, entities that have become ready, those with a rate reservation, and those of
 * applications that use little of the worker. */
enum { LVD_Q_YIELDED, LVD_Q_READY, LVD_Q_RESERVED, LVD_Q_LIGHT, LVD_Q_CLASSES };
enum { LVD_Q_COUNT = LVD_Q_CLASSES * LVD_INBOX_LEVELS };
_Static_assert(LVD_Q_COUNT <= 32, "a bit for each in ready_queues");

/* Fields of type lvd_a32, lvd_a64 and lvd_aptr are read by other threads; all others are the
 * worker's own, except where a comment names another owner or a lock. Ticks are those of
 * lvd_os_ticks. */
struct lvd_worker {
  /* ---- Written by other threads, or read by them often. */
  lvd_inbox inbox;
  /* Set to 1 to request that the running entity yields; cleared by the worker (worker.c has the
   * order). */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 yield;
  lvd_a32 running_queue; /* 1 + the queue index of the running entity; 0: none runs */
  /* Ticks: start of the running activation, moved forward by the time that fibers spent polling
   * and by steal time. */
  lvd_a64 started_at;
  /* 1 + the number of the activation in which the clock found a fiber computing (preempt.c); 0:
   * none. */
  lvd_a64 fiber_activation;
  /* Number of changes of `running`; a thread that waits for one sleeps on this word. */
  lvd_a32 run_seq;
  lvd_aptr running;  /* application of the running or next activation; null: none; or LVD_ANY_APP */
  lvd_aptr commands; /* pending commands, the newest first */

  /* ---- Set when the worker is prepared. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_runtime *rt;
  uint32_t index;
  int32_t cpu;       /* number of its core in the system */
  lvd_leased leased; /* its part in the lease of the core */
  lvd_os_thread *thread;
  const unsigned char *low; /* lowest byte of the thread's stack */
  lvd_a32 runs;             /* 1: its thread has been started */
  lvd_a32 available;        /* 1: its core is in the running set; under the runtime's lock */
  /* The application that has reserved the core; null: none; under the runtime's lock. */
  lvd_aptr alone;
  bool clearing; /* a thread is vacating the core; under the runtime's lock */

  /* ---- Ready queues (ready_queue.h). */
  lvd_queue ready[LVD_Q_COUNT];
  uint32_t ready_queues; /* bit i: queue i is not empty */
  bool yielded;          /* the activation that ends has yielded after its time slice */
  bool is_backup;        /* it is the backup worker of its core (backup_worker.c) */
  bool round_robin;      /* queues are kept in the order of the actors' slots */
  /* Ticks, per level: time that other entities may still use before the one that yielded last
   * runs again. */
  uint64_t others_left[LVD_INBOX_LEVELS];
  /* Ticks, per level: lead of light applications over the others. */
  uint64_t light_had[LVD_INBOX_LEVELS];
  /* Ticks: lead of entities with a reserved rate over those that have become ready
   * (`reserved_had`) and over those that have yielded (`reserved_long`); negative: the others
   * have had more than their share. */
  int64_t reserved_had, reserved_long;
  uint64_t light_burst_ticks; /* ticks: the lead that light applications may gain at once */
  lvd_entity *held;           /* list of ready entities that are paused */
  bool ending;                /* its loop is to return */

  /* ---- Park barrier (park_barrier.c). */
  /* IDLE entities that were armed towards another worker since the last barrier */
  lvd_entity **pending_parks;
  uint32_t pending_park_count; /* number of `pending_parks` */
  uint64_t park_barrier_at;    /* ticks: time of the last barrier */
  /* Ticks: the longest interval between two barriers while parks are pending. */
  uint64_t park_barrier_ticks;
  uint64_t retired;                   /* ticks: duration of the barrier before the last sleep */
  uint32_t since_poll;                /* activations since pending parks were last polled */
  uint32_t poll_from;                 /* index in `pending_parks` where the next poll begins */
  struct lvd_app_worker_state *quiet; /* applications of which nothing may be ready here any more */

  /* ---- The running activation. */
  lvd_entity *current;           /* null: none */
  lvd_os_escape *escape;         /* where a fault jumps to */
  lvd_run_result verdict;        /* what the actor's run function has returned */
  volatile uint32_t abandonable; /* 1: a signal handler may jump to `escape` now */
  /* The activation at the clock's last tick, identified by its entity, by that entity's count of
   * activations and by the worker's count (an entity's memory may be reused), ... */
  const lvd_entity *clock_entity;
  uint64_t clock_activations;
  uint64_t clock_activation;
  uint32_t clock_ticks; /* ... and the number of ticks of LVD_TICK_MS in it */

  /* ---- Fibers (fiber.c). */
  lvd_os_context home;     /* context of the worker's own stack while a fiber runs */
  uint32_t switches_left;  /* fiber switches until the next check; never 0 */
  uint32_t loop_countdown; /* checks until control returns to the worker's loop */
  /* Cache of lvd_app_data (app/native.c): the block that was last requested on this worker;
   * serial 0: none. */
  struct {
    uint64_t serial;
    const void *key;
    void *data;
  } asked;
  uint32_t until_sample;       /* checks until an activation is measured */
  uint32_t switches_per_check; /* fiber switches between two checks */
  uint32_t random;             /* state of a linear congruential generator */
  /* Ticks: start of the measured activation, then switches_left is 1; 0: none is measured. */
  uint64_t sampled_at;
  lvd_timer *timers;            /* heap of the fibers that wait with a timeout */
  lvd_fiber *spare[LVD_STACKS]; /* free fibers, by stack size */
  uint32_t spares[LVD_STACKS];  /* their number */

  /* ---- Forks (fork.h). */
  struct lvd_fork_state *forker; /* its fork state, from the runtime's first fork on */
  lvd_fork *fork_base;           /* lvd_forks.head while no fork is open */
  lvd_a32 fork_sleeps;           /* LVD_AWAKE, _SLEEPS, _WAKING or _LENT */
  lvd_aptr proxy;   /* fork state of the program's thread that computes in its place; null: none */
  void *proxy_seen; /* `proxy` at the last check (fork_proxy.c) */
  uint64_t proxy_checked_ns,
      proxy_cpu_ns;             /* ns: time of that check, and the thread's CPU time then */
  bool proxy_computes;          /* result of that check */
  struct lvd_call *spare_calls; /* free call records (rpc/call.c) */
  uint32_t spare_call_count;

  /* ---- Actors that wait for a time (actor_timer.c). */
  lvd_os_mutex alarms_lock;
  lvd_timer *alarms;  /* heap; under alarms_lock */
  lvd_a64 next_alarm; /* ticks: no alarm is due earlier */
  lvd_a64 asks_at;  /* ticks: when the running activation will be asked to yield; 0: it will not */
  lvd_fiber *stack; /* for the next actor that can block (actor_stack.c) */

  /* ---- Steal time (steal_time.c): the last measurement. */
  struct {
    uint64_t min_activation_ticks; /* ticks: shorter activations are not examined */
    /* Ticks: for this long a sampled wait time need not be sampled again. */
    uint64_t sample_valid_ticks;
    uint64_t sampled_at; /* ticks: when the wait time was sampled */
    /* The system has no run delay: its count of voluntary context switches is used. */
    bool uses_switch_count;
    uint64_t sleeps;     /* that count */
    lvd_a64 awake;       /* ticks that the worker had been awake in its life */
    lvd_a64 cpu_ns;      /* CPU time of the thread */
    lvd_a64 waited_ns;   /* run delay and lease waits of the thread */
    lvd_a32 clock;       /* id of the thread's CPU-time clock, for other threads */
    lvd_a64 found_in;    /* number of the activation in which steal time was last found ... */
    lvd_a64 found_ticks; /* ... and the ticks that were found in it */
  } steal;

  /* ---- Counters: written by the worker, except those marked. */
  lvd_a64 busy_ticks;  /* in activations, without steal time */
  lvd_a64 steal_ticks; /* steal time within activations */
  lvd_a64 slept;       /* ticks asleep, encoded as lvd_worker_slept_ticks reads it */
  lvd_a64 activations; /* completed */
  lvd_a64 sleeps;      /* times that it has fallen asleep */
  lvd_a64 wakes_sent;  /* wake-ups of other workers */
  /* Ticks: the largest values reported of both, by any thread (lvd_counter_monotonic). */
  lvd_a64 busy_told, slept_told;

  /* ---- Overrun and watchdog. */
  lvd_a64 stuck; /* 1 + the number of the activation in an overrun (overrun.c) */
  /* 1 + the number of the activation that the watchdog found blocked in a system call; 0:
   * handled. */
  lvd_a64 blocked_activation;
  bool in_offload;        /* it is in the signal handler that migrates its ready entities */
  lvd_a32 migrate_failed; /* 1: a ready entity could not be migrated for lack of a worker */
  /* Ticks: next timer of a fiber or actor queued behind the blocked one; UINT64_MAX: none. */
  lvd_a64 next_due;
  lvd_a32 number; /* the kernel's id of its thread; 0: it has not begun */
  /* Only compared, never dereferenced: an application that is to end, and a C program that is
   * paused; a thread waits for either to leave this worker. */
  lvd_aptr exiting_app;
  lvd_aptr pausing_app;
};

#endif
