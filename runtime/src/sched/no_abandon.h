/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Regions that may not be abandoned. When what a worker runs faults, it is abandoned by a jump
 * (fault.c), but not inside the runtime, where it may hold a lock, have incremented a count or be
 * linking a queue.
 *
 * Each public function that does such a thing begins with LVD_NO_ABANDON. It first checks that
 * the stack has as much room as the runtime may need, so that an overflow is found here, where
 * nothing is held yet, and the caller is abandoned as for any overflow. From there until the
 * function returns nothing is abandoned, neither by a fault nor by the clock. An overflow in the
 * region ends the process with a message (lvd_trap). Regions nest; only the outermost checks. */
#ifndef LVD_NO_ABANDON_H
#define LVD_NO_ABANDON_H

#include "../sched/fiber.h"

/* Bytes of stack that the runtime may need, including the C library and the dynamic loader at a
 * function's first call. A sanitizer needs more. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { LVD_NO_ABANDON_STACK = 8192 };
#else
enum { LVD_NO_ABANDON_STACK = 6144 };
#endif

/* The lowest byte of the stack in use on `w`; below it is the guard. */
static inline const unsigned char *lvd_stack_low(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  const lvd_fiber *f = !e ? NULL : e->is_fiber ? (const lvd_fiber *)e : e->stack;
  return f ? f->low + f->guard : w->low;
}

/* Is there enough stack? Called on `w` by what runs there. */
static inline bool lvd_no_abandon_has_room(const lvd_worker *w) {
  return (const unsigned char *)__builtin_frame_address(0) >=
         lvd_stack_low(w) + LVD_NO_ABANDON_STACK;
}

/* Is `sp` on the stack of the fiber that runs on `w`, rather than on a signal handler's stack? */
static inline bool lvd_on_stack_of_fiber(const lvd_worker *w, const void *sp) {
  const unsigned char *top = sp;
  return top >= lvd_stack_low(w) && top < (const unsigned char *)(const lvd_fiber *)w->current;
}

/* Is `at` in the code of the C program that runs on `w`, with `sp` on that fiber's stack?
 * If so, neither the runtime's code nor a library's is executing. */
static inline bool lvd_in_code_of_its_own(const lvd_worker *w, const void *sp, const void *at) {
  const lvd_app *app = w->current->app;
  return w->abandonable && (uintptr_t)at >= app->code_from && (uintptr_t)at < app->code_to &&
         lvd_on_stack_of_fiber(w, sp);
}

/* For a function that measures its stack, or overflows it on purpose: the address sanitizer must
 * not allocate redzones in its frame. */
#define LVD_BARE_STACK __attribute__((no_sanitize("address")))

/* Handles too little stack: abandons the caller. Returns if the caller must not be abandoned; it
 * then continues, and the room may suffice. */
LVD_COLD void lvd_no_abandon_overflow(lvd_worker *w);

/* Compiler barrier between a store that the trap handler reads and what it guards; both run on
 * this thread. */
static inline void lvd_no_abandon_mark(void) { __asm__ volatile("" ::: "memory"); }

static inline uint32_t lvd_no_abandon_begin(void) {
  lvd_worker *w = lvd_this_worker();
  if (!w) return 0;
  uint32_t could = w->abandonable;
  if (could && LVD_UNLIKELY(!lvd_no_abandon_has_room(w))) lvd_no_abandon_overflow(w);
  w->abandonable = 0;
  lvd_no_abandon_mark();
  return could;
}

/* It may have waited and be on another worker now. */
static inline void lvd_no_abandon_end(const uint32_t *could) {
  lvd_no_abandon_mark();
  lvd_worker *w = lvd_this_worker();
  if (w) w->abandonable = *could;
}

#define LVD_NO_ABANDON                                                                             \
  __attribute__((cleanup(lvd_no_abandon_end))) const uint32_t lvd_was_abandonable =                \
      lvd_no_abandon_begin()

#endif
