/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fiber: a procedure with a stack of its own that can wait. Fibers run on the same workers as
 * actors, so a thousand waiting fibers need no threads beyond the workers.
 *
 * A fiber belongs to an application and to one worker. It runs until it waits (lvd_wait_*,
 * streams, lvd_fiber_yield). A running fiber is not interrupted for another one, with two
 * exceptions: for an urgent one; and a fiber of a C program that is loaded into a host (program.h)
 * is suspended by a signal when it computes for longer than a time slice while other work is ready.
 * A fiber migrates only when its core is removed (lvd_core_reserve), and only while it waits: so do
 * not keep the address of a thread-local variable, errno included, across a wait.
 *
 * Each stack has a guard page: an overflow, also one found at the entry of a call of this library,
 * is a fault that names the fiber (LVD_FAULT_STACK) and ends its application only. An overflow
 * inside the C library, where a lock of the whole process may be held, ends the process with a
 * line on standard error that names the fiber. C++ exception state is per fiber, also across
 * waits; an exception that leaves the procedure calls std::terminate.
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: the pCore thread of a remote procedure. */
#ifndef LVD_FIBER_H
#define LVD_FIBER_H

#include <levada/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_fiber lvd_fiber;

/* Where a fiber runs (lvd_fiber_options.place): one of these. The running set has the workers of
 * cores that have not been removed. */
#define LVD_ANYWHERE      0u /* the workers of the running set, round-robin */
#define LVD_HERE          1u /* the caller's worker; from other threads like LVD_ANYWHERE */
#define LVD_WORKER(index) ((index) + 2u)

typedef struct lvd_fiber_options {
  const char *name; /* for reports; copied, at most 31 bytes; null: "fiber" */
  int32_t priority; /* 0 normal; higher runs first; clamped to -4 ... 3 */
  uint32_t place;   /* LVD_ANYWHERE, LVD_HERE, LVD_WORKER(i) */
  size_t stack;     /* bytes, rounded up to 16 KiB * 2^k, at most 8 MiB; 0: 64 KiB */
  /* it preempts what runs on its core, by running on a second thread of the core, in a real-time
   * scheduling class if the system allows it */
  bool urgent;
} lvd_fiber_options;

/* Starts body(argument) as a fiber of `app`, which must be running. `options` may be null. With
 * `out` the caller owns the handle and must call lvd_fiber_join; otherwise the fiber is freed when
 * it ends. From any thread, fiber or actor. Errors: LVD_E_MEMORY; LVD_E_LIMIT: there are as many
 * actors and fibers as lvd_runtime_options.entities (smaller stacks that are kept for reuse count);
 * LVD_E_MAPPINGS: the system's limit of memory mappings; LVD_E_STATE: the application is not
 * running. */
LVD_API lvd_status lvd_fiber_start(lvd_app *app, void (*body)(void *argument), void *argument,
                                   const lvd_fiber_options *options, lvd_fiber **out);

/* Waits at most `timeout_ns` ns (negative: no limit) until the fiber has ended, and frees the
 * handle: LVD_OK; LVD_E_FAULT or LVD_E_STOPPED: it has ended, but its procedure did not return. A
 * wait that ends early (LVD_E_TIMEOUT; LVD_E_CANCELLED: the caller was cancelled; and the like)
 * leaves the handle valid; join again. */
LVD_API lvd_status lvd_fiber_join(lvd_fiber *f, int64_t timeout_ns);

/* Makes all waits of the fiber, current and future, return LVD_E_CANCELLED. The fiber then has to
 * return by itself. From any thread, until lvd_fiber_join has freed the handle. */
LVD_API void lvd_fiber_cancel(lvd_fiber *f);

/* The fiber that runs on this thread; null on any other. */
LVD_API lvd_fiber *lvd_fiber_self(void);
/* Fiber-local storage: the address of one pointer that belongs to the current fiber, null when the
 * fiber starts. Used by liblevada-mcapi for the fiber's MCAPI node. Returns null if the caller is
 * no fiber. */
LVD_API void **lvd_fiber_local(void);
/* The name of the fiber, "" if `f` is null. Owned by the fiber. */
LVD_API const char *lvd_fiber_name(const lvd_fiber *f);

/* Lets others of the same or a higher priority run first. No effect outside of fibers. */
LVD_API void lvd_fiber_yield(void);

/* Suspends the calling fiber for `ns` nanoseconds: LVD_OK, or earlier LVD_E_CANCELLED or
 * LVD_E_STOPPED. A caller that is a thread sleeps. */
LVD_API lvd_status lvd_fiber_sleep(int64_t ns);

/* lvd_run_blocking (native.h) can be called in fibers too. */

typedef struct lvd_fiber_counters {
  char name[32];
  uint32_t worker;
  uint64_t activations; /* times it was resumed */
  uint64_t busy_ns;     /* ns; estimated by measuring one of 64 activations */
  uint64_t longest_ns;  /* ns; the longest of the measured ones */
  bool waiting;
} lvd_fiber_counters;

/* Fills at most *count records, and sets *count to the number of fibers of the application. */
LVD_API lvd_status lvd_app_fibers(lvd_app *app, lvd_fiber_counters *fiber, uint32_t *count);

/* Creates and starts an application without a network, for fibers. lvd_app_close declares that no
 * further fiber will be started from outside: the application ends when it was closed and all its
 * fibers have ended. `options` may be null. The caller waits for the end by lvd_app_wait, and frees
 * *out by lvd_app_unload. Errors are those of lvd_app_load. */
LVD_API lvd_status lvd_app_open(lvd_runtime *rt, const lvd_app_options *options, lvd_app **out);
LVD_API void lvd_app_close(lvd_app *app);

#ifdef __cplusplus
}
#endif
#endif
