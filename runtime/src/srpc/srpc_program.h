/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program: what the paper's names make of a process, and what the files that do it share: one runtime,
 * one application, and one lock. A program that is loaded into a runtime beside others (program_app.c) has
 * all of this for itself: its runtime is that one.
 *
 *   srpc.c              start-up and release; the processes that are loaded
 *   srpc_tasks.c             procedures by name, and tasks
 *   srpc_remote_tasks.c      tasks that live in another process, or were made by one
 *   srpc_streams.c  streams by their numbers
 *
 * The lock is taken before any of the runtime's own. */
#ifndef LVD_SRC_PROGRAM_H
#define LVD_SRC_PROGRAM_H

#include <levada/process.h>
#include <levada/srpc.h>
#include <setjmp.h>

#include "../ipc/link.h"
#include "../ipc/task_message.h"
#include "../rpc/unit.h"
#include "../stream/stream.h"
#include "srpc_misuse.h"

struct srpc_task {
  void (*function)(void *);
  int prio;
  uint32_t worker;
  /* With the lock: */
  lvd_fiber *fiber; /* while it has been started and not waited for */
  lvd_call *call;   /* ... in another process */
  bool awaited;     /* somebody waits for it */
  lvd_fiber *self;  /* while it runs here ... */
  jmp_buf *end;     /* ... where pb_return goes to */
  bool released;    /* it is nobody's any more */
  bool detached;    /* of a transmitter: it goes by itself ... */
  bool revoked;     /* ... and has nothing to do: the remote one could not be started */
  lvd_unit *unit;   /* the process it lives in; null: this one */
  lvd_unit *leads;  /* the process that its streams lead to; null: the one loaded last */
  lvd_unit *maker;  /* the process that made it; null: this one */
  uint32_t number;  /* ... and how it calls it */
  lvd_event signal;
  struct srpc_task *next;
  char name[LVD_TASK_NAME];
};

struct lvd_numbers; /* srpc_streams.c */
struct lvd_unasked; /* srpc_remote_tasks.c */

typedef struct lvd_program_state {
  const struct lvd_program *hosted; /* null: it is the process's own */
  lvd_a64 time_limit;               /* 1 + ns; 0: none */
  lvd_os_mutex lock;                /* of all that follows */
  lvd_a64 stack;                    /* bytes, of a task; 0: as usual */
  lvd_a32 booted;
  lvd_runtime *rt;
  lvd_app *app;
  char *why; /* of the last pb_finish */
  lvd_misuses misuses;
  char misused[LVD_RECORD_INLINE]; /* a hosted one's: the first misuse; empty: there was none */
  TASKID tasks;
  TASKID released_first, released_last; /* the first first: each stays what it is for a while */
  uint32_t released_count;
  uint32_t next_worker;
  uint32_t next_number;        /* of a task in another process */
  struct lvd_unasked *unasked; /* questions whose answers nobody waits for */
  struct lvd_numbers *numbers;
  lvd_os_thread *watch;         /* srpc_streams.c's; null: nothing has needed it */
  lvd_a32 watch_due;            /* it is to look now; 2: it is to end */
  bool unwatched;               /* the program ends: it is not to begin again */
  bool skipped;                 /* it looks again when a side leaves: it has skipped a stream */
  lvd_unit *unit[PB_PROCESSES]; /* that are loaded, the last one last; they may be gone */
  uint32_t units;
} lvd_program_state;

extern lvd_program_state lvd_program_of_process;
extern lvd_a32 lvd_programs_hosted; /* how many there are */
lvd_program_state *lvd_program_of_app(void);

/* The program that the caller is part of. */
static inline lvd_program_state *lvd_program_here(void) {
  if (LVD_LIKELY(!lvd_load_relaxed_u32(&lvd_programs_hosted))) return &lvd_program_of_process;
  return lvd_program_of_app();
}

/* ---- srpc.c --------------------------------------------------------------------------------- */

/* The paper's names stand for this program in `app`, until it is unloaded. */
lvd_status lvd_program_adopt(lvd_app *app, const struct lvd_program *hosted);
/* Waits until all that it has started has returned. */
lvd_status lvd_program_settle(void);
/* What is returned in place of a task: null, and pb_status says why. */
TASKID lvd_no_task(lvd_status why);
int64_t lvd_program_limit(void); /* of the waits that have none of their own */
bool lvd_unit_lives(const lvd_unit *unit);
/* The processes that live: those that were loaded, and the one that has loaded this. The caller holds
 * them: none is unloaded before it has let go. */
uint32_t lvd_program_others(lvd_unit *other[PB_PROCESSES + 1]);
void lvd_program_let_go(lvd_unit *const *other, uint32_t count);
bool lvd_program_has(const lvd_unit *unit); /* is it one of these, and lives? With the lock. */
lvd_unit *lvd_program_other(int process);   /* one, held; null: it is none that lives */
/* The one that was loaded last, or else has loaded this; null: there is none. With the lock. */
lvd_unit *lvd_program_last_unit(void);

/* ---- srpc_tasks.c -------------------------------------------------------------------------------- */

/* The procedure of that name; null: nobody has registered it. */
void (*lvd_task_procedure(const char *name))(void *);
/* The registered name nearest to it, if it is nearer than `near` is. */
void lvd_task_closest_name(const char *name, char near[LVD_TASK_NAME]);
void lvd_task_copy_name(char to[LVD_TASK_NAME], const char *from);
/* With the lock. Null: no memory. */
TASKID lvd_task_enter(const char *name, void (*function)(void *), int prio);
void lvd_task_forget(TASKID *at); /* a place in the list; with the lock */
/* Calls the function, by the fiber that runs as `t`: until it returns, or pb_return ends it. */
void lvd_task_call(TASKID t, void (*function)(void *));
void lvd_task_runs_as(TASKID t, lvd_fiber *self);
void lvd_tasks_free(lvd_program_state *p); /* nothing runs */

/* ---- srpc_remote_tasks.c ------------------------------------------------------------------------- */

/* LVD_OK; LVD_E_UNKNOWN: it does not know that procedure, and `near` is the nearest name there, if that is
 * nearer than what it was; LVD_E_PEER: it is no more. */
lvd_status lvd_remote_knows(lvd_unit *unit, const char *name, char near[LVD_TASK_NAME]);
TASKID lvd_remote_create(lvd_unit *unit, const char *name, int prio); /* the unit is held */
lvd_status lvd_remote_start(TASKID t);                                /* with the lock */
lvd_status lvd_remote_signal(TASKID t, uint32_t data);
void lvd_remote_release(TASKID t);
bool lvd_remote_is_used(const lvd_unit *unit); /* by tasks; with the lock */
void lvd_remote_forget(const lvd_unit *maker); /* tasks that it made; with the lock */
void lvd_remote_collect(void);                 /* answers that came too late */
void lvd_remote_free(lvd_program_state *p);    /* all units are gone */

/* ---- srpc_streams.c --------------------------------------------------------------------- */

void lvd_numbers_leave(void *who);               /* a fiber or thread returns: its sides are over */
bool lvd_numbers_are_used(const lvd_unit *unit); /* with the lock */
void lvd_numbers_free(void); /* their streams go with the application: nobody finds them any more */
/* Nothing waits at a stream any more. */
void lvd_numbers_watch_ends(lvd_program_state *p);
/* Streams into which something was put that has no receiver. */
void lvd_numbers_tell_unread(void);
/* A process that was loaded has opened a stream that is not open here. */
void lvd_numbers_look(lvd_link *link);
struct lvd_numbers *lvd_numbers_make(void); /* null: no memory */
void lvd_numbers_drop(struct lvd_numbers *numbers);
extern struct lvd_numbers lvd_numbers_of_process;

#endif
