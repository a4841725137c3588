/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Application: one loaded network with its own state. Loading checks the network and lays it out in
 * memory; it starts nothing. */
#include "app.h"
#include "../../platform/text.h"
#include "../channel/channel_ring.h"
#include "../sched/no_abandon.h"
#include "../sched/restored_state.h"
#include "../stream/stream.h"
#include "../wait/thread_waiters.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  /* default size of a ring: fits into a first-level cache that both ends share */
  RING_BYTES = 16 * 1024,
  RING_ELEMENTS_MIN = 64 /* least default capacity in elements, however large they are */
};

/* ---- checking a network ---------------------------------------------------------------------- */

typedef struct error_buffer {
  char *text;
  size_t size;
} error_buffer;

static lvd_status set_error(error_buffer *why, lvd_status status, const char *format, ...)
    LVD_PRINTF(3, 4);
static lvd_status set_error(error_buffer *why, lvd_status status, const char *format, ...) {
  if (why->text && why->size) {
    va_list list;
    va_start(list, format);
    vsnprintf(why->text, why->size, format, list);
    va_end(list);
  }
  return status;
}

static const char *port_name(const lvd_port_class *port, uint32_t i) {
  return port && port[i].name ? port[i].name : "?";
}

/* One end of a channel: the port must exist, be free, and have elements of the same size. `used`
 * counts the connections of each port of each actor. */
static lvd_status check_end(const lvd_network *net, uint32_t channel, lvd_port_ref ref, bool input,
                            uint8_t *const *used, error_buffer *why) {
  if (ref.actor == LVD_EXTERNAL) return LVD_OK;
  const char *kind = input ? "input" : "output";
  if (ref.actor >= net->actors)
    return set_error(why, LVD_E_ARGUMENT, "channel %u: there is no actor %u", channel, ref.actor);
  const lvd_actor_desc *a = &net->actor[ref.actor];
  const lvd_port_class *port = input ? a->cls->input : a->cls->output;
  if (ref.port >= (input ? a->cls->inputs : a->cls->outputs))
    return set_error(why, LVD_E_ARGUMENT, "channel %u: %s has no %s %u", channel, a->name, kind,
                     ref.port);
  if (used[ref.actor][ref.port + (input ? 0 : a->cls->inputs)]++)
    return set_error(why, LVD_E_ARGUMENT, "%s %s of %s is connected twice", kind,
                     port_name(port, ref.port), a->name);
  uint32_t size = net->channel[channel].elem_size;
  if (port && port[ref.port].elem_size != size)
    return set_error(why, LVD_E_ARGUMENT,
                     "%s %s of %s has elements of %u bytes, its channel of %u bytes", kind,
                     port_name(port, ref.port), a->name, port[ref.port].elem_size, size);
  return LVD_OK;
}

static lvd_status check_network(const lvd_network *net, error_buffer *why) {
  if (!net) return set_error(why, LVD_E_ARGUMENT, "no network");
  if (net->abi_version != LVD_ABI_VERSION)
    return set_error(why, LVD_E_ABI, "made for layout %u of the library, which has %u",
                     net->abi_version, LVD_ABI_VERSION);
  if ((net->actors && !net->actor) || (net->channels && !net->channel))
    return set_error(why, LVD_E_ARGUMENT, "a table is missing");
  size_t ports = 0;
  for (uint32_t i = 0; i < net->actors; i++) {
    const lvd_actor_desc *a = &net->actor[i];
    if (!a->name || !a->cls || !a->cls->run)
      return set_error(why, LVD_E_ARGUMENT, "actor %u has no name, no class or no run", i);
    ports += a->cls->inputs + a->cls->outputs;
  }
  uint8_t *count = calloc(ports + 1, 1), **used = calloc(net->actors + 1, sizeof *used);
  lvd_status status = count && used ? LVD_OK : LVD_E_MEMORY;
  size_t at = 0;
  for (uint32_t i = 0; status == LVD_OK && i < net->actors; i++) {
    used[i] = count + at;
    at += net->actor[i].cls->inputs + net->actor[i].cls->outputs;
  }
  for (uint32_t i = 0; status == LVD_OK && i < net->channels; i++) {
    const lvd_channel_desc *c = &net->channel[i];
    if (c->elem_size == 0 || c->consumers == 0 || !c->to)
      status =
          set_error(why, LVD_E_ARGUMENT, "channel %u has no size of element or no consumer", i);
    if (c->capacity > LVD_CHANNEL_CAPACITY)
      status = set_error(why, LVD_E_ARGUMENT, "channel %u: a capacity of %u is too large", i,
                         c->capacity);
    if (status == LVD_OK) status = check_end(net, i, c->from, false, used, why);
    for (uint32_t k = 0; status == LVD_OK && k < c->consumers; k++)
      status = check_end(net, i, c->to[k], true, used, why);
  }
  for (uint32_t i = 0; status == LVD_OK && i < net->actors; i++) {
    const lvd_actor_class *cls = net->actor[i].cls;
    for (uint32_t p = 0; status == LVD_OK && p < cls->inputs + cls->outputs; p++)
      if (!used[i][p])
        status = set_error(why, LVD_E_ARGUMENT, "%s %s of %s is not connected",
                           p < cls->inputs ? "input" : "output",
                           p < cls->inputs ? port_name(cls->input, p)
                                           : port_name(cls->output, p - cls->inputs),
                           net->actor[i].name);
  }
  free(count);
  free(used);
  return status;
}

/* ---- laying it out --------------------------------------------------------------------------- */

static size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

/* Allocates parts of one block, in whole cache lines; with `base` null it only counts. */
typedef struct arena {
  unsigned char *base;
  size_t used;
} arena;

static void *arena_take(arena *a, size_t size) {
  void *p = a->base ? a->base + a->used : NULL;
  a->used += round_up(size, LVD_CACHE_LINE);
  return p;
}

static uint32_t capacity_of(const lvd_channel_desc *c, const lvd_app_options *options) {
  if (c->capacity) return c->capacity;
  if (options->capacity) return options->capacity;
  uint32_t n = RING_BYTES / c->elem_size;
  return n < RING_ELEMENTS_MIN ? RING_ELEMENTS_MIN : n;
}

/* At load. */
static uint32_t initial_capacity(const lvd_channel_desc *c, const lvd_app_options *options) {
  uint32_t capacity = capacity_of(c, options);
  return c->initial && c->initial < capacity ? c->initial : capacity;
}

/* Runs twice: first to count the bytes, then to place. */
static void lay_out(lvd_app *app, const lvd_network *net, const lvd_app_options *options,
                    arena *a) {
  uint32_t workers = lvd_worker_total(app->rt), external_ends = 0;
  app->entity = arena_take(a, net->actors * sizeof(lvd_entity));
  app->channel = arena_take(a, net->channels * sizeof(lvd_channel *));
  app->share = arena_take(a, workers * sizeof(lvd_app_worker_state));
  app->option = arena_take(a, options->option_count * sizeof(lvd_option));
  app->growth = arena_take(a, net->channels * sizeof(lvd_channel_growth));
  for (uint32_t i = 0; i < net->actors; i++) {
    const lvd_actor_class *cls = net->actor[i].cls;
    void *state = arena_take(a, cls->state_size),
         *in = arena_take(a, cls->inputs * sizeof(lvd_consumer)),
         *out = arena_take(a, cls->outputs * sizeof(lvd_producer)),
         *fired = arena_take(a, cls->actions * sizeof(uint64_t));
    if (a->base) {
      lvd_entity *e = &app->entity[i];
      e->actor.state = state;
      e->actor.in = in;
      e->actor.out = out;
      e->actor.fired = fired;
    }
  }
  for (uint32_t i = 0; i < net->channels; i++) {
    const lvd_channel_desc *c = &net->channel[i];
    void *header = arena_take(a, lvd_channel_header_size(c->consumers));
    if (a->base) app->channel[i] = header;
    external_ends += c->from.actor == LVD_EXTERNAL;
    for (uint32_t k = 0; k < c->consumers; k++) external_ends += c->to[k].actor == LVD_EXTERNAL;
  }
  app->external_end = arena_take(a, external_ends * sizeof(lvd_external_end));
  app->external_ends = 0; /* connect() adds them */
}

static lvd_external_end *new_external_end(lvd_app *app, uint32_t channel, uint32_t index,
                                          bool producer) {
  lvd_external_end *o = &app->external_end[app->external_ends++];
  lvd_wait_point_init(&o->wait_point, lvd_spin_us(app->rt));
  o->app = app;
  o->channel = channel;
  o->index = index;
  o->producer = producer;
  return o;
}

/* Attaches the handles of both ends, each with the waiter to wake. */
static lvd_status connect(lvd_app *app, uint32_t i) {
  const lvd_channel_desc *c = &app->net->channel[i];
  lvd_channel *ch = app->channel[i];
  bool fenced = app->rt->fenced;
  lvd_producer *p;
  lvd_waiter *producer, **peers = calloc(c->consumers, sizeof *peers);
  if (!peers) return LVD_E_MEMORY;
  if (c->from.actor == LVD_EXTERNAL) {
    lvd_external_end *o = new_external_end(app, i, 0, true);
    producer = &o->wait_point.waiter;
    p = &o->end.p;
  } else {
    producer = &app->entity[c->from.actor].waiter;
    p = &app->entity[c->from.actor].actor.out[c->from.port];
  }
  lvd_producer_attach(p, ch, peers, fenced);
  p->self = producer;
  for (uint32_t k = 0; k < c->consumers; k++) {
    lvd_consumer *consumer;
    if (c->to[k].actor == LVD_EXTERNAL) {
      lvd_external_end *o = new_external_end(app, i, k, false);
      peers[k] = &o->wait_point.waiter;
      consumer = &o->end.c;
    } else {
      peers[k] = &app->entity[c->to[k].actor].waiter;
      consumer = &app->entity[c->to[k].actor].actor.in[c->to[k].port];
    }
    lvd_consumer_attach(consumer, ch, k, producer, fenced);
    consumer->self = peers[k];
    consumer->threshold =
        c->threshold ? c->threshold : lvd_default_threshold(ch->capacity, c->elem_size);
  }
  p->threshold = lvd_default_threshold(ch->capacity, c->elem_size);
  return LVD_OK;
}

static void free_peers(lvd_app *app) {
  for (uint32_t i = 0; i < app->net->channels; i++) {
    const lvd_port_ref from = app->net->channel[i].from;
    if (from.actor != LVD_EXTERNAL) free(app->entity[from.actor].actor.out[from.port].peers);
  }
  for (uint32_t i = 0; i < app->external_ends; i++)
    if (app->external_end[i].producer) free(app->external_end[i].end.p.peers);
}

static lvd_status make_channels(lvd_app *app, const lvd_app_options *options, error_buffer *why) {
  const lvd_network *net = app->net;
  size_t *size = calloc(net->channels + 1, sizeof *size);
  void **ring = calloc(net->channels + 1, sizeof *ring);
  lvd_status status = size && ring ? LVD_OK : LVD_E_MEMORY;
  uint64_t bytes = app->memory_size;
  for (uint32_t i = 0; status == LVD_OK && i < net->channels; i++) {
    const lvd_channel_desc *c = &net->channel[i];
    uint32_t slots = lvd_ring_slots(initial_capacity(c, options), c->elem_size);
    size[i] = (size_t)slots * c->elem_size;
    if (!slots)
      status = set_error(why, LVD_E_LIMIT, "channel %u of %u elements of %u bytes is too large", i,
                         c->capacity, c->elem_size);
  }
  if (status == LVD_OK) {
    status = lvd_os_rings_alloc(&app->rings, net->channels, size, ring);
    if (status == LVD_E_MAPPINGS)
      set_error(why, status, "no more memory can be mapped, and a channel takes two mappings: %s",
                lvd_status_text(status));
    else if (status != LVD_OK)
      set_error(why, status, "no memory for the channels of %s", app->name);
  }
  for (uint32_t i = 0; status == LVD_OK && i < net->channels; i++) {
    const lvd_channel_desc *c = &net->channel[i];
    uint32_t capacity = initial_capacity(c, options);
    lvd_channel_init(app->channel[i], ring[i], c->elem_size, (uint32_t)(size[i] / c->elem_size),
                     capacity, c->consumers, LVD_CHANNEL_MIRRORED);
    app->growth[i].loaded_capacity = capacity;
    app->growth[i].described_capacity = capacity_of(c, options);
    bytes += size[i];
    status = connect(app, i);
  }
  app->fixed_buffers = options->fixed_buffers;
  app->bytes_max = options->memory_max ? options->memory_max : bytes + LVD_GROWTH_BYTES;
  lvd_store_relaxed_u64(&app->bytes, bytes);
  free(size);
  free(ring);
  return status;
}

/* Without a placement: the actors in their order, evenly, in one run per worker of the running set,
 * so that neighbours in a pipeline stay together. */
static uint32_t default_worker(const lvd_runtime *rt, uint32_t i, uint32_t actors) {
  uint32_t nth = (uint32_t)((uint64_t)i * rt->available_count / actors), w = 0;
  for (;; w++)
    if (lvd_load_relaxed_u32(&rt->worker[w].available) && nth-- == 0) return w;
}

static lvd_status make_entities(lvd_app *app, const lvd_app_options *options, error_buffer *why) {
  lvd_runtime *rt = app->rt;
  for (uint32_t i = 0; i < app->net->actors; i++) {
    const lvd_actor_desc *d = &app->net->actor[i];
    lvd_entity *e = &app->entity[i];
    uint32_t worker =
        options->placement ? options->placement[i] : default_worker(rt, i, app->net->actors);
    if (worker >= rt->workers || !lvd_load_relaxed_u32(&rt->worker[worker].available))
      return set_error(why, LVD_E_ARGUMENT,
                       "%s is placed on worker %u, which is not one of the %u that run", d->name,
                       worker, rt->available_count);
    e->waiter.wake = lvd_entity_wake;
    lvd_store_relaxed_u32(&e->worker, worker);
    lvd_store_relaxed_u32(&e->target, worker);
    e->level = lvd_level_of((int64_t)d->priority + options->priority);
    e->app = app;
    e->name = d->name;
    e->actor.params = d->params;
    e->actor.cls = d->cls;
    e->actor.yield = &rt->worker[worker].yield;
    e->slot = lvd_slot_claim(rt->slot, rt->options.entities, rt->slot_hint, 1);
    if (e->slot == rt->options.entities) {
      e->app = NULL; /* it has no slot to free */
      return set_error(why, LVD_E_LIMIT,
                       "%u actors are loaded, as many as lvd_runtime_options.entities allows",
                       rt->options.entities);
    }
    rt->slot_hint = (e->slot + 1) % rt->options.entities;
    rt->entity[e->slot] = e;
  }
  return LVD_OK;
}

/* The memory of applications is kept until the runtime is destroyed: a late waker may still take
 * the gate of an application that has been replaced by another one there. */
static lvd_app *new_app(lvd_runtime *rt) {
  lvd_os_lock(&rt->pool_lock);
  lvd_app *app = rt->spare_apps;
  if (app) rt->spare_apps = app->next;
  lvd_os_unlock(&rt->pool_lock);
  if (!app) return lvd_os_alloc(sizeof *app);
  memset(app, 0, offsetof(lvd_app, gate));
  return app;
}

static void free_app(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  if (app->memory) {
    for (uint32_t i = 0; i < app->net->actors; i++) {
      if (app->entity[i].app) lvd_slot_free(app->rt->slot, app->entity[i].slot);
      free(app->entity[i].restored);
    }
    lvd_inherited_strings_free(app->texts);
    lvd_streams_free(app);
    lvd_hooks.calls.units_free(app);
    free(lvd_load_relaxed_ptr(&app->story));
    free_peers(app);
    for (uint32_t i = 0; i < app->options; i++) {
      free((char *)(uintptr_t)app->option[i].name);
      free((char *)(uintptr_t)app->option[i].value);
    }
    for (uint32_t i = 0; i < app->net->channels; i++) lvd_os_rings_free(&app->growth[i].rings);
    lvd_os_rings_free(&app->rings);
    lvd_os_free(app->memory, app->memory_size);
  }
  free(app->name);
  lvd_os_lock(&rt->pool_lock);
  app->next = rt->spare_apps;
  rt->spare_apps = app;
  lvd_os_unlock(&rt->pool_lock);
}

void lvd_apps_free(lvd_runtime *rt) {
  for (lvd_app *app = rt->spare_apps, *next; app; app = next) {
    next = app->next;
    lvd_os_free(app, sizeof *app);
  }
}

lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net, const lvd_app_options *options,
                        lvd_app **out, char *why_text, size_t why_size) {
  LVD_NO_ABANDON;
  error_buffer why = {why_text, why_size};
  static const lvd_app_options defaults;
  if (why_text && why_size) why_text[0] = 0;
  if (!rt || !out) return LVD_E_ARGUMENT;
  *out = NULL;
  if (!options) options = &defaults;
  if (options->capacity > LVD_CHANNEL_CAPACITY) return LVD_E_ARGUMENT;
  lvd_status status = check_network(net, &why);
  if (status != LVD_OK) return status;

  lvd_app *app = new_app(rt);
  if (!app) return LVD_E_MEMORY;
  app->rt = rt;
  app->net = net;
  app->name = lvd_text_copy(options->name ? options->name : net->name ? net->name : "application");
  arena a = {NULL, 0};
  lay_out(app, net, options, &a);
  app->memory_size = a.used;
  app->memory = lvd_os_alloc(a.used);
  if (!app->memory || !app->name) {
    free_app(app);
    return LVD_E_MEMORY;
  }
  a = (arena){app->memory, 0};
  lay_out(app, net, options, &a);
  for (uint32_t i = 0; i < lvd_worker_total(rt); i++) app->share[i].app = app;

  lvd_os_lock(&rt->lock);
  app->serial = ++rt->loads;
  status = make_channels(app, options, &why);
  if (status == LVD_OK) status = make_entities(app, options, &why);
  for (; status == LVD_OK && app->options < options->option_count; app->options++) {
    lvd_option *o = &app->option[app->options];
    o->name = lvd_text_copy(options->option[app->options].name);
    o->value = lvd_text_copy(options->option[app->options].value);
    if (!o->name || !o->value) status = LVD_E_MEMORY;
  }
  if (status == LVD_OK) {
    app->next = rt->apps;
    if (rt->apps) rt->apps->previous = app;
    rt->apps = app;
    *out = app;
  } else {
    free_app(app);
  }
  lvd_os_unlock(&rt->lock);
  return status;
}

lvd_status lvd_app_size(lvd_runtime *rt, const lvd_network *net, const lvd_app_options *options,
                        uint64_t *bytes, char *why_text, size_t why_size) {
  error_buffer why = {why_text, why_size};
  static const lvd_app_options defaults;
  if (why_text && why_size) why_text[0] = 0;
  if (!rt || !bytes) return LVD_E_ARGUMENT;
  if (!options) options = &defaults;
  lvd_status status = check_network(net, &why);
  if (status != LVD_OK) return status;
  lvd_app app = {.rt = rt, .net = net};
  arena a = {NULL, 0};
  lay_out(&app, net, options, &a);
  *bytes = a.used;
  for (uint32_t i = 0; i < net->channels; i++) {
    const lvd_channel_desc *c = &net->channel[i];
    *bytes += (uint64_t)lvd_ring_slots(initial_capacity(c, options), c->elem_size) * c->elem_size;
  }
  return LVD_OK;
}

uint64_t lvd_app_memory(lvd_app *app) { return app ? lvd_load_relaxed_u64(&app->bytes) : 0; }

void lvd_app_unload(lvd_app *app) {
  LVD_NO_ABANDON;
  if (!app) return;
  lvd_runtime *rt = app->rt;
  lvd_app_stop(app);
  for (uint32_t i = 0; i < app->net->actors; i++) {
    lvd_actor *actor = &app->entity[i].actor;
    if (actor->cls->end && app->entity[i].initialised) actor->cls->end(actor);
  }
  lvd_thread_waiters_release(app);
  lvd_hooks.programs.unwatch(app);
  lvd_streams_free(app);
  lvd_hooks.calls.units_free(app); /* may take long: without the lock */
  lvd_hooks.programs.part(app);
  lvd_os_lock(&rt->lock);
  if (app->previous)
    app->previous->next = app->next;
  else
    rt->apps = app->next;
  if (app->next) app->next->previous = app->previous;
  lvd_cores_back(app);
  free_app(app);
  lvd_os_unlock(&rt->lock);
}

lvd_app_state lvd_app_get_state(lvd_app *app) {
  switch (lvd_load_acquire_u32(&app->phase)) {
  case LVD_PHASE_LOADED:
    return LVD_APP_LOADED;
  case LVD_PHASE_RUNNING:
    return lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_ALL ? LVD_APP_PAUSED : LVD_APP_RUNNING;
  case LVD_PHASE_ENDING:
    return LVD_APP_ENDING;
  default:
    return LVD_APP_ENDED;
  }
}

const char *lvd_app_name(const lvd_app *app) { return app->name; }
