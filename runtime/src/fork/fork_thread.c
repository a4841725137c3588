/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork states of threads, workers and threads of the program, from their first fork to their
 * end; and the runtime that they fork on, which may end earlier or later.
 *
 * Pairs of orders
 *   prepare: forks and forkers of a runtime, store_release rt->forks
 *                                                                -> a worker begins: load_acquire
 * No order is needed for other readers of rt->forks, which have begun; nor for the application
 * of a call, which was opened before the call was forked. */
#include "../stream/stream.h"
#include "fork.h"

#include <stdlib.h>
#include <string.h>

#include "../sched/fiber.h"

/* Of the process; all under lvd_forks_lock. */
static struct {
  lvd_runtime *runtimes; /* all runtimes, the oldest first */
  lvd_fork_state *forkers;
  lvd_a32 at_fork;
} all;

#ifndef LVD_FORK_SELF
_Thread_local lvd_fork_state *lvd_fork_state_here;
#endif

/* ---- threads that fork -------------------------------------------------------------------- */

static lvd_fork_state *new_fork_state(void) {
  lvd_fork_state *f = all.forkers;
  while (f && f->taken) f = f->next;
  if (!f && (f = lvd_os_alloc(sizeof *f))) {
    f->next = all.forkers;
    all.forkers = f;
  }
  if (f) f->taken = true;
  return f;
}

/* Frees `f` for other threads; its spare deques go to `list`. With the lock held. */
static void free_fork_state(lvd_fork_state *f, lvd_aptr *list) {
  for (lvd_deque *d; (d = f->spare);) {
    f->spare = d->next;
    lvd_deque_give_back(list, d);
  }
  f->spares = 0;
  if (f->worker) f->worker->forker = NULL;
  f->reserve = NULL; /* its runtime is about to free it */
  f->taken = false;
}

/* The thread ends: no other thread can write to its words any more. */
static void end_fork_state(void *argument) {
  lvd_fork_state *f = argument;
  lvd_os_lock(&lvd_forks_lock);
  lvd_os_lock(&f->lock);
  f->thread = NULL;
  lvd_os_unlock(&f->lock);
  lvd_deque *d = lvd_load_relaxed_ptr(&f->deque);
  if (!lvd_load_relaxed_u32(&f->gone)) lvd_fork_proxy_leave(f);
  lvd_lease_end(&f->leased);
  lvd_aptr *list = lvd_deques_spare(f);
  if (d) lvd_deque_give_back(list, d);
  lvd_store_relaxed_ptr(&f->deque, NULL);
  free_fork_state(f, list);
  lvd_fork_state_here = NULL;
  lvd_forks.head = NULL;
  lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
  lvd_store_relaxed_ptr(&lvd_forks.floor, NULL);
  lvd_os_unlock(&lvd_forks_lock);
}

/* A thread that ends with open forks: a thief would write to a stack that is being freed. */
static void thread_ends(void *argument) {
  if (lvd_fork_state_is_open(argument)) {
    lvd_os_fatal_message(
        "levada: a thread ended with open forks (pthread_exit, or pthread_cancel), which "
        "must be joined first; the process ends\n");
    abort();
  }
  end_fork_state(argument);
}

/* ---- the runtime -------------------------------------------------------------------------- */

/* With the lock held. */
static lvd_runtime *some_runtime(void) {
  if (all.runtimes) return all.runtimes;
  lvd_os_unlock(&lvd_forks_lock); /* lvd_fork_runtime_start takes the lock */
  lvd_fork_runtime_start();
  lvd_os_lock(&lvd_forks_lock);
  return all.runtimes;
}

bool lvd_forks_open_here(void) {
  return lvd_fork_state_here && !lvd_load_relaxed_u32(&lvd_fork_state_here->gone) &&
         lvd_fork_state_is_open(lvd_fork_state_here);
}

bool lvd_forks_alone(void) {
  lvd_os_lock(&lvd_forks_lock);
  bool alone = !all.runtimes || !all.runtimes->next_runtime;
  lvd_os_unlock(&lvd_forks_lock);
  return alone;
}

/* Removes the runtime from the list, so that no thread begins to fork on it. With the lock held. */
static void delist(lvd_runtime *rt) {
  lvd_runtime **at = &all.runtimes;
  while (*at && *at != rt) at = &(*at)->next_runtime;
  if (*at) *at = rt->next_runtime;
}

bool lvd_forks_close(lvd_runtime *rt) {
  lvd_os_lock(&lvd_forks_lock);
  bool closed = true;
  for (const lvd_fork_state *f = all.forkers; f; f = f->next)
    if (f->taken && !f->worker && f != lvd_fork_state_here && f->forks->rt == rt) closed = false;
  if (closed) delist(rt);
  lvd_os_unlock(&lvd_forks_lock);
  return closed;
}

void lvd_forks_runtime_begins(lvd_runtime *rt) {
  lvd_os_lock(&lvd_forks_lock);
  lvd_runtime **at = &all.runtimes;
  while (*at) at = &(*at)->next_runtime;
  *at = rt;
  lvd_os_unlock(&lvd_forks_lock);
}

/* Its workers still run; no thread of the program is in a fork. */
void lvd_forks_runtime_ends(lvd_runtime *rt) {
  if (lvd_fork_state_here && lvd_fork_state_here->forks->rt == rt)
    lvd_lease_end(&lvd_fork_state_here->leased);
  lvd_os_lock(&lvd_forks_lock);
  delist(rt);
  for (lvd_fork_state *f = all.forkers; f; f = f->next) {
    if (!f->taken || f->worker || !f->forks || f->forks->rt != rt) continue;
    lvd_os_lock(&f->lock);
    lvd_store_relaxed_u32(&f->gone, 1);
    if (f->thread) lvd_store_relaxed_ptr(&f->thread->limit, NULL);
    lvd_os_unlock(&f->lock);
  }
  lvd_os_unlock(&lvd_forks_lock);
}

/* Its workers have ended. */
void lvd_forks_free(lvd_runtime *rt) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&rt->forks);
  if (!forks) return;
  lvd_os_lock(&lvd_forks_lock);
  for (uint32_t i = 0; i < rt->workers; i++) /* workers that never forked */
    if (rt->worker[i].forker) free_fork_state(rt->worker[i].forker, &lvd_spare_deques);
  for (lvd_deque *d; (d = lvd_deque_take_from(&forks->spare));)
    lvd_deque_give_back(&lvd_spare_deques, d);
  lvd_os_unlock(&lvd_forks_lock);
  lvd_os_free(forks, sizeof *forks);
}

/* Opens the application of the calls that threads of the program fork. Not on a worker: the locks
 * involved may wait for one. */
static bool open_app(lvd_fork_set *forks) {
  static const lvd_app_options options = {.name = "forks"};
  lvd_app *app;
  lvd_os_lock(&forks->opening);
  if (!lvd_load_relaxed_ptr(&forks->app) && lvd_app_open(forks->rt, &options, &app) == LVD_OK)
    lvd_store_relaxed_ptr(&forks->app, app);
  bool opened = lvd_load_relaxed_ptr(&forks->app);
  lvd_os_unlock(&forks->opening);
  return opened;
}

/* A call that fits on its thread's stack must fit where it is stolen: sets the stack size for
 * stolen calls. */
static void raise_stack_size(lvd_fork_set *forks, size_t size) {
  enum { GUARD_MAX_BYTES = 64 * 1024 }; /* not all systems count the guard */
  uint32_t size_log2 = lvd_load_relaxed_u32(&forks->stack_log2);
  while (size_log2 < LVD_STACK_LARGEST && ((size_t)1 << size_log2) + GUARD_MAX_BYTES < size)
    size_log2++;
  lvd_store_relaxed_u32(&forks->stack_log2, size_log2);
}

/* Assigns `f` to the worker `w` (null: a thread of the program). With the lock held. */
static void give_fork_state(lvd_fork_state *f, lvd_worker *w, lvd_fork_set *forks) {
  f->worker = w;
  f->forks = forks;
  f->place = LVD_NOWHERE;
  lvd_store_relaxed_u32(&f->gone, 0);
  lvd_store_relaxed_u32(&f->sleeps, 0);
  if (w) w->forker = f;
}

/* Prepares the fork state of a worker, so that the worker can begin without the lock: on the core
 * of a computing thread it could be delayed with the lock held. With the lock held. */
static void prepare(lvd_fork_set *forks, lvd_worker *w) {
  lvd_fork_state *f = new_fork_state();
  if (!f) return;
  give_fork_state(f, w, forks);
  if ((f->spare = lvd_deque_some(forks))) {
    f->spare->next = NULL;
    f->spares = 1;
  }
}

/* With the lock held. */
static lvd_fork_set *forks_of(lvd_runtime *rt) {
  lvd_fork_set *forks = lvd_load_relaxed_ptr(&rt->forks);
  if (forks || !(forks = lvd_os_alloc(sizeof *forks))) return forks;
  forks->rt = rt;
  lvd_store_relaxed_u32(&forks->stack_log2, LVD_STACK_MOST);
  for (uint32_t i = 0; i < rt->workers; i++) prepare(forks, &rt->worker[i]);
  lvd_store_release_ptr(&rt->forks, forks);
  return forks;
}

/* Called on the thread itself. */
static void start_fork_state(lvd_fork_state *f) {
  size_t size = 0;
  f->low = lvd_os_stack_low(&size);
  if (!f->worker) raise_stack_size(f->forks, size);
  lvd_store_relaxed_u32(&f->clock, (uint32_t)lvd_os_thread_cpu_clock());
  f->random = (uint64_t)(uintptr_t)f ^ lvd_os_ticks() ^ 1;
  lvd_os_lock(&f->lock);
  f->thread = &lvd_forks;
  lvd_os_unlock(&f->lock);
  lvd_fork_state_here = f;
}

/* ---- after fork(2) ------------------------------------------------------------------------- */

static void before_fork(void) {
  lvd_fork_runtime_before_fork();
  lvd_os_lock(&lvd_forks_lock);
}

static void after_fork(void) {
  lvd_os_unlock(&lvd_forks_lock);
  lvd_fork_runtime_after_fork();
}

/* In the child after fork(2): it has no workers until it forks, and ends without those of the
 * parent. Open forks that were stolen in the parent are lost. */
static void child_begins(void) {
  lvd_leases_child_begins();
  all.runtimes = NULL;
  all.forkers = NULL; /* their threads do not exist here, and may have held their locks */
  if (lvd_fork_state_here) {
    /* A thread that wrote to it does not exist here, and may have held its lock. */
    lvd_os_at_thread_exit(LVD_EXIT_HOOK_FORKS, thread_ends, NULL);
    if (!lvd_fork_state_is_open(lvd_fork_state_here)) {
      lvd_fork_state_here = NULL;
      lvd_forks.head = NULL;
      lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
      lvd_store_relaxed_ptr(&lvd_forks.floor, NULL);
    } else {
      lvd_fork_state_here->lock = (lvd_os_mutex){0};
      lvd_fork_state_here->leased = (lvd_leased){0};
      lvd_fork_state_here->next = NULL;
      all.forkers = lvd_fork_state_here;
    }
  }
  lvd_os_unlock(&lvd_forks_lock);
  lvd_fork_runtime_child_begins();
}

/* Sleeping workers do not count as thieves yet: wakes them. The worker that was replaced
 * stays asleep: at real-time priority it would push the thread, if that is not pinned, to the
 * core of a worker that steals, and a call stolen there would wait for the thread. */
static void nudge_others(lvd_runtime *rt, uint32_t place) {
  for (uint32_t i = 0; i < rt->workers; i++)
    if (i != place) lvd_forks_notify(&rt->worker[i]);
}

/* For a thread of the program, or for a worker before the first fork. */
static lvd_fork_state *begin_unprepared(lvd_worker *w) {
  if (!lvd_load_relaxed_u32(&all.at_fork) && !lvd_exchange_relaxed_u32(&all.at_fork, 1))
    lvd_os_at_fork(before_fork, after_fork, child_begins);
  lvd_os_lock(&lvd_forks_lock);
  lvd_runtime *rt = w ? w->rt : some_runtime();
  bool first = rt && !lvd_load_relaxed_ptr(&rt->forks);
  lvd_fork_set *forks = rt ? forks_of(rt) : NULL;
  lvd_fork_state *f = w ? w->forker : NULL;
  if (forks && !f && (f = new_fork_state())) give_fork_state(f, w, forks);
  if (f) start_fork_state(f);
  lvd_os_unlock(&lvd_forks_lock);
  if (f && !w) lvd_fork_proxy_poll(f);
  if (first && forks) nudge_others(rt, f ? f->place : LVD_NOWHERE);
  return f;
}

/* The thread forks or steals for the first time, or its runtime is gone. */
static LVD_COLD lvd_fork_state *begin(void) {
  lvd_worker *w = lvd_this_worker();
  if (lvd_fork_state_here) { /* gone: no thread steals from it, but its open forks must be joined */
    if (lvd_fork_state_is_open(lvd_fork_state_here)) return lvd_fork_state_here;
    end_fork_state(lvd_fork_state_here);
  } else if (lvd_forks.head) {
    return NULL; /* there was no memory, and the open forks were made without a slot */
  }
  lvd_fork_state *f = w && lvd_load_acquire_ptr(&w->rt->forks) ? w->forker : NULL;
  if (f)
    start_fork_state(f);
  else
    f = begin_unprepared(w);
  if (!f) return NULL;
  if (!w && !open_app(f->forks)) { /* no worker could steal a call */
    end_fork_state(f);
    return NULL;
  }
  lvd_fork_state_take_empty(f);
  if (!w) lvd_os_at_thread_exit(LVD_EXIT_HOOK_FORKS, thread_ends, f);
  return f;
}

lvd_fork_state *lvd_fork_state_self(void) {
  lvd_fork_state *f = lvd_fork_state_here;
  return f && !lvd_load_relaxed_u32(&f->gone) ? f : begin();
}

/* The worker's thread ends. */
void lvd_forks_worker_ends(void) {
  if (lvd_fork_state_here) end_fork_state(lvd_fork_state_here);
}

/* ---- waiting ------------------------------------------------------------------------------ */

void lvd_fork_wait(lvd_fork_state *f, lvd_deque *d) {
  lvd_fiber *fiber = lvd_fiber_self();
  if (fiber) {
    lvd_app *app = fiber->entity.app;
    lvd_add_relaxed_u32(&app->live, 1); /* the thief will complete the call */
    lvd_fiber_wait_uninterruptible(fiber, &d->joined);
    lvd_add_relaxed_u32(&app->live, UINT32_MAX);
    return;
  }
  lvd_worker *w = f->worker;
  if (w && w->current && w->current->stack) {
    lvd_actor_suspend_for_call(w, w->current);
    return;
  }
  lvd_store_relaxed_u32(&f->sleeps, 1);
  if (f->place != LVD_NOWHERE && !lvd_load_relaxed_u32(&f->gone)) {
    lvd_fork_proxy_wake(&f->forks->rt->worker[f->place]);
  }
  lvd_lease_leave(&f->leased);
  lvd_event_wait(&d->joined, NULL, -1);
  if (f->place != LVD_NOWHERE) lvd_lease_enter(&f->leased, f->leased.cpu);
  lvd_store_relaxed_u32(&f->sleeps, 0);
}

/* The owner cannot continue before it is told, so the fields of `d` are valid. */
void lvd_fork_complete(lvd_deque *d) {
  lvd_entity *actor = lvd_load_relaxed_ptr(&d->actor);
  if (actor)
    lvd_call_complete(actor);
  else
    lvd_event_set(&d->joined, 1);
}

void lvd_fork_states_wake(void) {
  lvd_os_lock(&lvd_forks_lock);
  for (lvd_fork_state *f = all.forkers; f; f = f->next) {
    lvd_os_lock(&f->lock);
    if (f->thread) lvd_store_relaxed_ptr(&f->thread->floor, (void *)UINTPTR_MAX);
    lvd_os_unlock(&f->lock);
  }
  lvd_os_unlock(&lvd_forks_lock);
}

/* ---- counters ----------------------------------------------------------------------------- */

void lvd_fork_counters_read(lvd_fork_counters *out) {
  memset(out, 0, sizeof *out);
  lvd_os_lock(&lvd_forks_lock);
  for (lvd_fork_state *f = all.forkers; f; f = f->next) {
    out->stolen += lvd_load_relaxed_u64(&f->stolen);
    out->leapfrogged += lvd_load_relaxed_u64(&f->leapfrogged);
    out->steal_requests += lvd_load_relaxed_u64(&f->steal_requests);
    out->published += lvd_load_relaxed_u64(&f->published);
    out->full += lvd_load_relaxed_u64(&f->full);
    out->waits += lvd_load_relaxed_u64(&f->waits);
    out->woken += lvd_load_relaxed_u64(&f->woken);
  }
  lvd_os_unlock(&lvd_forks_lock);
}
