/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The wait report of actors: which actor waits for which, by which full or empty channel, or for a
 * worker that runs something else.
 *
 * Each parked actor waits on one or more channels. Following the first of them from each actor
 * leads to an actor that can proceed, or round a cycle; a cycle is reported first, since it is the
 * cause. */
#include "../core/text_buffer.h"
#include "../rpc/unit.h"
#include "../sched/no_abandon.h"
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "wait_report.h"

#include <stdlib.h>
#include <string.h>

/* One item that an actor waits for. */
typedef struct wait_item {
  bool room; /* else elements */
  uint32_t port, count;
  uint32_t channel, consumer;
  lvd_port_ref other;
} wait_item;

static bool find_channel(const lvd_app *app, uint32_t actor, uint32_t port, bool input,
                         wait_item *h) {
  for (uint32_t i = 0; i < app->net->channels; i++) {
    const lvd_channel_desc *d = &app->net->channel[i];
    h->channel = i;
    h->consumer = 0;
    if (!input && d->from.actor == actor && d->from.port == port) return true;
    for (h->consumer = 0; input && h->consumer < d->consumers; h->consumer++)
      if (d->to[h->consumer].actor == actor && d->to[h->consumer].port == port) return true;
  }
  return false;
}

/* Number of elements in the channel of `h` for its slowest attached consumer, the one that limits
 * the producer. Sets h->consumer. */
static uint32_t slowest_fill(const lvd_app *app, wait_item *h) {
  const lvd_channel *ch = app->channel[h->channel];
  uint32_t tail = lvd_load_relaxed_u32(&ch->tail), max_fill = 0;
  for (uint32_t k = 0; k < app->net->channel[h->channel].consumers; k++) {
    if (lvd_load_relaxed_u32(&ch->consumer[k].state) != LVD_OPEN) continue; /* detached */
    uint32_t fill = tail - lvd_load_relaxed_u32(&ch->consumer[k].head);
    if (fill >= max_fill) {
      max_fill = fill;
      h->consumer = k;
    }
  }
  return max_fill;
}

/* Something that actor `a` waits for has come. */
LVD_RACY_READ static bool is_met(const lvd_app *app, uint32_t a) {
  const lvd_actor *actor = &app->entity[a].actor;
  wait_item h;
  for (uint32_t i = 0; i < actor->cls->inputs; i++) {
    uint32_t n = actor->in[i].await;
    if (!n || !find_channel(app, a, i, true, &h)) continue;
    const lvd_channel *ch = app->channel[h.channel];
    uint32_t fill =
        lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[h.consumer].head);
    if (fill >= n) return true;
  }
  for (uint32_t i = 0; i < actor->cls->outputs; i++) {
    uint32_t n = actor->out[i].await, capacity = actor->out[i].capacity;
    if (!n || n > capacity || !find_channel(app, a, i, false, &h)) continue;
    if (slowest_fill(app, &h) <= capacity - n) return true;
  }
  return false;
}

/* What an actor does, as reported. The item that it waited for stays recorded until it runs again,
 * and is no cause once the actor has been made ready. An actor of an ended application counts as
 * parked if its item has not come. */
typedef enum activity { PARKED, QUEUED, RUNS, IN_CALL, DONE } activity;

static activity activity_of(const lvd_app *app, uint32_t a) {
  const lvd_entity *e = &app->entity[a];
  uint32_t state = lvd_load_relaxed_u32(&e->state);
  if (lvd_load_relaxed_u32(&e->call_pending)) return IN_CALL;
  if (state == LVD_RUNNING || state == LVD_NOTIFIED) return RUNS;
  if (state == LVD_FINISHED) return is_met(app, a) ? DONE : PARKED;
  return state == LVD_READY || is_met(app, a) ? QUEUED : PARKED;
}

/* The nth item that actor `a` waits for. Returns false if there is none, or it waits for its worker
 * only. */
LVD_RACY_READ static bool nth_wait(const lvd_app *app, uint32_t a, uint32_t nth, wait_item *h) {
  const lvd_actor *actor = &app->entity[a].actor;
  if (activity_of(app, a) != PARKED) return false;
  for (uint32_t i = 0; i < actor->cls->inputs; i++) {
    uint32_t n = actor->in[i].await;
    if (!n || nth--) continue;
    h->room = false;
    h->port = i;
    h->count = n;
    if (!find_channel(app, a, i, true, h)) return false;
    h->other = app->net->channel[h->channel].from;
    return true;
  }
  for (uint32_t i = 0; i < actor->cls->outputs; i++) {
    uint32_t n = actor->out[i].await;
    if (!n || nth--) continue;
    h->room = true;
    h->port = i;
    h->count = n;
    if (!find_channel(app, a, i, false, h)) return false;
    slowest_fill(app, h);
    h->other = app->net->channel[h->channel].to[h->consumer];
    return true;
  }
  return false;
}

static const char *actor_name(const lvd_app *app, uint32_t actor) {
  return actor == LVD_EXTERNAL ? "the program" : app->entity[actor].name;
}

static const char *port_name(const lvd_app *app, lvd_port_ref ref, bool input) {
  if (ref.actor == LVD_EXTERNAL) return "";
  const lvd_actor_class *cls = app->entity[ref.actor].actor.cls;
  const lvd_port_class *port = input ? cls->input : cls->output;
  return port && port[ref.port].name ? port[ref.port].name : "?";
}

/* "a.Out -> b.In" */
static void append_channel(text_buffer *s, const lvd_app *app, lvd_port_ref from, lvd_port_ref to) {
  text_append(s, "%s%s%s -> %s%s%s", actor_name(app, from.actor),
              from.actor == LVD_EXTERNAL ? "" : ".", port_name(app, from, false),
              actor_name(app, to.actor), to.actor == LVD_EXTERNAL ? "" : ".",
              port_name(app, to, true));
}

LVD_RACY_READ static void append_wait(text_buffer *s, const lvd_app *app, uint32_t a,
                                      const wait_item *h) {
  const lvd_channel *ch = app->channel[h->channel];
  const lvd_channel_desc *d = &app->net->channel[h->channel];
  const lvd_actor *actor = &app->entity[a].actor;
  uint32_t capacity = h->room ? actor->out[h->port].capacity : actor->in[h->port].capacity;
  uint32_t fill =
      lvd_load_relaxed_u32(&ch->tail) - lvd_load_relaxed_u32(&ch->consumer[h->consumer].head);
  lvd_port_ref me = {a, h->port};
  text_append(s, "  %s waits for ", actor_name(app, a));
  if (h->room)
    text_append(s, "room for %u on its output %s", h->count, port_name(app, me, false));
  else
    text_append(s, "%u element%s on its input %s", h->count, h->count == 1 ? "" : "s",
                port_name(app, me, true));
  lvd_port_ref to = d->to[h->consumer];
  text_append(s, ": the channel ");
  append_channel(s, app, d->from, to);
  text_append(s, " %s (%u of %u)",
              h->room ? (fill == capacity ? "is full" : "has too little room")
                      : (fill == 0 ? "is empty" : "has too few"),
              fill, capacity);
  if (h->count > capacity)
    text_append(s, "; it can never hold that number");
  else
    text_append(s, "; %s %s it", actor_name(app, h->other.actor),
                h->room ? "has to empty" : "has to fill");
  text_append(s, "\n");
}

/* The actor is in a blocking call (blocking_pool.c). Returns true if it was reported. */
LVD_RACY_READ static bool append_call(text_buffer *s, const lvd_entity *e) {
  if (!lvd_load_relaxed_u32(&e->call_pending)) return false;
  const lvd_actor_class *cls = e->actor.cls;
  const char *native = e->actor.native;
  uint32_t action = e->actor.action;
  text_append(s, "  %s waits in %s%s", e->name, native ? "the native " : "a call that blocks",
              native ? native : "");
  if (cls->action && action < cls->actions)
    text_append(s, ", called by %s", cls->action[action].name);
  text_append(s, "\n");
  return true;
}

/* One firing that has run for longer than LONG_MS. */
LVD_RACY_READ static void append_long_run(text_buffer *s, const lvd_entity *e) {
  enum { LONG_MS = 100 };
  uint64_t ms = lvd_runs_ns(e) / 1000000;
  if (ms < LONG_MS) return;
  const lvd_actor_class *cls = e->actor.cls;
  const char *native = e->actor.native, *action = NULL;
  if (cls->action && e->actor.action < cls->actions) action = cls->action[e->actor.action].name;
  uint32_t seconds = (uint32_t)(ms / 1000), tenths = (uint32_t)(ms / 100 % 10);
  if (native)
    text_append(s, "  %s has been in the native %s for %u.%u s", e->name, native, seconds, tenths);
  else
    text_append(s, "  %s has computed for %u.%u s", e->name, seconds, tenths);
  /* An action without a tag is named by its line: `the action at line 4`. */
  const char *an = action && strncmp(action, "the ", 4) ? "action " : "";
  if (action) text_append(s, native ? ", called by %s%s" : " in %s%s", an, action);
  text_append(s, "\n");
}

/* What a worker runs: an actor of this application, or another application. The other's name is
 * read under the runtime's lock, since it may be unloaded at any time. */
static void append_running(text_buffer *s, lvd_app *app, uint32_t worker) {
  lvd_runtime *rt = app->rt;
  for (uint32_t a = 0; a < app->net->actors; a++)
    if (activity_of(app, a) == RUNS && lvd_load_relaxed_u32(&app->entity[a].worker) == worker) {
      text_append(s, ", where %s runs", app->entity[a].name);
      return;
    }
  const void *running = lvd_load_relaxed_ptr(&rt->worker[worker].running);
  lvd_os_lock(&rt->lock);
  const lvd_app *other = rt->apps;
  while (other && other != running) other = other->next;
  if (other && other != app) text_append(s, ", where the application %s runs", other->name);
  lvd_os_unlock(&rt->lock);
}

/* Ready actors that have not been run yet, in one line per worker. */
static void append_queued(text_buffer *s, lvd_app *app) {
  for (uint32_t w = 0; w < app->rt->workers; w++) {
    uint32_t last = LVD_EXTERNAL, count = 0;
    for (uint32_t a = 0; a <= app->net->actors; a++) {
      bool is = a < app->net->actors &&
                lvd_load_relaxed_u32(&app->entity[a].worker) % app->rt->workers == w &&
                activity_of(app, a) == QUEUED;
      if (last != LVD_EXTERNAL && (is || a == app->net->actors))
        text_append(s, "%s%s", count == 1 ? "  " : is ? ", " : " and ", app->entity[last].name);
      if (!is) continue;
      last = a;
      count++;
    }
    if (!count) continue;
    text_append(s, " wait%s for %s turn on worker %u", count == 1 ? "s" : "",
                count == 1 ? "its" : "their", w);
    append_running(s, app, w);
    text_append(s, "\n");
  }
}

/* The channel that would have had to grow for a deadlocked application to continue, and why it has
 * not. */
LVD_RACY_READ static void append_refused(text_buffer *s, const lvd_app *app) {
  const lvd_growth_refused *r = &app->refused;
  if (r->status == LVD_OK) return;
  const lvd_channel_desc *d = &app->net->channel[r->channel];
  text_append(s, "  the channel ");
  append_channel(s, app, d->from, d->to[0]);
  text_append(s, " would have to grow from %u elements to %u", app->channel[r->channel]->capacity,
              r->capacity);
  if (app->fixed_buffers)
    text_append(s, ", and buffers are fixed\n");
  else if (r->status == LVD_E_LIMIT && r->bytes > app->bytes_max)
    text_append(s, ": %s would take %llu bytes, and may have %llu\n", app->name,
                (unsigned long long)r->bytes, (unsigned long long)app->bytes_max);
  else if (r->status == LVD_E_LIMIT)
    text_append(s, ", and a channel may have %u\n", LVD_CHANNEL_CAPACITY);
  else
    text_append(s, ": %s\n", lvd_status_text(r->status));
}

static void append_fd_watches(text_buffer *s, const lvd_entity *e) {
  if (lvd_has_fd_watches(e))
    text_append(s, "  %s has asked for what may come from outside\n", e->name);
}

/* mark: 0: not visited, else the number of the walk. Returns an actor on a cycle, or
 * LVD_EXTERNAL. */
static uint32_t find_cycle(const lvd_app *app, uint32_t *mark) {
  for (uint32_t start = 0; start < app->net->actors; start++) {
    uint32_t a = start;
    wait_item h;
    while (a != LVD_EXTERNAL && mark[a] == 0 && nth_wait(app, a, 0, &h)) {
      mark[a] = start + 1;
      a = h.other.actor;
    }
    if (a != LVD_EXTERNAL && mark[a] == start + 1) return a;
  }
  return LVD_EXTERNAL;
}

/* Firings that have not reached a point where they can be paused. */
static void append_runs(text_buffer *s, lvd_app *app) {
  for (uint32_t a = 0; a < app->net->actors; a++)
    if (activity_of(app, a) == RUNS) append_long_run(s, &app->entity[a]);
  bool room = s->text && s->length < s->size;
  s->length += lvd_fibers_running_report(app, room ? s->text + s->length : NULL,
                                         room ? s->size - s->length : 0);
}

/* Paused actors wait for nothing else. */
static size_t append_pause(text_buffer *s, lvd_app *app) {
  text_buffer any = {NULL, 0, 0};
  append_runs(&any, app);
  text_append(s, "%s is paused%s\n", app->name,
              any.length ? ", but for what goes on until it can be held:" : "");
  if (any.length) append_runs(s, app);
  return s->length;
}

size_t lvd_app_wait_report(lvd_app *app, char *text, size_t size) {
  LVD_NO_ABANDON;
  text_buffer s = {text, size, 0};
  if (text && size) text[0] = 0;
  if (!app) return 0;
  uint32_t phase = lvd_load_acquire_u32(&app->phase);
  if (phase == LVD_PHASE_LOADED)
    text_append(&s, "%s is loaded and not started\n", app->name);
  else if (phase == LVD_PHASE_RUNNING && lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_ALL)
    return append_pause(&s, app);

  uint32_t *mark = calloc(app->net->actors + 1, sizeof *mark), ready = 0;
  if (!mark) return s.length;
  uint32_t first = find_cycle(app, mark);
  for (uint32_t i = 0; i < app->net->actors; i++) mark[i] = 0;
  if (first != LVD_EXTERNAL) {
    text_append(&s, "in a cycle, each waits for the next:\n");
    uint32_t a = first;
    wait_item h;
    do {
      if (!nth_wait(app, a, 0, &h)) break;
      append_wait(&s, app, a, &h);
      mark[a] = 1;
      a = h.other.actor;
    } while (a != first && a != LVD_EXTERNAL && !mark[a]);
  }
  bool heading = false;
  for (uint32_t a = 0; a < app->net->actors; a++) {
    wait_item h;
    for (uint32_t n = mark[a] ? 1 : 0; nth_wait(app, a, n, &h); n++) {
      if (!heading && first != LVD_EXTERNAL) text_append(&s, "besides:\n");
      heading = true;
      append_wait(&s, app, a, &h);
    }
    if (append_call(&s, &app->entity[a])) continue;
    append_fd_watches(&s, &app->entity[a]);
    activity what = activity_of(app, a);
    if (what == RUNS) append_long_run(&s, &app->entity[a]);
    ready += what == QUEUED || what == RUNS;
  }
  bool rests = lvd_load_relaxed_u32(&app->paused) & LVD_PAUSE_RESTING_SOURCES;
  if (phase == LVD_PHASE_RUNNING && !rests) append_queued(&s, app);
  if (ready) text_append(&s, "%u of %u actors can fire\n", ready, app->net->actors);
  append_refused(&s, app);
  free(mark);
  bool room = text && s.length < size;
  s.length +=
      lvd_fibers_wait_report(app, room ? text + s.length : NULL, room ? size - s.length : 0);
  room = text && s.length < size;
  s.length += lvd_units_why(app, room ? text + s.length : NULL, room ? size - s.length : 0);
  return s.length;
}
