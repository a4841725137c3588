/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Growth of channels: an application that is deadlocked only because a channel is full continues,
 * with the results that it has with large channels. Covered: contents across a wrap of the ring,
 * broadcasts, one firing that needs more than the capacity, loops, two full outputs, several
 * cycles, the choice of the channel, fixed buffers, the memory limit, deadlocks that growth would
 * not resolve, ends of the program, pauses and upgrades meanwhile, and random networks. */
#include "../support/test.h"

enum { PORTS = 4, OPS = 48, ENDLESS = UINT32_MAX };

/* A Kahn process: it performs its operations in their order, each as one firing, for `rounds`
 * rounds. Those before `again` only in the first. */
typedef struct op {
  bool put; /* else take */
  uint32_t port, n;
} op;

typedef struct script {
  uint32_t ops, again, rounds;
  op op[OPS];
  uint64_t hash; /* of what it has taken */
  uint32_t done; /* rounds */
} script;

typedef struct position {
  uint32_t at, round;
  uint64_t hash;
} position;

static uint64_t mix(uint64_t hash, uint32_t v) { return (hash ^ v) * UINT64_C(0x100000001b3); }

static bool perform(lvd_actor *self, position *p, const op *o) {
  if (o->put) {
    lvd_producer *x = &self->out[o->port];
    if (lvd_room(x, o->n) < o->n) {
      lvd_await_room(self, o->port, o->n);
      return false;
    }
    for (uint32_t i = 0; i < o->n; i++)
      LVD_PUT(x, uint32_t, (uint32_t)(mix(p->hash, p->round * 1000 + p->at + i) >> 7));
    return true;
  }
  lvd_consumer *a = &self->in[o->port];
  if (lvd_elements(a, o->n) < o->n) {
    lvd_await_elements(self, o->port, o->n);
    return false;
  }
  for (uint32_t i = 0; i < o->n; i++) p->hash = mix(p->hash, LVD_GET(a, uint32_t));
  return true;
}

static lvd_run_result script_run(lvd_actor *self) {
  script *s = (script *)(uintptr_t)self->params;
  position *p = self->state;
  while (p->round < s->rounds) {
    for (; p->at < s->ops; p->at++) {
      if (!perform(self, p, &s->op[p->at])) return LVD_RUN_WAIT;
      self->fired[0]++;
    }
    p->at = s->again;
    p->round++;
    s->hash = p->hash;
    s->done = p->round;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  return LVD_RUN_DONE;
}

static const lvd_port_class ins[] = {{"A", 4}, {"B", 4}, {"C", 4}, {"D", 4}},
                            outs[] = {{"X", 4}, {"Y", 4}, {"Z", 4}, {"W", 4}};
static const lvd_action_class one_action[] = {{"go", NULL, 1}};

#define SCRIPT_CLASS(i, o)                                                                         \
  {                                                                                                \
    .name = "script", .file = "growth.c", .state_size = sizeof(position), .inputs = i,             \
    .outputs = o, .actions = 1, .input = ins, .output = outs, .action = one_action,                \
    .run = script_run                                                                              \
  }
#define ROW(i)                                                                                     \
  {                                                                                                \
    SCRIPT_CLASS(i, 0), SCRIPT_CLASS(i, 1), SCRIPT_CLASS(i, 2), SCRIPT_CLASS(i, 3),                \
        SCRIPT_CLASS(i, 4)                                                                         \
  }
static const lvd_actor_class script_class[PORTS + 1][PORTS + 1] = {ROW(0), ROW(1), ROW(2), ROW(3),
                                                                   ROW(4)};

static void add_ops(script *s, bool put, uint32_t port, uint32_t n, uint32_t times) {
  for (; times--; s->ops++) {
    CHECK(s->ops < OPS);
    s->op[s->ops] = (op){put, port, n};
  }
}

/* Puts ten elements on X, then ten on Y; the other end takes those of Y first. */
typedef struct crossing {
  script puts, takes;
} crossing;

static uint32_t add_crossing(builder *b, crossing *c, uint32_t rounds, uint32_t x, uint32_t y) {
  *c = (crossing){.puts = {.rounds = rounds}, .takes = {.rounds = rounds}};
  add_ops(&c->puts, true, 0, 1, 10);
  add_ops(&c->puts, true, 1, 1, 10);
  add_ops(&c->takes, false, 1, 1, 10);
  add_ops(&c->takes, false, 0, 1, 10);
  uint32_t puts =
      builder_actor(b, b->net.actors ? "puts 2" : "puts", &script_class[0][2], &c->puts);
  uint32_t takes =
      builder_actor(b, b->net.actors > 1 ? "takes 2" : "takes", &script_class[2][0], &c->takes);
  builder_connect(b, puts, 0, takes, 0, x);
  builder_connect(b, puts, 1, takes, 1, y);
  return puts;
}

static lvd_channel_counters channel_of(lvd_app *app, uint32_t i) {
  static lvd_channel_counters all[256];
  uint32_t n = 256;
  CHECK_EQ(lvd_app_counters(app, NULL, NULL, all, &n), LVD_OK);
  CHECK(i < n);
  return all[i];
}

static void check_capacity(lvd_app *app, uint32_t i, uint32_t capacity, uint32_t loaded) {
  lvd_channel_counters c = channel_of(app, i);
  CHECK_EQ(c.capacity, capacity);
  CHECK_EQ(c.loaded_capacity, loaded);
}

static lvd_app *begun(lvd_runtime *rt, const builder *b, const lvd_app_options *options) {
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &b->net, options, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  return app;
}

static void ends_with(lvd_app *app, lvd_status outcome) {
  lvd_status status = lvd_app_wait(app, 50000 * MS_NS);
  if (status != outcome) {
    char why[4000];
    lvd_app_wait_report(app, why, sizeof why);
    printf("%s", why);
  }
  CHECK_EQ(status, outcome);
}

void test_growth_resolves(void) {
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    static crossing c;
    builder b;
    builder_init(&b, "crossing");
    add_crossing(&b, &c, 100, 3, 3);
    lvd_app *app = app_begun(rt, &b);
    ends_with(app, LVD_OK);
    CHECK_EQ(c.takes.done, 100);
    check_capacity(app, 0, 12, 3);
    check_capacity(app, 1, 3, 3);
    CHECK_EQ(channel_of(app, 0).put, 1000);
    CHECK_EQ(channel_of(app, 0).got, 1000);
    CHECK_EQ(channel_of(app, 0).fill, 0);
    lvd_app_unload(app);
    lvd_runtime_destroy(rt);
  }
}

/* The ring is exchanged while its elements lie across its end, several times. */
void test_growth_contents(void) {
  enum { FIRST = 700, LOADED = 1000 };
  uint64_t expected = 0;
  for (uint32_t capacity = 1 << 20; capacity; capacity = capacity == LOADED ? 0 : LOADED) {
    lvd_runtime *rt = runtime_of(2);
    static script puts, takes;
    puts = (script){.rounds = 2}, takes = (script){.rounds = 2};
    add_ops(&puts, true, 0, FIRST, 1);
    add_ops(&puts, true, 0, 100, 25);
    add_ops(&puts, true, 1, 1, 1);
    add_ops(&takes, false, 0, FIRST, 1);
    add_ops(&takes, false, 1, 1, 1);
    add_ops(&takes, false, 0, 50, 28);
    add_ops(&takes, false, 0, 1100, 1);
    builder b;
    builder_init(&b, "contents");
    uint32_t from = builder_actor(&b, "puts", &script_class[0][2], &puts);
    uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
    builder_connect(&b, from, 0, to, 0, capacity);
    builder_connect(&b, from, 1, to, 1, 1);
    lvd_app *app = app_begun(rt, &b);
    ends_with(app, LVD_OK);
    uint64_t needed;
    CHECK_EQ(lvd_app_size(rt, &b.net, NULL, &needed, NULL, 0), LVD_OK);
    if (capacity != LOADED) expected = takes.hash;
    CHECK_EQ(takes.hash, expected);
    CHECK_EQ(takes.done, 2);
    check_capacity(app, 0, capacity == LOADED ? 4000 : capacity, capacity);
    /* The ring of the load is kept until the end; there is one more, of 4096 elements. */
    CHECK_EQ(lvd_app_memory(app), needed + (capacity == LOADED ? 4096 * 4 : 0));
    lvd_app_unload(app);
    lvd_runtime_destroy(rt);
  }
}

/* The channel grows for its slowest consumer; the other has read more. */
void test_growth_broadcast(void) {
  lvd_runtime *rt = runtime_of(2);
  static script puts, takes, other;
  puts = (script){.rounds = 50}, takes = (script){.rounds = 50}, other = (script){.rounds = 50};
  add_ops(&puts, true, 0, 1, 10);
  add_ops(&puts, true, 1, 1, 10);
  add_ops(&takes, false, 1, 1, 10);
  add_ops(&takes, false, 0, 1, 10);
  add_ops(&other, false, 0, 5, 2);
  builder b;
  builder_init(&b, "broadcast");
  uint32_t from = builder_actor(&b, "puts", &script_class[0][2], &puts);
  uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
  builder_connect(&b, from, 0, builder_actor(&b, "other", &script_class[1][0], &other), 0, 3);
  builder_connect(&b, from, 0, to, 0, 3);
  builder_connect(&b, from, 1, to, 1, 1);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_OK);
  CHECK_EQ(takes.done, 50);
  CHECK_EQ(other.done, 50);
  check_capacity(app, 0, 12, 3);
  check_capacity(app, 1, 12, 3);
  check_capacity(app, 2, 1, 1);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_growth_of_one_firing(void) {
  static const struct {
    uint32_t put, take, capacity;
  } cases[] = {{5000, 5000, 3}, {1, 5000, 3}, {5000, 1, 3}, {7, 7, 4}, {1 << 16, 1, 4096}};
  for (uint32_t i = 0; i < COUNT(cases); i++) {
    lvd_runtime *rt = runtime_of(2);
    static script puts, takes;
    uint32_t put = cases[i].put, take = cases[i].take, same = put == take;
    puts = (script){.rounds = same ? 20 : 2 * take},
    takes = (script){.rounds = same ? 20 : 2 * put};
    add_ops(&puts, true, 0, put, 1);
    add_ops(&takes, false, 0, take, 1);
    builder b;
    builder_init(&b, "one firing");
    uint32_t from = builder_actor(&b, "puts", &script_class[0][1], &puts);
    builder_connect(&b, from, 0, builder_actor(&b, "takes", &script_class[1][0], &takes), 0,
                    cases[i].capacity);
    lvd_app *app = app_begun(rt, &b);
    ends_with(app, LVD_OK);
    CHECK_EQ(takes.done, takes.rounds);
    CHECK(channel_of(app, 0).capacity >= (put > take ? put : take));
    lvd_app_unload(app);
    lvd_runtime_destroy(rt);
  }
}

void test_growth_self_loop(void) {
  lvd_runtime *rt = runtime_of(1);
  static script loop;
  loop = (script){.rounds = 20};
  add_ops(&loop, true, 0, 1, 10);
  add_ops(&loop, false, 0, 2, 5);
  builder b;
  builder_init(&b, "loop");
  uint32_t self = builder_actor(&b, "loop", &script_class[1][1], &loop);
  builder_connect(&b, self, 0, self, 0, 4);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_OK);
  CHECK_EQ(loop.done, 20);
  check_capacity(app, 0, 16, 4);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* Needs room on both outputs, and waits for both at once. */
static lvd_run_result pairs_run(lvd_actor *self) {
  uint32_t *next = self->state;
  for (; *next < 1000; ++*next) {
    bool full = false;
    for (uint32_t i = 0; i < 2; i++)
      if (!lvd_room(&self->out[i], 1)) {
        lvd_await_room(self, i, 1);
        full = true;
      }
    if (full) return LVD_RUN_WAIT;
    for (uint32_t i = 0; i < 2; i++) LVD_PUT(&self->out[i], uint32_t, *next);
  }
  return LVD_RUN_DONE;
}
void test_growth_two_ports(void) {
  static const lvd_actor_class pairs = {
      .name = "pairs", .state_size = 4, .outputs = 2, .output = outs, .run = pairs_run};
  lvd_runtime *rt = runtime_of(2);
  static script takes;
  takes = (script){.rounds = 100};
  add_ops(&takes, false, 0, 10, 1);
  add_ops(&takes, false, 1, 10, 1);
  builder b;
  builder_init(&b, "two ports");
  uint32_t from = builder_actor(&b, "pairs", &pairs, NULL);
  uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
  builder_connect(&b, from, 0, to, 0, 2);
  builder_connect(&b, from, 1, to, 1, 2);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_OK);
  CHECK_EQ(takes.done, 100);
  CHECK(channel_of(app, 0).capacity >= 10 && channel_of(app, 0).capacity <= 16);
  CHECK(channel_of(app, 1).capacity >= 10 && channel_of(app, 1).capacity <= 16);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_growth_several_cycles(void) {
  lvd_runtime *rt = runtime_of(2);
  static crossing one, two;
  builder b;
  builder_init(&b, "several");
  add_crossing(&b, &one, 30, 4, 1);
  add_crossing(&b, &two, 40, 2, 2);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_OK);
  CHECK_EQ(one.takes.done, 30);
  CHECK_EQ(two.takes.done, 40);
  check_capacity(app, 0, 16, 4);
  check_capacity(app, 1, 1, 1);
  check_capacity(app, 2, 16, 2);
  check_capacity(app, 3, 2, 2);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* Two actors that put ten elements each before they take any: both channels are full, and grow in
 * turn (X from 4 to 16, Y from 2 to 8) until one holds its ten. */
void test_growth_smallest(void) {
  lvd_runtime *rt = runtime_of(2);
  static script each[2];
  for (uint32_t i = 0; i < 2; i++) {
    each[i] = (script){.rounds = 10};
    add_ops(&each[i], true, 0, 1, 10);
    add_ops(&each[i], false, 0, 1, 10);
  }
  builder b;
  builder_init(&b, "smallest");
  uint32_t one = builder_actor(&b, "one", &script_class[1][1], &each[0]);
  uint32_t two = builder_actor(&b, "two", &script_class[1][1], &each[1]);
  builder_connect(&b, one, 0, two, 0, 4);
  builder_connect(&b, two, 0, one, 0, 2);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_OK);
  check_capacity(app, 0, 16, 4);
  check_capacity(app, 1, 8, 2);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void check_report(lvd_app *app, const char *words) {
  char why[4000];
  CHECK(lvd_app_wait_report(app, why, sizeof why) < sizeof why);
  if (!strstr(why, words)) printf("%s", why);
  CHECK(strstr(why, words));
}

void test_growth_is_fixed(void) {
  lvd_runtime *rt = runtime_of(2);
  static crossing c;
  builder b;
  builder_init(&b, "fixed");
  add_crossing(&b, &c, 10, 3, 3);
  lvd_app *app = begun(rt, &b, &(lvd_app_options){.fixed_buffers = true});
  ends_with(app, LVD_E_DEADLOCK);
  check_report(app, "in a cycle");
  check_report(app, "is full (3 of 3)");
  check_report(app, "the channel puts.X -> takes.A would have to grow from 3 elements to 6, and "
                    "buffers are fixed");
  check_capacity(app, 0, 3, 3);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* No capacity is enough: one puts without end, and the other waits for what never comes. */
void test_growth_limit(void) {
  lvd_runtime *rt = runtime_of(2);
  static script puts, takes;
  puts = (script){.rounds = ENDLESS}, takes = (script){.rounds = 1};
  add_ops(&puts, true, 0, 100, 32);
  add_ops(&takes, false, 1, 1, 1);
  builder b;
  builder_init(&b, "limit");
  uint32_t from = builder_actor(&b, "puts", &script_class[0][2], &puts);
  uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
  builder_connect(&b, from, 0, to, 0, 128);
  builder_connect(&b, from, 1, to, 1, 128);
  uint64_t size;
  CHECK_EQ(lvd_app_size(rt, &b.net, NULL, &size, NULL, 0), LVD_OK);
  lvd_app *app = begun(rt, &b, &(lvd_app_options){.memory_max = size + (1 << 20)});
  CHECK_EQ(lvd_app_memory(app), size);
  ends_with(app, LVD_E_DEADLOCK);
  /* Of twice the elements the ring would have 2 MiB. */
  check_capacity(app, 0, 1 << 18, 128);
  CHECK_EQ(lvd_app_memory(app), size + (1 << 20));
  char words[200];
  snprintf(words, sizeof words,
           "the channel puts.X -> takes.A would have to grow from 262144 elements to 524288: limit "
           "would take %llu bytes, and may have %llu",
           (unsigned long long)size + (1 << 21), (unsigned long long)size + (1 << 20));
  check_report(app, words);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A source without end, and a consumer that waits for an actor that has ended: more room would
 * change nothing. */
void test_growth_not_without_cycle(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t three = 3;
  static script endless, takes;
  endless = (script){.rounds = ENDLESS}, takes = (script){.rounds = ENDLESS};
  add_ops(&endless, true, 0, 1, 1);
  add_ops(&takes, false, 0, 1, 1);
  add_ops(&takes, false, 1, 1, 1);
  builder b;
  builder_init(&b, "no cycle");
  uint32_t sum = builder_actor(&b, "takes", &script_class[2][0], &takes);
  builder_connect(&b, builder_actor(&b, "three", &source_class, &three), 0, sum, 0, 16);
  builder_connect(&b, builder_actor(&b, "endless", &script_class[0][1], &endless), 0, sum, 1, 16);
  lvd_app *app = app_begun(rt, &b);
  ends_with(app, LVD_E_DEADLOCK);
  check_capacity(app, 1, 16, 16);
  check_report(app, "is full (16 of 16)");
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A channel that begins with fewer elements than its capacity grows that far without a cycle. */
void test_growth_to_described_capacity(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t three = 3;
  for (uint32_t count = 60; count <= 100; count += 40) {
    static script puts, takes;
    puts = (script){.rounds = count}, takes = (script){.rounds = ENDLESS};
    add_ops(&puts, true, 0, 1, 1);
    add_ops(&takes, false, 0, 1, 1);
    add_ops(&takes, false, 1, 1, 1);
    builder b;
    builder_init(&b, "described");
    uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
    builder_connect(&b, builder_actor(&b, "three", &source_class, &three), 0, to, 0, 16);
    builder_connect(&b, builder_actor(&b, "puts", &script_class[0][1], &puts), 0, to, 1, 70);
    b.channel[1].initial = 5;
    lvd_app *app = app_begun(rt, &b);
    ends_with(app, count == 60 ? LVD_OK : LVD_E_DEADLOCK);
    check_capacity(app, 1, 70, 5);
    lvd_app_unload(app);
    app = begun(rt, &b, &(lvd_app_options){.fixed_buffers = true});
    ends_with(app, LVD_E_DEADLOCK);
    check_capacity(app, 1, 5, 5);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* A cycle grows next to an open end of the program; a channel to the program does not, and nor does
 * a cycle that the program may resolve. */
void test_growth_next_to_external_ends(void) {
  lvd_runtime *rt = runtime_of(2);
  static crossing c;
  static script puts, takes;
  static const lvd_port_ref program[] = {{LVD_EXTERNAL, 0}};
  puts = (script){.rounds = 1}, takes = (script){.rounds = 1};
  add_ops(&puts, true, 0, 1, 4);  /* full: the other end waits for the program first */
  add_ops(&puts, true, 1, 1, 10); /* to the program */
  add_ops(&takes, false, 1, 1, 1);
  add_ops(&takes, false, 0, 1, 4);
  builder b;
  builder_init(&b, "external");
  add_crossing(&b, &c, 100, 3, 3);
  uint32_t from = builder_actor(&b, "to program", &script_class[0][2], &puts);
  uint32_t to = builder_actor(&b, "from program", &script_class[2][0], &takes);
  builder_connect(&b, from, 0, to, 0, 2);
  b.channel[b.net.channels++] = (lvd_channel_desc){{from, 1}, 1, program, 4, 3, 0, 0};
  builder_connect(&b, LVD_EXTERNAL, 0, to, 1, 4);
  lvd_app *app = app_begun(rt, &b);
  lvd_producer *p = lvd_app_producer(app, 4);
  lvd_consumer *e = lvd_app_consumer(app, 3, 0);
  CHECK(p && e);
  while (channel_of(app, 0).got < 1000) sleep_ms(1); /* the cycle is resolved */
  while (channel_of(app, 2).put < 2) sleep_ms(1);
  LVD_PUT(p, uint32_t, 1);
  lvd_flush(p);
  for (uint32_t i = 0; i < 10; i++) {
    CHECK_EQ(lvd_wait_elements(e, 1, -1), LVD_OK);
    CHECK(lvd_elements(e, 1) <= 3);
    (void)LVD_GET(e, uint32_t);
    lvd_release(e);
  }
  lvd_producer_close(p, LVD_OK);
  ends_with(app, LVD_OK);
  CHECK_EQ(takes.done, 1);
  check_capacity(app, 0, 12, 3);
  check_capacity(app, 2, 2, 2);
  check_capacity(app, 3, 3, 3);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_growth_paused(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 7;
  for (uint32_t round = 0; round < SCALED(400); round++) {
    static crossing c;
    builder b;
    builder_init(&b, "paused");
    add_crossing(&b, &c, 20, 1, 1);
    lvd_app *app = app_begun(rt, &b);
    for (uint32_t i = 0; i < 3; i++) {
      for (uint64_t n = next_random(&seed) % 20000; n--;) __asm__ volatile("");
      if (lvd_app_pause(app) != LVD_OK) break;
      uint32_t before = c.takes.done;
      for (uint64_t n = next_random(&seed) % 20000; n--;) __asm__ volatile("");
      CHECK_EQ(c.takes.done, before);
      if (lvd_app_resume(app) != LVD_OK) break;
    }
    ends_with(app, LVD_OK);
    CHECK_EQ(c.takes.done, 20);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* Ten elements are in a channel that has grown from 3: a new version gets the same capacity. */
void test_growth_upgrade(void) {
  lvd_runtime *rt = runtime_of(2);
  static script puts, takes;
  puts = (script){.rounds = 1}, takes = (script){.rounds = 1};
  add_ops(&puts, true, 0, 1, 10);
  add_ops(&puts, false, 0, 1, 1); /* the program holds it here */
  add_ops(&puts, true, 1, 1, 1);
  add_ops(&takes, false, 1, 1, 1);
  add_ops(&takes, false, 0, 1, 10);
  builder b;
  builder_init(&b, "upgrade");
  uint32_t from = builder_actor(&b, "puts", &script_class[1][2], &puts);
  uint32_t to = builder_actor(&b, "takes", &script_class[2][0], &takes);
  builder_connect(&b, from, 0, to, 0, 3);
  builder_connect(&b, from, 1, to, 1, 3);
  builder_connect(&b, LVD_EXTERNAL, 0, from, 0, 4);
  lvd_app *old = app_begun(rt, &b), *new;
  while (channel_of(old, 0).put < 10) sleep_ms(1);
  CHECK_EQ(lvd_app_pause(old), LVD_OK);
  char why[300];
  lvd_app_options fixed = {.fixed_buffers = true};
  CHECK_EQ(lvd_app_load(rt, &b.net, &fixed, &new, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_upgrade_from(new, old, why, sizeof why), LVD_E_STATE);
  CHECK(strstr(why, "10 elements are on their way from puts to takes, and its new version has room "
                    "for 3"));
  lvd_app_unload(new);
  CHECK_EQ(lvd_app_load(rt, &b.net, NULL, &new, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_upgrade_from(new, old, why, sizeof why), LVD_OK);
  check_capacity(new, 0, 12, 3);
  CHECK_EQ(channel_of(new, 0).fill, 10);
  lvd_app_exit(old);
  CHECK_EQ(lvd_app_wait(old, -1), LVD_OK);
  lvd_app_unload(new);
  lvd_app_unload(old);
  lvd_runtime_destroy(rt);
}

/* ---- random networks ------------------------------------------------------------------------- */

enum { ACTORS_MAX = 10, LARGE = 1 << 14 };

typedef struct random_network {
  builder b;
  script script[ACTORS_MAX];
  uint32_t ins[ACTORS_MAX], outs[ACTORS_MAX], actors;
} random_network;

/* The same number of elements is put and taken in each round, in parts. An actor that feeds an
 * earlier one, or itself, has put what is taken in a round before the first one. So with unbounded
 * channels no round blocks. */
static void add_random_channel(random_network *r, uint32_t from, uint32_t to, uint64_t *seed) {
  uint32_t n = 1 + (uint32_t)(next_random(seed) % 6), parts[] = {1, 2, 3};
  uint32_t part = parts[next_random(seed) % 3], out = r->outs[from]++, in = r->ins[to]++;
  if (from >= to) {
    script *s = &r->script[from];
    memmove(s->op + 1, s->op, s->ops * sizeof *s->op);
    s->op[0] = (op){true, out, n * part};
    s->ops++;
    s->again++;
  }
  add_ops(&r->script[from], true, out, part, n);
  add_ops(&r->script[to], false, in, n, part);
  builder_connect(&r->b, from, out, to, in, LARGE);
}

static void shuffle_ops(script *s, uint64_t *seed) {
  for (uint32_t i = s->ops; i-- > s->again + 1;) {
    uint32_t j = s->again + (uint32_t)(next_random(seed) % (i + 1 - s->again));
    op o = s->op[i];
    s->op[i] = s->op[j];
    s->op[j] = o;
  }
}

static void make_random(random_network *r, uint64_t *seed) {
  memset(r, 0, sizeof *r);
  builder_init(&r->b, "random");
  r->actors = 2 + (uint32_t)(next_random(seed) % (ACTORS_MAX - 1));
  uint32_t rounds = 1 + (uint32_t)(next_random(seed) % 50);
  static const char *const name[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
  for (uint32_t i = 0; i < r->actors; i++) {
    r->script[i].rounds = rounds;
    builder_actor(&r->b, name[i], &script_class[0][0], &r->script[i]);
  }
  for (uint32_t tries = 3 * r->actors; tries--;) {
    uint32_t from = (uint32_t)(next_random(seed) % r->actors),
             to = (uint32_t)(next_random(seed) % r->actors);
    if (r->outs[from] == PORTS || r->ins[to] == PORTS || r->script[from].ops > OPS - 14 ||
        r->script[to].ops > OPS - 14)
      continue;
    add_random_channel(r, from, to, seed);
  }
  for (uint32_t i = 0; i < r->actors; i++) {
    shuffle_ops(&r->script[i], seed);
    r->b.actor[i].cls = &script_class[r->ins[i]][r->outs[i]];
  }
}

static void run_random(lvd_runtime *rt, random_network *r, uint64_t *hash, bool fixed) {
  for (uint32_t i = 0; i < r->actors; i++) r->script[i].hash = r->script[i].done = 0;
  lvd_app *app = begun(rt, &r->b, &(lvd_app_options){.fixed_buffers = fixed});
  ends_with(app, LVD_OK);
  for (uint32_t i = 0; i < r->actors; i++) {
    CHECK_EQ(r->script[i].done, r->script[i].rounds);
    hash[i] = r->script[i].hash;
  }
  for (uint32_t i = 0; i < r->b.net.channels; i++) /* what would have been enough */
    r->b.channel[i].capacity = channel_of(app, i).capacity;
  lvd_app_unload(app);
}

/* With small capacities the results are those with large ones, also in a run that begins with the
 * capacities to which channels have grown, and in which they are fixed. */
void test_growth_random_networks(void) {
  uint64_t seed = 20031995;
  uint32_t grown = 0;
  for (uint32_t workers = 1; workers <= 3; workers += 2) {
    lvd_runtime *rt = runtime_of(workers);
    for (uint32_t round = 0; round < SCALED(60) + 10; round++) {
      static random_network r;
      uint64_t large[ACTORS_MAX], small[ACTORS_MAX];
      make_random(&r, &seed);
      run_random(rt, &r, large, true);
      for (uint32_t i = 0; i < r.b.net.channels; i++)
        r.b.channel[i].capacity = 1 + (uint32_t)(next_random(&seed) % 4);
      lvd_channel_desc before[COUNT(r.b.channel)];
      memcpy(before, r.b.channel, sizeof before);
      run_random(rt, &r, small, false);
      CHECK(memcmp(large, small, r.actors * sizeof *large) == 0);
      for (uint32_t i = 0; i < r.b.net.channels; i++)
        grown += r.b.channel[i].capacity > before[i].capacity;
      run_random(rt, &r, small, true);
      CHECK(memcmp(large, small, r.actors * sizeof *large) == 0);
    }
    lvd_runtime_destroy(rt);
  }
  printf("%u channels have grown\n", grown);
  CHECK(grown > 50);
}
