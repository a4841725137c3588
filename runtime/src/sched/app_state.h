/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Applications, as far as workers know them: what runs, where, and whether anything can still fire. The rest of the
 * structure belongs to the folders that the fields name. */
#ifndef LVD_SCHED_APP_STATE_H
#define LVD_SCHED_APP_STATE_H

#include <levada/native.h>

#include "worker.h"

/* What a worker knows of an application; the worker's own. What has come or ended here is taken
 * from the application's counts when it is at rest here, and not each time. */
typedef struct lvd_app_worker_state {
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
  struct lvd_app_worker_state *next;
} lvd_app_worker_state;

typedef struct lvd_app_block {
  const void *key;  /* null: the version before this one has left it, and nobody has asked for it */
  const char *name; /* null: it is no heirloom */
  void *data;
  size_t size;
  void (*end)(void *, lvd_status);
  struct lvd_app_block *next;
} lvd_app_block;

/* An end of a channel that the program holds: a sleeper, and the handle. */
typedef struct lvd_external_end {
  lvd_sleeper sleeper;
  lvd_app *app;
  uint32_t channel, index;
  bool producer;
  bool told; /* that the program has ended it is known at the other end (judge) */
  union {
    lvd_producer p;
    lvd_consumer c;
  } end;
} lvd_external_end;

/* What holds entities up: all of them; those without inputs, which have come to their end; or these, which
 * go on later. */
enum lvd_pause_kind { LVD_PAUSE_ALL = 1, LVD_PAUSE_SOURCES = 2, LVD_PAUSE_RESTING_SOURCES = 4 };

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
  lvd_external_end *outside;
  uint32_t outsides;
  lvd_app_worker_state *share; /* one for each worker */
  lvd_a32 promised;            /* a rate: it goes before others of its level */
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
  uint32_t holds;       /* of lvd_pause_kind; under control */
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
  struct lvd_inherited_strings
      *texts; /* strings that came from the version before it (state_transfer.c) */
  /* Who wakes an entity from outside, who judges whether all is at rest, and who starts and ends
   * it: one at a time. Last, since it lives on when the rest is another application's: a late waker
   * may still hold it (app.c). */
  lvd_os_mutex gate;
};

/* A C program: the flag of the class of its main (program_app.c). */
enum { LVD_CLASS_C_PROGRAM = 1 << 30 };
static inline bool lvd_app_is_program(const lvd_app *app) {
  return app->net->actors && app->net->actor[0].cls->flags & LVD_CLASS_C_PROGRAM;
}

#endif
