/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Watchdog: a thread that finds workers blocked in system calls, such as a native that reads a
 * pipe or sleeps. A blocked activation delays what is queued behind it as a long computation
 * does, but the worker's clock counts CPU time and does not tick then. So the watchdog samples
 * the workers that are awake. If one has been in the same activation for BLOCKED_MIN_NS and its
 * thread is blocked, the watchdog sends the preemption signal; in its handler the worker migrates
 * its ready entities (overrun.c).
 *
 * When it signals:
 *   - once per activation, since an interrupted system call without SA_RESTART, such as a sleep,
 *     returns early
 *   - again when more work has arrived there, or a timer there is due
 *   - again when entities could not be migrated for lack of a worker, and one is available now
 *   - at each sample while the application is to end, or is a C program that is to pause
 *
 * A thread is also blocked while it waits for its core's lease (lease_client.h). That is neither
 * time of the activation nor a blocking call; so the watchdog checks for it before and after it
 * reads the thread's state.
 *
 * It also starts the backup worker of a core, when an activation lasts and all other workers are
 * in an overrun (backup_worker.c).
 *
 * Between sample and signal the worker may have started an activation of another application.
 * That is harmless: a sleep there ends early, as any may once. Whether to end other system calls
 * early is decided in the handler, which sees the current activation (forced_exit.c).
 *
 * While all workers sleep, so does the watchdog: an idle runtime uses no CPU time. A worker that
 * wakes when none was awake wakes it; it keeps sampling for IDLE_SAMPLES_MAX samples after the
 * last worker has fallen asleep. After each sleep it calls the option `awake`, so that an
 * external monitor can sleep for as long.
 *
 * No orders of its own. `rt->awake` is twice the number of awake workers, plus 1 while the
 * watchdog sleeps on the word. It is only changed by read-modify-write. The worker that changes 1
 * to 3 subtracts the 1 and wakes the watchdog, which then stays awake however soon that worker
 * sleeps again: no wake-up is lost. What the watchdog reads of a worker is advisory: the worker
 * itself compares the number of the activation. */
#include "sched.h"

#include <stdlib.h>

enum {
  SAMPLE_INTERVAL_NS = 20000000,
  BLOCKED_MIN_NS =
      80000000, /* with the sampling interval about 100 ms, as for computations (overrun.c) */
  /* Samples until it sleeps, so that a worker that wakes ten times a second need not wake it each
   * time. */
  IDLE_SAMPLES_MAX = 25
};

/* The last sample of a worker. */
typedef struct worker_sample {
  uint64_t activation; /* 1 + the number of the activation; 0: none ran */
  uint64_t since_ns;
  uint64_t waited_ns; /* total time in waits for leases */
  bool asked;
} worker_sample;

struct lvd_watchdog {
  lvd_os_thread *thread;
  lvd_a32 ends;
  worker_sample worker[];
};

/* ---- workers -------------------------------------------------------------------------------- */

/* The priority worker of a core sleeps most of the time and migrates nothing. */
static bool is_watched(const lvd_worker *w) { return !lvd_is_priority_worker(w->rt, w->index); }

void lvd_watchdog_begin(lvd_worker *w) {
  lvd_store_relaxed_u32(&w->number, lvd_os_thread_id());
  lvd_watchdog_awake(w);
}

static void one_more_awake(lvd_runtime *rt) {
  if (lvd_add_relaxed_u32(&rt->awake, 2) != 1) return;
  lvd_add_relaxed_u32(&rt->awake, UINT32_MAX);
  lvd_os_wake(&rt->awake);
}

void lvd_watchdog_awake(lvd_worker *w) {
  if (is_watched(w)) one_more_awake(w->rt);
}

void lvd_watchdog_asleep(lvd_worker *w) {
  if (is_watched(w)) lvd_add_relaxed_u32(&w->rt->awake, UINT32_MAX - 1);
}

/* May a system call of the application be interrupted? A network that ends by itself may still be
 * writing output. */
static bool is_to_end(const lvd_app *app) {
  return lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING &&
         (lvd_load_relaxed_u32(&app->stopped) || lvd_app_is_program(app));
}

/* On all workers at once, wherever it runs. */
void lvd_watchdog_expect_exit(lvd_app *app) {
  if (!is_to_end(app)) return;
  for (uint32_t i = 0; i < lvd_worker_total(app->rt); i++) {
    lvd_worker *w = &app->rt->worker[i];
    if (lvd_load_relaxed_ptr(&w->running) == app) lvd_store_relaxed_ptr(&w->exiting_app, app);
  }
}

void lvd_watchdog_expect_pause(lvd_worker *w, lvd_app *app) {
  if (lvd_app_is_program(app) && lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_ALL)
    lvd_store_relaxed_ptr(&w->pausing_app, app);
}

/* ---- sampling ------------------------------------------------------------------------------- */

/* Has the worker received something that it could migrate, or is a timer due? All migratable
 * entities of its own queues were migrated before, unless no worker was available. */
static bool has_more(lvd_worker *w) {
  return lvd_inbox_pending(&w->inbox) || lvd_load_relaxed_ptr(&w->commands) ||
         lvd_load_relaxed_u64(&w->next_due) <= lvd_os_ticks() ||
         (lvd_load_relaxed_u32(&w->migrate_failed) && lvd_find_backup_worker(w));
}

/* Does its thread wait for its core's lease, or has it waited since the last sample? Time in such
 * waits is not time of the activation. */
static bool waits_for_core(const lvd_worker *w, worker_sample *s) {
  if (lvd_load_relaxed_u32(&w->leased.waits)) return true;
  uint64_t waited = lvd_load_relaxed_u64(&w->leased.waited_ns), more = waited - s->waited_ns;
  s->since_ns += more;
  s->waited_ns = waited;
  return more;
}

static void sample(lvd_worker *w, worker_sample *s, uint64_t now) {
  bool runs = lvd_load_relaxed_u32(&w->running_queue) != 0;
  uint64_t activation = runs ? lvd_load_relaxed_u64(&w->activations) + 1 : 0;
  bool waits = waits_for_core(w, s);
  if (activation != s->activation) {
    s->activation = activation;
    s->since_ns = now;
    s->asked = false;
  }
  if (!activation || now < s->since_ns + BLOCKED_MIN_NS) return;
  lvd_backup_worker_request(w);
  bool migrated = s->asked && lvd_load_relaxed_u64(&w->blocked_activation) == 0;
  const lvd_app *running = lvd_load_relaxed_ptr(&w->running);
  const lvd_app *ends = lvd_load_relaxed_ptr(&w->exiting_app);
  lvd_store_relaxed_ptr(&w->exiting_app, NULL); /* the reaper sets it again */
  if (ends != running) ends = NULL;
  bool pauses = running && running == lvd_load_relaxed_ptr(&w->pausing_app);
  if (migrated && !has_more(w) && !ends && !pauses) return;
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  /* It is not blocked: its own clock ticks. */
  if (!number || waits || !lvd_os_thread_is_blocked(number)) return;
  if (waits_for_core(w, s)) return;
  s->asked = true;
  lvd_store_relaxed_u64(&w->blocked_activation, activation);
  lvd_os_thread_signal(number);
}

static void watch(void *runtime) {
  lvd_runtime *rt = runtime;
  struct lvd_watchdog *watchdog = rt->watchdog;
  uint32_t idle = 0;
  lvd_take_priority(rt, LVD_PRIO_SERVICE);
  while (!lvd_load_relaxed_u32(&watchdog->ends)) {
    idle = lvd_load_relaxed_u32(&rt->awake) ? 0 : idle + 1;
    uint32_t none = 0;
    if (idle > IDLE_SAMPLES_MAX && lvd_cas_relaxed_u32(&rt->awake, &none, 1)) {
      while (lvd_load_relaxed_u32(&rt->awake) == 1) lvd_os_wait(&rt->awake, 1, -1);
      idle = 0;
      if (rt->options.on_wakeup) rt->options.on_wakeup(rt->options.argument);
    }
    uint64_t now = lvd_os_now_ns();
    for (uint32_t i = 0; i < lvd_worker_total(rt); i++)
      /* Backup workers are prepared by this thread. */
      if (!lvd_is_priority_worker(rt, i) && rt->worker[i].rt)
        sample(&rt->worker[i], &watchdog->worker[i], now);
    lvd_os_wait(&watchdog->ends, 0, SAMPLE_INTERVAL_NS);
  }
}

/* The option `awake` is called after each such period: a thread that sees true here and then
 * waits for that call misses no worker that gets work from then on. */
bool lvd_runtime_is_idle(const lvd_runtime *rt) { return lvd_load_relaxed_u32(&rt->awake) == 1; }

/* ---- the thread ----------------------------------------------------------------------------- */

/* It runs with a single worker, too. There is no other worker to migrate to, but threads that
 * wait for an application to end or to pause are answered, and a system call that blocks past the
 * end is interrupted. */
lvd_status lvd_watchdog_start(lvd_runtime *rt) {
  rt->watchdog = calloc(1, sizeof *rt->watchdog + lvd_worker_total(rt) * sizeof(worker_sample));
  if (!rt->watchdog) return LVD_E_MEMORY;
  return lvd_os_thread_start(&rt->watchdog->thread, -1, "levada/watchdog", watch, rt);
}

void lvd_watchdog_end(lvd_runtime *rt) {
  struct lvd_watchdog *watchdog = rt->watchdog;
  if (!watchdog) return;
  if (watchdog->thread) {
    lvd_store_relaxed_u32(&watchdog->ends, 1);
    lvd_os_wake(&watchdog->ends);
    one_more_awake(rt); /* as a worker that wakes up */
    lvd_os_thread_join(watchdog->thread);
  }
  free(watchdog);
  rt->watchdog = NULL;
}
