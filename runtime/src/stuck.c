/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A worker is stuck when what it runs goes on for long and does not come back: an actor whose action
 * does not end, or takes its time, or a fiber that does not wait. What waits behind it is not held up for
 * longer than that: the worker's clock interrupts the action, gives all that is ready there to other workers,
 * and lets the action go on; so at each tick of the clock from then on, since more may have become ready. For
 * one that sleeps in the system, whose clock stands still, the watchdog makes a tick (watchdog.c).
 *
 * This is the worker itself, in a signal's handler. It is done only where what runs may be abandoned,
 * hence is not inside of the runtime (inside.h): then queues are whole, and none of the runtime's locks
 * is this thread's. But the C library may be interrupted: nothing here allocates memory or takes a lock
 * of the library's. The lock of the runtime is tried, not waited for: there is another tick. While it is
 * ours no core is taken, and no keeper begins with an application that ends.
 *
 * A fiber of a C program that was loaded beside others takes turns with what is ready: it is suspended by
 * force, as if it had given way. It has to be in code of its own then, and so in no library's, where it might
 * have locks that others need; one that is in a library holds what is behind it up no longer than an actor
 * does. From then on until it waits it stays on its thread, whose variables it may have at hand. In the fast
 * half of a fork or a join that is good, too: its deque stays as it is, what is private there nobody else
 * touches, and no more is made public meanwhile (lvd_forks_set_aside). Of an application that ends it is left
 * where it is, as after a fault.
 *
 * No orders of its own: what is handed over is handed over as always (entity.c). `stuck` is advice. */
#include "fork.h"
#include "inside.h"

/* How long an action may hold up what is behind it, and who would do the same; how long an application that is to end
 * may have forks open. */
enum { STUCK_MS = 100, LASTS_MS = 1000, ENDS_NS = 1000000000 };

/* The ticks of one activation that have gone by, in ms. */
static uint64_t clocked_ms(const lvd_worker *w) { return (uint64_t)w->clock_ticks * LVD_TICK_MS; }

/* A signal's frame and what switches away: what a processor has in registers can be many kilobytes. */
enum { FRAME = 16384 };

/* The next one that may have something and is not stuck; null: none. */
static lvd_worker *another(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; i < rt->workers; i++) {
    uint32_t next = lvd_add_relaxed_u32(&rt->next_refuge, 1) % rt->workers;
    lvd_worker *to = &rt->worker[next];
    if (to != w && lvd_load_relaxed_u32(&to->given) && !lvd_worker_is_stuck(to)) return to;
  }
  return NULL;
}

/* What has open forks stays, and who has the core for itself, which keeps to it; what ends is not given to
 * somebody of whom the keeper does not know. */
static bool must_stay(const lvd_worker *w, const lvd_entity *e) {
  bool ends = lvd_load_relaxed_u32(&e->app->phase) != LVD_PHASE_RUNNING;
  bool alone = lvd_load_relaxed_ptr(&w->alone) == e->app;
  return lvd_entity_stays(e) || alone || (ends && !e->is_fiber);
}

/* Who fires for as long itself would only hold up others elsewhere, and be moved to and fro: it waits, unless what
 * it waits for seems not to end. */
static bool can_wait(const lvd_entity *e, uint64_t waited_ms) {
  uint64_t longest_ms = lvd_port_ticks_to_ns(lvd_load_relaxed_u64(&e->longest_ticks)) / 1000000;
  return longest_ms >= STUCK_MS && waited_ms < LASTS_MS;
}

/* What stays is ready here still. */
static void give_away(lvd_worker *w, uint64_t waited_ms) {
  lvd_entity *stays = NULL, *e;
  while ((e = lvd_queue_take(w))) {
    bool here = must_stay(w, e) || can_wait(e, waited_ms);
    lvd_worker *to = here ? NULL : another(w);
    if (to) {
      lvd_store_relaxed_u32(&e->target, to->index);
      lvd_entity_hand_over(w, e, to->index);
    } else {
      e->next = stays;
      stays = e;
    }
  }
  for (; stays; stays = e) {
    e = stays->next;
    lvd_queue_put(w, stays);
  }
}

/* Gives away what is behind the activation that runs. False: that cannot be now. */
static bool relieve(lvd_worker *w, uint64_t waited_ms) {
  lvd_runtime *rt = w->rt;
  if (!w->may_abandon || w->index >= rt->workers) return false;
  w->may_abandon = 0;
  lvd_store_relaxed_u64(&w->stuck, lvd_load_relaxed_u64(&w->activations) + 1);
  lvd_worker_obey(w); /* others wait for an application to end */
  lvd_alarms_expire(w, lvd_port_ticks());
  lvd_inbox_drain(w);
  lvd_settle(w);
  bool done = !w->ready_places;
  if (!done && lvd_port_try_lock(&rt->lock)) {
    give_away(w, waited_ms);
    lvd_port_unlock(&rt->lock);
    lvd_settle(w); /* nothing of them is here any more */
    done = true;
  }
  w->may_abandon = 1;
  return done;
}

void lvd_stuck_tick(lvd_worker *w) {
  uint64_t waited_ms = clocked_ms(w);
  if (waited_ms >= STUCK_MS) relieve(w, waited_ms);
}

/* Is it the program's own code that goes on, on the fiber's own stack? */
static bool is_in_its_own(const lvd_worker *w, const void *sp, const void *at) {
  const lvd_entity *e = w->current;
  const lvd_fiber *f = (const lvd_fiber *)e;
  const unsigned char *low = lvd_stack_low(w), *top = sp;
  return w->may_abandon && (uintptr_t)at >= e->app->code_from && (uintptr_t)at < e->app->code_to &&
         top >= low && top < (const unsigned char *)f;
}

/* Waits somebody, or something is to be done with it? */
static bool is_wanted(const lvd_worker *w) {
  return w->ready_places || lvd_load_relaxed_ptr(&w->commands) || lvd_inbox_pending(&w->inbox) ||
         lvd_load_relaxed_u32(&w->current->app->paused);
}

/* Does somebody wait who has not just had a turn, or may do? */
static bool is_behind(const lvd_worker *w) {
  return w->ready_places >> lvd_place(w->current) || lvd_inbox_pending(&w->inbox);
}

/* Has it had long enough for its end, by the clock on the wall? */
static bool is_late(lvd_app_share *share) {
  uint64_t now = lvd_port_ticks();
  if (!share->ends_since) share->ends_since = now;
  return now - share->ends_since > lvd_port_ns_to_ticks(ENDS_NS);
}

/* Amid forks no fiber computes for long by itself: when the application has had its time to end here, the next fork
 * of each ends it (fork.c). Beside others it may have little of the core, so that it is not waited for by its
 * own time alone. */
static void tell_end(const lvd_worker *w, lvd_app *app) {
  lvd_app_share *share = &app->share[w->index];
  lvd_store_relaxed_u64(&share->end_ticks, is_late(share)
                                               ? LVD_END_TICKS
                                               : lvd_load_relaxed_u64(&share->end_ticks) + 1);
  if (lvd_load_relaxed_u64(&share->end_ticks) >= LVD_END_TICKS)
    lvd_store_relaxed_ptr(&lvd_forks.limit, NULL);
}

/* One that yields again and again may have so little that no tick ever meets it. */
void lvd_leave_overdue(lvd_worker *w) {
  const lvd_app *app = w->current->app;
  lvd_app_share *share = &app->share[w->index];
  if (!app->code_to || !w->may_abandon || lvd_fiber_is_bare(w->current)) return;
  if (lvd_load_relaxed_u64(&share->end_ticks) < LVD_END_TICKS && !is_late(share)) return;
  w->may_abandon = 0;
  lvd_port_jump(w->escape);
}

/* A C program that is to end, has had its time for that, and sleeps in the system. */
static bool sleeps_past_its_end(const lvd_worker *w) {
  const lvd_entity *e = w->current;
  if (!e || !e->is_fiber || !w->may_abandon || lvd_fiber_is_bare(e)) return false;
  lvd_app *app = e->app;
  return app->code_to && lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING &&
         is_late(&app->share[w->index]);
}

/* Whatever has called the system for it comes to its end first, a library with what it has locked. */
static bool leave_when_back(void *self, const void *sp, const void *at) {
  lvd_worker *w = self;
  if (!sleeps_past_its_end(w)) return false;
  if (!is_in_its_own(w, sp, at)) return true;
  w->may_abandon = 0;
  lvd_port_jump(w->escape);
}

void lvd_stuck_asleep(lvd_worker *w) {
  lvd_entity *e = w->current;
  if (lvd_load_relaxed_u64(&w->sleeper) != lvd_load_relaxed_u64(&w->activations) + 1 || !e) return;
  /* From now on its sleep is told as time that it takes. */
  lvd_store_relaxed_u64(&e->clocked, lvd_load_relaxed_u64(&e->activations) + 1);
  if (relieve(w, LASTS_MS)) lvd_store_relaxed_u64(&w->sleeper, 0);
  if (sleeps_past_its_end(w)) lvd_port_trace(leave_when_back);
}

void lvd_stuck_fiber(lvd_worker *w, const void *sp, const void *at) {
  const lvd_fiber *f = (const lvd_fiber *)w->current;
  lvd_app *app = w->current->app;
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING && app->code_to) tell_end(w, app);
  if (f->bare || !w->current->app->code_to || (!w->clock_ticks && !is_behind(w))) return;
  if (!is_in_its_own(w, sp, at)) {
    lvd_stuck_tick(w);
    return;
  }
  if (lvd_load_relaxed_u32(&w->current->app->phase) != LVD_PHASE_RUNNING) {
    if (clocked_ms(w) < LVD_STOP_MS) return;
    w->may_abandon = 0;
    lvd_port_jump(w->escape);
  }
  bool room = (const unsigned char *)sp >= lvd_stack_low(w) + FRAME;
  if (!room || w->index >= w->rt->workers)
    lvd_stuck_tick(w);
  else if (is_wanted(w))
    lvd_port_interject(lvd_fiber_interrupted);
}
