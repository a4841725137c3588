/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Automatic wake threshold: how many elements a sleeping receiver waits for, derived from
 * measured costs.
 *
 * A wake-up costs the sender's call, the delay until the receiver runs if its core has slept, and
 * that core's work to fall asleep. With a threshold of (cost of a wake-up / time per element) the
 * wake-up takes as long as producing the elements, so half of the time is overhead; with SHARE
 * times that, one part in SHARE. The stream chooses the latter, but at most half of its capacity,
 * so that the sender continues while the receiver wakes.
 *
 * The clock is only read around sleeps and wake-ups, each time by the side concerned. The time
 * per element is that of the slower side: from one wake-up to the next, without the sender's
 * call, divided by the elements got.
 *
 * A slow sender must not delay what it has pushed: a receiver waits for its threshold at most
 * PATIENCE times as long as expected. Then it takes the elements there are, or waits for a single
 * one, and the stream counts as slow until measured otherwise. A receiver that finds elements
 * while it polls before it sleeps needs no wake-ups and no threshold. */
#include <stddef.h>

#include "stream.h"

enum {
  SHARE = 8,
  PATIENCE = 2,
  SAMPLES = 8,   /* length of the moving averages, in wake-ups ... */
  OUTLIER = 4,   /* ... none of which counts for more than this many times the average */
  FRACTION = 256 /* parts of a tick: elements may be faster than the clock */
};

/* ---- the waker's ---------------------------------------------------------------------------- */

/* Only the first wake-up of a sleep is measured: later ones find the receiver awake. */
static bool wake_measured(lvd_waiter *self) {
  stream *s = (stream *)((char *)self - offsetof(stream, automatic.waker));
  lvd_waiter *wait_point = &s->receiver.wait_point.waiter;
  uint64_t at = lvd_os_ticks();
  if (!wait_point->wake(wait_point)) return false;
  lvd_store_relaxed_u64(&s->automatic.woken_at, at);
  lvd_store_relaxed_u64(&s->automatic.waking, lvd_os_ticks() - at);
  return true;
}

void lvd_threshold_begin(stream *s) {
  s->automatic.on = s->automatic.counted = true;
  s->automatic.waker.wake = wake_measured;
}

/* ---- the receiver's ------------------------------------------------------------------------- */

static void average(lvd_average *a, uint64_t x) {
  if (a->samples >= SAMPLES / 2 && x > OUTLIER * a->mean) x = OUTLIER * a->mean;
  if (a->samples < SAMPLES) a->samples++;
  a->mean = (a->mean * (a->samples - 1) + x) / a->samples;
}

static void choose(stream *s) {
  lvd_auto_threshold *a = &s->automatic;
  lvd_consumer *c = &s->base.consumer;
  uint64_t looks = lvd_os_ns_to_ticks((uint64_t)s->receiver.wait_point.spin_us * 1000);
  uint64_t most = c->capacity / 2, worth = SHARE * a->cost.mean, k = 1;
  if (a->each.mean > looks * FRACTION) k = worth * FRACTION / a->each.mean;
  if (k > most) k = most;
  if (k < 1) k = 1;
  c->threshold = (uint32_t)k;
  a->patience = k > 1 ? PATIENCE * worth : 0;
}

/* Adds the cost of the last wake-up, which its waker has stored by now. */
static void count_cost(lvd_auto_threshold *a) {
  if (a->counted) return;
  a->counted = true;
  uint64_t woken = lvd_load_relaxed_u64(&a->woken_at);
  bool by_sender = woken >= a->waited_at && woken <= a->ran_at;
  a->took = by_sender ? lvd_load_relaxed_u64(&a->waking) : 0;
  uint64_t late = by_sender && a->rested ? a->ran_at - woken : 0;
  average(&a->cost, a->took + late + a->retired);
}

/* `s` has slept since `before`, and runs since `now` (ticks). */
static void count_each(stream *s, uint64_t before, uint64_t now) {
  lvd_auto_threshold *a = &s->automatic;
  const lvd_worker *w = lvd_this_worker();
  uint64_t got = s->base.consumer.got - a->got, span = now - a->ran_at;
  uint64_t each = (span - (a->took < span ? a->took : span)) * FRACTION / (got ? got : 1);
  if (a->ran_at && got) average(&a->each, each);
  a->got = s->base.consumer.got;
  a->waited_at = before;
  a->ran_at = now;
  a->rested = !w || w->park_barrier_at >= before;
  a->retired = w && a->rested ? w->retired : 0;
  a->counted = false;
  choose(s);
}

/* For `waited` ticks fewer elements than the threshold have arrived. */
static void count_slow(stream *s, uint64_t waited) {
  uint32_t n = lvd_elements(&s->base.consumer, 1);
  if (n >= s->base.consumer.threshold) return;
  uint64_t each = waited * FRACTION / (n ? n : 1);
  lvd_average *a = &s->automatic.each;
  if (each > a->mean) a->mean = each;
  choose(s);
}

static stream *automatic_of(const lvd_wait_item *want) {
  stream *s = (stream *)((char *)want->elements - offsetof(lvd_stream, consumer));
  return s->automatic.on ? s : NULL;
}

lvd_status lvd_threshold_wait(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                              uint32_t *which) {
  uint64_t before = lvd_os_ticks(), patience = 0;
  /* The sleep count is the same at all of them. */
  const lvd_wait_point *wait_point = lvd_wait_item_point(&want[0]);
  uint64_t sleeps = wait_point->sleeps;
  for (uint32_t i = 0; i < count; i++) {
    stream *s = automatic_of(&want[i]);
    if (!s) continue;
    count_cost(&s->automatic);
    if (s->automatic.patience > patience) patience = s->automatic.patience;
  }
  int64_t limit = patience ? (int64_t)lvd_os_ticks_to_ns(patience) : -1;
  bool patient = limit < 0 || (timeout_ns >= 0 && timeout_ns <= limit);
  lvd_status status = lvd_wait_any(want, count, patient ? timeout_ns : limit, which);
  uint64_t now = lvd_os_ticks();
  if (!patient && now - before >= patience) {
    for (uint32_t i = 0; i < count; i++) {
      stream *s = automatic_of(&want[i]);
      if (s) count_slow(s, now - before);
      if (s && status == LVD_E_TIMEOUT) s->base.consumer.threshold = 1;
    }
    if (status == LVD_E_TIMEOUT) {
      int64_t left = timeout_ns - (int64_t)lvd_os_ticks_to_ns(now - before);
      status = lvd_wait_any(want, count, timeout_ns < 0 ? -1 : left > 0 ? left : 0, which);
      now = lvd_os_ticks();
    }
  }
  stream *s = status == LVD_OK ? automatic_of(&want[*which]) : NULL;
  if (s && wait_point->sleeps != sleeps) count_each(s, before, now);
  return status;
}
