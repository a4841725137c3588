/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steal-time accounting. Time in which a worker's thread was runnable but had no core, or waited
 * for its core's lease, is subtracted from the running activation by advancing `started_at`.
 * Otherwise measured costs would depend on other processes. Time blocked in a system call is not
 * subtracted: no other entity can use the worker then (watchdog.c).
 *
 *   elapsed   processor ticks (lvd_os_ticks) since the last measurement, without the worker's sleep
 *   computed  CPU time of the thread (CLOCK_THREAD_CPUTIME_ID)
 *   missing   elapsed - computed: steal time, or time that the activation was blocked
 *   waited    the kernel's run delay of the thread + its waits for core leases
 *   steal     min(missing, waited)
 *
 * When it is measured: after an activation longer than MIN_ACTIVATION_NS, at each tick of the
 * CPU-time clock, and after an idle period unless `waited` was sampled less than SAMPLE_VALID_NS
 * ago. The last is needed since the run delay also contains delays between activations and at
 * wake-ups, which belong to no activation; a sample that is SAMPLE_VALID_NS old hides at most
 * that much.
 *
 * Without a run delay from the kernel, the number of voluntary context switches is used: if the
 * thread has not blocked since the last idle period, all missing time is steal time; if it has,
 * only the waits for leases are known. A kernel that counts neither gives only the latter.
 *
 * A reader of the counters of a running activation measures too (lvd_steal_time_pending), since
 * CPU-time ticks are rare when others have most of the core. If the thread is not blocked, all
 * missing time counts as steal time.
 *
 * Not detected: steal time in an activation shorter than MIN_ACTIVATION_NS.
 *
 * Clocks by use: costs, time slices on a worker and CPU quotas exclude steal time; reserved rates
 * use wall-clock time; the action time limit and the clock's ticks use CPU time; limits on delay
 * (the watchdog, a slice ended by another worker's wake-up) use elapsed time.
 *
 * `steal` is the worker's own. The clock's handler measures only while an activation runs, the
 * worker only while none does, so neither interrupts the other. */
#include "sched.h"

enum {
  MIN_ACTIVATION_NS = 100000,
  SAMPLE_VALID_NS = 5000000, /* a measurement takes some microseconds */
  CLOCK_ERROR_NS = 20000     /* smaller differences are the distance between two clock readings */
};

/* `missing` in ns, from the last measurement to a worker's awake time of `awake` ticks and CPU
 * time `cpu_ns`. */
static uint64_t missing_ns(const lvd_worker *w, uint64_t awake, uint64_t cpu_ns) {
  uint64_t from = lvd_load_relaxed_u64(&w->steal.awake);
  uint64_t went = awake > from ? lvd_os_ticks_to_ns(awake - from) : 0;
  uint64_t computed = cpu_ns - lvd_load_relaxed_u64(&w->steal.cpu_ns);
  return went > computed ? went - computed : 0;
}

/* The part of `missing` (ns) in which the thread of worker `w` was runnable, as far as is known;
 * in ticks. */
static uint64_t steal_of(const lvd_worker *w, uint64_t missing, uint64_t waited_ns) {
  uint64_t before = lvd_load_relaxed_u64(&w->steal.waited_ns);
  uint64_t most = waited_ns > before ? waited_ns - before : 0;
  return lvd_os_ns_to_ticks(missing < most ? missing : most);
}

static uint64_t waited_ns(const lvd_worker *w) {
  uint64_t delay = lvd_os_thread_run_delay_ns(lvd_load_relaxed_u32(&w->number));
  return (delay == UINT64_MAX ? 0 : delay) + lvd_load_relaxed_u64(&w->leased.waited_ns);
}

/* Has the worker not blocked since the last measurement? Called by the worker itself. */
static bool has_not_blocked(const lvd_worker *w) {
  return w->steal.uses_switch_count && lvd_os_thread_voluntary_switches() == w->steal.sleeps;
}

/* Measures `missing` and stores the clock readings. Called by the worker itself. */
static uint64_t missing_until(lvd_worker *w, uint64_t now) {
  uint64_t awake = now - lvd_worker_slept_ticks(w), cpu = lvd_os_thread_cpu_ns();
  uint64_t missing = missing_ns(w, awake, cpu);
  lvd_store_relaxed_u64(&w->steal.awake, awake);
  lvd_store_relaxed_u64(&w->steal.cpu_ns, cpu);
  return missing;
}

/* Some systems always return 0. */
static bool counts_switches(void) {
  uint64_t before = lvd_os_thread_voluntary_switches();
  lvd_os_sleep(MIN_ACTIVATION_NS);
  return lvd_os_thread_voluntary_switches() > before;
}

void lvd_steal_time_init(lvd_worker *w) {
  w->steal.min_activation_ticks = lvd_os_ns_to_ticks(MIN_ACTIVATION_NS);
  bool tells = lvd_os_thread_run_delay_ns(lvd_load_relaxed_u32(&w->number)) != UINT64_MAX;
  w->steal.uses_switch_count = !tells && counts_switches();
  w->steal.sample_valid_ticks =
      w->steal.uses_switch_count ? 0 : lvd_os_ns_to_ticks(SAMPLE_VALID_NS);
  lvd_store_relaxed_u32(&w->steal.clock, (uint32_t)lvd_os_thread_cpu_clock());
  lvd_steal_time_reset(w, lvd_os_ticks());
}

static void store_sample(lvd_worker *w, uint64_t now, uint64_t waited) {
  lvd_store_relaxed_u64(&w->steal.waited_ns, waited);
  w->steal.sampled_at = now;
  if (w->steal.uses_switch_count) w->steal.sleeps = lvd_os_thread_voluntary_switches();
}

void lvd_steal_time_reset(lvd_worker *w, uint64_t now) {
  missing_until(w, now);
  store_sample(w, now, waited_ns(w));
}

void lvd_steal_time_update(lvd_worker *w, uint64_t now) {
  uint64_t missing = missing_until(w, now);
  if (missing < CLOCK_ERROR_NS) return;
  uint64_t waited = waited_ns(w), steal = steal_of(w, missing, waited);
  if (has_not_blocked(w)) steal = lvd_os_ns_to_ticks(missing);
  store_sample(w, now, waited);
  uint64_t since = lvd_load_relaxed_u64(&w->started_at), took = now > since ? now - since : 0;
  if (steal > took) steal = took;
  lvd_store_relaxed_u64(&w->started_at, since + steal);
  lvd_count(&w->steal_ticks, steal);
  uint64_t turn = lvd_load_relaxed_u64(&w->activations);
  lvd_store_relaxed_u64(&w->steal.found_ticks, lvd_steal_time_before(w, turn) + steal);
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
  if (missing < CLOCK_ERROR_NS) return 0;
  /* The kernel adds a run delay when the thread gets its core. So for a thread that is not
   * blocked all missing time is steal time; counted as busy it would have to be taken back
   * later. */
  uint32_t number = lvd_load_relaxed_u32(&w->number);
  if (number && !lvd_os_thread_is_blocked(number)) return lvd_os_ns_to_ticks(missing);
  return steal_of(w, missing, waited_ns(w));
}
