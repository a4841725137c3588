/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The shipped context switch, made safe for the checker: a check that fails on a fiber's stack is
 * abandoned by a panic, and no caller on that stack can catch it. So each fiber begins in the
 * checker (calls.guard), which catches the panic, switches to the worker's own stack and resumes it
 * there. */
#include "src/sched/fiber.h"

#define lvd_os_context_make   bare_make
#define lvd_os_context_switch bare_switch
#include "platform/context.c"
#undef lvd_os_context_make
#undef lvd_os_context_switch

/* The checker's side (trampoline.c). */
void model_guard(void (*entry)(void *), void *argument);
void model_landed(void);

/* The instrumented sources report every switch of stacks; the checker does not need it. */
void *__tsan_get_current_fiber(void) { return NULL; }
void *__tsan_create_fiber(unsigned flags) { return (void)flags, NULL; }
void __tsan_destroy_fiber(void *fiber) { (void)fiber; }
void __tsan_switch_to_fiber(void *fiber, unsigned flags) { (void)fiber, (void)flags; }

enum { CONTEXTS = 8 };
/* From which stack of a thread each fiber was last gone to. */
static struct { lvd_os_context *fiber, *home; } gone_to[CONTEXTS];
static uint32_t contexts;
static void (*fiber_entry)(void *);

void model_contexts_forget(void) { contexts = 0; }

static uint32_t index_of(const lvd_os_context *c) {
  uint32_t i = 0;
  while (i < contexts && gone_to[i].fiber != c) i++;
  return i;
}

/* A panic has ended the fiber. No word may be touched through the checker from here on, since there
 * may be no execution any more. */
__attribute__((no_sanitize("thread"))) static void begin_watched(void *argument) {
  model_guard(fiber_entry, argument);
  void *nowhere;
  lvd_context_swap(&nowhere, gone_to[index_of(&((lvd_fiber *)argument)->context)].home->sp);
}

void lvd_os_context_make(lvd_os_context *c, void *low, size_t size, void (*entry)(void *),
                         void *argument) {
  uint32_t i = index_of(c);
  if (i == contexts) gone_to[contexts++].fiber = c;
  fiber_entry = entry;
  bare_make(c, low, size, begin_watched, argument);
}

void lvd_os_context_switch(lvd_os_context *from, lvd_os_context *to, bool last) {
  uint32_t i = index_of(from), k = index_of(to);
  if (k < contexts) gone_to[k].home = i < contexts ? gone_to[i].home : from;
  bare_switch(from, to, last);
  model_landed();
}
