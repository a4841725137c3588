/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Settling: how parking stays free and no wake-up is lost.
 *
 * A push is one release store and a look at the consumer's mark, with no fence between. So a push
 * on another core can miss a mark that was armed at the same moment. The side that goes to sleep
 * pays: an entity armed towards another worker is put on its worker's list, and before the worker
 * sleeps (and every two milliseconds while it does not) ONE barrier on all cores settles the whole
 * list: afterwards either we see the push, or the push saw the mark. Then it is certain, too, of which
 * applications nothing is ready here (app_liveness.c). */
#include "sched.h"

enum { LOOK_AT = 64 };

void lvd_pending_park_add(lvd_worker *w, lvd_entity *e) {
  if (e->unsettled) return;
  lvd_assert(w->pending_park_count < w->rt->options.entities);
  e->unsettled = true;
  w->unsettled[w->pending_park_count++] = e; /* as long as the table of entities: cannot overflow */
}

void lvd_pending_park_remove(lvd_worker *w, lvd_entity *e) {
  if (!e->unsettled) return;
  e->unsettled = false;
  for (uint32_t i = 0; i < w->pending_park_count; i++)
    if (w->unsettled[i] == e) {
      w->unsettled[i] = w->unsettled[--w->pending_park_count];
      return;
    }
}

/* Looks at what `n` of the unsettled wait for, from number `i` on; returns where it ended. */
static uint32_t look_at(lvd_worker *w, uint32_t i, uint32_t n) {
  while (n-- && i < w->pending_park_count) {
    lvd_entity *e = w->unsettled[i];
    bool idle = lvd_load_relaxed_u32(&e->state) == LVD_IDLE;
    if (!idle || lvd_entity_can_go_on(e)) {
      e->unsettled = false;
      w->unsettled[i] = w->unsettled[--w->pending_park_count];
      if (idle)
        lvd_entity_wake_locked(e); /* its share is counted until all is settled: nobody judges it */
    } else {
      i++;
    }
  }
  return i;
}

/* Without the barrier, and of many fibers only some: what is missed is seen after the barrier. */
bool lvd_poll_pending_parks(lvd_worker *w) {
  w->since_poll = 0;
  if (w->look_from >= w->pending_park_count) w->look_from = 0;
  w->look_from = look_at(w, w->look_from, LOOK_AT);
  return w->ready_queues != 0;
}

void lvd_park_barrier(lvd_worker *w) {
  if (w->pending_park_count) {
    lvd_os_barrier();
    look_at(w, 0, UINT32_MAX);
    for (uint32_t i = 0; i < w->pending_park_count; i++) w->unsettled[i]->unsettled = false;
    w->pending_park_count = 0;
  }
  w->park_barrier_at = lvd_os_ticks();
  lvd_app_workers_check_quiet(w);
}
