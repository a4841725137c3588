/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The runtime: its workers, its applications, and what lies ready to be used again. */
#ifndef LVD_SCHED_RUNTIME_STATE_H
#define LVD_SCHED_RUNTIME_STATE_H

#include "app_state.h"

struct lvd_runtime {
  lvd_runtime_options options;
  uint32_t workers;
  lvd_worker *
      worker; /* behind them the urgent one of each core (priority_worker.c), and its relief (backup_worker.c) */
  bool relieved;       /* it has these */
  lvd_slot *slot;      /* a slot for each entity that is loaded, for the inboxes ... */
  lvd_entity **entity; /* ... and whose it is */
  uint32_t slot_hint;  /* where a free one may be, for actors; under `lock` */
  bool one_core;       /* that this process may use */
  bool fenced;
  lvd_a32 links;        /* to what may be on another core: processes, second processors */
  lvd_a32 awaited;      /* how many wait for a turn of some worker (lvd_app_wait_inactive) */
  lvd_command *command; /* one for each worker: of who takes a core, or ends the runtime */
  lvd_os_mutex lock;    /* the list of applications, the running set */
  lvd_app *apps;
  uint64_t loads;             /* applications that were loaded */
  uint32_t given_count;       /* workers in the running set */
  struct lvd_reaper *keepers; /* under pool_lock: usually one (app_reaper.c) */
  lvd_a32 reapers_idle;
  lvd_a32 reaper_work; /* bumped when an application begins to end; the keeper sleeps on it */
  lvd_a32 reaper_ending;
  struct lvd_watchdog *watchdog;
  lvd_a32 awake; /* workers, by twos (watchdog.c) */
  /* What lies ready to be used again (app.c, fiber_pool.c). */
  lvd_os_mutex pool_lock; /* what is kept to be used again */
  lvd_app *spare_apps;
  struct lvd_call *spare_calls;
  lvd_fiber *spare[LVD_STACKS];
  lvd_aptr fiber_chunks;
  uint32_t fiber_hint;        /* as slot_hint, for fibers */
  uint32_t own_stacks;        /* that a worker keeps of one size */
  struct lvd_helper *helpers; /* threads for calls that block (blocking_pool.c) ... */
  struct lvd_blocking_request *calls_first, *calls_last; /* ... and calls that wait for one */
  uint32_t helper_count;
  lvd_os_poller *poller; /* who waits for descriptors, and the thread that does */
  lvd_os_thread *poller_thread;
  struct lvd_blocking_request *watched[LVD_WATCHED]; /* by descriptor */
  lvd_a32 next_backup_worker;                        /* where what is behind a stuck worker goes */
  lvd_a32 next_place; /* where the next fiber that may be anywhere goes */
  lvd_aptr forks;     /* null until the first fork (fork_thread.c) */
  lvd_runtime *next_runtime;
};

/* May an actor of `app` be there? Under the runtime's lock. */
static inline bool lvd_core_is_for(const lvd_worker *w, const lvd_app *app) {
  return lvd_load_relaxed_u32(&w->given) || lvd_load_relaxed_ptr(&w->alone) == app;
}

/* Still in the activation in which its clock said that it is (overrun.c)? */
static inline bool lvd_worker_is_overrun(const lvd_worker *w) {
  return lvd_load_relaxed_u64(&w->stuck) == lvd_load_relaxed_u64(&w->activations) + 1;
}

/* What the clock has counted of the activation that runs. */
static inline uint64_t lvd_clocked_ms(const lvd_worker *w) {
  return (uint64_t)w->clock_ticks * LVD_TICK_MS;
}

/* Workers, with the urgent ones and the reliefs. */
static inline uint32_t lvd_worker_total(const lvd_runtime *rt) {
  return (rt->relieved ? 3 : 2) * rt->workers;
}
static inline bool lvd_is_priority_worker(const lvd_runtime *rt, uint32_t index) {
  return index >= rt->workers && index < 2 * rt->workers;
}

/* What a worker has slept, in one word, so that who reads it sees the sleep that goes on, too: twice the
 * ticks; while it sleeps, 1 and twice what they were, less the time when it fell asleep. Clocks of two
 * cores differ a little, and so may what one reads from what another has read before. */
static inline uint64_t lvd_worker_slept_ticks(const lvd_worker *w) {
  uint64_t word = lvd_load_relaxed_u64(&w->slept);
  uint64_t half = word >> 1 | (word & UINT64_C(1) << 63); /* with its sign */
  uint64_t ticks = word & 1 ? half + lvd_os_ticks() : half;
  return ticks >> 63 ? 0 : ticks; /* on another core it is a little earlier */
}
static inline void lvd_worker_sleep_begin(lvd_worker *w) {
  uint64_t from = (lvd_load_relaxed_u64(&w->slept) >> 1) - lvd_os_ticks();
  lvd_store_relaxed_u64(&w->slept, from << 1 | 1);
}
static inline void lvd_worker_sleep_end(lvd_worker *w) {
  lvd_store_relaxed_u64(&w->slept, lvd_worker_slept_ticks(w) << 1);
}

/* How long the activation of `e` that runs has taken; 0: none does, or it began a moment ago (counters.c). */
uint64_t lvd_runs_ns(const lvd_entity *e);

/* Where a runtime is to have a real-time priority, all that runs code of applications has it, in turns where it
 * shares a core; what is urgent goes before that, and before both who serves the workers: what runs nobody's code
 * and must have its turn whatever they compute. */
typedef enum lvd_prio_class { LVD_PRIO_APP, LVD_PRIO_URGENT, LVD_PRIO_SERVICE } lvd_prio_class;
_Static_assert(LVD_REALTIME_MOST + LVD_PRIO_SERVICE == 99, "the system has priorities 1 to 99");

/* That the system allows it was found out before there were workers (lvd_runtime_create). */
static inline void lvd_take_priority(const lvd_runtime *rt, lvd_prio_class above) {
  uint32_t least = rt->options.realtime;
  if (least) lvd_os_thread_set_realtime(least + (uint32_t)above);
}

/* How long somebody looks around before he sleeps. On our only core nothing changes meanwhile, but for
 * what others than we push. */
static inline uint32_t lvd_spin_us(const lvd_runtime *rt) {
  bool still = rt->one_core && !lvd_load_relaxed_u32(&rt->links);
  return rt->options.no_spin || still ? 0 : rt->options.spin_us;
}

static inline uint32_t lvd_level_of(int64_t priority) {
  int64_t level = priority + LVD_INBOX_LEVELS / 2;
  return level < 0 ? 0 : level >= LVD_INBOX_LEVELS ? LVD_INBOX_LEVELS - 1 : (uint32_t)level;
}

#endif
