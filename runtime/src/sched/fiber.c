/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fiber: how it is switched to, waits, gives way and ends.
 *
 * A fiber is an entity like an actor, with the same states (entity.c). What differs is how it runs:
 * its worker switches to its stack, and when it waits it goes straight on to the next ready fiber,
 * without the worker's own stack between, unless there is something that only the worker's loop
 * does. Since one worker alone switches to a fiber, IDLE may be announced before the switch away: a
 * waker can do no more than post, and the post is read after the switch.
 *
 * Guarantees
 *   F1  A fiber that waits goes on when one of its wants is met, its time limit passes, it is
 *       cancelled or its application ends. (C3 for fibers: armed, IDLE, then its worker settles.)
 *   F2  What a fiber did before it ended is seen by who has joined it. (fiber_start.c)
 *
 * Pairs of orders
 *   cancel: cancelled, [light], wake <> wait: armed, IDLE, [heavy], load cancelled    F1 (park_barrier.c)
 *   end: event told (release)        -> join: event wait (acquire)                    F2
 *   resume: paused (release, app_control.c) -> may_follow: paused (acquire)  what was done while it stood still
 *   put_away: fibers - 1 (release, app_liveness.c)  -> fibers_end: fibers (acquire)  nothing of it runs */
#include "fiber.h"
#include "../../platform/exceptions.h"
#include "../../platform/text.h"
#include "no_abandon.h"
#include "ready_queue.h"

enum {
  /* From fiber to fiber a worker looks up from its work about so often, as the last activation that
   * was measured tells, and at one of so many switches at the least. Should it err, the clock is
   * there (LVD_TRAP_TICK). */
  LOOK_NS = 20000,
  LOOK_MOST = 256,
  AWAY_MOST = 8, /* looks before the worker's loop has its turn */
  SAMPLE = 2     /* looks; the activation after that is measured, and stands for all since */
};

static lvd_fiber *fiber_of(lvd_entity *e) { return (lvd_fiber *)e; }

lvd_fiber *lvd_fiber_self(void) {
  lvd_worker *w = lvd_this_worker();
  return w && w->current && w->current->is_fiber ? fiber_of(w->current) : NULL;
}

void **lvd_fiber_word(void) {
  lvd_fiber *f = lvd_fiber_self();
  return f ? &f->word : NULL;
}

const char *lvd_fiber_name(const lvd_fiber *f) { return f ? f->entity.name : ""; }

/* ---- running ------------------------------------------------------------------------------ */

/* `e` runs from now on; the switch to it follows. */
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
  lvd_count(&e->busy_ticks, took * w->look * SAMPLE);
  if (took > lvd_load_relaxed_u64(&e->longest_ticks))
    lvd_store_relaxed_u64(&e->longest_ticks, took);
  uint64_t ns = lvd_os_ticks_to_ns(took);
  w->look = ns <= LOOK_NS / LOOK_MOST ? LOOK_MOST : ns < LOOK_NS ? (uint32_t)(LOOK_NS / ns) : 1;
  w->until_sample = SAMPLE;
}

/* The switch that is due looks up: what is measured ends before it, or begins after it. */
static void look_up(lvd_worker *w) {
  w->switches_left = w->look;
  if (w->loop_countdown) w->loop_countdown--;
  if (w->sampled_at) {
    end_sample(w, w->current);
    /* At odd distances, so that what goes round in a circle is not met at the same place always. */
    w->random = w->random * 1664525u + 1013904223u;
    w->switches_left = 1 + (w->random >> 16) % (2 * w->look - 1);
  } else if (--w->until_sample == 0) {
    w->until_sample = 1; /* the end of this one says how many */
    w->sampled_at = lvd_os_ticks();
    w->switches_left = 1;
  }
}

/* Has the loop something to do? Commands and the clock set `yield`. */
static bool loop_wanted(const lvd_worker *w) {
  return lvd_worker_has_requests(w) || lvd_actor_timers_next(w) == 1;
}

/* May `e`, which is ready, be gone on with from a fiber's stack? The loop sees to all else. */
static inline bool may_follow(const lvd_worker *w, const lvd_entity *e) {
  const lvd_app *app = e->app;
  return e->is_fiber && lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING &&
         !lvd_load_acquire_u32(&app->paused) && lvd_load_relaxed_u32(&e->target) == w->index;
}

/* The next ready entity has begun, if it may follow and the loop has nothing to do. */
static lvd_fiber *begin_next(lvd_worker *w) {
  bool looks = --w->switches_left == 0;
  if (looks) look_up(w);
  if (w->ready_queues == 0 || lvd_load_relaxed_u32(&w->yield)) return NULL;
  if (looks && (w->loop_countdown == 0 || loop_wanted(w))) return NULL;
  lvd_entity *e = w->ready[lvd_queue_top(w)].first;
  lvd_worker_set_current_app(w, e->app);
  if (!may_follow(w, e)) return NULL;
  lvd_queue_take(w);
  begin(w, e);
  lvd_store_relaxed_u32(&w->running_queue, lvd_queue_class(e) + 1);
  w->abandonable = 1;
  return fiber_of(e);
}

/* `f` is about to be left. What it has forked and not joined stays with it. */
static inline void leave_forks(lvd_worker *w, lvd_fiber *f) {
  if (LVD_UNLIKELY(lvd_forks.head != w->fork_base)) lvd_hooks.forks.suspend(w, f);
}

/* Leaves `f`, which is parked or ready, and returns when it is gone on with. */
static void leave(lvd_worker *w, lvd_fiber *f) {
  leave_forks(w, f);
  lvd_fiber *next = begin_next(w);
  /* What it is promised may have changed meanwhile: then its turn is the next. */
  if (LVD_LIKELY(next != f))
    lvd_os_context_switch(&f->context, next ? &next->context : &w->home, false);
}

/* The same, straight to the worker's own stack. */
static void go_home(lvd_worker *w, lvd_fiber *f) {
  if (w->sampled_at) end_sample(w, &f->entity);
  leave_forks(w, f);
  lvd_os_context_switch(&f->context, &w->home, f->ended);
}

/* It has ended or was abandoned; we are off its stack. */
static void put_away(lvd_worker *w, lvd_fiber *f) {
  lvd_app *app = f->entity.app;
  lvd_store_relaxed_u32(&f->entity.state, LVD_FINISHED);
  lvd_pending_park_remove(w, &f->entity);
  lvd_timer_remove(&w->timers, &f->timer);
  if (f->ends) lvd_hooks.streams.fiber_ends(f, f->outcome);
  lvd_event *end = f->end;
  if (end) lvd_event_complete(end, (uint32_t)f->outcome);
  if (end != &f->done) lvd_fiber_put_back(w->rt, f); /* else it is the joiner's from here on */
  lvd_app_worker_fiber_ended(w, app);
  lvd_app_worker_leave(w, app);
}

/* On the worker's own stack: what has ended is put away here, and the next one follows. */
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

/* It is not gone on with, and its forks are seen to; we are off its stack. If it has failed, fault.c has the report. */
LVD_COLD static void abandon(lvd_worker *w, lvd_fiber *f) {
  f->ended = true;
  f->outcome = LVD_E_FAULT;
  lvd_app_end(f->entity.app, LVD_E_FAULT); /* unless it ends already */
  put_away(w, f);
}

/* Runs fibers, `e` first, until there is something else to do. Returns the time after. */
uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now) {
  if (w->sampled_at) /* a look has asked for it, but then the loop was wanted */
    w->sampled_at = now;
  else if (--w->switches_left == 0)
    look_up(w);
  w->loop_countdown = AWAY_MOST;
  lvd_store_relaxed_u64(&w->started_at, now);
  lvd_store_relaxed_u32(&w->running_queue, lvd_queue_class(e) + 1);
  if (LVD_UNLIKELY(fiber_of(e)->left)) {
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

/* The same as leave and go_home, of one that has C++ exceptions: they stay with it. */
LVD_COLD static void leave_with_exceptions(lvd_worker *w, lvd_fiber *f, bool home) {
  lvd_os_exceptions kept = lvd_os_exceptions_save();
  if (home)
    go_home(w, f);
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
  go_home(w, f);
  __builtin_unreachable();
}

/* ---- waiting ------------------------------------------------------------------------------ */

/* Why a wait of `f` ends whatever it waits for; LVD_OK: it does not. */
static lvd_status interrupted(const lvd_fiber *f) {
  if (f->deaf) return LVD_OK;
  uint32_t told = lvd_load_relaxed_u32(f->cancelled);
  if (told) return (lvd_status)told;
  uint32_t phase = lvd_load_acquire_u32(&f->entity.app->phase);
  if (phase == LVD_PHASE_RUNNING) return LVD_OK;
  return lvd_app_exit_status(f->entity.app) == LVD_E_DEADLOCK ? LVD_E_DEADLOCK : LVD_E_STOPPED;
}

bool lvd_fiber_can_go_on(lvd_entity *e) {
  lvd_fiber *f = fiber_of(e);
  for (uint32_t i = 0; i < f->wants; i++)
    if (lvd_want_look(&f->want[i]) != LVD_E_TIME) return true;
  return interrupted(f) != LVD_OK;
}

bool lvd_fiber_is_bare(const lvd_entity *e) { return ((const lvd_fiber *)e)->bare; }

bool lvd_entity_is_pinned(const lvd_entity *e) {
  const lvd_fiber *f = e->is_fiber ? (const lvd_fiber *)e : e->stack;
  return f && (f->forks || f->interrupted);
}

void lvd_fiber_moves(lvd_worker *w, lvd_entity *e) {
  lvd_timer_remove(&w->timers, &fiber_of(e)->timer);
}

/* Suspends `f`, whose wants are armed, unless something has come meanwhile. */
static void suspend(lvd_worker *w, lvd_fiber *f, bool timed) {
  lvd_entity *e = &f->entity;
  uint32_t running = LVD_RUNNING;
  /* Time will wake it, or somebody outside: it is alive. */
  bool alive = timed || (f->wants == 1 && f->want[0].watch);
  if (alive) lvd_add_relaxed_u32(&e->app->live, 1);
  if (lvd_cas_release_u32(&e->state, &running, LVD_IDLE)) {
    for (uint32_t i = 0; i < f->wants; i++) lvd_want_sleeper(&f->want[i])->sleeps++;
    if (timed) lvd_timer_add(&w->timers, &f->timer);
    lvd_app_worker_leave(w, e->app);
    lvd_pending_park_add(w, e);
    if (LVD_UNLIKELY(lvd_os_has_exceptions()))
      leave_with_exceptions(w, f, false);
    else
      leave(w, f);
    w = lvd_this_worker(); /* it may be another one now */
    w->abandonable = 0;
    lvd_timer_remove(&w->timers, &f->timer);
  } else { /* NOTIFIED: something came */
    lvd_store_relaxed_u32(&e->state, LVD_RUNNING);
  }
  if (alive) lvd_add_relaxed_u32(&e->app->live, UINT32_MAX);
}

/* With nothing else to run, `f` looks around itself for half the time that its worker would: what
 * comes from another core meanwhile costs neither side a wake-up, since nothing is armed yet. */
static lvd_status look_first(lvd_worker *w, const lvd_fiber *f, const lvd_want *want,
                             uint32_t count, bool timed, uint32_t *which) {
  const lvd_runtime *rt = w->rt;
  if (w->ready_queues || count == 0 || !lvd_spin_us(rt) || w->index >= rt->workers)
    return LVD_E_TIME;
  uint64_t start = lvd_os_ticks(), now = start;
  uint64_t until = start + lvd_os_ns_to_ticks((uint64_t)rt->options.spin_us * 500);
  if (timed && f->timer.deadline < until) until = f->timer.deadline;
  lvd_status status = LVD_E_TIME;
  for (uint32_t looks = 0; now < until; looks++, now = lvd_os_ticks()) {
    for (uint32_t i = 0; i < lvd_spin_pauses(looks); i++) lvd_os_relax();
    for (uint32_t i = 0; i < count && status == LVD_E_TIME; i++)
      if ((status = lvd_want_look(&want[i])) != LVD_E_TIME) *which = i;
    if (status != LVD_E_TIME || lvd_worker_has_requests(w) || interrupted(f) != LVD_OK) break;
  }
  lvd_count(&w->started_at, lvd_os_ticks() - start);
  return status;
}

lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_want *want, uint32_t count, int64_t timeout_ns,
                          uint32_t *which) {
  LVD_NO_ABANDON;
  lvd_worker *w = lvd_this_worker();
  bool timed = timeout_ns >= 0;
  if (timed) f->timer.deadline = lvd_os_ticks() + lvd_os_ns_to_ticks((uint64_t)timeout_ns);
  if (f->ends) lvd_hooks.streams.fiber_waits(f);
  lvd_status status = LVD_E_TIME;
  if (timeout_ns != 0) status = look_first(w, f, want, count, timed, which);
  while (status == LVD_E_TIME) {
    if ((status = interrupted(f)) != LVD_OK) break;
    for (uint32_t i = 0; i < count; i++) lvd_want_arm(&want[i], &f->entity.waiter);
    f->want = want;
    f->wants = count;
    status = LVD_E_TIME;
    for (uint32_t i = 0; i < count && status == LVD_E_TIME; i++)
      if ((status = lvd_want_look(&want[i])) != LVD_E_TIME) *which = i;
    if (status == LVD_E_TIME && !(timed && timeout_ns == 0)) suspend(w, f, timed);
    f->wants = 0;
    f->want = NULL;
    for (uint32_t i = 0; i < count; i++) lvd_want_disarm(&want[i]);
    if (status == LVD_E_TIME && interrupted(f) == LVD_OK)
      status = lvd_wants_look(want, count, false, which);
    if (status != LVD_E_TIME) break;
    if (timed && interrupted(f) == LVD_OK && lvd_os_ticks() >= f->timer.deadline) break;
    w = lvd_this_worker();
  }
  return status;
}

void lvd_fiber_wait_uninterruptible(lvd_fiber *f, lvd_event *e) {
  uint32_t which;
  const lvd_want want = {.event = e};
  f->deaf = true;
  while (!lvd_exchange_acquire_u64(&e->word, 0)) lvd_fiber_wait(f, &want, 1, -1, &which);
  f->deaf = false;
}

/* All but the switch to somebody who is as urgent. Where all others of its level have just had a turn, or are promised
 * less, the worker's loop says whose turn it is. */
__attribute__((noinline)) static void give_way(lvd_worker *w, lvd_entity *e) {
  if (!w->switches_left) w->switches_left = 1; /* switch_to_next has counted */
  lvd_exit_if_overdue(w);
  uint32_t others = w->ready_queues >> lvd_queue_class_yielded(e);
  if (!others && !loop_wanted(w)) return;
  bool home = w->ready_queues >> lvd_queue_class(e) == 0;
  /* A tick must not take it for one that computes from here on, and give away what is queued: it is. */
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
    go_home(w, fiber_of(e));
  else
    leave(w, fiber_of(e));
}

/* Nobody is more urgent, somebody is as urgent: he goes on, and we stand behind. Of the same
 * application: so it is not paused. False: that is not all. The usual case is short, as little as can
 * be waits for what the switch before has stored (the queue is found without looking at what runs, and
 * the turn is counted first), and it calls nothing but the switch itself, so that no register is saved
 * for it. */
static inline bool switch_to_next(lvd_worker *w, lvd_entity *e) {
  uint32_t place = lvd_load_relaxed_u32(&w->running_queue) - 1;
  lvd_queue *q = &w->ready[place];
  w->abandonable = 0; /* whoever interrupts us leaves the queue alone (overrun.c) */
  lvd_fence_compiler();
  lvd_entity *next = q->first;
  if (LVD_UNLIKELY(--w->switches_left == 0 || w->ready_queues >> place != 1 ||
                   lvd_load_relaxed_u32(&w->yield) || next->app != e->app || !next->is_fiber ||
                   lvd_load_relaxed_u32(&next->target) != w->index || fiber_of(next)->forks ||
                   fiber_of(next)->left || lvd_forks.head != w->fork_base)) {
    w->abandonable = 1;
    return false;
  }
  lvd_store_relaxed_u32(&e->state, LVD_READY);
  e->next = NULL;
  q->last->next = e;
  q->last = e;
  lvd_fence_compiler(); /* or both are stored as one, and the next load of one waits for that */
  q->first = next->next;
  begin_without_forks(w, next);
  lvd_fence_compiler();
  w->abandonable = 1;
  lvd_os_context_switch(&fiber_of(e)->context, &fiber_of(next)->context, false);
  return true;
}

/* What runs may have an exception. */
__attribute__((noinline)) static void yield_with_exceptions(lvd_worker *w, lvd_entity *e) {
  if (lvd_os_has_exceptions() || !switch_to_next(w, e)) give_way(w, e);
}

/* The stack is at its end. */
LVD_COLD static void yield_at_the_end(lvd_worker *w, lvd_entity *e) {
  lvd_no_abandon_overflow(w);
  give_way(w, e);
}

LVD_BARE_STACK void lvd_fiber_yield(void) {
  lvd_worker *w = lvd_os_self_until_switch();
  if (!w || !w->current || !w->current->is_fiber) return;
  lvd_entity *e = w->current;
  const char here = 0; /* no frame address: that would take a register */
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
  go_home(w, f);
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
    return status == LVD_E_TIME ? LVD_OK : status;
  }
  lvd_hooks.streams.thread_waits();
  if (ns > 0) lvd_os_sleep_uninterrupted(ns);
  return LVD_OK;
}

/* What a thread that is no worker is known by: an address of its own. */
static _Thread_local char thread_mark;

void *lvd_caller(void) {
  lvd_fiber *f = lvd_fiber_self();
  if (f) return f;
  void *worker = lvd_os_self();
  return worker ? worker : &thread_mark;
}
