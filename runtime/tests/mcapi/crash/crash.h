/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Included first into the MCAPI sources under test: after each store to shared memory, and in the
 * middle of each copy, the process may be ended. The sources themselves are unchanged. */
#ifndef LVD_CRASH_H
#define LVD_CRASH_H

#include <stddef.h>
#include <string.h>

void lvd_crash_point(const volatile void *at);

static inline void lvd_crash_copy(void *to, const void *from, size_t size) {
  memcpy(to, from, size / 2);
  lvd_crash_point(to);
  memcpy((char *)to + size / 2, (const char *)from + size / 2, size - size / 2);
  lvd_crash_point(to);
}

/* A macro is not expanded within itself, so these use the builtins. */
#define memcpy(to, from, size)             lvd_crash_copy(to, from, size)
#define __atomic_store_n(at, value, order) (__atomic_store_n(at, value, order), lvd_crash_point(at))
#define __atomic_exchange_n(at, value, order)                                                      \
  __extension__({                                                                                  \
    __typeof__(*(at)) before_ = __atomic_exchange_n(at, value, order);                             \
    lvd_crash_point(at);                                                                           \
    before_;                                                                                       \
  })
#define __atomic_fetch_add(at, value, order)                                                       \
  __extension__({                                                                                  \
    __typeof__(*(at)) before_ = __atomic_fetch_add(at, value, order);                              \
    lvd_crash_point(at);                                                                           \
    before_;                                                                                       \
  })
#define __atomic_compare_exchange_n(at, expected, value, weak, well, badly)                        \
  __extension__({                                                                                  \
    _Bool done_ = __atomic_compare_exchange_n(at, expected, value, weak, well, badly);             \
    lvd_crash_point(at);                                                                           \
    done_;                                                                                         \
  })

#endif
