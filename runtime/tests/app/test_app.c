/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Applications: data arrives complete and in order for any network, workers and sizes. */
#include "../support/test.h"

#include <time.h>

void test_app_pipeline(void) {
  static const uint32_t capacities[] = {1, 2, 3, 64, 1000, 0};
  for (uint32_t workers = 1; workers <= 3; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    for (size_t i = 0; i < COUNT(capacities); i++) {
      uint32_t count = capacities[i] && capacities[i] < 64 ? SCALED(2000) : SCALED(1000000);
      sink s = {0};
      builder b;
      lvd_app *app;
      pipeline(&b, 3, &count, &s, capacities[i]);
      app = app_loaded(rt, &b);
      CHECK_EQ(lvd_app_get_state(app), LVD_APP_LOADED);
      CHECK_EQ(lvd_app_start(app), LVD_OK);
      CHECK_EQ(lvd_app_start(app), LVD_E_STATE);
      CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
      CHECK_EQ(lvd_app_get_state(app), LVD_APP_ENDED);
      lvd_app_unload(app);
      check_pipeline(&s, count, 3);
    }
    lvd_runtime_destroy(rt);
  }
}

void test_app_many_instances(void) {
  enum { APPS = 40 };
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = SCALED(50000);
  static sink s[APPS];
  static builder b[APPS];
  lvd_app *app[APPS];
  for (int i = 0; i < APPS; i++) {
    pipeline(&b[i], 4, &count, &s[i], 0);
    CHECK_EQ(lvd_app_load(rt, &b[i].net, NULL, &app[i], NULL, 0), LVD_OK);
  }
  for (int i = 0; i < APPS; i++) CHECK_EQ(lvd_app_start(app[i]), LVD_OK);
  for (int i = 0; i < APPS; i++) CHECK_EQ(lvd_app_wait(app[i], -1), LVD_OK);
  for (int i = 0; i < APPS; i++) {
    lvd_app_unload(app[i]);
    check_pipeline(&s[i], count, 4);
  }
  lvd_runtime_destroy(rt);
}

/* Chains with random splits and joins, sizes, placements and thresholds; the sum is checked. */
static void random_networks(const lvd_runtime_options *how, uint64_t seed) {
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(how, &rt), LVD_OK);
  for (int round = 0; round < 60; round++) {
    builder b;
    sink s = {0};
    uint32_t count = 1 + (uint32_t)(next_random(&seed) % 5000), placement[64];
    uint64_t factor = 1, offset = 0; /* of the value at the end of the chain */
    builder_init(&b, "random");
    uint32_t last = builder_actor(&b, "source", &source_class, &count);
    int stages = 1 + (int)(next_random(&seed) % 8);
    for (int i = 0; i < stages; i++) {
#define SIZE (1 + (uint32_t)(next_random(&seed) % 200))
      if (next_random(&seed) % 3 == 0) { /* split, add on one side, join */
        uint32_t add = builder_actor(&b, "add", &add_class, NULL);
        uint32_t sum = builder_actor(&b, "sum", &sum_class, NULL);
        builder_connect(&b, last, 0, add, 0, SIZE);
        builder_connect(&b, last, 0, sum, 0, SIZE);
        builder_connect(&b, add, 0, sum, 1, SIZE);
        last = sum;
        factor *= 2;
        offset = 2 * offset + 1;
      } else {
        uint32_t add = builder_actor(&b, "add", &add_class, NULL);
        builder_connect(&b, last, 0, add, 0, SIZE);
        last = add;
        offset += 1;
      }
    }
    builder_connect(&b, last, 0, builder_actor(&b, "sink", &sink_class, &s), 0, SIZE);
    for (uint32_t i = 0; i < b.net.actors; i++) placement[i] = (uint32_t)(next_random(&seed) % 3);
    for (uint32_t i = 0; i < b.net.channels; i++)
      b.channel[i].threshold = (uint32_t)(next_random(&seed) % 300);
    lvd_app *app;
    lvd_app_options options = {.placement = placement};
    CHECK_EQ(lvd_app_load(rt, &b.net, &options, &app, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
    app_ended(app, LVD_OK);
    CHECK_EQ(s.count, count);
    uint64_t want = 0;
    for (uint32_t i = 0; i < count; i++) want += (uint32_t)(i * factor + offset);
    CHECK_EQ(s.sum, want);
  }
  lvd_runtime_destroy(rt);
}

void test_app_random_networks(void) {
  random_networks(&(lvd_runtime_options){.workers = 3}, 88172645463325252u);
  random_networks(&(lvd_runtime_options){.workers = 3, .round_robin = true}, 2463534242u);
}

void test_app_broadcast(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = SCALED(300000);
  sink s[3] = {{0}};
  builder b;
  builder_init(&b, "broadcast");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  static const char *const names[] = {"s0", "s1", "s2"};
  for (int i = 0; i < 3; i++)
    builder_connect(&b, source, 0, builder_actor(&b, names[i], &sink_class, &s[i]), 0, 100);
  lvd_app *app = app_begun(rt, &b);
  app_ended(app, LVD_OK);
  for (int i = 0; i < 3; i++) check_pipeline(&s[i], count, 0);
  lvd_runtime_destroy(rt);
}

/* ---- feedback: a running sum through a channel that returns to its actor --------------------- */

static lvd_run_result accumulate_run(lvd_actor *self) {
  bool *primed = self->state;
  lvd_consumer *a = &self->in[0], *back = &self->in[1];
  lvd_producer *x = &self->out[0];
  if (!*primed) {
    LVD_PUT(x, uint32_t, 0);
    lvd_push(x);
    *primed = true;
  }
  for (;;) {
    if (!lvd_elements(a, 1)) {
      if (lvd_ended(a) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (!lvd_elements(back, 1)) {
      lvd_await_elements(self, 1, 1);
      return LVD_RUN_WAIT;
    }
    if (!lvd_room(x, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    uint32_t sum = LVD_GET(back, uint32_t) + LVD_GET(a, uint32_t) + 1;
    LVD_PUT(x, uint32_t, sum);
    self->fired[0]++;
  }
}

void test_app_feedback(void) {
  static const lvd_port_class in[] = {{"A", 4}, {"Back", 4}}, out[] = {{"X", 4}};
  static const lvd_action_class action[] = {{"add", NULL, 1}};
  static const lvd_actor_class accumulate = {.name = "accumulate",
                                             .state_size = 1,
                                             .inputs = 2,
                                             .outputs = 1,
                                             .actions = 1,
                                             .input = in,
                                             .output = out,
                                             .action = action,
                                             .run = accumulate_run};
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    uint32_t count = 3000;
    sink s = {0};
    builder b;
    builder_init(&b, "feedback");
    uint32_t source = builder_actor(&b, "source", &source_class, &count);
    uint32_t acc = builder_actor(&b, "accumulate", &accumulate, NULL);
    uint32_t sk = builder_actor(&b, "sink", &sink_class, &s);
    builder_connect(&b, source, 0, acc, 0, 5);
    builder_connect(&b, acc, 0, acc, 1, 2);
    builder_connect(&b, acc, 0, sk, 0, 2);
    lvd_app *app = app_begun(rt, &b);
    app_ended(app, LVD_OK);
    CHECK_EQ(s.count, count + 1);
    CHECK_EQ(s.last, count * (count + 1) / 2);
    lvd_runtime_destroy(rt);
  }
}

/* ---- an actor that waits for elements of a stream that has ended, as compiled CAL does ------- */

static uint32_t deaf_calls;
static lvd_run_result deaf_run(lvd_actor *self) {
  deaf_calls++;
  lvd_get_done(&self->in[0], lvd_elements(&self->in[0], 1));
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

void test_app_awaits_after_end(void) {
  static const lvd_port_class in[] = {{"A", 4}};
  static const lvd_actor_class deaf = {.name = "deaf", .inputs = 1, .input = in, .run = deaf_run};
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    uint32_t count = 10;
    builder b;
    lvd_app *app;
    builder_init(&b, "deaf");
    uint32_t source = builder_actor(&b, "source", &source_class, &count);
    builder_connect(&b, source, 0, builder_actor(&b, "deaf", &deaf, NULL), 0, 16);
    deaf_calls = 0;
    app = app_begun(rt, &b);
    CHECK_EQ(lvd_app_wait(app, 5000 * MS_NS), LVD_OK); /* it becomes quiescent */
    CHECK(deaf_calls <= 6);
    lvd_app_unload(app);
    lvd_runtime_destroy(rt);
  }
}

/* ---- priorities: of two ready actors the one of higher priority runs first ------------------- */

static char order[3];
static lvd_a32 order_count;
static lvd_run_result note_run(lvd_actor *self) {
  order[lvd_add_relaxed_u32(&order_count, 1)] = *(const char *)self->params;
  return LVD_RUN_DONE;
}

void test_app_priorities(void) {
  static const lvd_actor_class note = {.name = "note", .run = note_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_desc actor[] = {
      {"low", &note, "c", -2}, {"usual", &note, "b", 0}, {"high", &note, "a", 3}};
  lvd_network net = {LVD_ABI_VERSION, "priorities", 3, 0, actor, NULL};
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_pause(app), LVD_E_STATE);
  /* A busy application keeps the worker's highest level occupied. */
  uint32_t spin = UINT32_MAX;
  builder b;
  lvd_app *busy;
  sink s = {0};
  pipeline(&b, 1, &spin, &s, 0);
  CHECK_EQ(lvd_app_load(rt, &b.net, &(lvd_app_options){.priority = 3}, &busy, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(busy), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  while (!lvd_load_relaxed_u32(&order_count)) sleep_ms(1);
  CHECK_EQ(lvd_app_wait(app, 100 * MS_NS),
           LVD_E_TIMEOUT); /* the two of lower priority have to wait */
  CHECK_EQ(lvd_load_relaxed_u32(&order_count), 1);
  lvd_app_unload(busy);
  app_ended(app, LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&order_count), 3);
  CHECK(memcmp(order, "abc", 3) == 0);
  lvd_runtime_destroy(rt);
}

static lvd_run_result always_run(lvd_actor *self) {
  (void)self;
  return LVD_RUN_YIELD;
}

/* An actor that never gets to run can still be moved and stopped. */
void test_app_behind_a_priority(void) {
  static const lvd_actor_class note = {.name = "note", .run = note_run};
  lvd_runtime *rt = runtime_of(2);
  static const lvd_actor_class always = {.name = "always", .run = always_run};
  lvd_actor_desc one[] = {{"one", &always, NULL, 0}};
  lvd_network spins = {LVD_ABI_VERSION, "busy", 1, 0, one, NULL};
  lvd_app *busy, *moved, *stopped;
  CHECK_EQ(lvd_app_load(rt, &spins, &(lvd_app_options){.priority = 3}, &busy, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_move(busy, 0, 0), LVD_OK);
  lvd_actor_desc actor[] = {{"one", &note, "a", 0}};
  lvd_network net = {LVD_ABI_VERSION, "behind", 1, 0, actor, NULL};
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &moved, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &stopped, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_move(moved, 0, 0), LVD_OK);
  CHECK_EQ(lvd_app_move(stopped, 0, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(busy), LVD_OK);
  sleep_ms(10);
  CHECK_EQ(lvd_app_start(moved), LVD_OK);
  CHECK_EQ(lvd_app_start(stopped), LVD_OK);
  CHECK_EQ(lvd_app_wait(moved, 100 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_move(moved, 0, 1), LVD_OK);
  app_ended(moved, LVD_OK);
  CHECK_EQ(lvd_app_wait(stopped, 0), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_stop(stopped), LVD_OK);
  app_ended(stopped, LVD_E_STOPPED);
  lvd_app_unload(busy);
  lvd_runtime_destroy(rt);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static void refuse(lvd_runtime *rt, const builder *b, lvd_status status, const char *words) {
  char why[256];
  lvd_app *app = (lvd_app *)1;
  CHECK_EQ(lvd_app_load(rt, &b->net, NULL, &app, why, sizeof why), status);
  CHECK(app == NULL);
  if (!strstr(why, words)) {
    fprintf(stderr, "\"%s\" does not say \"%s\"\n", why, words);
    exit(1);
  }
}

void test_app_load_refuses(void) {
  lvd_runtime *rt = runtime_of(1);
  uint32_t count = 1;
  builder b;
  lvd_app *app;
  pipeline(&b, 1, &count, NULL, 0);
  b.net.abi_version = 99;
  refuse(rt, &b, LVD_E_ABI, "layout 99");
  pipeline(&b, 1, &count, NULL, 0);
  b.net.channels = 1;
  refuse(rt, &b, LVD_E_ARGUMENT, "output X of a0 is not connected");
  pipeline(&b, 1, &count, NULL, 0);
  b.channel[1].from = b.channel[0].from;
  refuse(rt, &b, LVD_E_ARGUMENT, "connected twice");
  pipeline(&b, 1, &count, NULL, 0);
  b.channel[1].elem_size = 8;
  refuse(rt, &b, LVD_E_ARGUMENT, "8 bytes");
  pipeline(&b, 1, &count, NULL, 0);
  b.channel[1].from.actor = 7;
  refuse(rt, &b, LVD_E_ARGUMENT, "no actor 7");
  pipeline(&b, 1, &count, NULL, 0);
  b.channel[1].from.port = 5;
  refuse(rt, &b, LVD_E_ARGUMENT, "no output 5");
  pipeline(&b, 1, &count, NULL, 0);
  b.channel[1].capacity = UINT32_MAX;
  refuse(rt, &b, LVD_E_ARGUMENT, "too large");
  pipeline(&b, 1, &count, NULL, 0);
  b.actor[1].cls = NULL;
  refuse(rt, &b, LVD_E_ARGUMENT, "actor 1");
  pipeline(&b, 1, &count, NULL, 0);
  uint32_t placement[] = {0, 0, 9};
  char why[200];
  CHECK_EQ(
      lvd_app_load(rt, &b.net, &(lvd_app_options){.placement = placement}, &app, why, sizeof why),
      LVD_E_ARGUMENT);
  CHECK(strstr(why, "worker 9"));
  CHECK_EQ(lvd_app_load(rt, NULL, NULL, &app, NULL, 0), LVD_E_ARGUMENT);
  lvd_runtime_destroy(rt);

  /* The table of entities is full, then has room again. */
  lvd_runtime_options few = {.workers = 1, .entities = 5};
  CHECK_EQ(lvd_runtime_create(&few, &rt), LVD_OK);
  pipeline(&b, 1, &count, NULL, 0);
  app = app_loaded(rt, &b);
  refuse(rt, &b, LVD_E_LIMIT, "entities");
  lvd_app_unload(app);
  for (int i = 0; i < 10; i++) {
    app = app_loaded(rt, &b);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- idle time, counters --------------------------------------------------------------------- */

/* A sleep in progress counts, and the counter never decreases. */
void test_idle_sleep_is_counted(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_worker_counters before[2], now;
  sleep_ms(50);
  for (uint32_t w = 0; w < 2; w++) CHECK_EQ(lvd_worker_counters_read(rt, w, &before[w]), LVD_OK);
  sleep_ms(100);
  for (uint32_t w = 0; w < 2; w++) {
    CHECK_EQ(lvd_worker_counters_read(rt, w, &now), LVD_OK);
    CHECK(now.sleep_ns - before[w].sleep_ns > 50000000);
    CHECK(now.sleep_ns < 10000000000);
  }
  uint32_t count = SCALED(200000);
  sink s = {0};
  builder b;
  pipeline(&b, 3, &count, &s, 64);
  lvd_app *app = app_begun(rt, &b);
  while (lvd_app_wait(app, 0) == LVD_E_TIMEOUT)
    for (uint32_t w = 0; w < 2; w++) {
      CHECK_EQ(lvd_worker_counters_read(rt, w, &now), LVD_OK);
      CHECK(now.sleep_ns >= before[w].sleep_ns);
      before[w] = now;
    }
  app_ended(app, LVD_OK);
  lvd_runtime_destroy(rt);
}

void test_idle_uses_no_cpu(void) {
  enum { APPS = 100 };
  lvd_runtime *rt = runtime_of(2);
  static builder b[APPS];
  static const lvd_port_ref to[] = {{LVD_EXTERNAL, 0}};
  for (int i = 0; i < APPS; i++) {
    builder_init(&b[i], "idle");
    uint32_t add = builder_actor(&b[i], "add", &add_class, NULL);
    builder_connect(&b[i], LVD_EXTERNAL, 0, add, 0, 10);
    b[i].channel[b[i].net.channels++] = (lvd_channel_desc){{add, 0}, 1, to, 4, 7, 0, 0};
    lvd_app *app;
    CHECK_EQ(lvd_app_load(rt, &b[i].net, NULL, &app, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
  }
  sleep_ms(100);
  uint64_t used;
  int tries = 0;
  do { /* on a busy machine they may not have gone idle before */
    uint64_t before = cpu_ns();
    sleep_ms(1000);
    used = cpu_ns() - before;
    printf("%llu ns in a second\n", (unsigned long long)used);
  } while (used >= 1000000 && ++tries < 5);
  CHECK(used < 1000000);
  lvd_runtime_destroy(rt);
}

/* An observer of what runs may sleep as long as no worker is awake. */
static void count_wakeup(void *count) { lvd_add_relaxed_u32(count, 1); }

void test_idle_reports_wake_ups(void) {
  enum { TIMES = 3 };
  lvd_a32 woken;
  lvd_store_relaxed_u32(&woken, 0);
  lvd_runtime *rt;
  const lvd_runtime_options options = {.workers = 2, .on_wakeup = count_wakeup, .argument = &woken};
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  for (int i = 0; i < TIMES; i++) {
    while (!lvd_runtime_is_idle(rt)) sleep_ms(1);
    uint32_t before = lvd_load_relaxed_u32(&woken), count = 10;
    sleep_ms(50);
    CHECK_EQ(lvd_load_relaxed_u32(&woken), before); /* no worker wakes by itself */
    sink s = {0};
    builder b;
    pipeline(&b, 2, &count, &s, 33);
    app_ended(app_begun(rt, &b), LVD_OK);
    while (lvd_load_relaxed_u32(&woken) == before) sleep_ms(1);
  }
  lvd_runtime_destroy(rt);
}

void test_counters(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = SCALED(100000);
  sink s = {0};
  builder b;
  lvd_app *app;
  pipeline(&b, 2, &count, &s, 33);
  app = app_begun(rt, &b);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_actor_counters a[4];
  lvd_channel_counters c[3];
  uint32_t actors = 4, channels = 3;
  CHECK_EQ(lvd_app_counters(app, a, &actors, c, &channels), LVD_OK);
  CHECK_EQ(actors, 4);
  CHECK_EQ(channels, 3);
  for (uint32_t i = 0; i < 4; i++) {
    CHECK_EQ(a[i].firings, count);
    CHECK(a[i].activations > 0 && a[i].busy_ns > 0 && a[i].longest_ns <= a[i].busy_ns);
    CHECK_EQ(a[i].runs_ns, 0);
  }
  for (uint32_t i = 0; i < 3; i++) {
    CHECK_EQ(c[i].capacity, 33);
    CHECK_EQ(c[i].fill, 0);
    CHECK_EQ(c[i].put, count);
    CHECK_EQ(c[i].got, count);
    CHECK_EQ(c[i].from.actor, i);
    CHECK_EQ(c[i].to.actor, i + 1);
  }
  actors = 1; /* room for one: returns how many there are */
  CHECK_EQ(lvd_app_counters(app, a, &actors, NULL, NULL), LVD_OK);
  CHECK_EQ(actors, 4);
  lvd_worker_counters w;
  CHECK_EQ(lvd_worker_counters_read(rt, 1, &w), LVD_OK);
  CHECK(w.available && w.activations > 0 && w.busy_ns > 0);
  CHECK_EQ(lvd_worker_counters_read(rt, 2, &w), LVD_E_ARGUMENT);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
