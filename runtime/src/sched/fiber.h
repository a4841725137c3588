/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a fiber is made of, for the files that know. It lies at the high end of its own stack, so
 * that a fiber that waits shallowly costs a page or two. */
#ifndef LVD_SRC_FIBER_H
#define LVD_SRC_FIBER_H

#include <levada/fiber.h>

#include "../../platform/context.h"
#include "../../platform/text.h"
#include "sched.h"

/* Sizes of stacks, as powers of two: fibers that are started have 16 KiB to 8 MiB; calls that were
 * forked, at least that. */
enum {
  LVD_STACK_LEAST = 14,
  LVD_STACK_USUAL = 16,
  LVD_STACK_MOST = 23,
  LVD_STACK_LARGEST = 30,
  LVD_FIBER_NAME = 32
};
_Static_assert(LVD_STACK_LARGEST - LVD_STACK_LEAST + 1 == LVD_STACKS, "a pool for each size");

static inline void copy_name(char *to, const char *from) {
  size_t n = lvd_text_length(from, LVD_FIBER_NAME - 1);
  memcpy(to, from, n);
  to[n] = 0;
}

/* By which interface: each has its own way to a larger stack (stack_overflow.c). */
typedef enum lvd_started_as {
  LVD_STARTED_AS_FIBER,
  LVD_STARTED_AS_CALL,
  LVD_STARTED_AS_TASK
} lvd_started_as;

/* What a fiber waits for that has called out (blocking_pool.c). */
enum { LVD_BLOCKED_IN_CALL = 1, LVD_BLOCKED_IN_QUEUE, LVD_BLOCKED_AT_DESCRIPTOR };

struct lvd_fiber {
  lvd_entity entity; /* first: a waiter is an entity is a fiber */
  lvd_os_context context;
  const unsigned char *floor; /* of its stack, less what the runtime needs: no_abandon.h */
  void (*body)(void *);
  void *argument;
  /* What it waits for, on its own stack; null while it runs. Its worker looks at it. */
  const lvd_want *want;
  uint32_t wants;
  lvd_timer timer;    /* among those of its worker, while it waits with a time limit */
  bool ended;         /* body has returned; its worker puts it away */
  bool deaf;          /* waits through cancelling and the application's end */
  lvd_a32 *cancelled; /* not 0: its waits end with this status; `cancel`, or a call's */
  lvd_a32 cancel;
  lvd_status outcome;
  lvd_event
      *end; /* is told the outcome: `done`, and then it is the joiner's; or a call's; or null */
  lvd_event done, unblocked;
  struct lvd_deque *forks; /* its deque, while it is suspended with forks open */
  lvd_fork *taken;         /* it makes the call of this fork (steal.c) ... */
  struct lvd_deque *taken_from;
  bool bare;        /* ... of a thread of the program: its faults are the program's */
  bool interrupted; /* it was suspended by force: its thread's variables may be at hand */
  bool left; /* suspended so, and not gone on with: its application ends, its worker is stuck */
  bool kept; /* abandoned, and others may still write to its stack: not used again */
  lvd_a32 blocked;             /* which of these, while it waits for `unblocked` */
  void *word;                  /* lvd_fiber_word */
  struct lvd_stream_end *ends; /* the ends of streams that it uses: flushed when it waits */
  struct lvd_fiber *next_spare;
  unsigned char *low; /* of the stack, the guard included */
  uint32_t size_log2;
  uint32_t guard;
  uint32_t number; /* among those that are judged (wait_report_fibers.c) */
  lvd_started_as started_as;
  char name[LVD_FIBER_NAME];
};

/* ---- fiber_pool.c: stacks that lie ready -------------------------------------------------- */

/* A fiber with a slot and a stack of 2^size_log2 bytes; on a worker without a lock. */
lvd_status lvd_fiber_take(lvd_runtime *rt, uint32_t size_log2, lvd_fiber **out);
void lvd_fiber_put_back(lvd_runtime *rt, lvd_fiber *f);

/* ---- fiber_start.c ------------------------------------------------------------------------ */

/* `f`, fresh from the pool, is ready on `w`, which calls, as a fiber of `app` that runs body(f). The
 * application does not end before something of it has that waits for `f`. */
void lvd_fiber_ready(lvd_worker *w, lvd_fiber *f, lvd_app *app, uint32_t level,
                     void (*body)(void *));
/* Counts a fiber of `app` that is to come, so that the application does not end before that has;
 * LVD_E_STATE: it does not run. */
lvd_status lvd_fiber_announce(lvd_app *app);
void lvd_fiber_renounce(lvd_app *app);
/* `f`, which has been taken from the pool, gets a body; its other fields are as usual, and nobody
 * waits for its end. */
void lvd_fiber_fill(lvd_fiber *f, lvd_app *app, uint32_t worker, uint32_t level,
                    void (*body)(void *), void *argument);
/* A filled one begins on the worker that runs this, which has counted it as ready. */
void lvd_fiber_begin(lvd_worker *w, lvd_fiber *f);
/* The size of the least stack of so many bytes; 0: it is too large. */
uint32_t lvd_fiber_stack(size_t bytes);

/* All its waits return `status` from now on, unless it was cancelled before: once it is woken. */
void lvd_fiber_set_cancelled(const lvd_fiber *f, lvd_status status);

/* ---- fiber.c ------------------------------------------------------------------------------ */

/* What calls: its fiber, else an address that no other thread has. */
void *lvd_caller(void);
/* What is first on its stack: its body, and its end. */
void lvd_fiber_main(void *fiber);
/* Waits for the event and takes it, whatever else happens meanwhile. */
void lvd_fiber_wait_uninterruptible(lvd_fiber *f, lvd_event *e);

static inline lvd_fiber *lvd_fiber_of_timer(lvd_timer *t) {
  return (lvd_fiber *)(void *)((char *)t - offsetof(lvd_fiber, timer));
}

#endif
