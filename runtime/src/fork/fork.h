/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Internal structures of forks: deque.c has the protocol of owner and thieves, deque_pool.c
 * which stack has which deque, fork_thread.c the threads that fork, fork_proxy.c which worker
 * a thread of the program stands in for, steal.c which worker steals where, sleeps and is
 * woken, fork_runtime.c the runtime of a program that only forks, parallel_for.c loops and
 * cancellation. */
#ifndef LVD_SRC_FORK_H
#define LVD_SRC_FORK_H

#include <levada/fork.h>

#include "../sched/sched.h"

#ifndef LVD_DEQUE_SLOTS
#define LVD_DEQUE_SLOTS 8192 /* the model checker uses fewer */
#endif
/* Limit per runtime, below the number of stacks, since thieves scan all deques. */
enum { LVD_DEQUES = 4096 };

/* The slot of a fork that found no deque: an address below all slots, so that its join takes the
 * slow path whatever deque is attached by then. It cannot have been stolen. */
#define LVD_NO_SLOT ((lvd_fork *)(uintptr_t)sizeof(lvd_fork))

#define LVD_NO_SCOPE UINT32_MAX /* in a mark without a scope: above all slots */

/* The open forks of one stack. Deques are never freed: a late thief may look at one that was
 * reused, and acts on its present contents. */
typedef struct lvd_deque {
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_a64 ends; /* tail << 32 | split: slots from tail to split are public */
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_a32 asked;   /* 1: thieves have requested work and have told the thread */
  lvd_aptr thread; /* the lvd_fork_state on this stack; null: it is suspended */
  lvd_aptr app;    /* application of the forks; null: they belong to a thread of the program */
  lvd_aptr actor;  /* the actor that has forked them, if it can block; else null */
  lvd_a32 level;
  LVD_ALIGNED(LVD_CACHE_LINE) uint32_t split; /* the owner's copy of the split in `ends` */
  lvd_fork *head;                             /* saved head, while the stack is suspended */
  struct lvd_deque *next;                     /* in a pool */
  lvd_scope_mark outermost;    /* mark of the outermost open cancellation scope ... */
  lvd_cancel_scope *innermost; /* ... and the innermost scope, for the owner; null: none */
  lvd_event joined;            /* set when the call that the owner waits for is done */
  /* The last slot is used when the deque is full, and is never public. */
  lvd_fork slot[LVD_DEQUE_SLOTS + 1];
} lvd_deque;

/* The fork state of a thread: of a worker, or of a thread of the program, which then takes the
 * place of the worker of its core. Never freed, but reused by other threads. */
typedef struct lvd_fork_state {
  /* Held by others while they write to the thread's words, so that it cannot end. */
  lvd_os_mutex lock;
  lvd_fork_thread *thread; /* the thread's words; null: it has ended; under `lock` */
  lvd_aptr deque;          /* the deque of the stack that it is on */
  lvd_worker *worker;      /* null: a thread of the program */
  /* The forks of its runtime; null: that was destroyed, or there was none. */
  struct lvd_fork_set *forks;
  lvd_a32 gone;             /* 1: the runtime is being destroyed, and another one is needed */
  lvd_a32 sleeps;           /* 1: it sleeps until a stolen call is done */
  uint32_t place;           /* index of the worker that it replaces; LVD_NOWHERE: none */
  lvd_a64 shares;           /* ticks: when a thread of the program last published forks */
  lvd_a32 clock;            /* id of its CPU-time clock */
  const unsigned char *low; /* lowest byte of its stack */
  uint64_t random;
  struct lvd_fork_state *next; /* in the list of all fork states */
  bool taken;
  lvd_deque *spare; /* list of empty deques for other stacks */
  uint32_t spares;
  struct lvd_fiber *reserve; /* a worker's free fiber for the next call that it steals; or null */
  lvd_leased leased;         /* lease state of a thread of the program, for the place that it has */
  lvd_a64 stolen, leapfrogged, steal_requests, published, full, waits, woken;
} lvd_fork_state;

/* The forks of a runtime, from its first fork on. */
typedef struct lvd_fork_set {
  lvd_runtime *rt;
  lvd_aptr app; /* application of the calls forked by threads of the program */
  lvd_os_mutex opening;
  lvd_a32 stack_log2;                           /* log2 of the stack size for stolen calls */
  lvd_aptr spare;                               /* pooled deques; under lvd_forks_lock */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 sleepers; /* number of workers that sleep and would steal */
  /* Number of woken workers that have not looked for work yet. */
  lvd_a32 waking;
  /* Ticks: when a worker with LVD_LENT was last woken to check its state. */
  lvd_a64 lent_worker_woken_at;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 deques;
  lvd_aptr deque[LVD_DEQUES];
} lvd_fork_set;

static inline uint32_t lvd_tail(uint64_t ends) { return (uint32_t)(ends >> 32); }
static inline uint32_t lvd_split(uint64_t ends) { return (uint32_t)ends; }
static inline uint64_t lvd_ends(uint32_t tail, uint32_t split) {
  return (uint64_t)tail << 32 | split;
}
static inline bool lvd_deque_has(const lvd_deque *d) {
  uint64_t ends = lvd_load_relaxed_u64(&d->ends);
  return lvd_tail(ends) < lvd_split(ends);
}

/* ---- deque.c ------------------------------------------------------------------------------- */

lvd_fork *lvd_deque_take(lvd_deque *d); /* for a thief; null: no slot is public */
/* For a thief: requests that a slot be published. */
void lvd_deque_ask(lvd_deque *d, lvd_fork_state *by);
/* For the owner, before its stack is suspended. */
void lvd_deque_publish_all(lvd_deque *d, lvd_fork *head, const lvd_fork_state *f);
/* Makes the call of a slot stolen from `from`, on the stack of the caller, which has the deque
 * `here`. */
void lvd_fork_run(lvd_fork *slot, lvd_deque *from, lvd_deque *here);
/* The call of `slot` was abandoned: tells its waiting owner. */
void lvd_fork_fail(lvd_fork *slot, lvd_deque *from);
/* What ran on the stack of `here` was abandoned, including the calls of `d` that were made
 * there. */
void lvd_deque_fail(lvd_deque *d, const lvd_deque *here);
/* The call of `slot` continues without deque `here`, which will belong to another stack. */
void lvd_fork_withdraw(lvd_fork *slot, const lvd_deque *here);
/* The stack of `d` was abandoned with open forks. True: no thief works for it any more. */
bool lvd_deque_abandon(lvd_deque *d);

/* ---- deque_pool.c ---------------------------------------------------------------------------- */

/* Protects all lists of deques and of fork states in the process. */
extern lvd_os_mutex lvd_forks_lock;
extern lvd_aptr lvd_spare_deques; /* pooled deques without a runtime; under lvd_forks_lock */

/* Number of deques; each is initialised. */
static inline uint32_t lvd_deques_of(const lvd_fork_set *forks) {
  return lvd_load_acquire_u32(&forks->deques);
}
static inline lvd_deque *lvd_deque_of(const lvd_fork_set *forks, uint32_t i) {
  return lvd_load_relaxed_ptr(&forks->deque[i]);
}

/* Returns a pooled or a new deque; null: the limit is reached. With the lock held. */
lvd_deque *lvd_deque_some(lvd_fork_set *forks);
lvd_deque *lvd_deque_take_from(lvd_aptr *list);
void lvd_deque_give_back(lvd_aptr *list, lvd_deque *d);
/* The list to which a thread's unused deques return. */
lvd_aptr *lvd_deques_spare(lvd_fork_state *f);

/* The deque of the current stack, allocated if there is none; null: the limit is reached. */
lvd_deque *lvd_fork_state_deque(lvd_fork_state *f);
void lvd_fork_state_take_empty(lvd_fork_state *f);
/* Detaches the deque: a fork that was made without one is about to be joined. */
void lvd_fork_state_drop_deque(lvd_fork_state *f);
/* Has the thread open forks on its deque? */
static inline bool lvd_fork_state_is_open(const lvd_fork_state *f) {
  const lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  return d && lvd_forks.head != d->slot;
}

/* ---- fork_thread.c --------------------------------------------------------------------------- */

/* The fork state of this thread; null: it has not forked yet. */
#ifdef LVD_FORK_SELF /* the model checker runs all threads on one (levada/fork.h) */
lvd_fork_state **LVD_FORK_SELF;
#define lvd_fork_state_here (*LVD_FORK_SELF)
#else
extern _Thread_local lvd_fork_state *lvd_fork_state_here
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
#endif

/* The same, created if needed; null: out of memory, or no worker. */
lvd_fork_state *lvd_fork_state_self(void);
/* Blocks the owner of `d`, a fiber, an actor or a thread, until lvd_fork_complete. */
void lvd_fork_wait(lvd_fork_state *f, lvd_deque *d);
void lvd_fork_complete(lvd_deque *d);
void lvd_fork_states_wake(void); /* makes each thread's next join take the slow path */

/* Has this thread open forks? */
bool lvd_forks_open_here(void);
/* True: no other thread forks on `rt`, and none can begin to. */
bool lvd_forks_close(lvd_runtime *rt);
bool lvd_forks_alone(void); /* whether there is at most one runtime */

/* ---- fork_proxy.c ---------------------------------------------------------------------------- */

/* A thread of the program may have moved to another core. */
void lvd_fork_proxy_poll(lvd_fork_state *f);
void lvd_fork_proxy_leave(lvd_fork_state *f);
/* Wakes a worker in LVD_LENT, to check whether it may steal again. */
bool lvd_fork_proxy_wake(lvd_worker *w);
/* Does a thread of the program compute in the place of `w`? Measured at intervals. */
bool lvd_fork_proxy_is_taken(lvd_worker *w);

/* ---- steal.c ------------------------------------------------------------------------------ */

/* Values of a worker's `fork_sleeps`. */
enum {
  LVD_AWAKE = 0,
  LVD_SLEEPS = 1, /* it sleeps, and would steal */
  LVD_LENT = 2,   /* it does not steal: a thread of the program has its place */
  LVD_WAKING = 3  /* woken by a fork, and not running yet */
};

/* Sets `fork_sleeps` of `w`, and the counts that depend on it. */
static inline void lvd_sleeps_set(lvd_fork_set *forks, lvd_worker *w, uint32_t sleeps) {
  uint32_t was = lvd_exchange_relaxed_u32(&w->fork_sleeps, sleeps);
  if (was == LVD_SLEEPS) lvd_add_relaxed_u32(&forks->sleepers, UINT32_MAX);
  if (was == LVD_WAKING) lvd_add_relaxed_u32(&forks->waking, UINT32_MAX);
}

/* Is a woken worker about to look for public slots? */
static inline bool lvd_forks_are_waking(const lvd_fork_state *f) {
  return !lvd_load_relaxed_u32(&f->gone) && lvd_load_relaxed_u32(&f->forks->waking) != 0;
}
/* A slot has become public: wakes a sleeping worker. True: there are more. */
bool lvd_forks_wake(lvd_fork_state *by);
/* Wakes `w` if it sleeps; does not interrupt what runs there. */
void lvd_forks_notify(lvd_worker *w);
/* May this stack run one more call stolen from its own thief? If the call turns out to be
 * unrelated, it is passed on by lvd_fork_pass. */
bool lvd_fork_may_leapfrog(lvd_fork_state *f);
/* Runs the call of `slot`, stolen from `from` in error, on another stack. */
void lvd_fork_pass(lvd_fork_state *f, lvd_fork *slot, lvd_deque *from);

/* ---- fork_runtime.c -------------------------------------------------------------------------- */

/* Starts the runtime of a program that has none, if there is none yet. */
void lvd_fork_runtime_start(void);
/* Called before fork(2). */
void lvd_fork_runtime_before_fork(void);
void lvd_fork_runtime_after_fork(void);
void lvd_fork_runtime_child_begins(void);

/* ---- parallel_for.c -------------------------------------------------------------------------- */

/* The scope in which slot `i` of `d` was forked; null: none. */
lvd_cancel_scope *lvd_deque_scope(const lvd_deque *d, uint32_t i);
lvd_status lvd_scope_enter(lvd_cancel_scope *scope, lvd_cancel_scope *outer);
/* Is the innermost scope of the caller's deque `d`, or one around it, cancelled? */
bool lvd_deque_cancelled(const lvd_deque *d);

/* ---- fork_thread.c: workers and runtimes -------------------- */

void lvd_forks_runtime_begins(lvd_runtime *rt);
void lvd_forks_runtime_ends(lvd_runtime *rt);
void lvd_forks_free(lvd_runtime *rt);
void lvd_forks_worker_ends(void);

/* ---- steal.c: a worker without work -------------------- */

/* For a worker without work. True: it has stolen a call, which is ready. */
bool lvd_forks_poll(lvd_worker *w);
/* The last poll before it sleeps. *most: the longest sleep in ns. Then, until it is awake again: */
bool lvd_forks_before_sleep(lvd_worker *w, int64_t *most);
bool lvd_forks_may_sleep(const lvd_worker *w); /* false: a fork has already woken it */
void lvd_forks_after_sleep(lvd_worker *w);

/* ---- deque_pool.c: fibers with open forks -------------------- */

void lvd_forks_suspend(lvd_worker *w, lvd_fiber *f); /* a fiber with open forks is suspended, ... */
/* Preempts a fiber that may be about to fork or to join: it keeps its deque unchanged. False: it
 * had none, and must have none when it resumes. */
bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *f);
void lvd_forks_set_back_without(void);
void lvd_forks_resume(lvd_worker *w, lvd_fiber *f);  /* ... resumed, ... */
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *f); /* ... abandoned while it ran, ... */
/* ... or will not be resumed (overrun.c), ... */
void lvd_forks_drop(lvd_fiber *f);
void lvd_forks_abandon_suspended(lvd_app *app,
                                 lvd_fiber *f); /* ... in this case because `app` ends */

#endif
