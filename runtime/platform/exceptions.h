/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a C++ exception is to its thread: those that are caught and not yet ended, and how many are
 * on their way. The C++ library keeps that for each thread, but it is a matter of the stack that
 * runs: whoever leaves a stack takes it along, and finds it again when the stack goes on.
 *
 * The symbol is weak: in a program without C++ it is null, and to ask is one test that is predicted.
 * What is stored there is laid down by the C++ ABI ("Itanium", 2.2.2), for every processor we
 * know. */
#ifndef LVD_EXCEPTIONS_H
#define LVD_EXCEPTIONS_H

#include <levada/base.h>

typedef struct lvd_os_exceptions {
  void *caught;
  unsigned uncaught;
} lvd_os_exceptions;

extern lvd_os_exceptions *__cxa_get_globals(void) __attribute__((weak));

/* Is there a C++ library? */
static inline bool lvd_os_may_have_exceptions(void) { return __cxa_get_globals; }

/* Has what runs an exception, caught or on its way? */
static inline bool lvd_os_has_exceptions(void) {
  if (LVD_LIKELY(!__cxa_get_globals)) return false;
  const lvd_os_exceptions *e = __cxa_get_globals();
  return e->caught || e->uncaught;
}

/* Takes them from the thread. Only if there may be some. */
static inline lvd_os_exceptions lvd_os_exceptions_save(void) {
  lvd_os_exceptions *e = __cxa_get_globals(), kept = *e;
  *e = (lvd_os_exceptions){NULL, 0};
  return kept;
}
static inline void lvd_os_exceptions_restore(const lvd_os_exceptions *kept) {
  *__cxa_get_globals() = *kept;
}

#endif
