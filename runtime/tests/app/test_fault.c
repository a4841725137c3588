/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Faults stop the application they happen in, report the place, and do not affect other
 * applications. */
#include "../support/test.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const lvd_action_class actions[] = {{"begin", NULL, 10}, {"index.bad", "other.cal", 20}};

/* Fires on the first element; `params` decides what it does then. */
static lvd_run_result bad_run(lvd_actor *self) {
  if (!lvd_elements(&self->in[0], 1)) {
    if (lvd_ended(&self->in[0]) != LVD_OK) return LVD_RUN_DONE;
    lvd_await_elements(self, 0, 1);
    return LVD_RUN_WAIT;
  }
  self->action = 1;
  const char *what = self->params;
  volatile int zero = 0, *volatile null = NULL;
  if (strcmp(what, "check") == 0) lvd_check_index(self, 12, 10, 23);
  if (strcmp(what, "memory") == 0) *null = 1;
  if (strcmp(what, "stack") == 0) go_down(0);
  if (strcmp(what, "division") == 0) {
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__)
    zero = 5 / zero;
#else
    lvd_check_divisor(self, zero != 0, 0); /* does not trap here, or is reported */
#endif
  }
  if (strcmp(what, "endless") == 0)
    for (;;) zero++;
  if (strcmp(what, "slow") == 0) { /* a quarter of the limit */
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    int64_t end = t.tv_sec * 1000000000LL + t.tv_nsec + 25000000;
    while (t.tv_sec * 1000000000LL + t.tv_nsec < end) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  }
  if (strcmp(what, "native") == 0) lvd_native_fail("no such file: %s", "x.jpg");
  return LVD_RUN_DONE;
}
static const lvd_port_class in_port[] = {{"A", 4}};
static const lvd_actor_class bad_class = {.name = "Bad",
                                          .file = "bad.cal",
                                          .inputs = 1,
                                          .actions = 2,
                                          .flags = LVD_CLASS_ABANDONABLE,
                                          .input = in_port,
                                          .action = actions,
                                          .run = bad_run};

static void fault(lvd_runtime *rt, const char *what, lvd_fault_kind kind, uint32_t line,
                  const char *words) {
  uint32_t count = 1000;
  builder b;
  lvd_app *app;
  builder_init(&b, "faulty");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  builder_connect(&b, source, 0, builder_actor(&b, "culprit", &bad_class, what), 0, 16);
  app = app_loaded(rt, &b);
  CHECK(!lvd_app_fault(app, NULL));
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_E_FAULT);
  lvd_fault f;
  CHECK(lvd_app_fault(app, &f));
  printf("%s: %s:%u: %s.%s: %s\n", what, f.file, f.line, f.actor, f.action, f.message);
  CHECK_EQ(f.kind, kind);
  CHECK(strcmp(f.actor, "culprit") == 0 && strcmp(f.action, "index.bad") == 0);
  CHECK(strcmp(f.file, "other.cal") == 0);
  CHECK_EQ(f.line, line);
  CHECK(strstr(f.message, words));
  lvd_app_unload(app);
}

#define ONE(name, kind, line, words, skip)                                                         \
  void test_fault_##name(void) {                                                                   \
    skip;                                                                                          \
    lvd_runtime *rt = runtime_of(2);                                                               \
    for (int i = 0; i < 20; i++) fault(rt, #name, kind, line, words);                              \
    lvd_runtime_destroy(rt);                                                                       \
  }
/* Memory that a sanitizer uses itself. */
#if defined(__SANITIZE_ADDRESS__)
#define SKIP_MEMORY() SKIP("the address sanitizer reports the bad access itself")
#define SKIP_SIGNALS()
#elif defined(__SANITIZE_THREAD__)
#define SKIP_MEMORY()  SKIP("the thread sanitizer handles signals itself")
#define SKIP_SIGNALS() SKIP("the thread sanitizer handles signals itself")
#else
#define SKIP_MEMORY()
#define SKIP_SIGNALS()
#endif

ONE(check, LVD_FAULT_INDEX, 23, "index 12 of a list of 10", (void)0)
ONE(division, LVD_FAULT_DIVISION, 20, "division by zero", SKIP_SIGNALS())
ONE(memory, LVD_FAULT_MEMORY, 20, "bad access to memory", SKIP_MEMORY())
ONE(stack, LVD_FAULT_STACK, 20, "stack overflow", SKIP_MEMORY())

void test_fault_endless_action(void) {
  SKIP_SIGNALS();
  lvd_runtime *rt;
  lvd_runtime_options options = {.workers = 1, .action_time_limit_ns = 50 * MS_NS};
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  for (int i = 0; i < 3; i++) fault(rt, "endless", LVD_FAULT_TIME, 20, "has not ended after 50 ms");
  lvd_runtime_destroy(rt);
}

/* An application at the address of one that did not end gets the full time limit. */
void test_fault_time_limit_restarts(void) {
  SKIP_SIGNALS();
  lvd_runtime *rt;
  lvd_runtime_options options = {.workers = 1, .action_time_limit_ns = 100 * MS_NS};
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  for (int i = 0; i < 12; i++) {
    if (i % 6 == 0) fault(rt, "endless", LVD_FAULT_TIME, 20, "has not ended after 100 ms");
    uint32_t count = 1;
    builder b;
    builder_init(&b, "slow");
    uint32_t source = builder_actor(&b, "source", &source_class, &count);
    builder_connect(&b, source, 0, builder_actor(&b, "culprit", &bad_class, "slow"), 0, 16);
    app_ended(app_begun(rt, &b), LVD_OK);
  }
  lvd_runtime_destroy(rt);
}

/* Stopping does not wait for an action that never ends. */
void test_stop_endless_action(void) {
  SKIP_SIGNALS();
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 1000;
  builder b;
  lvd_app *app;
  builder_init(&b, "endless");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  builder_connect(&b, source, 0, builder_actor(&b, "culprit", &bad_class, "endless"), 0, 16);
  app = app_begun(rt, &b);
  CHECK_EQ(lvd_app_wait(app, 50 * MS_NS), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, 0), LVD_E_STOPPED);
  CHECK(!lvd_app_fault(app, NULL));
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_fault_others_go_on(void) {
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = SCALED(10000000);
  sink s = {0};
  builder b;
  lvd_app *app;
  builder_init(&b, "other");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  uint32_t add = builder_actor(&b, "add", &add_class, NULL);
  builder_connect(&b, source, 0, add, 0, 100);
  builder_connect(&b, add, 0, builder_actor(&b, "sink", &sink_class, &s), 0, 100);
  app = app_begun(rt, &b);
  for (int i = 0; i < 100; i++) fault(rt, "check", LVD_FAULT_INDEX, 23, "index 12");
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, count);
  CHECK(s.in_order);
  lvd_runtime_destroy(rt);
}

/* ---- natives --------------------------------------------------------------------------------- */

static int key;
static int ended;
static void end_block(void *data, lvd_status outcome) {
  CHECK_EQ(*(int *)data, 5);
  ended = 100 + (int)outcome;
}

static lvd_run_result native_run(lvd_actor *self) {
  (void)self;
  lvd_app *app = lvd_current_app();
  CHECK(app != NULL);
  CHECK(strcmp(lvd_app_option(app, "in"), "photo.jpg") == 0);
  CHECK(lvd_app_option(app, "none") == NULL);
  int *data = lvd_app_data(app, &key, sizeof *data, end_block);
  CHECK_EQ(*data, 0);
  *data = 5;
  CHECK(lvd_app_data(app, &key, sizeof *data, end_block) == data);
  lvd_app_progress(app, "frames", 42);
  lvd_native_fail("no such file: %s", "photo.jpg");
}

void test_native_data(void) {
  static const lvd_actor_class cls = {.name = "native", .run = native_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_desc actor = {"reader", &cls, NULL, 0};
  lvd_network net = {LVD_ABI_VERSION, "natives", 1, 0, &actor, NULL};
  lvd_option option = {"in", "photo.jpg"};
  lvd_app *app;
  CHECK(lvd_current_app() == NULL);
  CHECK_EQ(lvd_app_load(rt, &net, &(lvd_app_options){.option = &option, .option_count = 1}, &app,
                        NULL, 0),
           LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_E_FAULT);
  CHECK_EQ(ended, 100 + LVD_E_FAULT);
  lvd_fault f;
  CHECK(lvd_app_fault(app, &f) && f.kind == LVD_FAULT_NATIVE);
  CHECK(strcmp(f.message, "no such file: photo.jpg") == 0 && strcmp(f.actor, "reader") == 0);
  const char *unit;
  CHECK_EQ(lvd_app_get_progress(app, &unit), 42);
  CHECK(strcmp(unit, "frames") == 0);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static int another_key;
static int blocks_ended;
static void end_count(void *data, lvd_status outcome) {
  CHECK_EQ(outcome, LVD_OK);
  blocks_ended += *(int *)data;
}

static lvd_run_result counter_run(lvd_actor *self) {
  (void)self;
  lvd_app *app = lvd_current_app();
  for (int i = 0; i < 3; i++) {
    int *other = lvd_app_data(app, &another_key, sizeof *other, end_count);
    int *one = lvd_app_data(app, &key, sizeof *one, end_count);
    CHECK(one != other && *one == i && *other == 10 * i);
    CHECK(lvd_app_data(app, &another_key, sizeof *other, end_count) == other);
    *one += 1;
    *other += 10;
  }
  return LVD_RUN_DONE;
}

/* A worker caches the blocks of one application; the next one may have the same address, and must
 * not get them. */
void test_native_blocks(void) {
  static const lvd_actor_class cls = {.name = "counter", .run = counter_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_desc actor = {"counter", &cls, NULL, 0};
  lvd_network net = {LVD_ABI_VERSION, "blocks", 1, 0, &actor, NULL};
  for (int i = 1; i <= 3; i++) {
    lvd_app *app;
    CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
    CHECK_EQ(blocks_ended, 33 * i);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

static lvd_a32 block_made, may_finish, block_ended;
static void end_heirloom(void *data, lvd_status outcome) {
  (void)data;
  CHECK_EQ(outcome, LVD_OK);
  lvd_add_relaxed_u32(&block_ended, 1);
}
static lvd_run_result leaving_run(lvd_actor *self) {
  (void)self;
  CHECK(lvd_app_persistent_data(lvd_current_app(), "persistent_block", &key, sizeof(int),
                                end_heirloom));
  lvd_store_release_u32(&block_made, 1);
  return lvd_load_acquire_u32(&may_finish) ? LVD_RUN_DONE : LVD_RUN_YIELD;
}

/* The data successor of an application is unloaded before that ends: its data is not passed on. */
void test_native_heir_goes(void) {
  static const lvd_actor_class cls = {.name = "leaving", .run = leaving_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_desc actor = {"leaving", &cls, NULL, 0};
  lvd_network net = {LVD_ABI_VERSION, "leaving", 1, 0, &actor, NULL};
  lvd_app *old, *heir, *next;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &old, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(old), LVD_OK);
  while (!lvd_load_acquire_u32(&block_made)) sleep_ms(1);
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &heir, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_set_data_successor(heir, old), LVD_OK);
  lvd_app_unload(heir);
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &next, NULL, 0), LVD_OK); /* possibly at the same address */
  lvd_store_release_u32(&may_finish, 1);
  CHECK_EQ(lvd_app_wait(old, -1), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&block_ended), 1);
  CHECK(!lvd_app_has_unclaimed_data(next));
  lvd_app_unload(old);
  lvd_app_unload(next);
  lvd_runtime_destroy(rt);
}

static void end_unused(void *data, lvd_status outcome) {
  CHECK_EQ(outcome, LVD_OK);
  lvd_app_fail(*(lvd_app **)data, "cannot close %s", "photo.ppm");
}

static lvd_run_result writer_run(lvd_actor *self) {
  (void)self;
  lvd_app *app = lvd_current_app();
  *(lvd_app **)lvd_app_data(app, &key, sizeof(lvd_app *), end_unused) = app;
  return LVD_RUN_DONE;
}

void test_native_end_fails(void) {
  static const lvd_actor_class cls = {.name = "writer", .run = writer_run};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_desc actor = {"writer", &cls, NULL, 0};
  lvd_network net = {LVD_ABI_VERSION, "end", 1, 0, &actor, NULL};
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_E_FAULT);
  lvd_fault f;
  CHECK(lvd_app_fault(app, &f) && f.kind == LVD_FAULT_NATIVE && f.actor == NULL);
  CHECK(strcmp(f.message, "cannot close photo.ppm") == 0);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A source without an end of its own: its native has no more input. */
static lvd_run_result exhausted_run(lvd_actor *self) {
  uint32_t *next = self->state;
  lvd_producer *x = &self->out[0];
  CHECK(lvd_current_actor() != NULL);
  for (;;) {
    if (!lvd_room(x, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    uint32_t *span = lvd_put_span(x);
    span[0] = *next;
    if (*next == 1000) lvd_native_end();
    (*next)++;
    lvd_put_done(x, 1);
  }
}
static const lvd_port_class exhausted_out[] = {{"X", 4}};
static const lvd_actor_class exhausted_class[2] = {{.name = "Exhausted",
                                                    .state_size = 4,
                                                    .outputs = 1,
                                                    .output = exhausted_out,
                                                    .run = exhausted_run},
                                                   {.name = "MayWait",
                                                    .state_size = 4,
                                                    .flags = LVD_CLASS_CAN_BLOCK,
                                                    .outputs = 1,
                                                    .output = exhausted_out,
                                                    .run = exhausted_run}};

void test_native_ends_its_actor(void) {
  lvd_runtime *rt = runtime_of(2);
  CHECK(lvd_current_actor() == NULL);
  for (int i = 0; i < SCALED(100); i++) {
    sink s = {0};
    builder b;
    lvd_app *app;
    builder_init(&b, "exhausted");
    uint32_t source = builder_actor(&b, "source", &exhausted_class[i % 2], NULL);
    uint32_t add = builder_actor(&b, "add", &add_class, NULL);
    builder_connect(&b, source, 0, add, 0, 16);
    builder_connect(&b, add, 0, builder_actor(&b, "sink", &sink_class, &s), 0, 100);
    app = app_begun(rt, &b);
    app_ended(app, LVD_OK);
    CHECK_EQ(s.count, 1000);
    CHECK(s.in_order);
  }
  lvd_runtime_destroy(rt);
}

/* ---- abort ----------------------------------------------------------------------------------- */

static lvd_run_result asserts_run(lvd_actor *self) {
  self->action = 0;
  self->native = "check_it";
  abort();
}

static void on_abort(int number) {
  (void)number;
  _exit(7);
}

/* Runs in a process of its own; returns what it wrote. */
static int aborts(bool handled, char *text, size_t size) {
  static const lvd_action_class action = {"tests", NULL, 1};
  static const lvd_actor_class asserts = {
      .name = "asserts", .actions = 1, .action = &action, .run = asserts_run};
  int ends[2];
  CHECK_EQ(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    dup2(ends[1], 2);
    if (handled) signal(SIGABRT, on_abort);
    builder b;
    builder_init(&b, "breaks");
    builder_actor(&b, "tester", &asserts, NULL);
    lvd_app_wait(app_begun(runtime_of(2), &b), 20000 * MS_NS);
    _exit(0);
  }
  close(ends[1]);
  size_t n = 0;
  for (ssize_t got; (got = read(ends[0], text + n, size - 1 - n)) > 0;) n += (size_t)got;
  text[n] = 0;
  close(ends[0]);
  int status = 0;
  CHECK_EQ(waitpid(child, &status, 0), child);
  return status;
}

/* abort() ends the process, and it is reported what called it; a handler of the signal is called as
 * before. */
void test_fault_abort_is_told(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("the sanitizers have something to say of their own when a process ends by a signal");
#endif
  char text[4096];
  const char *said =
      "levada: abort was called in actor 'tester' of 'breaks', action tests, native check_it";
  int status = aborts(false, text, sizeof text);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  CHECK(strstr(text, said));
  status = aborts(true, text, sizeof text);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  CHECK(strstr(text, said));
}
