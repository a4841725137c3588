/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The world of world.h: what runtime.c and app.c would set up is set up here by hand. */
#include "world.h"
#include "src/app/app.h"
#include "src/blocking/blocking.h"
#include "src/deadlock/wait_report.h"
#include "src/rpc/unit.h"
#include "src/stream/stream.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define WEAK __attribute__((weak)) /* some suites have the thing itself */

model_world *model_the_world;

/* ---- the port ------------------------------------------------------------------------------ */

static bool membarrier;
static unsigned char *stacks;

bool lvd_os_barrier_prepare(void) { return membarrier; }

/* Stacks are made once. The fibers that lie at their ends are new each time. */
size_t lvd_os_guard_size(void) { return 4096; }
lvd_status lvd_os_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out) {
  if (size != (size_t)1 << STACK_LOG2) abort();
  size_t stride = guard + size;
  if (!stacks) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    stacks = mmap(NULL, count * stride, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (uint32_t i = 0; i < FIBERS; i++) mprotect(stacks + i * stride, guard, PROT_NONE);
  }
  for (uint32_t i = 0; i < FIBERS; i++) memset(stacks + (i + 1) * stride - 8192, 0, 8192);
  *out = stacks;
  return LVD_OK;
}
void lvd_os_stacks_free(void *base, size_t size) { (void)base, (void)size; }
void lvd_os_stack_shrink(void *low, size_t size, size_t keep) { (void)low, (void)size, (void)keep; }

/* ---- what no check has --------------------------------------------------------------------- */

bool lvd_os_thread_raise_priority(void) { return true; }
bool lvd_os_thread_set_realtime(uint32_t priority) {
  (void)priority;
  return true;
}
bool lvd_os_realtime_allowed(uint32_t priority) { return lvd_os_thread_set_realtime(priority); }
WEAK lvd_status lvd_priority_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent) {
  (void)rt, (void)worker, (void)urgent;
  return LVD_E_SYSTEM;
}
WEAK lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net,
                             const lvd_app_options *options, lvd_app **out, char *diagnostic,
                             size_t size) {
  (void)rt, (void)net, (void)options, (void)out, (void)diagnostic, (void)size;
  return LVD_E_MEMORY;
}
bool lvd_app_faulted(const lvd_app *app) { return app == NULL; }
/* Called at quiescence: nothing runs, and all that was done is visible. */
bool lvd_app_is_deadlocked(lvd_app *app) {
  model_world *m = model_the_world;
  for (uint32_t i = 0; i < m->fibers; i++) {
    uint32_t state = lvd_load_relaxed_u32(&m->fiber[i]->entity.state);
    if (state != LVD_IDLE && state != LVD_FINISHED) m->wrong++;
  }
  m->judged = 1 + m->told;
  return app == NULL;
}
bool lvd_app_awaits_outside(lvd_app *app) { return app == NULL; }
void lvd_app_save_wait_report(lvd_app *app) { (void)app; }
bool lvd_shared_claim(lvd_shared_stream *ss, bool is_sender) { return ss && is_sender; }
lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender) {
  return (void)ss, (void)sender, NULL;
}
void lvd_shared_free(lvd_shared_stream *ss) { (void)ss; }
void lvd_calls_recall(lvd_app *app) { (void)app; }
void lvd_inputs_end(lvd_app *app) { (void)app; }
void lvd_fd_watches_withdraw(lvd_entity *e) { (void)e; }
void lvd_fd_watches_keep_last(lvd_entity *e) { (void)e; }
WEAK void lvd_calls_free(lvd_runtime *rt) { (void)rt; }

/* ---- fibers -------------------------------------------------------------------------------- */

typedef struct part {
  uint32_t role, number;
} part;
static part parts[FIBERS];

static void play(void *argument) {
  const part *p = argument;
  model_world *m = model_the_world;
  m->status[p->number] = model_role[p->role](m);
  lvd_worker *w = lvd_os_self();
  if (!m->ends_by_command && --m->left[w->index] == 0) w->ending = true;
}

/* ---- what a check does --------------------------------------------------------------------- */

void model_contexts_forget(void);
void model_late(uint32_t ns);

model_world *model_make(uint32_t fenced, uint32_t workers, uint32_t capacity, uint32_t threshold,
                        uint32_t count) {
  static const lvd_network none = {.abi_version = LVD_ABI_VERSION, .name = "model"};
  model_arena_reset();
  model_contexts_forget();
  model_late(0);
  membarrier = !fenced;
  model_world *m = model_the_world = lvd_os_alloc(sizeof *m);
  m->count = count;
  m->rt.options.no_spin = true;
  m->rt.options.entities = FIBERS;
  m->rt.workers = m->rt.available_count = workers;
  m->rt.worker = m->worker;
  m->rt.command = m->command;
  m->rt.slot = m->slot;
  m->rt.entity = m->entities;
  m->rt.fenced = fenced;
  m->rt.apps = &m->app;
  m->app.rt = &m->rt;
  m->app.net = &none;
  m->app.share = m->share;
  m->app.phase.word = LVD_PHASE_RUNNING;
  m->app.live.word = 1; /* it does not come to rest before model_let_rest */
  for (uint32_t i = 0; i < 2 * workers; i++) m->share[i].app = &m->app;
  for (uint32_t i = 0; i < workers; i++) {
    lvd_inbox_init(&m->worker[i].inbox);
    m->worker[i].rt = &m->rt;
    m->worker[i].index = i;
    m->worker[i].cpu = (int32_t)i;
    m->worker[i].pending_parks = m->pending_parks[i];
    m->worker[i].available.word = m->worker[i].runs.word = 1;
  }
  for (uint32_t i = 0; i < EVENTS; i++) {
    lvd_event_init(&m->event[i]);
    m->event[i].wait_point.spin_us = 0;
  }
  if (capacity) {
    lvd_stream_options o = {.elem_size = 4, .capacity = capacity, .threshold = threshold};
    if (lvd_stream_create(&m->app, &o, &m->stream) != LVD_OK) abort();
  }
  /* Allocates the stacks before the exploration begins. */
  lvd_fiber *f;
  if (lvd_fiber_take(&m->rt, STACK_LOG2, &f) == LVD_OK) lvd_fiber_put_back(&m->rt, f);
  model_begin(m);
  return m;
}

/* Starts fiber `n`; how that went. */
uint32_t model_start_as(model_world *m, uint32_t n, uint32_t what, uint32_t worker, bool urgent) {
  parts[n] = (part){what, n};
  lvd_fiber_options o = {
      .place = LVD_WORKER(worker), .stack = (size_t)1 << STACK_LOG2, .urgent = urgent};
  return lvd_fiber_start(&m->app, play, &parts[n], &o, &m->fiber[n]);
}
uint32_t model_fiber(model_world *m, uint32_t what, uint32_t worker) {
  return model_start_as(m, m->fibers++, what, worker, false);
}
/* `fibers` fibers are on a worker until it ends. */
void model_stays(model_world *m, uint32_t worker, uint32_t fibers) { m->left[worker] = fibers; }
void model_ends_by_command(model_world *m) { m->ends_by_command = true; }

uint32_t model_places(model_world *m) {
  uint32_t n = 0;
  while (n < FIBERS && m->entities[n]) n++;
  return n;
}
void *model_place(model_world *m, uint32_t i) { return m->entities[i]; }
size_t model_place_size(void) { return sizeof(lvd_fiber); }

void model_work(model_world *m, uint32_t worker) { lvd_worker_main(&m->worker[worker]); }

static void end_worker(lvd_worker *w, lvd_command *c) { (void)c, w->ending = true; }
static void stop_from(model_world *m, uint32_t first) {
  for (uint32_t i = first; i < lvd_worker_total(&m->rt); i++) {
    if (!lvd_load_acquire_u32(&m->worker[i].runs)) continue;
    m->bye[i].run = end_worker;
    lvd_worker_command(&m->worker[i], &m->bye[i]);
  }
}
void model_stop(model_world *m) { stop_from(m, 0); }
void model_stop_urgent(model_world *m) { stop_from(m, m->rt.workers); }

/* As lvd_app_start does it at last; then the application may come to rest. */
void model_let_rest(model_world *m) {
  if (lvd_add_acq_rel_u32(&m->app.live, UINT32_MAX) == 1) lvd_app_check_quiescent(&m->app);
}
/* Sleeps, as the reaper does, until it has begun to end. */
void model_await_end(model_world *m) {
  while (lvd_load_acquire_u32(&m->rt.reaper_work) == 0) lvd_os_wait(&m->rt.reaper_work, 0, -1);
}
void model_is_open(model_world *m) { m->app.open.word = 1; }
void model_keep(model_world *m) { lvd_reaper_main(&m->rt); }
void model_end_reaper(model_world *m) {
  lvd_store_relaxed_u32(&m->rt.reaper_ending, 1);
  lvd_reaper_wake(&m->rt);
}
uint32_t model_app_wait(model_world *m) { return lvd_app_wait(&m->app, -1); }

uint32_t model_join(model_world *m, uint32_t fiber) { return lvd_fiber_join(m->fiber[fiber], -1); }
void model_cancel(model_world *m, uint32_t fiber) { lvd_fiber_cancel(m->fiber[fiber]); }
uint32_t model_set(model_world *m, uint32_t event, uint32_t data) {
  return lvd_event_set(&m->event[event], data);
}
uint32_t model_wait(model_world *m, uint32_t event, uint32_t *data) {
  return lvd_event_wait(&m->event[event], data, -1);
}
void model_tell(model_world *m) { m->told = 1; }
uint32_t model_told(model_world *m) { return m->told; }
uint32_t model_got(model_world *m) { return m->got; }
uint32_t model_wrong(model_world *m) { return m->wrong; }
uint32_t model_data(model_world *m) { return m->data; }
uint32_t model_status(model_world *m, uint32_t fiber) { return m->status[fiber]; }

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_state(void) { return LVD_E_STATE; }
uint32_t model_status_ended(void) { return LVD_E_EOF; }
uint32_t model_status_cancelled(void) { return LVD_E_CANCELLED; }
uint32_t model_status_deadlock(void) { return LVD_E_DEADLOCK; }
uint32_t model_status_stopped(void) { return LVD_E_STOPPED; }
uint32_t model_status_time(void) { return LVD_E_TIMEOUT; }
uint32_t model_status_fault(void) { return LVD_E_FAULT; }
