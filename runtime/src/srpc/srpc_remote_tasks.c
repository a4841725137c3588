/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Remote tasks: a task that lives in another process is a call of `srpc.run` there, which knows it
 * by the creating process and its number; so do the other requests about it. Each process has the
 * same procedures for that, and may be on either side. */
#include <stdlib.h>

#include "../../platform/process.h"
#include "../core/closest_name.h"
#include "../rpc/unit.h"
#include "../sched/no_abandon.h"
#include "srpc_program.h"

enum { FOREIGN_TASKS_MAX = 1 << 16 /* tasks that other processes created */ };

/* ---- requests -------------------------------------------------------------------------------- */

typedef lvd_task_message message;

/* A request that was given up before its answer. */
typedef struct lvd_unasked {
  lvd_call *call;
  struct lvd_unasked *next;
} unasked;

static void give_up(lvd_call *c) {
  lvd_call_cancel(c);
  unasked *u = malloc(sizeof *u);
  if (!u) return; /* the unit is then freed with the application */
  lvd_os_lock(&lvd_program_here()->lock);
  *u = (unasked){c, lvd_program_here()->unasked};
  lvd_program_here()->unasked = u;
  lvd_os_unlock(&lvd_program_here()->lock);
}

/* Frees those that have been answered meanwhile. */
void lvd_remote_task_collect(void) {
  lvd_os_lock(&lvd_program_here()->lock);
  for (unasked **at = &lvd_program_here()->unasked, *u; (u = *at);) {
    bool returned;
    lvd_call_wait(u->call, NULL, NULL, 0, &returned);
    if (!returned) {
      at = &u->next;
      continue;
    }
    *at = u->next;
    free(u);
  }
  lvd_os_unlock(&lvd_program_here()->lock);
}

void lvd_remote_tasks_free(lvd_program_state *p) {
  for (unasked *u = p->unasked, *next; u; u = next) {
    next = u->next;
    free(u);
  }
  p->unasked = NULL;
}

/* `answered` (may be null): the other process has answered, with the name at `near` (may be
 * null). */
static lvd_status request(lvd_unit *unit, const char *procedure, const message *m, bool *answered,
                          char near[LVD_TASK_NAME_BYTES]) {
  lvd_call *c;
  bool returned = false;
  size_t size = near ? LVD_TASK_NAME_BYTES : 0;
  lvd_status status = lvd_call_start(unit, procedure, m, sizeof *m, NULL, &c);
  if (status == LVD_OK) {
    status = lvd_call_wait(c, near, near ? &size : NULL, lvd_program_limit(), &returned);
    if (!returned) give_up(c);
  }
  if (answered) *answered = returned;
  return status;
}

static message message_about(const TASKID t, uint32_t data) {
  message m = {t->number, data, {0}};
  memcpy(m.name, t->name, sizeof m.name);
  return m;
}

lvd_status lvd_remote_task_is_known(lvd_unit *unit, const char *name,
                                    char near[LVD_TASK_NAME_BYTES]) {
  message m = {.number = UINT32_MAX};
  char there[LVD_TASK_NAME_BYTES] = "";
  lvd_task_copy_name(m.name, name);
  bool answered;
  lvd_status status = request(unit, "srpc.knows", &m, &answered, there);
  bool knows = status == LVD_OK, gone = status == LVD_E_PEER_GONE;
  there[sizeof there - 1] = 0;
  if (answered && !knows) lvd_closest_name(near, name, there);
  return knows || gone || !answered ? status : LVD_E_NOT_FOUND;
}

TASKID lvd_remote_task_create(lvd_unit *unit, const char *name, int prio) {
  lvd_os_lock(&lvd_program_here()->lock);
  TASKID t = lvd_task_enter(name, NULL, prio);
  if (t) {
    t->unit = unit;
    t->number = ++lvd_program_here()->next_number;
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  return t ? t : lvd_no_task(LVD_E_MEMORY);
}

lvd_status lvd_remote_task_start(TASKID t) {
  const message m = message_about(t, 0);
  const lvd_call_options o = {.priority = t->prio,
                              .stack = (size_t)lvd_load_relaxed_u64(&lvd_program_here()->stack)};
  return lvd_call_start(t->unit, "srpc.run", &m, sizeof m, &o, &t->call);
}

lvd_status lvd_remote_task_signal(TASKID t, uint32_t data) {
  const message m = message_about(t, data);
  return request(t->unit, "srpc.signal", &m, NULL, NULL);
}

void lvd_remote_task_release(TASKID t) {
  const message m = message_about(t, 0);
  request(t->unit, "srpc.release", &m, NULL, NULL);
}

bool lvd_remote_task_is_used(const lvd_unit *unit) {
  bool used = false;
  for (TASKID t = lvd_program_here()->tasks; t; t = t->next)
    used |= t->unit == unit || (t->maker == unit ? t->self != NULL : t->leads == unit);
  return used;
}

void lvd_remote_task_forget(const lvd_unit *maker) {
  for (TASKID *at = &lvd_program_here()->tasks; *at;) {
    if ((*at)->maker == maker)
      lvd_task_forget(at);
    else
      at = &(*at)->next;
  }
}

/* ---- requests from other processes ----------------------------------------------------------- */

/* The task of this number, created by the first request about it. Under the lock. */
static TASKID task_of(lvd_unit *maker, const message *m) {
  uint32_t foreign = 0;
  TASKID t = lvd_program_here()->tasks;
  for (; t && (t->maker != maker || t->number != m->number); t = t->next)
    foreign += t->maker != NULL;
  if (t || foreign >= FOREIGN_TASKS_MAX) return t;
  if (!(t = lvd_task_enter(m->name, NULL, 0))) return NULL;
  t->maker = t->leads = maker;
  t->number = m->number;
  return t;
}

/* Fails if the caller is no process. A process can only name its own tasks. */
static lvd_status message_in(const lvd_call_frame *f, message *m) {
  if (!lvd_unit_caller() || f->argument_size != sizeof *m) return LVD_E_STATE;
  memcpy(m, f->argument, sizeof *m);
  m->name[sizeof m->name - 1] = 0;
  return m->number ? LVD_OK : LVD_E_STATE;
}

/* The task that the request names. On LVD_OK the lock is held. */
static lvd_status take_task(const lvd_call_frame *f, message *m, TASKID *t) {
  LVD_NO_ABANDON;
  lvd_status status = message_in(f, m);
  if (status != LVD_OK) return status;
  lvd_os_lock(&lvd_program_here()->lock);
  lvd_unit *from = lvd_unit_caller();
  if (!lvd_program_has(from))
    status = LVD_E_STATE; /* it has exited meanwhile, and its tasks are forgotten */
  else if (!(*t = task_of(from, m)))
    status = LVD_E_LIMIT;
  if (status != LVD_OK) lvd_os_unlock(&lvd_program_here()->lock);
  return status;
}

static lvd_status knows(lvd_call_frame *f) {
  message m;
  LVD_NO_ABANDON;
  lvd_status status = message_in(f, &m);
  if (status != LVD_OK) return status;
  if (lvd_task_procedure(m.name)) return LVD_OK;
  char near[LVD_TASK_NAME_BYTES] = "";
  lvd_task_closest_name(m.name, near);
  if (*near && f->result_room >= sizeof near) {
    memcpy(f->result, near, sizeof near);
    f->result_size = sizeof near;
  }
  return LVD_E_NOT_FOUND;
}

/* While a task runs, only its fiber can drop it. */
static lvd_status run(lvd_call_frame *f) {
  message m;
  TASKID t;
  lvd_status status = take_task(f, &m, &t);
  if (status != LVD_OK) return status;
  lvd_fiber *self = lvd_fiber_self();
  if (t->self)
    status = LVD_E_STATE;
  else
    t->self = self;
  lvd_os_unlock(&lvd_program_here()->lock);
  if (status != LVD_OK) return status;
  void (*function)(void *) = lvd_task_procedure(m.name);
  copy_name(self->name, m.name); /* for reports: all of them are srpc.run */
  self->started_as = LVD_STARTED_AS_TASK;
  if (function) lvd_task_call(t, function);
  lvd_numbers_leave(self);
  lvd_task_runs_as(t, NULL);
  return function ? LVD_OK : LVD_E_NOT_FOUND;
}

static lvd_status take_signal(lvd_call_frame *f) {
  LVD_NO_ABANDON;
  message m;
  TASKID t;
  lvd_status status = take_task(f, &m, &t);
  if (status != LVD_OK) return status;
  status = lvd_event_set(&t->signal, m.data);
  lvd_os_unlock(&lvd_program_here()->lock);
  return status;
}

static lvd_status release(lvd_call_frame *f) {
  message m;
  LVD_NO_ABANDON;
  lvd_status status = message_in(f, &m);
  if (status != LVD_OK) return status;
  const lvd_unit *from = lvd_unit_caller();
  lvd_os_lock(&lvd_program_here()->lock);
  TASKID *at = &lvd_program_here()->tasks, t;
  while ((t = *at) && (t->maker != from || t->number != m.number)) at = &t->next;
  if (t && !t->self) lvd_task_forget(at);
  lvd_os_unlock(&lvd_program_here()->lock);
  return LVD_OK;
}

__attribute__((constructor)) static void register_these(void) {
  lvd_procedure_register("srpc.knows", knows);
  lvd_procedure_register("srpc.run", run);
  lvd_procedure_register("srpc.signal", take_signal);
  lvd_procedure_register("srpc.release", release);
}
