/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fiber: a procedure with a stack of its own, that can wait. Fibers run on the same workers as
 * actors; a thousand that wait need no thousand threads.
 *
 * A fiber belongs to an application and to one worker; nothing takes the worker from it but its own
 * waits (lvd_wait_*, streams, lvd_fiber_yield). It moves to another worker only when its core is
 * taken (lvd_core_take), and only while it waits: C code that is in two minds about where it runs
 * should not keep the address of a thread-local variable, errno's included, across a wait.
 *
 * Stacks have a guard below: an overflow is a fault that names the fiber (LVD_FAULT_STACK), and
 * ends its application alone; in a call of this library, too, which finds that too little is left
 * before it begins. In the C library, where a lock of the whole process may be held, it ends the
 * process, with a line on the standard error that names the fiber. C++ exceptions are a fiber's own, over its waits too; one that leaves
 * its procedure ends the program (std::terminate).
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: the thread of pCore that a remote procedure
 * is. */
#ifndef LVD_FIBER_H
#define LVD_FIBER_H

#include <levada/runtime.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_fiber lvd_fiber;

/* Where a fiber runs: LVD_WORKER(index), or one of the first two. */
#define LVD_ANYWHERE      0u /* the workers of the running set, in turn */
#define LVD_HERE          1u /* the worker of the caller; for a thread that is none, anywhere */
#define LVD_WORKER(index) ((index) + 2u)

typedef struct lvd_fiber_options {
  const char *name; /* for reports; copied, at most 31 bytes; null: "fiber" */
  int32_t priority; /* 0 usual; higher goes first; -4 ... 3, beyond: the nearest */
  uint32_t place;   /* LVD_ANYWHERE, LVD_HERE, LVD_WORKER(i) */
  size_t stack;     /* bytes; rounded up to 16 KiB * 2^k, at most 8 MiB; 0: 64 KiB */
  bool urgent;      /* preempts what runs on its core: a second thread of the core, in a higher
                        scheduling class as far as the system allows it */
} lvd_fiber_options;

/* Starts body(argument) as a fiber of `app`, which has been started and has not ended. `options`
 * may be null. With `out` the caller must give the fiber back by lvd_fiber_join; without, it goes
 * by itself. From any thread, fiber or actor. Errors: LVD_E_MEMORY; LVD_E_LIMIT
 * (lvd_runtime_options.entities: those that live, and smaller stacks that lie ready);
 * LVD_E_MAPPINGS (the system's number of mappings); LVD_E_STATE (the application does not run). */
LVD_API lvd_status lvd_fiber_start(lvd_app *app, void (*body)(void *argument), void *argument,
                                   const lvd_fiber_options *options, lvd_fiber **out);

/* Waits until it has ended, and gives it back: LVD_OK, or LVD_E_FAULT, LVD_E_STOPPED for one that
 * did not return by itself. LVD_E_TIME and the like: it is still there, and joined another time. */
LVD_API lvd_status lvd_fiber_join(lvd_fiber *f, int64_t timeout_ns);

/* Every wait of it, now and from now on, returns LVD_E_CANCELLED. It has to return by itself. */
LVD_API void lvd_fiber_cancel(lvd_fiber *f);

/* The fiber that runs on this thread; null on any other. */
LVD_API lvd_fiber *lvd_fiber_self(void);
/* A word of the fiber that runs on this thread, for the library on which its node rests (MCAPI); null
 * when the fiber begins. A null pointer on any other thread. */
LVD_API void **lvd_fiber_word(void);
LVD_API const char *lvd_fiber_name(const lvd_fiber *f);

/* Lets others of the same or a higher priority go first. Fibers only; else it does nothing. */
LVD_API void lvd_fiber_yield(void);

/* Waits so long: LVD_OK, or LVD_E_CANCELLED, LVD_E_STOPPED before. A thread sleeps. */
LVD_API lvd_status lvd_fiber_sleep(int64_t ns);

/* lvd_blocking (native.h) is for fibers, too. */

typedef struct lvd_fiber_counters {
  char name[32];
  uint32_t worker;
  uint64_t activations; /* times it was gone on with */
  uint64_t busy_ns;     /* sampled: one activation of 64 is measured, and stands for all */
  uint64_t longest_ns;  /* of those measured */
  bool waiting;
} lvd_fiber_counters;

/* Fills at most *count records, and sets it to the number of fibers that the application has. */
LVD_API lvd_status lvd_app_fibers(lvd_app *app, lvd_fiber_counters *fiber, uint32_t *count);

/* An application without a network, for fibers: it is started, and does not end by itself before
 * lvd_app_close has said that no more fibers will be started from outside. Then it ends when they
 * have: lvd_app_wait, lvd_app_unload. `options` may be null. */
LVD_API lvd_status lvd_app_open(lvd_runtime *rt, const lvd_app_options *options, lvd_app **out);
LVD_API void lvd_app_close(lvd_app *app);

#ifdef __cplusplus
}
#endif
#endif
