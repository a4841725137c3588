/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two workers and an application of two actors for the checker: source -> sink over one channel,
 * the runtime's own worker loop, entities and settling. What runtime.c and app.c would set up from
 * the operating system's answers is set up here by hand. */
#include <stdlib.h>
#include <string.h>

#include "src/app/app.h"
#include "src/sched/sched.h"

enum { WORKERS = 2, SOURCE = 0, SINK = 1, ENTITIES = 2, LEVEL = 4 };

typedef struct model_world {
  lvd_runtime rt;
  lvd_worker worker[2 * WORKERS]; /* the urgent ones, too, which never begin */
  lvd_entity *pending_parks[WORKERS][ENTITIES];
  lvd_slot slot[ENTITIES];
  lvd_entity *entities[ENTITIES];
  lvd_app app;
  lvd_app_worker_state share[2 * WORKERS];
  lvd_entity entity[ENTITIES];
  lvd_producer out;
  lvd_consumer in;
  lvd_waiter *peers[1];
  lvd_wait_point wait_point;
  uint64_t fired[ENTITIES];
  /* What the actors do. */
  uint32_t count;    /* elements in all */
  uint32_t put, got; /* so far */
  uint32_t wrong;    /* an element was not the one expected */
  bool last_ends;    /* an actor that is done ends its worker's loop */
  bool source_ends;  /* the source is DONE, not at rest, when it has put all */
  uint32_t move_to;  /* where the source asks the sink to be moved, after its first element */
  bool sink_stops;   /* the sink, when it has all, ends both workers' loops */
  bool sink_refuses; /* the sink gets nothing, and waits for nothing */
  bool source_busy;  /* the source runs for as long as it is let ... */
  bool source_stuck; /* ... or does not let be told, but for its worker's clock */
  bool sink_says;    /* the sink says that it runs, and then counts that */
  lvd_a32 said;      /* it has, or the source that is busy; orders nothing */
  lvd_command bye[WORKERS];
  uint32_t stopped[WORKERS]; /* written by the worker, read by the thread that sent the command */
} model_world;

static model_world *world_of(lvd_actor *a) { return a->state; }

static void done_here(model_world *m) {
  if (m->last_ends) ((lvd_worker *)lvd_os_self())->ending = true;
}

static void stop_working(lvd_worker *w, lvd_command *c) {
  ((model_world *)c->argument)->stopped[w->index] = true;
  w->ending = true;
}
static void tell_to_stop(model_world *m, uint32_t worker) {
  lvd_command *c = &m->bye[worker];
  c->run = stop_working;
  c->soon = m->source_stuck;
  c->argument = m;
  lvd_worker_command(&m->worker[worker], c);
}

static void report_running(model_world *m) {
  lvd_store_relaxed_u32(&m->said, 1);
  lvd_os_wake(&m->said);
}

static lvd_run_result source_run(lvd_actor *self) {
  model_world *m = world_of(self);
  if (m->source_busy) {
    report_running(m);
    for (lvd_worker *w = lvd_os_self(); m->source_stuck && !w->ending; lvd_os_relax())
      lvd_worker_run_safe_commands(w);
    while (!lvd_should_yield(self)) lvd_os_relax();
    m->put++;
    return LVD_RUN_YIELD;
  }
  while (m->put < m->count) {
    if (lvd_room(&m->out, 1) < 1) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (m->put == 1 && m->move_to < WORKERS)
      lvd_app_retarget(&m->app, &m->entity[SINK], m->move_to);
    LVD_PUT(&m->out, uint32_t, 100 + m->put);
    m->put++;
    lvd_push(&m->out);
  }
  done_here(m);
  return m->source_ends ? LVD_RUN_DONE : LVD_RUN_WAIT;
}

static lvd_run_result sink_run(lvd_actor *self) {
  model_world *m = world_of(self);
  if (m->sink_refuses) return LVD_RUN_WAIT;
  if (m->sink_says) {
    report_running(m);
    m->got++;
    return LVD_RUN_WAIT;
  }
  while (lvd_elements(&m->in, 1) >= 1) {
    if (LVD_GET(&m->in, uint32_t) != 100 + m->got) m->wrong++;
    m->got++;
    lvd_pop(&m->in);
  }
  if (m->got == m->count) {
    done_here(m);
    if (m->last_ends) return LVD_RUN_DONE;
    if (m->sink_stops) {
      lvd_worker *w = lvd_os_self();
      w->ending = true;
      tell_to_stop(m, WORKERS - 1 - w->index);
    }
  }
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

void model_late(uint32_t ns);

static const lvd_port_class port = {"X", 4};
static const lvd_actor_class classes[ENTITIES] = {
    {.name = "source", .outputs = 1, .output = &port, .run = source_run},
    {.name = "sink", .inputs = 1, .input = &port, .run = sink_run}};
/* The same without channels: no barrier of theirs comes after what they do. */
static const lvd_actor_class bare[ENTITIES] = {{.name = "source", .run = source_run},
                                               {.name = "sink", .run = sink_run}};
static const lvd_actor_desc descs[ENTITIES] = {{.name = "source", .cls = &classes[0]},
                                               {.name = "sink", .cls = &classes[1]}};
static const lvd_network network = {
    .abi_version = LVD_ABI_VERSION, .name = "model", .actors = ENTITIES, .actor = descs};

static void *lines(size_t size) {
  size = (size + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
  return memset(aligned_alloc(LVD_CACHE_LINE, size), 0, size);
}

static void place(model_world *m, uint32_t i, uint32_t worker) {
  lvd_entity *e = &m->entity[i];
  e->waiter.wake = lvd_entity_wake;
  e->worker.word = e->target.word = worker;
  e->state.word = LVD_IDLE;
  e->slot = i;
  e->level = LEVEL;
  e->initialised = true;
  e->app = &m->app;
  e->name = classes[i].name;
  e->actor.state = m;
  e->actor.cls = &classes[i];
  e->actor.fired = &m->fired[i];
  e->actor.yield = &m->worker[worker].yield;
  m->entities[i] = e;
}

/* `capacity` elements; `source`, `sink`: the workers they are on. */
model_world *model_make(uint32_t fenced, uint32_t capacity, uint32_t count, uint32_t source,
                        uint32_t sink) {
  model_late(0);
  model_world *m = lines(sizeof *m);
  m->count = count;
  m->last_ends = true;
  m->move_to = WORKERS;
  m->rt.options.no_spin = true;
  m->rt.workers = m->rt.available_count = WORKERS;
  m->rt.worker = m->worker;
  m->rt.slot = m->slot;
  m->rt.entity = m->entities;
  m->rt.fenced = fenced;
  m->rt.reapers_idle.word = 1; /* a reaper counts as idle, so none is started */
  m->app.rt = &m->rt;
  m->app.net = &network;
  m->app.entity = m->entity;
  m->app.share = m->share;
  m->app.phase.word = LVD_PHASE_RUNNING;
  m->app.live.word = 1; /* as while it is being started; model_let_rest takes it away */
  for (uint32_t i = 0; i < WORKERS; i++) {
    lvd_inbox_init(&m->worker[i].inbox);
    m->worker[i].rt = &m->rt;
    m->worker[i].index = i;
    m->worker[i].pending_parks = m->pending_parks[i];
    m->share[i].app = &m->app;
  }
  place(m, SOURCE, source);
  place(m, SINK, sink);
  uint32_t slots = 1;
  while (slots < capacity) slots *= 2;
  lvd_channel *ch = lines(lvd_channel_header_size(1));
  lvd_channel_init(ch, lines(slots * 4), 4, slots, capacity, 1, 0);
  m->peers[0] = &m->entity[SINK].waiter;
  lvd_producer_attach(&m->out, ch, m->peers, fenced);
  lvd_consumer_attach(&m->in, ch, 0, &m->entity[SOURCE].waiter, fenced);
  m->entity[SOURCE].actor.out = &m->out;
  m->entity[SINK].actor.in = &m->in;
  return m;
}
void model_free(model_world *m) {
  free(m->out.data);
  free(m->in.channel);
  free(m);
}
void *model_channel_at(model_world *m) { return m->in.channel; }
size_t model_channel_size(void) { return lvd_channel_header_size(1); }
void *model_ring_at(model_world *m) { return m->out.data; }
size_t model_ring_size(model_world *m) { return (m->out.mask + 1) * 4u; }
size_t model_size(void) { return sizeof(model_world); }

void model_move_sink(model_world *m, uint32_t to) { m->move_to = to; }
void model_for_ever(model_world *m, uint32_t source_ends) {
  m->last_ends = false;
  m->source_ends = source_ends;
}
void model_sink_stops(model_world *m) {
  m->last_ends = false;
  m->sink_stops = true;
}
void model_sink_refuses(model_world *m) { m->sink_refuses = true; }
uint32_t model_outcome(model_world *m) { return lvd_load_acquire_u32(&m->app.outcome) - 1; }
/* Only worker 0 works. */
void model_alone(model_world *m) { m->rt.workers = 1; }
/* The program's thread is at the source's or the sink's end of the channel. */
void model_outside(model_world *m, uint32_t i) {
  lvd_wait_point_init(&m->wait_point, 0);
  if (i == SOURCE)
    m->out.self = m->in.peer = &m->wait_point.waiter;
  else
    m->in.self = m->peers[0] = &m->wait_point.waiter;
}
uint32_t model_got(model_world *m) { return m->got; }
uint32_t model_wrong(model_world *m) { return m->wrong; }
uint32_t model_phase(model_world *m) { return lvd_load_acquire_u32(&m->app.phase); }

/* As lvd_app_start does it. */
void model_wake(model_world *m, uint32_t i) { lvd_entity_wake(&m->entity[i].waiter); }
void model_let_rest(model_world *m) {
  if (lvd_add_acq_rel_u32(&m->app.live, UINT32_MAX) == 1) lvd_app_check_quiescent(&m->app);
}

void model_work(model_world *m, uint32_t worker) { lvd_worker_main(&m->worker[worker]); }

/* What the program does at its end. */
uint32_t model_put(model_world *m, uint32_t v) {
  lvd_status status = lvd_wait_room(&m->out, 1, -1);
  if (status != LVD_OK) return status;
  LVD_PUT(&m->out, uint32_t, v);
  lvd_push(&m->out);
  return LVD_OK;
}
uint32_t model_get(model_world *m, uint32_t *v) {
  lvd_status status = lvd_wait_elements(&m->in, 1, -1);
  if (status != LVD_OK) return status;
  *v = LVD_GET(&m->in, uint32_t);
  lvd_pop(&m->in);
  return LVD_OK;
}
void model_end(model_world *m) { lvd_producer_close(&m->out, LVD_OK); }

/* Sleeps, as the reaper does, until the application has begun to end. */
void model_keep(model_world *m) {
  while (lvd_load_acquire_u32(&m->rt.reaper_work) == 0) lvd_os_wait(&m->rt.reaper_work, 0, -1);
}
/* How many have stopped. */
uint32_t model_stop(model_world *m) {
  for (uint32_t i = 0; i < m->rt.workers; i++) tell_to_stop(m, i);
  for (uint32_t i = 0; i < m->rt.workers; i++) lvd_command_done(&m->bye[i], -1);
  return m->stopped[0] + m->stopped[1];
}
/* The same by polling: the caller is never woken. */
uint32_t model_stop_late(model_world *m) {
  model_late(1);
  tell_to_stop(m, 0);
  while (!lvd_command_done(&m->bye[0], 1)) lvd_os_relax();
  return m->stopped[0];
}

/* ---- pausing ------------------------------------------------------------------------------- */

void model_is_busy(model_world *m) {
  m->source_busy = true;
  m->entity[SOURCE].actor.cls = &bare[SOURCE];
}
void model_is_stuck(model_world *m) {
  model_is_busy(m);
  m->source_stuck = true;
}
/* The sink only says that it has run; something of the application has been on its worker before.
 */
void model_says(model_world *m) {
  m->sink_says = true;
  m->entity[SINK].actor.cls = &bare[SINK];
  lvd_store_relaxed_u32(&m->share[m->entity[SINK].worker.word].known, 1);
}
void model_await_said(model_world *m) {
  while (!lvd_load_relaxed_u32(&m->said)) lvd_os_wait(&m->said, 0, -1);
}
uint32_t model_pause(model_world *m) { return lvd_app_pause(&m->app); }
uint32_t model_resume(model_world *m) { return lvd_app_resume(&m->app); }
/* What the source has put. The caller must be ordered after the last put. */
uint32_t model_put_so_far(model_world *m) { return m->put; }

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_ended(void) { return LVD_E_EOF; }
uint32_t model_status_fault(void) { return LVD_E_FAULT; }
uint32_t model_status_deadlock(void) { return LVD_E_DEADLOCK; }
