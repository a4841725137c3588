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
  bool detached;    /* of a transmitter: it goes by itself */
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
  lvd_unit *unit; /* the process where the other side may be */
  bool bound;     /* ... because stream_with has said so */
  bool opening;   /* somebody asks that process, without the lock */
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
  char *why;
} program;

static _Thread_local char thread_mark;

static void *myself(void) {
  lvd_fiber *f = lvd_fiber_self();
  return f ? (void *)f : &thread_mark;
}

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

lvd_status pb_finish(void) {
  if (!lvd_load_acquire_u32(&program.booted)) return LVD_E_STATE;
  if (lvd_fiber_self()) return LVD_E_STATE; /* it would wait for itself */
  leave(&thread_mark);
  lvd_app_close(program.app);
  lvd_status status = lvd_app_wait(program.app, -1);
  /* What was started elsewhere and not waited for; if all is well, it returns. */
  for (TASKID t = program.tasks; t && status == LVD_OK; t = t->next)
    if (t->call) status = pb_wait(t);
  if (status != LVD_OK) {
    lvd_fault fault;
    size_t size = lvd_app_why(program.app, NULL, 0) + sizeof fault + 100;
    if ((program.why = malloc(size))) {
      if (lvd_app_fault(program.app, &fault))
        snprintf(program.why, size, "%s: %s\n", fault.actor, fault.message);
      else
        lvd_app_why(program.app, program.why, size);
    }
  }
  lvd_app_unload(program.app); /* and its streams */
  lvd_runtime_destroy(program.rt);
  for (TASKID t = program.tasks, next; t; t = next) {
    next = t->next;
    free(t);
  }
  program.tasks = NULL;
  memset(program.stream, 0, sizeof program.stream);
  memset(program.sides, 0, sizeof program.sides);
  program.units = program.foreign = 0;
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
  return t;
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

static lvd_status ask(lvd_unit *unit, const char *procedure, const message *m) {
  lvd_call *c;
  lvd_status status = lvd_call_start(unit, procedure, m, sizeof *m, NULL, &c);
  return status == LVD_OK ? lvd_call_wait(c, NULL, NULL, -1, NULL) : status;
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

static bool is_known(lvd_unit *unit, const char *name) {
  message m = {.from = (uint32_t)lvd_port_process_self(), .number = UINT32_MAX};
  copy_task_name(m.name, name);
  return ask(unit, "srpc.knows", &m) == LVD_OK;
}

static TASKID new_task_there(lvd_unit *unit, const char *name, int prio) {
  lvd_port_lock(&program.lock);
  TASKID t = enter_task(name, NULL, prio);
  if (t) {
    t->unit = unit;
    t->number = ++program.next_number;
  }
  lvd_port_unlock(&program.lock);
  return t;
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
  return r ? new_task(name, r->function, prio, other_worker()) : NULL;
}

TASKID pb_create(const char *p_task, int prio) {
  if (!p_task || pb_boot() != LVD_OK) return NULL;
  lvd_unit *other[PB_PROCESSES + 1], *knows_it = NULL;
  for (uint32_t i = 0, n = others(other); i < n; i++) {
    if (!is_known(other[i], p_task)) continue;
    if (knows_it) return NULL; /* which of them? */
    knows_it = other[i];
  }
  return knows_it ? new_task_there(knows_it, p_task, prio) : new_task_here(p_task, prio);
}

TASKID pb_create_in(int process, const char *p_task, int prio) {
  if (!p_task || pb_boot() != LVD_OK) return NULL;
  if (process == 0 || process == lvd_port_process_self()) return new_task_here(p_task, prio);
  lvd_unit *unit = unit_of(process);
  return unit && is_known(unit, p_task) ? new_task_there(unit, p_task, prio) : NULL;
}

static void run_task(void *argument) {
  TASKID t = argument;
  lvd_fiber *self = lvd_fiber_self();
  runs_as(t, self);
  t->function(NULL);
  leave(self);
  runs_as(t, NULL);
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
lvd_status pb_wait(TASKID t) {
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
    status = lvd_call_wait_any(&call, 1, -1, &which);
  } else {
    const lvd_want end = {.event = &fiber->done};
    status = lvd_wait_any(&end, 1, -1, &which);
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
static void shared_name(STREAM_ID sID, char name[32]) { snprintf(name, 32, "number %d", sID); }

/* Who will use the stream: it is they whom others wait for, here or in the other process. With the
 * lock. */
static void say_parties(const entry *e) {
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  lvd_fiber *party[2] = {NULL};
  uint32_t parties = 0;
  char name[32];
  for (int i = 0; i < 2; i++)
    if (e->side[i].who && !e->side[i].gone) party[parties++] = e->side[i].fiber;
  shared_name((STREAM_ID)(e - program.stream), name);
  if (s) lvd_stream_say_parties(s, party, parties);
  if (e->unit) lvd_unit_expect_stream(e->unit, name, party, s ? 0 : parties);
}

lvd_status stream_create(STREAM_ID sID) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  entry *e = &program.stream[sID];
  void *me = myself();
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
  if (sID < 0 || sID >= PB_STREAMS || !tid) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
  lvd_port_lock(&program.lock);
  if (is_over(e)) reset(e);
  bool made = e->opening || lvd_load_relaxed_ptr(&e->stream);
  if (!made) {
    char name[32];
    shared_name(sID, name);
    if (e->unit) lvd_unit_expect_stream(e->unit, name, NULL, 0);
    e->unit = tid->unit;
    e->bound = true;
    say_parties(e);
  }
  lvd_port_unlock(&program.lock);
  return made ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
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
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
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
    shared_name((STREAM_ID)(e - program.stream), name);
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
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
  void *me = myself();
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
  shared_name((STREAM_ID)(e - program.stream), name);
  o.name = name;
  e->opening = true;
  lvd_port_unlock(&program.lock);
  lvd_status status = lvd_stream_open(e->unit, &o, out);
  lvd_port_lock(&program.lock);
  e->opening = false;
  return status;
}

/* The stream, made now if there is none. */
static lvd_status open_stream(STREAM_ID sID, size_t size, lvd_stream **out) {
  entry *e = &program.stream[sID];
  lvd_status status = LVD_OK;
  lvd_port_lock(&program.lock);
  while (e->opening && status == LVD_OK) {
    lvd_port_unlock(&program.lock);
    status = lvd_fiber_sleep(100000);
    lvd_port_lock(&program.lock);
  }
  *out = lvd_load_relaxed_ptr(&e->stream);
  if (status == LVD_OK && !is_side(e, myself())) status = LVD_E_STATE;
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
  return sID < 0 || sID >= PB_STREAMS ? NULL : lvd_load_acquire_ptr(&program.stream[sID].stream);
}

lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
    lvd_status status = open_stream(sID, size, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_put(s, element, size);
}

lvd_status srpc_get(STREAM_ID sID, void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
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

static TASKID start_both(TASKID remote, void *transmitter) {
  lvd_worker *w = lvd_this_worker();
  void (*function)(void *);
  memcpy(&function, &transmitter, sizeof function);
  TASKID t = new_task("transmitter", function, 0, w ? w->index % lvd_workers(program.rt) : 0);
  if (!t) return NULL;
  t->detached = true;
  t->leads = remote->unit;
  lvd_status status = pb_rpc(remote);
  if (status == LVD_OK && (status = pb_rpc(t)) == LVD_OK) return remote;
  drop_task(t);
  return NULL;
}

TASKID srpc_rpc_task(void *remote, void *transmitter) {
  if (!remote || !transmitter || pb_boot() != LVD_OK) return NULL;
  return start_both(remote, transmitter);
}

TASKID srpc_rpc_function(void *remote, void *transmitter) {
  if (!remote || !transmitter || pb_boot() != LVD_OK) return NULL;
  void (*function)(void *);
  memcpy(&function, &remote, sizeof function);
  TASKID t = new_task("remote", function, 0, other_worker());
  return t ? start_both(t, transmitter) : NULL;
}
