/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Counters: one call reads all of an application's. Each counter has one writer, its owner, so
 * counting costs a plain addition; a reader may see counters of slightly different times. */
#include "../sched/sched.h"

#include <string.h>

/* Time of the running activation, if a tick or the watchdog has stamped it. `clocked` is the number
 * of the stamped activation, so that of an earlier one counts nothing. */
uint64_t lvd_runs_ns(const lvd_entity *e) {
  uint64_t number = lvd_load_relaxed_u64(&e->activations) + 1;
  if (lvd_load_relaxed_u64(&e->clocked) != number) return 0;
  const lvd_worker *w = &e->app->rt->worker[lvd_load_relaxed_u32(&e->worker)];
  uint64_t since = lvd_load_relaxed_u64(&w->started_at), now = lvd_os_ticks();
  since += lvd_steal_time_pending(w, now);
  bool runs = lvd_load_relaxed_u64(&e->activations) + 1 == number;
  return runs && now > since ? lvd_os_ticks_to_ns(now - since) : 0;
}

/* Includes the running activation. If that ends meanwhile, it may have been counted twice: try
 * again. */
static uint64_t busy_ns(lvd_entity *e, uint64_t *runs_ns) {
  enum { TRIES_MAX = 4 };
  uint64_t busy = 0;
  for (uint32_t i = 0; i < TRIES_MAX; i++) {
    uint64_t before = lvd_load_relaxed_u64(&e->activations);
    busy = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->busy_ticks));
    *runs_ns = lvd_runs_ns(e);
    if (lvd_load_relaxed_u64(&e->activations) == before) break;
  }
  return lvd_counter_monotonic(&e->busy_told, busy + *runs_ns);
}

LVD_RACY_READ static void read_actor(lvd_entity *e, lvd_actor_counters *out) {
  memset(out, 0, sizeof *out);
  out->name = e->name;
  uint32_t workers = e->app->rt->workers; /* a core's backup worker counts as that core */
  out->worker = lvd_load_relaxed_u32(&e->worker) % workers;
  out->target = lvd_load_relaxed_u32(&e->target) % workers;
  for (uint32_t i = 0; i < e->actor.cls->actions; i++) out->firings += e->actor.fired[i];
  uint32_t state = lvd_load_relaxed_u32(&e->state);
  out->waits_external = lvd_load_relaxed_u32(&e->call_pending);
  out->waits = state == LVD_IDLE || state == LVD_FINISHED || out->waits_external;
  out->longest_ns = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->longest_ticks));
  out->activations = lvd_load_relaxed_u64(&e->activations);
  out->busy_ns = busy_ns(e, &out->runs_ns); /* counted before the activation ends */
  if (out->longest_ns < out->runs_ns) out->longest_ns = out->runs_ns;
}

/* It waits for an item, or has ended. */
static bool is_parked(const lvd_entity *e) {
  uint32_t state = lvd_load_relaxed_u32(&e->state);
  return state == LVD_IDLE || state == LVD_FINISHED;
}

/* Fibers switch faster than a clock can be read, so they are not measured: the worker's tick counts
 * the application that it interrupts. */
uint64_t lvd_app_fibers_busy_on(lvd_app *app, uint32_t worker) {
  if (!app || worker >= app->rt->workers) return 0;
  uint64_t ticks = 0;
  for (uint32_t i = worker; i < lvd_worker_total(app->rt); i += app->rt->workers)
    ticks += lvd_load_relaxed_u64(&app->share[i].fiber_ticks);
  return ticks * LVD_TICK_MS * 1000000u;
}

uint64_t lvd_app_fibers_busy_ns(lvd_app *app) {
  uint64_t ns = 0;
  for (uint32_t i = 0; app && i < app->rt->workers; i++) ns += lvd_app_fibers_busy_on(app, i);
  return ns;
}

static const lvd_producer *producer_of(lvd_app *app, uint32_t channel) {
  const lvd_port_ref from = app->net->channel[channel].from;
  if (from.actor != LVD_EXTERNAL) return &app->entity[from.actor].actor.out[from.port];
  return lvd_app_producer(app, channel);
}

static const lvd_consumer *consumer_of(lvd_app *app, uint32_t channel, uint32_t k) {
  const lvd_port_ref to = app->net->channel[channel].to[k];
  if (to.actor != LVD_EXTERNAL) return &app->entity[to.actor].actor.in[to.port];
  return lvd_app_consumer(app, channel, k);
}

LVD_RACY_READ static void read_channel(lvd_app *app, uint32_t i, uint32_t k,
                                       lvd_channel_counters *out) {
  const lvd_channel_desc *d = &app->net->channel[i];
  const lvd_channel *ch = app->channel[i];
  const lvd_producer *p = producer_of(app, i);
  const lvd_consumer *c = consumer_of(app, i, k);
  out->from = d->from;
  out->to = d->to[k];
  out->capacity = p->capacity;
  out->loaded_capacity = app->growth[i].loaded_capacity;
  /* The shared cursors rather than the handles' own, so that the fill level is a published one. */
  out->fill = lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[k].head);
  if (out->fill > p->capacity) out->fill = 0; /* read at two moments */
  /* What an actor last waited for stays recorded while it runs. */
  out->awaited =
      out->to.actor != LVD_EXTERNAL && is_parked(&app->entity[out->to.actor]) ? c->await : 0;
  out->put = p->pushed;
  out->got = c->popped;
  out->wakes = p->wakes;
  out->full = p->full;
  out->empty = c->empty;
}

lvd_status lvd_app_counters(lvd_app *app, lvd_actor_counters *actor, uint32_t *actors,
                            lvd_channel_counters *channel, uint32_t *channels) {
  if (!app) return LVD_E_ARGUMENT;
  const lvd_network *net = app->net;
  if (actors) {
    for (uint32_t i = 0; actor && i < *actors && i < net->actors; i++)
      read_actor(&app->entity[i], &actor[i]);
    *actors = net->actors;
  }
  if (channels) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < net->channels; i++)
      for (uint32_t k = 0; k < net->channel[i].consumers; k++, n++)
        if (channel && n < *channels) read_channel(app, i, k, &channel[n]);
    *channels = n;
  }
  return LVD_OK;
}
