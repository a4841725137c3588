/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The unit that is the parent, in a process that was loaded: it serves until its application has
 * ended, or the parent ends it or has exited. */
#include <stdio.h>
#include <stdlib.h>

#include "../deadlock/deadlock_detect.h"
#include "../rpc/unit.h"
#include "../rpc/unit_process.h"
#include "../sched/no_abandon.h"

static lvd_aptr parent_unit;

void lvd_process_forget_parent(void) { lvd_store_release_ptr(&parent_unit, NULL); }

/* A procedure does not return, and its result is not awaited: ends the process after
 * LVD_GRACE_NS. */
static void watch(void *argument) {
  lvd_process *p = argument;
  if (lvd_event_wait(&p->over, NULL, LVD_GRACE_NS) != LVD_OK) lvd_os_process_exit();
}

static void child_ended(lvd_link *link, lvd_status why) {
  lvd_process *p = lvd_process_of(link);
  p->why = why;
  lvd_process_fail_calls(p, why == LVD_OK ? LVD_E_STOPPED : why);
  if (!p->watch) lvd_os_thread_start(&p->watch, -1, "levada/watch", watch, p);
  lvd_app_end(p->unit.app, LVD_E_STOPPED);
}

/* Reports the fault of the application, if it has one. */
static void send_fault(lvd_process *p) {
  lvd_fault fault;
  if (!lvd_app_fault(p->unit.app, &fault)) return;
  lvd_record r = {.kind = LVD_RECORD_FAULT, .size = (uint32_t)strlen(fault.message)};
  _Static_assert(sizeof fault.message <= sizeof r.data, "it fits");
  memcpy(r.data, fault.message, r.size);
  if (fault.actor) snprintf(r.name, sizeof r.name, "%s", fault.actor);
  lvd_link_send(&p->link, &r);
}

void lvd_process_record_crash(const char *subject, const char *what) {
  const lvd_process *p = lvd_load_acquire_ptr(&parent_unit);
  uint32_t none = 0;
  if (!p || !lvd_cas_relaxed_u32(&p->link.segment->crash, &none, LVD_CRASH_WRITING)) return;
  snprintf(p->link.segment->last_words, LVD_CRASH_TEXT_BYTES, "%.63s: %s", subject, what);
  lvd_store_release_u32(&p->link.segment->crash, LVD_CRASH_WRITTEN);
}

/* exit() was called on a worker, rather than at the program's end. */
static void exits(int status) {
  const lvd_worker *w = lvd_this_worker();
  char what[64];
  if (!w || !w->current) return;
  snprintf(what, sizeof what, "exit(%d) was called", status);
  lvd_process_record_crash(w->current->name, what);
}

static void exits_quickly(void) {
  const lvd_worker *w = lvd_this_worker();
  if (w && w->current) lvd_process_record_crash(w->current->name, "quick_exit was called");
}

bool lvd_unit_is_loaded(void) { return getenv(LVD_UNIT_VARIABLE) != NULL; }

lvd_unit *lvd_unit_parent(void) { return lvd_load_acquire_ptr(&parent_unit); }

static lvd_status serve(lvd_app *app, int memory, int bell) {
  lvd_process *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  p->unit.kind = &lvd_process_kind;
  p->unit.app = app;
  lvd_event_init(&p->over);
  p->link.take = lvd_process_takes;
  p->link.look = lvd_deadlock_probe_run;
  p->link.ended = child_ended;
  p->why = LVD_E_STATE; /* not told to end */
  snprintf(p->unit.name, sizeof p->unit.name, "the parent");
  lvd_status status = lvd_link_join(&p->link, app, memory, bell);
  if (status != LVD_OK) {
    lvd_process_unlink(p);
    free(p);
    return status;
  }
  lvd_unit_enter(&p->unit);
  lvd_store_release_ptr(&parent_unit, &p->unit);
  lvd_os_at_exit(exits); /* once: a process is loaded once */
  lvd_os_at_quick_exit(exits_quickly);
  status = lvd_link_begin(&p->link, "levada/bell");
  if (status != LVD_OK) return status;
  status = lvd_app_wait(app, -1);
  send_fault(p);
  lvd_process_answer_the_rest(p, status);
  lvd_link_await_sent(&p->link, LVD_GRACE_NS / 2);
  lvd_link_end(&p->link);
  lvd_event_set(&p->over, 1);
  if (p->watch) lvd_os_thread_join(p->watch);
  return status == LVD_E_STOPPED && p->why != LVD_E_STATE ? p->why : status;
}

lvd_status lvd_unit_serve(lvd_app *app) {
  const char *value = getenv(LVD_UNIT_VARIABLE);
  int memory, bell;
  if (!value || sscanf(value, "%d,%d", &memory, &bell) != 2) return LVD_E_STATE;
  /* Programs that this process starts must not take themselves for units. */
  lvd_os_unset_variable(LVD_UNIT_VARIABLE);
  lvd_os_set_close_on_exec(memory);
  lvd_os_set_close_on_exec(bell);
  if (app) return serve(app, memory, bell);
  const lvd_app_options o = {.name = "unit"};
  lvd_runtime *rt;
  lvd_status status = lvd_runtime_create(NULL, &rt);
  if (status != LVD_OK) return status;
  status = lvd_app_open(rt, &o, &app);
  if (status == LVD_OK) {
    status = serve(app, memory, bell);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
  return status;
}
