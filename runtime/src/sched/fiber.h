/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The structure of a fiber, for the files that need it. It lies at the high end of its own stack,
 * so that a fiber with few frames uses one or two pages. */
#ifndef LVD_SRC_FIBER_H
#define LVD_SRC_FIBER_H

#include <levada/fiber.h>

#include "../../platform/context.h"
#include "../../platform/text.h"
#include "sched.h"

/* Stack sizes, as powers of two: 16 KiB to 8 MiB for fibers that are started; at least that for
 * forked calls that were stolen. */
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

/* The interface that started the fiber: each has its own option for a larger stack
 * (stack_overflow.c). */
typedef enum lvd_started_as {
  LVD_STARTED_AS_FIBER,
  LVD_STARTED_AS_CALL,
  LVD_STARTED_AS_TASK
} lvd_started_as;

/* What a fiber with a blocking call waits for (blocking_pool.c). */
enum { LVD_BLOCKED_IN_CALL = 1, LVD_BLOCKED_IN_QUEUE, LVD_BLOCKED_AT_DESCRIPTOR };

struct lvd_fiber {
  lvd_entity entity; /* first: a waiter is an entity is a fiber */
  lvd_os_context context;
  /* Lowest stack pointer at which the runtime may be entered (no_abandon.h). */
  const unsigned char *floor;
  void (*body)(void *);
  void *argument;
  /* The items that it waits for, on its own stack; null while it runs. Its worker reads them. */
  const lvd_wait_item *want;
  uint32_t wants;
  lvd_timer timer;      /* in its worker's heap while it waits with a timeout */
  bool ended;           /* body has returned; its worker releases it */
  bool uninterruptible; /* its waits ignore cancellation and the application's end */
  /* If not 0, its waits end with this status; points to `cancel` or into a call. */
  lvd_a32 *cancelled;
  lvd_a32 cancel;
  lvd_status outcome;
  /* Receives the outcome: `done`, then the joiner releases the fiber; or a call's event; or
   * null. */
  lvd_event *end;
  lvd_event done, unblocked;
  struct lvd_deque *forks; /* its deque, while it is suspended with open forks */
  lvd_fork *stolen;        /* the stolen fork that it runs (steal.c) ... */
  struct lvd_deque *stolen_from;
  bool of_thread;   /* ... of a thread of the program, to which its faults belong */
  bool interrupted; /* it was preempted: thread-local addresses may be in its registers */
  /* Preempted and not to be resumed: its application ends while its worker is in an overrun. */
  bool must_abandon;
  bool not_reusable; /* abandoned, but others may still write to its stack: not reused */
  lvd_a32 blocked;   /* one of LVD_BLOCKED_*, while it waits for `unblocked` */
  void *word;        /* fiber-local value (lvd_fiber_local) */
  struct lvd_stream_close_sender *ends; /* the stream ends that it uses; flushed when it waits */
  struct lvd_fiber *next_spare;
  unsigned char *low; /* lowest byte of the stack, guard included */
  uint32_t size_log2;
  uint32_t guard;
  uint32_t number; /* its index in the wait graph (wait_report_fibers.c) */
  lvd_started_as started_as;
  char name[LVD_FIBER_NAME];
};

/* ---- fiber_pool.c: the pool --------------------------------------------------------------- */

/* A fiber with a slot and a stack of 2^size_log2 bytes; on a worker usually without a lock. */
lvd_status lvd_fiber_take(lvd_runtime *rt, uint32_t size_log2, lvd_fiber **out);
void lvd_fiber_put_back(lvd_runtime *rt, lvd_fiber *f);

/* ---- fiber_start.c ------------------------------------------------------------------------ */

/* Makes `f`, fresh from the pool, ready on the calling worker `w` as a fiber of `app` that runs
 * body(f). The caller ensures that something of the application that waits for `f` keeps it from
 * ending. */
void lvd_fiber_ready(lvd_worker *w, lvd_fiber *f, lvd_app *app, uint32_t level,
                     void (*body)(void *));
/* Counts a future fiber of `app`, so that the application does not end before it has.
 * LVD_E_STATE: the application does not run. */
lvd_status lvd_fiber_announce(lvd_app *app);
void lvd_fiber_renounce(lvd_app *app);
/* Initialises `f`, taken from the pool, with a body; the other fields get their defaults, and its
 * end has no joiner. */
void lvd_fiber_fill(lvd_fiber *f, lvd_app *app, uint32_t worker, uint32_t level,
                    void (*body)(void *), void *argument);
/* Starts an initialised fiber on the calling worker, which has counted it as ready. */
void lvd_fiber_begin(lvd_worker *w, lvd_fiber *f);
/* Log2 of the smallest stack size of at least `bytes` bytes; 0: too large. */
uint32_t lvd_fiber_stack(size_t bytes);

/* All its waits return `status` from now on, unless it was already cancelled; the caller wakes
 * it. */
void lvd_fiber_set_cancelled(const lvd_fiber *f, lvd_status status);

/* ---- fiber.c ------------------------------------------------------------------------------ */

/* Identifies the caller: its fiber, else an address unique to the thread. */
void *lvd_caller(void);
/* The first function on its stack: calls body and ends the fiber. */
void lvd_fiber_main(void *fiber);
/* Waits for the event and consumes it, ignoring cancellation. */
void lvd_fiber_wait_uninterruptible(lvd_fiber *f, lvd_event *e);

static inline lvd_fiber *lvd_fiber_of_timer(lvd_timer *t) {
  return (lvd_fiber *)(void *)((char *)t - offsetof(lvd_fiber, timer));
}

#endif
