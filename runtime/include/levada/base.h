/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What every other header stands on: statuses, and the few compiler words we need.
 * Freestanding; C17 and C++17. */
#ifndef LVD_BASE_H
#define LVD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_VERSION_MAJOR 0
#define LVD_VERSION_MINOR 1

/* The layout of everything that inline functions in these headers touch. Compiled networks and the
 * shared library's soname carry it; a program and a library that disagree refuse each other. */
#define LVD_LAYOUT 8u

/* The spacing that keeps two writers off each other's cache lines. Twice the usual line, since
 * processors fetch lines in pairs. */
#define LVD_LINE 128u

#define LVD_LIKELY(x)    __builtin_expect(!!(x), 1)
#define LVD_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define LVD_ALIGNED(n)   __attribute__((aligned(n)))
#define LVD_COLD         __attribute__((cold, noinline))
#define LVD_NORETURN     __attribute__((noreturn))
#define LVD_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define LVD_API          __attribute__((visibility("default")))
/* Bytes that a macro of these headers puts into the frame of its caller, at most: a frame without stack probes must not
 * be able to pass over the guard below a fiber's stack. */
#define LVD_FRAME_MAX 4096u
#ifdef __cplusplus
#define LVD_STATIC_ASSERT(condition, sentence) static_assert(condition, sentence)
#else
#define LVD_STATIC_ASSERT(condition, sentence) _Static_assert(condition, sentence)
#endif
/* A function of a header that is called seldom: not inline, so that what calls it may be. */
#define LVD_APART static __attribute__((noinline, unused))

/* Every call that can fail returns one of these; lvd_status_name and lvd_status_text say them. */
typedef enum lvd_status {
  LVD_OK = 0,
  LVD_E_ARGUMENT,  /* an argument is null, zero or out of range */
  LVD_E_MEMORY,    /* the operating system gave no memory */
  LVD_E_LIMIT,     /* a limit is reached; lvd_status_text names it */
  LVD_E_SYSTEM,    /* a system call failed */
  LVD_E_LAYOUT,    /* made for another layout of this library */
  LVD_E_STATE,     /* not possible in the present state */
  LVD_E_TIME,      /* the time limit passed */
  LVD_E_ENDED,     /* end of stream: nothing more will come */
  LVD_E_PEER,      /* the other side is gone */
  LVD_E_FAULT,     /* an actor or a procedure failed; the report says which and where */
  LVD_E_DEADLOCK,  /* nothing can move; the report says who waits for whom */
  LVD_E_STOPPED,   /* stopped from outside before its end */
  LVD_E_CORRUPT,   /* shared memory holds what the protocol cannot have written */
  LVD_E_CANCELLED, /* the fiber that waits was cancelled */
  LVD_E_UNKNOWN,   /* there is nothing of that name: a procedure, a file, a device */
  LVD_E_MAPPINGS,  /* the system's number of memory mappings for a process (vm.max_map_count) */
  LVD_STATUS_COUNT
} lvd_status;

/* "LVD_E_TIME", and "the time limit passed". Never null. Thread-safe. For LVD_E_LIMIT the text says
 * which limit was reached last on the calling thread, and what raises it. */
LVD_API const char *lvd_status_name(lvd_status status);
LVD_API const char *lvd_status_text(lvd_status status);

#ifdef __cplusplus
}
#endif
#endif
