/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program: the state behind the paper's API, which its files share: one runtime, one application,
 * and one lock. A program that is loaded as an application (program_app.c) has its own state, with
 * the common runtime.
 *
 *   srpc.c               start-up and release; loaded processes
 *   srpc_tasks.c         procedures by name, and tasks
 *   srpc_remote_tasks.c  tasks that live in another process, or were created by one
 *   srpc_streams.c       streams by number
 *
 * The lock is taken before any of the runtime's own. */
#ifndef LVD_SRPC_SRPC_PROGRAM_H
#define LVD_SRPC_SRPC_PROGRAM_H

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
  /* Under the lock: */
  lvd_fiber *fiber; /* while it is started and not waited for */
  lvd_call *call;   /* the same, in another process */
  bool awaited;     /* a thread or fiber waits for it */
  bool waited;      /* pb_wait has returned since it was last started */
  lvd_fiber *self;  /* while it runs in this process */
  jmp_buf *end;     /* where pb_return jumps to */
  bool released;    /* pb_release was called: no longer valid */
  bool detached;    /* a transmitter: freed when it returns */
  bool revoked;     /* a transmitter that has nothing to do: the remote task could not be started */
  lvd_unit *unit;   /* process that it runs in; null: this one */
  lvd_unit *leads;  /* process that its streams lead to; null: the one loaded last */
  lvd_unit *maker;  /* process that created it; null: this one */
  uint32_t number;  /* its number there */
  lvd_event signal;
  struct srpc_task *next;
  char name[LVD_TASK_NAME_BYTES];
};

struct lvd_numbers; /* srpc_streams.c */
struct lvd_unasked; /* srpc_remote_tasks.c */

typedef struct lvd_program_state {
  const struct lvd_program *hosted; /* null: the process's own */
  lvd_a64 time_limit;               /* 1 + ns; 0: none */
  lvd_os_mutex lock;                /* protects all that follows */
  lvd_a64 stack;                    /* bytes, of a task; 0: the default */
  lvd_a32 booted;
  lvd_runtime *rt;
  lvd_app *app;
  char *why; /* text of the last pb_finish */
  lvd_misuses misuses;
  char misused[LVD_RECORD_INLINE_BYTES]; /* of an application: the first misuse; empty: none */
  TASKID tasks;
  TASKID released_first, released_last; /* oldest first: each stays recognisable for a while */
  uint32_t released_count;
  uint32_t next_worker;
  uint32_t next_number;        /* of a task in another process */
  struct lvd_unasked *unasked; /* requests that were given up before their answer */
  struct lvd_numbers *numbers;
  lvd_os_thread *watch; /* srpc_streams.c's thread; null: not needed so far */
  lvd_a32 watch_due;    /* 1: it is to look now; 2: it is to end */
  bool unwatched;       /* the program ends: it must not be started again */
  bool skipped;         /* it looks again when a side leaves, since it has skipped a stream */
  lvd_unit *unit[PB_PROCESSES]; /* loaded, in this order; they may have exited */
  uint32_t units;
} lvd_program_state;

extern lvd_program_state lvd_program_of_process;
extern lvd_a32 lvd_programs_hosted; /* number of programs that are applications */
lvd_program_state *lvd_program_of_app(void);

/* The program that the caller is part of. */
static inline lvd_program_state *lvd_program_here(void) {
  if (LVD_LIKELY(!lvd_load_relaxed_u32(&lvd_programs_hosted))) return &lvd_program_of_process;
  return lvd_program_of_app();
}

/* ---- srpc.c ---------------------------------------------------------------------------------- */

/* Gives `app` a program state for the paper's API, until it is unloaded. */
lvd_status lvd_program_adopt(lvd_app *app, const struct lvd_program *hosted);
/* Waits until all that it has started has returned. */
lvd_status lvd_program_settle(void);
/* Returns null, in place of a task, and sets pb_status. */
TASKID lvd_no_task(lvd_status status);
/* ns, for waits that have no timeout of their own; negative: none */
int64_t lvd_program_limit(void);
bool lvd_unit_lives(const lvd_unit *unit);
/* The running processes: those that were loaded, and the parent. The caller holds them: none is
 * unloaded until they are released. */
uint32_t lvd_program_others(lvd_unit *other[PB_PROCESSES + 1]);
void lvd_program_let_go(lvd_unit *const *other, uint32_t count);
bool lvd_program_has(const lvd_unit *unit); /* it is one of these, and runs; under the lock */
lvd_unit *lvd_program_other(int process);   /* one of them, held; null: no such process runs */
/* The one that was loaded last, or else the parent; null: none. Under the lock. */
lvd_unit *lvd_program_last_unit(void);

/* ---- srpc_tasks.c ---------------------------------------------------------------------------- */

/* The procedure of that name; null: none is registered. */
void (*lvd_task_procedure(const char *name))(void *);
/* Replaces `near` by the registered name nearest to `name`, if it is nearer. */
void lvd_task_closest_name(const char *name, char near[LVD_TASK_NAME_BYTES]);
void lvd_task_copy_name(char to[LVD_TASK_NAME_BYTES], const char *from);
/* Under the lock. Returns null if memory is short. */
TASKID lvd_task_enter(const char *name, void (*function)(void *), int prio);
void lvd_task_forget(TASKID *at); /* a place in the list; under the lock */
/* Calls the function, from the fiber that runs as `t`, until it returns or pb_return ends it. */
void lvd_task_call(TASKID t, void (*function)(void *));
void lvd_task_runs_as(TASKID t, lvd_fiber *self);
void lvd_tasks_free(lvd_program_state *p); /* nothing runs */

/* ---- srpc_remote_tasks.c --------------------------------------------------------------------- */

/* LVD_OK; LVD_E_NOT_FOUND: the process does not have that procedure, and `near` is replaced by its
 * nearest name, if that is nearer; LVD_E_PEER_GONE: it has exited. */
lvd_status lvd_remote_task_is_known(lvd_unit *unit, const char *name,
                                    char near[LVD_TASK_NAME_BYTES]);
TASKID lvd_remote_task_create(lvd_unit *unit, const char *name, int prio); /* the unit is held */
lvd_status lvd_remote_task_start(TASKID t);                                /* under the lock */
lvd_status lvd_remote_task_signal(TASKID t, uint32_t data);
void lvd_remote_task_release(TASKID t);
bool lvd_remote_task_is_used(const lvd_unit *unit); /* by tasks; under the lock */
void lvd_remote_task_forget(const lvd_unit *maker); /* the tasks that it created; under the lock */
void lvd_remote_task_collect(void);                 /* answers that came too late */
void lvd_remote_tasks_free(lvd_program_state *p);   /* all units are gone */

/* ---- srpc_streams.c -------------------------------------------------------------------------- */

void lvd_numbers_leave(void *owner);             /* a fiber or thread returns: closes its sides */
bool lvd_numbers_are_used(const lvd_unit *unit); /* under the lock */
void lvd_numbers_free(void);                     /* their streams are freed with the application */
/* Ends the thread that watches the streams: nothing waits at one any more. */
void lvd_numbers_watch_ends(lvd_program_state *p);
/* Reports streams that contain elements and have no receiver. */
void lvd_numbers_tell_unread(void);
/* A loaded process has opened a stream that is not open here. */
void lvd_numbers_look(lvd_link *link);
struct lvd_numbers *lvd_numbers_make(void); /* null: memory is short */
void lvd_numbers_drop(struct lvd_numbers *numbers);
extern struct lvd_numbers lvd_numbers_of_process;

#endif
