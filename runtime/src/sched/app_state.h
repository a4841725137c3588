/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The state of an application as the scheduler sees it: what runs, where, and whether anything
 * can still fire. The other fields belong to the folders that they name. */
#ifndef LVD_SCHED_APP_STATE_H
#define LVD_SCHED_APP_STATE_H

#include <levada/native.h>

#include "worker.h"

/* The state of an application on one worker; the worker's own. Arrivals and ended fibers are
 * subtracted from the application's counts when nothing of it is ready here, not each time. */
typedef struct lvd_app_worker_state {
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_app *app;
  uint32_t ready;   /* number of its entities here that are READY or RUNNING */
  uint32_t arrived; /* arrivals here that app->live still counts */
  uint32_t ended;   /* fibers ended here that app->fibers still counts */
  /* Ticks: its actors' usage is within the light share until then (ready_queue.h). */
  uint64_t had_until;
  lvd_a64 fiber_ticks; /* clock ticks in fibers of it ... */
  lvd_a64 end_ticks;   /* ... and those since the application began to end */
  uint64_t ends_since; /* ns, monotonic: when the first of end_ticks was counted; 0: none yet */
  lvd_a32 known;       /* 1: an entity of the application has been on this worker */
  lvd_a32 taking;      /* 1: `take_up` was posted and has not run */
  lvd_command take_up, forget; /* commands of app_control.c and app_reaper.c */
  bool counted;                /* app->live counts this worker */
  bool candidate;              /* it is on the worker's quiet list */
  struct lvd_app_worker_state *next;
} lvd_app_worker_state;

typedef struct lvd_app_block {
  const void *key;  /* null: left by the previous version and not claimed yet */
  const char *name; /* null: not persistent data */
  void *data;
  size_t size;
  void (*end)(void *, lvd_status);
  struct lvd_app_block *next;
} lvd_app_block;

/* An end of a channel held by the program: a wait point, and the handle. */
typedef struct lvd_external_end {
  lvd_wait_point wait_point;
  lvd_app *app;
  uint32_t channel, index;
  bool producer;
  bool end_notified; /* the other process knows that the program has ended it (deadlock/) */
  union {
    lvd_producer p;
    lvd_consumer c;
  } end;
} lvd_external_end;

/* The growth of one channel (app/channel_growth.c). */
typedef struct lvd_channel_growth {
  uint32_t loaded_capacity;    /* elements: its capacity at load */
  uint32_t described_capacity; /* that of its description (lvd_channel_desc.initial) */
  lvd_os_rings rings;          /* its present ring, if that is not the one of the load */
  size_t ring_bytes;           /* the size of that */
} lvd_channel_growth;

/* The last growth that was tried, for reports. */
typedef struct lvd_growth_refused {
  lvd_status status; /* LVD_OK: it was not refused */
  uint32_t channel, capacity;
  uint64_t bytes; /* of the application with it; 0: not computed */
} lvd_growth_refused;

/* Which entities are paused: all; sources, which then end; or sources, which continue later. */
enum lvd_pause_kind { LVD_PAUSE_ALL = 1, LVD_PAUSE_SOURCES = 2, LVD_PAUSE_RESTING_SOURCES = 4 };

/* Whether a C program is asked to exit. The request can be withdrawn until the program has read
 * it. */
enum lvd_leaving { LVD_STAYS, LVD_ASKED, LVD_TOLD };

enum lvd_app_phase { LVD_PHASE_LOADED, LVD_PHASE_RUNNING, LVD_PHASE_ENDING, LVD_PHASE_ENDED };

struct lvd_app {
  lvd_runtime *rt;
  const lvd_network *net;
  char *name;
  lvd_app *next, *previous; /* in the runtime's list; under rt->lock */
  uint64_t serial;          /* from 1; unique in its runtime */
  lvd_entity *entity;       /* array of net->actors */
  lvd_channel **channel;    /* array of net->channels */
  lvd_external_end *external_end;
  uint32_t external_ends;
  lvd_app_worker_state *share; /* array, one per worker */
  /* 1: a rate is reserved: its actors go before others of their level */
  lvd_a32 rate_reserved;
  lvd_option *option;
  uint32_t options;
  /* Reference count: workers on which something of it is ready, and wake-ups in transit. 0:
   * nothing can fire. As with other reference counts only decrements have an order: the last one
   * sees all that was done before. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 live;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 fibers; /* number of its fibers */
  /* Pending calls of its actors (blocking_pool.c, actor_timer.c). */
  lvd_a32 calls_out;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 phase;
  lvd_a32 paused;         /* copy of `holds`, for workers */
  lvd_a32 outcome;        /* 1 + an lvd_status; 0: not asked to end */
  lvd_a32 inside;         /* number of threads in waits for its streams (thread_waiters.h) */
  lvd_a32 stopped;        /* 1: a network that was asked to end at once */
  lvd_a32 ends_at_rest;   /* set by lvd_app_set_quiescent_ok */
  lvd_a32 suspect;        /* 1: quiescent, and its fibers may be deadlocked: the reaper checks */
  lvd_a32 check_deferred; /* 1: found quiescent where it could not be checked: the reaper checks */
  lvd_a32 open;           /* fibers may be started from outside, so quiescence is not the end */
  bool finishing;         /* a reaper handles it; under rt->lock */
  lvd_os_mutex control;   /* one pause, resume or drain at a time */
  uint32_t holds;         /* set of lvd_pause_kind; under control */
  lvd_os_mutex blocks_lock;
  lvd_app_block *blocks;
  /* The application that gets its persistent data at a successful end; under blocks_lock. */
  lvd_aptr data_successor;
  lvd_a32 inherits; /* it is the data successor of another application */
  lvd_a32 leaving;  /* of enum lvd_leaving, for a C program */
  struct stream *streams;
  struct lvd_unit *units;
  /* Of a program with the srpc interface that is loaded next to others. */
  struct lvd_program_state *program;
  uintptr_t code_from, code_to; /* address range of the program's own instructions */
  lvd_aptr story;               /* wait report of the fibers that were ended by a deadlock; owned */
  lvd_a32 faulted;              /* 1: `fault` is being filled; 2: it is complete */
  lvd_fault fault;
  /* ns, monotonic: its output up to now is within its output rate until then
   * (lvd_app_throttle_output) */
  lvd_a64 prints_until;
  lvd_a64 progress;
  lvd_aptr progress_unit;
  lvd_a64 input_done_bytes, input_total_bytes; /* set by lvd_app_input_progress */
  /* Growth of channels: under the gate, except the constants and `bytes`. */
  lvd_channel_growth *growth; /* array of net->channels */
  bool fixed_buffers;         /* constant */
  uint64_t bytes_max;         /* constant: bytes to which it may grow */
  lvd_a64 bytes;              /* of state and rings */
  lvd_growth_refused refused;
  /* Resources to be freed. */
  lvd_os_rings rings;
  void *memory;
  size_t memory_size;
  struct lvd_inherited_strings
      *texts; /* strings inherited from the previous version (state_transfer.c) */
  /* Serialises wake-ups from outside, quiescence checks, start and end. It is the last field
   * because it outlives the others: a late waker may still hold it when the structure is reused
   * for another application (app.c). */
  lvd_os_mutex gate;
};

/* Flag of the class of a C program's main actor (program_app.c). */
enum { LVD_CLASS_C_PROGRAM = 1 << 30 };
static inline bool lvd_app_is_program(const lvd_app *app) {
  return app->net->actors && app->net->actor[0].cls->flags & LVD_CLASS_C_PROGRAM;
}

#endif
