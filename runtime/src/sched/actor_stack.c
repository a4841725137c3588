/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The stack of an actor that can block: its run function is called on a separate stack, so that a
 * wait within it leaves the worker to others, and is resumed later.
 *
 * Stacks are borrowed. A worker has one at hand and switches to it for each such call, at the
 * cost of two fiber switches; an actor keeps it only while it waits. The stack belongs to a fiber
 * of the common pool; nothing else of that fiber is used. */
#include "../../platform/exceptions.h"
#include "fiber.h"
#include "restored_state.h"

/* As large as a thread's usual stack, since native code may need that; untouched pages use no
 * memory. */
enum { STACK_LOG2 = LVD_STACK_MOST };

/* As call_run in worker.c, except that it may return on another worker. */
static void call_run(lvd_worker *w) {
  lvd_entity *e = w->current;
  lvd_actor *a = &e->actor;
  w->abandonable = 1;
  lvd_fence_compiler();
  bool runs = LVD_LIKELY(e->initialised) || lvd_actor_init(e);
  lvd_run_result verdict = runs ? a->cls->run(a) : LVD_RUN_DONE;
  lvd_fence_compiler();
  w = lvd_this_worker();
  w->abandonable = 0;
  w->verdict = verdict;
}

/* Makes one call of run after the other, for any actor. */
static void stack_main(void *argument) {
  lvd_fiber *f = argument;
  for (;;) {
    call_run(lvd_this_worker());
    lvd_os_context_switch(&f->context, &lvd_this_worker()->home, false);
  }
}

bool lvd_stack_borrow(lvd_worker *w, lvd_entity *e) {
  lvd_fiber *f = w->stack;
  w->stack = NULL;
  if (!f) {
    if (lvd_fiber_take(w->rt, STACK_LOG2, &f) != LVD_OK) return false;
    lvd_os_context_make(&f->context, f->low + f->guard,
                        (size_t)((unsigned char *)f - f->low) - f->guard, stack_main, f);
  }
  f->forks = NULL;
  f->stolen = NULL;
  e->stack = f;
  return true;
}

void lvd_stack_enter(void *worker) {
  lvd_worker *w = worker;
  lvd_store_relaxed_u32(&w->current->call_pending, 0);
  if (LVD_UNLIKELY(w->current->stack->forks != NULL)) lvd_hooks.forks.resume(w, w->current->stack);
  lvd_os_context_switch(&w->home, &w->current->stack->context, false);
}

void lvd_stack_return(lvd_worker *w, lvd_entity *e, bool whole) {
  lvd_fiber *f = e->stack;
  e->stack = NULL;
  if (!whole) lvd_os_context_after_jump(&w->home);
  if (whole && !w->stack)
    w->stack = f;
  else
    lvd_fiber_put_back(w->rt, f);
}

void lvd_stack_suspend(lvd_worker *w, lvd_entity *e) {
  if (LVD_UNLIKELY(lvd_forks.head != w->fork_base)) lvd_hooks.forks.suspend(w, e->stack);
  bool any = lvd_os_has_exceptions(); /* a native in C++ may be handling an exception */
  lvd_os_exceptions kept = {NULL, 0};
  if (LVD_UNLIKELY(any)) kept = lvd_os_exceptions_save();
  lvd_os_context_switch(&e->stack->context, &w->home, false);
  if (LVD_UNLIKELY(any)) lvd_os_exceptions_restore(&kept);
}

void lvd_stacks_abandon_forks(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    const lvd_entity *e = &app->entity[i];
    if (e->stack && e->stack->forks) lvd_hooks.forks.abandon_suspended(app, e->stack);
  }
}

void lvd_stacks_free(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    lvd_entity *e = &app->entity[i];
    if (e->stack) lvd_fiber_put_back(app->rt, e->stack);
    e->stack = NULL;
  }
}
