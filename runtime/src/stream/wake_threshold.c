/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Threshold: how many elements a receiver waits for, where the stream finds that out by itself.
 *
 * A wake-up costs three things: the sender's call, the time until the receiver runs if its core has
 * slept, and what that core did to go to sleep. At a threshold of (what it costs / the time of one
 * element) a wake-up takes as long as the elements that it brings, so half of the time is lost; at
 * SHARE times that, one part of SHARE. This is what a stream chooses, but never above half of
 * its capacity, so that the sender goes on while the receiver wakes.
 *
 * The clock is read around sleeps and wake-ups only, each time by the side that it is about. The
 * time of one element is that of the slower side: from waking to waking, without the sender's call,
 * over what was got.
 *
 * A sender that becomes slow must not hide what it has pushed: no receiver waits for its threshold
 * longer than PATIENCE times what it should take. Then it takes what there is, or waits for the
 * next single element, and the stream counts as slow until it is seen not to be. A receiver that
 * looks around before it sleeps, and meets the elements so, needs no wake-ups, and no threshold. */
#include <stddef.h>

#include "stream.h"

enum {
  SHARE = 8,
  PATIENCE = 2,
  SAMPLES = 8,   /* averages are over so many wake-ups or so ... */
  OUTLIER = 4,   /* ... none of which counts for more than so many times the average */
  FRACTION = 256 /* parts of a tick: elements may come faster than the clock goes */
};

/* ---- the waker's ---------------------------------------------------------------------------- */

/* Of a sleep the first call counts: later ones find the receiver on its way. */
static bool wake_measured(lvd_waiter *self) {
  stream *s = (stream *)((char *)self - offsetof(stream, automatic.waker));
  lvd_waiter *sleeper = &s->receiver.sleeper.waiter;
  uint64_t at = lvd_os_ticks();
  if (!sleeper->wake(sleeper)) return false;
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
  lvd_automatic *a = &s->automatic;
  lvd_consumer *c = &s->face.get;
  uint64_t looks = lvd_os_ns_to_ticks((uint64_t)s->receiver.sleeper.spin_us * 1000);
  uint64_t most = c->capacity / 2, worth = SHARE * a->cost.mean, k = 1;
  if (a->each.mean > looks * FRACTION) k = worth * FRACTION / a->each.mean;
  if (k > most) k = most;
  if (k < 1) k = 1;
  c->threshold = (uint32_t)k;
  a->patience = k > 1 ? PATIENCE * worth : 0;
}

/* What the end of the last sleep cost; who woke us has said so by now. */
static void count_cost(lvd_automatic *a) {
  if (a->counted) return;
  a->counted = true;
  uint64_t woken = lvd_load_relaxed_u64(&a->woken_at);
  bool by_sender = woken >= a->waited_at && woken <= a->ran_at;
  a->took = by_sender ? lvd_load_relaxed_u64(&a->waking) : 0;
  uint64_t late = by_sender && a->rested ? a->ran_at - woken : 0;
  average(&a->cost, a->took + late + a->retired);
}

/* `s` has slept since `before`, and runs since `now`. */
static void count_each(stream *s, uint64_t before, uint64_t now) {
  lvd_automatic *a = &s->automatic;
  const lvd_worker *w = lvd_this_worker();
  uint64_t got = s->face.get.got - a->got, span = now - a->ran_at;
  uint64_t each = (span - (a->took < span ? a->took : span)) * FRACTION / (got ? got : 1);
  if (a->ran_at && got) average(&a->each, each);
  a->got = s->face.get.got;
  a->waited_at = before;
  a->ran_at = now;
  a->rested = !w || w->park_barrier_at >= before;
  a->retired = w && a->rested ? w->retired : 0;
  a->counted = false;
  choose(s);
}

/* So long have fewer elements than the threshold been coming. */
static void count_slow(stream *s, uint64_t waited) {
  uint32_t n = lvd_elements(&s->face.get, 1);
  if (n >= s->face.get.threshold) return;
  uint64_t each = waited * FRACTION / (n ? n : 1);
  lvd_average *a = &s->automatic.each;
  if (each > a->mean) a->mean = each;
  choose(s);
}

static stream *automatic_of(const lvd_want *want) {
  stream *s = (stream *)((char *)want->elements - offsetof(lvd_stream, get));
  return s->automatic.on ? s : NULL;
}

lvd_status lvd_threshold_wait(const lvd_want *want, uint32_t count, int64_t timeout_ns,
                              uint32_t *which) {
  uint64_t before = lvd_os_ticks(), patience = 0;
  const lvd_sleeper *sleeper = lvd_want_sleeper(&want[0]); /* who sleeps, sleeps at all of them */
  uint64_t sleeps = sleeper->sleeps;
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
      if (s && status == LVD_E_TIME) s->face.get.threshold = 1;
    }
    if (status == LVD_E_TIME) {
      int64_t left = timeout_ns - (int64_t)lvd_os_ticks_to_ns(now - before);
      status = lvd_wait_any(want, count, timeout_ns < 0 ? -1 : left > 0 ? left : 0, which);
      now = lvd_os_ticks();
    }
  }
  stream *s = status == LVD_OK ? automatic_of(&want[*which]) : NULL;
  if (s && sleeper->sleeps != sleeps) count_each(s, before, now);
  return status;
}
