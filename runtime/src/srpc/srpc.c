/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that uses the paper's API: how it starts, which processes it has loaded, and how all of
 * it is freed. */
#include <stdio.h>
#include <stdlib.h>

#include "../../platform/process.h"
#include "../amp/window.h"
#include "../ipc/link.h"
#include "../rpc/unit.h"
#include "../sched/no_abandon.h"
#include "srpc_program.h"

lvd_program_state lvd_program_of_process = {.numbers = &lvd_numbers_of_process};
lvd_a32 lvd_programs_hosted;
static _Thread_local lvd_status last_status;

/* Not inline: the caller may have waited, and continue on another thread. */
LVD_COLD TASKID lvd_no_task(lvd_status status) {
  last_status = status;
  return NULL;
}

LVD_COLD lvd_status pb_status(void) { return last_status; }

void pb_set_timeout(int64_t timeout_ns) {
  lvd_store_relaxed_u64(&lvd_program_here()->time_limit,
                        timeout_ns < 0 ? 0 : 1 + (uint64_t)timeout_ns);
}

int64_t lvd_program_limit(void) {
  return (int64_t)lvd_load_relaxed_u64(&lvd_program_here()->time_limit) - 1;
}

/* ---- processes ------------------------------------------------------------------------------- */

bool lvd_unit_lives(const lvd_unit *unit) { return unit && lvd_unit_state(unit) == LVD_OK; }

uint32_t lvd_program_others(lvd_unit *other[PB_PROCESSES + 1]) {
  uint32_t n = 0;
  lvd_unit *parent = lvd_unit_parent();
  lvd_os_lock(&lvd_program_here()->lock);
  if (lvd_unit_lives(parent)) other[n++] = parent;
  for (uint32_t i = 0; i < lvd_program_here()->units; i++)
    if (lvd_unit_lives(lvd_program_here()->unit[i])) other[n++] = lvd_program_here()->unit[i];
  for (uint32_t i = 0; i < n; i++) other[i]->held++;
  lvd_os_unlock(&lvd_program_here()->lock);
  return n;
}

bool lvd_program_has(const lvd_unit *unit) {
  bool has = unit == lvd_unit_parent();
  for (uint32_t i = 0; i < lvd_program_here()->units; i++)
    has |= unit == lvd_program_here()->unit[i];
  return has && lvd_unit_lives(unit);
}

void lvd_program_let_go(lvd_unit *const *other, uint32_t count) {
  lvd_os_lock(&lvd_program_here()->lock);
  for (uint32_t i = 0; i < count; i++) other[i]->held--;
  lvd_os_unlock(&lvd_program_here()->lock);
}

lvd_unit *lvd_program_last_unit(void) {
  for (uint32_t i = lvd_program_here()->units; i > 0; i--)
    if (lvd_unit_lives(lvd_program_here()->unit[i - 1])) return lvd_program_here()->unit[i - 1];
  return lvd_unit_lives(lvd_unit_parent()) ? lvd_unit_parent() : NULL;
}

lvd_unit *lvd_program_other(int process) {
  lvd_unit *other[PB_PROCESSES + 1], *found = NULL;
  uint32_t n = lvd_program_others(other);
  for (uint32_t i = 0; i < n && !found; i++)
    if (lvd_unit_process(other[i]) == process) {
      found = other[i];
      other[i] = other[--n];
    }
  lvd_program_let_go(other, n);
  return found;
}

static bool is_used(const lvd_unit *unit) {
  return unit->held || lvd_remote_task_is_used(unit) || lvd_numbers_are_used(unit);
}

/* A unit that is gone and no longer referred to; null: none. Under the lock. */
static lvd_unit *take_unused(void) {
  for (uint32_t i = 0; i < lvd_program_here()->units; i++) {
    lvd_unit *unit = lvd_program_here()->unit[i];
    if (lvd_unit_lives(unit) || is_used(unit)) continue;
    lvd_remote_task_forget(unit);
    lvd_program_here()->units--;
    memmove(&lvd_program_here()->unit[i], &lvd_program_here()->unit[i + 1],
            (lvd_program_here()->units - i) * sizeof *lvd_program_here()->unit);
    return unit;
  }
  return NULL;
}

static lvd_status too_many(void) { return lvd_limit("PB_PROCESSES are loaded"); }

static lvd_status cannot_load(const char *exec_name, lvd_status status) {
  const char *why = lvd_window_error_text(), *image;
  char hint[LVD_FIBER_NAME + 128] = "";
  if (status == LVD_E_NOT_FOUND && !strchr(exec_name, '/') && strlen(exec_name) < 100) {
    snprintf(hint, sizeof hint, "./%s", exec_name);
    if (lvd_os_program_exists(hint))
      snprintf(hint, sizeof hint, "; did you mean \"./%s\"?", exec_name);
    else
      hint[0] = 0;
  }
  if (lvd_board_of(exec_name, &image) && *why) return lvd_misuse(status, "pb_load: %.200s", why);
  if (status == LVD_E_PEER_GONE)
    why = "it has ended without a call of pb_boot, which serves";
  else if (status == LVD_E_TIMEOUT)
    why = "it has not called pb_boot, which serves, in time";
  else if (status == LVD_E_STATE)
    why = "threads load programs, procedures do not";
  else if (status == LVD_E_NOT_FOUND)
    why = "there is no such program";
  else
    why = lvd_status_text(status);
  return lvd_misuse(status, "pb_load(\"%.80s\"): %.100s%s", exec_name, why, hint);
}

static lvd_status load(const char *exec_name) {
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  lvd_unit *unit;
  lvd_remote_task_collect();
  do {
    lvd_os_lock(&lvd_program_here()->lock);
    unit = take_unused();
    if (lvd_program_here()->units == PB_PROCESSES) status = too_many();
    lvd_os_unlock(&lvd_program_here()->lock);
    if (unit) lvd_unit_unload(unit); /* if that fails, it is freed with the application */
  } while (unit);
  if (status != LVD_OK) return status;
  const lvd_unit_options o = {.may_call = "srpc."}; /* tasks of registered procedures */
  status = lvd_unit_load(lvd_program_here()->app, exec_name, &o, &unit);
  if (status != LVD_OK) return status;
  lvd_os_lock(&lvd_program_here()->lock);
  if (lvd_program_here()->units < PB_PROCESSES)
    lvd_program_here()->unit[lvd_program_here()->units++] = unit;
  else
    status = too_many(); /* other threads were faster; it is freed with the application */
  lvd_os_unlock(&lvd_program_here()->lock);
  lvd_link *link = lvd_unit_link(unit);
  lvd_os_lock(&link->lock);
  link->half_open = lvd_numbers_look;
  bool open = link->names != NULL;
  lvd_os_unlock(&link->lock);
  if (open) lvd_numbers_look(link);
  return status;
}

lvd_status pb_load(const char *exec_name) {
  if (!exec_name || lvd_os_process_is_self(exec_name)) return LVD_OK;
  lvd_status status = load(exec_name);
  return status == LVD_OK ? LVD_OK : cannot_load(exec_name, status);
}

int pb_process(void) {
  LVD_NO_ABANDON;
  lvd_os_lock(&lvd_program_here()->lock);
  int number = lvd_program_here()->units
                   ? (int)lvd_unit_process(lvd_program_here()->unit[lvd_program_here()->units - 1])
                   : 0;
  lvd_os_unlock(&lvd_program_here()->lock);
  return number;
}

/* ---- start-up and release -------------------------------------------------------------------- */

static lvd_status start_up(void) {
  LVD_NO_ABANDON;
  lvd_status status = LVD_OK;
  lvd_os_lock(&lvd_program_here()->lock);
  if (!lvd_load_acquire_u32(&lvd_program_here()->booted)) {
    free(lvd_program_here()->why);
    lvd_program_here()->why = NULL;
    lvd_program_here()->unwatched = false;
    status = lvd_runtime_create(NULL, &lvd_program_here()->rt);
    if (status == LVD_OK) {
      lvd_app_options o = {.name = "program"};
      status = lvd_app_open(lvd_program_here()->rt, &o, &lvd_program_here()->app);
      if (status != LVD_OK) lvd_runtime_destroy(lvd_program_here()->rt);
    }
    if (status == LVD_OK) lvd_store_release_u32(&lvd_program_here()->booted, 1);
  }
  lvd_os_unlock(&lvd_program_here()->lock);
  if (status != LVD_OK)
    lvd_misuse(status, "the runtime cannot be started: %.200s", lvd_status_text(status));
  return status;
}

lvd_status pb_boot(void) {
  if (lvd_load_acquire_u32(&lvd_program_here()->booted)) return LVD_OK;
  bool loaded = lvd_unit_is_loaded();
  lvd_status status = start_up();
  if (status != LVD_OK || !loaded) return status;
  status = lvd_unit_serve(lvd_program_here()->app);
  pb_finish();
  return status == LVD_OK ? LVD_E_STOPPED : status;
}

/* Text: why the program, or a process that it has loaded, has failed. `misused`: the first
 * misuse. */
static char *failure_text(lvd_status status, const char *misused) {
  lvd_fault fault;
  size_t size = lvd_app_wait_report(lvd_program_here()->app, NULL, 0) + sizeof fault + 100 +
                LVD_RECORD_INLINE_BYTES,
         at = 0;
  char *text = calloc(1, size);
  if (!text) return NULL;
  bool faulted = lvd_app_fault(lvd_program_here()->app, &fault);
  if (faulted)
    at = (size_t)snprintf(text, size, "%s: %s\n", fault.actor ? fault.actor : "program",
                          fault.message);
  if (faulted || status == LVD_OK)
    at += lvd_units_why(lvd_program_here()->app, text + at, size - at);
  else
    at += lvd_app_wait_report(lvd_program_here()->app, text, size);
  if (*misused && at < size) snprintf(text + at, size - at, "%s\n", misused);
  return text;
}

lvd_status pb_finish(void) {
  LVD_NO_ABANDON;
  if (!lvd_load_acquire_u32(&lvd_program_here()->booted)) return LVD_E_STATE;
  if (lvd_program_here()->hosted) return lvd_program_settle();
  if (lvd_fiber_self()) {
    char in[LVD_MISUSE_IN_BYTES];
    return lvd_misuse(LVD_E_STATE, "pb_finish()%s: a procedure would wait for its own end",
                      lvd_misuse_in(in));
  }
  lvd_numbers_leave(lvd_caller());
  lvd_app_close(lvd_program_here()->app);
  lvd_status status = lvd_app_wait(lvd_program_here()->app, lvd_program_limit());
  /* Tasks that were started in other processes and not waited for. */
  for (TASKID t = lvd_program_here()->tasks; t && status == LVD_OK; t = t->next)
    if (t->call) status = pb_wait(t);
  if (status == LVD_E_TIMEOUT) return status;
  lvd_remote_task_collect();
  lvd_numbers_watch_ends(lvd_program_here());
  if (status == LVD_OK) lvd_numbers_tell_unread();
  char misused[LVD_RECORD_INLINE_BYTES];
  lvd_status misuse = lvd_misuses_take(lvd_program_here(), misused);
  lvd_program_here()->why = failure_text(status, misused);
  lvd_numbers_free();                      /* a thread may be ending now */
  lvd_app_unload(lvd_program_here()->app); /* and its streams */
  lvd_runtime_destroy(lvd_program_here()->rt);
  lvd_tasks_free(lvd_program_here());
  lvd_remote_tasks_free(lvd_program_here());
  lvd_program_here()->units = 0;
  pb_set_timeout(-1);
  lvd_store_release_u32(&lvd_program_here()->booted, 0);
  return status == LVD_OK ? misuse : status;
}

const char *pb_error_text(void) {
  const char *why = lvd_program_here()->why;
  return why ? why : "";
}

/* ---- programs that are loaded as applications ------------------------------------------------ */

/* For a thread that is no worker: the process's. */
lvd_program_state *lvd_program_of_app(void) {
  const lvd_worker *w = lvd_this_worker();
  const lvd_app *app = w && w->current ? w->current->app : NULL;
  return app && app->program ? app->program : &lvd_program_of_process;
}

lvd_status lvd_program_adopt(lvd_app *app, const struct lvd_program *hosted) {
  lvd_program_state *p = calloc(1, sizeof *p);
  struct lvd_numbers *numbers = p ? lvd_numbers_make() : NULL;
  if (!numbers) {
    free(p);
    return LVD_E_MEMORY;
  }
  p->hosted = hosted;
  p->rt = app->rt;
  p->app = app;
  p->numbers = numbers;
  lvd_store_relaxed_u32(&p->booted, 1);
  app->program = p;
  lvd_add_relaxed_u32(&lvd_programs_hosted, 1);
  return LVD_OK;
}

/* A task that was started and not waited for; null: none. */
static TASKID started(void) {
  lvd_os_lock(&lvd_program_here()->lock);
  TASKID t = lvd_program_here()->tasks;
  const lvd_fiber *self = lvd_fiber_self();
  while (t && ((!t->fiber && !t->call) || t->awaited || t->self == self)) t = t->next;
  lvd_os_unlock(&lvd_program_here()->lock);
  return t;
}

lvd_status lvd_program_settle(void) {
  lvd_status status = LVD_OK;
  lvd_numbers_leave(lvd_caller());
  for (TASKID t; status == LVD_OK && (t = started());) status = pb_wait(t);
  lvd_remote_task_collect();
  if (status != LVD_OK) return status;
  lvd_numbers_tell_unread();
  return lvd_misuses_take(lvd_program_here(), lvd_program_here()->misused);
}

/* Nothing of it runs any more; its streams and units still exist. */
void lvd_program_unwatch(lvd_app *app) {
  if (app->program) lvd_numbers_watch_ends(app->program);
}

void lvd_program_part(lvd_app *app) {
  lvd_program_state *p = app->program;
  if (!p) return;
  app->program = NULL;
  lvd_tasks_free(p);
  lvd_remote_tasks_free(p);
  lvd_numbers_drop(p->numbers);
  lvd_add_relaxed_u32(&lvd_programs_hosted, UINT32_MAX);
  free(p);
}
