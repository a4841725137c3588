/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lost time: something runs on a worker, and its thread has no core, since another program has that, or its
 * lease. What an activation is said to take is without it (`since` moves on by as much): else a cost would tell
 * of others, and be another one tomorrow. What an activation sleeps in the system counts: nobody else can have
 * the worker meanwhile (watchdog.c).
 *
 * The clock is the processor's own, which costs next to nothing, and goes on while the thread does not. Who has lost
 * something has taken long by it; so the system is asked only after an activation that was long, and at each tick of
 * the clock of CPU time, where one lasts. What is neither CPU time nor a sleep of the worker itself is either lost or
 * slept by what ran, and no more of it is lost than what the system says that the thread was kept waiting for a core,
 * and we that it waited for its lease.
 *
 * A system that does not say it may count at least how often the thread has slept, which is asked after each rest: who
 * has not slept since has lost all that is missing. Who has, for a lease or for anything else, has lost what he waited for
 * leases, as far as is known, and that is all that is known on a system that does not even count.
 *
 * What is lost between two activations, and when a worker is woken, is no activation's. But the system counts that as
 * waiting, too, in one number; so it is asked again when a worker has rested, unless it has said so less than LASTS_NS
 * ago. In that time nobody can wait for longer than it lasts: by no more than that a sleep, which is all missing, can be
 * told too short for what was waited before it. What is left out: a loss
 * shorter than LONG_NS in an activation that is. Who reads the counters of one that runs looks, too, since ticks of the clock
 * are rare where others have most of the core; what is missing to a thread that does not sleep is lost for him.
 *
 * Which clock is whose: costs, turns among those on a worker, the share of cores that an application may have: without
 * what is lost. A promised rate: time as it is outside. The time limit of an action, and ticks: CPU time. How long what
 * waits may be held up (the watchdog, a turn that another worker's wake-up ends): what has gone by.
 *
 * `lost` is the worker's own. The clock's handler looks only while something runs, and the worker only while nothing
 * does, so that neither interrupts the other. */
#include "sched.h"

enum {
  LONG_NS = 100000,
  LASTS_NS = 5000000, /* to ask takes some microseconds */
  LEAST_NS = 20000 /* less than that is no loss, but what lies between the readings of two clocks */
};

/* What is missing to the CPU time `cpu` at `now`, since the last look. */
static uint64_t missing_ns(const lvd_worker *w, uint64_t awake, uint64_t cpu_ns) {
  uint64_t from = lvd_load_relaxed_u64(&w->steal.awake);
  uint64_t went = awake > from ? lvd_os_ticks_to_ns(awake - from) : 0;
  uint64_t computed = cpu_ns - lvd_load_relaxed_u64(&w->steal.cpu_ns);
  return went > computed ? went - computed : 0;
}

/* As much of it as the thread of worker `w` was ready, and was not let in, as far as is known. */
static uint64_t lost_of(const lvd_worker *w, uint64_t missing, uint64_t waited_ns) {
  uint64_t before = lvd_load_relaxed_u64(&w->steal.waited_ns);
  uint64_t most = waited_ns > before ? waited_ns - before : 0;
  return lvd_os_ns_to_ticks(missing < most ? missing : most);
}

static uint64_t waited_ns(const lvd_worker *w) {
  uint64_t delay = lvd_os_thread_run_delay_ns(lvd_load_relaxed_u32(&w->number));
  return (delay == UINT64_MAX ? 0 : delay) + lvd_load_relaxed_u64(&w->leased.waited_ns);
}

/* Of the worker itself. */
static bool is_awake_since(const lvd_worker *w) {
  return w->steal.uses_switch_count && lvd_os_thread_voluntary_switches() == w->steal.sleeps;
}

/* The worker itself looks. */
static uint64_t missing_until(lvd_worker *w, uint64_t now) {
  uint64_t awake = now - lvd_worker_slept_ticks(w), cpu = lvd_os_thread_cpu_ns();
  uint64_t missing = missing_ns(w, awake, cpu);
  lvd_store_relaxed_u64(&w->steal.awake, awake);
  lvd_store_relaxed_u64(&w->steal.cpu_ns, cpu);
  return missing;
}

/* There are systems that always say 0. */
static bool counts_sleeps(void) {
  uint64_t before = lvd_os_thread_voluntary_switches();
  lvd_os_sleep(LONG_NS);
  return lvd_os_thread_voluntary_switches() > before;
}

void lvd_steal_time_init(lvd_worker *w) {
  w->steal.min_activation_ticks = lvd_os_ns_to_ticks(LONG_NS);
  bool tells = lvd_os_thread_run_delay_ns(lvd_load_relaxed_u32(&w->number)) != UINT64_MAX;
  w->steal.uses_switch_count = !tells && counts_sleeps();
  w->steal.sample_valid_ticks = w->steal.uses_switch_count ? 0 : lvd_os_ns_to_ticks(LASTS_NS);
  lvd_store_relaxed_u32(&w->steal.clock, (uint32_t)lvd_os_thread_cpu_clock());
  lvd_steal_time_reset(w, lvd_os_ticks());
}

static void remember(lvd_worker *w, uint64_t now, uint64_t waited) {
  lvd_store_relaxed_u64(&w->steal.waited_ns, waited);
  w->steal.sampled_at = now;
  if (w->steal.uses_switch_count) w->steal.sleeps = lvd_os_thread_voluntary_switches();
}

void lvd_steal_time_reset(lvd_worker *w, uint64_t now) {
  missing_until(w, now);
  remember(w, now, waited_ns(w));
}

void lvd_steal_time_update(lvd_worker *w, uint64_t now) {
  uint64_t missing = missing_until(w, now);
  if (missing < LEAST_NS) return;
  uint64_t waited = waited_ns(w), lost = lost_of(w, missing, waited);
  if (is_awake_since(w)) lost = lvd_os_ns_to_ticks(missing);
  remember(w, now, waited);
  uint64_t since = lvd_load_relaxed_u64(&w->started_at), took = now > since ? now - since : 0;
  if (lost > took) lost = took;
  lvd_store_relaxed_u64(&w->started_at, since + lost);
  lvd_count(&w->steal_ticks, lost);
  uint64_t turn = lvd_load_relaxed_u64(&w->activations);
  lvd_store_relaxed_u64(&w->steal.found_ticks, lvd_steal_time_before(w, turn) + lost);
  lvd_store_relaxed_u64(&w->steal.found_in, turn);
}

uint64_t lvd_steal_time_before(const lvd_worker *w, uint64_t activation) {
  bool is_it = lvd_load_relaxed_u64(&w->steal.found_in) == activation;
  return is_it ? lvd_load_relaxed_u64(&w->steal.found_ticks) : 0;
}

uint64_t lvd_steal_time_pending(const lvd_worker *w, uint64_t now) {
  uint32_t clock = lvd_load_relaxed_u32(&w->steal.clock);
  uint64_t cpu = lvd_os_cpu_clock_ns((int)clock);
  uint64_t missing = cpu ? missing_ns(w, now - lvd_worker_slept_ticks(w), cpu) : 0;
  if (missing < LEAST_NS) return 0;
  /* What a thread waits for a core now the system adds when it has that: of one that does not sleep all is lost, and not told
   * as time that it takes, which would have to be taken back. */
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  if (number && !lvd_os_thread_is_blocked(number)) return lvd_os_ns_to_ticks(missing);
  return lost_of(w, missing, waited_ns(w));
}
