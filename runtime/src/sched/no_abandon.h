/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Inside: what a worker runs may be abandoned by a jump when it faults (fault.c), but not inside of
 * the runtime, where it may hold a lock, have counted something or be about to link a queue.
 *
 * Each public function that does such a thing begins with LVD_NO_ABANDON. First it looks whether as much
 * of the stack is left as the runtime may need, so that an overflow is found here, where nothing is
 * held yet: then the caller is abandoned, as for any overflow. From there until the function returns
 * nothing is abandoned, neither by a fault nor by the clock; what overflows nevertheless ends the
 * process, with a word (lvd_trap). They nest: only the outermost looks. */
#ifndef LVD_SRC_INSIDE_H
#define LVD_SRC_INSIDE_H

#include "../sched/fiber.h"

/* Bytes of its caller's stack that the runtime may need, the C library and the loader at a function's
 * first call included; a sanitizer keeps books there, too. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { LVD_NO_ABANDON_STACK = 8192 };
#else
enum { LVD_NO_ABANDON_STACK = 6144 };
#endif

/* The lowest byte of the stack of what runs on `w`; below it lies its guard. */
static inline const unsigned char *lvd_stack_low(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  const lvd_fiber *f = !e ? NULL : e->is_fiber ? (const lvd_fiber *)e : e->stack;
  return f ? f->low + f->guard : w->low;
}

/* Is there enough? What runs on `w` calls. */
static inline bool lvd_no_abandon_has_room(const lvd_worker *w) {
  return (const unsigned char *)__builtin_frame_address(0) >=
         lvd_stack_low(w) + LVD_NO_ABANDON_STACK;
}

/* Does `sp` lie on the stack of the fiber that runs on `w`? Not on a signal handler's then. */
static inline bool lvd_on_stack_of_fiber(const lvd_worker *w, const void *sp) {
  const unsigned char *top = sp;
  return top >= lvd_stack_low(w) && top < (const unsigned char *)(const lvd_fiber *)w->current;
}

/* Is it the program's own code that goes on at `at`, with its stack at `sp`, on the stack of the fiber of a C program
 * that runs on `w`? Not the runtime's then, nor a library's. */
static inline bool lvd_in_code_of_its_own(const lvd_worker *w, const void *sp, const void *at) {
  const lvd_app *app = w->current->app;
  return w->abandonable && (uintptr_t)at >= app->code_from && (uintptr_t)at < app->code_to &&
         lvd_on_stack_of_fiber(w, sp);
}

/* A function that measures its stack, or goes past its end on purpose: the address sanitizer must lay
 * out nothing of its own there. */
#define LVD_BARE_STACK __attribute__((no_sanitize("address")))

/* There is not: abandons it. Returns where it must not be abandoned: then it goes on, and perhaps it
 * is enough. */
LVD_COLD void lvd_no_abandon_overflow(lvd_worker *w);

/* Between a store that the handler of a trap reads and what it guards: for the compiler alone, since
 * both are this thread's. */
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

/* On another worker, perhaps: it may have waited. */
static inline void lvd_no_abandon_end(const uint32_t *could) {
  lvd_no_abandon_mark();
  lvd_worker *w = lvd_this_worker();
  if (w) w->abandonable = *could;
}

#define LVD_NO_ABANDON                                                                             \
  __attribute__((cleanup(lvd_no_abandon_end))) const uint32_t lvd_was_abandonable =                \
      lvd_no_abandon_begin()

#endif
