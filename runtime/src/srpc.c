/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streaming RPC by the paper's names: tasks are fibers of one application, streams lie in a table
 * by their numbers. A side of a stream is whoever created it: a fiber, or a thread. The sides are
 * listed by who that is, so that a procedure that returns finds its own. It then is forgotten: its
 * fiber's address may be the next one's. What it has closed before that it cannot create again until
 * the other side is done, too.
 *
 * With processes loaded, a task may live in one of them, or, seen from there, in this one: then it
 * is a call of `srpc.run` (below), known there by its maker's process and number. A stream leads to
 * one other process: when it has only one side here as its first element comes, it is opened with
 * that one, where the other side will be; or it comes here later, which works as well. */
#include <levada/process.h>
#include <levada/srpc.h>

#include <stdio.h>
#include <stdlib.h>

#include "../port/process.h"
#include "stream.h"
#include "unit.h"

enum { MOST_FOREIGN = 1 << 16, SIDE_LISTS_LOG2 = 6 };

typedef struct registered {
  char name[64];
  void (*function)(void *);
  struct registered *next;
} registered;

struct srpc_task {
  void (*function)(void *);
  int prio;
  uint32_t worker;
  /* With the lock: */
  lvd_fiber *fiber; /* while it has been started and not waited for */
  lvd_call *call;   /* ... in another process */
  bool awaited;     /* somebody waits for it */
  lvd_fiber *self;  /* while it runs here */
  bool detached;    /* of a transmitter: it goes by itself ... */
  bool revoked;     /* ... and has nothing to do: the remote one could not be started */
  lvd_unit *unit;   /* the process it lives in; null: this one */
  lvd_unit *leads;  /* the process that its streams lead to; null: the one loaded last */
  lvd_unit *maker;  /* the process that made it; null: this one */
  uint32_t number;  /* ... and how it calls it */
  lvd_event signal;
  struct srpc_task *next;
  char name[64];
};

/* Who has created a number. */
typedef struct side {
  void *who;         /* null: nobody, or one that has returned */
  lvd_fiber *fiber;  /* ... if it is one */
  bool gone;         /* it has closed it, or returned */
  struct side *next; /* in its list, as long as there is `who` */
  struct entry *entry;
} side;

/* A number that is in use. */
typedef struct entry {
  lvd_aptr stream; /* lvd_stream, made at the first element */
  side side[2];
  uint32_t sides, left;
  lvd_unit *unit;    /* the process where the other side may be */
  bool bound;        /* ... because stream_with has said so */
  bool opening;      /* somebody asks that process, without the lock ... */
  lvd_event *opened; /* ... of who waits until he has; or null */
  uint32_t capacity, threshold;
  int64_t time_limit_ns;
} entry;

static struct {
  lvd_port_mutex lock; /* of all that follows, and of entries */
  registered *procedures;
  lvd_a32 booted;
  lvd_runtime *rt;
  lvd_app *app;
  struct srpc_task *tasks;
  uint32_t foreign; /* tasks that others made */
  uint32_t next_worker, next_number;
  lvd_unit *unit[PB_PROCESSES]; /* that are loaded, the last one last; they may be gone */
  uint32_t units;
  entry stream[PB_STREAMS];
  side *sides[1 << SIDE_LISTS_LOG2]; /* by who they are */
  struct unasked *unasked;
  lvd_a64 time_limit; /* 1 + ns; 0: none */
  char *why;
} program;

static _Thread_local lvd_status last_status;

/* What is returned in place of a task. Not inline: the caller may have waited, and gone on on another
 * thread. */
LVD_COLD static TASKID no_task(lvd_status why) {
  last_status = why;
  return NULL;
}

LVD_COLD lvd_status pb_status(void) { return last_status; }

void pb_time_limit(int64_t timeout_ns) {
  lvd_store_relaxed_u64(&program.time_limit, timeout_ns < 0 ? 0 : 1 + (uint64_t)timeout_ns);
}

/* Of the waits that have no limit of their own. */
static int64_t time_limit(void) { return (int64_t)lvd_load_relaxed_u64(&program.time_limit) - 1; }

/* ---- start-up and release ------------------------------------------------------------------- */

static bool is_alive(const lvd_unit *unit) { return unit && lvd_unit_state(unit) == LVD_OK; }

/* The processes that live: those that were loaded, and the one that has loaded this. */
static uint32_t others(lvd_unit *other[PB_PROCESSES + 1]) {
  uint32_t n = 0;
  lvd_unit *parent = lvd_unit_parent();
  if (is_alive(parent)) other[n++] = parent;
  lvd_port_lock(&program.lock);
  for (uint32_t i = 0; i < program.units; i++)
    if (is_alive(program.unit[i])) other[n++] = program.unit[i];
  lvd_port_unlock(&program.lock);
  return n;
}

/* The one that was loaded last, or else has loaded this; null: there is none. With the lock. */
static lvd_unit *last_unit(void) {
  for (uint32_t i = program.units; i > 0; i--)
    if (is_alive(program.unit[i - 1])) return program.unit[i - 1];
  return is_alive(lvd_unit_parent()) ? lvd_unit_parent() : NULL;
}

/* Null: it is none that lives. */
static lvd_unit *unit_of(int process) {
  lvd_unit *other[PB_PROCESSES + 1];
  for (uint32_t i = 0, n = others(other); i < n; i++)
    if (lvd_unit_process(other[i]) == process) return other[i];
  return NULL;
}

static void forget_task(TASKID *at);
static void take_unasked(void);
static void forget_unasked(void);

static bool is_used(const lvd_unit *unit) {
  bool used = false;
  for (TASKID t = program.tasks; t; t = t->next)
    used |= t->unit == unit || (t->maker == unit ? t->self != NULL : t->leads == unit);
  for (int i = 0; i < PB_STREAMS; i++) used |= program.stream[i].unit == unit;
  return used;
}

/* One that is gone, and that nothing speaks of any more; null: none. With the lock. */
static lvd_unit *take_unused(void) {
  for (uint32_t i = 0; i < program.units; i++) {
    lvd_unit *unit = program.unit[i];
    if (is_alive(unit) || is_used(unit)) continue;
    for (TASKID *at = &program.tasks; *at;) {
      if ((*at)->maker == unit)
        forget_task(at);
      else
        at = &(*at)->next;
    }
    program.units--;
    memmove(&program.unit[i], &program.unit[i + 1], (program.units - i) * sizeof *program.unit);
    return unit;
  }
  return NULL;
}

lvd_status pb_load(const char *exec_name) {
  if (!exec_name || lvd_port_process_is_self(exec_name)) return LVD_OK;
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  lvd_unit *unit;
  take_unasked();
  do {
    lvd_port_lock(&program.lock);
    unit = take_unused();
    if (program.units == PB_PROCESSES) status = LVD_E_LIMIT;
    lvd_port_unlock(&program.lock);
    if (unit) lvd_unit_unload(unit); /* or it goes with the application */
  } while (unit);
  if (status != LVD_OK) return status;
  const lvd_unit_options o = {.may_call = "srpc."}; /* tasks of procedures that are registered */
  status = lvd_unit_load(program.app, exec_name, &o, &unit);
  if (status != LVD_OK) return status;
  lvd_port_lock(&program.lock);
  if (program.units < PB_PROCESSES)
    program.unit[program.units++] = unit;
  else
    status = LVD_E_LIMIT; /* others were faster; it goes with the application */
  lvd_port_unlock(&program.lock);
  return status;
}

int pb_process(void) {
  lvd_port_lock(&program.lock);
  int number = program.units ? (int)lvd_unit_process(program.unit[program.units - 1]) : 0;
  lvd_port_unlock(&program.lock);
  return number;
}

static lvd_status start_up(void) {
  lvd_status status = LVD_OK;
  lvd_port_lock(&program.lock);
  if (!lvd_load_acquire_u32(&program.booted)) {
    free(program.why);
    program.why = NULL;
    status = lvd_runtime_create(NULL, &program.rt);
    if (status == LVD_OK) {
      lvd_app_options o = {.name = "program"};
      status = lvd_app_open(program.rt, &o, &program.app);
      if (status != LVD_OK) lvd_runtime_destroy(program.rt);
    }
    if (status == LVD_OK) lvd_store_release_u32(&program.booted, 1);
  }
  lvd_port_unlock(&program.lock);
  return status;
}

lvd_status pb_boot(void) {
  if (lvd_load_acquire_u32(&program.booted)) return LVD_OK;
  bool loaded = lvd_unit_is_loaded();
  lvd_status status = start_up();
  if (status != LVD_OK || !loaded) return status;
  status = lvd_unit_serve(program.app);
  pb_finish();
  return status == LVD_OK ? LVD_E_STOPPED : status;
}

static void leave(void *who);

/* Why the program has failed, and processes that it has loaded. */
static char *words_about(lvd_status status) {
  lvd_fault fault;
  size_t size = lvd_app_why(program.app, NULL, 0) + sizeof fault + 100, at = 0;
  char *text = calloc(1, size);
  if (!text) return NULL;
  bool faulted = lvd_app_fault(program.app, &fault);
  if (faulted)
    at = (size_t)snprintf(text, size, "%s: %s\n", fault.actor ? fault.actor : "program",
                          fault.message);
  if (faulted || status == LVD_OK)
    lvd_units_why(program.app, text + at, size - at);
  else
    lvd_app_why(program.app, text, size);
  return text;
}

lvd_status pb_finish(void) {
  if (!lvd_load_acquire_u32(&program.booted)) return LVD_E_STATE;
  if (lvd_fiber_self()) return LVD_E_STATE; /* it would wait for itself */
  int64_t limit = time_limit(), ms = limit < 0 ? -1 : limit / 1000000 + (limit % 1000000 != 0);
  leave(lvd_stream_caller());
  lvd_app_close(program.app);
  lvd_status status = lvd_app_wait(program.app, ms);
  /* What was started elsewhere and not waited for; if all is well, it returns. */
  for (TASKID t = program.tasks; t && status == LVD_OK; t = t->next)
    if (t->call) status = pb_wait(t);
  if (status == LVD_E_TIME) return status;
  take_unasked();
  program.why = words_about(status);
  lvd_app_unload(program.app); /* and its streams */
  lvd_runtime_destroy(program.rt);
  for (TASKID t = program.tasks, next; t; t = next) {
    next = t->next;
    free(t);
  }
  program.tasks = NULL;
  forget_unasked();
  memset(program.stream, 0, sizeof program.stream);
  memset(program.sides, 0, sizeof program.sides);
  program.units = program.foreign = 0;
  pb_time_limit(-1);
  lvd_store_release_u32(&program.booted, 0);
  return status;
}

const char *pb_why(void) { return program.why ? program.why : ""; }

/* ---- procedures ----------------------------------------------------------------------------- */

lvd_status pb_register(const char *name, void *function) {
  if (!name || !function || strlen(name) >= sizeof((registered *)0)->name) return LVD_E_ARGUMENT;
  registered *r = calloc(1, sizeof *r);
  if (!r) return LVD_E_MEMORY;
  memcpy(r->name, name, strlen(name));
  memcpy(&r->function, &function, sizeof function);
  lvd_port_lock(&program.lock);
  r->next = program.procedures;
  program.procedures = r;
  lvd_port_unlock(&program.lock);
  return LVD_OK;
}

static void copy_task_name(char *to, const char *from) {
  snprintf(to, sizeof((TASKID)0)->name, "%s", from);
}

/* With the lock. */
static TASKID enter_task(const char *name, void (*function)(void *), int prio) {
  TASKID t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->function = function;
  t->prio = prio;
  copy_task_name(t->name, name);
  lvd_event_init(&t->signal);
  t->next = program.tasks;
  program.tasks = t;
  return t;
}

static TASKID new_task(const char *name, void (*function)(void *), int prio, uint32_t worker) {
  lvd_port_lock(&program.lock);
  TASKID t = enter_task(name, function, prio);
  if (t) t->worker = worker;
  lvd_port_unlock(&program.lock);
  return t ? t : no_task(LVD_E_MEMORY);
}

/* With the lock. */
static void forget_task(TASKID *at) {
  TASKID t = *at;
  *at = t->next;
  program.foreign -= t->maker != NULL;
  free(t);
}

static void drop_task(TASKID t) {
  lvd_port_lock(&program.lock);
  TASKID *at = &program.tasks;
  while (*at != t) at = &(*at)->next;
  forget_task(at);
  lvd_port_unlock(&program.lock);
}

static registered *find_procedure(const char *name) {
  lvd_port_lock(&program.lock);
  registered *r = program.procedures;
  while (r && strcmp(r->name, name) != 0) r = r->next;
  lvd_port_unlock(&program.lock);
  return r;
}

/* ---- tasks in another process --------------------------------------------------------------- */

/* What a call about a task says. */
typedef struct message {
  uint32_t from, number, data;
  char name[64];
} message;

/* A question whose answer nobody waits for any more. */
typedef struct unasked {
  lvd_call *call;
  struct unasked *next;
} unasked;

static void give_up(lvd_call *c) {
  lvd_call_cancel(c);
  unasked *u = malloc(sizeof *u);
  if (!u) return; /* the unit then goes with the application */
  lvd_port_lock(&program.lock);
  *u = (unasked){c, program.unasked};
  program.unasked = u;
  lvd_port_unlock(&program.lock);
}

/* Those that have been answered after all are given back. */
static void take_unasked(void) {
  lvd_port_lock(&program.lock);
  for (unasked **at = &program.unasked, *u; (u = *at);) {
    bool returned;
    lvd_call_wait(u->call, NULL, NULL, 0, &returned);
    if (!returned) {
      at = &u->next;
      continue;
    }
    *at = u->next;
    free(u);
  }
  lvd_port_unlock(&program.lock);
}

/* Their units are gone. */
static void forget_unasked(void) {
  for (unasked *u = program.unasked, *next; u; u = next) {
    next = u->next;
    free(u);
  }
  program.unasked = NULL;
}

static lvd_status ask(lvd_unit *unit, const char *procedure, const message *m) {
  lvd_call *c;
  bool returned;
  lvd_status status = lvd_call_start(unit, procedure, m, sizeof *m, NULL, &c);
  if (status != LVD_OK) return status;
  status = lvd_call_wait(c, NULL, NULL, time_limit(), &returned);
  if (!returned) give_up(c);
  return status;
}

static message message_about(const TASKID t, uint32_t data) {
  message m = {(uint32_t)lvd_port_process_self(), t->number, data, {0}};
  memcpy(m.name, t->name, sizeof m.name);
  return m;
}

/* There: the task of this number, made by whatever comes first. With the lock. */
static TASKID task_of(lvd_unit *maker, const message *m) {
  TASKID t = program.tasks;
  while (t && (t->maker != maker || t->number != m->number)) t = t->next;
  if (t || program.foreign >= MOST_FOREIGN) return t;
  if (!(t = enter_task(m->name, NULL, 0))) return NULL;
  t->maker = t->leads = maker;
  t->number = m->number;
  program.foreign++;
  return t;
}

/* `from` is the process that asks; null: nobody who could. */
static lvd_status message_in(const lvd_frame *f, message *m, lvd_unit **from) {
  if (f->argument_size != sizeof *m) return LVD_E_STATE;
  memcpy(m, f->argument, sizeof *m);
  m->name[sizeof m->name - 1] = 0;
  *from = unit_of((int)m->from);
  return *from && m->number ? LVD_OK : LVD_E_STATE;
}

static lvd_status knows(lvd_frame *f) {
  message m;
  lvd_unit *from;
  lvd_status status = message_in(f, &m, &from);
  if (status != LVD_OK) return status;
  return find_procedure(m.name) ? LVD_OK : LVD_E_UNKNOWN;
}

static void runs_as(TASKID t, lvd_fiber *self) {
  lvd_port_lock(&program.lock);
  t->self = self;
  lvd_port_unlock(&program.lock);
}

/* While a task runs nobody else drops it, whatever its maker says. */
static lvd_status run(lvd_frame *f) {
  message m;
  lvd_unit *from;
  lvd_status status = message_in(f, &m, &from);
  if (status != LVD_OK) return status;
  registered *r = find_procedure(m.name);
  if (!r) return LVD_E_UNKNOWN;
  lvd_fiber *self = lvd_fiber_self();
  lvd_port_lock(&program.lock);
  TASKID t = task_of(from, &m);
  status = !t ? LVD_E_LIMIT : t->self ? LVD_E_STATE : LVD_OK;
  if (status == LVD_OK) t->self = self;
  lvd_port_unlock(&program.lock);
  if (status != LVD_OK) return status;
  copy_name(self->name, m.name); /* for reports: all of them are srpc.run */
  r->function(NULL);
  leave(self);
  runs_as(t, NULL);
  return LVD_OK;
}

static lvd_status take_signal(lvd_frame *f) {
  message m;
  lvd_unit *from;
  lvd_status status = message_in(f, &m, &from);
  if (status != LVD_OK) return status;
  lvd_port_lock(&program.lock);
  TASKID t = task_of(from, &m);
  status = t ? lvd_event_set(&t->signal, m.data) : LVD_E_LIMIT;
  lvd_port_unlock(&program.lock);
  return status;
}

static lvd_status release(lvd_frame *f) {
  message m;
  lvd_unit *from;
  lvd_status status = message_in(f, &m, &from);
  if (status != LVD_OK) return status;
  lvd_port_lock(&program.lock);
  TASKID *at = &program.tasks, t;
  while ((t = *at) && (t->maker != from || t->number != m.number)) at = &t->next;
  if (t && !t->self) forget_task(at);
  lvd_port_unlock(&program.lock);
  return LVD_OK;
}

__attribute__((constructor)) static void register_these(void) {
  lvd_procedure_register("srpc.knows", knows);
  lvd_procedure_register("srpc.run", run);
  lvd_procedure_register("srpc.signal", take_signal);
  lvd_procedure_register("srpc.release", release);
}

/* LVD_E_UNKNOWN: it does not know the name, or is no more. */
static lvd_status ask_whether_known(lvd_unit *unit, const char *name) {
  message m = {.from = (uint32_t)lvd_port_process_self(), .number = UINT32_MAX};
  copy_task_name(m.name, name);
  lvd_status status = ask(unit, "srpc.knows", &m);
  return is_alive(unit) ? status : LVD_E_UNKNOWN;
}

static TASKID new_task_there(lvd_unit *unit, const char *name, int prio) {
  lvd_port_lock(&program.lock);
  TASKID t = enter_task(name, NULL, prio);
  if (t) {
    t->unit = unit;
    t->number = ++program.next_number;
  }
  lvd_port_unlock(&program.lock);
  return t ? t : no_task(LVD_E_MEMORY);
}

/* ---- tasks ---------------------------------------------------------------------------------- */

/* The cores in turn, the caller's last. */
static uint32_t other_worker(void) {
  lvd_worker *w = lvd_this_worker();
  uint32_t workers = lvd_workers(program.rt), here = w ? w->index % workers : 0;
  lvd_port_lock(&program.lock);
  uint32_t next = program.next_worker++;
  lvd_port_unlock(&program.lock);
  return workers == 1 ? 0 : (here + 1 + next % (workers - 1)) % workers;
}

static TASKID new_task_here(const char *name, int prio) {
  registered *r = find_procedure(name);
  return r ? new_task(name, r->function, prio, other_worker()) : no_task(LVD_E_UNKNOWN);
}

TASKID pb_create(const char *p_task, int prio) {
  if (!p_task) return no_task(LVD_E_ARGUMENT);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return no_task(status);
  lvd_unit *other[PB_PROCESSES + 1], *knows_it = NULL;
  for (uint32_t i = 0, n = others(other); i < n; i++) {
    status = ask_whether_known(other[i], p_task);
    if (status == LVD_E_UNKNOWN) continue;
    if (status != LVD_OK) return no_task(status);
    if (knows_it) return no_task(LVD_E_STATE); /* which of them? */
    knows_it = other[i];
  }
  return knows_it ? new_task_there(knows_it, p_task, prio) : new_task_here(p_task, prio);
}

TASKID pb_create_in(int process, const char *p_task, int prio) {
  if (!p_task) return no_task(LVD_E_ARGUMENT);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return no_task(status);
  if (process == 0 || process == lvd_port_process_self()) return new_task_here(p_task, prio);
  lvd_unit *unit = unit_of(process);
  if (!unit) return no_task(LVD_E_PEER);
  status = ask_whether_known(unit, p_task);
  return status == LVD_OK ? new_task_there(unit, p_task, prio) : no_task(status);
}

static void run_task(void *argument) {
  TASKID t = argument;
  lvd_fiber *self = lvd_fiber_self();
  lvd_port_lock(&program.lock);
  bool runs = !t->revoked;
  if (runs) t->self = self;
  lvd_port_unlock(&program.lock);
  if (runs) {
    t->function(NULL);
    leave(self);
    runs_as(t, NULL);
  }
  if (t->detached) drop_task(t);
}

/* With the lock; neither kind of start waits for anything. */
static lvd_status start(TASKID t) {
  if (t->fiber || t->call) return LVD_E_STATE;
  if (t->unit) {
    const message m = message_about(t, 0);
    const lvd_call_options there = {.priority = t->prio};
    return lvd_call_start(t->unit, "srpc.run", &m, sizeof m, &there, &t->call);
  }
  lvd_fiber_options o = {.name = t->name, .priority = t->prio, .place = LVD_WORKER(t->worker)};
  return lvd_fiber_start(program.app, run_task, t, &o, t->detached ? NULL : &t->fiber);
}

lvd_status pb_rpc(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_status status = start(t);
  lvd_port_unlock(&program.lock);
  return status;
}

/* Waits first, and takes it then, at once and with the lock: a wait may end for other reasons, and
 * whoever cancels the task must not meet a fiber or a call that is another's by now. */
lvd_status pb_wait_for(TASKID t, int64_t timeout_ns) {
  if (!t) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_fiber *fiber = t->fiber;
  lvd_call *call = t->call;
  bool waits = (call || (fiber && fiber != lvd_fiber_self())) && !t->awaited;
  t->awaited |= waits;
  lvd_port_unlock(&program.lock);
  if (!waits) return LVD_E_STATE;
  uint32_t which;
  lvd_status status;
  if (call) {
    status = lvd_call_wait_any(&call, 1, timeout_ns, &which);
  } else {
    const lvd_want end = {.event = &fiber->done};
    status = lvd_wait_any(&end, 1, timeout_ns, &which);
  }
  lvd_port_lock(&program.lock);
  t->awaited = false;
  if (status == LVD_OK) {
    status = call ? lvd_call_wait(call, NULL, NULL, 0, NULL) : lvd_fiber_join(fiber, 0);
    t->fiber = NULL;
    t->call = NULL;
  }
  lvd_port_unlock(&program.lock);
  return status;
}

lvd_status pb_wait(TASKID t) { return pb_wait_for(t, time_limit()); }

size_t pb_task_why(TASKID t, char *text, size_t size) {
  lvd_fault fault;
  if (text && size) text[0] = 0;
  if (!t) return 0;
  if (t->unit) return lvd_unit_why(t->unit, text, size);
  if (!lvd_app_fault(program.app, &fault)) return 0;
  return (size_t)snprintf(text, size, "%s: %s", fault.actor ? fault.actor : "program",
                          fault.message);
}

lvd_status pb_cancel(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_status status = t->fiber || t->call ? LVD_OK : LVD_E_STATE;
  if (t->call)
    lvd_call_cancel(t->call);
  else
    lvd_fiber_cancel(t->fiber);
  lvd_port_unlock(&program.lock);
  return status;
}

static bool is_started(const TASKID t) {
  lvd_port_lock(&program.lock);
  bool started = t->fiber || t->call;
  lvd_port_unlock(&program.lock);
  return started;
}

lvd_status pb_release(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  lvd_status status = is_started(t) ? pb_wait(t) : LVD_OK;
  if (is_started(t)) return status; /* the caller was cancelled, or another one waits */
  if (t->unit) {
    const message m = message_about(t, 0);
    ask(t->unit, "srpc.release", &m);
  }
  drop_task(t);
  return status;
}

lvd_status pb_signal(TASKID t, u32 data) {
  if (!t) return LVD_E_ARGUMENT;
  if (!t->unit) return lvd_event_set(&t->signal, data);
  const message m = message_about(t, data);
  return ask(t->unit, "srpc.signal", &m);
}

lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns) {
  lvd_fiber *f = lvd_fiber_self();
  lvd_port_lock(&program.lock);
  TASKID t = program.tasks;
  while (t && (!f || t->self != f)) t = t->next;
  lvd_port_unlock(&program.lock);
  return t ? lvd_event_wait(&t->signal, data, timeout_ns) : LVD_E_STATE;
}

/* ---- streams -------------------------------------------------------------------------------- */

/* Null: there is no such number. */
static entry *entry_of(STREAM_ID sID) {
  return sID >= 0 && sID < PB_STREAMS ? &program.stream[sID] : NULL;
}

/* The list that has all sides of `who`, and of a few others. */
static side **sides_of(const void *who) {
  uint64_t spread = (uint64_t)(uintptr_t)who * 0x9e3779b97f4a7c15u;
  return &program.sides[spread >> (64 - SIDE_LISTS_LOG2)];
}

static side *side_of(entry *e, const void *who) {
  for (int i = 0; i < 2; i++)
    if (e->side[i].who == who) return &e->side[i];
  return NULL;
}

static bool is_side(entry *e, const void *who) {
  const side *s = side_of(e, who);
  return s && !s->gone;
}

static void enter_side(entry *e, void *who) {
  side **list = sides_of(who);
  side *s = &e->side[e->sides++];
  *s = (side){who, lvd_fiber_self(), false, *list, e};
  *list = s;
}

static void forget_side(side *s) {
  if (!s->who) return;
  side **at = sides_of(s->who);
  while (*at != s) at = &(*at)->next;
  *at = s->next;
  s->who = NULL;
}

/* Both sides have left, or the number was never used. */
static void reset(entry *e) {
  lvd_stream_destroy(lvd_load_relaxed_ptr(&e->stream));
  for (int i = 0; i < 2; i++) forget_side(&e->side[i]);
  memset(e, 0, sizeof *e);
}

static lvd_shared_stream *shared_of(const entry *e) {
  const lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  return s ? ((const stream *)s)->shared : NULL;
}

/* All who were here have left, and the other ends were theirs or the other process's. */
static bool is_over(const entry *e) {
  if (e->left == 2) return true;
  return e->left && e->left == e->sides && shared_of(e) && lvd_shared_is_taken(shared_of(e));
}

/* The process that a stream leads to which the caller creates. With the lock. */
static lvd_unit *leads_to(void *me) {
  TASKID t = program.tasks;
  while (t && t->self != me) t = t->next;
  return t && t->leads ? t->leads : last_unit();
}

/* What the two processes call it. */
static void shared_name(const entry *e, char name[32]) {
  snprintf(name, 32, "number %d", (int)(e - program.stream));
}

/* Who will use the stream: it is they whom others wait for, here or in the other process. With the
 * lock. */
static void say_parties(const entry *e) {
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  lvd_fiber *party[2] = {NULL};
  uint32_t parties = 0;
  char name[32];
  for (int i = 0; i < 2; i++)
    if (e->side[i].who && !e->side[i].gone) party[parties++] = e->side[i].fiber;
  shared_name(e, name);
  if (s) lvd_stream_say_parties(s, party, parties);
  if (e->unit) lvd_unit_expect_stream(e->unit, name, party, s ? 0 : parties);
}

lvd_status stream_create(STREAM_ID sID) {
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  void *me = lvd_stream_caller();
  lvd_port_lock(&program.lock);
  if (is_over(e)) reset(e);
  if (side_of(e, me) || e->sides == 2)
    status = LVD_E_STATE;
  else
    enter_side(e, me);
  if (status == LVD_OK && e->sides == 1 && !e->bound) e->unit = leads_to(me);
  if (status == LVD_OK) say_parties(e);
  lvd_port_unlock(&program.lock);
  return status;
}

lvd_status stream_with(STREAM_ID sID, TASKID tid) {
  entry *e = entry_of(sID);
  if (!e || !tid) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  if (is_over(e)) reset(e);
  bool made = e->opening || lvd_load_relaxed_ptr(&e->stream);
  if (!made) {
    char name[32];
    shared_name(e, name);
    if (e->unit) lvd_unit_expect_stream(e->unit, name, NULL, 0);
    e->unit = tid->unit;
    e->bound = true;
    say_parties(e);
  }
  lvd_port_unlock(&program.lock);
  return made ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold) {
  entry *e = entry_of(sID);
  if (!e || capacity > LVD_CHANNEL_CAPACITY || threshold > LVD_CHANNEL_CAPACITY)
    return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (!s) {
    e->capacity = capacity;
    e->threshold = threshold;
  }
  lvd_port_unlock(&program.lock);
  return s ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_time_limit(STREAM_ID sID, int64_t timeout_ns) {
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  e->time_limit_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (s) s->time_limit_ns = timeout_ns;
  lvd_port_unlock(&program.lock);
  return LVD_OK;
}

/* A side that has put and got nothing leaves: nothing will come, or nobody will take. */
static void leave_unused(lvd_stream *s) {
  if (lvd_stream_end(s, LVD_OK) != LVD_OK) lvd_stream_leave(s);
}

static void leave_side(side *its) {
  entry *e = its->entry;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (s && !lvd_stream_close(s)) leave_unused(s);
  e->left++;
  its->gone = true;
  say_parties(e);
  if (!s && e->sides == 1 && e->unit) {
    char name[32];
    shared_name(e, name);
    lvd_unit_leave_stream(e->unit, name);
    reset(e);
  } else if (is_over(e)) {
    reset(e);
  }
}

/* `who` returns. */
static void leave(void *who) {
  lvd_port_lock(&program.lock);
  for (side *s = *sides_of(who); s;) {
    if (s->who != who) {
      s = s->next;
      continue;
    }
    if (!s->gone) leave_side(s);
    forget_side(s);
    s = *sides_of(who); /* others may have gone with it */
  }
  lvd_port_unlock(&program.lock);
}

lvd_status stream_close(STREAM_ID sID) {
  entry *e = entry_of(sID);
  if (!e) return LVD_E_ARGUMENT;
  void *me = lvd_stream_caller();
  lvd_port_lock(&program.lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  if (status == LVD_OK) leave_side(side_of(e, me));
  lvd_port_unlock(&program.lock);
  return status;
}

/* Opens it with the other process, which may take a while: without the lock, and others who want
 * the same meanwhile wait. */
static lvd_status open_shared(entry *e, lvd_stream_options o, lvd_stream **out) {
  char name[32];
  shared_name(e, name);
  o.name = name;
  e->opening = true;
  lvd_port_unlock(&program.lock);
  lvd_status status = lvd_stream_open(e->unit, &o, out);
  lvd_port_lock(&program.lock);
  e->opening = false;
  if (e->opened) lvd_event_set(e->opened, 1); /* who waits keeps it until he has the lock */
  e->opened = NULL;
  return status;
}

/* The other side opens it just now; so nobody else waits. With the lock, but while waiting. */
static lvd_status await_opening(entry *e) {
  lvd_event opened;
  lvd_event_init(&opened);
  e->opened = &opened;
  lvd_port_unlock(&program.lock);
  lvd_status status = lvd_event_wait(&opened, NULL, e->time_limit_ns ? e->time_limit_ns : -1);
  lvd_port_lock(&program.lock);
  if (e->opened == &opened) e->opened = NULL;
  return status;
}

/* The stream, made now if there is none. */
static lvd_status open_stream(STREAM_ID sID, size_t size, lvd_stream **out) {
  entry *e = entry_of(sID);
  if (!e || size > LVD_STREAM_ELEMENT) return LVD_E_ARGUMENT;
  lvd_port_lock(&program.lock);
  lvd_status status = is_side(e, lvd_stream_caller()) ? LVD_OK : LVD_E_STATE;
  while (e->opening && status == LVD_OK) status = await_opening(e);
  *out = lvd_load_relaxed_ptr(&e->stream);
  if (status == LVD_OK && !*out) {
    char name[32];
    snprintf(name, sizeof name, "%d", sID);
    lvd_stream_options o = {.name = name,
                            .elem_size = (uint32_t)size,
                            .capacity = e->capacity,
                            .threshold = e->threshold,
                            .time_limit_ns = e->time_limit_ns};
    if (e->unit && e->sides == 1)
      status = open_shared(e, o, out);
    else
      status = lvd_stream_create(program.app, &o, out);
    if (status == LVD_OK) {
      lvd_store_release_ptr(&e->stream, *out);
      say_parties(e);
      if (e->left) leave_unused(*out); /* the other side has come and gone */
    }
  }
  lvd_port_unlock(&program.lock);
  return status;
}

static lvd_stream *made(STREAM_ID sID) {
  entry *e = entry_of(sID);
  return e ? lvd_load_acquire_ptr(&e->stream) : NULL;
}

lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    lvd_status status = open_stream(sID, size, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_put(s, element, size);
}

lvd_status srpc_get(STREAM_ID sID, void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    lvd_status status = open_stream(sID, size, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_get(s, element, size);
}

lvd_status stream_push(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_push(s);
  return LVD_OK;
}

lvd_status stream_pop(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_pop(s);
  return LVD_OK;
}

lvd_status stream_flush(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_flush(s);
  return LVD_OK;
}

lvd_stream *stream_handle(STREAM_ID sID) { return made(sID); }

/* ---- both at once --------------------------------------------------------------------------- */

/* Both or neither: before the lock is given back the transmitter does not get beyond its first line,
 * and learns there whether the remote one runs. */
static lvd_status start_both(TASKID remote, TASKID transmitter) {
  lvd_port_lock(&program.lock);
  lvd_status status = start(transmitter);
  bool begun = status == LVD_OK;
  if (begun) status = start(remote);
  if (begun) transmitter->revoked = status != LVD_OK;
  lvd_port_unlock(&program.lock);
  if (!begun) drop_task(transmitter);
  return status;
}

static lvd_status stream_rpc_task(TASKID remote, void *transmitter) {
  lvd_worker *w = lvd_this_worker();
  void (*function)(void *);
  memcpy(&function, &transmitter, sizeof function);
  TASKID t = new_task("transmitter", function, 0, w ? w->index % lvd_workers(program.rt) : 0);
  if (!t) return LVD_E_MEMORY;
  t->detached = true;
  t->leads = remote->unit;
  return start_both(remote, t);
}

TASKID srpc_rpc_task(void *remote, void *transmitter) {
  if (!remote || !transmitter) return no_task(LVD_E_ARGUMENT);
  lvd_status status = pb_boot();
  if (status == LVD_OK) status = stream_rpc_task(remote, transmitter);
  return status == LVD_OK ? remote : no_task(status);
}

TASKID srpc_rpc_function(void *remote, void *transmitter) {
  if (!remote || !transmitter) return no_task(LVD_E_ARGUMENT);
  lvd_status status = pb_boot();
  if (status != LVD_OK) return no_task(status);
  void (*function)(void *);
  memcpy(&function, &remote, sizeof function);
  TASKID t = new_task("remote", function, 0, other_worker());
  if (!t) return NULL;
  status = stream_rpc_task(t, transmitter);
  if (status == LVD_OK) return t;
  drop_task(t);
  return no_task(status);
}
