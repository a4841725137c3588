/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* State of C++ exceptions: those that are caught and not finished, and the number of uncaught ones.
 * The C++ library keeps it per thread, but it belongs to the stack: code that leaves a stack saves
 * it, and restores it when the stack resumes.
 *
 * The symbol is weak: in a program without C++ it is null, and the check is a predictable branch.
 * The layout is specified by the Itanium C++ ABI (2.2.2) for every processor we know. */
#ifndef LVD_EXCEPTIONS_H
#define LVD_EXCEPTIONS_H

#include <levada/base.h>

typedef struct lvd_os_exceptions {
  void *caught;
  unsigned uncaught;
} lvd_os_exceptions;

extern lvd_os_exceptions *__cxa_get_globals(void) __attribute__((weak));

/* True: the program contains the C++ library. */
static inline bool lvd_os_may_have_exceptions(void) { return __cxa_get_globals; }

/* True: the running code has a caught or uncaught exception. */
static inline bool lvd_os_has_exceptions(void) {
  if (LVD_LIKELY(!__cxa_get_globals)) return false;
  const lvd_os_exceptions *e = __cxa_get_globals();
  return e->caught || e->uncaught;
}

/* Saves and clears it. Only if lvd_os_may_have_exceptions. */
static inline lvd_os_exceptions lvd_os_exceptions_save(void) {
  lvd_os_exceptions *e = __cxa_get_globals(), kept = *e;
  *e = (lvd_os_exceptions){NULL, 0};
  return kept;
}
static inline void lvd_os_exceptions_restore(const lvd_os_exceptions *kept) {
  *__cxa_get_globals() = *kept;
}

#endif
