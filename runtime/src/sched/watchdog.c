/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Watchdog: a worker whose activation sleeps in the system, in a native that waits for a pipe or for a time,
 * holds up what is behind it as one does that computes without end. But its clock counts CPU time, of which
 * it has none. So a thread looks at the workers that are awake: where one has been in the same activation for
 * long, and its thread sleeps, it sends it the signal of the clock, and the worker gives away what it has, in
 * the signal's handler (overrun.c). Once for each activation, since calls of the system that a signal interrupts may
 * return early (those that SA_RESTART does not apply to: a sleep); and again only when something more has come to
 * it, or somebody who waits there for a time is due, or its application is to end, or a C program is paused: then at
 * each look, until it has left the call, and of what is to end the other calls end early, too.
 *
 * A thread also sleeps while its core is lent to another process (lease_client.h), wherever it is. That is no time of the
 * activation's, nor a sleep of its own: whether it has waited so is asked before and after what the system says of it.
 *
 * It also starts the relief of a core, when an activation lasts and every other worker is stuck (backup_worker.c), and again
 * sends the signal to who had something for which there was nobody then, and is now.
 *
 * Between the look and the signal the worker may have gone on to another application, which sleeps by then. That
 * loses nothing: its sleep ends early, as the watchdog may end any once; whether a call that would go on ends
 * early is decided in the handler, on the worker's thread, which sees what runs there (forced_exit.c).
 *
 * While every worker sleeps, so does the watchdog: an idle runtime costs nothing. A worker that wakes up when
 * none was awake wakes it, and it goes on looking for a while longer than anybody is awake. It tells whoever looks at
 * what runs here from outside (`awake` of the options), who so may sleep for as long.
 *
 * No orders of its own. `rt->awake` counts the workers that are awake, by twos; 1: the watchdog sleeps on it.
 * It is changed by read-modify-write alone. Who makes 3 of 1 takes the 1 away and wakes it, so it stays awake however
 * soon that worker sleeps again: nobody's waking is missed. What it sees of a worker is advice: the worker itself
 * compares the number of the activation. */
#include "sched.h"

#include <stdlib.h>

enum {
  LOOK_NS = 20000000,
  LASTS_NS =
      80000000, /* with the looks before and after: some 100 ms, as for what computes (overrun.c) */
  LOOKS_IDLE = 25 /* until it sleeps: who wakes up ten times a second need not wake it each time */
};

/* What the last look has seen of a worker. */
typedef struct seen {
  uint64_t activation; /* 1 + its number; 0: it was between two */
  uint64_t since_ns;
  uint64_t waited_ns; /* for leases, in all */
  bool asked;
} seen;

struct lvd_watchdog {
  lvd_os_thread *thread;
  lvd_a32 ends;
  seen worker[];
};

/* ---- workers -------------------------------------------------------------------------------- */

/* The urgent one of a core sleeps most of the time and gives nothing away. */
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

/* May what it has in hand be interrupted? Of a network that ends by itself an output may still be written. */
static bool is_to_end(const lvd_app *app) {
  return lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING &&
         (lvd_load_relaxed_u32(&app->stopped) || lvd_app_is_program(app));
}

/* All at the same time, wherever it runs. */
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

/* ---- looking -------------------------------------------------------------------------------- */

/* Has something come to it that it would give away, or is somebody due? Of what lies in its own queues it has given
 * away all that may be, unless there was nobody for it. */
static bool has_more(lvd_worker *w) {
  return lvd_inbox_pending(&w->inbox) || lvd_load_relaxed_ptr(&w->commands) ||
         lvd_load_relaxed_u64(&w->next_due) <= lvd_os_ticks() ||
         (lvd_load_relaxed_u32(&w->migrate_failed) && lvd_find_backup_worker(w));
}

/* Does it wait for its core's lease, or has it since what was last seen? What it has waited is no time of its
 * activation's. */
static bool waits_for_core(const lvd_worker *w, seen *s) {
  if (lvd_load_relaxed_u32(&w->leased.waits)) return true;
  uint64_t waited = lvd_load_relaxed_u64(&w->leased.waited_ns), more = waited - s->waited_ns;
  s->since_ns += more;
  s->waited_ns = waited;
  return more;
}

static void look(lvd_worker *w, seen *s, uint64_t now) {
  bool runs = lvd_load_relaxed_u32(&w->running_queue) != 0;
  uint64_t activation = runs ? lvd_load_relaxed_u64(&w->activations) + 1 : 0;
  bool waits = waits_for_core(w, s);
  if (activation != s->activation) {
    s->activation = activation;
    s->since_ns = now;
    s->asked = false;
  }
  if (!activation || now < s->since_ns + LASTS_NS) return;
  lvd_backup_worker_request(w);
  bool relieved = s->asked && lvd_load_relaxed_u64(&w->blocked_activation) == 0;
  const lvd_app *running = lvd_load_relaxed_ptr(&w->running);
  const lvd_app *ends = lvd_load_relaxed_ptr(&w->exiting_app);
  lvd_store_relaxed_ptr(&w->exiting_app, NULL); /* the keeper says it again */
  if (ends != running) ends = NULL;
  bool halts = running && running == lvd_load_relaxed_ptr(&w->pausing_app);
  if (relieved && !has_more(w) && !ends && !halts) return;
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  if (!number || waits || !lvd_os_thread_is_blocked(number)) return; /* its own clock goes */
  if (waits_for_core(w, s)) return;
  s->asked = true;
  lvd_store_relaxed_u64(&w->blocked_activation, activation);
  lvd_os_thread_signal(number);
}

static void watch(void *runtime) {
  lvd_runtime *rt = runtime;
  struct lvd_watchdog *dog = rt->watchdog;
  uint32_t idle = 0;
  lvd_take_priority(rt, LVD_PRIO_SERVICE);
  while (!lvd_load_relaxed_u32(&dog->ends)) {
    idle = lvd_load_relaxed_u32(&rt->awake) ? 0 : idle + 1;
    uint32_t none = 0;
    if (idle > LOOKS_IDLE && lvd_cas_relaxed_u32(&rt->awake, &none, 1)) {
      while (lvd_load_relaxed_u32(&rt->awake) == 1) lvd_os_wait(&rt->awake, 1, -1);
      idle = 0;
      if (rt->options.awake) rt->options.awake(rt->options.argument);
    }
    uint64_t now = lvd_os_now_ns();
    for (uint32_t i = 0; i < lvd_worker_total(rt); i++)
      if (!lvd_is_priority_worker(rt, i) && rt->worker[i].rt) /* a relief begins by our doing */
        look(&rt->worker[i], &dog->worker[i], now);
    lvd_os_wait(&dog->ends, 0, LOOK_NS);
  }
}

/* Since `awake` is called behind every such time, who sees this and then waits for that call misses nobody who has
 * something to do from then on. */
bool lvd_runtime_rests(const lvd_runtime *rt) { return lvd_load_relaxed_u32(&rt->awake) == 1; }

/* ---- the thread ----------------------------------------------------------------------------- */

/* With one worker, too: there is nobody to give anything to, but who waits for the worker to have done with an
 * application, which is to end or to pause, is answered, and what sleeps there past its end is ended. */
lvd_status lvd_watchdog_start(lvd_runtime *rt) {
  rt->watchdog = calloc(1, sizeof *rt->watchdog + lvd_worker_total(rt) * sizeof(seen));
  if (!rt->watchdog) return LVD_E_MEMORY;
  return lvd_os_thread_start(&rt->watchdog->thread, -1, "levada/watchdog", watch, rt);
}

void lvd_watchdog_end(lvd_runtime *rt) {
  struct lvd_watchdog *dog = rt->watchdog;
  if (!dog) return;
  if (dog->thread) {
    lvd_store_relaxed_u32(&dog->ends, 1);
    lvd_os_wake(&dog->ends);
    one_more_awake(rt); /* as a worker that wakes up */
    lvd_os_thread_join(dog->thread);
  }
  free(dog);
  rt->watchdog = NULL;
}
