/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait items: arming, disarming and checking a channel end, an event or a wait source. How to
 * wait for several of them is up to fibers (fiber.c) and threads (wait/wait.c).
 *
 * Pairs of orders: wait/wait.c */
#include "no_abandon.h"
#include "sched.h"

static bool wait_point_wake(lvd_waiter *self) {
  lvd_wait_point *s = (lvd_wait_point *)self;
  lvd_waiter *waiter = lvd_load_acquire_ptr(&s->parked);
  if (waiter) return waiter->wake(waiter);
  if (!lvd_load_relaxed_u32(&s->asleep) || !lvd_exchange_relaxed_u32(&s->asleep, 0)) return false;
  lvd_os_wake(&s->asleep);
  return true;
}

void lvd_wait_point_init(lvd_wait_point *s, uint32_t spin_us) {
  s->waiter.wake = wait_point_wake;
  lvd_store_relaxed_ptr(&s->parked, NULL);
  lvd_store_relaxed_u32(&s->asleep, 0);
  s->kind = LVD_SLEEPS_ALONE;
  s->spin_us = spin_us;
  s->sleeps = 0;
}

/* ---- one wait item ------------------------------------------------------------------------ */

/* Whether `want` is met now; LVD_E_TIMEOUT: not yet. */
lvd_status lvd_wait_item_is_met(const lvd_wait_item *want) {
  if (want->event) return lvd_event_is_set(want->event) ? LVD_OK : LVD_E_TIMEOUT;
  if (want->source) return want->source->look(want->source) ? LVD_OK : LVD_E_TIMEOUT;
  if (want->room) {
    bool room = lvd_room(want->room, want->n) >= want->n;
    if (want->room->corrupt) return LVD_E_CORRUPT;
    if (!lvd_consumers_closed(want->room)) return room ? LVD_OK : LVD_E_TIMEOUT;
    want->room->limit = want->room->put; /* the next put also checks, and is refused */
    return LVD_E_PEER_GONE;
  }
  lvd_consumer *c = want->elements;
  if (lvd_elements(c, want->n) >= want->n) return LVD_OK;
  uint32_t state = lvd_load_acquire_u32(&c->channel->state);
  if (c->corrupt) return LVD_E_CORRUPT;
  if (state == LVD_OPEN) return LVD_E_TIMEOUT;
  if (lvd_elements_refresh(c) >= want->n) return LVD_OK;
  return lvd_end_status(c, state);
}

/* As lvd_wait_item_is_met, for a waiter: also LVD_E_TIMEOUT while its threshold is not reached. */
lvd_status lvd_wait_item_look(const lvd_wait_item *want) {
  lvd_status status = lvd_wait_item_is_met(want);
  if (status != LVD_OK || want->event || want->source) return status;
  bool ready = want->room ? lvd_producer_settled(want->room, want->n)
                          : lvd_consumer_settled(want->elements, want->n);
  return ready ? LVD_OK : LVD_E_TIMEOUT;
}

lvd_wait_point *lvd_wait_item_point(const lvd_wait_item *want) {
  if (want->event) return &want->event->wait_point;
  if (want->source) return &want->source->wait_point;
  lvd_waiter *self = want->room ? want->room->self : want->elements->self;
  return self && self->wake == wait_point_wake ? (lvd_wait_point *)self : NULL;
}

void lvd_wait_item_arm(const lvd_wait_item *want, lvd_waiter *waiter) {
  lvd_store_release_ptr(&lvd_wait_item_point(want)->parked, waiter);
  if (want->room)
    lvd_producer_arm(want->room, want->n);
  else if (want->elements)
    lvd_consumer_arm(want->elements, want->n);
  else if (want->source)
    want->source->arm(want->source, true);
  else
    lvd_store_relaxed_u32(&want->event->armed, 1);
}

void lvd_wait_item_disarm(const lvd_wait_item *want) {
  if (want->room)
    lvd_producer_disarm(want->room);
  else if (want->elements)
    lvd_consumer_disarm(want->elements);
  else if (want->source)
    want->source->arm(want->source, false);
  else
    lvd_store_relaxed_u32(&want->event->armed, 0);
}

lvd_status lvd_wait_items_look(const lvd_wait_item *want, uint32_t count, bool waiting,
                               uint32_t *which) {
  for (uint32_t i = 0; i < count; i++) {
    lvd_status status = waiting ? lvd_wait_item_look(&want[i]) : lvd_wait_item_is_met(&want[i]);
    if (status == LVD_E_TIMEOUT) continue;
    *which = i;
    return status;
  }
  return LVD_E_TIMEOUT;
}

/* ---- events ------------------------------------------------------------------------------- */

void lvd_event_init(lvd_event *e) {
  lvd_store_relaxed_u64(&e->word, 0);
  lvd_store_relaxed_u32(&e->armed, 0);
  e->fenced = lvd_channel_fenced();
  lvd_wait_point_init(&e->wait_point, 20);
}

lvd_status lvd_event_set(lvd_event *e, uint32_t data) {
  LVD_NO_ABANDON;
  uint64_t none = 0;
  if (!lvd_cas_release_u64(&e->word, &none, (uint64_t)1 << 32 | data)) return LVD_E_STATE;
  lvd_membarrier_light(e->fenced);
  if (lvd_load_relaxed_u32(&e->armed)) e->wait_point.waiter.wake(&e->wait_point.waiter);
  return LVD_OK;
}

void lvd_event_complete(lvd_event *e, uint32_t data) {
  LVD_NO_ABANDON;
  lvd_store_release_u64(&e->word, (uint64_t)1 << 32 | data);
  lvd_membarrier_light(e->fenced);
  if (lvd_load_relaxed_u32(&e->armed)) e->wait_point.waiter.wake(&e->wait_point.waiter);
}
