/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program: what the paper's names make of a process, and what the files that do it share: one runtime,
 * one application, and one lock.
 *
 *   srpc.c              start-up and release; the processes that are loaded
 *   tasks.c             procedures by name, and tasks
 *   remote_tasks.c      tasks that live in another process, or were made by one
 *   numbered_streams.c  streams by their numbers
 *
 * The lock is taken before any of the runtime's own. */
#ifndef LVD_SRC_PROGRAM_H
#define LVD_SRC_PROGRAM_H

#include <levada/process.h>
#include <levada/srpc.h>
#include <setjmp.h>

#include "message.h"
#include "stream.h"
#include "unit.h"

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

typedef struct lvd_program_state {
  lvd_port_mutex lock; /* of all that follows, and of what each file has besides */
  lvd_a32 booted;
  lvd_runtime *rt;
  lvd_app *app;
  TASKID tasks;
  lvd_unit *unit[PB_PROCESSES]; /* that are loaded, the last one last; they may be gone */
  uint32_t units;
} lvd_program_state;
extern lvd_program_state lvd_program;

/* ---- srpc.c --------------------------------------------------------------------------------- */

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

/* ---- tasks.c -------------------------------------------------------------------------------- */

/* The procedure of that name; null: nobody has registered it. */
void (*lvd_task_procedure(const char *name))(void *);
void lvd_task_copy_name(char to[LVD_TASK_NAME], const char *from);
/* With the lock. Null: no memory. */
TASKID lvd_task_enter(const char *name, void (*function)(void *), int prio);
void lvd_task_forget(TASKID *at); /* a place in the list; with the lock */
/* Calls the function, by the fiber that runs as `t`: until it returns, or pb_return ends it. */
void lvd_task_call(TASKID t, void (*function)(void *));
void lvd_task_runs_as(TASKID t, lvd_fiber *self);
void lvd_tasks_free(void); /* nothing runs */

/* ---- remote_tasks.c ------------------------------------------------------------------------- */

/* LVD_OK; LVD_E_UNKNOWN: it does not know that procedure; LVD_E_PEER: it is no more. */
lvd_status lvd_remote_knows(lvd_unit *unit, const char *name);
TASKID lvd_remote_create(lvd_unit *unit, const char *name, int prio); /* the unit is held */
lvd_status lvd_remote_start(TASKID t);                                /* with the lock */
lvd_status lvd_remote_signal(TASKID t, uint32_t data);
void lvd_remote_release(TASKID t);
bool lvd_remote_is_used(const lvd_unit *unit); /* by tasks; with the lock */
void lvd_remote_forget(const lvd_unit *maker); /* tasks that it made; with the lock */
void lvd_remote_collect(void);                 /* answers that came too late */
void lvd_remote_free(void);                    /* all units are gone */

/* ---- numbered_streams.c --------------------------------------------------------------------- */

void lvd_numbers_leave(void *who);               /* a fiber or thread returns: its sides are over */
bool lvd_numbers_are_used(const lvd_unit *unit); /* with the lock */
void lvd_numbers_free(void); /* their streams go with the application: nobody finds them any more */

#endif
