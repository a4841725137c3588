/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A worker is stuck when what it runs goes on for long and does not come back: an actor whose action
 * does not end, or takes its time. What waits behind it is not held up for longer than that: the
 * worker's clock interrupts the action, gives all that is ready there to other workers, and lets the
 * action go on; so at each tick of the clock from then on, since more may have become ready.
 *
 * This is the worker itself, in a signal's handler. It is done only where what runs may be abandoned,
 * hence is not inside of the runtime (inside.h): then queues are whole, and none of the runtime's locks
 * is this thread's. But the C library may be interrupted: nothing here allocates memory or takes a lock
 * of the library's. The lock of the runtime is tried, not waited for: there is another tick. While it is
 * ours no core is taken, and no keeper begins with an application that ends.
 *
 * No orders of its own: what is handed over is handed over as always (entity.c). `stuck` is advice. */
#include "core.h"

enum { STUCK_TICKS = 10 }; /* of LVD_TICK_MS */

/* Still in the activation in which its clock said so? */
static bool is_stuck(const lvd_worker *w) {
  return lvd_load_relaxed_u64(&w->stuck) == lvd_load_relaxed_u64(&w->activations) + 1;
}

/* The next one that may have something and is not stuck; null: none. */
static lvd_worker *another(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; i < rt->workers; i++) {
    uint32_t next = lvd_add_relaxed_u32(&rt->next_refuge, 1) % rt->workers;
    lvd_worker *to = &rt->worker[next];
    if (to != w && lvd_load_relaxed_u32(&to->given) && !is_stuck(to)) return to;
  }
  return NULL;
}

/* What has open forks stays; what ends is not given to somebody of whom the keeper does not know. */
static bool must_stay(const lvd_entity *e) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  return lvd_forks_open(e) || (ends && !e->is_fiber);
}

/* What stays is ready here still. */
static void give_away(lvd_worker *w) {
  lvd_entity *stays = NULL, *e;
  while ((e = lvd_queue_take(w))) {
    lvd_worker *to = must_stay(e) ? NULL : another(w);
    if (to) {
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

void lvd_stuck_tick(lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  if (w->clock_ticks < STUCK_TICKS || !w->may_abandon || w->index >= rt->workers) return;
  w->may_abandon = 0;
  lvd_store_relaxed_u64(&w->stuck, lvd_load_relaxed_u64(&w->activations) + 1);
  lvd_worker_obey(w); /* others wait for an application to end */
  if (w->timers) lvd_timers_expire(w, lvd_port_ticks());
  lvd_inbox_drain(w);
  lvd_settle(w);
  if (w->ready_levels && lvd_port_try_lock(&rt->lock)) {
    give_away(w);
    lvd_port_unlock(&rt->lock);
  }
  w->may_abandon = 1;
}
