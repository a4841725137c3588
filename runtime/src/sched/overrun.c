/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Overrun: an activation of 100 ms or more, by an actor with an action that is long or endless, or
 * by a fiber that does not wait. What is queued behind it is not delayed for longer: the worker's
 * clock interrupts the activation, its signal handler migrates all ready entities to other
 * workers, and the activation continues. This repeats at each tick, since more entities may have
 * become ready. For an activation that is blocked in a system call, where the clock does not
 * tick, the watchdog sends the signal (watchdog.c).
 *
 * The code runs on the worker's own thread, in a signal handler, and only where the activation
 * may be abandoned, that is outside of the runtime (no_abandon.h): so the queues are consistent,
 * and the thread holds no lock of the runtime. It may hold locks of the C library: the handler
 * allocates no memory and takes no such lock. It only tries the runtime's lock; the next tick
 * tries again. While it holds the lock no core is reserved and no reaper begins with an
 * application that ends.
 *
 * No orders of its own: entities are handed over as always (entity.c). `stuck` is advisory. */
#include "no_abandon.h"
#include "ready_queue.h"

/* How long an action may delay what is queued behind it; and when an action is taken to be
 * endless. */
enum { OVERRUN_MS = 100, ENDLESS_MS = 1000 };

/* The next worker in rotation that is available and not in an overrun; null: none. */
lvd_worker *lvd_find_backup_worker(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; i < rt->workers; i++) {
    uint32_t next = lvd_add_relaxed_u32(&rt->next_backup_worker, 1) % rt->workers;
    lvd_worker *to = &rt->worker[next];
    if (to != w && lvd_load_relaxed_u32(&to->available) && !lvd_worker_is_overrun(to)) return to;
  }
  return lvd_backup_worker(w);
}

/* Must `e` stay on this worker? It stays if it has open forks, or has reserved the core. An actor
 * that ends stays too: the reaper only knows its present workers. */
static bool must_stay(const lvd_worker *w, const lvd_entity *e) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  bool alone = lvd_load_relaxed_ptr(&w->alone) == e->app;
  return lvd_entity_is_pinned(e) || alone || (ends && !e->is_fiber);
}

/* May `e` wait for the running activation? An actor that itself fires for as long would only
 * delay others elsewhere, and would be migrated back and forth: it waits, unless the running
 * activation seems not to end. */
static bool can_wait(const lvd_entity *e, uint64_t waited_ms) {
  uint64_t longest_ms = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->longest_ticks)) / 1000000;
  return longest_ms >= OVERRUN_MS && waited_ms < ENDLESS_MS;
}

/* Is `e` to be abandoned on another worker? A preempted fiber of a C program can only resume on
 * this thread (preempt.c). If its application ends and the running activation seems not to,
 * another worker abandons it. */
static bool must_abandon_elsewhere(const lvd_entity *e, uint64_t waited_ms) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  return e->is_fiber && ((const lvd_fiber *)e)->interrupted && ends && waited_ms >= ENDLESS_MS;
}

/* Migrates the ready entities; those that stay are queued again. */
static void migrate_ready(lvd_worker *w, uint64_t waited_ms) {
  lvd_entity *remaining = NULL, *e;
  lvd_store_relaxed_u32(&w->migrate_failed, 0);
  while ((e = lvd_queue_take(w))) {
    bool abandoned = must_abandon_elsewhere(e, waited_ms);
    bool here = !abandoned && (must_stay(w, e) || can_wait(e, waited_ms));
    lvd_worker *to = here ? NULL : lvd_find_backup_worker(w);
    if (!here && !to) lvd_store_relaxed_u32(&w->migrate_failed, 1);
    if (to) {
      if (abandoned) ((lvd_fiber *)e)->must_abandon = true;
      lvd_store_relaxed_u32(&e->target, to->index);
      lvd_entity_hand_over(w, e, to->index);
    } else {
      e->next = remaining;
      remaining = e;
    }
  }
  for (; remaining; remaining = e) {
    e = remaining->next;
    lvd_queue_put(w, remaining);
  }
}

/* Might the running fiber still be on the stack of another, queued fiber? A switch from fiber to
 * fiber does not pass through the worker's own stack. Not while it executes the code of a system
 * library, which may use any stack. */
static bool in_fiber_switch(const lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  return e && e->is_fiber && !lvd_on_stack_of_fiber(w, sp) && !lvd_os_in_system_library(at);
}

/* Migrates what is queued behind the running activation. False: that is not possible now. */
static bool offload(lvd_worker *w, uint64_t waited_ms) {
  lvd_runtime *rt = w->rt;
  if (!w->abandonable || lvd_is_priority_worker(rt, w->index)) return false;
  w->abandonable = 0;
  w->in_offload = true;
  lvd_store_relaxed_u64(&w->stuck, lvd_load_relaxed_u64(&w->activations) + 1);
  lvd_worker_run_safe_commands(w); /* threads may be waiting for an application to end */
  lvd_actor_timers_expire(w, lvd_os_ticks());
  lvd_inbox_drain(w);
  lvd_park_barrier(w);
  bool done = !w->ready_queues;
  if (!done && lvd_os_try_lock(&rt->lock)) {
    migrate_ready(w, waited_ms);
    lvd_os_unlock(&rt->lock);
    lvd_park_barrier(w); /* nothing of the migrated entities is left here */
    done = true;
  }
  uint64_t left = lvd_actor_timers_next(w);
  lvd_store_relaxed_u64(&w->next_due, left ? lvd_os_ticks() + left : UINT64_MAX);
  w->in_offload = false;
  w->abandonable = 1;
  return done;
}

/* Called at each tick: after this many ticks in one activation it cannot be in a fiber switch. */
void lvd_overrun_tick(lvd_worker *w) {
  uint64_t waited_ms = lvd_clocked_ms(w);
  if (waited_ms >= OVERRUN_MS) offload(w, waited_ms);
}

void lvd_overrun_blocked(lvd_worker *w, const void *sp, const void *at) {
  lvd_entity *e = w->current;
  if (lvd_load_relaxed_u64(&w->blocked_activation) != lvd_load_relaxed_u64(&w->activations) + 1 ||
      !e)
    return;
  /* From now on the blocked time is reported as busy time. */
  lvd_store_relaxed_u64(&e->clocked, lvd_load_relaxed_u64(&e->activations) + 1);
  if (!in_fiber_switch(w, sp, at) && offload(w, ENDLESS_MS))
    lvd_store_relaxed_u64(&w->blocked_activation, 0);
  lvd_forced_exit_blocked(w);
}
