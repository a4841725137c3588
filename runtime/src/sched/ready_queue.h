/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Whose turn is next on a worker, of those that are ready there. Each level of priority has four places (worker.h), and the
 * highest level that has somebody ready goes before all others. Within it:
 *
 *   needs little  first: the actors of an application that have had less than a sixteenth of this worker of late, or
 *                 2 ms more than that. A pipeline that hands on next to nothing now and then would be late else
 *                 at each of them, for as long as all have that are ready there. All of these together have no
 *                 more than the last two have.
 *   promised      before others; but others have a sixteenth, those first that need little, and 2 ms of that at once.
 *   usual         who has become ready.
 *   after         who has had a turn and could go on: he lets all others go first, but not for longer than he
 *                 had himself, and beside a promise for 100 ms. Else what hands on from actor to actor would wait
 *                 at each of them for a whole turn of somebody who always has something to do.
 *
 * All this is the worker's own. It is in worker.c's loop, which is why it is inline. The simulator of the mapper has the
 * same rules (sim/turns.rs, sim/little.rs). */
#ifndef LVD_TURNS_H
#define LVD_TURNS_H

#include "sched.h"

/* ---- the queues ------------------------------------------------------------ */

static inline void lvd_queue_put_at(lvd_worker *w, lvd_entity *e, uint32_t place) {
  lvd_queue *q = &w->ready[place];
  lvd_assert(e->level < LVD_INBOX_LEVELS && lvd_load_relaxed_u32(&e->worker) == w->index);
  e->next = NULL;
  if (LVD_UNLIKELY(w->round_robin) && w->ready_queues & (1u << place)) {
    lvd_queue_insert(q, e);
  } else {
    if (w->ready_queues & (1u << place))
      q->last->next = e;
    else
      q->first = e;
    q->last = e;
  }
  w->ready_queues |= 1u << place;
  /* Something more urgent than what runs: that should give way soon. */
  if (w->current && place >= lvd_load_relaxed_u32(&w->running_queue))
    lvd_exchange_relaxed_u32(&w->yield, 1);
}

/* Where it waits for its turn; and after one. (That levels are below eight a compiler does not know.) */
static inline uint32_t lvd_queue_class_yielded(const lvd_entity *e) {
  return LVD_Q_CLASSES * (e->level % LVD_INBOX_LEVELS);
}
static inline uint32_t lvd_queue_class(const lvd_entity *e) {
  if (lvd_load_relaxed_u32(&e->app->promised)) return lvd_queue_class_yielded(e) + LVD_Q_RESERVED;
  return lvd_queue_class_yielded(e) + (lvd_load_relaxed_u32(&e->light) ? LVD_Q_LIGHT : LVD_Q_READY);
}

/* One part in so many of a worker is little, and so is what `light_burst_ticks` are of that. In round robin nobody goes before
 * others of his level for it, and of fibers it is not known. */
enum { LVD_LIGHT_SHARE = 16 };

/* Does it, as it becomes ready? Notes that, too, for lvd_queue_class. */
static inline bool lvd_is_light(const lvd_worker *w, lvd_entity *e) {
  uint64_t most = lvd_load_relaxed_u64(&w->started_at) + LVD_LIGHT_SHARE * w->light_burst_ticks;
  bool little = e->app->share[w->index].had_until <= most && !e->is_fiber && !w->round_robin;
  if (little != lvd_load_relaxed_u32(&e->light)) lvd_store_relaxed_u32(&e->light, little);
  return little;
}

static inline void lvd_queue_put(lvd_worker *w, lvd_entity *e) {
  (void)lvd_is_light(w, e);
  lvd_queue_put_at(w, e, lvd_queue_class(e));
}

/* It has had a turn, and could go on. Who is promised a rate goes before others then, too: it is held as soon as it is
 * ahead, and else would wait for the firings of others after each turn, however long they last; and who needs little has
 * been asked for this turn's end. In round robin its round has ended. */
static inline void lvd_queue_put_after(lvd_worker *w, lvd_entity *e) {
  bool little = lvd_is_light(w, e), promised = lvd_load_relaxed_u32(&e->app->promised);
  if (LVD_UNLIKELY(w->round_robin) || promised || little) {
    lvd_queue_put_at(w, e, lvd_queue_class(e));
    return;
  }
  w->yielded = true;
  lvd_queue_put_at(w, e, lvd_queue_class_yielded(e));
}

static inline lvd_entity *lvd_queue_take_at(lvd_worker *w, uint32_t place) {
  lvd_queue *q = &w->ready[place];
  lvd_entity *e = q->first;
  q->first = e->next;
  if (!q->first) w->ready_queues &= ~(1u << place);
  return e;
}

static inline uint32_t lvd_queue_top(const lvd_worker *w) {
  return 31u - (uint32_t)__builtin_clz(w->ready_queues);
}

static inline lvd_entity *lvd_queue_take(lvd_worker *w) {
  return w->ready_queues ? lvd_queue_take_at(w, lvd_queue_top(w)) : NULL;
}

/* ---- the rules ------------------------------------------------------------ */

enum {
  LVD_LIGHT_BURST_NS = 2000000, /* what may be had at once; ... */
  LVD_LIGHT_DEBT_MAX =
      8 * LVD_LIGHT_SHARE, /* ... what is due for longer than so many of these is forgotten */
  LVD_RESERVED_BURST_NS = 100000000, /* so long a promise may go before others at one time ... */
  LVD_UNRESERVED_SHARE = LVD_LIGHT_SHARE, /* ... and for all but one part in so many */
};

static inline void lvd_ready_init(lvd_worker *w) {
  w->light_burst_ticks = lvd_os_ns_to_ticks(LVD_LIGHT_BURST_NS);
}

/* Nobody is ready. */
static inline void lvd_ready_idle(lvd_worker *w) {
  w->reserved_had = w->reserved_long = 0;
  for (uint32_t level = 0; level < LVD_INBOX_LEVELS; level++) w->light_had[level] = 0;
}

/* What an application's actors have had of a worker, as a virtual schedule (the generic cell rate algorithm of ITU-T
 * I.371): until when that is no more than the part of it that is little. What was long ago is forgotten. */
static inline void lvd_ready_charge_app(lvd_worker *w, const lvd_entity *e, uint64_t end,
                                        uint64_t took) {
  uint64_t *until = &e->app->share[w->index].had_until,
           most = end + LVD_LIGHT_DEBT_MAX * w->light_burst_ticks;
  uint64_t from = *until < end ? end : *until < most ? *until : most;
  *until = from + LVD_LIGHT_SHARE * took;
}

static inline bool is_more(int64_t ticks, uint64_t ns) {
  return ticks > 0 && lvd_os_ticks_to_ns((uint64_t)ticks) > ns;
}

/* Those that are ready at the places of a level. */
enum {
  AFTER = 1 << LVD_Q_YIELDED,
  USUAL = 1 << LVD_Q_READY,
  PROMISED = 1 << LVD_Q_RESERVED,
  NEED_LITTLE = 1 << LVD_Q_LIGHT,
  ALL = (1 << LVD_Q_CLASSES) - 1
};

/* Of those that are ready, who is of the level of a place. */
static inline uint32_t lvd_ready_of_level(const lvd_worker *w, uint32_t place) {
  return w->ready_queues >> (place - place % LVD_Q_CLASSES) & ALL;
}

/* Who of the others might have had the turn of one that needs little. */
static inline uint32_t beside_little(uint32_t those) {
  return those & (those & PROMISED ? USUAL : USUAL | AFTER);
}

/* The place of the next one; somebody is ready. */
static inline uint32_t lvd_ready_next(const lvd_worker *w) {
  uint32_t level = lvd_queue_top(w) / LVD_Q_CLASSES, first = level * LVD_Q_CLASSES;
  uint32_t those = lvd_ready_of_level(w, first);
  int64_t at_once = (int64_t)LVD_UNRESERVED_SHARE * (int64_t)w->light_burst_ticks;
  bool lets_in = !(those & PROMISED) || w->reserved_had + at_once > 0;
  if (those & NEED_LITTLE && lets_in &&
      (!beside_little(those) || w->light_had[level] < w->light_burst_ticks))
    return first + LVD_Q_LIGHT;
  if (those & PROMISED) {
    if (those & USUAL && lets_in) return first + LVD_Q_READY;
    bool after = those & AFTER && is_more(w->reserved_long, LVD_RESERVED_BURST_NS);
    return first + (after ? LVD_Q_YIELDED : LVD_Q_RESERVED);
  }
  bool usual = those & USUAL && (!(those & AFTER) || w->others_left[level]);
  return first + (usual ? LVD_Q_READY : LVD_Q_YIELDED);
}

/* What others have before a promise is a sixteenth of what that has had before them, or is to have, in two halves where
 * there are both who have just become ready and who have had a turn; neither owes the other more than for a promise's
 * longest time. What they have while none waits is no debt, and in that time what there was is forgotten. */
static inline int64_t after_others(int64_t had, uint32_t those, int64_t took, int64_t most) {
  bool both = !(~those & (AFTER | USUAL));
  if (!(those & PROMISED) && had < 0) return had + took < 0 ? had + took : 0;
  int64_t least = those & PROMISED ? -most : 0,
          now = had - took * (both ? 2 * LVD_UNRESERVED_SHARE : LVD_UNRESERVED_SHARE);
  return now < least ? least : now;
}

/* `those` were ready when this one began, and he among them. Who needs little has become ready, as others have. */
static inline void count_promised(lvd_worker *w, uint32_t place, uint32_t those, int64_t took) {
  uint32_t kind = 1u << place % LVD_Q_CLASSES;
  if (kind == NEED_LITTLE) kind = USUAL;
  if (those & NEED_LITTLE) those |= USUAL;
  bool waited = those & PROMISED;
  if (kind != PROMISED && !waited && !w->reserved_had && !w->reserved_long) return;
  int64_t most = (int64_t)lvd_os_ns_to_ticks(LVD_RESERVED_BURST_NS);
  if (kind == PROMISED) {
    if (w->reserved_had <= most) w->reserved_had += took;
    if (w->reserved_long <= most) w->reserved_long += took;
    return;
  }
  int64_t *own = kind == USUAL ? &w->reserved_had : &w->reserved_long,
          *other = kind == USUAL ? &w->reserved_long : &w->reserved_had;
  *own = after_others(*own, those, took, most);
  /* Where there are not both, one of them has the part of both. */
  if (*other > 0 && ~those & (AFTER | USUAL))
    *other = after_others(*other, those & ~PROMISED, took, most);
  if (*other < 0 && !waited) *other = after_others(*other, those, took, most);
}

/* A long firing of one of them keeps all others no longer from their turns than what they may have at once. */
static inline void count_little(lvd_worker *w, uint32_t place, uint32_t those, uint64_t took) {
  uint64_t *had = &w->light_had[place / LVD_Q_CLASSES], most = 2 * w->light_burst_ticks;
  if (place % LVD_Q_CLASSES == LVD_Q_LIGHT) {
    *had += beside_little(those) ? took : 0;
    if (*had > most) *had = most;
  } else if (place % LVD_Q_CLASSES != LVD_Q_RESERVED) {
    *had -= *had < took ? *had : took;
  }
}

/* An activation from a place has ended. What goes before others takes nothing of what these let each other have: a
 * promise may have been there for longer than that between any two of them. */
static inline void lvd_ready_account(lvd_worker *w, uint32_t place, uint32_t those, uint64_t took) {
  count_promised(w, place, those, (int64_t)took);
  count_little(w, place, those, took);
  uint64_t *left = &w->others_left[place / LVD_Q_CLASSES];
  if (w->yielded)
    *left = took;
  else if (place % LVD_Q_CLASSES == LVD_Q_READY)
    *left -= *left < took ? *left : took;
  w->yielded = false;
}

#endif
