/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Faults: an actor that fails stops its own application, with a report, and no other.
 *
 * Checks in the code call lvd_actor_fail. Processor exceptions, and the clock for an action that
 * does not end, arrive as traps on the worker's own thread. Both leave the activation by a jump.
 *
 * Pair of orders
 *   record: store_release faulted 2 -> lvd_app_faulted: load_acquire        the report is whole */
#include "no_abandon.h"
#include "sched.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records the first fault of an application. `e` is null if the fault belongs to no actor. */
static void record(lvd_app *app, const lvd_entity *e, lvd_fault_kind kind, uint32_t line,
                   const char *message) {
  uint32_t none = 0;
  if (!lvd_cas_relaxed_u32(&app->faulted, &none, 1)) return;
  lvd_fault *f = &app->fault;
  f->kind = kind;
  if (e) {
    const lvd_actor_class *cls = e->actor.cls;
    const lvd_action_class *action =
        cls && cls->action && e->actor.action < cls->actions ? &cls->action[e->actor.action] : NULL;
    f->actor = e->name;
    f->action = action ? action->name : NULL;
    f->file = action && action->file ? action->file : cls ? cls->file : NULL;
    f->line = line ? line : action ? action->line : 0;
  }
  size_t n = strlen(message);
  if (n >= sizeof f->message) n = sizeof f->message - 1;
  memcpy(f->message, message, n);
  f->message[n] = 0;
  lvd_store_release_u32(&app->faulted, 2);
}

void lvd_fault_record(lvd_entity *e, lvd_fault_kind kind, uint32_t line, const char *message) {
  record(e->app, e, kind, line, message);
}

bool lvd_app_faulted(const lvd_app *app) { return lvd_load_acquire_u32(&app->faulted) == 2; }

bool lvd_app_fault(lvd_app *app, lvd_fault *out) {
  if (!app || !lvd_app_faulted(app)) return false;
  if (out) *out = app->fault;
  return true;
}

const char *lvd_current_app_name(void) {
  const lvd_worker *w = lvd_this_worker();
  return w && w->current && w->current->app ? w->current->app->name : NULL;
}

bool lvd_app_name_of_code(lvd_runtime *rt, const void *code, char *name, size_t size) {
  LVD_NO_ABANDON;
  bool found = false;
  if (!rt || !name || !size) return false;
  lvd_os_lock(&rt->lock);
  for (const lvd_app *app = rt->apps; app && !found; app = app->next) {
    found = (uintptr_t)code >= app->code_from && (uintptr_t)code < app->code_to;
    if (found) snprintf(name, size, "%s", app->name);
  }
  lvd_os_unlock(&rt->lock);
  return found;
}

/* Does a call run that a thread of the program has forked? Then its faults belong to the
 * program. */
static bool is_of_thread(const lvd_worker *w) {
  return w->current && w->current->is_fiber && lvd_fiber_is_of_thread(w->current);
}

LVD_NORETURN static void fail(lvd_worker *w, lvd_fault_kind kind, uint32_t line, const char *format,
                              va_list list) {
  char message[sizeof((lvd_fault *)0)->message];
  /* Not called from an actor: there is nothing to stop. */
  if (!w || !w->current || is_of_thread(w)) abort();
  w->abandonable = 0;
  vsnprintf(message, sizeof message, format, list);
  lvd_fault_record(w->current, kind, line, message);
  lvd_os_jump(w->escape);
}

void lvd_actor_fail(lvd_actor *self, lvd_fault_kind kind, uint32_t line, const char *format, ...) {
  (void)self; /* the current activation of this thread has failed */
  va_list list;
  va_start(list, format);
  fail(lvd_this_worker(), kind, line, format, list);
}

void lvd_native_fail(const char *format, ...) {
  va_list list;
  va_start(list, format);
  fail(lvd_this_worker(), LVD_FAULT_NATIVE, 0, format, list);
}

void lvd_native_end(void) {
  lvd_worker *w = lvd_this_worker();
  if (!w || !w->current || w->current->is_fiber)
    lvd_native_fail("lvd_native_end was called outside an actor");
  w->abandonable = 0;
  w->verdict = LVD_RUN_DONE; /* activate reads it */
  lvd_os_jump(w->escape);
}

void lvd_app_fail(lvd_app *app, const char *format, ...) {
  LVD_NO_ABANDON;
  char message[sizeof((lvd_fault *)0)->message];
  if (!app) return;
  va_list list;
  va_start(list, format);
  vsnprintf(message, sizeof message, format, list);
  va_end(list);
  record(app, NULL, LVD_FAULT_NATIVE, 0, message);
  lvd_app_end(app, LVD_E_FAULT); /* no effect if it ends already; then finish() reads it */
}

/* Handles an overflow where nothing may be abandoned: a lock may be held, and its next user would
 * hang. So the process ends, with a message. */
static void say_overflow(const lvd_worker *w, bool in_library) {
  const lvd_entity *e = w->current;
  bool fiber = e && e->is_fiber;
  const char *advice = e ? lvd_stack_advice(e) : "";
  char text[448];
  snprintf(
      text, sizeof text,
      "levada: stack overflow of %s '%.31s' of '%.31s' in %s; it cannot be stopped there, so the "
      "process ends%s%s\n",
      fiber ? "fiber" : "actor", e ? e->name : "", e ? e->app->name : "",
      in_library        ? "the C library"
      : !w->abandonable ? "the runtime"
                        : "a call that a thread has forked",
      *advice ? ": " : "", advice);
  lvd_os_fatal_message(text);
  if (e)
    lvd_hooks.child.record_crash(e->name,
                                 in_library ? "stack overflow in the C library" : "stack overflow");
}

/* A caller of abort, or a failed assertion, may hold any lock, so it cannot be stopped alone. The
 * process ends, with a message that names the code. */
static void say_abort(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e) return;
  const lvd_actor *a = &e->actor;
  bool fiber = e->is_fiber;
  const char *native = fiber ? NULL : a->native;
  const char *action = !fiber && a->cls->action && a->action < a->cls->actions
                           ? a->cls->action[a->action].name
                           : NULL;
  char text[448];
  snprintf(text, sizeof text,
           "levada: abort was called in %s '%.63s' of '%.63s'%s%.63s%s%.63s; the process ends\n",
           is_of_thread(w) ? "a call that a thread has forked in"
           : fiber         ? "fiber"
                           : "actor",
           e->name, e->app->name, action ? ", action " : "", action ? action : "",
           native ? ", native " : "", native ? native : "");
  lvd_os_fatal_message(text);
  lvd_hooks.child.record_crash(e->name, "abort was called");
}

/* A tick of the worker's clock. An actor that exceeds its time limit is abandoned: then it does not
 * return. */
static void tick(lvd_worker *w, const void *address, const void *at) {
  if (!w->leased.clocked) lvd_lease_tick(&w->leased); /* a host may have been started since */
  /* Two ticks in one activation: it should yield. Many: it does not end. */
  lvd_entity *e = w->current;
  if (!e) return;
  lvd_steal_time_update(w, lvd_os_ticks());
  uint64_t activations = lvd_load_relaxed_u64(&e->activations);
  uint64_t turn = lvd_load_relaxed_u64(&w->activations);
  if (e != w->clock_entity || activations != w->clock_activations || turn != w->clock_activation) {
    w->clock_entity = e;
    w->clock_activations = activations;
    w->clock_activation = turn;
    w->clock_ticks = 0;
  } else {
    w->clock_ticks++;
  }
  lvd_store_relaxed_u64(&e->clocked, activations + 1);
  lvd_exchange_relaxed_u32(&w->yield, 1);
  const lvd_actor *a = &w->current->actor;
  if (e->is_fiber) {
    lvd_count(&e->app->share[w->index].fiber_ticks, 1);
    lvd_preempt_fiber(w, address, at);
    return;
  }
  lvd_overrun_tick(w);
  bool ending = lvd_load_relaxed_u32(&w->current->app->phase) != LVD_PHASE_RUNNING;
  uint64_t limit_ns =
      ending ? (uint64_t)LVD_STOP_MS * LVD_MS_NS : w->rt->options.action_time_limit_ns;
  if (!limit_ns || lvd_clocked_ms(w) * LVD_MS_NS < limit_ns || !w->abandonable ||
      !(a->cls->flags & LVD_CLASS_ABANDONABLE) || a->native)
    return;
  w->abandonable = 0;
  if (!ending) {
    char text[sizeof((lvd_fault *)0)->message];
    snprintf(text, sizeof text, "an action that has not ended after %llu ms of CPU time",
             (unsigned long long)(limit_ns / LVD_MS_NS));
    lvd_fault_record(w->current, LVD_FAULT_TIME, 0, text);
  }
  lvd_os_jump(w->escape);
}

/* In signal context, on the worker's thread. */
void lvd_trap(void *self, lvd_os_trap trap, const void *address, const void *at) {
  lvd_worker *w = self;
  if (!w) return;
  char text[sizeof((lvd_fault *)0)->message];
  bool overflow = false;
  switch (trap) {
  case LVD_TRAP_TICK:
    tick(w, address, at);
    return;
  case LVD_TRAP_ALARM:
    lvd_store_relaxed_u64(&w->asks_at, 0);
    lvd_exchange_relaxed_u32(&w->yield, 1);
    return;
  case LVD_TRAP_SIGNAL:
    lvd_overrun_blocked(w, address, at);
    lvd_preempt_blocked(w, address, at);
    lvd_on_preempt(w, address, at);
    return;
  case LVD_TRAP_ABORT:
    say_abort(w);
    return;
  case LVD_TRAP_MEMORY:
    overflow = lvd_fiber_overflows(w, address);
    bool in_library = overflow && lvd_os_in_system_library(at);
    bool alone = w->abandonable && !in_library && !is_of_thread(w);
    if (overflow && !alone) say_overflow(w, in_library);
    if (!alone) return;
    if (overflow)
      lvd_stack_text(w->current, text, sizeof text);
    else
      snprintf(text, sizeof text, "bad access to memory at %p", address);
    break;
  case LVD_TRAP_ARITHMETIC:
    if (!w->abandonable || is_of_thread(w)) return;
    snprintf(text, sizeof text, "division by zero, or its result does not fit");
    break;
  case LVD_TRAP_ILLEGAL:
    if (!w->abandonable || is_of_thread(w)) return;
    snprintf(text, sizeof text, "illegal instruction");
    break;
  }
  w->abandonable = 0;
  lvd_fault_record(w->current,
                   overflow                      ? LVD_FAULT_STACK
                   : trap == LVD_TRAP_MEMORY     ? LVD_FAULT_MEMORY
                   : trap == LVD_TRAP_ARITHMETIC ? LVD_FAULT_DIVISION
                                                 : LVD_FAULT_ILLEGAL,
                   0, text);
  lvd_os_jump(w->escape);
}
