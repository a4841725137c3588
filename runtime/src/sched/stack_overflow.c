/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stack overflow: detection and report. */
#include "no_abandon.h"

#include <stdio.h>

enum { THREAD_GUARD_BYTES = 1 << 16 }; /* upper bound of the guard below a thread's stack */

/* What the user can do to get a larger stack, by the interface that started the fiber. Runs in
 * signal context. */
const char *lvd_stack_advice(const lvd_entity *e) {
  static const char *const larger[] = {
      [LVD_STARTED_AS_FIBER] = "lvd_fiber_options.stack makes it larger",
      [LVD_STARTED_AS_CALL] = "lvd_call_options.stack makes it larger",
      [LVD_STARTED_AS_TASK] = "pb_stack_size makes the stacks of tasks larger"};
  if (!e->is_fiber && !e->stack)
    return "an actor has the stack of its worker's thread: ulimit -s makes that larger";
  const lvd_fiber *f = e->is_fiber ? (const lvd_fiber *)e : e->stack;
  if (!f->stolen && f->size_log2 >= LVD_STACK_MOST) /* as the main function of a program has */
    return "it has 8 MiB, the most that a fiber can have: allocate large objects on the heap";
  if (!f->stolen) return larger[f->started_as];
  return "the stack of a stolen call is as large as the largest of a thread that forks, from 8 MiB "
         "to 1 GiB: "
         "ulimit -s or the thread's attributes make that larger";
}

void lvd_stack_text(const lvd_entity *e, char *text, size_t size) {
  const char *advice = lvd_stack_advice(e);
  snprintf(text, size, "stack overflow%s%s", *advice ? ": " : "", advice);
}

bool lvd_fiber_overflows(const lvd_worker *w, const void *address) {
  const lvd_entity *e = w->current;
  const lvd_fiber *f = !e ? NULL : e->is_fiber ? (const lvd_fiber *)e : e->stack;
  const unsigned char *at = address, *low = lvd_stack_low(w);
  return at < low && at >= low - (f ? f->guard : THREAD_GUARD_BYTES);
}

/* Reporting needs stack space, too. So this overflows on purpose, at a point where no lock is
 * held: the trap handler has a stack of its own. */
LVD_BARE_STACK void lvd_no_abandon_overflow(lvd_worker *w) {
  lvd_entity *e = w->current;
  if (e->is_fiber && ((const lvd_fiber *)e)->of_thread)
    return;                 /* the fault belongs to the program */
#ifndef __SANITIZE_THREAD__ /* it handles the signals itself */
  *(volatile unsigned char *)(uintptr_t)(lvd_stack_low(w) - 1) = 0;
#endif
  w->abandonable = 0;
  char text[sizeof((lvd_fault *)0)->message];
  lvd_stack_text(e, text, sizeof text);
  lvd_fault_record(e, LVD_FAULT_STACK, 0, text);
  lvd_os_jump(w->escape);
}
