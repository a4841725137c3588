/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A worker is stuck when what it runs goes on for long and does not come back: an actor whose action
 * does not end, or takes its time, or a fiber that does not wait. What waits behind it is not held up for
 * longer than that: the worker's clock interrupts the action, gives all that is ready there to other workers,
 * and lets the action go on; so at each tick of the clock from then on, since more may have become ready. For
 * one that sleeps in the system, whose clock stands still, the watchdog makes a tick (watchdog.c).
 *
 * This is the worker itself, in a signal's handler. It is done only where what runs may be abandoned,
 * hence is not inside of the runtime (no_abandon.h): then queues are whole, and none of the runtime's locks
 * is this thread's. But the C library may be interrupted: nothing here allocates memory or takes a lock
 * of the library's. The lock of the runtime is tried, not waited for: there is another tick. While it is
 * ours no core is taken, and no keeper begins with an application that ends.
 *
 * No orders of its own: what is handed over is handed over as always (entity.c). `stuck` is advice. */
#include "no_abandon.h"
#include "ready_queue.h"

/* How long an action may hold up what is behind it, and who would do the same. */
enum { STUCK_MS = 100, LASTS_MS = 1000 };

/* The next one that may have something and is not stuck; null: none. */
lvd_worker *lvd_find_backup_worker(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; i < rt->workers; i++) {
    uint32_t next = lvd_add_relaxed_u32(&rt->next_backup_worker, 1) % rt->workers;
    lvd_worker *to = &rt->worker[next];
    if (to != w && lvd_load_relaxed_u32(&to->given) && !lvd_worker_is_overrun(to)) return to;
  }
  return lvd_backup_worker(w);
}

/* What has open forks stays, and who has the core for itself, which keeps to it; what ends is not given to
 * somebody of whom the keeper does not know. */
static bool must_stay(const lvd_worker *w, const lvd_entity *e) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  bool alone = lvd_load_relaxed_ptr(&w->alone) == e->app;
  return lvd_entity_is_pinned(e) || alone || (ends && !e->is_fiber);
}

/* Who fires for as long itself would only hold up others elsewhere, and be moved to and fro: it waits, unless what
 * it waits for seems not to end. */
static bool can_wait(const lvd_entity *e, uint64_t waited_ms) {
  uint64_t longest_ms = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->longest_ticks)) / 1000000;
  return longest_ms >= STUCK_MS && waited_ms < LASTS_MS;
}

/* A C program that was suspended by force can go on nowhere but here (preempt.c). When it is to end, and what runs here
 * seems not to, somebody else abandons it. */
static bool is_to_be_left(const lvd_entity *e, uint64_t waited_ms) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  return e->is_fiber && ((const lvd_fiber *)e)->interrupted && ends && waited_ms >= LASTS_MS;
}

/* What stays is ready here still. */
static void give_away(lvd_worker *w, uint64_t waited_ms) {
  lvd_entity *stays = NULL, *e;
  lvd_store_relaxed_u32(&w->migrate_failed, 0);
  while ((e = lvd_queue_take(w))) {
    bool leaves = is_to_be_left(e, waited_ms);
    bool here = !leaves && (must_stay(w, e) || can_wait(e, waited_ms));
    lvd_worker *to = here ? NULL : lvd_find_backup_worker(w);
    if (!here && !to) lvd_store_relaxed_u32(&w->migrate_failed, 1);
    if (to) {
      if (leaves) ((lvd_fiber *)e)->left = true;
      lvd_store_relaxed_u32(&e->target, to->index);
      lvd_entity_hand_over(w, e, to->index);
    } else {
      e->next = stays;
      stays = e;
    }
  }
  for (; stays; stays = e) {
    e = stays->next;
    lvd_queue_put(w, stays);
  }
}

/* From fiber to fiber it goes without the worker's own stack between: may the one that runs be on another's still, which
 * is queued? Not in the system's code, on whatever stack that was called. */
static bool is_amid_switch(const lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  return e && e->is_fiber && !lvd_on_stack_of_fiber(w, sp) && !lvd_os_in_system_library(at);
}

/* Gives away what is behind the activation that runs. False: that cannot be now. */
static bool relieve(lvd_worker *w, uint64_t waited_ms) {
  lvd_runtime *rt = w->rt;
  if (!w->abandonable || lvd_is_priority_worker(rt, w->index)) return false;
  w->abandonable = 0;
  w->in_offload = true;
  lvd_store_relaxed_u64(&w->stuck, lvd_load_relaxed_u64(&w->activations) + 1);
  lvd_worker_run_safe_commands(w); /* others wait for an application to end */
  lvd_actor_timers_expire(w, lvd_os_ticks());
  lvd_inbox_drain(w);
  lvd_park_barrier(w);
  bool done = !w->ready_queues;
  if (!done && lvd_os_try_lock(&rt->lock)) {
    give_away(w, waited_ms);
    lvd_os_unlock(&rt->lock);
    lvd_park_barrier(w); /* nothing of them is here any more */
    done = true;
  }
  uint64_t left = lvd_actor_timers_next(w);
  lvd_store_relaxed_u64(&w->next_due, left ? lvd_os_ticks() + left : UINT64_MAX);
  w->in_offload = false;
  w->abandonable = 1;
  return done;
}

/* So many ticks in the same activation are not amid a switch. */
void lvd_overrun_tick(lvd_worker *w) {
  uint64_t waited_ms = lvd_clocked_ms(w);
  if (waited_ms >= STUCK_MS) relieve(w, waited_ms);
}

void lvd_overrun_blocked(lvd_worker *w, const void *sp, const void *at) {
  lvd_entity *e = w->current;
  if (lvd_load_relaxed_u64(&w->blocked_activation) != lvd_load_relaxed_u64(&w->activations) + 1 ||
      !e)
    return;
  /* From now on its sleep is told as time that it takes. */
  lvd_store_relaxed_u64(&e->clocked, lvd_load_relaxed_u64(&e->activations) + 1);
  if (!is_amid_switch(w, sp, at) && relieve(w, LASTS_MS))
    lvd_store_relaxed_u64(&w->blocked_activation, 0);
  lvd_forced_exit_blocked(w);
}
