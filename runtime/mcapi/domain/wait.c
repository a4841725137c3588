/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bells, and the one place where this face waits: through the runtime's wait, on its node's bell. */
#include <levada/runtime.h>

#include "domain.h"

/* ---- ringing -------------------------------------------------------------------------------- */

/* The flags go down before the bell changes: who puts one up later has seen the change, or sleeps on
 * what is older than it and is woken. */
static void ring(mc_domain *d, uint32_t node, bool whatever) {
  mc_node *n = &d->tables->node[node];
  if ((lvd_load_relaxed_u32(&n->bell.threads) && lvd_exchange_acq_rel_u32(&n->bell.threads, 0)) ||
      whatever) {
    lvd_add_release_u32(&n->bell.rung, 1);
    lvd_os_wake_shared(&n->bell.rung);
  }
  if (lvd_load_relaxed_u32(&n->bell.fibers) && lvd_exchange_acq_rel_u32(&n->bell.fibers, 0)) {
    uint32_t owner = lvd_load_relaxed_u32(&n->owner);
    if (owner == 1 + d->process)
      mc_wake_fibers(d);
    else if (owner && owner <= MC_PROCESSES)
      mc_ring_process(d, owner - 1);
  }
}

void mc_ring_sleepers(mc_domain *d, uint32_t node) { ring(d, node, false); }

void mc_set_add(mc_set *set, uint32_t node) {
  lvd_a32 *word = &set->word[node / 32];
  uint32_t bit = 1u << node % 32, seen = lvd_load_relaxed_u32(word);
  while (!(seen & bit) && !lvd_cas_relaxed_u32(word, &seen, seen | bit)) {
  }
}

void mc_ring_all(mc_domain *d, mc_set *set) {
  lvd_barrier_light(lvd_load_relaxed_u32(&d->tables->fences));
  for (uint32_t i = 0; i < MC_NODES / 32; i++) {
    uint32_t bits = UINT32_MAX;
    if (set)
      bits = lvd_load_relaxed_u32(&set->word[i]) ? lvd_exchange_acq_rel_u32(&set->word[i], 0) : 0;
    for (; bits; bits &= bits - 1) {
      uint32_t node = i * 32 + (uint32_t)__builtin_ctz(bits);
      if (!lvd_load_relaxed_u32(&d->tables->node[node].owner)) continue;
      ring(d, node, !set);
    }
  }
}

/* ---- waiting -------------------------------------------------------------------------------- */

static bool look(lvd_watch *w) {
  mc_listener *l = (mc_listener *)w;
  return l->look(l->what);
}

static void list(mc_domain *d, mc_listener *l, bool listed) {
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

/* The notifier is to wake a fiber of the caller's worker, which may let nobody of the usual class in. */
static void have_served(mc_domain *d) {
  uint32_t priority = lvd_serving_priority();
  if (priority <= lvd_load_relaxed_u32(&d->serves)) return;
  lvd_store_relaxed_u32(&d->serves, priority);
  lvd_os_fifo_signal(d->bell);
}

/* The flag stays up when nobody waits any more: one ring too many. */
static void arm(lvd_watch *w, bool armed) {
  mc_listener *l = (mc_listener *)w;
  mc_domain *d = l->node->domain;
  mc_bell *bell = &d->tables->node[l->node->index].bell;
  bool fiber = lvd_load_relaxed_ptr(&w->sleeper.who) != NULL;
  if (fiber) list(d, l, armed);
  if (!armed) return;
  if (fiber) have_served(d);
  lvd_store_relaxed_u32(fiber ? &bell->fibers : &bell->threads, 1);
  if (l->arm) l->arm(l->what);
  lvd_fence_seq_cst();
  if (!lvd_load_relaxed_u32(&d->tables->fences)) lvd_os_global_barrier();
}

void mc_listen(mc_listener *l, bool listens) { arm(&l->watch, listens); }

void mc_wake_fibers(mc_domain *d) {
  lvd_os_lock(&d->lock);
  for (mc_listener *l = d->listeners; l; l = l->next)
    l->watch.sleeper.waiter.wake(&l->watch.sleeper.waiter);
  lvd_os_unlock(&d->lock);
}

lvd_status mc_wait(mc_mine *node, bool (*look_for)(void *what), void (*arm_for)(void *what),
                   void *what, uint32_t spin_us, int64_t timeout_ns) {
  mc_listener l = {.node = node, .look = look_for, .arm = arm_for, .what = what};
  uint32_t which;
  l.watch.look = look;
  l.watch.arm = arm;
  l.watch.rung = &node->domain->tables->node[node->index].bell.rung;
  if (timeout_ns >= 0 && spin_us > timeout_ns / 1000) spin_us = (uint32_t)(timeout_ns / 1000);
  lvd_sleeper_init(&l.watch.sleeper, spin_us);
  const lvd_want want = {.watch = &l.watch};
  return lvd_wait_any(&want, 1, timeout_ns, &which);
}
