/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Base of all other headers: statuses and compiler attributes. Freestanding; C17 and C++17. */
#ifndef LVD_BASE_H
#define LVD_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_VERSION_MAJOR 0
#define LVD_VERSION_MINOR 2

/* ABI version: the layout of everything that inline functions in these headers access. Compiled
 * networks and the shared library's soname carry it; a program and a library that differ refuse
 * each other. */
#define LVD_ABI_VERSION 10u

/* Distance in bytes between data of two writers, against false sharing. Twice the usual cache
 * line, since processors fetch lines in pairs. */
#define LVD_CACHE_LINE 128u

#define LVD_LIKELY(x)    __builtin_expect(!!(x), 1)
#define LVD_UNLIKELY(x)  __builtin_expect(!!(x), 0)
#define LVD_ALIGNED(n)   __attribute__((aligned(n)))
#define LVD_COLD         __attribute__((cold, noinline))
#define LVD_NORETURN     __attribute__((noreturn))
#define LVD_PRINTF(f, a) __attribute__((format(printf, f, a)))
#define LVD_API          __attribute__((visibility("default")))
/* Maximum number of bytes that a macro of these headers places in its caller's frame: a frame
 * without stack probes must not be able to skip the guard page of a fiber's stack. */
#define LVD_FRAME_MAX 4096u
#ifdef __cplusplus
#define LVD_STATIC_ASSERT(condition, sentence) static_assert(condition, sentence)
#else
#define LVD_STATIC_ASSERT(condition, sentence) _Static_assert(condition, sentence)
#endif
/* A rarely called function of a header: not inline, so that its caller can be inlined. */
#define LVD_NOINLINE static __attribute__((noinline, unused))

/* Returned by every call that can fail. lvd_status_name and lvd_status_text describe them. */
typedef enum lvd_status {
  LVD_OK = 0,
  LVD_E_ARGUMENT,  /* an argument is null, zero or out of range */
  LVD_E_MEMORY,    /* out of memory */
  LVD_E_LIMIT,     /* a limit was reached; lvd_status_text names it */
  LVD_E_SYSTEM,    /* a system call failed */
  LVD_E_ABI,       /* made for another ABI version of this library */
  LVD_E_STATE,     /* not possible in the present state */
  LVD_E_TIMEOUT,   /* the timeout has passed */
  LVD_E_EOF,       /* end of stream: no more elements will come */
  LVD_E_PEER_GONE, /* the other side is gone */
  LVD_E_FAULT,     /* an actor or procedure failed; the report says which and where */
  LVD_E_DEADLOCK,  /* deadlock; the report names the waiting entities and what each waits for */
  LVD_E_STOPPED,   /* stopped by request before its end */
  LVD_E_CORRUPT,   /* shared memory holds a value that the protocol cannot produce */
  LVD_E_CANCELLED, /* the waiting fiber was cancelled */
  LVD_E_NOT_FOUND, /* no object of that name: a procedure, a file, a device */
  LVD_E_MAPPINGS,  /* the system's limit of memory mappings per process (vm.max_map_count) */
  LVD_STATUS_COUNT
} lvd_status;

/* The name ("LVD_E_TIMEOUT") and a description of a status. Never null; static. Thread-safe. For
 * LVD_E_LIMIT the text says which limit the calling thread reached last, and how to raise it. */
LVD_API const char *lvd_status_name(lvd_status status);
LVD_API const char *lvd_status_text(lvd_status status);

#ifdef __cplusplus
}
#endif
#endif
