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
  if (LVD_UNLIKELY(w->round_robin) && w->ready_places & (1u << place)) {
    lvd_queue_insert(q, e);
  } else {
    if (w->ready_places & (1u << place))
      q->last->next = e;
    else
      q->first = e;
    q->last = e;
  }
  w->ready_places |= 1u << place;
  /* Something more urgent than what runs: that should give way soon. */
  if (w->current && place >= lvd_load_relaxed_u32(&w->running_place))
    lvd_exchange_relaxed_u32(&w->yield, 1);
}

/* Where it waits for its turn; and after one. (That levels are below eight a compiler does not know.) */
static inline uint32_t lvd_place_after(const lvd_entity *e) {
  return LVD_OF_LEVEL * (e->level % LVD_INBOX_LEVELS);
}
static inline uint32_t lvd_place(const lvd_entity *e) {
  if (lvd_load_relaxed_u32(&e->app->promised)) return lvd_place_after(e) + LVD_PROMISED;
  return lvd_place_after(e) + (lvd_load_relaxed_u32(&e->little) ? LVD_LITTLE : LVD_USUAL);
}

/* One part in so many of a worker is little, and so is what `little_ticks` are of that. In round robin nobody goes before
 * others of his level for it, and of fibers it is not known. */
enum { LVD_PART = 16 };

/* Does it, as it becomes ready? Notes that, too, for lvd_place. */
static inline bool lvd_needs_little(const lvd_worker *w, lvd_entity *e) {
  uint64_t most = lvd_load_relaxed_u64(&w->since) + LVD_PART * w->little_ticks;
  bool little = e->app->share[w->index].had_until <= most && !e->is_fiber && !w->round_robin;
  if (little != lvd_load_relaxed_u32(&e->little)) lvd_store_relaxed_u32(&e->little, little);
  return little;
}

static inline void lvd_queue_put(lvd_worker *w, lvd_entity *e) {
  (void)lvd_needs_little(w, e);
  lvd_queue_put_at(w, e, lvd_place(e));
}

/* It has had a turn, and could go on. Who is promised a rate goes before others then, too: it is held as soon as it is
 * ahead, and else would wait for the firings of others after each turn, however long they last; and who needs little has
 * been asked for this turn's end. In round robin its round has ended. */
static inline void lvd_queue_put_after(lvd_worker *w, lvd_entity *e) {
  bool little = lvd_needs_little(w, e), promised = lvd_load_relaxed_u32(&e->app->promised);
  if (LVD_UNLIKELY(w->round_robin) || promised || little) {
    lvd_queue_put_at(w, e, lvd_place(e));
    return;
  }
  w->gave_way = true;
  lvd_queue_put_at(w, e, lvd_place_after(e));
}

static inline lvd_entity *lvd_queue_take_at(lvd_worker *w, uint32_t place) {
  lvd_queue *q = &w->ready[place];
  lvd_entity *e = q->first;
  q->first = e->next;
  if (!q->first) w->ready_places &= ~(1u << place);
  return e;
}

static inline uint32_t lvd_queue_top(const lvd_worker *w) {
  return 31u - (uint32_t)__builtin_clz(w->ready_places);
}

static inline lvd_entity *lvd_queue_take(lvd_worker *w) {
  return w->ready_places ? lvd_queue_take_at(w, lvd_queue_top(w)) : NULL;
}

/* ---- the rules ------------------------------------------------------------ */

enum {
  LVD_LITTLE_NS = 2000000,       /* what may be had at once; ... */
  LVD_FORGOTTEN = 8 * LVD_PART,  /* ... what is due for longer than so many of these is forgotten */
  LVD_PROMISED_NS = 100000000,   /* so long a promise may go before others at one time ... */
  LVD_BESIDE_PROMISE = LVD_PART, /* ... and for all but one part in so many */
};

static inline void lvd_turns_begin(lvd_worker *w) {
  w->little_ticks = lvd_os_ns_to_ticks(LVD_LITTLE_NS);
}

/* Nobody is ready. */
static inline void lvd_turns_rest(lvd_worker *w) {
  w->promised_had = w->promised_long = 0;
  for (uint32_t level = 0; level < LVD_INBOX_LEVELS; level++) w->little_had[level] = 0;
}

/* What an application's actors have had of a worker, as a virtual schedule (the generic cell rate algorithm of ITU-T
 * I.371): until when that is no more than the part of it that is little. What was long ago is forgotten. */
static inline void lvd_turns_had(lvd_worker *w, const lvd_entity *e, uint64_t end, uint64_t took) {
  uint64_t *until = &e->app->share[w->index].had_until,
           most = end + LVD_FORGOTTEN * w->little_ticks;
  uint64_t from = *until < end ? end : *until < most ? *until : most;
  *until = from + LVD_PART * took;
}

static inline bool is_more(int64_t ticks, uint64_t ns) {
  return ticks > 0 && lvd_os_ticks_to_ns((uint64_t)ticks) > ns;
}

/* Those that are ready at the places of a level. */
enum {
  AFTER = 1 << LVD_AFTER,
  USUAL = 1 << LVD_USUAL,
  PROMISED = 1 << LVD_PROMISED,
  NEED_LITTLE = 1 << LVD_LITTLE,
  ALL = (1 << LVD_OF_LEVEL) - 1
};

/* Of those that are ready, who is of the level of a place. */
static inline uint32_t lvd_turns_of_level(const lvd_worker *w, uint32_t place) {
  return w->ready_places >> (place - place % LVD_OF_LEVEL) & ALL;
}

/* Who of the others might have had the turn of one that needs little. */
static inline uint32_t beside_little(uint32_t those) {
  return those & (those & PROMISED ? USUAL : USUAL | AFTER);
}

/* The place of the next one; somebody is ready. */
static inline uint32_t lvd_turns_next(const lvd_worker *w) {
  uint32_t level = lvd_queue_top(w) / LVD_OF_LEVEL, first = level * LVD_OF_LEVEL;
  uint32_t those = lvd_turns_of_level(w, first);
  int64_t at_once = (int64_t)LVD_BESIDE_PROMISE * (int64_t)w->little_ticks;
  bool lets_in = !(those & PROMISED) || w->promised_had + at_once > 0;
  if (those & NEED_LITTLE && lets_in &&
      (!beside_little(those) || w->little_had[level] < w->little_ticks))
    return first + LVD_LITTLE;
  if (those & PROMISED) {
    if (those & USUAL && lets_in) return first + LVD_USUAL;
    bool after = those & AFTER && is_more(w->promised_long, LVD_PROMISED_NS);
    return first + (after ? LVD_AFTER : LVD_PROMISED);
  }
  bool usual = those & USUAL && (!(those & AFTER) || w->others_left[level]);
  return first + (usual ? LVD_USUAL : LVD_AFTER);
}

/* What others have before a promise is a sixteenth of what that has had before them, or is to have, in two halves where
 * there are both who have just become ready and who have had a turn; neither owes the other more than for a promise's
 * longest time. What they have while none waits is no debt, and in that time what there was is forgotten. */
static inline int64_t after_others(int64_t had, uint32_t those, int64_t took, int64_t most) {
  bool both = !(~those & (AFTER | USUAL));
  if (!(those & PROMISED) && had < 0) return had + took < 0 ? had + took : 0;
  int64_t least = those & PROMISED ? -most : 0,
          now = had - took * (both ? 2 * LVD_BESIDE_PROMISE : LVD_BESIDE_PROMISE);
  return now < least ? least : now;
}

/* `those` were ready when this one began, and he among them. Who needs little has become ready, as others have. */
static inline void count_promised(lvd_worker *w, uint32_t place, uint32_t those, int64_t took) {
  uint32_t kind = 1u << place % LVD_OF_LEVEL;
  if (kind == NEED_LITTLE) kind = USUAL;
  if (those & NEED_LITTLE) those |= USUAL;
  bool waited = those & PROMISED;
  if (kind != PROMISED && !waited && !w->promised_had && !w->promised_long) return;
  int64_t most = (int64_t)lvd_os_ns_to_ticks(LVD_PROMISED_NS);
  if (kind == PROMISED) {
    if (w->promised_had <= most) w->promised_had += took;
    if (w->promised_long <= most) w->promised_long += took;
    return;
  }
  int64_t *own = kind == USUAL ? &w->promised_had : &w->promised_long,
          *other = kind == USUAL ? &w->promised_long : &w->promised_had;
  *own = after_others(*own, those, took, most);
  /* Where there are not both, one of them has the part of both. */
  if (*other > 0 && ~those & (AFTER | USUAL))
    *other = after_others(*other, those & ~PROMISED, took, most);
  if (*other < 0 && !waited) *other = after_others(*other, those, took, most);
}

/* A long firing of one of them keeps all others no longer from their turns than what they may have at once. */
static inline void count_little(lvd_worker *w, uint32_t place, uint32_t those, uint64_t took) {
  uint64_t *had = &w->little_had[place / LVD_OF_LEVEL], most = 2 * w->little_ticks;
  if (place % LVD_OF_LEVEL == LVD_LITTLE) {
    *had += beside_little(those) ? took : 0;
    if (*had > most) *had = most;
  } else if (place % LVD_OF_LEVEL != LVD_PROMISED) {
    *had -= *had < took ? *had : took;
  }
}

/* An activation from a place has ended. What goes before others takes nothing of what these let each other have: a
 * promise may have been there for longer than that between any two of them. */
static inline void lvd_turns_count(lvd_worker *w, uint32_t place, uint32_t those, uint64_t took) {
  count_promised(w, place, those, (int64_t)took);
  count_little(w, place, those, took);
  uint64_t *left = &w->others_left[place / LVD_OF_LEVEL];
  if (w->gave_way)
    *left = took;
  else if (place % LVD_OF_LEVEL == LVD_USUAL)
    *left -= *left < took ? *left : took;
  w->gave_way = false;
}

#endif
