/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Ready queues: which ready entity a worker runs next. Each priority level has four queue
 * classes (worker.h), and the highest level with a ready entity goes first. The queue of class
 * c at level l has the index LVD_Q_CLASSES * l + c. Within a level:
 *
 *   LIGHT     goes first: actors of an application that has used less than a sixteenth of this
 *             worker, by a virtual schedule (generic cell rate algorithm, ITU-T I.371) with a burst
 *             of 2 ms. Otherwise a pipeline with little work would wait for all other entities at
 *             each of its actors. All light actors together get at most as much time as READY and
 *             YIELDED.
 *   RESERVED  goes before READY and YIELDED: entities of applications with a reserved rate. The
 *             others keep a sixteenth of the worker, with a burst of 2 ms, LIGHT among them first.
 *   READY     entities that have become ready.
 *   YIELDED   goes last: entities that have used their time slice and can continue. They let the
 *             others go first, for at most as long as they ran themselves, and for 100 ms while an
 *             entity with a reserved rate is ready. Otherwise data that passes from actor to actor
 *             would wait at each of them for a whole slice of an entity that always has work.
 *
 * All state is the worker's own. The functions are inline because the loop of worker.c calls
 * them for each activation. The mapper's simulator implements the same rules. */
#ifndef LVD_READY_QUEUE_H
#define LVD_READY_QUEUE_H

#include "sched.h"

/* ---- the queues ------------------------------------------------------------ */

static inline void lvd_queue_put_at(lvd_worker *w, lvd_entity *e, uint32_t queue) {
  lvd_queue *q = &w->ready[queue];
  lvd_assert(e->level < LVD_INBOX_LEVELS && lvd_load_relaxed_u32(&e->worker) == w->index);
  e->next = NULL;
  if (LVD_UNLIKELY(w->round_robin) && w->ready_queues & (1u << queue)) {
    lvd_queue_insert(q, e);
  } else {
    if (w->ready_queues & (1u << queue))
      q->last->next = e;
    else
      q->first = e;
    q->last = e;
  }
  w->ready_queues |= 1u << queue;
  /* A more urgent entity is ready: the running one should yield soon. */
  if (w->current && queue >= lvd_load_relaxed_u32(&w->running_queue))
    lvd_exchange_relaxed_u32(&w->yield, 1);
}

/* The queue of an entity that has yielded, and of one that has become ready. (The modulus tells
 * the compiler that levels are below eight.) */
static inline uint32_t lvd_queue_class_yielded(const lvd_entity *e) {
  return LVD_Q_CLASSES * (e->level % LVD_INBOX_LEVELS);
}
static inline uint32_t lvd_queue_class(const lvd_entity *e) {
  if (lvd_load_relaxed_u32(&e->app->rate_reserved))
    return lvd_queue_class_yielded(e) + LVD_Q_RESERVED;
  return lvd_queue_class_yielded(e) + (lvd_load_relaxed_u32(&e->light) ? LVD_Q_LIGHT : LVD_Q_READY);
}

/* An application is light if it uses less than 1/LVD_LIGHT_SHARE of a worker; `light_burst_ticks`
 * of that may be used at once. Round robin has no light class within a level, and for fibers the
 * usage is not measured. */
enum { LVD_LIGHT_SHARE = 16 };

/* Whether `e`, which becomes ready, belongs to a light application. Also stores that for
 * lvd_queue_class. */
static inline bool lvd_is_light(const lvd_worker *w, lvd_entity *e) {
  uint64_t most = lvd_load_relaxed_u64(&w->started_at) + LVD_LIGHT_SHARE * w->light_burst_ticks;
  bool light = e->app->share[w->index].had_until <= most && !e->is_fiber && !w->round_robin;
  if (light != lvd_load_relaxed_u32(&e->light)) lvd_store_relaxed_u32(&e->light, light);
  return light;
}

static inline void lvd_queue_put(lvd_worker *w, lvd_entity *e) {
  (void)lvd_is_light(w, e);
  lvd_queue_put_at(w, e, lvd_queue_class(e));
}

/* Queues `e`, which has used its time slice and can continue. An entity with a reserved rate goes
 * before others here too: it is paused once it is ahead of its rate, and would otherwise wait for
 * the firings of others after each slice, however long those are. A light entity was asked to
 * yield, so it goes first as well. In round robin its round has ended. */
static inline void lvd_queue_put_after(lvd_worker *w, lvd_entity *e) {
  bool light = lvd_is_light(w, e), reserved = lvd_load_relaxed_u32(&e->app->rate_reserved);
  if (LVD_UNLIKELY(w->round_robin) || reserved || light) {
    lvd_queue_put_at(w, e, lvd_queue_class(e));
    return;
  }
  w->yielded = true;
  lvd_queue_put_at(w, e, lvd_queue_class_yielded(e));
}

static inline lvd_entity *lvd_queue_take_at(lvd_worker *w, uint32_t queue) {
  lvd_queue *q = &w->ready[queue];
  lvd_entity *e = q->first;
  q->first = e->next;
  if (!q->first) w->ready_queues &= ~(1u << queue);
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
  LVD_LIGHT_BURST_NS = 2000000,             /* burst: light use that is allowed at once */
  LVD_LIGHT_DEBT_MAX = 8 * LVD_LIGHT_SHARE, /* usage beyond this many bursts is not charged */
  /* The longest lead that a reserved rate may gain over others. */
  LVD_RESERVED_BURST_NS = 100000000,
  LVD_UNRESERVED_SHARE = LVD_LIGHT_SHARE, /* the others keep one part in this many */
};

static inline void lvd_ready_init(lvd_worker *w) {
  w->light_burst_ticks = lvd_os_ns_to_ticks(LVD_LIGHT_BURST_NS);
}

/* No entity is ready: leads are reset. */
static inline void lvd_ready_idle(lvd_worker *w) {
  w->reserved_had = w->reserved_long = 0;
  for (uint32_t level = 0; level < LVD_INBOX_LEVELS; level++) w->light_had[level] = 0;
}

/* Charges an activation to the virtual schedule of its application on this worker (generic cell
 * rate algorithm, ITU-T I.371): until `had_until` the application's usage is at most the light
 * share. Old usage is forgotten. */
static inline void lvd_ready_charge_app(lvd_worker *w, const lvd_entity *e, uint64_t end,
                                        uint64_t took) {
  uint64_t *until = &e->app->share[w->index].had_until,
           most = end + LVD_LIGHT_DEBT_MAX * w->light_burst_ticks;
  uint64_t from = *until < end ? end : *until < most ? *until : most;
  *until = from + LVD_LIGHT_SHARE * took;
}

static inline bool is_longer(int64_t ticks, uint64_t ns) {
  return ticks > 0 && lvd_os_ticks_to_ns((uint64_t)ticks) > ns;
}

/* Bits of the queue classes of one level that are not empty. */
enum {
  YIELDED_BIT = 1 << LVD_Q_YIELDED,
  READY_BIT = 1 << LVD_Q_READY,
  RESERVED_BIT = 1 << LVD_Q_RESERVED,
  LIGHT_BIT = 1 << LVD_Q_LIGHT,
  ALL_BITS = (1 << LVD_Q_CLASSES) - 1
};

/* The non-empty classes of the level of `queue`. */
static inline uint32_t lvd_ready_of_level(const lvd_worker *w, uint32_t queue) {
  return w->ready_queues >> (queue - queue % LVD_Q_CLASSES) & ALL_BITS;
}

/* The classes among `ready` that compete with the light class. */
static inline uint32_t competes_with_light(uint32_t ready) {
  return ready & (ready & RESERVED_BIT ? READY_BIT : READY_BIT | YIELDED_BIT);
}

/* Chooses the queue from which the first entity runs next, by its index; at least one is not
 * empty. */
static inline uint32_t lvd_ready_pick_queue(const lvd_worker *w) {
  uint32_t level = lvd_queue_top(w) / LVD_Q_CLASSES, first = level * LVD_Q_CLASSES;
  uint32_t ready = lvd_ready_of_level(w, first);
  int64_t burst_ticks = (int64_t)LVD_UNRESERVED_SHARE * (int64_t)w->light_burst_ticks;
  bool others_due = !(ready & RESERVED_BIT) || w->reserved_had + burst_ticks > 0;
  if (ready & LIGHT_BIT && others_due &&
      (!competes_with_light(ready) || w->light_had[level] < w->light_burst_ticks))
    return first + LVD_Q_LIGHT;
  if (ready & RESERVED_BIT) {
    if (ready & READY_BIT && others_due) return first + LVD_Q_READY;
    bool after = ready & YIELDED_BIT && is_longer(w->reserved_long, LVD_RESERVED_BURST_NS);
    return first + (after ? LVD_Q_YIELDED : LVD_Q_RESERVED);
  }
  bool usual = ready & READY_BIT && (!(ready & YIELDED_BIT) || w->others_left[level]);
  return first + (usual ? LVD_Q_READY : LVD_Q_YIELDED);
}

/* The new lead `had` of a reserved rate over others, after those have run for `took` ticks.
 * Others get a sixteenth of the time that a reserved rate has used, or is to use, before them;
 * READY and YIELDED share it in halves if both are non-empty. The lead is at least -`most` while
 * an entity with a reserved rate waits. Time that others use while none waits is no debt and
 * cancels an existing one. */
static inline int64_t lead_after_others(int64_t had, uint32_t ready, int64_t took, int64_t most) {
  bool both = !(~ready & (YIELDED_BIT | READY_BIT));
  if (!(ready & RESERVED_BIT) && had < 0) return had + took < 0 ? had + took : 0;
  int64_t least = ready & RESERVED_BIT ? -most : 0,
          now = had - took * (both ? 2 * LVD_UNRESERVED_SHARE : LVD_UNRESERVED_SHARE);
  return now < least ? least : now;
}

/* Accounts an activation of `took` ticks to the leads of reserved rates. `ready`: the non-empty
 * classes when it began, its own included. The light class counts as READY. */
static inline void account_reserved(lvd_worker *w, uint32_t queue, uint32_t ready, int64_t took) {
  uint32_t kind = 1u << queue % LVD_Q_CLASSES;
  if (kind == LIGHT_BIT) kind = READY_BIT;
  if (ready & LIGHT_BIT) ready |= READY_BIT;
  bool waited = ready & RESERVED_BIT;
  if (kind != RESERVED_BIT && !waited && !w->reserved_had && !w->reserved_long) return;
  int64_t most = (int64_t)lvd_os_ns_to_ticks(LVD_RESERVED_BURST_NS);
  if (kind == RESERVED_BIT) {
    if (w->reserved_had <= most) w->reserved_had += took;
    if (w->reserved_long <= most) w->reserved_long += took;
    return;
  }
  int64_t *own = kind == READY_BIT ? &w->reserved_had : &w->reserved_long,
          *other = kind == READY_BIT ? &w->reserved_long : &w->reserved_had;
  *own = lead_after_others(*own, ready, took, most);
  /* If only one of the two classes is non-empty, it gets the share of both. */
  if (*other > 0 && ~ready & (YIELDED_BIT | READY_BIT))
    *other = lead_after_others(*other, ready & ~RESERVED_BIT, took, most);
  if (*other < 0 && !waited) *other = lead_after_others(*other, ready, took, most);
}

/* Accounts an activation to the lead of light applications. The cap makes a long light firing
 * delay the others by at most the burst. */
static inline void account_light(lvd_worker *w, uint32_t queue, uint32_t ready, uint64_t took) {
  uint64_t *had = &w->light_had[queue / LVD_Q_CLASSES], most = 2 * w->light_burst_ticks;
  if (queue % LVD_Q_CLASSES == LVD_Q_LIGHT) {
    *had += competes_with_light(ready) ? took : 0;
    if (*had > most) *had = most;
  } else if (queue % LVD_Q_CLASSES != LVD_Q_RESERVED) {
    *had -= *had < took ? *had : took;
  }
}

/* Accounts an activation from `queue`. Classes that go first do not use up what READY and
 * YIELDED leave to each other: an entity with a reserved rate may have run between any two of
 * them. */
static inline void lvd_ready_account(lvd_worker *w, uint32_t queue, uint32_t ready, uint64_t took) {
  account_reserved(w, queue, ready, (int64_t)took);
  account_light(w, queue, ready, took);
  uint64_t *left = &w->others_left[queue / LVD_Q_CLASSES];
  if (w->yielded)
    *left = took;
  else if (queue % LVD_Q_CLASSES == LVD_Q_READY)
    *left -= *left < took ? *left : took;
  w->yielded = false;
}

#endif
