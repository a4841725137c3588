/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tasks of the paper's API: procedures with a name, run as fibers of the one application, any
 * number of times. A task may live in another process; then it is started, signalled and released
 * there (srpc_remote_tasks.c), and all else is the same. */
#include <stdio.h>
#include <stdlib.h>

#include "../../platform/process.h"
#include "../core/closest_name.h"
#include "../sched/no_abandon.h"
#include "srpc_program.h"

typedef struct registered {
  char name[LVD_TASK_NAME_BYTES];
  const struct lvd_program *program; /* null: the process's own */
  void (*function)(void *);
  struct registered *next;
} registered;

enum { RELEASED_MAX = 256 /* released tasks that are kept */ };

/* Common to all programs. */
static lvd_os_mutex procedures_lock;
static registered *procedures; /* under that lock */

/* ---- procedures ------------------------------------------------------------------------------ */

/* Under the lock. */
static const registered *find(const char *name, const struct lvd_program *program) {
  const registered *r = procedures;
  while (r && (r->program != program || strcmp(r->name, name) != 0)) r = r->next;
  return r;
}

lvd_status pb_register(const char *name, void *function) {
  LVD_NO_ABANDON;
  if (!name || !function)
    return lvd_misuse(LVD_E_ARGUMENT, "pb_register: a procedure has a name and a function");
  if (strlen(name) >= sizeof((registered *)0)->name)
    return lvd_misuse(LVD_E_ARGUMENT, "pb_register(\"%.80s...\"): a name has at most 63 bytes",
                      name);
  registered *r = calloc(1, sizeof *r);
  if (!r) return LVD_E_MEMORY;
  memcpy(r->name, name, strlen(name));
  memcpy(&r->function, &function, sizeof function);
  r->program = lvd_hooks.programs.registering();
  lvd_os_lock(&procedures_lock);
  const registered *has_it = find(name, r->program);
  if (!has_it) {
    r->next = procedures;
    procedures = r;
  }
  lvd_os_unlock(&procedures_lock);
  if (!has_it) return LVD_OK;
  bool same = has_it->function == r->function;
  free(r);
  return same
             ? LVD_OK
             : lvd_misuse(LVD_E_STATE, "pb_register(\"%s\"): another function has this name", name);
}

/* Procedures of a library that several programs share are found by all of them. */
void (*lvd_task_procedure(const char *name))(void *) {
  const struct lvd_program *program = lvd_program_here()->hosted;
  lvd_os_lock(&procedures_lock);
  const registered *r = find(name, program);
  if (!r && program) r = find(name, NULL);
  void (*function)(void *) = r ? r->function : NULL;
  lvd_os_unlock(&procedures_lock);
  return function;
}

void lvd_task_closest_name(const char *name, char near[LVD_TASK_NAME_BYTES]) {
  const struct lvd_program *program = lvd_program_here()->hosted;
  lvd_os_lock(&procedures_lock);
  for (const registered *r = procedures; r; r = r->next)
    if (!r->program || r->program == program) lvd_closest_name(near, name, r->name);
  lvd_os_unlock(&procedures_lock);
}

void lvd_procedures_forget(const struct lvd_program *hosted) {
  lvd_os_lock(&procedures_lock);
  for (registered **at = &procedures, *r; (r = *at);) {
    if (r->program != hosted) {
      at = &r->next;
      continue;
    }
    *at = r->next;
    free(r);
  }
  lvd_os_unlock(&procedures_lock);
}

/* ---- the list of tasks ----------------------------------------------------------------------- */

void lvd_task_copy_name(char to[LVD_TASK_NAME_BYTES], const char *from) {
  snprintf(to, LVD_TASK_NAME_BYTES, "%s", from);
}

/* Released tasks stay recognisable for a while, so that a use after release is reported rather than
 * applied to another task. Under the lock. */
static TASKID take_memory(void) {
  if (lvd_program_here()->released_count < RELEASED_MAX) return calloc(1, sizeof(struct srpc_task));
  TASKID t = lvd_program_here()->released_first;
  lvd_program_here()->released_first = t->next;
  lvd_program_here()->released_count--;
  memset(t, 0, sizeof *t);
  return t;
}

static void put_released(TASKID t) {
  t->released = true;
  t->next = NULL;
  if (lvd_program_here()->released_count++)
    lvd_program_here()->released_last->next = t;
  else
    lvd_program_here()->released_first = t;
  lvd_program_here()->released_last = t;
}

TASKID lvd_task_enter(const char *name, void (*function)(void *), int prio) {
  TASKID t = take_memory();
  if (!t) return NULL;
  t->function = function;
  t->prio = prio;
  lvd_task_copy_name(t->name, name);
  lvd_event_init(&t->signal);
  t->next = lvd_program_here()->tasks;
  lvd_program_here()->tasks = t;
  return t;
}

static TASKID new_task(const char *name, void (*function)(void *), int prio, uint32_t worker) {
  lvd_os_lock(&lvd_program_here()->lock);
  TASKID t = lvd_task_enter(name, function, prio);
  if (t) t->worker = worker;
  lvd_os_unlock(&lvd_program_here()->lock);
  return t ? t : lvd_no_task(LVD_E_MEMORY);
}

void lvd_task_forget(TASKID *at) {
  TASKID t = *at;
  *at = t->next;
  put_released(t);
}

/* Under the lock. */
static void forget(TASKID t) {
  TASKID *at = &lvd_program_here()->tasks;
  while (*at != t) at = &(*at)->next;
  lvd_task_forget(at);
}

static void drop_task(TASKID t) {
  lvd_os_lock(&lvd_program_here()->lock);
  forget(t);
  lvd_os_unlock(&lvd_program_here()->lock);
}

void lvd_task_runs_as(TASKID t, lvd_fiber *self) {
  LVD_NO_ABANDON;
  lvd_os_lock(&lvd_program_here()->lock);
  t->self = self;
  lvd_os_unlock(&lvd_program_here()->lock);
}

/* The task that the calling fiber runs as; null: none. It is valid while that runs. */
static TASKID task_of_caller(void) {
  const lvd_fiber *f = lvd_fiber_self();
  if (!f) return NULL;
  lvd_os_lock(&lvd_program_here()->lock);
  TASKID t = lvd_program_here()->tasks;
  while (t && t->self != f) t = t->next;
  lvd_os_unlock(&lvd_program_here()->lock);
  return t;
}

static void free_all(TASKID first) {
  for (TASKID t = first, next; t; t = next) {
    next = t->next;
    free(t);
  }
}

void lvd_tasks_free(lvd_program_state *p) {
  free_all(p->tasks);
  if (p->released_count) free_all(p->released_first);
  p->tasks = NULL;
  p->released_count = 0;
}

/* ---- creating -------------------------------------------------------------------------------- */

/* The caller's core; for a thread that is no worker, the first. */
static uint32_t worker_here(void) {
  const lvd_worker *w = lvd_this_worker();
  return w ? w->index % lvd_worker_count(lvd_program_here()->rt) : 0;
}

/* The cores in turn (round robin). */
static uint32_t worker_in_turn(void) {
  lvd_os_lock(&lvd_program_here()->lock);
  uint32_t next = lvd_program_here()->next_worker++;
  lvd_os_unlock(&lvd_program_here()->lock);
  return (1 + next) % lvd_worker_count(lvd_program_here()->rt);
}

/* The same, except `one`, if there is another. */
static uint32_t worker_other_than(uint32_t one) {
  uint32_t worker = worker_in_turn();
  return worker == one ? worker_in_turn() : worker;
}

static bool is_name(const char *name) { return name && strlen(name) < LVD_TASK_NAME_BYTES; }

/* `call`: the text of the call up to the name. */
static TASKID no_such_name(const char *call, const char *name) {
  if (name)
    lvd_misuse(LVD_E_ARGUMENT, "%s\"%.80s...\"): a name has at most 63 bytes", call, name);
  else
    lvd_misuse(LVD_E_ARGUMENT, "%sNULL): a task needs the name of a procedure", call);
  return NULL;
}

static TASKID unknown(const char *call, const char *name, const char *near) {
  if (*near)
    lvd_misuse(LVD_E_NOT_FOUND, "%s\"%s\"): no procedure has this name; did you mean \"%s\"?", call,
               name, near);
  else if (lvd_procedure_find(name))
    lvd_misuse(LVD_E_NOT_FOUND,
               "%s\"%s\"): no procedure has this name; LVD_PROCEDURE(%s) registers one for "
               "lvd_call_start, PB_PROCEDURE(%s) for pb_create",
               call, name, name, name);
  else
    lvd_misuse(
        LVD_E_NOT_FOUND,
        "%s\"%s\"): no procedure has this name; PB_PROCEDURE(%s) at file scope registers one", call,
        name, name);
  return NULL;
}

/* `near`: the nearest name elsewhere. */
static TASKID new_task_here(const char *call, const char *name, int prio,
                            char near[LVD_TASK_NAME_BYTES]) {
  void (*function)(void *) = lvd_task_procedure(name);
  if (function) return new_task(name, function, prio, worker_in_turn());
  lvd_task_closest_name(name, near);
  return unknown(call, name, near);
}

/* Which of the other processes have a procedure. */
typedef struct known {
  lvd_unit *by, *by_another;      /* null: none */
  bool gone;                      /* one has exited before it answered */
  char near[LVD_TASK_NAME_BYTES]; /* the nearest name of them; empty: none */
} known;

static lvd_status ask_all(const char *name, lvd_unit *const *other, uint32_t count, known *k) {
  *k = (known){0};
  for (uint32_t i = 0; i < count; i++) {
    lvd_status status = lvd_remote_task_is_known(other[i], name, k->near);
    k->gone |= status == LVD_E_PEER_GONE;
    if (status == LVD_E_NOT_FOUND || status == LVD_E_PEER_GONE) continue;
    if (status != LVD_OK) return status;
    if (k->by) k->by_another = other[i];
    if (k->by) return LVD_E_STATE; /* ambiguous */
    k->by = other[i];
  }
  return k->gone && !k->by ? LVD_E_PEER_GONE : LVD_OK;
}

/* A missing answer is no misuse. */
static TASKID not_known(const char *call, const char *name, lvd_status status, const known *k) {
  if (status == LVD_E_STATE)
    lvd_misuse(status, "%s\"%s\"): %s and %s have it; pb_create_in says which is meant", call, name,
               lvd_unit_name(k->by), lvd_unit_name(k->by_another));
  else if (status == LVD_E_PEER_GONE)
    lvd_misuse(status, "%s\"%s\"): a process has ended before it said whether it has it", call,
               name);
  return lvd_no_task(status);
}

TASKID pb_create(const char *p_task, int prio) {
  LVD_NO_ABANDON;
  static const char call[] = "pb_create(";
  if (!is_name(p_task)) return no_such_name(call, p_task);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return lvd_no_task(status);
  lvd_unit *other[PB_PROCESSES + 1];
  known k;
  uint32_t n = lvd_program_others(other);
  status = ask_all(p_task, other, n, &k);
  bool here = status == LVD_OK || (status == LVD_E_PEER_GONE && lvd_task_procedure(p_task));
  TASKID t = status == LVD_OK && k.by ? lvd_remote_task_create(k.by, p_task, prio)
             : here                   ? new_task_here(call, p_task, prio, k.near)
                                      : not_known(call, p_task, status, &k);
  lvd_program_let_go(other, n);
  return t;
}

TASKID pb_create_in(int process, const char *p_task, int prio) {
  LVD_NO_ABANDON;
  char call[32], near[LVD_TASK_NAME_BYTES] = "";
  snprintf(call, sizeof call, "pb_create_in(%d, ", process);
  if (!is_name(p_task)) return no_such_name(call, p_task);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return lvd_no_task(status);
  if (process == 0 || process == lvd_os_process_self())
    return new_task_here(call, p_task, prio, near);
  lvd_unit *unit = lvd_program_other(process);
  if (!unit) {
    lvd_misuse(LVD_E_PEER_GONE, "%s\"%s\"): no process of this number is loaded", call, p_task);
    return NULL;
  }
  status = lvd_remote_task_is_known(unit, p_task, near);
  TASKID t = status == LVD_OK            ? lvd_remote_task_create(unit, p_task, prio)
             : status == LVD_E_NOT_FOUND ? unknown(call, p_task, near)
                                         : lvd_no_task(status);
  lvd_program_let_go(&unit, 1);
  return t;
}

lvd_status pb_stack_size(size_t bytes) {
  if (!lvd_fiber_stack(bytes))
    return lvd_misuse(LVD_E_ARGUMENT, "pb_stack_size(%zu): a stack has at most 8 MiB", bytes);
  lvd_store_relaxed_u64(&lvd_program_here()->stack, bytes);
  return LVD_OK;
}

/* ---- running --------------------------------------------------------------------------------- */

void lvd_task_call(TASKID t, void (*function)(void *)) {
  jmp_buf end;
  t->end = &end;
  if (!_setjmp(end)) function(NULL);
}

/* Called by a thread that is no procedure, it is no misuse: programs as printed in the paper do so
 * (srpc.h). */
lvd_status pb_return(void) {
  LVD_NO_ABANDON;
  const lvd_worker *w = lvd_this_worker();
  TASKID t = task_of_caller();
  if (!t) return LVD_E_STATE;
  if (lvd_forks.head != w->fork_base)
    return lvd_misuse(LVD_E_STATE, "pb_return() in %s: it has forks that are not joined", t->name);
  _longjmp(*t->end, 1);
}

static void run_task(void *argument) {
  TASKID t = argument;
  lvd_fiber *self = lvd_fiber_self();
  lvd_os_lock(&lvd_program_here()->lock);
  bool runs = !t->revoked;
  if (runs) t->self = self;
  self->started_as = LVD_STARTED_AS_TASK;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (runs) {
    lvd_task_call(t, t->function);
    lvd_numbers_leave(self);
    lvd_task_runs_as(t, NULL);
  }
  if (t->detached) drop_task(t);
}

/* Under the lock: neither way of starting waits. */
static lvd_status start(TASKID t) {
  if (t->released || t->fiber || t->call) return LVD_E_STATE;
  if (t->unit) return lvd_remote_task_start(t);
  lvd_fiber_options o = {.name = t->name,
                         .priority = t->prio,
                         .place = LVD_WORKER(t->worker),
                         .stack = (size_t)lvd_load_relaxed_u64(&lvd_program_here()->stack)};
  return lvd_fiber_start(lvd_program_here()->app, run_task, t, &o, t->detached ? NULL : &t->fiber);
}

/* Null is the result of a failed pb_create: if that was reported, this follows from it. */
static lvd_status no_task(const char *call) {
  if (!lvd_misused())
    return lvd_misuse(LVD_E_ARGUMENT, "%s(NULL): there is no task; its pb_create has failed", call);
  lvd_no_task(LVD_E_ARGUMENT);
  return LVD_E_ARGUMENT;
}

static lvd_status misused_task(const char *call, const TASKID t, const char *why) {
  char in[LVD_MISUSE_IN_BYTES];
  return lvd_misuse(LVD_E_STATE, "%s of the task %s%s: %s", call, t->name, lvd_misuse_in(in), why);
}

/* Reports a deadlock: what could have resumed the wait waits for the caller. */
static lvd_status deadlocked(const char *call, const TASKID t, lvd_status status) {
  char in[LVD_MISUSE_IN_BYTES];
  if (status != LVD_E_DEADLOCK) return status;
  return lvd_misuse(status, "%s of the task %s%s: a deadlock, in which each waits for another",
                    call, t->name, lvd_misuse_in(in));
}

static const char was_released[] = "it was released before",
                  was_waited_for[] =
                      "it was waited for before; pb_rpc or stream_rpc starts it again",
                  was_not_started[] = "it was not started: pb_rpc or stream_rpc comes first",
                  runs_already[] = "it runs already; pb_wait waits for its end";

lvd_status pb_rpc(TASKID t) {
  LVD_NO_ABANDON;
  if (!t) return no_task("pb_rpc");
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_status status = start(t);
  bool released = t->released;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (status != LVD_E_STATE) return status;
  return misused_task("pb_rpc", t, released ? was_released : runs_already);
}

/* Waits, and then takes the result under the lock: the wait may end for another reason, and a
 * thread that cancels the task must not meet a fiber or call that is reused by then. */
static lvd_status wait_for(const char *name, TASKID t, int64_t timeout_ns) {
  if (!t) return no_task(name);
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_fiber *fiber = t->fiber;
  lvd_call *call = t->call;
  const char *why = t->released       ? was_released
                    : !call && !fiber ? (t->waited ? was_waited_for : was_not_started)
                    : fiber && fiber == lvd_fiber_self() ? "it would wait for itself"
                    : t->awaited                         ? "another one waits for it already"
                                                         : NULL;
  t->awaited |= !why;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (why) return misused_task(name, t, why);
  uint32_t which;
  lvd_status status;
  if (call) {
    status = lvd_call_wait_any(&call, 1, timeout_ns, &which);
  } else {
    const lvd_wait_item end = {.event = &fiber->done};
    status = lvd_wait_any(&end, 1, timeout_ns, &which);
  }
  lvd_os_lock(&lvd_program_here()->lock);
  t->awaited = false;
  if (status == LVD_OK) {
    status = call ? lvd_call_wait(call, NULL, NULL, 0, NULL) : lvd_fiber_join(fiber, 0);
    t->fiber = NULL;
    t->call = NULL;
    t->waited = true;
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  return deadlocked(name, t, status);
}

lvd_status pb_wait_timeout(TASKID t, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  return wait_for("pb_wait_timeout", t, timeout_ns);
}

lvd_status pb_wait(TASKID t) {
  LVD_NO_ABANDON;
  return wait_for("pb_wait", t, lvd_program_limit());
}

size_t pb_task_error_text(TASKID t, char *text, size_t size) {
  lvd_fault fault;
  if (text && size) text[0] = 0;
  if (!t || t->released) return 0;
  if (t->unit) return lvd_unit_error_text(t->unit, text, size);
  if (!lvd_app_fault(lvd_program_here()->app, &fault)) return 0;
  return (size_t)snprintf(text, size, "%s: %s", fault.actor ? fault.actor : "program",
                          fault.message);
}

/* A task that has returned meanwhile is no misuse. */
lvd_status pb_cancel(TASKID t) {
  LVD_NO_ABANDON;
  if (!t) return no_task("pb_cancel");
  lvd_os_lock(&lvd_program_here()->lock);
  bool released = t->released;
  lvd_status status = !released && (t->fiber || t->call) ? LVD_OK : LVD_E_STATE;
  if (status != LVD_OK)
    ;
  else if (t->call)
    lvd_call_cancel(t->call);
  else
    lvd_fiber_cancel(t->fiber);
  lvd_os_unlock(&lvd_program_here()->lock);
  return released ? misused_task("pb_cancel", t, was_released) : status;
}

static bool is_started(const TASKID t) {
  lvd_os_lock(&lvd_program_here()->lock);
  bool started = !t->released && (t->fiber || t->call);
  lvd_os_unlock(&lvd_program_here()->lock);
  return started;
}

lvd_status pb_release(TASKID t) {
  LVD_NO_ABANDON;
  if (!t) return no_task("pb_release");
  lvd_status status = is_started(t) ? wait_for("pb_release", t, lvd_program_limit()) : LVD_OK;
  lvd_os_lock(&lvd_program_here()->lock);
  bool mine = !t->released, started = mine && (t->fiber || t->call);
  struct srpc_task was = {0};
  if (mine && !started) {
    was = *t; /* no fiber runs as it, or writes into it */
    if (was.unit) was.unit->held++;
    forget(t);
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  if (!mine) return misused_task("pb_release", t, was_released);
  if (started) return status; /* the caller was cancelled, or another waits for it */
  if (was.unit) {
    lvd_remote_task_release(&was);
    lvd_program_let_go(&was.unit, 1);
  }
  return status;
}

lvd_status pb_signal(TASKID t, u32 data) {
  LVD_NO_ABANDON;
  if (!t) return no_task("pb_signal");
  lvd_os_lock(&lvd_program_here()->lock);
  bool released = t->released;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (released) return misused_task("pb_signal", t, was_released);
  return t->unit ? lvd_remote_task_signal(t, data) : lvd_event_set(&t->signal, data);
}

lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  TASKID t = task_of_caller();
  if (!t) return lvd_misuse(LVD_E_STATE, "pb_wait_signal: only a procedure has signals");
  return deadlocked("pb_wait_signal", t, lvd_event_wait(&t->signal, data, timeout_ns));
}

/* ---- transmitter and remote task ------------------------------------------------------------- */

/* Starts both or neither: until the lock is released the transmitter stays at its first line, and
 * learns there whether the remote task runs. */
static lvd_status start_both(TASKID remote, TASKID transmitter) {
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_status status = start(transmitter);
  bool begun = status == LVD_OK;
  if (begun) status = start(remote);
  if (begun) transmitter->revoked = status != LVD_OK;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (!begun) drop_task(transmitter);
  return status;
}

static lvd_status stream_rpc_task(TASKID remote, void *transmitter) {
  void (*function)(void *);
  memcpy(&function, &transmitter, sizeof function);
  uint32_t worker = worker_here();
  if (!remote->unit && remote->worker == worker) worker = worker_other_than(worker);
  TASKID t = new_task("transmitter", function, 0, worker);
  if (!t) return LVD_E_MEMORY;
  t->detached = true;
  t->leads = remote->unit;
  return start_both(remote, t);
}

/* Returns null; the reason was reported. */
static TASKID cannot_start_both(lvd_status status, const TASKID remote) {
  if (status == LVD_E_STATE)
    misused_task("stream_rpc", remote, remote->released ? was_released : runs_already);
  return lvd_no_task(status);
}

static TASKID no_procedure(const void *remote) {
  if (!remote)
    no_task("stream_rpc");
  else
    lvd_misuse(LVD_E_ARGUMENT, "stream_rpc: there is no transmitter");
  return lvd_no_task(LVD_E_ARGUMENT);
}

TASKID srpc_rpc_task(void *remote, void *transmitter) {
  LVD_NO_ABANDON;
  if (!remote || !transmitter) return no_procedure(remote);
  lvd_status status = pb_boot();
  if (status == LVD_OK) status = stream_rpc_task(remote, transmitter);
  return status == LVD_OK ? remote : cannot_start_both(status, remote);
}

TASKID srpc_rpc_function(void *remote, void *transmitter) {
  LVD_NO_ABANDON;
  if (!remote || !transmitter) return no_procedure(remote);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return lvd_no_task(status);
  void (*function)(void *);
  memcpy(&function, &remote, sizeof function);
  TASKID t = new_task("remote", function, 0, worker_other_than(worker_here()));
  if (!t) return NULL;
  status = stream_rpc_task(t, transmitter);
  if (status == LVD_OK) return t;
  drop_task(t);
  return lvd_no_task(status);
}
