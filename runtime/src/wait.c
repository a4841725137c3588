/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait: the one place where a thread that is no worker spins and sleeps.
 *
 * Pairs of orders
 *   sleep: asleep = 1, arm, [heavy], look <> push: tail, [light], armed; then wake: asleep   C3
 * A waker that comes late takes away the 1 of a newer sleep, but then it also wakes that sleep: the
 * sleeper looks again, and sleeps again. */
#include "core.h"

static bool sleeper_wake(lvd_waiter *self) {
  lvd_sleeper *s = (lvd_sleeper *)self;
  if (!lvd_load_relaxed_u32(&s->asleep) || !lvd_exchange_relaxed_u32(&s->asleep, 0)) return false;
  lvd_port_wake(&s->asleep);
  return true;
}

void lvd_sleeper_init(lvd_sleeper *s, uint32_t spin_us) {
  s->waiter.wake = sleeper_wake;
  lvd_store_relaxed_u32(&s->asleep, 0);
  s->spin_us = spin_us;
  s->sleeps = 0;
}

/* What is waited for: a side of a channel, and how many. */
typedef struct lvd_want {
  lvd_producer *p;
  lvd_consumer *c;
  uint32_t n;
} lvd_want;

/* LVD_E_TIME: not yet. */
static lvd_status look(const lvd_want *want) {
  if (want->p) {
    bool room = lvd_room(want->p, want->n) >= want->n;
    if (want->p->corrupt) return LVD_E_CORRUPT;
    if (room) return lvd_deserted(want->p) ? LVD_E_PEER : LVD_OK;
    return lvd_deserted(want->p) ? LVD_E_PEER : LVD_E_TIME;
  }
  if (lvd_elements(want->c, want->n) >= want->n) return LVD_OK;
  uint32_t state = lvd_load_acquire_u32(&want->c->channel->state);
  if (want->c->corrupt) return LVD_E_CORRUPT;
  if (state == LVD_OPEN) return LVD_E_TIME;
  if (lvd_elements_refresh(want->c) >= want->n) return LVD_OK;
  return lvd_end_status(want->c, state);
}

/* The same of one that waits: LVD_E_TIME also while the threshold is worth waiting for. */
static lvd_status look_waiting(const lvd_want *want) {
  lvd_status status = look(want);
  if (status != LVD_OK) return status;
  bool ready =
      want->p ? lvd_producer_settled(want->p, want->n) : lvd_consumer_settled(want->c, want->n);
  return ready ? LVD_OK : LVD_E_TIME;
}

static void arm(const lvd_want *want) {
  if (want->p)
    lvd_producer_arm(want->p, want->n);
  else
    lvd_consumer_arm(want->c, want->n);
}

static void disarm(const lvd_want *want) {
  if (want->p)
    lvd_producer_disarm(want->p);
  else
    lvd_consumer_disarm(want->c);
}

static lvd_status wait_for(const lvd_want *want, lvd_waiter *self, int64_t timeout_ns) {
  if (!self || self->wake != sleeper_wake) return LVD_E_STATE;
  lvd_sleeper *s = (lvd_sleeper *)self;
  uint64_t start = lvd_port_ns();
  int64_t left = timeout_ns;
  if (s->spin_us && timeout_ns != 0) {
    /* Each look takes a cache line away from the side that works: look less and less often. */
    int pauses = 16;
    uint64_t until = start + (uint64_t)s->spin_us * 1000;
    do {
      for (int i = 0; i < pauses; i++) lvd_port_relax();
      if (pauses < 64) pauses *= 2;
      lvd_status status = look_waiting(want);
      if (status != LVD_E_TIME) return status;
    } while (lvd_port_ns() < until);
  }
  for (;;) {
    if (timeout_ns >= 0) {
      left = timeout_ns - (int64_t)(lvd_port_ns() - start);
      if (left <= 0) return look(want);
    }
    lvd_store_relaxed_u32(&s->asleep, 1);
    arm(want);
    if (want->p ? want->p->fenced : want->c->fenced)
      lvd_fence_seq_cst();
    else
      lvd_port_barrier();
    lvd_status status = look_waiting(want);
    if (status == LVD_E_TIME) {
      s->sleeps++;
      while (lvd_load_relaxed_u32(&s->asleep)) {
        lvd_port_wait(&s->asleep, 1, left);
        if (timeout_ns >= 0 && (left = timeout_ns - (int64_t)(lvd_port_ns() - start)) <= 0) break;
      }
    }
    disarm(want);
    lvd_store_relaxed_u32(&s->asleep, 0);
    if (status != LVD_E_TIME) return status;
    status = look(want);
    if (status != LVD_E_TIME) return status;
  }
}

lvd_status lvd_wait_room(lvd_producer *p, uint32_t n, int64_t timeout_ns) {
  if (!p || n == 0 || n > p->capacity) return LVD_E_ARGUMENT;
  lvd_want want = {p, NULL, n};
  lvd_status status = look(&want);
  if (status != LVD_E_TIME) return status;
  lvd_flush(p);
  return wait_for(&want, p->self, timeout_ns);
}

lvd_status lvd_wait_elements(lvd_consumer *c, uint32_t n, int64_t timeout_ns) {
  if (!c || n == 0 || n > c->capacity) return LVD_E_ARGUMENT;
  lvd_want want = {NULL, c, n};
  lvd_status status = look(&want);
  if (status != LVD_E_TIME) return status;
  lvd_release(c);
  return wait_for(&want, c->self, timeout_ns);
}
