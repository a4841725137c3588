/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fibers for the checker: one or two workers with the runtime's own loop, and fibers on real stacks,
 * that wait on streams, events and each other. Threads of the program are the check's. What
 * runtime.c and app.c would set up is set up here by hand. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "src/stream.h"

enum { WORKERS = 2, FIBERS = 3, EVENTS = 2, BLOCKS = 16, CHECKER_STACK = 1 << 17 };

typedef struct model_world {
  lvd_runtime rt;
  lvd_worker worker[2 * WORKERS];
  lvd_entity *unsettled[WORKERS][FIBERS];
  lvd_slot slot[FIBERS];
  lvd_entity *entities[FIBERS];
  lvd_app app;
  lvd_app_share share[2 * WORKERS];
  lvd_event event[EVENTS];
  lvd_stream *stream;
  lvd_fiber *fiber[FIBERS]; /* in the order of their start */
  uint32_t fibers;
  /* What the fibers do. */
  uint32_t count;         /* elements in all */
  uint32_t left[WORKERS]; /* fibers there, until the worker ends; the worker's */
  uint32_t told;          /* written without any order, before something is said */
  uint32_t got, wrong, data;
  uint32_t status[FIBERS]; /* what the last wait of each said; the fiber's */
  uint32_t put[FIBERS];
  bool ends_by_command;
  lvd_command bye[WORKERS];
} model_world;

/* ---- the port ------------------------------------------------------------------------------ */

static struct {
  void *p;
  size_t size;
} block[BLOCKS];
static uint32_t blocks;
static bool membarrier;
static uint64_t now;
static unsigned char *stacks;

static size_t whole_lines(size_t size) { return (size + LVD_LINE - 1) / LVD_LINE * LVD_LINE; }

void *lvd_port_alloc(size_t size) {
  size = whole_lines(size);
  if (blocks == BLOCKS) abort();
  block[blocks].size = size;
  return block[blocks++].p = memset(aligned_alloc(LVD_LINE, size), 0, size);
}
void lvd_port_free(void *p, size_t size) { (void)p, (void)size; } /* all of it by model_make */
size_t lvd_port_ring_unit(void) { return 4; }
lvd_status lvd_port_rings_alloc(lvd_port_rings *rings, uint32_t count, const size_t *size,
                                void **ring) {
  if (count != 1) abort();
  rings->size = *size;
  *ring = rings->base = lvd_port_alloc(*size);
  return LVD_OK;
}
void lvd_port_rings_free(lvd_port_rings *rings) { (void)rings; }
bool lvd_port_barrier_prepare(void) { return membarrier; }

/* Stacks are made once. The fibers that lie at their ends are new each time. */
size_t lvd_port_guard_size(void) { return 4096; }
lvd_status lvd_port_stacks_alloc(uint32_t count, size_t size, size_t guard, void **out) {
  if (size != CHECKER_STACK) abort();
  size_t stride = guard + size;
  if (!stacks) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    stacks = mmap(NULL, count * stride, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (uint32_t i = 0; i < FIBERS; i++) mprotect(stacks + i * stride, guard, PROT_NONE);
  }
  for (uint32_t i = 0; i < FIBERS; i++) memset(stacks + (i + 1) * stride - 4096, 0, 4096);
  *out = stacks;
  return LVD_OK;
}
void lvd_port_stacks_free(void *base, size_t size) { (void)base, (void)size; }

/* Time stands still until a check says how late it is. */
uint64_t lvd_port_ticks(void) { return now; }
void model_late(uint32_t ticks) { now = ticks; }

/* ---- what no check has --------------------------------------------------------------------- */

bool lvd_port_thread_urgent(void) { return true; }
lvd_status lvd_urgent_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent) {
  (void)rt, (void)worker, (void)urgent;
  return LVD_E_SYSTEM;
}
lvd_status lvd_app_load(lvd_runtime *rt, const lvd_network *net, const lvd_app_options *options,
                        lvd_app **out, char *diagnostic, size_t size) {
  (void)rt, (void)net, (void)options, (void)out, (void)diagnostic, (void)size;
  return LVD_E_MEMORY;
}
bool lvd_app_faulted(const lvd_app *app) { return app == NULL; }
bool lvd_fibers_in_vain(lvd_app *app) { return app == NULL; }
bool lvd_streams_await_threads(lvd_app *app) { return app == NULL; }
void lvd_fibers_story(lvd_app *app) { (void)app; }
bool lvd_shared_claim(lvd_shared_stream *ss, bool is_sender) { return ss && is_sender; }
lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender) {
  return (void)ss, (void)sender, NULL;
}
void lvd_shared_free(lvd_shared_stream *ss) { (void)ss; }

/* ---- fibers -------------------------------------------------------------------------------- */

static model_world *world;

static uint32_t put_one(model_world *m, uint32_t v) {
  /* Not by lvd_stream_put, which looks at the handle before it asks whose it is. */
  lvd_status status = lvd_stream_wait_room(m->stream, 1, -1);
  if (status != LVD_OK) return status;
  *(uint32_t *)lvd_put_span(&m->stream->put) = v;
  lvd_put_done(&m->stream->put, 1);
  lvd_stream_push(m->stream);
  return LVD_OK;
}
static uint32_t get_one(model_world *m, int64_t timeout_ns) {
  lvd_status status = lvd_stream_wait_elements(m->stream, 1, timeout_ns);
  if (status != LVD_OK) return status;
  if (*(const uint32_t *)lvd_get_span(&m->stream->get) != 100 + m->got) m->wrong++;
  m->got++;
  lvd_get_done(&m->stream->get, 1);
  lvd_stream_pop(m->stream);
  return LVD_OK;
}

static uint32_t puts_all(model_world *m) {
  uint32_t status = LVD_OK;
  for (uint32_t i = 0; i < m->count && status == LVD_OK; i++) status = put_one(m, 100 + i);
  return status;
}
static uint32_t gets_all(model_world *m) {
  uint32_t status = LVD_OK;
  while (m->got < m->count && status == LVD_OK) status = get_one(m, -1);
  return status;
}
/* Until the stream ends. */
static uint32_t gets_to_end(model_world *m) {
  uint32_t status = LVD_OK;
  while (status == LVD_OK) status = get_one(m, -1);
  return status;
}
/* Puts fewer than the receiver's threshold, then waits for its word. */
static uint32_t puts_and_waits(model_world *m) {
  puts_all(m);
  return lvd_event_wait(&m->event[0], NULL, -1);
}
static uint32_t gets_and_says(model_world *m) {
  gets_all(m);
  return lvd_event_set(&m->event[0], 7);
}
static uint32_t waits(model_world *m) {
  lvd_status status = lvd_event_wait(&m->event[0], &m->data, -1);
  if (status == LVD_OK && !m->told) m->wrong++;
  return status;
}
static uint32_t says(model_world *m) {
  m->told = 1;
  return lvd_event_set(&m->event[0], 7);
}
static uint32_t passes_on(model_world *m) {
  lvd_status status = lvd_event_wait(&m->event[0], NULL, -1);
  if (status == LVD_OK) lvd_event_set(&m->event[1], 8);
  return status;
}
static uint32_t waits_behind(model_world *m) { return lvd_event_wait(&m->event[1], &m->data, -1); }
/* Only the first event says that something was told. */
static uint32_t waits_for_any(model_world *m) {
  lvd_want want[EVENTS] = {{.event = &m->event[0]}, {.event = &m->event[1]}};
  lvd_status status = lvd_wait_any(want, EVENTS, -1, &m->data);
  if (status == LVD_OK && m->data == 0 && !m->told) m->wrong++;
  return status;
}
/* Frees some of the room that the sender waits for, then waits for its word. */
static uint32_t gets_and_waits(model_world *m) {
  uint32_t status = get_one(m, -1);
  return status == LVD_OK ? lvd_event_wait(&m->event[0], NULL, -1) : status;
}
static uint32_t puts_and_says(model_world *m) {
  put_one(m, 100 + m->count);
  return lvd_event_set(&m->event[0], 7);
}
/* Nothing may be told before it has returned. */
static uint32_t waits_untold(model_world *m) {
  if (m->told) m->wrong++;
  lvd_status status = lvd_event_wait(&m->event[0], NULL, -1);
  if (m->told) m->wrong++;
  return status;
}
static uint32_t tells(model_world *m) {
  m->told = 1;
  return LVD_OK;
}
static uint32_t joins(model_world *m) {
  lvd_status status = lvd_fiber_join(m->fiber[0], -1);
  if (!m->told) m->wrong++;
  return status;
}
static uint32_t gets_in_time(model_world *m) {
  uint32_t status = get_one(m, 10);
  return status == LVD_E_TIME ? get_one(m, -1) : status;
}
static uint32_t waits_through(model_world *m) {
  lvd_fiber *f = lvd_fiber_self();
  lvd_fiber_wait_through(f, &f->unblocked);
  if (!m->told) m->wrong++;
  return LVD_OK;
}
/* Takes the sender's end if nobody has it, and gives it up. */
static uint32_t takes_an_end(model_world *m) {
  uint32_t status = put_one(m, 100);
  if (status == LVD_OK) lvd_stream_give_up(m->stream);
  return status;
}
static uint32_t closes_an_end(model_world *m) {
  uint32_t status = put_one(m, 100);
  if (status == LVD_OK) lvd_stream_close(m->stream);
  return status;
}

static uint32_t (*const role[])(model_world *) = {
    puts_all,      gets_all,       gets_to_end,   puts_and_waits, gets_and_says,
    waits,         says,           passes_on,     waits_behind,   waits_for_any,
    tells,         joins,          gets_in_time,  waits_through,  takes_an_end,
    closes_an_end, gets_and_waits, puts_and_says, waits_untold};

typedef struct part {
  uint32_t role, number;
} part;
static part parts[FIBERS];

static void play(void *argument) {
  const part *p = argument;
  model_world *m = world;
  m->status[p->number] = role[p->role](m);
  lvd_worker *w = lvd_port_self();
  if (!m->ends_by_command && --m->left[w->index] == 0) w->ending = true;
}

/* ---- what a check does --------------------------------------------------------------------- */

void model_contexts_forget(void);

model_world *model_make(uint32_t fenced, uint32_t workers, uint32_t capacity, uint32_t threshold,
                        uint32_t count) {
  static const lvd_network none = {.layout = LVD_LAYOUT, .name = "model"};
  for (uint32_t i = 0; i < blocks; i++) free(block[i].p);
  blocks = 0;
  now = 0;
  membarrier = !fenced;
  memset(lvd_threads, 0, sizeof lvd_threads); /* the streams of the last time had ends there */
  model_contexts_forget();
  model_world *m = world = lvd_port_alloc(sizeof *m);
  m->count = count;
  m->rt.options.no_spin = true;
  m->rt.options.entities = FIBERS;
  m->rt.workers = m->rt.given_count = workers;
  m->rt.worker = m->worker;
  m->rt.slot = m->slot;
  m->rt.entity = m->entities;
  m->rt.fenced = fenced;
  m->app.rt = &m->rt;
  m->app.net = &none;
  m->app.share = m->share;
  m->app.phase.word = LVD_PHASE_RUNNING;
  m->app.live.word = 1; /* it does not come to rest by itself */
  for (uint32_t i = 0; i < workers; i++) {
    lvd_inbox_init(&m->worker[i].inbox);
    m->worker[i].rt = &m->rt;
    m->worker[i].index = i;
    m->worker[i].unsettled = m->unsettled[i];
    m->worker[i].given.word = m->worker[i].runs.word = 1;
    m->share[i].app = &m->app;
  }
  for (uint32_t i = 0; i < EVENTS; i++) {
    lvd_event_init(&m->event[i]);
    m->event[i].sleeper.spin_us = 0;
  }
  if (capacity) {
    lvd_stream_options o = {.elem_size = 4, .capacity = capacity, .threshold = threshold};
    if (lvd_stream_create(&m->app, &o, &m->stream) != LVD_OK) abort();
  }
  return m;
}

/* Starts a fiber; how that went. */
uint32_t model_fiber(model_world *m, uint32_t what, uint32_t worker) {
  uint32_t n = m->fibers++;
  parts[n] = (part){what, n};
  lvd_fiber_options o = {.place = LVD_WORKER(worker), .stack = CHECKER_STACK};
  return lvd_fiber_start(&m->app, play, &parts[n], &o, &m->fiber[n]);
}
/* The stacks are there before anybody watches. */
void model_stock(model_world *m) {
  lvd_fiber *f;
  if (lvd_fiber_take(&m->rt, 17, &f) == LVD_OK) lvd_fiber_put_back(&m->rt, f);
}
/* So many fibers are on a worker until it ends. */
void model_stays(model_world *m, uint32_t worker, uint32_t fibers) { m->left[worker] = fibers; }
void model_ends_by_command(model_world *m) { m->ends_by_command = true; }

uint32_t model_blocks(void) { return blocks; }
void *model_block(uint32_t i) { return block[i].p; }
size_t model_block_size(uint32_t i) { return block[i].size; }
uint32_t model_places(model_world *m) {
  uint32_t n = 0;
  while (n < FIBERS && m->entities[n]) n++;
  return n;
}
void *model_place(model_world *m, uint32_t i) { return m->entities[i]; }
size_t model_place_size(void) { return sizeof(lvd_fiber); }

void model_work(model_world *m, uint32_t worker) { lvd_worker_main(&m->worker[worker]); }

static void end_worker(lvd_worker *w, lvd_command *c) { (void)c, w->ending = true; }
void model_stop(model_world *m) {
  for (uint32_t i = 0; i < m->rt.workers; i++) {
    m->bye[i].run = end_worker;
    lvd_worker_command(&m->worker[i], &m->bye[i]);
  }
}
void model_hurry(model_world *m, uint32_t worker) { lvd_worker_ring(&m->worker[worker]); }

uint32_t model_join(model_world *m, uint32_t fiber) { return lvd_fiber_join(m->fiber[fiber], -1); }
void model_cancel(model_world *m, uint32_t fiber) { lvd_fiber_cancel(m->fiber[fiber]); }
uint32_t model_set(model_world *m, uint32_t event, uint32_t data) {
  return lvd_event_set(&m->event[event], data);
}
uint32_t model_wait(model_world *m, uint32_t event, uint32_t *data) {
  return lvd_event_wait(&m->event[event], data, -1);
}
void model_tell(model_world *m) { m->told = 1; }
void model_unblock(model_world *m, uint32_t fiber) {
  lvd_event_set(&m->fiber[fiber]->unblocked, 1);
}
uint32_t model_put(model_world *m, uint32_t v) { return put_one(m, v); }
uint32_t model_get(model_world *m) { return get_one(m, -1); }
void model_move_to(model_world *m, uint32_t fiber, uint32_t worker) {
  lvd_app_retarget(&m->app, &m->fiber[fiber]->entity, worker);
}
/* As the keeper ends an application, which no worker has been asked about yet. */
void model_end(model_world *m, uint32_t why) {
  lvd_app_end(&m->app, (lvd_status)why);
  lvd_fibers_end(&m->app);
}
/* The stream is full, of `count`. */
void model_fill(model_world *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    if (lvd_room(&m->stream->put, 1) < 1) abort();
    LVD_PUT(&m->stream->put, uint32_t, 100 + i);
    lvd_push(&m->stream->put);
  }
}

uint32_t model_told(model_world *m) { return m->told; }
uint32_t model_got(model_world *m) { return m->got; }
uint32_t model_wrong(model_world *m) { return m->wrong; }
uint32_t model_data(model_world *m) { return m->data; }
uint32_t model_status(model_world *m, uint32_t fiber) { return m->status[fiber]; }
uint32_t model_sent(model_world *m) { return (uint32_t)m->stream->put.put; }
uint32_t model_timers(model_world *m, uint32_t worker) { return m->worker[worker].timers != NULL; }

/* Statuses by name, whatever their numbers are. */
uint32_t model_status_state(void) { return LVD_E_STATE; }
uint32_t model_status_ended(void) { return LVD_E_ENDED; }
uint32_t model_status_cancelled(void) { return LVD_E_CANCELLED; }
uint32_t model_status_deadlock(void) { return LVD_E_DEADLOCK; }
uint32_t model_status_stopped(void) { return LVD_E_STOPPED; }
