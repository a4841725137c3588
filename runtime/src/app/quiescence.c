/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Coming to rest: when nothing of an application can fire any more, it is judged whether that is its end, a deadlock,
 * or a wait for the program or for another process.
 *
 * Whoever takes the last from its count of what is alive (app_liveness.c) judges, with its gate closed: then nothing of
 * it is ready or on its way, and all is settled, so that its entities can be looked at. Whether fibers wait in vain
 * can depend on what others are about to do; then the application is a suspect, and is looked at once more when rest
 * has lasted for a while (app_reaper.c).
 *
 * Pairs of orders (all else is ordered by locks)
 *   rest:  add_release live (app_liveness.c) -> quiet: load_acquire live            what the actors left behind
 *   later: exchange_release unjudged  -> suspects: exchange_acquire unjudged  that nothing is alive */
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"
#include "app.h"

static bool is_outside(const lvd_app *app, const lvd_producer *p, uint32_t i) {
  return p->peers[i]->wake != lvd_entity_wake &&
         lvd_load_relaxed_u32(&p->channel->consumer[i].state) == LVD_OPEN && app->outsides;
}

/* Does consumer `k` of the channel wait for elements of it? */
static bool awaits(const lvd_app *app, const lvd_channel_desc *d, uint32_t k) {
  lvd_port_ref to = d->to[k];
  if (to.actor == LVD_OUTSIDE) return false;
  const lvd_entity *e = &app->entity[to.actor];
  return lvd_load_relaxed_u32(&e->state) != LVD_FINISHED && e->actor.in[to.port].await;
}

static bool is_knotted(const lvd_app *app, lvd_port_ref ref) {
  return ref.actor != LVD_OUTSIDE && app->entity[ref.actor].in_knot;
}

/* Unties all who wait for elements from somebody who is not in the knot, until that ends. */
static void untie(lvd_app *app) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < app->net->channels; i++) {
      const lvd_channel_desc *d = &app->net->channel[i];
      if (is_knotted(app, d->from)) continue;
      for (uint32_t k = 0; k < d->consumers; k++) {
        if (!awaits(app, d, k) || !is_knotted(app, d->to[k])) continue;
        app->entity[d->to[k].actor].in_knot = false;
        again = true;
      }
    }
  }
}

/* Nobody waits for room, and still some may wait in vain. An actor that awaits no elements has come
 * to an end of its own, such as a source whose input is exhausted; one that awaits elements of such
 * an actor has come to that end, too, since more input would let it go on. The rest is a KNOT: they
 * wait for one another alone, and no input would change that. It is a deadlock when elements lie
 * before one of them, or when some circle among them never carried any, and so lacks its first.
 * Otherwise it is a ring of actors that have done, and consumed, all there was to do. */
static bool in_vain(lvd_app *app) {
  const lvd_network *net = app->net;
  for (uint32_t i = 0; i < net->actors; i++) app->entity[i].in_knot = false;
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (awaits(app, &net->channel[i], k)) app->entity[net->channel[i].to[k].actor].in_knot = true;
  untie(app);
  for (uint32_t i = 0; i < net->channels; i++) {
    const lvd_channel *ch = app->channel[i];
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (is_knotted(app, net->channel[i].to[k]) &&
          lvd_load_relaxed_u32(&ch->tail) != lvd_load_relaxed_u32(&ch->consumer[k].head))
        return true;
  }
  /* Who waits where something once went is no reason, nor is who waits for such a one. */
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (awaits(app, &net->channel[i], k) && lvd_load_relaxed_u32(&app->channel[i]->tail))
        app->entity[net->channel[i].to[k].actor].in_knot = false;
  untie(app);
  for (uint32_t i = 0; i < net->actors; i++)
    if (app->entity[i].in_knot) return true;
  return false;
}

/* All fibers wait, and no time limit will wake one. May nothing come any more? */
static bool fibers_rest(lvd_app *app) {
  bool open = lvd_load_acquire_u32(&app->open);
  if (!lvd_load_acquire_u32(&app->fibers) && !(open && lvd_thread_waiters_any())) return !open;
  if (open || lvd_hooks.deadlock.awaits_outside(app)) {
    /* More may come from outside, and often does. Whether it can help is for later, if rest
     * lasts. */
    if (!lvd_exchange_relaxed_u32(&app->suspect, 1)) lvd_reaper_wake(app->rt);
    return false;
  }
  /* When they have been told they return, and nothing is left to see: so it is written down now. */
  lvd_hooks.deadlock.save_report(app);
  return true;
}

/* The program has ended its end `o` of a channel, and is perhaps still on its way to wake the other
 * side. True: somebody there has that to learn first. */
static bool tell_of_end(lvd_app *app, const lvd_external_end *o) {
  const lvd_channel_desc *d = &app->net->channel[o->channel];
  bool woken = false;
  if (!o->producer)
    return d->from.actor != LVD_OUTSIDE && lvd_entity_wake_locked(&app->entity[d->from.actor]);
  for (uint32_t k = 0; k < d->consumers; k++)
    if (d->to[k].actor != LVD_OUTSIDE)
      woken |= lvd_entity_wake_locked(&app->entity[d->to[k].actor]);
  return woken;
}

/* Nothing is ready, nothing is on its way, and all is settled: nobody touches the entities. */
static void judge(lvd_app *app) {
  bool told = false;
  bool fibers = lvd_load_acquire_u32(&app->fibers);
  if (!fibers_rest(app)) return;
  for (uint32_t i = 0; i < app->outsides; i++) {
    lvd_external_end *o = &app->outside[i];
    const lvd_channel *ch = app->channel[o->channel];
    const lvd_a32 *state = o->producer ? &ch->state : &ch->consumer[o->index].state;
    if (lvd_load_relaxed_u32(state) == LVD_OPEN) {
      if (o->producer) return; /* more may come */
    } else if (!o->told) {
      o->told = true;
      told |= tell_of_end(app, o);
    }
  }
  if (told) return;
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
  if (outcome == LVD_OK && in_vain(app)) outcome = LVD_E_DEADLOCK;
  lvd_app_end(app, outcome);
}

void lvd_app_check_quiescent(lvd_app *app) {
  const lvd_worker *w = lvd_this_worker();
  if (w &&
      w->in_offload) { /* in a signal's handler (overrun.c): to judge takes the gate, and memory */
    lvd_exchange_release_u32(&app->unjudged, 1);
    lvd_reaper_wake(app->rt);
    return;
  }
  /* Nobody gets in who could wake an entity while it is judged. If somebody has got in before, then
   * whoever comes to rest after him judges. */
  lvd_os_lock(&app->gate);
  if (lvd_load_acquire_u32(&app->live) == 0 &&
      lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING)
    judge(app);
  lvd_os_unlock(&app->gate);
}

/* Rest has lasted: does somebody wait in vain for something of `app`? */
static void look_into(lvd_app *app) {
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

bool lvd_deferred_checks_run(lvd_runtime *rt, bool look) {
  bool any = false;
  lvd_os_lock(&rt->lock);
  for (lvd_app *app = rt->apps; app; app = app->next) {
    if (lvd_load_relaxed_u32(&app->unjudged) && lvd_exchange_acquire_u32(&app->unjudged, 0))
      lvd_app_check_quiescent(app);
    if (!lvd_load_relaxed_u32(&app->suspect)) continue;
    any = true;
    if (look) look_into(app);
  }
  lvd_os_unlock(&rt->lock);
  return any;
}
