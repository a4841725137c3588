/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait items: arming, disarming and checking a channel end, an event or a wait source. How to
 * wait for several of them is up to fibers (fiber.c) and threads (wait/wait.c).
 *
 * Pairs of orders: wait/wait.c */
#include "no_abandon.h"
#include "sched.h"

static bool sleeper_wake(lvd_waiter *self) {
  lvd_sleeper *s = (lvd_sleeper *)self;
  lvd_waiter *waiter = lvd_load_acquire_ptr(&s->who);
  if (waiter) return waiter->wake(waiter);
  if (!lvd_load_relaxed_u32(&s->asleep) || !lvd_exchange_relaxed_u32(&s->asleep, 0)) return false;
  lvd_os_wake(&s->asleep);
  return true;
}

void lvd_sleeper_init(lvd_sleeper *s, uint32_t spin_us) {
  s->waiter.wake = sleeper_wake;
  lvd_store_relaxed_ptr(&s->who, NULL);
  lvd_store_relaxed_u32(&s->asleep, 0);
  s->kind = LVD_SLEEPS_ALONE;
  s->spin_us = spin_us;
  s->sleeps = 0;
}

/* ---- one wait item ------------------------------------------------------------------------ */

/* Whether `want` is met now; LVD_E_TIME: not yet. */
lvd_status lvd_want_met(const lvd_want *want) {
  if (want->event) return lvd_event_is_set(want->event) ? LVD_OK : LVD_E_TIME;
  if (want->watch) return want->watch->look(want->watch) ? LVD_OK : LVD_E_TIME;
  if (want->room) {
    bool room = lvd_room(want->room, want->n) >= want->n;
    if (want->room->corrupt) return LVD_E_CORRUPT;
    if (!lvd_deserted(want->room)) return room ? LVD_OK : LVD_E_TIME;
    want->room->limit = want->room->put; /* the next put also checks, and is refused */
    return LVD_E_PEER;
  }
  lvd_consumer *c = want->elements;
  if (lvd_elements(c, want->n) >= want->n) return LVD_OK;
  uint32_t state = lvd_load_acquire_u32(&c->channel->state);
  if (c->corrupt) return LVD_E_CORRUPT;
  if (state == LVD_OPEN) return LVD_E_TIME;
  if (lvd_elements_refresh(c) >= want->n) return LVD_OK;
  return lvd_end_status(c, state);
}

/* As lvd_want_met, for a waiter: also LVD_E_TIME while its threshold is not reached. */
lvd_status lvd_want_look(const lvd_want *want) {
  lvd_status status = lvd_want_met(want);
  if (status != LVD_OK || want->event || want->watch) return status;
  bool ready = want->room ? lvd_producer_settled(want->room, want->n)
                          : lvd_consumer_settled(want->elements, want->n);
  return ready ? LVD_OK : LVD_E_TIME;
}

lvd_sleeper *lvd_want_sleeper(const lvd_want *want) {
  if (want->event) return &want->event->sleeper;
  if (want->watch) return &want->watch->sleeper;
  lvd_waiter *self = want->room ? want->room->self : want->elements->self;
  return self && self->wake == sleeper_wake ? (lvd_sleeper *)self : NULL;
}

void lvd_want_arm(const lvd_want *want, lvd_waiter *waiter) {
  lvd_store_release_ptr(&lvd_want_sleeper(want)->who, waiter);
  if (want->room)
    lvd_producer_arm(want->room, want->n);
  else if (want->elements)
    lvd_consumer_arm(want->elements, want->n);
  else if (want->watch)
    want->watch->arm(want->watch, true);
  else
    lvd_store_relaxed_u32(&want->event->armed, 1);
}

void lvd_want_disarm(const lvd_want *want) {
  if (want->room)
    lvd_producer_disarm(want->room);
  else if (want->elements)
    lvd_consumer_disarm(want->elements);
  else if (want->watch)
    want->watch->arm(want->watch, false);
  else
    lvd_store_relaxed_u32(&want->event->armed, 0);
}

lvd_status lvd_wants_look(const lvd_want *want, uint32_t count, bool waiting, uint32_t *which) {
  for (uint32_t i = 0; i < count; i++) {
    lvd_status status = waiting ? lvd_want_look(&want[i]) : lvd_want_met(&want[i]);
    if (status == LVD_E_TIME) continue;
    *which = i;
    return status;
  }
  return LVD_E_TIME;
}

/* ---- events ------------------------------------------------------------------------------- */

void lvd_event_init(lvd_event *e) {
  lvd_store_relaxed_u64(&e->word, 0);
  lvd_store_relaxed_u32(&e->armed, 0);
  e->fenced = lvd_channel_fenced();
  lvd_sleeper_init(&e->sleeper, 20);
}

lvd_status lvd_event_set(lvd_event *e, uint32_t data) {
  LVD_NO_ABANDON;
  uint64_t none = 0;
  if (!lvd_cas_release_u64(&e->word, &none, (uint64_t)1 << 32 | data)) return LVD_E_STATE;
  lvd_barrier_light(e->fenced);
  if (lvd_load_relaxed_u32(&e->armed)) e->sleeper.waiter.wake(&e->sleeper.waiter);
  return LVD_OK;
}

void lvd_event_complete(lvd_event *e, uint32_t data) {
  LVD_NO_ABANDON;
  lvd_store_release_u64(&e->word, (uint64_t)1 << 32 | data);
  lvd_barrier_light(e->fenced);
  if (lvd_load_relaxed_u32(&e->armed)) e->sleeper.waiter.wake(&e->sleeper.waiter);
}
