/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fiber: how it is resumed, waits, yields and ends.
 *
 * A fiber is an entity with the same states as an actor (entity.c). It differs in how it runs:
 * its worker switches to its stack, and when it waits it switches directly to the next ready
 * fiber, without passing through the worker's own stack, unless the worker's loop has
 * something to do. Only one worker switches to a fiber; so the state may become IDLE before
 * the switch away: a waker can only post it, and the post is read after the switch.
 *
 * Guarantees
 *   F1  A waiting fiber is resumed when one of its wait items is met, its timeout expires, it is
 *       cancelled or its application ends. (C3 for fibers: armed, IDLE, then the park barrier.)
 *   F2  What a fiber did before it ended is visible after it was joined. (fiber_start.c)
 *
 * Pairs of orders
 *   cancel: cancelled, [light], wake <> wait: armed, IDLE, [heavy], load cancelled
 *                                               F1 (park_barrier.c)
 *   end: event told (release) -> join: event wait (acquire)
 *                                               F2
 *   resume: paused (release, app_control.c) -> may_follow: paused (acquire)
 *                                               what was done while the application was paused
 *   put_away: fibers - 1 (release, app_liveness.c) -> cancel_and_wait: fibers (acquire)
 *                                               none of the application's fibers runs any more */
#include "fiber.h"
#include "../../platform/exceptions.h"
#include "../../platform/text.h"
#include "no_abandon.h"
#include "ready_queue.h"

enum {
  /* ns, and switches: fiber switches between two checks are chosen from the last measured
   * activation, such that checks are about so far apart, and limited. If the estimate is wrong,
   * the clock preempts (LVD_TRAP_TICK). */
  CHECK_INTERVAL_NS = 20000,
  SWITCHES_PER_CHECK_MAX = 256,
  CHECKS_AWAY_MAX = 8,  /* checks before control returns to the worker's loop */
  CHECKS_PER_SAMPLE = 2 /* checks; the activation after that is measured and stands for all since */
};

static lvd_fiber *fiber_of(lvd_entity *e) { return (lvd_fiber *)e; }

lvd_fiber *lvd_fiber_self(void) {
  lvd_worker *w = lvd_this_worker();
  return w && w->current && w->current->is_fiber ? fiber_of(w->current) : NULL;
}

void **lvd_fiber_local(void) {
  lvd_fiber *f = lvd_fiber_self();
  return f ? &f->word : NULL;
}

const char *lvd_fiber_name(const lvd_fiber *f) { return f ? f->entity.name : ""; }

/* ---- running ------------------------------------------------------------------------------ */

/* Marks `e` as running; the switch to it follows. */
static inline void begin_without_forks(lvd_worker *w, lvd_entity *e) {
  lvd_store_relaxed_u32(&e->state, LVD_RUNNING);
  w->current = e;
  lvd_count(&e->activations, 1);
}

static inline void begin(lvd_worker *w, lvd_entity *e) {
  begin_without_forks(w, e);
  if (LVD_UNLIKELY(fiber_of(e)->forks != NULL)) lvd_hooks.forks.resume(w, fiber_of(e));
}

static void end_sample(lvd_worker *w, lvd_entity *e) {
  uint64_t took = lvd_os_ticks() - w->sampled_at;
  w->sampled_at = 0;
  lvd_count(&e->busy_ticks, took * w->switches_per_check * CHECKS_PER_SAMPLE);
  if (took > lvd_load_relaxed_u64(&e->longest_ticks))
    lvd_store_relaxed_u64(&e->longest_ticks, took);
  uint64_t ns = lvd_os_ticks_to_ns(took);
  w->switches_per_check = ns <= CHECK_INTERVAL_NS / SWITCHES_PER_CHECK_MAX ? SWITCHES_PER_CHECK_MAX
                          : ns < CHECK_INTERVAL_NS ? (uint32_t)(CHECK_INTERVAL_NS / ns)
                                                   : 1;
  w->until_sample = CHECKS_PER_SAMPLE;
}

/* A check before the next switch: a measurement ends before it, or begins after it. */
static void check_due(lvd_worker *w) {
  w->switches_left = w->switches_per_check;
  if (w->loop_countdown) w->loop_countdown--;
  if (w->sampled_at) {
    end_sample(w, w->current);
    /* The distance is random, so that a periodic pattern is not always sampled at the same
     * point. */
    w->random = w->random * 1664525u + 1013904223u;
    w->switches_left = 1 + (w->random >> 16) % (2 * w->switches_per_check - 1);
  } else if (--w->until_sample == 0) {
    w->until_sample = 1; /* the end of the measurement sets it */
    w->sampled_at = lvd_os_ticks();
    w->switches_left = 1;
  }
}

/* Has the loop something to do? Commands and the clock set `yield`. */
static bool loop_wanted(const lvd_worker *w) {
  return lvd_worker_has_requests(w) || lvd_actor_timers_next(w) == 1;
}

/* May `e`, which is ready, be resumed directly from a fiber's stack? The loop handles all other
 * cases. */
static inline bool may_follow(const lvd_worker *w, const lvd_entity *e) {
  const lvd_app *app = e->app;
  return e->is_fiber && lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING &&
         !lvd_load_acquire_u32(&app->paused) && lvd_load_relaxed_u32(&e->target) == w->index;
}

/* Begins the next ready fiber, if it may follow and the loop has nothing to do; else null. */
static lvd_fiber *begin_next(lvd_worker *w) {
  bool checks = --w->switches_left == 0;
  if (checks) check_due(w);
  if (w->ready_queues == 0 || lvd_load_relaxed_u32(&w->yield)) return NULL;
  if (checks && (w->loop_countdown == 0 || loop_wanted(w))) return NULL;
  lvd_entity *e = w->ready[lvd_queue_top(w)].first;
  lvd_worker_set_current_app(w, e->app);
  if (!may_follow(w, e)) return NULL;
  lvd_queue_take(w);
  begin(w, e);
  lvd_store_relaxed_u32(&w->running_queue, lvd_queue_class(e) + 1);
  w->abandonable = 1;
  return fiber_of(e);
}

/* Before `f` is suspended: its open forks stay with it. */
static inline void leave_forks(lvd_worker *w, lvd_fiber *f) {
  if (LVD_UNLIKELY(lvd_forks.head != w->fork_base)) lvd_hooks.forks.suspend(w, f);
}

/* Suspends `f`, which is parked or ready; returns when it is resumed. */
static void leave(lvd_worker *w, lvd_fiber *f) {
  leave_forks(w, f);
  lvd_fiber *next = begin_next(w);
  /* Its reservation may have changed meanwhile, so that it is next itself. */
  if (LVD_LIKELY(next != f))
    lvd_os_context_switch(&f->context, next ? &next->context : &w->home, false);
}

/* The same, but switches to the worker's own stack. */
static void switch_to_worker(lvd_worker *w, lvd_fiber *f) {
  if (w->sampled_at) end_sample(w, &f->entity);
  leave_forks(w, f);
  lvd_os_context_switch(&f->context, &w->home, f->ended);
}

/* Releases a fiber that has ended or was abandoned; called on another stack. */
static void put_away(lvd_worker *w, lvd_fiber *f) {
  lvd_app *app = f->entity.app;
  lvd_store_relaxed_u32(&f->entity.state, LVD_FINISHED);
  lvd_pending_park_remove(w, &f->entity);
  lvd_timer_remove(&w->timers, &f->timer);
  if (f->ends) lvd_hooks.streams.fiber_ends(f, f->outcome);
  lvd_event *end = f->end;
  if (end) lvd_event_complete(end, (uint32_t)f->outcome);
  if (end != &f->done) lvd_fiber_put_back(w->rt, f); /* else the joiner releases it */
  lvd_app_worker_fiber_ended(w, app);
  lvd_app_worker_leave(w, app);
}

/* On the worker's own stack: releases ended fibers here, and continues with the next one. */
static void run(void *argument) {
  lvd_worker *w = argument;
  lvd_fiber *f = fiber_of(w->current);
  do {
    lvd_os_context_switch(&w->home, &f->context, false);
    f = fiber_of(w->current);
    w->current = NULL;
    if (!f->ended) return;
    put_away(w, f);
  } while ((f = begin_next(w)));
}

/* Ends a fiber that will not be resumed, after its forks have been handled; called on another
 * stack. If it has failed, fault.c has the report. */
LVD_COLD static void abandon(lvd_worker *w, lvd_fiber *f) {
  f->ended = true;
  f->outcome = LVD_E_FAULT;
  lvd_app_end(f->entity.app, LVD_E_FAULT); /* no effect if it ends already */
  put_away(w, f);
}

/* Runs fibers, beginning with `e`, until the loop has something to do. Returns the end time in
 * ticks. */
uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now) {
  if (w->sampled_at) /* a check has begun a measurement, but then the loop was entered */
    w->sampled_at = now;
  else if (--w->switches_left == 0)
    check_due(w);
  w->loop_countdown = CHECKS_AWAY_MAX;
  lvd_store_relaxed_u64(&w->started_at, now);
  lvd_store_relaxed_u32(&w->running_queue, lvd_queue_class(e) + 1);
  if (LVD_UNLIKELY(fiber_of(e)->must_abandon)) {
    lvd_hooks.forks.drop(fiber_of(e));
    abandon(w, fiber_of(e));
  } else {
    begin(w, e);
    w->abandonable = 1;
    if (LVD_UNLIKELY(!lvd_os_try(w->escape, run, w))) {
      lvd_fiber *f = fiber_of(w->current);
      w->abandonable = 0;
      w->current = NULL;
      lvd_os_context_after_jump(&w->home);
      lvd_hooks.forks.abandon(w, f);
      abandon(w, f);
    }
  }
  w->abandonable = 0;
  lvd_store_relaxed_u32(&w->running_queue, 0);
  uint64_t end = lvd_os_ticks();
  lvd_count(&w->busy_ticks, lvd_activation_ticks(w, end));
  lvd_count(&w->activations, 1);
  return end;
}

/* As leave and switch_to_worker, for a fiber with active C++ exceptions, which are saved and
 * restored. */
LVD_COLD static void leave_with_exceptions(lvd_worker *w, lvd_fiber *f, bool home) {
  lvd_os_exceptions kept = lvd_os_exceptions_save();
  if (home)
    switch_to_worker(w, f);
  else
    leave(w, f);
  lvd_os_exceptions_restore(&kept);
}

void lvd_fiber_main(void *argument) {
  lvd_fiber *f = argument;
  f->body(f->argument);
  lvd_worker *w = lvd_this_worker();
  w->abandonable = 0;
  f->ended = true;
  switch_to_worker(w, f);
  __builtin_unreachable();
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Why a wait of `f` ends regardless of its wait items; LVD_OK: it does not. */
static lvd_status interrupted(const lvd_fiber *f) {
  if (f->uninterruptible) return LVD_OK;
  uint32_t status = lvd_load_relaxed_u32(f->cancelled);
  if (status) return (lvd_status)status;
  uint32_t phase = lvd_load_acquire_u32(&f->entity.app->phase);
  if (phase == LVD_PHASE_RUNNING) return LVD_OK;
  return lvd_app_exit_status(f->entity.app) == LVD_E_DEADLOCK ? LVD_E_DEADLOCK : LVD_E_STOPPED;
}

bool lvd_fiber_can_resume(lvd_entity *e) {
  lvd_fiber *f = fiber_of(e);
  for (uint32_t i = 0; i < f->wants; i++)
    if (lvd_wait_item_look(&f->want[i]) != LVD_E_TIMEOUT) return true;
  return interrupted(f) != LVD_OK;
}

bool lvd_fiber_is_of_thread(const lvd_entity *e) { return ((const lvd_fiber *)e)->of_thread; }

bool lvd_entity_is_pinned(const lvd_entity *e) {
  const lvd_fiber *f = e->is_fiber ? (const lvd_fiber *)e : e->stack;
  return f && (f->forks || f->interrupted);
}

void lvd_fiber_remove_timer(lvd_worker *w, lvd_entity *e) {
  lvd_timer_remove(&w->timers, &fiber_of(e)->timer);
}

/* Suspends `f` after its wait items were armed, unless a wake-up has arrived. */
static void suspend(lvd_worker *w, lvd_fiber *f, bool timed) {
  lvd_entity *e = &f->entity;
  uint32_t running = LVD_RUNNING;
  /* A timeout or an external source will wake it: it counts as live. */
  bool alive = timed || (f->wants == 1 && f->want[0].source);
  if (alive) lvd_add_relaxed_u32(&e->app->live, 1);
  if (lvd_cas_release_u32(&e->state, &running, LVD_IDLE)) {
    for (uint32_t i = 0; i < f->wants; i++) lvd_wait_item_point(&f->want[i])->sleeps++;
    if (timed) lvd_timer_add(&w->timers, &f->timer);
    lvd_app_worker_leave(w, e->app);
    lvd_pending_park_add(w, e);
    if (LVD_UNLIKELY(lvd_os_has_exceptions()))
      leave_with_exceptions(w, f, false);
    else
      leave(w, f);
    w = lvd_this_worker(); /* it may be another worker now */
    w->abandonable = 0;
    lvd_timer_remove(&w->timers, &f->timer);
  } else { /* NOTIFIED: a wake-up has arrived */
    lvd_store_relaxed_u32(&e->state, LVD_RUNNING);
  }
  if (alive) lvd_add_relaxed_u32(&e->app->live, UINT32_MAX);
}

/* If nothing else is ready, `f` polls before it parks, for half of the worker's spin time: data
 * from another core then costs neither side a wake-up, since nothing is armed yet. */
static lvd_status poll_before_park(lvd_worker *w, const lvd_fiber *f, const lvd_wait_item *want,
                                   uint32_t count, bool timed, uint32_t *which) {
  const lvd_runtime *rt = w->rt;
  if (w->ready_queues || count == 0 || !lvd_spin_us(rt) || w->index >= rt->workers)
    return LVD_E_TIMEOUT;
  uint64_t start = lvd_os_ticks(), now = start;
  uint64_t until = start + lvd_os_ns_to_ticks((uint64_t)rt->options.spin_us * 500);
  if (timed && f->timer.deadline < until) until = f->timer.deadline;
  lvd_status status = LVD_E_TIMEOUT;
  for (uint32_t looks = 0; now < until; looks++, now = lvd_os_ticks()) {
    for (uint32_t i = 0; i < lvd_spin_pauses(looks); i++) lvd_os_relax();
    for (uint32_t i = 0; i < count && status == LVD_E_TIMEOUT; i++)
      if ((status = lvd_wait_item_look(&want[i])) != LVD_E_TIMEOUT) *which = i;
    if (status != LVD_E_TIMEOUT || lvd_worker_has_requests(w) || interrupted(f) != LVD_OK) break;
  }
  lvd_count(&w->started_at, lvd_os_ticks() - start);
  return status;
}

lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_wait_item *want, uint32_t count,
                          int64_t timeout_ns, uint32_t *which) {
  LVD_NO_ABANDON;
  lvd_worker *w = lvd_this_worker();
  bool timed = timeout_ns >= 0;
  if (timed) f->timer.deadline = lvd_os_ticks() + lvd_os_ns_to_ticks((uint64_t)timeout_ns);
  if (f->ends) lvd_hooks.streams.fiber_waits(f);
  lvd_status status = LVD_E_TIMEOUT;
  if (timeout_ns != 0) status = poll_before_park(w, f, want, count, timed, which);
  while (status == LVD_E_TIMEOUT) {
    if ((status = interrupted(f)) != LVD_OK) break;
    for (uint32_t i = 0; i < count; i++) lvd_wait_item_arm(&want[i], &f->entity.waiter);
    f->want = want;
    f->wants = count;
    status = LVD_E_TIMEOUT;
    for (uint32_t i = 0; i < count && status == LVD_E_TIMEOUT; i++)
      if ((status = lvd_wait_item_look(&want[i])) != LVD_E_TIMEOUT) *which = i;
    if (status == LVD_E_TIMEOUT && !(timed && timeout_ns == 0)) suspend(w, f, timed);
    f->wants = 0;
    f->want = NULL;
    for (uint32_t i = 0; i < count; i++) lvd_wait_item_disarm(&want[i]);
    if (status == LVD_E_TIMEOUT && interrupted(f) == LVD_OK)
      status = lvd_wait_items_look(want, count, false, which);
    if (status != LVD_E_TIMEOUT) break;
    if (timed && interrupted(f) == LVD_OK && lvd_os_ticks() >= f->timer.deadline) break;
    w = lvd_this_worker();
  }
  return status;
}

void lvd_fiber_wait_uninterruptible(lvd_fiber *f, lvd_event *e) {
  uint32_t which;
  const lvd_wait_item want = {.event = e};
  f->uninterruptible = true;
  while (!lvd_exchange_acquire_u64(&e->word, 0)) lvd_fiber_wait(f, &want, 1, -1, &which);
  f->uninterruptible = false;
}

/* Yields in all cases but the switch to a fiber of equal urgency. If all others of its level have
 * just yielded too, or have a lower class, the worker's loop decides what is next. */
__attribute__((noinline)) static void give_way(lvd_worker *w, lvd_entity *e) {
  if (!w->switches_left) w->switches_left = 1; /* switch_to_next has decremented it */
  lvd_exit_if_overdue(w);
  uint32_t others = w->ready_queues >> lvd_queue_class_yielded(e);
  if (!others && !loop_wanted(w)) return;
  bool home = w->ready_queues >> lvd_queue_class(e) == 0;
  /* A tick must not take it for a computing fiber and migrate the queue: it is queued itself. */
  w->abandonable = 0;
  lvd_fence_compiler();
  lvd_store_relaxed_u32(&e->state, LVD_READY);
  if (home)
    lvd_queue_put_after(w, e);
  else
    lvd_queue_put(w, e);
  if (LVD_UNLIKELY(lvd_os_has_exceptions()))
    leave_with_exceptions(w, fiber_of(e), home);
  else if (home)
    switch_to_worker(w, fiber_of(e));
  else
    leave(w, fiber_of(e));
}

/* Fast path of a yield: switches to the next fiber of the same queue, if no more urgent one is
 * ready. The next fiber belongs to the same application, which is therefore not paused. False:
 * the slow path is needed. The path depends as little as possible on stores of the previous
 * switch (the queue is found without the entity that runs, and the switch is counted first), and
 * calls nothing but the switch, so that no register is saved for it. */
static inline bool switch_to_next(lvd_worker *w, lvd_entity *e) {
  uint32_t place = lvd_load_relaxed_u32(&w->running_queue) - 1;
  lvd_queue *q = &w->ready[place];
  w->abandonable = 0; /* signal handlers then do not touch the queue (overrun.c) */
  lvd_fence_compiler();
  lvd_entity *next = q->first;
  if (LVD_UNLIKELY(--w->switches_left == 0 || w->ready_queues >> place != 1 ||
                   lvd_load_relaxed_u32(&w->yield) || next->app != e->app || !next->is_fiber ||
                   lvd_load_relaxed_u32(&next->target) != w->index || fiber_of(next)->forks ||
                   fiber_of(next)->must_abandon || lvd_forks.head != w->fork_base)) {
    w->abandonable = 1;
    return false;
  }
  lvd_store_relaxed_u32(&e->state, LVD_READY);
  e->next = NULL;
  q->last->next = e;
  q->last = e;
  lvd_fence_compiler(); /* else both are stored as one, and the next load of one waits for that */
  q->first = next->next;
  begin_without_forks(w, next);
  lvd_fence_compiler();
  w->abandonable = 1;
  lvd_os_context_switch(&fiber_of(e)->context, &fiber_of(next)->context, false);
  return true;
}

/* The fiber may have an active exception. */
__attribute__((noinline)) static void yield_with_exceptions(lvd_worker *w, lvd_entity *e) {
  if (lvd_os_has_exceptions() || !switch_to_next(w, e)) give_way(w, e);
}

/* The stack is used up. */
LVD_COLD static void yield_at_the_end(lvd_worker *w, lvd_entity *e) {
  lvd_no_abandon_overflow(w);
  give_way(w, e);
}

LVD_BARE_STACK void lvd_fiber_yield(void) {
  lvd_worker *w = lvd_os_self_until_switch();
  if (!w || !w->current || !w->current->is_fiber) return;
  lvd_entity *e = w->current;
  const char here = 0; /* a frame address would occupy a register */
  if (LVD_UNLIKELY((const unsigned char *)&here < fiber_of(e)->floor))
    yield_at_the_end(w, e);
  else if (LVD_UNLIKELY(lvd_os_may_have_exceptions()))
    yield_with_exceptions(w, e);
  else if (!switch_to_next(w, e))
    give_way(w, e);
}

void lvd_fiber_preempted(void) {
  lvd_worker *w = lvd_this_worker();
  lvd_fiber *f = fiber_of(w->current);
  w->abandonable = 0;
  lvd_fence_compiler();
  bool forks = lvd_hooks.forks.set_aside(w, f);
  f->interrupted = true;
  lvd_store_relaxed_u32(&f->entity.state, LVD_READY);
  lvd_queue_put_after(w, &f->entity);
  bool any = lvd_os_has_exceptions();
  lvd_os_exceptions kept = {NULL, 0};
  if (any) kept = lvd_os_exceptions_save();
  switch_to_worker(w, f);
  if (any) lvd_os_exceptions_restore(&kept);
  if (!forks) lvd_hooks.forks.set_back_without();
  f->interrupted = false;
}

lvd_status lvd_fiber_sleep(int64_t ns) {
  lvd_fiber *f = lvd_fiber_self();
  uint32_t which;
  if (f) {
    lvd_status status = lvd_fiber_wait(f, NULL, 0, ns < 0 ? 0 : ns, &which);
    if (status == LVD_E_STOPPED) lvd_exit_if_overdue(lvd_this_worker());
    return status == LVD_E_TIMEOUT ? LVD_OK : status;
  }
  lvd_hooks.streams.thread_waits();
  if (ns > 0) lvd_os_sleep_uninterrupted(ns);
  return LVD_OK;
}

/* Its address identifies a thread that is no worker. */
static _Thread_local char thread_mark;

void *lvd_caller(void) {
  lvd_fiber *f = lvd_fiber_self();
  if (f) return f;
  void *worker = lvd_os_self();
  return worker ? worker : &thread_mark;
}
