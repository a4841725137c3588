/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Whole applications for the checker: the runtime's own creation, loading, starting, ending, moving
 * and unloading. Of the operating system there is here what those ask for: memory, which the
 * checker watches until it is freed, and threads, which a check runs (model_thread). */
#include <stdlib.h>

#include "arena.h"
#include "src/sched/sched.h"

/* ---- the port ------------------------------------------------------------------------------ */

/* What the checks' own threads do is watched, as the runtime's memory is. */
typedef struct stage {
  lvd_os_mutex lock;
  uint32_t count;
} stage;

static bool membarrier;
static stage *on_stage;

uint32_t lvd_os_usable_cpus(int32_t *cpu, uint32_t max) {
  (void)cpu, (void)max;
  return 1;
}
uint32_t lvd_os_cpu_quota(const char *root) { return (void)root, 0; }
bool lvd_os_barrier_prepare(void) { return membarrier; }
size_t lvd_os_escape_size(void) { return 1; }
/* Counts, under a lock. */
void model_count(void) {
  lvd_os_lock(&on_stage->lock);
  on_stage->count++;
  lvd_os_unlock(&on_stage->lock);
}
/* The same if the lock is free. */
void model_count_if_free(void) {
  if (!lvd_os_try_lock(&on_stage->lock)) return;
  on_stage->count++;
  lvd_os_unlock(&on_stage->lock);
}
uint32_t model_counted(void) { return on_stage->count; }

/* ---- actors -------------------------------------------------------------------------------- */

typedef struct tally {
  uint32_t runs, got, wrong, ended;
} tally;

static const lvd_port_class port = {"X", 4};

/* Has nothing to wait for, and nothing to do. */
static lvd_run_result once_run(lvd_actor *self) {
  ((tally *)self->state)->runs++;
  return LVD_RUN_DONE;
}
/* Gets what the program puts: 100, 101, ... */
static lvd_run_result sink_run(lvd_actor *self) {
  tally *t = self->state;
  t->runs++;
  while (lvd_elements(&self->in[0], 1) >= 1) {
    if (LVD_GET(&self->in[0], uint32_t) != 100 + t->got) t->wrong++;
    t->got++;
    lvd_pop(&self->in[0]);
  }
  if (lvd_ended(&self->in[0]) != LVD_OK) {
    t->ended = true;
    return LVD_RUN_DONE;
  }
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
/* Works for as long as it is let. */
static lvd_run_result busy_run(lvd_actor *self) {
  ((tally *)self->state)->runs++;
  while (!lvd_should_yield(self)) lvd_os_relax();
  return LVD_RUN_YIELD;
}
/* Puts two elements. */
static lvd_run_result source_run(lvd_actor *self) {
  tally *t = self->state;
  t->runs++;
  for (; t->got < 2; t->got++) {
    if (lvd_room(&self->out[0], 1) < 1) {
      lvd_await_room(self, 0, 1);
      break;
    }
    LVD_PUT(&self->out[0], uint32_t, 100 + t->got);
  }
  return LVD_RUN_WAIT;
}

/* Puts two elements on its first output, then one on its second. */
static lvd_run_result puts_run(lvd_actor *self) {
  tally *t = self->state;
  t->runs++;
  for (; t->got < 3; t->got++) {
    uint32_t i = t->got == 2;
    if (lvd_room(&self->out[i], 1) < 1) {
      lvd_await_room(self, i, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(&self->out[i], uint32_t, 100 + t->got);
  }
  return LVD_RUN_DONE;
}
/* Takes the one of its second input, then the two of its first. */
static lvd_run_result takes_run(lvd_actor *self) {
  static const uint32_t expected[] = {102, 100, 101};
  tally *t = self->state;
  t->runs++;
  for (; t->got < 3; t->got++) {
    uint32_t i = t->got == 0;
    if (lvd_elements(&self->in[i], 1) < 1) {
      lvd_await_elements(self, i, 1);
      return LVD_RUN_WAIT;
    }
    if (LVD_GET(&self->in[i], uint32_t) != expected[t->got]) t->wrong++;
  }
  return LVD_RUN_DONE;
}

static const lvd_actor_class once_class = {
    .name = "once", .state_size = sizeof(tally), .run = once_run};
static const lvd_actor_class busy_class = {
    .name = "busy", .state_size = sizeof(tally), .run = busy_run};
static const lvd_actor_class sink_class = {
    .name = "sink", .state_size = sizeof(tally), .inputs = 1, .input = &port, .run = sink_run};
static const lvd_actor_class source_class = {.name = "source",
                                             .state_size = sizeof(tally),
                                             .outputs = 1,
                                             .output = &port,
                                             .run = source_run};

static const lvd_port_class two_ports[] = {{"X", 4}, {"Y", 4}};
static const lvd_actor_class puts_class = {.name = "puts",
                                           .state_size = sizeof(tally),
                                           .outputs = 2,
                                           .output = two_ports,
                                           .run = puts_run};
static const lvd_actor_class takes_class = {.name = "takes",
                                            .state_size = sizeof(tally),
                                            .inputs = 2,
                                            .input = two_ports,
                                            .run = takes_run};

static const lvd_actor_desc once[] = {{.name = "once", .cls = &once_class}};
static const lvd_actor_desc busy[] = {{.name = "busy", .cls = &busy_class}};
static const lvd_actor_desc source[] = {{.name = "source", .cls = &source_class}};
static const lvd_actor_desc sinks[] = {{.name = "sink", .cls = &sink_class},
                                       {.name = "other", .cls = &sink_class}};
static const lvd_actor_desc crossing[] = {{.name = "puts", .cls = &puts_class},
                                          {.name = "takes", .cls = &takes_class}};
static const lvd_port_ref to_x[] = {{1, 0}}, to_y[] = {{1, 1}};
/* The first channel is too small. */
static const lvd_channel_desc crossed[] = {{{0, 0}, 1, to_x, 4, 1, 1, 0},
                                           {{0, 1}, 1, to_y, 4, 1, 1, 0}};
static const lvd_port_ref to_sink[] = {{0, 0}}, to_other[] = {{1, 0}},
                          to_program[] = {{LVD_EXTERNAL, 0}};
static const lvd_channel_desc from_program[] = {{{LVD_EXTERNAL, 0}, 1, to_sink, 4, 2, 1, 0},
                                                {{LVD_EXTERNAL, 1}, 1, to_other, 4, 2, 1, 0}};
static const lvd_channel_desc for_program[] = {{{0, 0}, 1, to_program, 4, 1, 1, 0}};

/* What a check asks for by number. */
static const lvd_network network[] = {
    {LVD_ABI_VERSION, "once", 1, 0, once, NULL},
    {LVD_ABI_VERSION, "busy", 1, 0, busy, NULL},
    {LVD_ABI_VERSION, "sink", 1, 1, sinks, from_program},
    {LVD_ABI_VERSION, "sinks", 2, 2, sinks, from_program},
    {LVD_ABI_VERSION, "source", 1, 1, source, for_program},
    {LVD_ABI_VERSION, "crossing", 2, 2, crossing, crossed},
};

/* ---- what a check does --------------------------------------------------------------------- */

typedef struct model_app {
  lvd_runtime *rt;
  lvd_app *app;
} model_app;

static model_app made;

model_app *model_make(uint32_t fenced, uint32_t workers, uint32_t net) {
  model_arena_reset();
  membarrier = !fenced;
  on_stage = lvd_os_alloc(sizeof *on_stage);
  lvd_runtime_options options = {.workers = workers, .no_spin = true, .entities = 2};
  if (lvd_runtime_create(&options, &made.rt) != LVD_OK) abort();
  /* Every actor on the first worker. */
  static const uint32_t first[2];
  lvd_app_options app_options = {.placement = first};
  if (lvd_app_load(made.rt, &network[net], &app_options, &made.app, NULL, 0) != LVD_OK) abort();
  return &made;
}
uint32_t model_start(model_app *m) { return lvd_app_start(m->app); }
uint32_t model_stop(model_app *m) { return lvd_app_stop(m->app); }
uint32_t model_pause(model_app *m) { return lvd_app_pause(m->app); }
uint32_t model_resume(model_app *m) { return lvd_app_resume(m->app); }
uint32_t model_wait(model_app *m) { return lvd_app_wait(m->app, -1); }
uint32_t model_ended(model_app *m) { return lvd_app_get_state(m->app) == LVD_APP_ENDED; }
uint32_t model_migrate(model_app *m, uint32_t actor, uint32_t worker) {
  return lvd_app_move(m->app, actor, worker);
}
/* The worker that runs the actor. The caller must be ordered after its last move. */
uint32_t model_worker(model_app *m, uint32_t actor) {
  return lvd_load_relaxed_u32(&m->app->entity[actor].worker);
}
void model_fail(model_app *m) { lvd_app_fail(m->app, "as asked"); }
/* What the report says, if there is one; else a kind that no fault has. */
uint32_t model_fault(model_app *m) {
  return lvd_app_faulted(m->app) ? (uint32_t)m->app->fault.kind : UINT32_MAX;
}
uint32_t model_take(model_app *m, uint32_t worker) { return lvd_core_reserve(m->rt, worker); }
uint32_t model_give(model_app *m, uint32_t worker) { return lvd_core_release(m->rt, worker); }
void model_destroy(model_app *m) { lvd_runtime_destroy(m->rt); }

static const tally *tally_of(model_app *m, uint32_t actor) {
  return m->app->entity[actor].actor.state;
}
uint32_t model_runs(model_app *m, uint32_t actor) { return tally_of(m, actor)->runs; }
uint32_t model_got(model_app *m, uint32_t actor) { return tally_of(m, actor)->got; }
uint32_t model_wrong(model_app *m, uint32_t actor) { return tally_of(m, actor)->wrong; }
uint32_t model_told(model_app *m, uint32_t actor) { return tally_of(m, actor)->ended; }

/* At the program's ends. */
uint32_t model_put(model_app *m, uint32_t channel, uint32_t v) {
  lvd_producer *p = lvd_app_producer(m->app, channel);
  lvd_status status = lvd_wait_room(p, 1, -1);
  if (status != LVD_OK) return status;
  LVD_PUT(p, uint32_t, v);
  lvd_push(p);
  return LVD_OK;
}
void model_end(model_app *m, uint32_t channel) {
  lvd_producer_close(lvd_app_producer(m->app, channel), LVD_OK);
}
uint32_t model_get(model_app *m, uint32_t *v) {
  lvd_consumer *c = lvd_app_consumer(m->app, 0, 0);
  lvd_status status = lvd_wait_elements(c, 1, -1);
  if (status != LVD_OK) return status;
  *v = LVD_GET(c, uint32_t);
  lvd_pop(c);
  return LVD_OK;
}
void model_leave(model_app *m) { lvd_consumer_close(lvd_app_consumer(m->app, 0, 0)); }

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_state(void) { return LVD_E_STATE; }
uint32_t model_status_stopped(void) { return LVD_E_STOPPED; }
uint32_t model_status_peer(void) { return LVD_E_PEER_GONE; }
uint32_t model_status_fault(void) { return LVD_E_FAULT; }
uint32_t model_fault_native(void) { return LVD_FAULT_NATIVE; }
uint32_t model_status_ended(void) { return LVD_E_EOF; }
