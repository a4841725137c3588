/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Starting, pausing, stopping and ending an application while others run.
 *
 * An application ENDS when nothing of it can fire any more, when an actor fails, or when it is told
 * to. Whoever notices sets the phase to ENDING; from then on no activation of it begins. The
 * keeper, a thread that sleeps otherwise, then makes sure that no worker knows it any more, ends
 * the channels that the program holds, lets the natives finish their files, and says ENDED. For
 * that it waits for workers that have had something of it in hand, and for no others: an application
 * that keeps its core busy for long holds up those alone that share the core.
 *
 * Pairs of orders (all else is ordered by locks, inboxes and commands)
 *   rest:   add_release live          -> quiet: load_acquire live      what the actors left behind
 *   end:    exchange_release phase    -> keeper: load_acquire phase    the outcome
 *   end:    add_release keeper_work   -> keeper: load_acquire          the phase, before it sleeps
 *   finish: store_release phase ENDED -> wait, get_state: load_acquire all that was done
 *   taking: exchange_acq_rel 1        -> take_up: exchange_acq_rel 0   that it is not paused
 *   taking: exchange_acq_rel 0        -> take_up_held: exchange_acq_rel 1   the command may be left
 *   still:  worker.c */
#include <stdlib.h>

#include "hosted.h"
#include "inside.h"
#include "stream.h"
#include "waiting.h"

/* ---- what runs ---------------------------------------------------------------------------- */

enum { HELD_UP_NS = 1000000 };

/* A worker that does something for another application, as long as that may take, need not be waited
 * for: before it does something for this one it looks at its phase. */
static bool still_within(lvd_app *app, int64_t timeout_ms) {
  lvd_runtime *rt = app->rt;
  uint64_t start = lvd_port_ns();
  bool ends = lvd_app_is_program(app) && lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING;
  bool still = true;
  lvd_add_relaxed_u32(&rt->awaited, 1);
  lvd_port_barrier();
  for (uint32_t i = 0; still && i < lvd_all_workers(rt); i++) {
    lvd_worker *w = &rt->worker[i];
    uint32_t turn = lvd_load_acquire_u32(&w->turn);
    const lvd_app *running = lvd_load_acquire_ptr(&w->running);
    if (running != app && running != LVD_ANY_APP(w)) continue;
    while (lvd_load_acquire_u32(&w->turn) == turn) {
      lvd_worker_ring(w);
      if (timeout_ms >= 0 && lvd_port_ns() - start >= (uint64_t)timeout_ms * 1000000) {
        still = false;
        break;
      }
      lvd_port_wait(&w->turn, turn, HELD_UP_NS);
      if (lvd_load_relaxed_u32(&w->turn) != turn) continue;
      if (ends) lvd_watchdog_hurry(app);
      lvd_keeper_held_up(rt);
    }
  }
  lvd_add_relaxed_u32(&rt->awaited, UINT32_MAX);
  return still;
}

void lvd_app_still(lvd_app *app) { still_within(app, -1); }

/* ---- start, pause, resume, move ----------------------------------------------------------- */

lvd_status lvd_app_start(lvd_app *app) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  uint32_t loaded = LVD_PHASE_LOADED;
  /* Whoever moves entities has the lock, too: they must know whether somebody runs them. */
  lvd_port_lock(&app->rt->lock);
  lvd_port_lock(&app->gate);
  bool begins = lvd_cas_relaxed_u32(&app->phase, &loaded, LVD_PHASE_RUNNING);
  lvd_port_unlock(&app->gate);
  lvd_port_unlock(&app->rt->lock);
  if (!begins) return LVD_E_STATE;
  /* Alive until every actor has been woken, or the first could be at rest before the last. */
  lvd_add_relaxed_u32(&app->live, 1);
  for (uint32_t i = 0; i < app->net->actors; i++) lvd_entity_wake(&app->entity[i].waiter);
  if (lvd_add_relaxed_u32(&app->live, UINT32_MAX) == 1) lvd_app_quiet(app);
  return LVD_OK;
}

lvd_status lvd_app_promise(lvd_app *app, bool promised) {
  if (!app) return LVD_E_ARGUMENT;
  lvd_store_relaxed_u32(&app->promised, promised);
  return LVD_OK;
}

lvd_status lvd_app_pause(lvd_app *app) { return lvd_app_pause_within(app, -1); }

lvd_status lvd_app_pause_within(lvd_app *app, int64_t timeout_ms) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_port_lock(&app->control);
  app->holds |= LVD_HOLD_ALL;
  lvd_store_relaxed_u32(&app->paused, app->holds);
  bool still = still_within(app, timeout_ms);
  lvd_port_unlock(&app->control);
  return still ? LVD_OK : LVD_E_TIME;
}

static void take_up(lvd_worker *w, lvd_command *c) {
  const lvd_app *app = c->argument;
  lvd_exchange_acq_rel_u32(&app->share[w->index].taking, 0); /* it may be left again */
  for (lvd_entity **at = &w->held, *e; (e = *at);) {
    if (e->app != app) {
      at = &e->next;
      continue;
    }
    *at = e->next;
    lvd_queue_put(w, e);
  }
}

/* What is held of it is ready again, where something of it is known. Nobody waits for that. */
static void take_up_held(lvd_app *app) {
  for (uint32_t i = 0; i < lvd_all_workers(app->rt); i++) {
    lvd_app_share *s = &app->share[i];
    if (!lvd_load_relaxed_u32(&s->known) || lvd_exchange_acq_rel_u32(&s->taking, 1)) continue;
    s->take_up.run = take_up;
    s->take_up.soon = true;
    s->take_up.argument = app;
    lvd_worker_post(&app->rt->worker[i], &s->take_up, 0);
    lvd_worker_ask(&app->rt->worker[i]);
  }
}

/* Takes these of its holds back. */
static lvd_status let_go(lvd_app *app, uint32_t holds) {
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_port_lock(&app->control);
  app->holds &= ~holds;
  lvd_store_relaxed_u32(&app->paused, app->holds);
  lvd_port_barrier(); /* who has held something, and looked before, is known */
  take_up_held(app);
  lvd_port_unlock(&app->control);
  return LVD_OK;
}

lvd_status lvd_app_resume(lvd_app *app) {
  LVD_INSIDE;
  return app ? let_go(app, LVD_HOLD_ALL) : LVD_E_ARGUMENT;
}

/* Their workers see what holds them when they next have them in hand, as with a new target. */
static void rouse_sources(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->actors; i++) {
    lvd_entity *e = &app->entity[i];
    if (e->actor.cls->inputs) continue;
    lvd_entity_wake(&e->waiter);
    lvd_worker_ring(&app->rt->worker[lvd_load_relaxed_u32(&e->worker)]);
  }
}

static lvd_status hold_sources(lvd_app *app, uint32_t how) {
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  lvd_port_lock(&app->control);
  app->holds |= how;
  lvd_store_relaxed_u32(&app->paused, app->holds);
  lvd_port_unlock(&app->control);
  rouse_sources(app);
  return LVD_OK;
}

lvd_status lvd_app_rest(lvd_app *app, bool rests) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  return rests ? hold_sources(app, LVD_HOLD_REST) : let_go(app, LVD_HOLD_REST);
}

lvd_status lvd_app_drain(lvd_app *app) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  if (lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING) return LVD_E_STATE;
  if (lvd_app_is_program(app)) return lvd_program_drain(app);
  bool any = false;
  for (uint32_t i = 0; i < app->net->actors; i++) any |= app->net->actor[i].cls->inputs == 0;
  return any ? hold_sources(app, LVD_HOLD_SOURCES) : LVD_E_UNKNOWN;
}

/* Its worker sees the target when it next has it in hand; waking puts it there, and if it runs, it
 * gives way. */
void lvd_app_retarget(lvd_app *app, lvd_entity *e, uint32_t worker) {
  lvd_store_relaxed_u32(&e->target, worker);
  if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING) {
    lvd_entity_wake(&e->waiter);
    lvd_worker_ring(&app->rt->worker[lvd_load_relaxed_u32(&e->worker)]);
  } else if (lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_LOADED) {
    lvd_store_relaxed_u32(&e->worker, worker); /* nobody else looks at it yet */
  }
}

lvd_status lvd_app_move(lvd_app *app, uint32_t actor, uint32_t worker) {
  LVD_INSIDE;
  if (!app || actor >= app->net->actors || worker >= app->rt->workers) return LVD_E_ARGUMENT;
  lvd_status status = LVD_E_STATE;
  lvd_port_lock(&app->rt->lock); /* the running set must not change meanwhile */
  if (lvd_core_is_for(&app->rt->worker[worker], app)) {
    lvd_app_retarget(app, &app->entity[actor], worker);
    app->entity[actor].sent_from = 0;
    status = LVD_OK;
  }
  lvd_port_unlock(&app->rt->lock);
  return status;
}

/* ---- coming to rest ----------------------------------------------------------------------- */

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
  return ref.actor != LVD_OUTSIDE && app->entity[ref.actor].knotted;
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
        app->entity[d->to[k].actor].knotted = false;
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
  for (uint32_t i = 0; i < net->actors; i++) app->entity[i].knotted = false;
  for (uint32_t i = 0; i < net->channels; i++)
    for (uint32_t k = 0; k < net->channel[i].consumers; k++)
      if (awaits(app, &net->channel[i], k)) app->entity[net->channel[i].to[k].actor].knotted = true;
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
        app->entity[net->channel[i].to[k].actor].knotted = false;
  untie(app);
  for (uint32_t i = 0; i < net->actors; i++)
    if (app->entity[i].knotted) return true;
  return false;
}

void lvd_keeper_ring(lvd_runtime *rt) {
  lvd_add_release_u32(&rt->keeper_work, 1);
  lvd_port_wake(&rt->keeper_work);
}

/* All fibers wait, and no time limit will wake one. May nothing come any more? */
static bool fibers_rest(lvd_app *app) {
  bool open = lvd_load_acquire_u32(&app->open);
  if (!lvd_load_acquire_u32(&app->fibers) && !(open && lvd_waiting_any())) return !open;
  if (open || lvd_streams_await_threads(app)) {
    /* More may come from outside, and often does. Whether it can help is for later, if rest
     * lasts. */
    if (!lvd_exchange_relaxed_u32(&app->suspect, 1)) lvd_keeper_ring(app->rt);
    return false;
  }
  /* When they have been told they return, and nothing is left to see: so it is written down now. */
  lvd_fibers_story(app);
  return true;
}

/* The program has ended its end `o` of a channel, and is perhaps still on its way to wake the other
 * side. True: somebody there has that to learn first. */
static bool tell_of_end(lvd_app *app, const lvd_outside *o) {
  const lvd_channel_desc *d = &app->net->channel[o->channel];
  bool woken = false;
  if (!o->producer)
    return d->from.actor != LVD_OUTSIDE && lvd_entity_rouse(&app->entity[d->from.actor]);
  for (uint32_t k = 0; k < d->consumers; k++)
    if (d->to[k].actor != LVD_OUTSIDE) woken |= lvd_entity_rouse(&app->entity[d->to[k].actor]);
  return woken;
}

/* Nothing is ready, nothing is on its way, and all is settled: nobody touches the entities. */
static void judge(lvd_app *app) {
  bool told = false;
  bool fibers = lvd_load_acquire_u32(&app->fibers);
  if (!fibers_rest(app)) return;
  for (uint32_t i = 0; i < app->outsides; i++) {
    lvd_outside *o = &app->outside[i];
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

void lvd_app_quiet(lvd_app *app) {
  /* Nobody gets in who could wake an entity while it is judged. If somebody has got in before, then
   * whoever comes to rest after him judges. */
  lvd_port_lock(&app->gate);
  if (lvd_load_acquire_u32(&app->live) == 0 &&
      lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING)
    judge(app);
  lvd_port_unlock(&app->gate);
}

/* ---- ending ------------------------------------------------------------------------------- */

void lvd_app_end(lvd_app *app, lvd_status outcome) {
  uint32_t none = 0;
  /* The first reason counts, and it is there before anybody sees the phase. */
  if (!lvd_cas_relaxed_u32(&app->outcome, &none, 1 + (uint32_t)outcome)) return;
  lvd_exchange_release_u32(&app->phase, LVD_PHASE_ENDING);
  lvd_keeper_ring(app->rt);
}

lvd_status lvd_app_told(const lvd_app *app) {
  return (lvd_status)(lvd_load_relaxed_u32(&app->outcome) - 1);
}

static void forget(lvd_worker *w, lvd_command *c) {
  lvd_app *app = c->argument;
  lvd_inbox_drain(w);
  lvd_queue_remove_app(w, app);
  for (uint32_t i = 0; i < app->net->actors; i++)
    if (lvd_load_relaxed_u32(&app->entity[i].worker) == w->index)
      lvd_unsettled_remove(w, &app->entity[i]);
  lvd_share_forget(w, app);
}

/* Of what is theirs, only workers may forget. */
static void forget_everywhere(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  for (uint32_t i = 0; i < app->net->actors; i++)
    lvd_store_relaxed_u32(&app->share[lvd_load_relaxed_u32(&app->entity[i].worker)].known, 1);
  for (uint32_t i = 0; i < lvd_all_workers(rt); i++) {
    lvd_app_share *s = &app->share[i];
    if (!lvd_load_relaxed_u32(&s->known)) continue;
    s->forget.run = forget;
    s->forget.soon = true;
    s->forget.argument = app;
    lvd_worker_command(&rt->worker[i], &s->forget);
  }
  for (uint32_t i = 0; i < lvd_all_workers(rt); i++) {
    lvd_app_share *s = &app->share[i];
    while (lvd_load_relaxed_u32(&s->known) && !lvd_command_done(&s->forget, HELD_UP_NS))
      lvd_keeper_held_up(rt);
  }
}

/* What its natives keep is finished, or its heir's. */
static void end_blocks(lvd_app *app, lvd_status outcome) {
  lvd_app *heir = outcome == LVD_OK ? lvd_load_acquire_ptr(&app->heir) : NULL;
  lvd_port_lock(&app->blocks_lock);
  while (app->blocks) {
    lvd_app_block *b = app->blocks;
    app->blocks = b->next;
    if (heir && b->name) {
      b->key = NULL;
      lvd_port_lock(&heir->blocks_lock);
      b->next = heir->blocks;
      heir->blocks = b;
      lvd_port_unlock(&heir->blocks_lock);
      continue;
    }
    if (b->end) b->end(b->data, outcome);
    free(b->data);
    free(b);
  }
  lvd_port_unlock(&app->blocks_lock);
}

static void finish(lvd_app *app) {
  /* Whatever of it runs comes to the end of its activation; from then on nothing of it begins, and
   * so nothing of it wakes anything. But for fibers: these return. */
  lvd_app_still(app);
  take_up_held(app);
  lvd_calls_recall(app);
  lvd_stacks_forsake(app);
  lvd_fibers_end(app);
  lvd_app_still(app);
  lvd_status outcome = lvd_app_told(app);
  /* Whoever has made an entity READY from outside has posted it, and nobody does from now on. */
  lvd_port_lock(&app->gate);
  for (uint32_t i = 0; i < app->net->actors; i++)
    lvd_store_relaxed_u32(&app->entity[i].state, LVD_FINISHED);
  lvd_port_unlock(&app->gate);
  forget_everywhere(app);
  lvd_stacks_free(app);
  lvd_streams_end(app, outcome);

  for (uint32_t i = 0; i < app->outsides; i++) {
    lvd_outside *o = &app->outside[i];
    const lvd_channel_desc *d = &app->net->channel[o->channel];
    if (!o->producer && d->from.actor != LVD_OUTSIDE)
      lvd_end(&app->entity[d->from.actor].actor.out[d->from.port], outcome);
    for (uint32_t k = 0; o->producer && k < d->consumers; k++)
      if (d->to[k].actor != LVD_OUTSIDE)
        lvd_leave(&app->entity[d->to[k].actor].actor.in[d->to[k].port]);
  }
  bool faulted = lvd_app_faulted(app);
  end_blocks(app, outcome);
  /* What its natives could not finish (lvd_app_fail) has made a failure of a good end. */
  if (outcome == LVD_OK && !faulted && lvd_app_faulted(app))
    lvd_store_relaxed_u32(&app->outcome, 1 + (uint32_t)LVD_E_FAULT);
  /* The last touch: whoever waits may free the application now. */
  lvd_store_release_u32(&app->phase, LVD_PHASE_ENDED);
  lvd_port_wake(&app->phase);
}

static lvd_app *find_ending(lvd_runtime *rt) {
  lvd_port_lock(&rt->lock);
  lvd_app *app = rt->apps;
  while (app && (app->finishing || lvd_load_acquire_u32(&app->phase) != LVD_PHASE_ENDING))
    app = app->next;
  if (app) app->finishing = true;
  lvd_port_unlock(&rt->lock);
  return app;
}

/* Rest has lasted: does somebody wait in vain for something of `app`? */
static void look_into(lvd_app *app) {
  lvd_exchange_relaxed_u32(&app->suspect, 0);
  lvd_port_lock(&app->gate);
  if (lvd_load_acquire_u32(&app->live) == 0 &&
      lvd_load_relaxed_u32(&app->phase) == LVD_PHASE_RUNNING && lvd_fibers_in_vain(app)) {
    lvd_fibers_story(app);
    lvd_app_end(app, LVD_E_DEADLOCK);
    lvd_waiting_tell(app, LVD_E_DEADLOCK);
  }
  lvd_port_unlock(&app->gate);
}

/* True: there are suspects, or there were some until now. */
static bool find_suspects(lvd_runtime *rt, bool look) {
  bool any = false;
  lvd_port_lock(&rt->lock);
  for (lvd_app *app = rt->apps; app; app = app->next) {
    if (!lvd_load_relaxed_u32(&app->suspect)) continue;
    any = true;
    if (look) look_into(app);
  }
  lvd_port_unlock(&rt->lock);
  return any;
}

/* So many keepers sleep until there is work, however long that takes; others leave after that time. */
enum { KEEPERS_KEPT = 2, KEEPER_LEAVES_NS = 2000000000 };

static void sleep_until_work(lvd_runtime *rt, uint32_t work, int64_t timeout_ns) {
  bool spare = lvd_add_relaxed_u32(&rt->keepers_idle, 1) >= KEEPERS_KEPT;
  if (spare && timeout_ns < 0) timeout_ns = KEEPER_LEAVES_NS;
  lvd_port_wait(&rt->keeper_work, work, timeout_ns);
  lvd_add_relaxed_u32(&rt->keepers_idle, UINT32_MAX);
}

/* Those who are asleep when the last of several looks, who look at the same time, look after him, and stay. */
static bool is_spare(lvd_runtime *rt, uint64_t worked) {
  return lvd_load_relaxed_u32(&rt->keepers_idle) >= KEEPERS_KEPT &&
         lvd_port_ns() - worked >= KEEPER_LEAVES_NS;
}

void lvd_keeper_main(void *argument) {
  enum { LASTS_NS = 20000000 };
  lvd_runtime *rt = argument;
  uint64_t suspected = 0; /* when the first of those now suspect was seen */
  uint64_t worked = lvd_port_ns();
  for (;;) {
    uint32_t work = lvd_load_acquire_u32(&rt->keeper_work);
    bool lasts = suspected && lvd_port_ns() - suspected >= LASTS_NS;
    bool suspects = find_suspects(rt, lasts);
    if (lasts || !suspects) suspected = 0;
    if (suspects && !suspected) suspected = lvd_port_ns();
    lvd_app *ending = find_ending(rt);
    if (ending) {
      finish(ending);
      worked = lvd_port_ns();
    } else if (lvd_load_relaxed_u32(&rt->keeper_ending) || is_spare(rt, worked)) {
      return;
    } else {
      sleep_until_work(rt, work, suspects ? LASTS_NS : -1);
    }
  }
}

/* A keeper that finishes an application waits for what of it still runs. One that is held up by that
 * starts another, so that the others can end meanwhile. */
struct lvd_keeper {
  lvd_runtime *rt;
  lvd_port_thread *thread;
  struct lvd_keeper *next;
  bool left; /* it touches nothing any more but those who have left before it; under pool_lock */
};

static void join(struct lvd_keeper *keeper) {
  for (struct lvd_keeper *next; keeper; keeper = next) {
    next = keeper->next;
    lvd_port_thread_join(keeper->thread);
    free(keeper);
  }
}

/* No thread can join itself: the next one that leaves does, or the end of the runtime. */
static void keep(void *argument) {
  struct lvd_keeper *self = argument, *gone = NULL;
  lvd_runtime *rt = self->rt;
  lvd_take_priority(rt, LVD_ABOVE_NOBODY); /* natives end what they have on it */
  lvd_keeper_main(rt);
  lvd_port_lock(&rt->pool_lock);
  for (struct lvd_keeper **at = &rt->keepers, *k; (k = *at);) {
    if (!k->left) {
      at = &k->next;
      continue;
    }
    *at = k->next;
    k->next = gone;
    gone = k;
  }
  self->left = true;
  lvd_port_unlock(&rt->pool_lock);
  join(gone);
}

lvd_status lvd_keeper_start(lvd_runtime *rt) {
  struct lvd_keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper) return LVD_E_MEMORY;
  keeper->rt = rt;
  lvd_port_lock(&rt->pool_lock);
  lvd_status status = lvd_port_thread_start(&keeper->thread, -1, "levada/keeper", keep, keeper);
  if (status == LVD_OK) {
    keeper->next = rt->keepers;
    rt->keepers = keeper;
  } else {
    free(keeper);
  }
  lvd_port_unlock(&rt->pool_lock);
  return status;
}

void lvd_keeper_held_up(lvd_runtime *rt) {
  /* Without memory or threads for one, the others wait. */
  if (!lvd_load_relaxed_u32(&rt->keepers_idle)) lvd_keeper_start(rt);
}

void lvd_keepers_end(lvd_runtime *rt) {
  lvd_store_relaxed_u32(&rt->keeper_ending, 1);
  lvd_keeper_ring(rt);
  lvd_port_lock(&rt->pool_lock);
  struct lvd_keeper *all = rt->keepers;
  rt->keepers = NULL;
  lvd_port_unlock(&rt->pool_lock);
  join(all);
}

static bool ends_within(lvd_app *app, int64_t timeout_ms) {
  lvd_stream_thread_flush();
  uint64_t start = lvd_port_ns();
  lvd_waiting self = {.app = NULL};
  uint32_t phase;
  while ((phase = lvd_load_acquire_u32(&app->phase)) != LVD_PHASE_ENDED) {
    int64_t left = -1;
    if (timeout_ms >= 0) {
      left = timeout_ms - (int64_t)((lvd_port_ns() - start) / 1000000);
      if (left <= 0) return false;
      left = left < INT32_MAX ? left * 1000000 : -1;
    } else if (!self.app && phase == LVD_PHASE_RUNNING) {
      lvd_waiting_enter_for_end(&self, app);
      lvd_waiting_sleeps(&self);
    }
    lvd_port_wait(&app->phase, phase, left);
  }
  lvd_waiting_leave(&self);
  return true;
}

lvd_status lvd_app_wait(lvd_app *app, int64_t timeout_ms) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  return ends_within(app, timeout_ms) ? lvd_app_told(app) : LVD_E_TIME;
}

lvd_status lvd_app_stop(lvd_app *app) { return lvd_app_stop_within(app, -1); }

lvd_status lvd_app_stop_within(lvd_app *app, int64_t timeout_ms) {
  LVD_INSIDE;
  if (!app) return LVD_E_ARGUMENT;
  lvd_app_end(app, LVD_E_STOPPED);
  return ends_within(app, timeout_ms) ? LVD_OK : LVD_E_TIME;
}

void lvd_app_finish(lvd_app *app) {
  LVD_INSIDE;
  if (app) lvd_app_end(app, LVD_OK);
}

void lvd_app_ends_at_rest(lvd_app *app) {
  LVD_INSIDE;
  if (app) lvd_store_relaxed_u32(&app->ends_at_rest, 1);
}

/* ---- what the program holds --------------------------------------------------------------- */

static lvd_outside *find(lvd_app *app, uint32_t channel, uint32_t index, bool producer) {
  for (uint32_t i = 0; app && i < app->outsides; i++) {
    lvd_outside *o = &app->outside[i];
    if (o->channel == channel && o->index == index && o->producer == producer) return o;
  }
  return NULL;
}

lvd_producer *lvd_app_producer(lvd_app *app, uint32_t channel) {
  lvd_outside *o = find(app, channel, 0, true);
  return o ? &o->end.p : NULL;
}

lvd_consumer *lvd_app_consumer(lvd_app *app, uint32_t channel, uint32_t index) {
  lvd_outside *o = find(app, channel, index, false);
  return o ? &o->end.c : NULL;
}
