/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a deque is made of, for the files that know: deque.c has the protocol of owner and thieves,
 * deque_pool.c which stack has which, fork_thread.c the threads that fork, fork_proxy.c which worker one of the program
 * stands in for, steal.c which worker steals where, sleeps and is woken, fork_runtime.c the runtime of a program
 * that only forks, parallel_for.c what stands on top. */
#ifndef LVD_SRC_FORK_H
#define LVD_SRC_FORK_H

#include <levada/fork.h>

#include "../sched/sched.h"

#ifndef LVD_DEQUE_SLOTS
#define LVD_DEQUE_SLOTS 8192 /* the checker has fewer */
#endif
/* Of a runtime. Thieves look at each of them, so they are not as many as there are stacks. */
enum { LVD_DEQUES = 4096 };

/* What is joined of a fork that found no deque: no slot, but an address below those of all slots, so
 * that its join is a seldom one wherever there is a deque by then. Nobody can have taken it. */
#define LVD_NO_SLOT ((lvd_fork *)(uintptr_t)sizeof(lvd_fork))

#define LVD_NO_SCOPE UINT32_MAX /* where a mark has none: behind all slots */

/* The forks of one stack that are not joined. Deques are never freed: a thief that comes late looks
 * at one that is somebody else's by now, and finds what is so there. */
typedef struct lvd_deque {
  LVD_ALIGNED(LVD_LINE) lvd_a64 ends;  /* tail << 32 | split: slots from tail to split are public */
  LVD_ALIGNED(LVD_LINE) lvd_a32 asked; /* thieves want work, and have told the thread */
  lvd_aptr thread; /* the lvd_fork_state that is on this stack; null: suspended */
  lvd_aptr app;    /* whose forks these are; null: of a thread of the program */
  lvd_aptr actor;  /* the actor that may wait, whose forks these are; or null */
  lvd_a32 level;
  LVD_ALIGNED(LVD_LINE) uint32_t split; /* from here on it is the owner's; his copy */
  lvd_fork *head;                       /* while the stack is suspended */
  struct lvd_deque *next;               /* where it lies ready */
  lvd_scope_mark outermost;             /* of the scopes of cancelling that are open here ... */
  lvd_cancel_scope *innermost;          /* ... for the owner; null: none is */
  lvd_event joined;                     /* what the owner waited for is done */
  lvd_fork slot[LVD_DEQUE_SLOTS + 1]; /* the last one is for who finds it full, and never public */
} lvd_deque;

/* A thread that forks: a worker, or a thread of the program, which then takes the place of the worker
 * of its core. Never freed, used again by other threads. */
typedef struct lvd_fork_state {
  lvd_os_mutex lock;          /* the thread does not end while somebody tells it something */
  lvd_fork_thread *thread;    /* under the lock; null: it has ended */
  lvd_aptr deque;             /* of the stack that it is on */
  lvd_worker *worker;         /* null: a thread of the program */
  struct lvd_fork_set *forks; /* the runtime's; null: it has been destroyed, or there was none */
  lvd_a32 gone;               /* the runtime is being destroyed: look for another one */
  lvd_a32 sleeps;             /* it waits in the kernel for a call that was taken */
  uint32_t place;             /* the worker whose place it takes; LVD_NOWHERE: none */
  lvd_a64 shares;             /* ticks: when a thread of the program last made forks public */
  lvd_a32 clock;              /* of its CPU time */
  const unsigned char *low;   /* of its stack */
  uint64_t random;
  struct lvd_fork_state *next; /* all there are */
  bool taken;
  lvd_deque *spare; /* empty ones, for the stacks to come here */
  uint32_t spares;
  struct lvd_fiber *reserve; /* a worker's, for the next call that it takes; or null */
  lvd_leased leased;         /* a thread of the program, in its place */
  lvd_a64 stolen, leapt, asked, shared, full, waits, woken;
} lvd_fork_state;

/* The forks of a runtime, from its first one on. */
typedef struct lvd_fork_set {
  lvd_runtime *rt;
  lvd_aptr app; /* of calls that were forked by threads of the program */
  lvd_os_mutex opening;
  lvd_a32 stack_log2;                     /* of the stacks of calls that are taken */
  lvd_aptr spare;                         /* deques that lie ready; under lvd_forks_lock */
  LVD_ALIGNED(LVD_LINE) lvd_a32 sleepers; /* workers that sleep, and would steal */
  lvd_a32 coming;                         /* those that have been woken, and have not looked yet */
  lvd_a64 stirred;                        /* ticks */
  LVD_ALIGNED(LVD_LINE) lvd_a32 deques;
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

lvd_fork *lvd_deque_take(lvd_deque *d);               /* a thief's; null: nothing is public */
void lvd_deque_ask(lvd_deque *d, lvd_fork_state *by); /* a thief's: make something public */
/* The owner's, before it is suspended. */
void lvd_deque_publish_all(lvd_deque *d, lvd_fork *head, const lvd_fork_state *f);
/* Makes the call of a slot that was taken from `from`, on the stack of the caller, whose deque is
 * `here`. */
void lvd_fork_run(lvd_fork *slot, lvd_deque *from, lvd_deque *here);
/* The call of `slot` was abandoned: who waits for it is told. */
void lvd_fork_fail(lvd_fork *slot, lvd_deque *from);
/* What ran on the stack of `here` was abandoned: so are the calls of `d` that were made there. */
void lvd_deque_fail(lvd_deque *d, const lvd_deque *here);
/* The call of `slot` goes on without deque `here`, which becomes another stack's. */
void lvd_fork_withdraw(lvd_fork *slot, const lvd_deque *here);
/* The stack of `d` was abandoned with forks open. True: nobody works for it any more. */
bool lvd_deque_abandon(lvd_deque *d);

/* ---- deque_pool.c ----------------------------------------------------------------------------- */

extern lvd_os_mutex lvd_forks_lock; /* of the process: of all lists of deques and of threads */
extern lvd_aptr lvd_spare_deques;   /* of no runtime; under the lock */

/* So many there are, and each is as it was made. */
static inline uint32_t lvd_deques_of(const lvd_fork_set *forks) {
  return lvd_load_acquire_u32(&forks->deques);
}
static inline lvd_deque *lvd_deque_of(const lvd_fork_set *forks, uint32_t i) {
  return lvd_load_relaxed_ptr(&forks->deque[i]);
}

/* Under the lock: one that lies ready, or a new one; null: there are no more. */
lvd_deque *lvd_deque_some(lvd_fork_set *forks);
lvd_deque *lvd_deque_take_from(lvd_aptr *list);
void lvd_deque_give_back(lvd_aptr *list, lvd_deque *d);
/* The list for those that a thread has no use for. */
lvd_aptr *lvd_deques_spare(lvd_fork_state *f);

/* Of the stack that the thread is on. If it has none, it gets one, unless there is none: null. */
lvd_deque *lvd_fork_state_deque(lvd_fork_state *f);
void lvd_fork_state_take_empty(lvd_fork_state *f);
/* It goes on without: what was forked when there was none is about to be joined. */
void lvd_fork_state_drop_deque(lvd_fork_state *f);
/* Has the thread forks open on its deque? */
static inline bool lvd_fork_state_is_open(const lvd_fork_state *f) {
  const lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  return d && lvd_forks.head != d->slot;
}

/* ---- fork_thread.c ----------------------------------------------------------------------------- */

/* Who forks on this thread, once it has begun to; or null. */
#ifdef LVD_FORK_SELF /* the checker's threads are all one of the system (levada/fork.h) */
lvd_fork_state **LVD_FORK_SELF;
#define lvd_fork_state_here (*LVD_FORK_SELF)
#else
extern _Thread_local lvd_fork_state *lvd_fork_state_here
    __attribute__((visibility("hidden"), tls_model("initial-exec")));
#endif

/* The same, who begins now if he has not; null: there is no memory, or no worker. */
lvd_fork_state *lvd_fork_state_self(void);
/* The owner of `d` waits, in a fiber, an actor or a thread, until he is told. */
void lvd_fork_wait(lvd_fork_state *f, lvd_deque *d);
void lvd_fork_complete(lvd_deque *d);
void lvd_fork_states_wake(void); /* every join is a seldom one, once */

/* Has this thread forks open? */
bool lvd_forks_open_here(void);
/* True: no other thread forks on `rt`, and from now on none begins to. */
bool lvd_forks_close(lvd_runtime *rt);
bool lvd_forks_alone(void); /* there are no two runtimes */

/* ---- fork_proxy.c ------------------------------------------------------------------------------ */

/* A thread of the program is somewhere else now, perhaps. */
void lvd_fork_proxy_poll(lvd_fork_state *f);
void lvd_fork_proxy_leave(lvd_fork_state *f);
/* A worker that abstains looks again whether it has to. */
bool lvd_fork_proxy_wake(lvd_worker *w);
/* Does a thread of the program compute in the place of `w`? Measured now and then. */
bool lvd_fork_proxy_is_taken(lvd_worker *w);

/* ---- steal.c ------------------------------------------------------------------------------ */

/* What a worker's `fork_sleeps` says. */
enum {
  LVD_AWAKE = 0,
  LVD_SLEEPS = 1,   /* and would steal */
  LVD_ABSTAINS = 2, /* a thread of the program has its place */
  LVD_COMES = 3     /* woken by a fork, and not there yet */
};

/* What `w` does is something else now. */
static inline void lvd_sleeps_set(lvd_fork_set *forks, lvd_worker *w, uint32_t sleeps) {
  uint32_t was = lvd_exchange_relaxed_u32(&w->fork_sleeps, sleeps);
  if (was == LVD_SLEEPS) lvd_add_relaxed_u32(&forks->sleepers, UINT32_MAX);
  if (was == LVD_COMES) lvd_add_relaxed_u32(&forks->coming, UINT32_MAX);
}

/* Is a worker on its way that will look for something public? */
static inline bool lvd_forks_coming(const lvd_fork_state *f) {
  return !lvd_load_relaxed_u32(&f->gone) && lvd_load_relaxed_u32(&f->forks->coming) != 0;
}
/* Something has become public: wakes a worker, if one sleeps. True: more sleep. */
bool lvd_forks_wake(lvd_fork_state *by);
/* Wakes `w` if it sleeps; what runs there goes on. */
void lvd_forks_notify(lvd_worker *w);
/* May this stack make one more call that the thief of its own has forked? If it turns out to be
 * another's, it is passed. */
bool lvd_fork_may_leapfrog(lvd_fork_state *f);
/* Has the call of `slot` made, which was taken from `from` in error: not on this stack. */
void lvd_fork_pass(lvd_fork_state *f, lvd_fork *slot, lvd_deque *from);

/* ---- fork_runtime.c -------------------------------------------------------------------------------- */

void lvd_fork_runtime_start(
    void); /* the runtime of a program that has made none, unless there is it already */
/* The system makes a second process of this one. */
void lvd_fork_runtime_before_fork(void);
void lvd_fork_runtime_after_fork(void);
void lvd_fork_runtime_child_begins(void);

/* ---- parallel_for.c ------------------------------------------------------------------------------ */

/* The scope that slot `i` of `d` was forked in; null: none. */
lvd_cancel_scope *lvd_deque_scope(const lvd_deque *d, uint32_t i);
lvd_status lvd_scope_enter(lvd_cancel_scope *scope, lvd_cancel_scope *outer);
/* Is the innermost scope of `d`, which is the caller's, cancelled, or one around it? */
bool lvd_deque_cancelled(const lvd_deque *d);

/* ---- fork_thread.c: workers and runtimes -------------------- */

void lvd_forks_runtime_begins(lvd_runtime *rt);
void lvd_forks_runtime_ends(lvd_runtime *rt);
void lvd_forks_free(lvd_runtime *rt);
void lvd_forks_worker_ends(void);

/* ---- steal.c: a worker without work -------------------- */

/* A worker without work: true: something was stolen, and is ready. */
bool lvd_forks_poll(lvd_worker *w);
/* Before it sleeps: the same, once more. *most: for so long at the most. Then, until it is awake: */
bool lvd_forks_before_sleep(lvd_worker *w, int64_t *most);
bool lvd_forks_may_sleep(const lvd_worker *w); /* false: a fork has woken it already */
void lvd_forks_after_sleep(lvd_worker *w);

/* ---- deque_pool.c: fibers with open forks -------------------- */

void lvd_forks_suspend(lvd_worker *w, lvd_fiber *f); /* a fiber with open forks is suspended */
/* A fiber, which is perhaps about to fork or to join, keeps its deque as it is while it is suspended. False: it had none,
 * and is to have none when it goes on. */
bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *f);
void lvd_forks_set_back_without(void);
void lvd_forks_resume(lvd_worker *w, lvd_fiber *f);  /* ... and goes on */
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *f); /* ... or was abandoned */
void lvd_forks_drop(lvd_fiber *f);                   /* ... or is not gone on with (overrun.c) */
void lvd_forks_abandon_suspended(lvd_app *app,
                                 lvd_fiber *f); /* ... and never does, since `app` ends */

#endif
