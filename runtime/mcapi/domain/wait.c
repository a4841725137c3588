/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Notification, and the only function in which MCAPI calls wait: the runtime's lvd_wait_any, on the
 * eventcount of the caller's node. */
#include <levada/runtime.h>

#include "domain.h"

/* ---- notifying ------------------------------------------------------------------------------- */

/* Waiter flags are cleared before the sequence changes. So a waiter that sets its flag later has
 * seen the change that is notified, or sleeps on the older sequence and is woken. */
static void notify(mc_domain *d, uint32_t node, bool unconditionally) {
  mc_node *n = &d->tables->node[node];
  if ((lvd_load_relaxed_u32(&n->eventcount.thread_waiters) &&
       lvd_exchange_acq_rel_u32(&n->eventcount.thread_waiters, 0)) ||
      unconditionally) {
    lvd_add_release_u32(&n->eventcount.sequence, 1);
    lvd_os_wake_shared(&n->eventcount.sequence);
  }
  if (lvd_load_relaxed_u32(&n->eventcount.fiber_waiters) &&
      lvd_exchange_acq_rel_u32(&n->eventcount.fiber_waiters, 0)) {
    uint32_t owner = lvd_load_relaxed_u32(&n->owner);
    if (owner == 1 + d->process)
      mc_wake_fibers(d);
    else if (owner && owner <= MC_PROCESSES)
      mc_notify_process(d, owner - 1);
  }
}

void mc_notify_sleepers(mc_domain *d, uint32_t node) { notify(d, node, false); }

void mc_node_set_add(mc_node_set *set, uint32_t node) {
  lvd_a32 *word = &set->word[node / 32];
  uint32_t bit = 1u << node % 32, seen = lvd_load_relaxed_u32(word);
  while (!(seen & bit) && !lvd_cas_relaxed_u32(word, &seen, seen | bit)) {
  }
}

void mc_notify_all(mc_domain *d, mc_node_set *set) {
  lvd_membarrier_light(lvd_load_relaxed_u32(&d->tables->use_fences));
  for (uint32_t i = 0; i < MC_NODES / 32; i++) {
    uint32_t bits = UINT32_MAX;
    if (set)
      bits = lvd_load_relaxed_u32(&set->word[i]) ? lvd_exchange_acq_rel_u32(&set->word[i], 0) : 0;
    for (; bits; bits &= bits - 1) {
      uint32_t node = i * 32 + (uint32_t)__builtin_ctz(bits);
      if (!lvd_load_relaxed_u32(&d->tables->node[node].owner)) continue;
      notify(d, node, !set);
    }
  }
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool poll_listener(lvd_wait_source *w) {
  mc_listener *l = (mc_listener *)w;
  return l->is_ready(l->argument);
}

static void set_listed(mc_domain *d, mc_listener *l, bool listed) {
  lvd_os_lock(&d->lock);
  if (listed && !l->listed) {
    l->previous = NULL;
    l->next = d->listeners;
    if (l->next) l->next->previous = l;
    d->listeners = l;
  } else if (!listed && l->listed) {
    *(l->previous ? &l->previous->next : &d->listeners) = l->next;
    if (l->next) l->next->previous = l->previous;
  }
  l->listed = listed;
  lvd_os_unlock(&d->lock);
}

/* The notifier must be able to wake a fiber of the caller's worker, which may run at a real-time
 * priority that keeps threads of the normal class from running. */
static void raise_notifier_priority(mc_domain *d) {
  uint32_t priority = lvd_service_priority();
  if (priority <= lvd_load_relaxed_u32(&d->notifier_priority)) return;
  lvd_store_relaxed_u32(&d->notifier_priority, priority);
  lvd_os_fifo_signal(d->fifo);
}

/* The flag remains set when the waiter is gone: this costs one superfluous notification. */
static void arm_listener(lvd_wait_source *w, bool armed) {
  mc_listener *l = (mc_listener *)w;
  mc_domain *d = l->node->domain;
  mc_eventcount *count = &d->tables->node[l->node->index].eventcount;
  bool fiber = lvd_load_relaxed_ptr(&w->wait_point.parked) != NULL;
  if (fiber) set_listed(d, l, armed);
  if (!armed) return;
  if (fiber) raise_notifier_priority(d);
  lvd_store_relaxed_u32(fiber ? &count->fiber_waiters : &count->thread_waiters, 1);
  if (l->arm) l->arm(l->argument);
  lvd_fence_seq_cst();
  if (!lvd_load_relaxed_u32(&d->tables->use_fences)) lvd_os_global_barrier();
}

void mc_listener_arm(mc_listener *l, bool listens) { arm_listener(&l->watch, listens); }

void mc_wake_fibers(mc_domain *d) {
  lvd_os_lock(&d->lock);
  for (mc_listener *l = d->listeners; l; l = l->next)
    l->watch.wait_point.waiter.wake(&l->watch.wait_point.waiter);
  lvd_os_unlock(&d->lock);
}

lvd_status mc_wait(mc_local_node *node, bool (*is_ready)(void *argument),
                   void (*arm)(void *argument), void *argument, uint32_t spin_us,
                   int64_t timeout_ns) {
  mc_listener l = {.node = node, .is_ready = is_ready, .arm = arm, .argument = argument};
  uint32_t which;
  l.watch.look = poll_listener;
  l.watch.arm = arm_listener;
  l.watch.rung = &node->domain->tables->node[node->index].eventcount.sequence;
  if (timeout_ns >= 0 && spin_us > timeout_ns / 1000) spin_us = (uint32_t)(timeout_ns / 1000);
  lvd_wait_point_init(&l.watch.wait_point, spin_us);
  const lvd_wait_item want = {.source = &l.watch};
  return lvd_wait_any(&want, 1, timeout_ns, &which);
}
