/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait: the one function that arms wait items, suspends the caller or puts it to sleep, and
 * checks again.
 *
 * Pairs of orders
 *   sleep: parked, asleep = 1, arm, [heavy], look <> push: tail, [light], armed;
 *                                                    wake: parked, asleep
 *   event: parked, armed, [heavy], load word      <> set, tell: word, [light], load armed       C3
 *   wait: parked (release)                        -> wake: parked (acquire)
 *                                                    what it points to is initialised
 * A late waker may clear `asleep` of a newer sleep, but then it also wakes that sleep; or it may
 * wake a fiber that waited here before. A woken waiter checks its items and sleeps again. So
 * fibers and pooled wait points stay mapped as long as the process may wake them. The [heavy]
 * barrier of a fiber is its worker's (park_barrier.c). */
#include <stdlib.h>

#include "../sched/fiber.h"
#include "../sched/no_abandon.h"
#include "thread_waiters.h"

/* What was put and got is published before its owner waits. */
static void publish(const lvd_wait_item *want) {
  if (want->room) lvd_flush(want->room);
  if (want->elements) lvd_release(want->elements);
}

/* ---- a thread ----------------------------------------------------------------------------- */

/* The wait points of threads that wait for several items at once. They are never
 * freed: a late waker may wake one that another thread uses by now. */
static struct {
  lvd_os_mutex lock;
  struct pooled_point *free;
} point_pool;
typedef struct pooled_point {
  lvd_wait_point wait_point;
  struct pooled_point *next;
} pooled_point;

static pooled_point *acquire_point(void) {
  lvd_os_lock(&point_pool.lock);
  pooled_point *b = point_pool.free;
  if (b) point_pool.free = b->next;
  lvd_os_unlock(&point_pool.lock);
  if (!b && (b = calloc(1, sizeof *b))) lvd_wait_point_init(&b->wait_point, 0);
  return b;
}

static void release_point(pooled_point *b) {
  lvd_os_lock(&point_pool.lock);
  b->next = point_pool.free;
  point_pool.free = b;
  lvd_os_unlock(&point_pool.lock);
}

static int64_t left_of(int64_t timeout_ns, uint64_t start) {
  return timeout_ns < 0 ? -1 : timeout_ns - (int64_t)(lvd_os_now_ns() - start);
}

/* Checks the items for a sleeping thread; LVD_E_TIMEOUT: none is met, and the thread was not told
 * to return. */
static lvd_status check_or_told(const lvd_thread_waiter *self, const lvd_wait_item *want,
                                uint32_t count, bool waiting, uint32_t *which) {
  lvd_status forced = lvd_thread_waiter_status(self);
  return forced == LVD_E_TIMEOUT ? lvd_wait_items_look(want, count, waiting, which) : forced;
}

static lvd_status thread_sleep(lvd_wait_point *s, lvd_waiter *waiter, const lvd_wait_item *want,
                               uint32_t count, int64_t timeout_ns, uint64_t start,
                               uint32_t *which) {
  lvd_thread_waiter self = {.app = NULL};
  lvd_thread_waiter_enter(&self, want, count, s, timeout_ns >= 0);
  lvd_status status = LVD_E_TIMEOUT;
  while (status == LVD_E_TIMEOUT) {
    int64_t left = left_of(timeout_ns, start);
    if (timeout_ns >= 0 && left <= 0) {
      status = check_or_told(&self, want, count, false, which);
      break;
    }
    lvd_store_relaxed_u32(&s->asleep, 1);
    bool fenced = false;
    for (uint32_t i = 0; i < count; i++) {
      lvd_wait_item_arm(&want[i], waiter);
      fenced |= want[i].room       ? want[i].room->fenced
                : want[i].elements ? want[i].elements->fenced
                                   : want[i].event->fenced;
    }
    if (fenced)
      lvd_fence_seq_cst();
    else
      lvd_os_barrier();
    status = check_or_told(&self, want, count, true, which);
    if (status == LVD_E_TIMEOUT) {
      s->sleeps++;
      lvd_thread_waiter_sleeps(&self);
      while (lvd_load_relaxed_u32(&s->asleep)) {
        lvd_os_wait(&s->asleep, 1, left);
        if (timeout_ns >= 0 && (left = left_of(timeout_ns, start)) <= 0) break;
      }
    }
    for (uint32_t i = 0; i < count; i++) lvd_wait_item_disarm(&want[i]);
    lvd_store_relaxed_u32(&s->asleep, 0);
    if (status == LVD_E_TIMEOUT) status = check_or_told(&self, want, count, false, which);
  }
  lvd_thread_waiter_leave(&self);
  return status;
}

/* Waits for a wait source: the thread sleeps on the source's eventfd, which is signalled or has
 * changed. */
static lvd_status watch_sleep(const lvd_wait_item *want, int64_t timeout_ns, uint64_t start) {
  lvd_wait_source *w = want->source;
  for (;;) {
    int64_t left = left_of(timeout_ns, start);
    if (timeout_ns >= 0 && left <= 0) return w->look(w) ? LVD_OK : LVD_E_TIMEOUT;
    uint32_t seen = lvd_load_relaxed_u32(w->rung);
    lvd_wait_item_arm(want, NULL);
    bool come = w->look(w);
    if (!come) {
      w->wait_point.sleeps++;
      lvd_os_wait_shared(w->rung, seen, left);
    }
    lvd_wait_item_disarm(want);
    if (come || w->look(w)) return LVD_OK;
  }
}

static lvd_status thread_wait(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                              uint32_t *which) {
  uint64_t start = lvd_os_now_ns();
  uint32_t spin_us = lvd_wait_item_point(want)->spin_us;
  if (spin_us && timeout_ns != 0) {
    /* Each poll takes a cache line from the working side, so polls become rarer. The first is
     * soon, since a reply may be there by then; but room that is found soon is little. Items of a
     * wait source come rarely, and complete. */
    int pauses = want->room ? 16 : 4, most = 64;
    if (want->source) pauses = most = 2;
    uint64_t until = start + (uint64_t)spin_us * 1000;
    do {
      for (int i = 0; i < pauses; i++) lvd_os_relax();
      if (pauses < most) pauses += (pauses + 1) / 2;
      lvd_status status = lvd_wait_items_look(want, count, true, which);
      if (status != LVD_E_TIMEOUT) return status;
    } while (lvd_os_now_ns() < until);
  }
  if (want->source) {
    *which = 0;
    return watch_sleep(want, timeout_ns, start);
  }
  if (count == 1)
    return thread_sleep(lvd_wait_item_point(want), NULL, want, count, timeout_ns, start, which);
  pooled_point *b = acquire_point();
  if (!b) return LVD_E_MEMORY;
  lvd_status status =
      thread_sleep(&b->wait_point, &b->wait_point.waiter, want, count, timeout_ns, start, which);
  release_point(b);
  return status;
}

/* ---- the calls ---------------------------------------------------------------------------- */

static lvd_status wait_for(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                           uint32_t *which) {
  LVD_NO_ABANDON;
  lvd_status status = lvd_wait_items_look(want, count, false, which);
  if (status != LVD_E_TIMEOUT) return status;
  for (uint32_t i = 0; i < count; i++) publish(&want[i]);
  for (uint32_t i = 0; i < count; i++)
    if (!lvd_wait_item_point(&want[i])) return LVD_E_STATE;
  lvd_fiber *f = lvd_fiber_self();
  if (f) return lvd_fiber_wait(f, want, count, timeout_ns, which);
  lvd_hooks.streams.thread_waits();
  return thread_wait(want, count, timeout_ns, which);
}

lvd_status lvd_wait_room(lvd_producer *p, uint32_t n, int64_t timeout_ns) {
  if (!p || n == 0 || n > p->capacity) return LVD_E_ARGUMENT;
  uint32_t which;
  lvd_wait_item want = {.room = p, .n = n};
  return wait_for(&want, 1, timeout_ns, &which);
}

lvd_status lvd_wait_elements(lvd_consumer *c, uint32_t n, int64_t timeout_ns) {
  if (!c || n == 0 || n > c->capacity) return LVD_E_ARGUMENT;
  uint32_t which;
  lvd_wait_item want = {.elements = c, .n = n};
  return wait_for(&want, 1, timeout_ns, &which);
}

lvd_status lvd_wait_any(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                        uint32_t *which) {
  if (!want || !which || count == 0 || count > LVD_WAIT_ITEMS_MAX) return LVD_E_ARGUMENT;
  for (uint32_t i = 0; i < count; i++) {
    const lvd_wait_item *w = &want[i];
    uint32_t capacity = w->room ? w->room->capacity : w->elements ? w->elements->capacity : 0;
    if (!!w->room + !!w->elements + !!w->event + !!w->source != 1) return LVD_E_ARGUMENT;
    if (w->source && count != 1) return LVD_E_ARGUMENT;
    if (!w->event && !w->source && (w->n == 0 || w->n > capacity)) return LVD_E_ARGUMENT;
  }
  return wait_for(want, count, timeout_ns, which);
}

/* ---- events ------------------------------------------------------------------------------- */

lvd_status lvd_event_wait(lvd_event *e, uint32_t *data, int64_t timeout_ns) {
  if (!e) return LVD_E_ARGUMENT;
  uint32_t which;
  lvd_wait_item want = {.event = e};
  for (;;) {
    uint64_t word = lvd_load_relaxed_u64(&e->word);
    if (word && (word = lvd_exchange_acquire_u64(&e->word, 0))) {
      if (data) *data = (uint32_t)word;
      return LVD_OK;
    }
    lvd_status status = wait_for(&want, 1, timeout_ns, &which);
    if (status != LVD_OK) return status;
  }
}
