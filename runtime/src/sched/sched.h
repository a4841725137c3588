/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the files of the scheduler call of each other, and other folders of them. */
#ifndef LVD_SCHED_SCHED_H
#define LVD_SCHED_SCHED_H

#include "../core/hooks.h"
#include "../core/status.h"
#include "runtime_state.h"

/* ---- entity.c -------------------- */

bool lvd_entity_wake(lvd_waiter *self);
bool lvd_entity_wake_locked(lvd_entity *e); /* the same, with the application's gate in hand */
/* The worker that runs this thread, or null. */
static inline lvd_worker *lvd_this_worker(void) { return lvd_os_self(); }
void lvd_queue_remove_app(lvd_worker *w, lvd_app *app); /* owner only */
void lvd_queue_insert(lvd_queue *q, lvd_entity *e);     /* in its turn; there is somebody in it */
bool lvd_entity_park(lvd_worker *w, lvd_entity *e);     /* after LVD_WAIT */
bool lvd_entity_can_go_on(lvd_entity *e);
void lvd_entity_hand_over(lvd_worker *w, lvd_entity *e, uint32_t target);

/* ---- worker.c -------------------- */

void lvd_worker_main(void *w);
lvd_status lvd_worker_prepare(lvd_runtime *rt, uint32_t index, int32_t cpu);
lvd_status lvd_worker_start(lvd_worker *w, const char *name);
void lvd_worker_free(lvd_worker *w);
/* Bytes of a table of all entities that the runtime may have. */
static inline size_t lvd_entities_size(const lvd_runtime *rt) {
  return (size_t)rt->options.entities * sizeof(lvd_entity *);
}
void lvd_worker_interrupt(lvd_worker *w); /* wakes it, if it sleeps; what runs there gives way */
void lvd_worker_request_yield(
    lvd_worker *w); /* what runs there should give way, for what was left for it */
/* The same for what has this place, of who runs at `running` - 1. */
void lvd_worker_request_yield_for(lvd_worker *w, uint32_t place, uint32_t running);
/* What runs there, for who is ready at this place of its level. */
bool lvd_worker_slice_used(const lvd_worker *w, uint32_t place, uint32_t running);
void lvd_worker_command(lvd_worker *w, lvd_command *c);
/* Leaves `c`, which nobody waits for. What runs gives way to it if it is less than `level`. */
void lvd_worker_post(lvd_worker *w, lvd_command *c, uint32_t level);
/* Has somebody left something for it? */
static inline bool lvd_worker_has_requests(const lvd_worker *w) {
  return lvd_load_relaxed_u32(&w->yield) || lvd_load_relaxed_ptr(&w->commands) ||
         lvd_inbox_pending(&w->inbox);
}
/* Have some parked, or may applications have come to rest, since it settled long ago? */
static inline bool lvd_park_barrier_is_due(const lvd_worker *w, uint64_t now) {
  return (w->pending_park_count || w->quiet) && now - w->park_barrier_at > w->park_barrier_ticks;
}
/* While a worker steals it may touch any application. */
#define LVD_ANY_APP(w) ((lvd_app *)(w))
/* What is done from here on is for `app`; null: for none. Before the application's phase is read:
 * who changes that, and then waits for an end of what runs (lvd_app_wait_inactive), either sees us or is
 * seen. */
void lvd_worker_set_current_app(lvd_worker *w, lvd_app *app);
/* Has the command been done? Waits for that at most `timeout_ns`; negative: for ever. */
bool lvd_command_done(lvd_command *c, int64_t timeout_ns);
void lvd_inbox_drain(lvd_worker *w);
/* The commands that may be obeyed at any time, if there are no others. */
void lvd_worker_run_safe_commands(lvd_worker *w);
void lvd_actor_publish(lvd_actor *a);

/* How long to wait before the next of `looks`: each takes lines away from the sides that work, so
 * at first often, for what takes a microsecond, and then less and less. */
static inline uint32_t lvd_spin_pauses(uint32_t looks) { return looks < 128 ? 1 + looks / 8 : 16; }

/* ---- park_barrier.c -------------------- */

void lvd_pending_park_add(lvd_worker *w, lvd_entity *e);
void lvd_pending_park_remove(lvd_worker *w, lvd_entity *e);
bool lvd_poll_pending_parks(
    lvd_worker *w); /* without the barrier: a guess; true: something is ready */
void lvd_park_barrier(lvd_worker *w);

/* ---- app_liveness.c -------------------- */

void lvd_app_worker_enter(lvd_worker *w,
                          lvd_app *app); /* one more entity of it is ready here ... */
void lvd_app_worker_arrive(lvd_worker *w, lvd_app *app); /* ... that was on its way */
/* The same by who does nothing of it yet. */
void lvd_app_worker_enter_from_outside(lvd_worker *w, lvd_app *app);
void lvd_app_worker_leave(lvd_worker *w, lvd_app *app);
void lvd_app_worker_fiber_ended(lvd_worker *w, lvd_app *app); /* a fiber of it has ended here */
void lvd_app_workers_check_quiet(
    lvd_worker *w); /* has settled: of what is quiet here, nothing is ready */
void lvd_app_worker_forget(lvd_worker *w, const lvd_app *app); /* it ends */
lvd_status lvd_app_exit_status(const lvd_app *app);            /* why it is to end */
void lvd_app_end(lvd_app *app, lvd_status outcome);
void lvd_reaper_wake(lvd_runtime *rt); /* there is something to look at, or to end */

/* Who uses something, as lvd_caller has it. */
typedef struct lvd_user {
  void *who;
  lvd_fiber *fiber; /* null: a thread */
} lvd_user;

/* ---- want.c -------------------- */

/* What a sleeper lies in. */
enum { LVD_SLEEPS_ALONE, LVD_SLEEPS_AT_STREAM, LVD_SLEEPS_AT_END, LVD_SLEEPS_AT_CALL };

void lvd_want_arm(const lvd_want *want, lvd_waiter *who);
void lvd_want_disarm(const lvd_want *want);
lvd_sleeper *lvd_want_sleeper(const lvd_want *want); /* null: it has none */
lvd_status lvd_want_look(const lvd_want *want);      /* of one that waits; LVD_E_TIME: not yet */
lvd_status lvd_want_met(const lvd_want *want);       /* of one that runs; LVD_E_TIME: not yet */
/* The first of them that is met; `waiting`: as lvd_want_look, else as lvd_want_met. */
lvd_status lvd_wants_look(const lvd_want *want, uint32_t count, bool waiting, uint32_t *which);
/* Sets an event that is not set and that nobody else sets. */
void lvd_event_complete(lvd_event *e, uint32_t data);

/* ---- fiber.c -------------------- */

uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now);
bool lvd_fiber_can_go_on(lvd_entity *e);
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_want *want, uint32_t count, int64_t timeout_ns,
                          uint32_t *which);
bool lvd_fiber_is_bare(const lvd_entity *e);
bool lvd_entity_is_pinned(
    const lvd_entity *e); /* suspended with forks open, or by force: it does not move */
/* In a signal's handler, on the stack of the fiber that runs: it stands behind all that is ready. */
void lvd_fiber_preempted(void);
void lvd_fiber_moves(lvd_worker *w, lvd_entity *e); /* away from `w` */

/* ---- fiber_pool.c -------------------- */

void lvd_fibers_each(lvd_app *app, void (*visit)(lvd_entity *, void *), void *argument);
void lvd_fibers_wake(lvd_app *app); /* that something has changed for all of it: they look */
void lvd_fiber_pool_init(lvd_runtime *rt);
void lvd_fiber_pool_free(lvd_runtime *rt);

/* ---- stack_overflow.c -------------------- */

/* What makes a stack that has overflowed larger; "" if nothing does. What is said of one. */
const char *lvd_stack_advice(const lvd_entity *e);
void lvd_stack_text(const lvd_entity *e, char *text, size_t size);
/* Is `address` in the guard below the stack of what runs? */
bool lvd_fiber_overflows(const lvd_worker *w, const void *address);

/* ---- actor_call.c -------------------- */

/* The call of an actor with a stack is out from here on: the actor leaves its worker next (lvd_stack_suspend). */
void lvd_actor_begin_call(lvd_entity *e);
/* An actor with a stack waits until lvd_call_complete, which has been arranged. */
void lvd_actor_suspend_for_call(lvd_worker *w, lvd_entity *e);
void lvd_call_complete(lvd_entity *e);
void lvd_call_returned(lvd_entity *e); /* its worker has learned it */
void lvd_call_uncount(lvd_app *app);   /* the application has one call less out */
/* `w` runs: if `e` is its own and its call is out, the call comes back where `e` should be. */
void lvd_call_follow_actor(lvd_worker *w, lvd_entity *e);

/* ---- actor_timer.c -------------------- */

/* Ticks until the first of `w` is due; 0: none waits for a time. */
uint64_t lvd_actor_timers_next(const lvd_worker *w);
/* `e` begins: it is asked to give way when an alarm becomes due that may while it runs. */
void lvd_actor_timers_request_yield(lvd_worker *w, const lvd_entity *e, uint64_t now);
void lvd_actor_timers_expire(lvd_worker *w, uint64_t now);
/* `w` runs: `e`, whose call has just followed it to another worker, waits there. */
void lvd_actor_timer_follow(lvd_worker *w, lvd_entity *e);
void lvd_actor_timers_recall(lvd_app *app); /* of its actors */

/* Is it a source that may be left for good where it waits in lvd_wait_input? */
static inline bool lvd_restarts(const lvd_entity *e) {
  return e->actor.cls->flags & LVD_CLASS_RESTARTS && e->actor.cls->inputs == 0;
}

static inline bool lvd_has_fd_watches(const lvd_entity *e) {
  return lvd_load_relaxed_ptr(&e->fd_watches);
}

/* ---- actor_stack.c -------------------- */

bool lvd_stack_borrow(lvd_worker *w, lvd_entity *e); /* for the coming call of run; false: none */
void lvd_stack_enter(void *worker);                  /* calls run on it, or goes on with it */
void lvd_stack_return(lvd_worker *w, lvd_entity *e, bool whole); /* run has returned; or was left */
void lvd_stack_suspend(lvd_worker *w, lvd_entity *e); /* returns when it is gone on with */
void lvd_stacks_abandon_forks(lvd_app *app);          /* none of it is gone on with from now on */
void lvd_stacks_free(lvd_app *app);                   /* of those that are not gone on with */

/* ---- overrun.c -------------------- */

/* A worker that may have something of what waits behind `w`; null: none. In a signal's handler, or anywhere. */
lvd_worker *lvd_find_backup_worker(const lvd_worker *w);
/* Another tick of the clock in the same activation: gives away what waits behind it, once it has gone on
 * for long. In signal context. */
void lvd_overrun_tick(lvd_worker *w);
/* The watchdog has seen that the activation sleeps in the system; it is at `at`, on the stack at `sp`. In signal context. */
void lvd_overrun_blocked(lvd_worker *w, const void *sp, const void *at);

/* ---- preempt.c -------------------- */

/* A tick of the clock amid a fiber, which goes on at `at` with its stack at `sp`: it is suspended, where it can be and
 * somebody waits, or else relieved as an actor is. In signal context. */
void lvd_preempt_fiber(lvd_worker *w, const void *sp, const void *at);
/* The watchdog has met it asleep in the system: if its application is paused it is suspended when it is back in code of
 * its own. In signal context. */
void lvd_preempt_blocked(lvd_worker *w, const void *sp, const void *at);
/* What `w` has been asked for should not wait for its clock: by any thread. */
void lvd_send_preempt(lvd_worker *w);
/* Somebody has knocked. In signal context. */
void lvd_on_preempt(lvd_worker *w, const void *sp, const void *at);

/* ---- forced_exit.c -------------------- */

/* Who computes for longer than this while his application ends is left where he is. */
enum { LVD_STOP_MS = 200, LVD_END_TICKS = LVD_STOP_MS / LVD_TICK_MS };
/* A tick of the clock amid a fiber; it goes on in code of its own, or not, with its stack at `sp`; it sleeps in the
 * system. In signal context. */
void lvd_forced_exit_tick(lvd_worker *w);
void lvd_forced_exit_in_library(lvd_worker *w);
void lvd_forced_exit_blocked(lvd_worker *w);
/* For where a fiber forks, yields or sleeps, and all is whole, as where an actor's native fails: if it is one of a C
 * program that ends, has had its time for that and has not come to its end by itself, this does not return. */
LVD_COLD void lvd_forced_exit_check(lvd_worker *w);
static inline void lvd_exit_if_overdue(lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (LVD_UNLIKELY(e && e->is_fiber && lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING))
    lvd_forced_exit_check(w);
}

/* ---- watchdog.c -------------------- */

lvd_status lvd_watchdog_start(lvd_runtime *rt);
void lvd_watchdog_end(lvd_runtime *rt);
/* The worker's thread, which calls, has begun; is awake again; is about to sleep with nothing to do, or to end. */
void lvd_watchdog_begin(lvd_worker *w);
void lvd_watchdog_awake(lvd_worker *w);
void lvd_watchdog_asleep(lvd_worker *w);
/* A keeper waits for what runs of `app`. If that is to end, and sleeps in the system, it is asked again. */
void lvd_watchdog_expect_exit(lvd_app *app);
/* Somebody waits for `app` to be still, and it runs on `w`. If it is a C program that is paused, and sleeps in the system,
 * it is met again at each look, until it is held. */
void lvd_watchdog_expect_pause(lvd_worker *w, lvd_app *app);

/* ---- priority_worker.c, backup_worker.c -------------------- */

/* Starts a worker that is not there from the beginning, unless it runs; its thread has the core's name with this mark. */
lvd_status lvd_worker_begin(lvd_runtime *rt, uint32_t index, char mark);
/* The worker for what is urgent on the core of `worker`; starts it when it is first asked for. */
lvd_status lvd_priority_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent);
/* A relief that can take what waits behind `w`; null: there is none. In a signal's handler. */
lvd_worker *lvd_backup_worker(const lvd_worker *w);
/* `w` seems to be stuck: if so are all others, the relief of its core begins. */
void lvd_backup_worker_request(const lvd_worker *w);
/* `w` is a relief, and has `e` in hand: where that is to be when the core's own worker is back. */
void lvd_backup_worker_goes_home(const lvd_worker *w, lvd_entity *e);

/* ---- steal_time.c -------------------- */

void lvd_steal_time_init(lvd_worker *w);
/* Moves `since` on by what has been lost until `now`. Of the worker itself while nothing runs, of its clock while
 * something does. */
void lvd_steal_time_update(lvd_worker *w, uint64_t now);
/* What the activation that runs has lost since the last look, as others can see it; in ticks. It may be a part too much,
 * which is seen as time that it takes at the next look. */
uint64_t lvd_steal_time_pending(const lvd_worker *w, uint64_t now);
/* What the one of this number has lost before; in ticks. */
uint64_t lvd_steal_time_before(const lvd_worker *w, uint64_t activation);
/* What was lost until `now` is no activation's. */
LVD_COLD void lvd_steal_time_reset(lvd_worker *w, uint64_t now);
/* The worker has rested, and had been awake for so long in its life: what it has waited meanwhile, in which it was
 * woken, too, is nobody's. */
static inline void lvd_steal_time_after_idle(lvd_worker *w, uint64_t awake, uint64_t now) {
  bool long_awake = now - lvd_worker_slept_ticks(w) - awake > w->steal.min_activation_ticks;
  if (LVD_UNLIKELY(long_awake || now - w->steal.sampled_at > w->steal.sample_valid_ticks))
    lvd_steal_time_reset(w, now);
}
/* What the activation that ends at `end` took. */
static inline uint64_t lvd_activation_ticks(lvd_worker *w, uint64_t end) {
  uint64_t took = end - lvd_load_relaxed_u64(&w->started_at);
  if (LVD_LIKELY(took <= w->steal.min_activation_ticks)) return took;
  lvd_steal_time_update(w, end);
  return end - lvd_load_relaxed_u64(&w->started_at);
}

/* ---- fault.c -------------------- */

void lvd_trap(void *self, lvd_os_trap trap, const void *address, const void *at);
void lvd_fault_record(lvd_entity *e, lvd_fault_kind kind, uint32_t line, const char *message);
bool lvd_app_faulted(const lvd_app *app);

#endif
