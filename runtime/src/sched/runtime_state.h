/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The runtime: its workers, its applications, and resources kept for reuse. */
#ifndef LVD_SCHED_RUNTIME_STATE_H
#define LVD_SCHED_RUNTIME_STATE_H

#include "app_state.h"

struct lvd_runtime {
  lvd_runtime_options options;
  uint32_t workers;
  /* Array: one worker per core, then their priority workers (priority_worker.c), then their
   * backup workers (backup_worker.c). */
  lvd_worker *worker;
  bool has_backup_workers; /* there are backup workers */
  lvd_slot *slot;          /* one slot per loaded entity, for the inboxes ... */
  lvd_entity **entity;     /* ... and the entity of each slot */
  uint32_t slot_hint;      /* where to search for a free slot for an actor; under `lock` */
  bool one_core;           /* the process may use only one core */
  bool fenced;
  /* Number of links to other processes and processors, which may run on another core. */
  lvd_a32 links;
  lvd_a32 awaited;      /* number of threads in lvd_app_wait_inactive */
  lvd_command *command; /* array, one per worker: for reserving a core and for ending the runtime */
  lvd_os_mutex lock;    /* protects the list of applications and the running set */
  lvd_app *apps;
  uint64_t loads;             /* number of applications loaded so far */
  uint32_t available_count;   /* number of workers in the running set */
  struct lvd_reaper *reapers; /* list, usually of one (app_reaper.c); under pool_lock */
  lvd_a32 reapers_idle;
  lvd_a32 reaper_work; /* incremented when an application begins to end; reapers sleep on it */
  lvd_a32 reaper_ending;
  struct lvd_watchdog *watchdog;
  /* Twice the number of awake workers, plus 1 while the watchdog sleeps (watchdog.c). */
  lvd_a32 awake;
  /* Resources kept for reuse (app.c, fiber_pool.c). */
  lvd_os_mutex pool_lock; /* protects the fields from here to forks */
  lvd_app *spare_apps;
  struct lvd_call *spare_calls;
  lvd_fiber *spare[LVD_STACKS];
  lvd_aptr fiber_chunks;
  uint32_t fiber_hint;        /* as slot_hint, for fibers */
  uint32_t own_stacks;        /* the most free stacks of one size that a worker keeps */
  struct lvd_helper *helpers; /* threads for blocking calls (blocking_pool.c) ... */
  /* ... and the queue of calls that wait for one */
  struct lvd_blocking_request *calls_first, *calls_last;
  uint32_t helper_count;
  lvd_os_poller *poller; /* waits for descriptors */
  lvd_os_thread *poller_thread;
  struct lvd_blocking_request *watched[LVD_WATCHED]; /* hash table by descriptor */
  lvd_a32 next_backup_worker;                        /* rotating index of lvd_find_backup_worker */
  lvd_a32 next_place; /* rotating index for fibers that may run anywhere */
  lvd_aptr forks;     /* lvd_fork_set; null until the first fork (fork_thread.c) */
  lvd_runtime *next_runtime;
};

/* May an actor of `app` run on `w`? Called with rt->lock held. */
static inline bool lvd_core_is_for(const lvd_worker *w, const lvd_app *app) {
  return lvd_load_relaxed_u32(&w->available) || lvd_load_relaxed_ptr(&w->alone) == app;
}

/* Is `w` still in the activation that was found in an overrun (overrun.c)? */
static inline bool lvd_worker_is_overrun(const lvd_worker *w) {
  return lvd_load_relaxed_u64(&w->stuck) == lvd_load_relaxed_u64(&w->activations) + 1;
}

/* Time in the running activation, as the clock has counted it. */
static inline uint64_t lvd_clocked_ms(const lvd_worker *w) {
  return (uint64_t)w->clock_ticks * LVD_TICK_MS;
}

/* Number of workers, priority and backup workers included. */
static inline uint32_t lvd_worker_total(const lvd_runtime *rt) {
  return (rt->has_backup_workers ? 3 : 2) * rt->workers;
}
static inline bool lvd_is_priority_worker(const lvd_runtime *rt, uint32_t index) {
  return index >= rt->workers && index < 2 * rt->workers;
}

/* The total sleep of a worker is one word, so that a reader can include the present sleep: twice
 * the ticks; during a sleep, 1 plus twice (the previous total minus the time of falling asleep).
 * The clocks of two cores differ slightly, and so may successive values that two cores read. */
static inline uint64_t lvd_worker_slept_ticks(const lvd_worker *w) {
  uint64_t word = lvd_load_relaxed_u64(&w->slept);
  uint64_t half = word >> 1 | (word & UINT64_C(1) << 63); /* keep the sign */
  uint64_t ticks = word & 1 ? half + lvd_os_ticks() : half;
  return ticks >> 63 ? 0 : ticks; /* the reader's clock may be slightly behind */
}
static inline void lvd_worker_sleep_begin(lvd_worker *w) {
  uint64_t from = (lvd_load_relaxed_u64(&w->slept) >> 1) - lvd_os_ticks();
  lvd_store_relaxed_u64(&w->slept, from << 1 | 1);
}
static inline void lvd_worker_sleep_end(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->slept, lvd_worker_slept_ticks(w) << 1);
}

/* ns since the running activation of `e` began; 0: none runs, or it has just begun
 * (app_counters.c) */
uint64_t lvd_runs_ns(const lvd_entity *e);

/* With real-time priorities enabled, all threads that run application code have the base priority
 * and share a core in turns. Urgent threads are one above, and service threads, which run no
 * application code and must run whatever the workers compute, are two above. */
typedef enum lvd_prio_class { LVD_PRIO_APP, LVD_PRIO_URGENT, LVD_PRIO_SERVICE } lvd_prio_class;
_Static_assert(LVD_REALTIME_MAX + LVD_PRIO_SERVICE == 99, "the system has priorities 1 to 99");

/* Whether the system permits it was checked before the workers were started
 * (lvd_runtime_create). */
static inline void lvd_take_priority(const lvd_runtime *rt, lvd_prio_class above) {
  uint32_t least = rt->options.realtime;
  if (least) lvd_os_thread_set_realtime(least + (uint32_t)above);
}

/* How long to poll before sleeping. On a single core nothing changes while this thread polls,
 * except by links. */
static inline uint32_t lvd_spin_us(const lvd_runtime *rt) {
  bool still = rt->one_core && !lvd_load_relaxed_u32(&rt->links);
  return rt->options.no_spin || still ? 0 : rt->options.spin_us;
}

static inline uint32_t lvd_level_of(int64_t priority) {
  int64_t level = priority + LVD_INBOX_LEVELS / 2;
  return level < 0 ? 0 : level >= LVD_INBOX_LEVELS ? LVD_INBOX_LEVELS - 1 : (uint32_t)level;
}

#endif
