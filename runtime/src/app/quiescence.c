/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Quiescence: when nothing of an application can fire any more, decides whether that is its end, a
 * deadlock, or a wait for the program or another process.
 *
 * The thread that takes the last from its count `live` (app_liveness.c) decides, with the gate
 * closed: then nothing of the application is ready or in transit, and its entities can be read.
 * Whether fibers are deadlocked may depend on what program threads and other processes are about to
 * do; then the application is a suspect, and is checked again once it has been quiescent for a
 * while (app_reaper.c).
 *
 * Pairs of orders (all else is ordered by locks)
 *   rest:  add_release live (app_liveness.c) -> quiet: load_acquire live
 *                                                     what the actors left behind
 *   later: exchange_release check_deferred -> suspects: exchange_acquire check_deferred
 *                                                     that nothing is alive */
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"
#include "app.h"

static bool is_outside(const lvd_app *app, const lvd_producer *p, uint32_t i) {
  return p->peers[i]->wake != lvd_entity_wake &&
         lvd_load_relaxed_u32(&p->channel->consumer[i].state) == LVD_OPEN && app->external_ends;
}

/* Consumer `k` of the channel waits for elements of it. */
static bool awaits(const lvd_app *app, const lvd_channel_desc *d, uint32_t k) {
  lvd_port_ref to = d->to[k];
  if (to.actor == LVD_EXTERNAL) return false;
  const lvd_entity *e = &app->entity[to.actor];
  return lvd_load_relaxed_u32(&e->state) != LVD_FINISHED && e->actor.in[to.port].await;
}

static bool is_in_knot(const lvd_app *app, lvd_port_ref ref) {
  return ref.actor != LVD_EXTERNAL && app->entity[ref.actor].in_knot;
}

/* Removes from the knot each actor that waits for elements of a producer outside of it, until
 * nothing changes. */
static void prune(lvd_app *app) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < app->net->channels; i++) {
      const lvd_channel_desc *d = &app->net->channel[i];
      if (is_in_knot(app, d->from)) continue;
      for (uint32_t k = 0; k < d->consumers; k++) {
        if (!awaits(app, d, k) || !is_in_knot(app, d->to[k])) continue;
        app->entity[d->to[k].actor].in_knot = false;
        again = true;
      }
    }
  }
}

/* No actor waits for room; some may still be deadlocked. An actor that waits for no elements has
 * come to an end of its own, such as a source with exhausted input. One that waits for elements
 * of such an actor has come to that end, too, since more input would let it go on. The rest is a
 * knot (Holt 1972): these wait for each other alone, and no input would change that. It is a
 * deadlock if elements are buffered before one of them, or if some cycle among them never carried
 * any and so lacks its first. Otherwise it is a ring of actors that have consumed all there was. */
static bool has_deadlock(lvd_app *app) {
  const lvd_network *net = app->net;
  for (uint32_t i = 0; i < net->actors; i++) app->entity[i].in_knot = false;
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (awaits(app, &net->channel[i], k)) app->entity[net->channel[i].to[k].actor].in_knot = true;
  prune(app);
  for (uint32_t i = 0; i < net->channels; i++) {
    const lvd_channel *ch = app->channel[i];
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (is_in_knot(app, net->channel[i].to[k]) &&
          lvd_load_relaxed_u32(&ch->tail) != lvd_load_relaxed_u32(&ch->consumer[k].head))
        return true;
  }
  /* An actor with a channel that has carried elements is no cause, nor is one that waits for it. */
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (awaits(app, &net->channel[i], k) && lvd_load_relaxed_u32(&app->channel[i]->tail))
        app->entity[net->channel[i].to[k].actor].in_knot = false;
  prune(app);
  for (uint32_t i = 0; i < net->actors; i++)
    if (app->entity[i].in_knot) return true;
  return false;
}

/* All fibers wait, none with a timeout, and nothing outside can resume one. */
static bool fibers_rest(lvd_app *app) {
  bool open = lvd_load_acquire_u32(&app->open);
  if (!lvd_load_acquire_u32(&app->fibers) && !(open && lvd_thread_waiters_any())) return !open;
  if (open || lvd_hooks.deadlock.awaits_outside(app)) {
    /* Something outside may still act, and often does. Checked later, if it stays quiescent. */
    if (!lvd_exchange_relaxed_u32(&app->suspect, 1)) lvd_reaper_wake(app->rt);
    return false;
  }
  /* Once told, the fibers return and leave nothing to report: so the report is saved now. */
  lvd_hooks.deadlock.save_report(app);
  return true;
}

/* The program has closed its external end `o`, and may not have woken the other side yet. Returns
 * true if an entity there has to run first. */
static bool notify_end(lvd_app *app, const lvd_external_end *o) {
  const lvd_channel_desc *d = &app->net->channel[o->channel];
  bool woken = false;
  if (!o->producer)
    return d->from.actor != LVD_EXTERNAL && lvd_entity_wake_locked(&app->entity[d->from.actor]);
  for (uint32_t k = 0; k < d->consumers; k++)
    if (d->to[k].actor != LVD_EXTERNAL)
      woken |= lvd_entity_wake_locked(&app->entity[d->to[k].actor]);
  return woken;
}

/* Returns true if the program has closed an external end, and an entity there has to run first.
 * Sets *open if more may come from another end. */
static bool notify_ends(lvd_app *app, bool *open) {
  bool woken = false;
  for (uint32_t i = 0; i < app->external_ends; i++) {
    lvd_external_end *o = &app->external_end[i];
    const lvd_channel *ch = app->channel[o->channel];
    const lvd_a32 *state = o->producer ? &ch->state : &ch->consumer[o->index].state;
    if (lvd_load_relaxed_u32(state) == LVD_OPEN) {
      *open |= o->producer;
    } else if (!o->end_notified) {
      o->end_notified = true;
      woken |= notify_end(app, o);
    }
  }
  return woken;
}

/* Nothing is ready or in transit: no other thread touches the entities. */
static void decide(lvd_app *app) {
  bool open = false;
  bool fibers = lvd_load_acquire_u32(&app->fibers);
  if (notify_ends(app, &open) || lvd_channels_grow(app)) return;
  if (!fibers_rest(app) || open) return;
  if (lvd_load_relaxed_u32(&app->ends_at_rest)) {
    lvd_app_end(app, LVD_OK);
    return;
  }
  lvd_status outcome = fibers ? LVD_E_DEADLOCK : LVD_OK;
  for (uint32_t i = 0; i < app->net->actors; i++) {
    const lvd_actor *a = &app->entity[i].actor;
    for (uint32_t k = 0; k < a->cls->outputs; k++) {
      if (!a->out[k].await) continue;
      for (uint32_t j = 0; j < a->out[k].consumers; j++)
        if (is_outside(app, &a->out[k], j)) return; /* the program may make room */
      outcome = LVD_E_DEADLOCK;
    }
  }
  if (outcome == LVD_OK && has_deadlock(app)) outcome = LVD_E_DEADLOCK;
  lvd_app_end(app, outcome);
}

void lvd_app_check_quiescent(lvd_app *app) {
  const lvd_worker *w = lvd_this_worker();
  if (w &&
      /* In a signal handler (overrun.c), which must not take the gate or allocate. */
      w->in_offload) {
    lvd_exchange_release_u32(&app->check_deferred, 1);
    lvd_reaper_wake(app->rt);
    return;
  }
  /* With the gate closed no other thread can wake an entity. If one has done so before, the next
   * check follows when that entity parks. */
  lvd_os_lock(&app->gate);
  if (lvd_load_acquire_u32(&app->live) == 0 &&
      lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING)
    decide(app);
  lvd_os_unlock(&app->gate);
}

/* The application has stayed quiescent: runs deadlock detection. */
static void check_suspect(lvd_app *app) {
  lvd_exchange_relaxed_u32(&app->suspect, 0);
  lvd_os_lock(&app->gate);
  if (lvd_load_acquire_u32(&app->live) == 0 &&
      lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING &&
      lvd_hooks.deadlock.is_deadlocked(app)) {
    lvd_hooks.deadlock.save_report(app);
    lvd_app_end(app, LVD_E_DEADLOCK);
    lvd_thread_waiters_tell(app, LVD_E_DEADLOCK);
  }
  lvd_os_unlock(&app->gate);
}

bool lvd_deferred_checks_run(lvd_runtime *rt, bool detect) {
  bool any = false;
  lvd_os_lock(&rt->lock);
  for (lvd_app *app = rt->apps; app; app = app->next) {
    if (lvd_load_relaxed_u32(&app->check_deferred) &&
        lvd_exchange_acquire_u32(&app->check_deferred, 0))
      lvd_app_check_quiescent(app);
    if (!lvd_load_relaxed_u32(&app->suspect)) continue;
    any = true;
    if (detect) check_suspect(app);
  }
  lvd_os_unlock(&rt->lock);
  return any;
}
