/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Park barrier: parking costs no fence, and no wake-up is lost.
 *
 * A push is one release store and a load of the consumer's mark, without a fence between them. So
 * a push on another core can miss a mark that was armed at the same moment. The side that goes to
 * sleep pays for that: an entity that is armed towards another worker is added to its worker's
 * list of pending parks. Before the worker sleeps, and every two milliseconds while it does not,
 * one process-wide barrier (membarrier) completes all pending parks: afterwards either the worker
 * sees the push, or the push saw the mark. Then it is also certain of which applications nothing
 * is ready here (app_liveness.c). */
#include "sched.h"

enum { POLL_MAX = 64 };

void lvd_pending_park_add(lvd_worker *w, lvd_entity *e) {
  if (e->park_pending) return;
  lvd_assert(w->pending_park_count < w->rt->options.entities);
  e->park_pending = true;
  w->pending_parks[w->pending_park_count++] =
      e; /* cannot overflow: as long as the table of entities */
}

void lvd_pending_park_remove(lvd_worker *w, lvd_entity *e) {
  if (!e->park_pending) return;
  e->park_pending = false;
  for (uint32_t i = 0; i < w->pending_park_count; i++)
    if (w->pending_parks[i] == e) {
      w->pending_parks[i] = w->pending_parks[--w->pending_park_count];
      return;
    }
}

/* Checks what `n` of the pending parks wait for, from index `i` on; returns the index after the
 * last. */
static uint32_t poll_parks(lvd_worker *w, uint32_t i, uint32_t n) {
  while (n-- && i < w->pending_park_count) {
    lvd_entity *e = w->pending_parks[i];
    bool idle = lvd_load_relaxed_u32(&e->state) == LVD_IDLE;
    if (!idle || lvd_entity_can_go_on(e)) {
      e->park_pending = false;
      w->pending_parks[i] = w->pending_parks[--w->pending_park_count];
      /* Its state here is counted until the barrier is complete: no quiescence check can run. */
      if (idle) lvd_entity_wake_locked(e);
    } else {
      i++;
    }
  }
  return i;
}

/* Polls without the barrier, and only some of many fibers: what is missed is seen after the
 * barrier. */
bool lvd_poll_pending_parks(lvd_worker *w) {
  w->since_poll = 0;
  if (w->poll_from >= w->pending_park_count) w->poll_from = 0;
  w->poll_from = poll_parks(w, w->poll_from, POLL_MAX);
  return w->ready_queues != 0;
}

void lvd_park_barrier(lvd_worker *w) {
  if (w->pending_park_count) {
    lvd_os_barrier();
    poll_parks(w, 0, UINT32_MAX);
    for (uint32_t i = 0; i < w->pending_park_count; i++) w->pending_parks[i]->park_pending = false;
    w->pending_park_count = 0;
  }
  w->park_barrier_at = lvd_os_ticks();
  lvd_app_workers_check_quiet(w);
}
