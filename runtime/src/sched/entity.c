/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entity: how what a worker runs becomes ready, runs, and parks.
 *
 *            wake                take                run returns LVD_RUN_WAIT
 *   IDLE ----------> READY ----------> RUNNING --------------------------> IDLE
 *                      ^                  |  wake               |
 *                      |                  v                     | (armed first)
 *                      +------------- NOTIFIED <----------------+
 *
 * Any thread may wake. The thread that changes IDLE to READY, and no other, hands the entity to
 * its worker: into the ready queue on that worker itself, else through the worker's inbox. All
 * other transitions are the owner's.
 *
 * Guarantees
 *   E1  A wake-up that finds the entity RUNNING makes it run again; one that finds it READY changes
 *       nothing, since it will run; one that finds it IDLE makes it READY. With C3 of the channel
 *       (the entity arms, becomes IDLE, and its worker runs the park barrier) no wake-up is lost.
 *   E2  The new owner of a moved entity sees all that the old one did to it (inbox, I1).
 *
 * Pairs of orders
 *   park: cas_release RUNNING->IDLE -> wake: cas_acq_rel IDLE->READY    the waker reads the owner
 *   post -> take (inbox.h)                                              everything else
 * After the barrier of park_barrier.c a waker sees IDLE as well as the armed marks. */
#include "no_abandon.h"
#include "ready_queue.h"
#include "sched.h"

/* ---- ready queues: the owner's ------------------------------------------------------------ */

/* Round robin: a queue is sorted by the actors' slots (their order of loading), cyclically from
 * the slot after the actor that ran last to that actor itself. The order stays valid as actors
 * run. Fibers, which come and go, have no place in it: they queue behind all that are there, and
 * wait for at most one round, since an actor runs once per round. */
void lvd_queue_insert(lvd_queue *q, lvd_entity *e) {
  uint32_t next = q->turn + 1, turns = e->slot - next; /* slots until its own */
  lvd_entity *last = q->last, **at = &q->first;
  if (e->is_fiber || (!last->is_fiber && last->slot - next < turns)) at = &last->next;
  while (*at && ((*at)->is_fiber || (*at)->slot - next < turns)) at = &(*at)->next;
  e->next = *at;
  *at = e;
  if (!e->next) q->last = e;
}

void lvd_queue_remove_app(lvd_worker *w, lvd_app *app) {
  for (uint32_t place = 0; place < LVD_Q_COUNT; place++) {
    if (!(w->ready_queues & (1u << place))) continue;
    lvd_queue *q = &w->ready[place];
    lvd_entity *e = q->first, *next;
    q->first = q->last = NULL;
    w->ready_queues &= ~(1u << place);
    for (; e; e = next) {
      next = e->next;
      if (e->app != app) lvd_queue_put_at(w, e, place);
    }
  }
  for (lvd_entity **at = &w->held; *at;) {
    if ((*at)->app == app)
      *at = (*at)->next;
    else
      at = &(*at)->next;
  }
}

/* ---- waking ------------------------------------------------------------------------------- */

/* Has the running entity used its time slice, as seen by an entity of queue `place`, and was not
 * yet asked to yield? Computing code does not read `yield`. */
static bool has_had_its_turn(const lvd_worker *w, uint32_t place, uint32_t running) {
  bool knows = lvd_load_relaxed_u32(&w->yield) && !lvd_load_relaxed_u64(&w->fiber_activation);
  return !knows && lvd_worker_slice_used(w, place, running);
}

/* The caller has made `e` READY: passes it to its worker. */
static void hand_to_worker(lvd_entity *e) {
  lvd_worker *self = lvd_this_worker();
  lvd_app *app = e->app;
  lvd_worker *owner = &app->rt->worker[lvd_load_relaxed_u32(&e->worker)];
  if (self == owner) {
    lvd_app_worker_enter(self, app);
    lvd_queue_put(self, e);
    return;
  }
  lvd_add_relaxed_u32(&app->live, 1); /* in transit, until it is drained from the inbox */
  /* From the post on it may run, and end. */
  uint32_t sleep, level = e->level, place = lvd_queue_class(e);
  if (lvd_inbox_post(&owner->inbox, app->rt->slot, e->slot, level, &sleep)) {
    lvd_os_wake(&owner->inbox.waiting);
    lvd_inbox_ack_wake(&owner->inbox, sleep);
    if (self) lvd_count(&self->wakes_sent, 1);
  }
  uint32_t running = lvd_load_relaxed_u32(&owner->running_queue);
  if (running && (place >= running || has_had_its_turn(owner, place, running)))
    lvd_worker_request_yield_for(owner, place, running);
}

/* Makes it READY or NOTIFIED, unless it already is. True: READY, and the caller has to hand it
 * over. */
static bool make_ready(lvd_entity *e) {
  uint32_t state = lvd_load_relaxed_u32(&e->state);
  for (;;) {
    if (state == LVD_IDLE) {
      if (lvd_cas_acq_rel_u32(&e->state, &state, LVD_READY)) return true;
    } else if (state == LVD_RUNNING) {
      if (lvd_cas_relaxed_u32(&e->state, &state, LVD_NOTIFIED)) return false;
    } else {
      return false; /* READY, NOTIFIED: it will run; FINISHED: never again */
    }
  }
}

bool lvd_entity_wake_locked(lvd_entity *e) {
  bool woken = make_ready(e);
  if (woken) hand_to_worker(e);
  return woken;
}

/* The application of `e`, for a waker. A late waker may read it from a fiber that is being reused
 * for another application: it wakes that fiber spuriously, which checks its wait and parks again,
 * and either gate may be locked. */
LVD_RACY_READ static lvd_app *app_of(const lvd_entity *e) { return e->app; }

/* The caller is no activation of the same application, which would keep it live: the gate keeps
 * it from being checked for quiescence or ended meanwhile. Before it is started there is nothing
 * to wake: its start wakes all entities. */
static bool wake_from_outside(lvd_entity *e, lvd_app *app) {
  lvd_os_lock(&app->gate);
  /* Of an application that ends only fibers are resumed, to return. */
  bool runs = lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING || e->is_fiber;
  bool woken = runs && lvd_entity_wake_locked(e);
  lvd_os_unlock(&app->gate);
  /* No entity was woken, but what the caller did before may have been the last obstacle to
   * quiescence. */
  if (!woken && lvd_load_relaxed_u32(&app->live) == 0) lvd_hooks.app.check_quiescent(app);
  return woken;
}

bool lvd_entity_wake(lvd_waiter *waiter) {
  LVD_NO_ABANDON; /* or a queue would be left half linked */
  lvd_entity *e = (lvd_entity *)waiter;
  lvd_app *app = app_of(e);
  lvd_worker *self = lvd_this_worker();
  bool outside = !self || self->rt != app->rt || (self->current && self->current->app != app);
  return outside ? wake_from_outside(e, app) : lvd_entity_wake_locked(e);
}

/* ---- parking ------------------------------------------------------------------------------ */

/* Is any of what `e` waits for available? Called by its owner. */
bool lvd_entity_can_go_on(lvd_entity *e) {
  if (e->is_fiber) return lvd_fiber_can_resume(e);
  const lvd_actor_class *cls = e->actor.cls;
  for (uint32_t i = 0; i < cls->inputs; i++) {
    lvd_consumer *c = &e->actor.in[i];
    if (c->await && lvd_consumer_settled(c, c->await)) return true;
  }
  for (uint32_t i = 0; i < cls->outputs; i++) {
    lvd_producer *p = &e->actor.out[i];
    if (p->await && lvd_producer_settled(p, p->await)) return true;
  }
  return false;
}

/* Does this waiter belong to an entity of worker `w`? Then no barrier is needed between the two. */
static bool is_near(const lvd_worker *w, const lvd_waiter *waiter) {
  if (!waiter) return true;
  if (waiter->wake != lvd_entity_wake) return false;
  return lvd_load_relaxed_u32(&((const lvd_entity *)waiter)->worker) == w->index;
}

/* Arms what `e` awaits, and makes it IDLE. True: it can continue after all, and is READY. */
bool lvd_entity_park(lvd_worker *w, lvd_entity *e) {
  const lvd_actor_class *cls = e->actor.cls;
  bool go_on = false, far = false;
  for (uint32_t i = 0; i < cls->inputs; i++) {
    lvd_consumer *c = &e->actor.in[i];
    if (!c->await) continue;
    go_on |= lvd_consumer_arm(c, c->await);
    far |= !is_near(w, c->peer);
  }
  for (uint32_t i = 0; i < cls->outputs; i++) {
    lvd_producer *p = &e->actor.out[i];
    if (!p->await) continue;
    go_on |= lvd_producer_arm(p, p->await);
    for (uint32_t k = 0; k < p->consumers; k++) far |= !is_near(w, p->peers[k]);
  }
  uint32_t running = LVD_RUNNING;
  if (go_on || !lvd_cas_release_u32(&e->state, &running, LVD_IDLE)) {
    lvd_store_relaxed_u32(&e->state, LVD_READY);
    return true;
  }
  if (far) lvd_pending_park_add(w, e);
  return false;
}

/* ---- moving ------------------------------------------------------------------------------- */

/* Gives `e`, which is READY and in no queue, to another worker. Peers here that treat it as being
 * on this worker stay correct: the hand-over orders earlier stores of this worker before all that
 * the new owner does. */
void lvd_entity_hand_over(lvd_worker *w, lvd_entity *e, uint32_t target) {
  lvd_assert(target < lvd_worker_total(e->app->rt) && lvd_load_relaxed_u32(&e->worker) == w->index);
  lvd_pending_park_remove(w, e);
  if (e->is_fiber) lvd_fiber_remove_timer(w, e);
  lvd_worker *to = &e->app->rt->worker[target];
  uint32_t sleep;
  lvd_add_relaxed_u32(&e->app->live, 1);
  lvd_app_worker_leave(w, e->app);
  lvd_store_relaxed_u32(&e->worker, target);
  e->actor.yield = &to->yield;
  if (lvd_inbox_post(&to->inbox, e->app->rt->slot, e->slot, e->level, &sleep)) {
    lvd_os_wake(&to->inbox.waiting);
    lvd_inbox_ack_wake(&to->inbox, sleep);
  }
}
