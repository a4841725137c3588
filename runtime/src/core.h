/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The structures that the files of the runtime share, and who owns what.
 *
 * An ENTITY is what a worker runs: an actor of an application, or a fiber (fiber.h). It belongs to
 * one worker at a time; only that worker runs it, arms its channels and gives it away. Its state
 * word is the one thing that others touch (entity.c has the machine).
 *
 * A WORKER owns its ready queues, its list of unsettled entities and its counters. Others reach it
 * through its inbox (an entity has become ready), its list of commands (run this function between
 * two activations) and its yield word. */
#ifndef LVD_CORE_H
#define LVD_CORE_H

#include <levada/fiber.h>
#include <levada/fork.h>
#include <levada/inbox.h>
#include <levada/runtime.h>

#include "../platform/context.h"
#include "../platform/platform.h"
#include "core/hooks.h"
#include "lease/lease_client.h"
#include "sched/timer.h"

enum { LVD_WATCHED = 256 }; /* lists of who waits for descriptors */
enum { LVD_STACKS = 17 };   /* sizes of stacks: 16 KiB, doubled up to 1 GiB */
#define LVD_NOWHERE UINT32_MAX

/* ---- entities ----------------------------------------------------------------------------- */

enum lvd_entity_state {
  LVD_IDLE,     /* waits for its marks; whoever makes it READY hands it to its worker */
  LVD_READY,    /* queued, or on its way */
  LVD_RUNNING,  /* its worker is in it */
  LVD_NOTIFIED, /* RUNNING, and something came meanwhile: it will run once more */
  LVD_FINISHED  /* will never run again */
};

typedef struct lvd_alarm lvd_alarm;

typedef struct lvd_entity {
  lvd_waiter waiter; /* first: a waiter of a channel is an entity, or a sleeper */
  lvd_a32 state;
  lvd_a32 worker;     /* its owner; changed by the owner only */
  lvd_a32 target;     /* the worker it should be moved to */
  lvd_a32 away;       /* an actor whose call is out (blocking_pool.c): RUNNING, and on no worker */
  uint32_t slot;      /* its slot of the runtime's table, for inboxes */
  uint32_t level;     /* of priority: LVD_INBOX_LEVELS - 1 goes first */
  bool is_fiber;      /* it is the head of an lvd_fiber, and has no actor */
  bool begun;         /* init has run */
  bool unsettled;     /* on its worker's list */
  bool knotted;       /* quiescence.c, once all is at rest */
  bool forks;         /* an actor that has forked: from now on it may wait, for its forks */
  lvd_aptr questions; /* an actor's: descriptors that it has asked about (blocking_pool.c) */
  lvd_fiber *stack;   /* the one an actor that may wait runs on (actor_stack.c) */
  bool at_input;      /* it waits there in lvd_wait_input */
  lvd_a32 little;     /* its application needs little of the worker (ready_queue.h) */
  uint32_t sent_from; /* 1 + where it was to be before its core was emptied (runtime.c) */
  lvd_alarm *alarm;   /* it waits there for this (actor_timer.c) */
  struct lvd_heritage *heritage; /* of the version before it (state_transfer.c) */
  struct lvd_entity *next;       /* in a ready queue or the held list */
  lvd_app *app;
  const char *name;
  lvd_actor actor;
  /* Counters, written by the owner. */
  lvd_a64 activations, busy_ticks, longest_ticks;
  lvd_a64 busy_told;       /* the most that was said of it, with what ran then (lvd_tell_most) */
  uint64_t lately_longest; /* the longest activation in ticks, of long ago ones less and less */
  lvd_a64 clocked; /* 1 + the number of an activation that the clock, or the watchdog, has met */
} lvd_entity;

/* ---- workers ------------------------------------------------------------------------------ */

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
enum { LVD_AFTER, LVD_USUAL, LVD_PROMISED, LVD_LITTLE, LVD_OF_LEVEL };
enum { LVD_PLACES = LVD_OF_LEVEL * LVD_INBOX_LEVELS };
_Static_assert(LVD_PLACES <= 32, "a bit for each in ready_places");

struct lvd_worker {
  lvd_inbox inbox;
  LVD_ALIGNED(LVD_LINE) lvd_a32 yield; /* read by what runs; whoever wants its place asks for it */
  lvd_a32 running_place;               /* 1 + that of the entity that runs; 0: none */
  lvd_a64
      since; /* ticks: when what runs began, later by what fibers looked around and by what it lost */
  /* 1 + the number of the activation in which a fiber was met computing (preempt.c); 0: none */
  lvd_a64 computes;
  lvd_a32 turn;     /* counts the changes of `running`; who awaits one sleeps on it */
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
  lvd_queue ready[LVD_PLACES];
  uint32_t ready_places; /* a bit for each queue that is not empty */
  bool gave_way;         /* the activation that ends, after a turn */
  bool relief;           /* it is a core's third (backup_worker.c) */
  bool round_robin;      /* actors are queued in the order of their slots */
  /* Ticks, of each level: until others have had as long as who gave way last. */
  uint64_t others_left[LVD_INBOX_LEVELS];
  /* Ticks, of each level: so much more than others those have had that need little. */
  uint64_t little_had[LVD_INBOX_LEVELS];
  /* Ticks that promises have had before others, and before those that have had a turn; below 0: these have had more than
   * their part. */
  int64_t promised_had, promised_long;
  uint64_t little_ticks; /* so much may be had at once */
  lvd_entity *held;
  bool ending;
  /* Entities that are IDLE and armed towards another worker since the last barrier. */
  lvd_entity **unsettled;
  uint32_t unsettled_count;
  uint64_t settled_at;         /* ticks */
  uint64_t settle_ticks;       /* so long after that, what has gathered since is settled */
  uint64_t retired;            /* ticks: what settling took before the last sleep */
  uint32_t since_look;         /* activations since the unsettled were last looked at */
  uint32_t look_from;          /* where the next look begins, when they are many */
  struct lvd_app_share *quiet; /* applications that may have come to rest here */
  /* The activation that runs. */
  lvd_entity *current;
  lvd_os_escape *escape;
  lvd_verdict verdict;
  volatile uint32_t may_abandon;  /* a trap may jump to `escape` now */
  const lvd_entity *clock_entity; /* what ran when the clock last looked, ... */
  uint64_t clock_activations;     /* ... since its activation of this number ... */
  uint64_t clock_turn;            /* ... and the worker's: another one may lie where it lay ... */
  uint32_t clock_ticks;           /* ... for so many ticks */
  /* Fibers (fiber.c). */
  lvd_os_context home; /* the worker's own stack, while a fiber runs */
  uint32_t turns;      /* switches from fiber to fiber until the next look up; not 0 */
  uint32_t away;       /* looks that are left until the loop has its turn */
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
  struct lvd_forker *forker; /* its own, from the first fork of the runtime on */
  lvd_fork *fork_base;       /* the head of a deque on which none is open */
  lvd_a32 fork_sleeps;       /* it sleeps, and forks should wake it */
  lvd_aptr lender;           /* the thread of the program that computes in its place */
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
  } lost;
  /* Counters. */
  lvd_a64 busy_ticks, lost_ticks, slept, activations, sleeps, wakes_sent;
  lvd_a64 busy_told, slept_told; /* the most that was said of both */
  lvd_a64 stuck; /* 1 + the number of the activation that does not end (overrun.c) */
  lvd_a64
      sleeper; /* 1 + that of the one that sleeps in the system, as the watchdog saw it; 0: has been done */
  bool relieves; /* it is in the handler that gives away what is behind that one */
  lvd_a32 left;  /* something is behind that one which no other worker could have then */
  lvd_a64
      due; /* ticks: when somebody who waits for a time wakes up behind it; UINT64_MAX: nobody does */
  lvd_a32 number; /* its thread's; 0: it has not begun */
  lvd_aptr ends;  /* an application there that is to end, for which a keeper waits; only compared */
  lvd_aptr halts; /* a C program there that was paused and goes on; only compared */
};

/* ---- applications ------------------------------------------------------------------------- */

/* What a worker knows of an application; the worker's own. What has come or ended here is taken
 * from the application's counts when it is at rest here, and not each time. */
typedef struct lvd_app_share {
  LVD_ALIGNED(LVD_LINE) lvd_app *app;
  uint32_t ready;      /* its entities here that are READY or RUNNING */
  uint32_t arrived;    /* what was on its way here, and is counted in app->live still */
  uint32_t ended;      /* fibers that are counted in app->fibers still */
  uint64_t had_until;  /* ticks: its actors have had a small part of the worker until then */
  lvd_a64 fiber_ticks; /* of the worker's clock, amid fibers of it ... */
  lvd_a64 end_ticks;   /* ... since it ends, ... */
  uint64_t ends_since; /* ... which they first saw then; 0: not yet */
  lvd_a32 known;       /* something of the application has been here */
  lvd_a32 taking;      /* `take_up` has been left, and has not run */
  lvd_command take_up, forget; /* app_control.c, app_reaper.c */
  bool counted;                /* this worker is counted in app->live */
  bool candidate;              /* on the worker's quiet list */
  struct lvd_app_share *next;
} lvd_app_share;

typedef struct lvd_app_block {
  const void *key;  /* null: the version before this one has left it, and nobody has asked for it */
  const char *name; /* null: it is no heirloom */
  void *data;
  size_t size;
  void (*end)(void *, lvd_status);
  struct lvd_app_block *next;
} lvd_app_block;

/* An end of a channel that the program holds: a sleeper, and the handle. */
typedef struct lvd_outside {
  lvd_sleeper sleeper;
  lvd_app *app;
  uint32_t channel, index;
  bool producer;
  bool told; /* that the program has ended it is known at the other end (judge) */
  union {
    lvd_producer p;
    lvd_consumer c;
  } end;
} lvd_outside;

/* What holds entities up: all of them; those without inputs, which have come to their end; or these, which
 * go on later. */
enum lvd_hold { LVD_HOLD_ALL = 1, LVD_HOLD_SOURCES = 2, LVD_HOLD_REST = 4 };

/* Whether a C program is to leave. That may be taken back as long as it has not heard of it. */
enum lvd_leaving { LVD_STAYS, LVD_ASKED, LVD_TOLD };

enum lvd_app_phase { LVD_PHASE_LOADED, LVD_PHASE_RUNNING, LVD_PHASE_ENDING, LVD_PHASE_ENDED };

struct lvd_app {
  lvd_runtime *rt;
  const lvd_network *net;
  char *name;
  lvd_app *next, *previous; /* in the runtime's list */
  uint64_t serial;          /* from 1 on: no other of this runtime has had it */
  lvd_entity *entity;       /* net->actors of them */
  lvd_channel **channel;    /* net->channels of them */
  lvd_outside *outside;
  uint32_t outsides;
  lvd_app_share *share; /* one for each worker */
  lvd_a32 promised;     /* a rate: it goes before others of its level */
  lvd_option *option;
  uint32_t options;
  /* How alive it is: workers that count it, and wake-ups on their way. 0: nothing can fire. As with
   * references, only what may take away the last has an order: it sees all that was done before. */
  LVD_ALIGNED(LVD_LINE) lvd_a32 live;
  LVD_ALIGNED(LVD_LINE) lvd_a32 fibers; /* that it has */
  lvd_a32 calls_out;                    /* of its actors (blocking_pool.c) */
  LVD_ALIGNED(LVD_LINE) lvd_a32 phase;
  lvd_a32 paused;       /* what `holds` says, for workers */
  lvd_a32 outcome;      /* 1 + an lvd_status; 0: it has not been told to end */
  lvd_a32 inside;       /* threads in waits for streams of it (thread_waiters.h) */
  lvd_a32 stopped;      /* a network was told to end at once */
  lvd_a32 ends_at_rest; /* lvd_app_ends_at_rest */
  lvd_a32 suspect;      /* at rest, and its fibers may wait for each other: the keeper looks */
  lvd_a32 unjudged;     /* at rest, as was seen where it could not be judged: the keeper does */
  lvd_a32 open;         /* fibers may be started from outside: rest is not the end */
  bool finishing;       /* a keeper has it; under the runtime's lock */
  lvd_os_mutex control; /* pause, resume, drain: one at a time */
  uint32_t holds;       /* of lvd_hold; under control */
  lvd_os_mutex blocks_lock;
  lvd_app_block *blocks;
  lvd_aptr heir;    /* has its heirlooms when it ends well; under blocks_lock */
  lvd_a32 inherits; /* somebody's heir is this one */
  lvd_a32 leaving;  /* of lvd_leaving, where it is a C program */
  struct stream *streams;
  struct lvd_unit *units;
  struct lvd_program_state *program; /* of one by the paper's names that is loaded beside others */
  uintptr_t code_from, code_to;      /* the program's own instructions */
  lvd_aptr story;  /* who waited for whom when fibers were told of a deadlock; ours */
  lvd_a32 faulted; /* 1: somebody fills `fault`; 2: it is there */
  lvd_fault fault;
  lvd_a64 prints_until; /* at its rate it has printed for until then (lvd_app_prints); in ns */
  lvd_a64 progress;
  lvd_aptr progress_unit;
  lvd_a64 input_done_bytes, input_total_bytes; /* lvd_app_input_progress */
  /* What is to be freed. */
  lvd_os_rings rings;
  void *memory;
  size_t memory_size;
  struct lvd_texts *texts; /* strings that came from the version before it (state_transfer.c) */
  /* Who wakes an entity from outside, who judges whether all is at rest, and who starts and ends
   * it: one at a time. Last, since it lives on when the rest is another application's: a late waker
   * may still hold it (app.c). */
  lvd_os_mutex gate;
};

struct lvd_runtime {
  lvd_runtime_options options;
  uint32_t workers;
  lvd_worker *
      worker; /* behind them the urgent one of each core (priority_worker.c), and its relief (backup_worker.c) */
  bool relieved;       /* it has these */
  lvd_slot *slot;      /* a slot for each entity that is loaded, for the inboxes ... */
  lvd_entity **entity; /* ... and whose it is */
  uint32_t slot_hint;  /* where a free one may be, for actors; under `lock` */
  bool one_core;       /* that this process may use */
  bool fenced;
  lvd_a32 links;        /* to what may be on another core: processes, second processors */
  lvd_a32 awaited;      /* how many wait for a turn of some worker (lvd_app_still) */
  lvd_command *command; /* one for each worker: of who takes a core, or ends the runtime */
  lvd_os_mutex lock;    /* the list of applications, the running set */
  lvd_app *apps;
  uint64_t loads;             /* applications that were loaded */
  uint32_t given_count;       /* workers in the running set */
  struct lvd_keeper *keepers; /* under pool_lock: usually one (app_reaper.c) */
  lvd_a32 keepers_idle;
  lvd_a32 keeper_work; /* bumped when an application begins to end; the keeper sleeps on it */
  lvd_a32 keeper_ending;
  struct lvd_watchdog *watchdog;
  lvd_a32 awake; /* workers, by twos (watchdog.c) */
  /* What lies ready to be used again (app.c, fiber_pool.c). */
  lvd_os_mutex pool_lock; /* what is kept to be used again */
  lvd_app *spare_apps;
  struct lvd_call *spare_calls;
  lvd_fiber *spare[LVD_STACKS];
  lvd_aptr fiber_chunks;
  uint32_t fiber_hint;        /* as slot_hint, for fibers */
  uint32_t own_stacks;        /* that a worker keeps of one size */
  struct lvd_helper *helpers; /* threads for calls that block (blocking_pool.c) ... */
  struct lvd_call_out *calls_first, *calls_last; /* ... and calls that wait for one */
  uint32_t helper_count;
  lvd_os_poller *poller; /* who waits for descriptors, and the thread that does */
  lvd_os_thread *poller_thread;
  struct lvd_call_out *watched[LVD_WATCHED]; /* by descriptor */
  lvd_a32 next_refuge;                       /* where what is behind a stuck worker goes */
  lvd_a32 next_place;                        /* where the next fiber that may be anywhere goes */
  lvd_aptr forks;                            /* null until the first fork (fork_thread.c) */
  lvd_runtime *next_runtime;
};

/* A C program: the flag of the class of its main (program_app.c). */
enum { LVD_CLASS_C_PROGRAM = 1 << 30 };
static inline bool lvd_app_is_program(const lvd_app *app) {
  return app->net->actors && app->net->actor[0].cls->flags & LVD_CLASS_C_PROGRAM;
}

/* May an actor of `app` be there? Under the runtime's lock. */
static inline bool lvd_core_is_for(const lvd_worker *w, const lvd_app *app) {
  return lvd_load_relaxed_u32(&w->given) || lvd_load_relaxed_ptr(&w->alone) == app;
}

/* Still in the activation in which its clock said that it is (overrun.c)? */
static inline bool lvd_worker_is_stuck(const lvd_worker *w) {
  return lvd_load_relaxed_u64(&w->stuck) == lvd_load_relaxed_u64(&w->activations) + 1;
}

/* Never less than before: it is a counter. */
static inline uint64_t lvd_tell_most(lvd_a64 *most, uint64_t is) {
  uint64_t told = lvd_load_relaxed_u64(most);
  while (told < is && !lvd_cas_relaxed_u64(most, &told, is)) {
  }
  return told < is ? is : told;
}

/* What the clock has counted of the activation that runs. */
static inline uint64_t lvd_clocked_ms(const lvd_worker *w) {
  return (uint64_t)w->clock_ticks * LVD_TICK_MS;
}

/* Workers, with the urgent ones and the reliefs. */
static inline uint32_t lvd_all_workers(const lvd_runtime *rt) {
  return (rt->relieved ? 3 : 2) * rt->workers;
}
static inline bool lvd_is_urgent(const lvd_runtime *rt, uint32_t index) {
  return index >= rt->workers && index < 2 * rt->workers;
}

/* What a worker has slept, in one word, so that who reads it sees the sleep that goes on, too: twice the
 * ticks; while it sleeps, 1 and twice what they were, less the time when it fell asleep. Clocks of two
 * cores differ a little, and so may what one reads from what another has read before. */
static inline uint64_t lvd_slept(const lvd_worker *w) {
  uint64_t word = lvd_load_relaxed_u64(&w->slept);
  uint64_t half = word >> 1 | (word & UINT64_C(1) << 63); /* with its sign */
  uint64_t ticks = word & 1 ? half + lvd_os_ticks() : half;
  return ticks >> 63 ? 0 : ticks; /* on another core it is a little earlier */
}
static inline void lvd_falls_asleep(lvd_worker *w) {
  uint64_t from = (lvd_load_relaxed_u64(&w->slept) >> 1) - lvd_os_ticks();
  lvd_store_relaxed_u64(&w->slept, from << 1 | 1);
}
static inline void lvd_wakes_up(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->slept, lvd_slept(w) << 1);
}

/* How long the activation of `e` that runs has taken; 0: none does, or it began a moment ago (counters.c). */
uint64_t lvd_runs_ns(const lvd_entity *e);

/* Where a runtime is to have a real-time priority, all that runs code of applications has it, in turns where it
 * shares a core; what is urgent goes before that, and before both who serves the workers: what runs nobody's code
 * and must have its turn whatever they compute. */
typedef enum lvd_above { LVD_ABOVE_NOBODY, LVD_ABOVE_URGENT, LVD_ABOVE_SERVES } lvd_above;
_Static_assert(LVD_REALTIME_MOST + LVD_ABOVE_SERVES == 99, "the system has priorities 1 to 99");

/* That the system allows it was found out before there were workers (lvd_runtime_create). */
static inline void lvd_take_priority(const lvd_runtime *rt, lvd_above above) {
  uint32_t least = rt->options.realtime;
  if (least) lvd_os_thread_set_realtime(least + (uint32_t)above);
}

/* How long somebody looks around before he sleeps. On our only core nothing changes meanwhile, but for
 * what others than we push. */
static inline uint32_t lvd_spin_us(const lvd_runtime *rt) {
  bool still = rt->one_core && !lvd_load_relaxed_u32(&rt->links);
  return rt->options.no_spin || still ? 0 : rt->options.spin_us;
}

static inline uint32_t lvd_level_of(int64_t priority) {
  int64_t level = priority + LVD_INBOX_LEVELS / 2;
  return level < 0 ? 0 : level >= LVD_INBOX_LEVELS ? LVD_INBOX_LEVELS - 1 : (uint32_t)level;
}

/* ---- entity.c ----------------------------------------------------------------------------- */

bool lvd_entity_wake(lvd_waiter *self);
bool lvd_entity_rouse(lvd_entity *e); /* the same, with the application's gate in hand */
/* The worker that runs this thread, or null. */
static inline lvd_worker *lvd_this_worker(void) { return lvd_os_self(); }
void lvd_queue_remove_app(lvd_worker *w, lvd_app *app); /* owner only */
void lvd_queue_insert(lvd_queue *q, lvd_entity *e);     /* in its turn; there is somebody in it */
bool lvd_entity_park(lvd_worker *w, lvd_entity *e);     /* after LVD_WAIT */
bool lvd_entity_can_go_on(lvd_entity *e);
void lvd_entity_hand_over(lvd_worker *w, lvd_entity *e, uint32_t target);

/* ---- worker.c ----------------------------------------------------------------------------- */

void lvd_worker_main(void *w);
lvd_status lvd_worker_prepare(lvd_runtime *rt, uint32_t index, int32_t cpu);
lvd_status lvd_worker_start(lvd_worker *w, const char *name);
void lvd_worker_free(lvd_worker *w);
/* Bytes of a table of all entities that the runtime may have. */
static inline size_t lvd_entities_size(const lvd_runtime *rt) {
  return (size_t)rt->options.entities * sizeof(lvd_entity *);
}
void lvd_worker_ring(lvd_worker *w); /* wakes it, if it sleeps; what runs there gives way */
void lvd_worker_ask(lvd_worker *w);  /* what runs there should give way, for what was left for it */
/* The same for what has this place, of who runs at `running` - 1. */
void lvd_worker_ask_for(lvd_worker *w, uint32_t place, uint32_t running);
/* What runs there, for who is ready at this place of its level. */
bool lvd_worker_had_enough(const lvd_worker *w, uint32_t place, uint32_t running);
void lvd_worker_command(lvd_worker *w, lvd_command *c);
/* Leaves `c`, which nobody waits for. What runs gives way to it if it is less than `level`. */
void lvd_worker_post(lvd_worker *w, lvd_command *c, uint32_t level);
/* Has somebody left something for it? */
static inline bool lvd_worker_wanted(const lvd_worker *w) {
  return lvd_load_relaxed_u32(&w->yield) || lvd_load_relaxed_ptr(&w->commands) ||
         lvd_inbox_pending(&w->inbox);
}
/* Have some parked, or may applications have come to rest, since it settled long ago? */
static inline bool lvd_settle_is_due(const lvd_worker *w, uint64_t now) {
  return (w->unsettled_count || w->quiet) && now - w->settled_at > w->settle_ticks;
}
/* While a worker steals it may touch any application. */
#define LVD_ANY_APP(w) ((lvd_app *)(w))
/* What is done from here on is for `app`; null: for none. Before the application's phase is read:
 * who changes that, and then waits for an end of what runs (lvd_app_still), either sees us or is
 * seen. */
void lvd_worker_turns(lvd_worker *w, lvd_app *app);
/* Has the command been done? Waits for that at most `timeout_ns`; negative: for ever. */
bool lvd_command_done(lvd_command *c, int64_t timeout_ns);
void lvd_inbox_drain(lvd_worker *w);
/* The commands that may be obeyed at any time, if there are no others. */
void lvd_worker_obey(lvd_worker *w);
void lvd_actor_publish(lvd_actor *a);

/* How long to wait before the next of `looks`: each takes lines away from the sides that work, so
 * at first often, for what takes a microsecond, and then less and less. */
static inline uint32_t lvd_pauses(uint32_t looks) { return looks < 128 ? 1 + looks / 8 : 16; }

/* ---- status.c ----------------------------------------------------------------------------- */

/* LVD_E_LIMIT, which lvd_status_text says as `sentence` (a constant): what is limited, and what raises
 * that. */
lvd_status lvd_limit(const char *sentence);

/* ---- runtime.c ---------------------------------------------------------------------------- */

/* The cores that were taken for `app` are all's again. Under the runtime's lock. */
void lvd_cores_back(lvd_app *app);
void lvd_core_put_back(lvd_worker *w); /* one of them */

/* ---- app_control.c ---------------------------------------------------------------------------- */

void lvd_app_retarget(lvd_app *app, lvd_entity *e, uint32_t worker);
/* What is held of it is ready again, where something of it is known. Nobody waits for that. */
void lvd_app_take_up(lvd_app *app);
/* Waits until no activation of `app` goes on that has begun before its phase or pause was set. */
void lvd_app_still(lvd_app *app);

/* ---- quiescence.c ------------------------------------------------------------------------------- */

void lvd_app_quiet(lvd_app *app); /* live has come to 0, or what is outside has changed since */
/* Judges who came to rest where nobody could be judged. True: there are suspects, or, where they are to be looked at since rest has lasted, there were some until now. */
bool lvd_suspects_find(lvd_runtime *rt, bool look);

/* ---- app_reaper.c ----------------------------------------------------------------------------- */

lvd_status lvd_keeper_start(lvd_runtime *rt);
void lvd_keepers_end(lvd_runtime *rt);
void lvd_keeper_main(void *rt);
/* The keeper that calls this has waited for so long: another one does its work meanwhile. */
enum { LVD_HELD_UP_NS = 1000000 };
void lvd_keeper_held_up(lvd_runtime *rt);

/* ---- park_barrier.c ----------------------------------------------------------------------------- */

void lvd_unsettled_add(lvd_worker *w, lvd_entity *e);
void lvd_unsettled_remove(lvd_worker *w, lvd_entity *e);
bool lvd_look_around(lvd_worker *w); /* without the barrier: a guess; true: something is ready */
void lvd_settle(lvd_worker *w);

/* ---- app_liveness.c ------------------------------------------------------------------------------ */

void lvd_share_enter(lvd_worker *w, lvd_app *app);  /* one more entity of it is ready here ... */
void lvd_share_arrive(lvd_worker *w, lvd_app *app); /* ... that was on its way */
/* The same by who does nothing of it yet. */
void lvd_share_enter_from_outside(lvd_worker *w, lvd_app *app);
void lvd_share_leave(lvd_worker *w, lvd_app *app);
void lvd_share_ended(lvd_worker *w, lvd_app *app); /* a fiber of it has ended here */
void lvd_shares_rest(lvd_worker *w); /* has settled: of what is quiet here, nothing is ready */
void lvd_share_forget(lvd_worker *w, const lvd_app *app); /* it ends */
lvd_status lvd_app_told(const lvd_app *app);              /* why it is to end */
void lvd_app_end(lvd_app *app, lvd_status outcome);
void lvd_keeper_ring(lvd_runtime *rt); /* there is something to look at, or to end */

/* Who uses something, as lvd_caller has it. */
typedef struct lvd_user {
  void *who;
  lvd_fiber *fiber; /* null: a thread */
} lvd_user;

/* ---- wait.c ------------------------------------------------------------------------------- */

/* What a sleeper lies in. */
enum { LVD_SLEEPS_ALONE, LVD_SLEEPS_AT_STREAM, LVD_SLEEPS_AT_END, LVD_SLEEPS_AT_CALL };

void lvd_want_arm(const lvd_want *want, lvd_waiter *who);
void lvd_want_disarm(const lvd_want *want);
lvd_sleeper *lvd_want_sleeper(const lvd_want *want); /* null: it has none */
lvd_status lvd_want_look(const lvd_want *want);      /* of one that waits; LVD_E_TIME: not yet */
lvd_status lvd_want_met(const lvd_want *want);       /* of one that runs; LVD_E_TIME: not yet */
/* The first of them that is met; `waiting`: as lvd_want_look, else as lvd_want_met. */
lvd_status lvd_wants_look(const lvd_want *want, uint32_t count, bool waiting, uint32_t *which);
/* Sets an event that is not set and that nobody else sets. */
void lvd_event_tell(lvd_event *e, uint32_t data);

/* ---- fiber.c ------------------------------------------------------------------------------ */

uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now);
bool lvd_fiber_can_go_on(lvd_entity *e);
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_want *want, uint32_t count, int64_t timeout_ns,
                          uint32_t *which);
bool lvd_fiber_is_bare(const lvd_entity *e);
bool lvd_entity_stays(
    const lvd_entity *e); /* suspended with forks open, or by force: it does not move */
/* In a signal's handler, on the stack of the fiber that runs: it stands behind all that is ready. */
void lvd_fiber_interrupted(void);
void lvd_fiber_moves(lvd_worker *w, lvd_entity *e); /* away from `w` */

/* ---- app_fibers.c ------------------------------------------------------------------------- */

void lvd_fibers_end(lvd_app *app);  /* tells all of it, and waits until they have returned */
void lvd_fibers_wake(lvd_app *app); /* that something has changed for all of it: they look */

/* ---- fiber_pool.c ------------------------------------------------------------------------- */

void lvd_fibers_each(lvd_app *app, void (*visit)(lvd_entity *, void *), void *argument);
void lvd_fiber_pool_init(lvd_runtime *rt);
void lvd_fiber_pool_free(lvd_runtime *rt);

/* ---- stack_overflow.c --------------------------------------------------------------------------- */

/* What makes a stack that has overflowed larger; "" if nothing does. What is said of one. */
const char *lvd_stack_advice(const lvd_entity *e);
void lvd_stack_text(const lvd_entity *e, char *text, size_t size);
/* Is `address` in the guard below the stack of what runs? */
bool lvd_fiber_overflows(const lvd_worker *w, const void *address);

/* ---- fork_thread.c ----------------------------------------------------------------------------- */

void lvd_forks_runtime_begins(lvd_runtime *rt);
void lvd_forks_runtime_ends(lvd_runtime *rt);
void lvd_forks_free(lvd_runtime *rt);
void lvd_forks_worker_ends(void);

/* ---- steal.c ------------------------------------------------------------------------------ */

/* A worker without work: true: something was stolen, and is ready. */
bool lvd_forks_look(lvd_worker *w);
/* Before it sleeps: the same, once more. *most: for so long at the most. Then, until it is awake: */
bool lvd_forks_sleep(lvd_worker *w, int64_t *most);
bool lvd_forks_may_sleep(const lvd_worker *w); /* false: a fork has woken it already */
void lvd_forks_awake(lvd_worker *w);

/* ---- deque_pool.c ----------------------------------------------------------------------------- */

void lvd_forks_leave(lvd_worker *w, lvd_fiber *f); /* a fiber with open forks is suspended */
/* A fiber, which is perhaps about to fork or to join, keeps its deque as it is while it is suspended. False: it had none,
 * and is to have none when it goes on. */
bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *f);
void lvd_forks_set_back_without(void);
void lvd_forks_enter(lvd_worker *w, lvd_fiber *f);   /* ... and goes on */
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *f); /* ... or was abandoned */
void lvd_forks_drop(lvd_fiber *f);                   /* ... or is not gone on with (overrun.c) */
void lvd_forks_forsake(lvd_app *app, lvd_fiber *f);  /* ... and never does, since `app` ends */

/* ---- wait_report_fibers.c ------------------------------------------------------------------------- */

size_t lvd_fibers_why(lvd_app *app, char *text, size_t size);
size_t lvd_fibers_runs(lvd_app *app, char *text, size_t size); /* only those that have a worker */
void lvd_fibers_story(lvd_app *app); /* keeps it, for when they have gone */
bool lvd_streams_await_threads(
    lvd_app *app); /* threads or other processes have ends of its streams,
                                                 or calls */

/* ---- deadlock_detect.c, stream.c ---------------------------------------------------------------------- */

/* Do fibers, or threads, wait in vain? At rest, the gate closed. It may be found out later (deadlock_detect.h). */
bool lvd_fibers_in_vain(lvd_app *app);
/* Its application is over: who waits at a stream whose other end nobody has is told so. */
void lvd_streams_end(lvd_app *app, lvd_status outcome);

/* ---- blocking_pool.c --------------------------------------------------------------------------- */

void lvd_blocking_end(lvd_runtime *rt);
/* ---- actor_call.c -------------------------------------------------------------------------- */

/* The call of an actor with a stack is out from here on: the actor leaves its worker next (lvd_stack_away). */
void lvd_actor_begins_call(lvd_entity *e);
/* An actor with a stack waits until lvd_call_give_back, which has been arranged. */
void lvd_actor_leaves(lvd_worker *w, lvd_entity *e);
void lvd_call_give_back(lvd_entity *e);
void lvd_call_is_back(lvd_entity *e); /* its worker has learned it */
void lvd_call_is_over(lvd_app *app);  /* the application has one call less out */
/* `w` runs: if `e` is its own and its call is out, the call comes back where `e` should be. */
void lvd_call_follows(lvd_worker *w, lvd_entity *e);
/* ---- actor_timer.c: who waits for a time -------------------------------------------------------- */

/* Ticks until the first of `w` is due; 0: none waits for a time. */
uint64_t lvd_alarms_next(const lvd_worker *w);
/* `e` begins: it is asked to give way when an alarm becomes due that may while it runs. */
void lvd_alarms_amid(lvd_worker *w, const lvd_entity *e, uint64_t now);
void lvd_alarms_expire(lvd_worker *w, uint64_t now);
/* `w` runs: `e`, whose call has just followed it to another worker, waits there. */
void lvd_alarm_follows(lvd_worker *w, lvd_entity *e);
void lvd_alarms_recall(lvd_app *app); /* of its actors */

/* Interrupts the calls of an application that ends, and waits until those of its actors are back. */
void lvd_calls_recall(lvd_app *app);
/* Who waits in lvd_wait_input looks again whether it drains. */
void lvd_inputs_end(lvd_app *app);
/* Is it a source that may be left for good where it waits in lvd_wait_input? */
static inline bool lvd_restarts(const lvd_entity *e) {
  return e->actor.cls->flags & LVD_CLASS_RESTARTS && e->actor.cls->inputs == 0;
}
/* What `e`, which its worker has in hand, has asked: all of it, or what it asked before it last fired. */
void lvd_questions_withdraw(lvd_entity *e);
void lvd_questions_keep_last(lvd_entity *e);
static inline bool lvd_asks(const lvd_entity *e) { return lvd_load_relaxed_ptr(&e->questions); }

/* ---- actor_stack.c ------------------------------------------------------------------------ */

bool lvd_stack_take(lvd_worker *w, lvd_entity *e); /* for the coming call of run; false: none */
void lvd_stack_enter(void *worker);                /* calls run on it, or goes on with it */
void lvd_stack_leave(lvd_worker *w, lvd_entity *e, bool whole); /* run has returned; or was left */
void lvd_stack_away(lvd_worker *w, lvd_entity *e); /* returns when it is gone on with */
void lvd_stacks_forsake(lvd_app *app);             /* none of it is gone on with from now on */
void lvd_stacks_free(lvd_app *app);                /* of those that are not gone on with */

/* ---- overrun.c ------------------------------------------------------------------------------ */

/* A worker that may have something of what waits behind `w`; null: none. In a signal's handler, or anywhere. */
lvd_worker *lvd_refuge(const lvd_worker *w);
/* Another tick of the clock in the same activation: gives away what waits behind it, once it has gone on
 * for long. In signal context. */
void lvd_stuck_tick(lvd_worker *w);
/* The watchdog has seen that the activation sleeps in the system; it is at `at`, on the stack at `sp`. In signal context. */
void lvd_stuck_asleep(lvd_worker *w, const void *sp, const void *at);

/* ---- preempt.c -------------------------------------------------------------------------- */

/* A tick of the clock amid a fiber, which goes on at `at` with its stack at `sp`: it is suspended, where it can be and
 * somebody waits, or else relieved as an actor is. In signal context. */
void lvd_interrupt_fiber(lvd_worker *w, const void *sp, const void *at);
/* The watchdog has met it asleep in the system: if its application is paused it is suspended when it is back in code of
 * its own. In signal context. */
void lvd_interrupt_asleep(lvd_worker *w, const void *sp, const void *at);
/* What `w` has been asked for should not wait for its clock: by any thread. */
void lvd_interrupt_knock(lvd_worker *w);
/* Somebody has knocked. In signal context. */
void lvd_interrupt_knocked(lvd_worker *w, const void *sp, const void *at);

/* ---- forced_exit.c ---------------------------------------------------------------------------- */

/* Who computes for longer than this while his application ends is left where he is. */
enum { LVD_STOP_MS = 200, LVD_END_TICKS = LVD_STOP_MS / LVD_TICK_MS };
/* A tick of the clock amid a fiber; it goes on in code of its own, or not, with its stack at `sp`; it sleeps in the
 * system. In signal context. */
void lvd_overdue_tick(lvd_worker *w);
void lvd_overdue_in_library(lvd_worker *w);
void lvd_overdue_asleep(lvd_worker *w);
/* For where a fiber forks, yields or sleeps, and all is whole, as where an actor's native fails: if it is one of a C
 * program that ends, has had its time for that and has not come to its end by itself, this does not return. */
LVD_COLD void lvd_leave_overdue(lvd_worker *w);
static inline void lvd_leave_if_overdue(lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (LVD_UNLIKELY(e && e->is_fiber && lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING))
    lvd_leave_overdue(w);
}

/* ---- watchdog.c --------------------------------------------------------------------------- */

lvd_status lvd_watchdog_start(lvd_runtime *rt);
void lvd_watchdog_end(lvd_runtime *rt);
/* The worker's thread, which calls, has begun; is awake again; is about to sleep with nothing to do, or to end. */
void lvd_watchdog_begin(lvd_worker *w);
void lvd_watchdog_awake(lvd_worker *w);
void lvd_watchdog_asleep(lvd_worker *w);
/* A keeper waits for what runs of `app`. If that is to end, and sleeps in the system, it is asked again. */
void lvd_watchdog_hurry(lvd_app *app);
/* Somebody waits for `app` to be still, and it runs on `w`. If it is a C program that is paused, and sleeps in the system,
 * it is met again at each look, until it is held. */
void lvd_watchdog_halt(lvd_worker *w, lvd_app *app);

/* ---- priority_worker.c, backup_worker.c ------------------------------------------------------------------- */

/* Starts a worker that is not there from the beginning, unless it runs; its thread has the core's name with this mark. */
lvd_status lvd_worker_begin(lvd_runtime *rt, uint32_t index, char mark);
/* The worker for what is urgent on the core of `worker`; starts it when it is first asked for. */
lvd_status lvd_urgent_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent);
/* A relief that can take what waits behind `w`; null: there is none. In a signal's handler. */
lvd_worker *lvd_relief(const lvd_worker *w);
/* `w` seems to be stuck: if so are all others, the relief of its core begins. */
void lvd_relief_needed(const lvd_worker *w);
/* `w` is a relief, and has `e` in hand: where that is to be when the core's own worker is back. */
void lvd_relief_goes_home(const lvd_worker *w, lvd_entity *e);

/* ---- steal_time.c ------------------------------------------------------------------------------- */

void lvd_lost_begin(lvd_worker *w);
/* Moves `since` on by what has been lost until `now`. Of the worker itself while nothing runs, of its clock while
 * something does. */
void lvd_lost_look(lvd_worker *w, uint64_t now);
/* What the activation that runs has lost since the last look, as others can see it; in ticks. It may be a part too much,
 * which is seen as time that it takes at the next look. */
uint64_t lvd_lost_meanwhile(const lvd_worker *w, uint64_t now);
/* What the one of this number has lost before; in ticks. */
uint64_t lvd_lost_before(const lvd_worker *w, uint64_t activation);
/* What was lost until `now` is no activation's. */
LVD_COLD void lvd_lost_forget(lvd_worker *w, uint64_t now);
/* The worker has rested, and had been awake for so long in its life: what it has waited meanwhile, in which it was
 * woken, too, is nobody's. */
static inline void lvd_lost_rested(lvd_worker *w, uint64_t awake, uint64_t now) {
  bool long_awake = now - lvd_slept(w) - awake > w->lost.least;
  if (LVD_UNLIKELY(long_awake || now - w->lost.known > w->lost.lasts)) lvd_lost_forget(w, now);
}
/* What the activation that ends at `end` took. */
static inline uint64_t lvd_took(lvd_worker *w, uint64_t end) {
  uint64_t took = end - lvd_load_relaxed_u64(&w->since);
  if (LVD_LIKELY(took <= w->lost.least)) return took;
  lvd_lost_look(w, end);
  return end - lvd_load_relaxed_u64(&w->since);
}

/* ---- channel.c ---------------------------------------------------------------------------- */

/* The smallest power of two of elements that holds the capacity in whole ring units; 0: too
 * large. */
uint32_t lvd_ring_slots(uint32_t capacity, uint32_t elem_size);

/* ---- app.c -------------------------------------------------------------------------------- */

void lvd_apps_free(lvd_runtime *rt);

/* ---- call.c ------------------------------------------------------------------------------- */

void lvd_calls_free(lvd_runtime *rt);
void lvd_units_free(lvd_app *app);
size_t lvd_units_why(lvd_app *app, char *text, size_t size); /* of those that have failed */

/* ---- fault.c ------------------------------------------------------------------------------ */

void lvd_trap(void *self, lvd_os_trap trap, const void *address, const void *at);
void lvd_fault_record(lvd_entity *e, lvd_fault_kind kind, uint32_t line, const char *message);
bool lvd_app_faulted(const lvd_app *app);

/* A function that reads words which their owner writes plainly at the same time, and to whom any of
 * their values will do: counters, and what somebody waits for. Words of a machine's width do not
 * tear; the thread sanitizer is told that we know. */
#if defined __SANITIZE_THREAD__ /* gcc: what moves into its caller is watched with that */
#define LVD_READS_LIVE __attribute__((no_sanitize("thread"), noipa))
#else
#define LVD_READS_LIVE __attribute__((no_sanitize("thread")))
#endif

/* One writer, many readers: a counter. */
static inline void lvd_count(lvd_a64 *c, uint64_t n) {
  lvd_store_relaxed_u64(c, lvd_load_relaxed_u64(c) + n);
}

#ifdef LVD_DEBUG
#include <stdlib.h>
#define lvd_assert(x) ((x) ? (void)0 : abort())
#else
#define lvd_assert(x) ((void)0)
#endif

/* ---- ready queues: the owner's ------------------------------------------------------------ */

static inline void lvd_queue_put_at(lvd_worker *w, lvd_entity *e, uint32_t place) {
  lvd_queue *q = &w->ready[place];
  lvd_assert(e->level < LVD_INBOX_LEVELS && lvd_load_relaxed_u32(&e->worker) == w->index);
  e->next = NULL;
  if (LVD_UNLIKELY(w->round_robin) && w->ready_places & (1u << place)) {
    lvd_queue_insert(q, e);
  } else {
    if (w->ready_places & (1u << place))
      q->last->next = e;
    else
      q->first = e;
    q->last = e;
  }
  w->ready_places |= 1u << place;
  /* Something more urgent than what runs: that should give way soon. */
  if (w->current && place >= lvd_load_relaxed_u32(&w->running_place))
    lvd_exchange_relaxed_u32(&w->yield, 1);
}

/* Where it waits for its turn; and after one. (That levels are below eight a compiler does not know.) */
static inline uint32_t lvd_place_after(const lvd_entity *e) {
  return LVD_OF_LEVEL * (e->level % LVD_INBOX_LEVELS);
}
static inline uint32_t lvd_place(const lvd_entity *e) {
  if (lvd_load_relaxed_u32(&e->app->promised)) return lvd_place_after(e) + LVD_PROMISED;
  return lvd_place_after(e) + (lvd_load_relaxed_u32(&e->little) ? LVD_LITTLE : LVD_USUAL);
}

/* One part in so many of a worker is little, and so is what `little_ticks` are of that. In round robin nobody goes before
 * others of his level for it, and of fibers it is not known. */
enum { LVD_PART = 16 };

/* Does it, as it becomes ready? Notes that, too, for lvd_place. */
static inline bool lvd_needs_little(const lvd_worker *w, lvd_entity *e) {
  uint64_t most = lvd_load_relaxed_u64(&w->since) + LVD_PART * w->little_ticks;
  bool little = e->app->share[w->index].had_until <= most && !e->is_fiber && !w->round_robin;
  if (little != lvd_load_relaxed_u32(&e->little)) lvd_store_relaxed_u32(&e->little, little);
  return little;
}

static inline void lvd_queue_put(lvd_worker *w, lvd_entity *e) {
  (void)lvd_needs_little(w, e);
  lvd_queue_put_at(w, e, lvd_place(e));
}

/* It has had a turn, and could go on. Who is promised a rate goes before others then, too: it is held as soon as it is
 * ahead, and else would wait for the firings of others after each turn, however long they last; and who needs little has
 * been asked for this turn's end. In round robin its round has ended. */
static inline void lvd_queue_put_after(lvd_worker *w, lvd_entity *e) {
  bool little = lvd_needs_little(w, e), promised = lvd_load_relaxed_u32(&e->app->promised);
  if (LVD_UNLIKELY(w->round_robin) || promised || little) {
    lvd_queue_put_at(w, e, lvd_place(e));
    return;
  }
  w->gave_way = true;
  lvd_queue_put_at(w, e, lvd_place_after(e));
}

static inline lvd_entity *lvd_queue_take_at(lvd_worker *w, uint32_t place) {
  lvd_queue *q = &w->ready[place];
  lvd_entity *e = q->first;
  q->first = e->next;
  if (!q->first) w->ready_places &= ~(1u << place);
  return e;
}

static inline uint32_t lvd_queue_top(const lvd_worker *w) {
  return 31u - (uint32_t)__builtin_clz(w->ready_places);
}

static inline lvd_entity *lvd_queue_take(lvd_worker *w) {
  return w->ready_places ? lvd_queue_take_at(w, lvd_queue_top(w)) : NULL;
}

#endif
