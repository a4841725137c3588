/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions that the files of the scheduler call of each other, and that other folders call. */
#ifndef LVD_SCHED_SCHED_H
#define LVD_SCHED_SCHED_H

#include "../core/hooks.h"
#include "../core/status.h"
#include "runtime_state.h"

/* ---- entity.c -------------------- */

bool lvd_entity_wake(lvd_waiter *self);
bool lvd_entity_wake_locked(lvd_entity *e); /* the same, with the application's gate held */
/* The worker that runs on this thread; null: none. */
static inline lvd_worker *lvd_this_worker(void) { return lvd_os_self(); }
void lvd_queue_remove_app(lvd_worker *w, lvd_app *app); /* by the owner only */
/* In its place of the round; `q` is not empty. */
void lvd_queue_insert(lvd_queue *q, lvd_entity *e);
bool lvd_entity_park(lvd_worker *w, lvd_entity *e); /* when run has returned LVD_RUN_WAIT */
bool lvd_entity_can_go_on(lvd_entity *e);
void lvd_entity_hand_over(lvd_worker *w, lvd_entity *e, uint32_t target);

/* ---- worker.c -------------------- */

void lvd_worker_main(void *w);
lvd_status lvd_worker_prepare(lvd_runtime *rt, uint32_t index, int32_t cpu);
lvd_status lvd_worker_start(lvd_worker *w, const char *name);
void lvd_worker_free(lvd_worker *w);
/* Size in bytes of a table of all entities that the runtime may have. */
static inline size_t lvd_entities_size(const lvd_runtime *rt) {
  return (size_t)rt->options.entities * sizeof(lvd_entity *);
}
void lvd_worker_interrupt(lvd_worker *w); /* wakes it if it sleeps; the running entity yields */
/* Asks the running entity to yield, because work was posted to the worker. */
void lvd_worker_request_yield(lvd_worker *w);
/* As lvd_worker_request_yield, on behalf of an entity of queue `place`, while one of queue
 * `running` - 1 runs. */
void lvd_worker_request_yield_for(lvd_worker *w, uint32_t place, uint32_t running);
/* Has the running entity used its time slice, as seen by an entity of queue `place` of its
 * level? */
bool lvd_worker_slice_used(const lvd_worker *w, uint32_t place, uint32_t running);
void lvd_worker_command(lvd_worker *w, lvd_command *c);
/* Posts `c`, for which no thread waits. The running entity is asked to yield if its level is
 * below `level`. */
void lvd_worker_post(lvd_worker *w, lvd_command *c, uint32_t level);
/* Was anything posted to the worker? */
static inline bool lvd_worker_has_requests(const lvd_worker *w) {
  return lvd_load_relaxed_u32(&w->yield) || lvd_load_relaxed_ptr(&w->commands) ||
         lvd_inbox_pending(&w->inbox);
}
/* Are parks pending, or may applications have become quiescent, since a barrier long enough ago? */
static inline bool lvd_park_barrier_is_due(const lvd_worker *w, uint64_t now) {
  return (w->pending_park_count || w->quiet) && now - w->park_barrier_at > w->park_barrier_ticks;
}
/* The value of `running` while a worker steals: it may then touch any application. */
#define LVD_ANY_APP(w) ((lvd_app *)(w))
/* From here on the worker acts for `app`; null: for none. Called before the application's phase
 * is read: a thread that changes the phase and then waits for running activations
 * (lvd_app_wait_inactive) either sees `running` or its change is seen. */
void lvd_worker_set_current_app(lvd_worker *w, lvd_app *app);
/* Waits at most `timeout_ns` (negative: no timeout) for the command; returns whether it is done. */
bool lvd_command_done(lvd_command *c, int64_t timeout_ns);
void lvd_inbox_drain(lvd_worker *w);
/* Runs the commands that are safe in a signal handler, if there are no others. */
void lvd_worker_run_safe_commands(lvd_worker *w);
void lvd_actor_publish(lvd_actor *a);

/* Number of pauses before the next of `looks` polls. Each poll takes cache lines from the working
 * side: so polls are frequent at first, for events within a microsecond, and then rarer. */
static inline uint32_t lvd_spin_pauses(uint32_t looks) { return looks < 128 ? 1 + looks / 8 : 16; }

/* ---- park_barrier.c -------------------- */

void lvd_pending_park_add(lvd_worker *w, lvd_entity *e);
void lvd_pending_park_remove(lvd_worker *w, lvd_entity *e);
/* Without the barrier, so it may miss one; true: an entity is ready. */
bool lvd_poll_pending_parks(lvd_worker *w);
void lvd_park_barrier(lvd_worker *w);

/* ---- app_liveness.c -------------------- */

void lvd_app_worker_enter(lvd_worker *w,
                          lvd_app *app); /* one more of its entities is ready here ... */
void lvd_app_worker_arrive(lvd_worker *w, lvd_app *app); /* ... that was in transit */
/* The same, by a caller that is no activation of the application. */
void lvd_app_worker_enter_from_outside(lvd_worker *w, lvd_app *app);
void lvd_app_worker_leave(lvd_worker *w, lvd_app *app);
void lvd_app_worker_fiber_ended(lvd_worker *w, lvd_app *app); /* a fiber of it has ended here */
/* Called after a barrier: nothing is ready of the applications on the quiet list. */
void lvd_app_workers_check_quiet(lvd_worker *w);
void lvd_app_worker_forget(lvd_worker *w, const lvd_app *app); /* called when it ends */
lvd_status lvd_app_exit_status(const lvd_app *app);            /* the reason why it is to end */
void lvd_app_end(lvd_app *app, lvd_status outcome);
void lvd_reaper_wake(lvd_runtime *rt); /* an application is to be checked or ended */

/* The user of a stream or call, as lvd_caller identifies it. */
typedef struct lvd_user {
  void *id;
  lvd_fiber *fiber; /* null: a thread */
} lvd_user;

/* ---- wait_item.c -------------------- */

/* The kind of structure that contains a wait point. */
enum { LVD_SLEEPS_ALONE, LVD_SLEEPS_AT_STREAM, LVD_SLEEPS_AT_END, LVD_SLEEPS_AT_CALL };

void lvd_wait_item_arm(const lvd_wait_item *want, lvd_waiter *waiter);
void lvd_wait_item_disarm(const lvd_wait_item *want);
lvd_wait_point *lvd_wait_item_point(const lvd_wait_item *want); /* null: none */
lvd_status lvd_wait_item_look(const lvd_wait_item *want); /* for a waiter; LVD_E_TIMEOUT: not yet */
lvd_status
lvd_wait_item_is_met(const lvd_wait_item *want); /* for a running caller; LVD_E_TIMEOUT: not yet */
/* The status of the first item that is met; `waiting`: by lvd_wait_item_look, else by
 * lvd_wait_item_is_met. */
lvd_status lvd_wait_items_look(const lvd_wait_item *want, uint32_t count, bool waiting,
                               uint32_t *which);
/* Sets an event that is not set and that has no other setter. */
void lvd_event_complete(lvd_event *e, uint32_t data);

/* ---- fiber.c -------------------- */

uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now);
bool lvd_fiber_can_resume(lvd_entity *e);
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_wait_item *want, uint32_t count,
                          int64_t timeout_ns, uint32_t *which);
bool lvd_fiber_is_of_thread(const lvd_entity *e);
/* It is suspended with open forks, or was preempted: it stays on its worker. */
bool lvd_entity_is_pinned(const lvd_entity *e);
/* In a signal handler, on the stack of the running fiber: suspends it, behind all ready
 * entities. */
void lvd_fiber_preempted(void);
void lvd_fiber_remove_timer(lvd_worker *w, lvd_entity *e); /* before it leaves `w` */

/* ---- fiber_pool.c -------------------- */

void lvd_fibers_each(lvd_app *app, void (*visit)(lvd_entity *, void *), void *argument);
/* Something has changed for all fibers of it: they check their waits. */
void lvd_fibers_wake(lvd_app *app);
void lvd_fiber_pool_init(lvd_runtime *rt);
void lvd_fiber_pool_free(lvd_runtime *rt);

/* ---- stack_overflow.c -------------------- */

/* How to get a larger stack for `e`, or ""; and the text of a stack overflow. */
const char *lvd_stack_advice(const lvd_entity *e);
void lvd_stack_text(const lvd_entity *e, char *text, size_t size);
/* Is `address` in the guard below the stack of what runs? */
bool lvd_fiber_overflows(const lvd_worker *w, const void *address);

/* ---- actor_call.c -------------------- */

/* Marks the call of an actor with its own stack as pending; the actor leaves its worker next
 * (lvd_stack_suspend). */
void lvd_actor_begin_call(lvd_entity *e);
/* Suspends an actor with its own stack until lvd_call_complete, which has been arranged. */
void lvd_actor_suspend_for_call(lvd_worker *w, lvd_entity *e);
void lvd_call_complete(lvd_entity *e);
void lvd_call_returned(lvd_entity *e); /* its worker has received the completion */
void lvd_call_uncount(lvd_app *app);   /* the application has one pending call less */
/* Called on `w`: if `e` is its own and has a pending call, the call will return on the worker
 * that `e` should move to. */
void lvd_call_follow_actor(lvd_worker *w, lvd_entity *e);

/* ---- actor_timer.c -------------------- */

/* Ticks until the first timer of `w` is due, at least 1; 0: there is none. */
uint64_t lvd_actor_timers_next(const lvd_worker *w);
/* `e` begins: arranges that it is asked to yield when a timer becomes due that may do so while it
 * runs. */
void lvd_actor_timers_request_yield(lvd_worker *w, const lvd_entity *e, uint64_t now);
void lvd_actor_timers_expire(lvd_worker *w, uint64_t now);
/* Called on `w`: moves the timer of `e`, which has just been assigned to another worker. */
void lvd_actor_timer_follow(lvd_worker *w, lvd_entity *e);
void lvd_actor_timers_recall(lvd_app *app); /* of its actors */

/* Is it a source, and may its firing be discarded while it waits in lvd_wait_input_restartable? */
static inline bool lvd_restarts(const lvd_entity *e) {
  return e->actor.cls->flags & LVD_CLASS_RESTARTABLE && e->actor.cls->inputs == 0;
}

static inline bool lvd_has_fd_watches(const lvd_entity *e) {
  return lvd_load_relaxed_ptr(&e->fd_watches);
}

/* ---- actor_stack.c -------------------- */

bool lvd_stack_borrow(lvd_worker *w, lvd_entity *e); /* for the next call of run; false: no stack */
void lvd_stack_enter(void *worker);                  /* calls run on the stack, or resumes it */
/* run has returned; not `whole`: it was abandoned */
void lvd_stack_return(lvd_worker *w, lvd_entity *e, bool whole);
void lvd_stack_suspend(lvd_worker *w, lvd_entity *e); /* returns when the actor is resumed */
void lvd_stacks_abandon_forks(lvd_app *app);          /* none of them is resumed from now on */
void lvd_stacks_free(lvd_app *app);                   /* the stacks that are not resumed */

/* ---- overrun.c -------------------- */

/* A worker that may take what is queued behind `w`; null: none. Callable in a signal handler. */
lvd_worker *lvd_find_backup_worker(const lvd_worker *w);
/* Called at each further tick of the clock in one activation: migrates what is queued behind it
 * once it is an overrun. In signal context. */
void lvd_overrun_tick(lvd_worker *w);
/* The watchdog has found the activation blocked in a system call; `at` and `sp` are its
 * instruction and stack pointers. In signal context. */
void lvd_overrun_blocked(lvd_worker *w, const void *sp, const void *at);

/* ---- preempt.c -------------------- */

/* Called at a tick of the clock in a fiber with instruction pointer `at` and stack pointer `sp`:
 * preempts it where that is possible and an entity is ready, else treats it as an overrun. In
 * signal context. */
void lvd_preempt_fiber(lvd_worker *w, const void *sp, const void *at);
/* The watchdog has found the fiber blocked in a system call: if its application is paused,
 * suspends it when it is back in the program's own code. In signal context. */
void lvd_preempt_blocked(lvd_worker *w, const void *sp, const void *at);
/* Signals the thread of `w` if a fiber computes there, so that a request does not wait for the
 * clock. Callable on any thread. */
void lvd_send_preempt(lvd_worker *w);
/* Handles that signal. In signal context. */
void lvd_on_preempt(lvd_worker *w, const void *sp, const void *at);

/* ---- forced_exit.c -------------------- */

/* An activation that computes for longer than this while its application ends is abandoned. */
enum { LVD_MS_NS = 1000000, LVD_STOP_MS = 200, LVD_END_TICKS = LVD_STOP_MS / LVD_TICK_MS };
/* Called at a tick of the clock in a fiber; in a fiber in the program's own code; in library code
 * with stack pointer `sp`; in a fiber blocked in a system call. In signal context. */
void lvd_forced_exit_tick(lvd_worker *w);
void lvd_forced_exit_in_library(lvd_worker *w);
void lvd_forced_exit_blocked(lvd_worker *w);
/* Called where a fiber forks, yields or sleeps and the runtime's data is consistent: if the fiber
 * belongs to a C program that is to end and has used its time for that, this does not return. */
LVD_COLD void lvd_forced_exit_check(lvd_worker *w);
static inline void lvd_exit_if_overdue(lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (LVD_UNLIKELY(e && e->is_fiber && lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING))
    lvd_forced_exit_check(w);
}

/* ---- watchdog.c -------------------- */

lvd_status lvd_watchdog_start(lvd_runtime *rt);
void lvd_watchdog_end(lvd_runtime *rt);
/* The calling worker's thread has begun; is awake again; is about to sleep or to end. */
void lvd_watchdog_begin(lvd_worker *w);
void lvd_watchdog_awake(lvd_worker *w);
void lvd_watchdog_asleep(lvd_worker *w);
/* A reaper waits for the activations of `app`. If it is to end, those blocked in system calls are
 * interrupted again. */
void lvd_watchdog_expect_exit(lvd_app *app);
/* A thread waits for `app` to be inactive, and it runs on `w`. If it is a paused C program
 * blocked in a system call, it is signalled at each sample until it is suspended. */
void lvd_watchdog_expect_pause(lvd_worker *w, lvd_app *app);

/* ---- priority_worker.c, backup_worker.c -------------------- */

/* Starts a priority or backup worker, unless it runs already; its thread is named after the core,
 * with `mark` appended. */
lvd_status lvd_worker_begin(lvd_runtime *rt, uint32_t index, char mark);
/* The priority worker of the core of `worker`, started at the first request. */
lvd_status lvd_priority_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent);
/* A backup worker that may take what is queued behind `w`; null: none. Callable in a signal
 * handler. */
lvd_worker *lvd_backup_worker(const lvd_worker *w);
/* `w` may be in an overrun: starts the backup worker of its core if all other workers are, too. */
void lvd_backup_worker_request(const lvd_worker *w);
/* Called on the backup worker `w`, which holds `e`: sends it home if the core's own worker is
 * available again. */
void lvd_backup_worker_goes_home(const lvd_worker *w, lvd_entity *e);

/* ---- steal_time.c -------------------- */

void lvd_steal_time_init(lvd_worker *w);
/* Advances `started_at` by the steal time up to `now`. Called by the worker while nothing runs,
 * by its clock while something does. */
void lvd_steal_time_update(lvd_worker *w, uint64_t now);
/* Steal time of the running activation since the last measurement, in ticks, for other threads.
 * An overestimate is corrected at the next measurement. */
uint64_t lvd_steal_time_pending(const lvd_worker *w, uint64_t now);
/* Steal time found before in activation number `activation`, in ticks. */
uint64_t lvd_steal_time_before(const lvd_worker *w, uint64_t activation);
/* Discards the steal time up to `now`: it belongs to no activation. */
LVD_COLD void lvd_steal_time_reset(lvd_worker *w, uint64_t now);
/* Called after an idle period, before which the worker had been awake for `awake` ticks in total:
 * delays in that period, including the wake-up, belong to no activation. */
static inline void lvd_steal_time_after_idle(lvd_worker *w, uint64_t awake, uint64_t now) {
  bool long_awake = now - lvd_worker_slept_ticks(w) - awake > w->steal.min_activation_ticks;
  if (LVD_UNLIKELY(long_awake || now - w->steal.sampled_at > w->steal.sample_valid_ticks))
    lvd_steal_time_reset(w, now);
}
/* Duration in ticks of the activation that ends at `end`, without steal time. */
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
