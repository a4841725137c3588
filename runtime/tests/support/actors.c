/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The actors of which the tests build networks. */
#include "test.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static const lvd_port_class in_port[] = {{"A", 4}, {"B", 4}};
static const lvd_port_class out_port[] = {{"X", 4}};
static const lvd_action_class one_action[] = {{"go", NULL, 1}};

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* A class with one action, and `...` its other members. */
#define CLASS(...)                                                                                 \
  {                                                                                                \
    .file = "actors.c", .actions = 1, .input = in_port, .output = out_port, .action = one_action,  \
    __VA_ARGS__                                                                                    \
  }

/* ---- source ------------------------------------------------------------------------------- */

static lvd_run_result source_run(lvd_actor *self) {
  uint32_t *next = self->state, count = *(const uint32_t *)self->params;
  lvd_producer *x = &self->out[0];
  while (*next < count) {
    uint32_t n = least(lvd_room(x, 1), count - *next);
    if (n == 0) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    n = least(n, 256);
    uint32_t *span = lvd_put_span(x);
    for (uint32_t i = 0; i < n; i++) span[i] = (*next)++;
    lvd_put_done(x, n);
    lvd_push(x);
    self->fired[0] += n;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  return LVD_RUN_DONE;
}
const lvd_actor_class source_class =
    CLASS(.name = "source", .state_size = 4, .outputs = 1, .run = source_run);

/* ---- add, slow ---------------------------------------------------------------------------- */

static lvd_run_result map(lvd_actor *self, bool slow) {
  uint32_t add = self->params ? *(const uint32_t *)self->params : 1;
  lvd_consumer *a = &self->in[0];
  lvd_producer *x = &self->out[0];
  for (;;) {
    uint32_t have = lvd_elements(a, 1), room = lvd_room(x, 1), n = least(have, room);
    if (have == 0) {
      if (lvd_ended(a) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (room == 0) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    n = least(n, slow ? 1 : 1024);
    const uint32_t *from = lvd_get_span(a);
    uint32_t *to = lvd_put_span(x);
    for (uint32_t i = 0; i < n; i++) to[i] = from[i] + add;
    lvd_get_done(a, n);
    lvd_put_done(x, n);
    self->fired[0] += n;
    if (slow) {
      struct timespec t0, t;
      clock_gettime(CLOCK_MONOTONIC, &t0);
      do clock_gettime(CLOCK_MONOTONIC, &t);
      while ((t.tv_sec - t0.tv_sec) * 1000000000 + t.tv_nsec - t0.tv_nsec < 50000);
    }
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
}
static lvd_run_result add_run(lvd_actor *self) { return map(self, false); }
static lvd_run_result slow_run(lvd_actor *self) { return map(self, true); }
const lvd_actor_class add_class = CLASS(.name = "add", .inputs = 1, .outputs = 1, .run = add_run);
const lvd_actor_class slow_class =
    CLASS(.name = "slow", .inputs = 1, .outputs = 1, .run = slow_run);

/* ---- sum of two --------------------------------------------------------------------------- */

static lvd_run_result sum_run(lvd_actor *self) {
  lvd_consumer *a = &self->in[0], *b = &self->in[1];
  lvd_producer *x = &self->out[0];
  for (;;) {
    if (!lvd_elements(a, 1)) {
      if (lvd_ended(a) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (!lvd_elements(b, 1)) {
      if (lvd_ended(b) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 1, 1);
      return LVD_RUN_WAIT;
    }
    if (!lvd_room(x, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    uint32_t left = LVD_GET(a, uint32_t), right = LVD_GET(b, uint32_t);
    LVD_PUT(x, uint32_t, left + right);
    self->fired[0]++;
  }
}
const lvd_actor_class sum_class = CLASS(.name = "sum", .inputs = 2, .outputs = 1, .run = sum_run);

/* ---- sink --------------------------------------------------------------------------------- */

static void sink_init(lvd_actor *self) { ((sink *)self->state)->in_order = true; }

static lvd_run_result sink_run(lvd_actor *self) {
  sink *s = self->state;
  lvd_consumer *a = &self->in[0];
  uint32_t n;
  while ((n = lvd_elements(a, 1))) {
    const uint32_t *span = lvd_get_span(a);
    for (uint32_t i = 0; i < n; i++) {
      if (s->count && span[i] <= s->last) s->in_order = false;
      s->last = span[i];
      s->sum += span[i];
      s->count++;
    }
    lvd_get_done(a, n);
    lvd_pop(a);
    self->fired[0] += n;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  if (lvd_ended(a) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
static void sink_end(lvd_actor *self) {
  if (self->params) *(sink *)(uintptr_t)self->params = *(sink *)self->state;
}
const lvd_actor_class sink_class = CLASS(.name = "sink", .state_size = sizeof(sink), .inputs = 1,
                                         .init = sink_init, .run = sink_run, .end = sink_end);

/* ---- networks, and what else tests share ----------------------------------------------------- */

void builder_init(builder *b, const char *name) {
  memset(b, 0, sizeof *b);
  b->net = (lvd_network){LVD_ABI_VERSION, name, 0, 0, b->actor, b->channel};
}

uint32_t builder_actor(builder *b, const char *name, const lvd_actor_class *cls,
                       const void *params) {
  b->actor[b->net.actors] = (lvd_actor_desc){name, cls, params, 0};
  return b->net.actors++;
}

/* A second connection from the same output makes it a broadcast; the connections must be
 * consecutive. */
void builder_connect(builder *b, uint32_t from, uint32_t out, uint32_t to, uint32_t in,
                     uint32_t capacity) {
  lvd_port_ref *ref = &b->to[b->tos++];
  *ref = (lvd_port_ref){to, in};
  lvd_channel_desc *last = b->net.channels ? &b->channel[b->net.channels - 1] : NULL;
  if (last && last->from.actor == from && last->from.port == out) {
    last->consumers++;
    return;
  }
  b->channel[b->net.channels++] = (lvd_channel_desc){{from, out}, 1, ref, 4, capacity, 0, 0};
}

void pipeline(builder *b, uint32_t adders, const uint32_t *count, sink *result, uint32_t capacity) {
  static const char *const names[] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7"};
  builder_init(b, "pipeline");
  uint32_t last = builder_actor(b, "source", &source_class, count);
  for (uint32_t i = 0; i < adders; i++) {
    uint32_t a = builder_actor(b, names[i % 8], &add_class, NULL);
    builder_connect(b, last, 0, a, 0, capacity);
    last = a;
  }
  builder_connect(b, last, 0, builder_actor(b, "sink", &sink_class, result), 0, capacity);
}

void check_pipeline(const sink *s, uint32_t count, uint32_t adders) {
  CHECK_EQ(s->count, count);
  CHECK(s->in_order);
  CHECK_EQ(s->sum, (uint64_t)count * (count - 1) / 2 + (uint64_t)adders * count);
}

lvd_runtime *runtime_of(uint32_t workers) {
  lvd_runtime *rt;
  lvd_runtime_options options = {.workers = workers};
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  return rt;
}

void go_down(int depth) {
  volatile char frame[4096];
  frame[0] = frame[4095] = (char)depth;
  if (depth >= 0) go_down(depth + 1);
  abort();
}

lvd_app *app_loaded(lvd_runtime *rt, const builder *b) {
  lvd_app *app;
  char why[256] = "";
  lvd_status status = lvd_app_load(rt, &b->net, NULL, &app, why, sizeof why);
  if (status != LVD_OK) fprintf(stderr, "%s: %s\n", b->net.name, why);
  CHECK_EQ(status, LVD_OK);
  return app;
}

lvd_app *app_begun(lvd_runtime *rt, const builder *b) {
  lvd_app *app = app_loaded(rt, b);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

lvd_app *app_begun_at(lvd_runtime *rt, const builder *b, uint32_t worker) {
  uint32_t placement[64];
  for (uint32_t i = 0; i < b->net.actors; i++) placement[i] = worker;
  lvd_app_options o = {.placement = placement};
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &b->net, &o, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

void app_ended(lvd_app *app, lvd_status outcome) {
  CHECK_EQ(lvd_app_wait(app, -1), outcome);
  lvd_app_unload(app);
}

uint64_t firings_of(lvd_app *app, uint32_t actor) {
  lvd_actor_counters c[64];
  uint32_t n = COUNT(c);
  CHECK_EQ(lvd_app_counters(app, c, &n, NULL, NULL), LVD_OK);
  CHECK(actor < n);
  return c[actor].firings;
}

void sleep_ms(int ms) {
  struct timespec t = {ms / 1000, ms % 1000 * 1000000L};
  nanosleep(&t, NULL);
}

static uint64_t time_of(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
uint64_t now_ns(void) { return time_of(CLOCK_MONOTONIC); }
uint32_t usable_cores(void) {
  cpu_set_t usable;
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (sched_getaffinity(0, sizeof usable, &usable)) return online > 1 ? (uint32_t)online : 1;
  return (uint32_t)CPU_COUNT(&usable);
}
uint64_t times_preempted(void) {
  struct rusage r;
  CHECK_EQ(getrusage(RUSAGE_SELF, &r), 0);
  return (uint64_t)r.ru_nivcsw;
}
uint64_t cpu_ns(void) { return time_of(CLOCK_PROCESS_CPUTIME_ID); }
