/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Worker: one thread per usable core that runs ready entities, the most urgent first, and
 * sleeps when none is ready. It never calls an actor that cannot fire.
 *
 * The loop: commands; the inbox; the next ready entity. If there is none: poll for some
 * microseconds (to wake a sleeping core costs many times a hand-over), run the park barrier,
 * and sleep on the inbox.
 *
 * Pairs of orders
 *   command: cas_release commands     -> run_commands, lvd_worker_run_safe_commands:
 *                                        exchange_acquire             the content of the command
 *   done:    store_release            -> lvd_command_done: load_acquire
 *                                                                     what the command did
 *   turn:    store_release running, turn -> lvd_app_wait_inactive: load_acquire
 *                                                                     what ran before
 *   turn:    running, [light], load phase, paused, awaited
 *                                     <> lvd_app_wait_inactive: phase or paused, awaited, [heavy],
 *                                        load running
 *   resume:  store_release paused     -> may_run: load_acquire
 *                                        what was done during the pause (app_control.c)
 *   ask:     exchange_release yield 1 -> loop: exchange_acquire yield 0
 *                                        what the requester has posted before
 * The word `yield` is only written by read-modify-write, so that the worker that clears it
 * sees what all requesters have posted, also if their 1 was overwritten. It is cleared before
 * the worker checks for work, never between that and an activation: a late request applies to
 * what runs next. */
#include "ready_queue.h"
#include "restored_state.h"
#include "sched.h"

#include <stdio.h>
#include <stdlib.h>

enum {
  ACTIVATIONS_PER_POLL = 16, /* activations between two polls of the pending parks */
  /* A busy worker runs the park barrier this often if parks are pending ... */
  PARK_BARRIER_INTERVAL_NS = 2000000,
  PENDING_PARKS_MAX = 1024 /* ... and whenever this number is pending */
};

/* ---- requests by other threads ------------------------------------------------------------ */

void lvd_worker_request_yield(lvd_worker *w) {
  /* Ordered after what was posted to it. */
  lvd_exchange_release_u32(&w->yield, 1);
}

/* Data that passes from worker to worker would otherwise wait for a tick of the clock at each
 * that computes. A shorter slice would lose its data from the caches more often; at this length
 * that is not measurable. */
enum { SLICE_NS = 500000 };

bool lvd_worker_slice_used(const lvd_worker *w, uint32_t place, uint32_t running) {
  if (place >= running || place / LVD_Q_CLASSES != (running - 1) / LVD_Q_CLASSES) return false;
  if (place % LVD_Q_CLASSES == LVD_Q_YIELDED && place + 1 != running) return false;
  uint64_t since = lvd_load_relaxed_u64(&w->started_at), now = lvd_os_ticks();
  return now > since && lvd_os_ticks_to_ns(now - since) > SLICE_NS;
}

/* A higher level, or the same level with a reserved rate or a light application where the other
 * has neither. */
static bool goes_before(uint32_t place, uint32_t running) {
  uint32_t level = (running - 1) / LVD_Q_CLASSES;
  return place >= running && (place / LVD_Q_CLASSES > level || place % LVD_Q_CLASSES > LVD_Q_READY);
}

/* Code that computes does not read `yield`: it is signalled at once for an entity that goes
 * before it, and for others only after its time slice; otherwise slices would be as short as
 * those of its equals. */
void lvd_worker_request_yield_for(lvd_worker *w, uint32_t place, uint32_t running) {
  lvd_worker_request_yield(w);
  if (lvd_load_relaxed_u64(&w->fiber_activation) &&
      (goes_before(place, running) || lvd_worker_slice_used(w, place, running)))
    lvd_send_preempt(w);
}

static bool wake(lvd_worker *w) {
  uint32_t sleep;
  if (!lvd_inbox_needs_wake(&w->inbox, &sleep)) return false;
  lvd_os_wake(&w->inbox.waiting);
  lvd_inbox_ack_wake(&w->inbox, sleep);
  return true;
}

void lvd_worker_interrupt(lvd_worker *w) {
  lvd_worker_request_yield(w);
  lvd_send_preempt(w);
  wake(w);
}

static void post_command(lvd_worker *w, lvd_command *c) {
  void *head = lvd_load_relaxed_ptr(&w->commands);
  do c->next = head;
  while (!lvd_cas_release_ptr(&w->commands, &head, c));
}

void lvd_worker_command(lvd_worker *w, lvd_command *c) {
  lvd_store_relaxed_u32(&c->done, 0);
  post_command(w, c);
  lvd_worker_interrupt(w);
}

void lvd_worker_post(lvd_worker *w, lvd_command *c, uint32_t level) {
  c->posted = true;
  post_command(w, c);
  lvd_worker *self = lvd_this_worker();
  if (wake(w) && self) lvd_count(&self->wakes_sent, 1);
  uint32_t running = lvd_load_relaxed_u32(&w->running_queue);
  uint32_t place = LVD_Q_CLASSES * level + LVD_Q_READY;
  if (running && place >= running) lvd_worker_request_yield_for(w, place, running);
}

static lvd_command *oldest_first(lvd_command *c) {
  lvd_command *first = NULL, *next;
  for (; c; c = next) {
    next = c->next;
    c->next = first;
    first = c;
  }
  return first;
}

static void run_command(lvd_worker *w, lvd_command *c) {
  bool posted = c->posted;
  c->run(w, c);
  if (posted) return;
  /* The command belongs to the sender: after this store it may be freed. Waking its address is
   * still allowed: a futex wake of a word without sleepers has no effect. */
  lvd_store_release_u32(&c->done, 1);
  lvd_os_wake(&c->done);
}

static void run_commands(lvd_worker *w) {
  const char *head = lvd_load_relaxed_ptr(&w->commands);
  if (!head) return;
  /* The cache lines of a call (unit.h). */
  for (int i = 0; i < 3; i++) lvd_os_prefetch_write(head + i * 64);
  lvd_command *c = oldest_first(lvd_exchange_acquire_ptr(&w->commands, NULL));
  for (lvd_command *next; c; c = next) {
    next = c->next;
    run_command(w, c);
  }
}

/* Commands that cannot be run in a signal handler stay; but those for which no thread waits, such
 * as calls, are passed to another worker. Those that stay may be reordered with later ones: order
 * only matters among those that are safe here. */
void lvd_worker_run_safe_commands(lvd_worker *w) {
  if (!lvd_load_relaxed_ptr(&w->commands)) return;
  lvd_command *c = oldest_first(lvd_exchange_acquire_ptr(&w->commands, NULL));
  for (lvd_command *next; c; c = next) {
    next = c->next;
    if (c->soon) {
      run_command(w, c);
      continue;
    }
    bool elsewhere = c->posted && !lvd_load_relaxed_ptr(&w->alone);
    lvd_worker *to = elsewhere ? lvd_find_backup_worker(w) : NULL;
    post_command(to ? to : w, c);
    if (!to) continue;
    lvd_worker_request_yield(to);
    wake(to);
  }
}

bool lvd_command_done(lvd_command *c, int64_t timeout_ns) {
  while (!lvd_load_acquire_u32(&c->done)) {
    lvd_os_wait(&c->done, 0, timeout_ns);
    if (timeout_ns >= 0) return lvd_load_acquire_u32(&c->done);
  }
  return true;
}

void lvd_worker_set_current_app(lvd_worker *w, lvd_app *app) {
  lvd_app *last = lvd_load_relaxed_ptr(&w->running);
  if (last == app) return;
  lvd_store_release_ptr(&w->running, app);
  lvd_store_release_u32(&w->run_seq, lvd_load_relaxed_u32(&w->run_seq) + 1);
  lvd_membarrier_light(w->rt->fenced);
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&w->rt->awaited))) lvd_os_wake(&w->run_seq);
}

/* `e` comes from another core: prefetches its cache lines together rather than one by one. Those
 * of a fiber include the top of its stack, which is below it (fiber.h). */
static inline void prefetch_entity(const lvd_entity *e) {
  const char *at = (const char *)e;
  for (int i = -2; i < 4; i++) lvd_os_prefetch_write(at + i * 64);
}

void lvd_inbox_drain(lvd_worker *w) {
  if (!lvd_inbox_pending(&w->inbox)) return;
  lvd_slot *slot = w->rt->slot;
  for (uint32_t level = LVD_INBOX_LEVELS; level-- > 0;) {
    uint32_t n = lvd_inbox_take(&w->inbox, slot, level), next;
    for (; n; n = next) {
      next = lvd_load_relaxed_u32(&slot[n - 1].next);
      lvd_entity *e = w->rt->entity[n - 1];
      prefetch_entity(e);
      uint32_t owner = lvd_load_relaxed_u32(&e->worker);
      if (owner != w->index) { /* it moved while the wake-up was in transit: forward it */
        uint32_t sleep;
        lvd_worker *to = &w->rt->worker[owner];
        if (lvd_inbox_post(&to->inbox, slot, n - 1, level, &sleep)) {
          lvd_os_wake(&to->inbox.waiting);
          lvd_inbox_ack_wake(&to->inbox, sleep);
        }
        continue;
      }
      if (LVD_UNLIKELY(lvd_load_relaxed_u32(&e->call_pending))) lvd_call_returned(e);
      lvd_app_worker_arrive(w, e->app);
      lvd_queue_put(w, e);
    }
  }
}

/* ---- one activation ----------------------------------------------------------------------- */

static void call_run(void *argument) {
  lvd_worker *w = argument;
  lvd_actor *a = &w->current->actor;
  w->abandonable = 1;
  lvd_fence_compiler();
  bool runs = LVD_LIKELY(w->current->initialised) || lvd_actor_init(w->current);
  w->verdict = runs ? a->cls->run(a) : LVD_RUN_DONE;
  lvd_fence_compiler();
  w->abandonable = 0;
}

/* Publishes everything that was put and got, also below a peer's threshold. */
void lvd_actor_publish(lvd_actor *a) {
  for (uint32_t i = 0; i < a->cls->outputs; i++) lvd_flush(&a->out[i]);
  for (uint32_t i = 0; i < a->cls->inputs; i++) lvd_release(&a->in[i]);
}

/* Disarms all ports: nothing is awaited any more. */
static void disarm(lvd_actor *a) {
  for (uint32_t i = 0; i < a->cls->inputs; i++)
    if (a->in[i].await) {
      lvd_consumer_disarm(&a->in[i]);
      a->in[i].await = 0;
    }
  for (uint32_t i = 0; i < a->cls->outputs; i++)
    if (a->out[i].await) {
      lvd_producer_disarm(&a->out[i]);
      a->out[i].await = 0;
    }
}

static void finish(lvd_worker *w, lvd_entity *e) {
  lvd_store_relaxed_u32(&e->state, LVD_FINISHED);
  disarm(&e->actor); /* its run function may have set awaits before it returned LVD_RUN_DONE */
  if (LVD_UNLIKELY(lvd_has_fd_watches(e))) lvd_hooks.polls.withdraw(e);
  for (uint32_t i = 0; i < e->actor.cls->outputs; i++) lvd_producer_close(&e->actor.out[i], LVD_OK);
  for (uint32_t i = 0; i < e->actor.cls->inputs; i++) lvd_consumer_close(&e->actor.in[i]);
  lvd_app_worker_leave(w, e->app);
}

/* `now` is in ticks; returns the end time in ticks. */
static uint64_t activate(lvd_worker *w, lvd_entity *e, uint64_t now) {
  lvd_actor *a = &e->actor;
  lvd_store_relaxed_u32(&e->state, LVD_RUNNING);
  void (*call)(void *) = call_run;
  if (LVD_UNLIKELY(e->stack != NULL)) {
    call = lvd_stack_enter; /* it resumes where it waited, with its marks unchanged */
    /* A source that is to end does so after the present firing: it may wait again before the
     * next. */
    bool ends = lvd_load_relaxed_u32(&e->app->paused) && a->cls->inputs == 0;
    if (LVD_UNLIKELY(ends)) lvd_exchange_relaxed_u32(&w->yield, 1);
  } else {
    disarm(a);
    if (LVD_UNLIKELY(lvd_has_fd_watches(e))) lvd_hooks.polls.withdraw(e);
    bool may_wait = a->cls->flags & LVD_CLASS_CAN_BLOCK || e->forks;
    if (LVD_UNLIKELY(may_wait) && lvd_stack_borrow(w, e)) call = lvd_stack_enter;
  }
  w->current = e;
  w->verdict = LVD_RUN_WAIT;
  uint32_t place = lvd_queue_class(e);
  w->ready[place].turn = e->slot;
  lvd_store_relaxed_u64(&w->started_at, now);
  lvd_store_relaxed_u32(&w->running_queue, place + 1);
  bool whole = lvd_os_try(w->escape, call, w);
  w->abandonable = 0;
  w->current = NULL;
  lvd_store_relaxed_u32(&w->running_queue, 0);

  uint64_t end = lvd_os_ticks(), took = lvd_activation_ticks(w, end);
  lvd_count(&e->activations, 1);
  lvd_count(&e->busy_ticks, took);
  lvd_count(&w->busy_ticks, took);
  lvd_count(&w->activations, 1);
  if (took > lvd_load_relaxed_u64(&e->longest_ticks))
    lvd_store_relaxed_u64(&e->longest_ticks, took);
  uint64_t decayed = e->recent_longest_ticks - e->recent_longest_ticks / 16;
  e->recent_longest_ticks = took > decayed ? took : decayed;
  lvd_ready_charge_app(w, e, end, took);

  if (LVD_UNLIKELY(!whole)) {
    /* Immediately, at the failure: threads that run its forks and wait must learn of it. */
    if (w->verdict != LVD_RUN_DONE) lvd_app_end(e->app, LVD_E_FAULT);
    lvd_hooks.forks.abandon(w, e->stack);
    if (e->stack) lvd_stack_return(w, e, false);
    if (w->verdict == LVD_RUN_DONE) { /* lvd_native_end */
      lvd_actor_publish(a);
      finish(w, e);
      return end;
    }
    /* fault.c has the report, and the application ends. */
    lvd_store_relaxed_u32(&e->state, LVD_FINISHED);
    lvd_app_worker_leave(w, e->app);
    return end;
  }
  if (LVD_UNLIKELY(e->stack != NULL)) {
    if (lvd_load_relaxed_u32(&e->call_pending)) { /* it stays RUNNING, but not on this worker */
      lvd_app_worker_leave(w, e->app);
      return end;
    }
    lvd_stack_return(w, e, true);
  }
  lvd_actor_publish(a);
  if (LVD_UNLIKELY(lvd_has_fd_watches(e))) lvd_hooks.polls.keep_last(e);
  uint32_t target = lvd_load_relaxed_u32(&e->target);
  if (w->verdict == LVD_RUN_DONE) {
    finish(w, e);
  } else if (w->verdict == LVD_RUN_YIELD || LVD_UNLIKELY(target != w->index) ||
             lvd_entity_park(w, e)) {
    lvd_store_relaxed_u32(&e->state, LVD_READY);
    if (target != w->index)
      lvd_entity_hand_over(w, e, target);
    else if (w->verdict == LVD_RUN_YIELD)
      lvd_queue_put_after(w, e);
    else
      lvd_queue_put(w, e);
  } else {
    lvd_app_worker_leave(w, e->app);
  }
  return end;
}

/* ---- the loop ----------------------------------------------------------------------------- */

/* Takes the entity that runs next from its queue; null: none is ready. *queue: the index of that
 * queue; *ready_classes: which classes of its level had entities. */
static lvd_entity *pick_next(lvd_worker *w, uint32_t *queue, uint32_t *ready_classes) {
  if (!w->ready_queues) return NULL;
  *queue = lvd_ready_pick_queue(w);
  *ready_classes = lvd_ready_of_level(w, *queue);
  return lvd_queue_take_at(w, *queue);
}

/* Sets an entity aside that may not run now. True: `e` may run. */
static bool may_run(lvd_worker *w, lvd_entity *e) {
  lvd_app *app = e->app;
  if (LVD_UNLIKELY(w->is_backup)) lvd_backup_worker_goes_home(w, e);
  bool ending = lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING;
  if (LVD_UNLIKELY(ending && !e->is_fiber)) { /* a fiber has to return by itself */
    lvd_store_relaxed_u32(&e->state, LVD_FINISHED);
    lvd_app_worker_leave(w, app);
    return false;
  }
  uint32_t target = lvd_load_relaxed_u32(&e->target);
  if (LVD_UNLIKELY(target != w->index) && !lvd_entity_is_pinned(e)) {
    lvd_entity_hand_over(w, e, target);
    return false;
  }
  uint32_t holds = lvd_load_acquire_u32(&app->paused);
  if (LVD_UNLIKELY(holds && !ending)) {
    if (holds & LVD_PAUSE_ALL) {
      e->next = w->held;
      w->held = e;
      return false;
    }
    /* A source that waits in the middle of a firing ends, or is held, after that firing. */
    if (!e->is_fiber && !e->stack && e->actor.cls->inputs == 0) {
      if (holds & LVD_PAUSE_SOURCES) {
        finish(w, e);
      } else {
        e->next = w->held;
        w->held = e;
      }
      return false;
    }
  }
  return true;
}

/* Is `e` to be migrated, ended or held? */
static bool needs_handling(const lvd_worker *w, const lvd_entity *e) {
  if (lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING) return !e->is_fiber;
  return lvd_load_relaxed_u32(&e->target) != w->index || lvd_load_relaxed_u32(&e->app->paused);
}

/* Entities in other queues than the next one may not run while that has work. Those that are to
 * be migrated, ended or held are handled here nevertheless. */
static void handle_waiting(lvd_worker *w) {
  uint32_t next_place = lvd_ready_pick_queue(w), ready = w->ready_queues;
  for (uint32_t place = 0; place < LVD_Q_COUNT; place++) {
    if (place == next_place || !(ready & (1u << place))) continue;
    lvd_entity *e = w->ready[place].first, *next;
    w->ready_queues &= ~(1u << place);
    for (; e; e = next) {
      next = e->next;
      if (needs_handling(w, e)) {
        lvd_worker_set_current_app(w, e->app);
        if (!may_run(w, e)) continue;
      }
      lvd_queue_put_at(w, e, place);
    }
  }
  lvd_worker_set_current_app(w, NULL);
}

/* A priority worker runs for short times whatever process holds the core; a backup worker runs
 * next to the worker that holds the lease. */
static int32_t leased_core(const lvd_worker *w) { return w->index < w->rt->workers ? w->cpu : -1; }

static void idle(lvd_worker *w) {
  lvd_worker_set_current_app(w, NULL);
  bool lease_wanted = lvd_lease_is_contended(&w->leased);
  uint64_t spin = lease_wanted ? 0 : lvd_spin_us(w->rt) * UINT64_C(1000);
  uint64_t start = lvd_os_ticks(), now = start;
  for (uint32_t looks = 0; spin; looks++) {
    for (uint32_t i = 0; i < lvd_spin_pauses(looks); i++) lvd_os_relax();
    /* Its poster has the line, and this worker will write it. */
    lvd_os_prefetch_write(&w->commands);
    if (lvd_inbox_pending(&w->inbox) || lvd_load_relaxed_ptr(&w->commands)) return;
    if (lvd_poll_pending_parks(w) || lvd_hooks.forks.poll(w)) return;
    now = lvd_os_ticks();
    if (lvd_os_ticks_to_ns(now - start) >= spin) break;
  }
  lvd_park_barrier(w);
  w->retired = w->park_barrier_at - now;
  int64_t most = -1;
  if (w->ready_queues || lvd_hooks.forks.before_sleep(w, &most)) return;
  uint32_t sleep = lvd_inbox_prepare_sleep(&w->inbox);
  if (sleep) {
    if (!lvd_load_relaxed_ptr(&w->commands) && lvd_hooks.forks.may_sleep(w)) {
      uint64_t timer = lvd_actor_timers_next(w);
      int64_t until = timer ? (int64_t)lvd_os_ticks_to_ns(timer) + 1 : -1;
      if (until < 0 || (most >= 0 && most < until)) until = most;
      lvd_lease_leave(&w->leased);
      lvd_watchdog_asleep(w);
      lvd_count(&w->sleeps, 1);
      lvd_worker_sleep_begin(w);
      lvd_os_wait(&w->inbox.waiting, sleep, until);
      lvd_worker_sleep_end(w);
      lvd_watchdog_awake(w);
    }
    lvd_inbox_cancel_sleep(&w->inbox);
    lvd_lease_enter(&w->leased, leased_core(w));
  }
  lvd_hooks.forks.after_sleep(w);
}

/* Code on this thread has ended it, and with it all that runs on this core. */
static void thread_exited(void *worker) {
  (void)worker;
  lvd_os_fatal_message(
      "levada: a thread of the runtime was ended by the code that runs on it (pthread_exit, or "
      "pthread_cancel); the process ends\n");
  abort();
}

static void set_scheduling_class(const lvd_worker *w) {
  bool urgent = lvd_is_priority_worker(w->rt, w->index);
  if (w->rt->options.realtime)
    lvd_take_priority(w->rt, urgent ? LVD_PRIO_URGENT : LVD_PRIO_APP);
  else if (urgent)
    lvd_os_thread_raise_priority();
}

void lvd_worker_main(void *argument) {
  lvd_worker *w = argument;
  lvd_os_set_self(w);
  lvd_os_at_thread_exit(LVD_EXIT_HOOK_WORKER, thread_exited, w);
  w->low = lvd_os_stack_low(NULL);
  lvd_os_context_of_thread(&w->home);
  w->switches_left = w->until_sample = w->switches_per_check = 1;
  w->park_barrier_ticks = lvd_os_ns_to_ticks(PARK_BARRIER_INTERVAL_NS);
  lvd_ready_init(w);
  w->random = w->index + 1;
  set_scheduling_class(w);
  bool clock = true; /* the clock also makes long activations yield */
  if (lvd_os_traps_begin(lvd_trap, clock) != LVD_OK) lvd_os_traps_begin(lvd_trap, false);
  w->leased.first = w->rt->options.realtime != 0;
  lvd_lease_enter(&w->leased, leased_core(w));
  lvd_watchdog_begin(w);
  lvd_steal_time_init(w);
  uint64_t now = lvd_os_ticks();
  w->park_barrier_at = now;
  for (;;) {
    if (lvd_load_relaxed_u32(&w->yield)) {
      lvd_exchange_acquire_u32(&w->yield, 0);
      lvd_worker_set_current_app(w, NULL); /* a thread may be waiting for that */
      if (w->ready_queues & (w->ready_queues - 1)) handle_waiting(w);
    }
    run_commands(w);
    if (w->ending) break;
    lvd_actor_timers_expire(w, now);
    lvd_inbox_drain(w);
    uint32_t place = 0, ready_classes = 0;
    lvd_entity *e = pick_next(w, &place, &ready_classes);
    if (!e) {
      lvd_ready_idle(w);
      uint64_t awake = now - lvd_worker_slept_ticks(w);
      idle(w);
      now = lvd_os_ticks();
      lvd_steal_time_after_idle(w, awake, now);
      lvd_store_relaxed_u64(&w->started_at, now); /* nothing has run */
      continue;
    }
    lvd_worker_set_current_app(w, e->app);
    if (!may_run(w, e)) continue;
    lvd_actor_timers_request_yield(w, e, now);
    uint64_t end = e->is_fiber ? lvd_fibers_run(w, e, now) : activate(w, e, now);
    lvd_ready_account(w, place, ready_classes, end - lvd_load_relaxed_u64(&w->started_at));
    now = end;
    if (w->pending_park_count >= PENDING_PARKS_MAX) lvd_park_barrier(w);
    if (++w->since_poll >= ACTIVATIONS_PER_POLL) lvd_poll_pending_parks(w);
    if (lvd_park_barrier_is_due(w, now)) lvd_park_barrier(w);
  }
  lvd_watchdog_asleep(w);
  lvd_lease_end(&w->leased);
  lvd_os_at_thread_exit(LVD_EXIT_HOOK_WORKER, NULL, NULL);
  lvd_hooks.forks.worker_ends();
  lvd_os_traps_end();
  lvd_os_set_self(NULL);
}

/* ---- its thread ---------------------------------------------------------------------------- */

/* Initialises worker `i` before its thread is started. */
lvd_status lvd_worker_prepare(lvd_runtime *rt, uint32_t i, int32_t cpu) {
  lvd_worker *w = &rt->worker[i];
  lvd_inbox_init(&w->inbox);
  w->rt = rt;
  w->index = i;
  w->cpu = cpu;
  w->is_backup = i >= 2 * rt->workers;
  w->round_robin = rt->options.round_robin;
  lvd_store_relaxed_u64(&w->next_alarm, UINT64_MAX);
  lvd_store_relaxed_u32(&w->available, 1);
  w->pending_parks = lvd_os_alloc(lvd_entities_size(rt));
  w->escape = calloc(1, lvd_os_escape_size());
  return w->pending_parks && w->escape ? LVD_OK : LVD_E_MEMORY;
}

lvd_status lvd_worker_start(lvd_worker *w, const char *name) {
  lvd_status status = lvd_os_thread_start(&w->thread, w->cpu, name, lvd_worker_main, w);
  if (status == LVD_OK) lvd_store_release_u32(&w->runs, 1);
  return status;
}

void lvd_worker_free(lvd_worker *w) {
  if (!w->rt) return;
  lvd_os_free(w->pending_parks, lvd_entities_size(w->rt));
  free(w->escape);
}
