/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Actors with blocking calls: the worker continues, and anything may happen to the application
 * meanwhile. */
#include "../support/test.h"

#include <errno.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* Puts each byte that it reads from a pipe; '!' makes it fail, '@' loop for ever, '#' overflow. */
static const lvd_port_class out_port[] = {{"X", 4}};
static const lvd_action_class read_action[] = {{"read", NULL, 7}};

static lvd_run_result read_by(lvd_actor *self, lvd_status (*wait)(int)) {
  const int *fd = self->params;
  for (;;) {
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    unsigned char byte;
    self->native = "next_byte";
    CHECK_EQ(wait(*fd), LVD_OK);
    ssize_t n = read(*fd, &byte, 1);
    if (n == 1 && byte == '!') lvd_native_fail("a bad byte");
    if (n == 1 && byte == '#') go_down(0);
    self->native = NULL;
    if (n != 1) return LVD_RUN_DONE;
    for (volatile int i = 0; byte == '@'; i++)
      if (i > 1000000) i = 0;
    LVD_PUT(&self->out[0], uint32_t, byte);
    self->fired[0]++;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
}
static lvd_run_result reader_run(lvd_actor *self) { return read_by(self, lvd_wait_readable); }
static const lvd_actor_class reader_class = {.name = "Reader",
                                             .file = "reader.cal",
                                             .outputs = 1,
                                             .actions = 1,
                                             .flags = LVD_CLASS_ABANDONABLE | LVD_CLASS_CAN_BLOCK,
                                             .output = out_port,
                                             .action = read_action,
                                             .run = reader_run};

static void reading_with(builder *b, const lvd_actor_class *cls, const int *fd, sink *s) {
  builder_init(b, "reading");
  uint32_t reader = builder_actor(b, "reader", cls, fd);
  builder_connect(b, reader, 0, builder_actor(b, "sink", &sink_class, s), 0, 64);
}

static void reading(builder *b, const int *fd, sink *s) { reading_with(b, &reader_class, fd, s); }

static void until_fired(lvd_app *app, uint32_t actor, uint64_t n) {
  for (int i = 0; i < 20000 && firings_of(app, actor) < n; i++) sleep_ms(1);
  CHECK_EQ(firings_of(app, actor), n);
}

static void until_waiting(lvd_app *app) {
  char text[1000];
  for (int i = 0; i < 20000; i++) {
    lvd_app_wait_report(app, text, sizeof text);
    if (strstr(text, "reader waits in the native next_byte, called by read\n")) return;
    sleep_ms(1);
  }
  fprintf(stderr, "%s", text);
  CHECK(!"it waits");
}

void test_blocking_worker_goes_on(void) {
  lvd_runtime *rt = runtime_of(1);
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  sink s = {0}, other = {0};
  builder b, c;
  reading(&b, &fd[0], &s);
  lvd_app *app = app_begun(rt, &b);
  CHECK_EQ(write(fd[1], "abc", 3), 3);
  until_fired(app, 1, 3); /* what was read is published although it waits for more */
  until_waiting(app);

  uint32_t count = SCALED(10000000);
  builder_init(&c, "other");
  uint32_t source = builder_actor(&c, "source", &source_class, &count);
  builder_connect(&c, source, 0, builder_actor(&c, "sink", &sink_class, &other), 0, 0);
  lvd_app *going = app_begun(rt, &c);
  CHECK_EQ(lvd_app_wait(going, -1), LVD_OK);
  lvd_app_unload(going);
  CHECK_EQ(other.count, count);

  until_waiting(app);
  CHECK_EQ(lvd_app_wait(app, 50 * MS_NS), LVD_E_TIMEOUT); /* it is idle, but more may come */
  CHECK_EQ(write(fd[1], "d", 1), 1);
  until_fired(app, 1, 4);
  close(fd[1]);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, 4);
  CHECK_EQ(s.sum, 'a' + 'b' + 'c' + 'd');
  lvd_runtime_destroy(rt);
}

/* During a wait the application is stopped, paused, moved, or loses its core. */
void test_blocking_stop(void) {
  enum { INSTANCES = 80 }; /* more than there are helpers */
  lvd_runtime *rt = runtime_of(2);
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  static builder b[INSTANCES];
  lvd_app *app[INSTANCES];
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < INSTANCES; i++) {
      reading(&b[i], &fd[0], NULL);
      app[i] = app_begun(rt, &b[i]);
    }
    for (int i = 0; i < INSTANCES; i++) until_waiting(app[i]);
    for (int i = 0; i < INSTANCES; i++) {
      int k = round == 1 ? INSTANCES - 1 - i : i; /* those that wait for a helper, first or last */
      if (round < 2) CHECK_EQ(lvd_app_stop(app[k]), LVD_OK);
      lvd_app_unload(app[k]);
    }
  }
  lvd_runtime_destroy(rt);
}

void test_blocking_pause(void) {
  lvd_runtime *rt = runtime_of(1);
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  sink s = {0};
  builder b;
  reading(&b, &fd[0], &s);
  lvd_app *app = app_begun(rt, &b);
  for (uint64_t i = 0; i < 20; i++) {
    until_fired(app, 1, i);
    until_waiting(app);
    CHECK_EQ(lvd_app_pause(app), LVD_OK);
    CHECK_EQ(write(fd[1], "x", 1), 1);
    sleep_ms(2);
    CHECK_EQ(firings_of(app, 0), i);
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
  }
  until_fired(app, 1, 20);
  CHECK_EQ(lvd_app_pause(app), LVD_OK);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_blocking_move(void) {
  lvd_runtime *rt = runtime_of(2);
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  sink s = {0};
  builder b;
  reading(&b, &fd[0], &s);
  lvd_app *app = app_begun(rt, &b);
  for (uint32_t i = 0; i < 40; i++) {
    until_waiting(app);
    if (i % 2) {
      CHECK_EQ(lvd_app_move(app, 0, i / 2 % 2), LVD_OK);
    } else { /* returns although the call is pending */
      CHECK_EQ(lvd_core_reserve(rt, i / 2 % 2), LVD_OK);
      CHECK_EQ(lvd_core_release(rt, i / 2 % 2), LVD_OK);
    }
    CHECK_EQ(write(fd[1], "x", 1), 1);
    until_fired(app, 1, i + 1);
  }
  close(fd[1]);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, 40);
  lvd_runtime_destroy(rt);
}

/* Asked to end while it waits for input, or is about to: a native that has done nothing in that
 * firing ends there. */
static lvd_run_result input_run(lvd_actor *self) {
  return read_by(self, lvd_wait_input_restartable);
}
static lvd_run_result guard_run(lvd_actor *self) {
  self->in_guard = true;
  return read_by(self, lvd_wait_input_restartable);
}

void test_blocking_drain(void) {
  lvd_actor_class waits = reader_class, restarts = reader_class, looks = reader_class;
  waits.run = restarts.run = input_run;
  restarts.flags |= LVD_CLASS_RESTARTABLE;
  looks.run = guard_run;
  lvd_runtime *rt = runtime_of(2);
  int fd[2];
  builder b;
  CHECK_EQ(pipe(fd), 0);
  for (uint32_t i = 0; i < 120; i++) {
    sink s = {0};
    uint32_t n = i % 3;
    reading_with(&b, i / 3 % 2 ? &restarts : &looks, &fd[0], &s);
    lvd_app *app = app_begun(rt, &b);
    CHECK_EQ(write(fd[1], "abc", n), n);
    until_fired(app, 1, n);
    if (i % 2) until_waiting(app);
    if (i % 5 == 4) CHECK_EQ(lvd_app_pause(app), LVD_OK);
    if (i % 7 == 6) CHECK_EQ(lvd_app_move(app, 0, i / 7 % 2), LVD_OK);
    CHECK_EQ(lvd_app_drain(app), LVD_OK);
    if (i % 5 == 4) CHECK_EQ(lvd_app_resume(app), LVD_OK);
    app_ended(app, LVD_OK);
    CHECK_EQ(s.count, n);
    CHECK_EQ(s.sum, n * 'a' + n * (n - 1) / 2);
  }

  sink s = {0};
  reading_with(&b, &waits, &fd[0], &s);
  lvd_app *app = app_begun(rt, &b);
  until_waiting(app);
  CHECK_EQ(lvd_app_drain(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, 50 * MS_NS), LVD_E_TIMEOUT); /* it may have done something already */
  CHECK_EQ(write(fd[1], "xy", 2), 2);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, 1);
  CHECK_EQ(s.sum, 'x');
  close(fd[0]);
  close(fd[1]);
  lvd_runtime_destroy(rt);
}

void test_blocking_faults(void) {
  static const struct {
    const char *bytes, *says;
    lvd_fault_kind kind;
  } cases[] = {
      {"a!", "a bad byte", LVD_FAULT_NATIVE},
      {"a@", "an action that has not ended after 100 ms of CPU time", LVD_FAULT_TIME},
      {"a#", "stack overflow", LVD_FAULT_STACK},
  };
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(
               &(lvd_runtime_options){.workers = 1, .action_time_limit_ns = 100 * MS_NS}, &rt),
           LVD_OK);
  for (size_t i = 0; i < COUNT(cases); i++) {
#ifdef __SANITIZE_ADDRESS__
    if (cases[i].kind == LVD_FAULT_STACK) continue; /* it reports that itself */
#endif
#ifdef __SANITIZE_THREAD__
    if (cases[i].kind != LVD_FAULT_NATIVE) continue; /* it delays signals */
#endif
    int fd[2];
    CHECK_EQ(pipe(fd), 0);
    builder b;
    reading(&b, &fd[0], NULL);
    lvd_app *app = app_begun(rt, &b);
    until_waiting(app);
    sleep_ms(200); /* time in which it waits does not count */
    CHECK_EQ(lvd_app_get_state(app), LVD_APP_RUNNING);
    CHECK_EQ(write(fd[1], cases[i].bytes, 2), 2);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_E_FAULT);
    lvd_fault f;
    CHECK(lvd_app_fault(app, &f));
    printf("%s.%s: %s\n", f.actor, f.action, f.message);
    CHECK_EQ(f.kind, cases[i].kind);
    CHECK(strncmp(f.message, cases[i].says, strlen(cases[i].says)) == 0); /* and the advice */
    CHECK(strcmp(f.actor, "reader") == 0 && f.line == 7);
    lvd_app_unload(app);
    close(fd[0]);
    close(fd[1]);
  }
  lvd_runtime_destroy(rt);
}

/* A fiber that reads an idle pipe can be stopped, too. */
static void fiber_reads(void *argument) {
  CHECK_EQ(lvd_wait_readable(*(int *)argument), LVD_E_STOPPED);
}

void test_blocking_fiber_stops(void) {
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int i = 0; i < 100; i++)
    CHECK_EQ(lvd_fiber_start(app, fiber_reads, &fd[0], NULL, NULL), LVD_OK);
  sleep_ms(20);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* More waits for descriptors than there are helpers; none of them needs one. */
enum { PIPES = 600 };
static void passes_on(void *argument) {
  int *fd = argument; /* from here to there */
  char byte;
  CHECK_EQ(lvd_wait_readable(fd[0]), LVD_OK);
  CHECK_EQ(read(fd[0], &byte, 1), 1);
  CHECK_EQ(lvd_wait_writable(fd[1]), LVD_OK);
  CHECK_EQ(write(fd[1], &byte, 1), 1);
}
static void nothing(void *argument) { (void)argument; }
static void calls(void *argument) { CHECK_EQ(lvd_run_blocking(nothing, argument), LVD_OK); }

void test_blocking_many_descriptors(void) {
  struct rlimit files;
  CHECK_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  files.rlim_cur = files.rlim_max;
  if (files.rlim_max < 2 * PIPES + 100 || setrlimit(RLIMIT_NOFILE, &files) != 0)
    SKIP("too few descriptors");
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  lvd_fiber *f;
  static int fd[PIPES + 1][2], from_to[PIPES][2];
  for (int i = 0; i <= PIPES; i++) CHECK_EQ(pipe(fd[i]), 0);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int i = 0; i < PIPES; i++) {
    from_to[i][0] = fd[i][0];
    from_to[i][1] = fd[i + 1][1];
    CHECK_EQ(lvd_fiber_start(app, passes_on, from_to[i], NULL, NULL), LVD_OK);
  }
  sleep_ms(50);
  char why[20000];
  lvd_app_wait_report(app, why, sizeof why);
  CHECK(strstr(why, "waits for a descriptor\n"));
  CHECK_EQ(lvd_fiber_start(app, calls, NULL, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, 300000000000), LVD_OK);
  CHECK_EQ(write(fd[0][1], "x", 1), 1);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A fiber that is blocked in the kernel is told that it is cancelled, too. */
static void hears_of_it(void *argument) {
  CHECK_EQ(lvd_wait_readable(*(int *)argument), LVD_E_CANCELLED);
  CHECK_EQ(lvd_wait_readable(*(int *)argument), LVD_E_CANCELLED);
}
static void read_without_result(void *argument) {
  char byte;
  CHECK(read(*(int *)argument, &byte, 1) < 0 && errno == EINTR);
}
static void is_interrupted(void *argument) {
  CHECK_EQ(lvd_run_blocking(read_without_result, argument), LVD_OK);
  CHECK_EQ(lvd_fiber_sleep(1000000000), LVD_E_CANCELLED);
}

void test_blocking_cancel(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int i = 0; i < 40; i++) {
    lvd_fiber *f;
    CHECK_EQ(lvd_fiber_start(app, i % 2 ? hears_of_it : is_interrupted, &fd[0], NULL, &f), LVD_OK);
    if (i % 4 < 2) sleep_ms(2);
    lvd_fiber_cancel(f);
    CHECK_EQ(lvd_fiber_join(f, 300000000000), LVD_OK);
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* All helpers are busy: the next call waits for one, is reported to do so, and can be cancelled
 * before it has been made. */
#if defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
void test_blocking_queue(void) { SKIP("thousands of threads take too much here"); }
#else
static void read_end(void *argument) {
  char byte;
  CHECK_EQ(read(*(int *)argument, &byte, 1), 0);
}
static void reads_end(void *argument) { CHECK_EQ(lvd_run_blocking(read_end, argument), LVD_OK); }
static void not_made(void *argument) {
  CHECK_EQ(lvd_run_blocking(read_end, argument), LVD_E_CANCELLED);
}

void test_blocking_queue(void) {
  enum { HELPERS = 512 };
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app;
  lvd_fiber *f;
  int fd[2];
  static char why[100000];
  CHECK_EQ(pipe(fd), 0);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (int i = 0; i < HELPERS; i++)
    CHECK_EQ(lvd_fiber_start(app, reads_end, &fd[0], NULL, NULL), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, reads_end, &fd[0], NULL, NULL), LVD_OK); /* is made in the end */
  CHECK_EQ(lvd_fiber_start(app, not_made, &fd[0], NULL, &f), LVD_OK);
  lvd_fiber_counters c[HELPERS + 2];
  for (uint32_t n = 0, waiting = 0; waiting < HELPERS + 2; sleep_ms(1)) {
    n = HELPERS + 2;
    waiting = 0;
    CHECK_EQ(lvd_app_fibers(app, c, &n), LVD_OK);
    for (uint32_t i = 0; i < n; i++) waiting += c[i].waiting;
  }
  lvd_app_wait_report(app, why, sizeof why);
  CHECK(strstr(why, "waits for a call that blocks\n"));
  CHECK(strstr(why, "waits for a thread for a call that blocks: all are in one\n"));
  lvd_fiber_cancel(f);
  CHECK_EQ(lvd_fiber_join(f, 300000000000), LVD_OK);
  close(fd[1]);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
#endif

/* ---- fd watches --------------------------------------------------------------------------- */

/* Takes what comes from a pipe until that ends, or from its input, whichever comes first. A 0 on
 * the input makes it poll the other pipe from then on. */
typedef struct asking {
  int fd[2];
} asking;
typedef struct asker {
  uint32_t which;
  bool ended;
} asker;
static const lvd_port_class asker_in[] = {{"A", 4}};
static const lvd_action_class asker_action[] = {{"take", NULL, 1}, {"read", NULL, 2}};

static lvd_run_result asker_run(lvd_actor *self) {
  const asking *params = self->params;
  asker *s = self->state;
  for (;;) {
    int fd = params->fd[s->which];
    unsigned char byte;
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (!s->ended && lvd_poll_readable(fd)) {
      s->ended = read(fd, &byte, 1) != 1;
      if (!s->ended) LVD_PUT(&self->out[0], uint32_t, byte);
      self->fired[1]++;
    } else if (lvd_elements(&self->in[0], 1)) {
      uint32_t element = LVD_GET(&self->in[0], uint32_t);
      if (!element) s->which = 1;
      LVD_PUT(&self->out[0], uint32_t, element);
      self->fired[0]++;
    } else {
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
  }
}
static const lvd_actor_class asker_class = {.name = "Asker",
                                            .file = "asker.cal",
                                            .state_size = sizeof(asker),
                                            .inputs = 1,
                                            .outputs = 1,
                                            .actions = 2,
                                            .input = asker_in,
                                            .output = out_port,
                                            .action = asker_action,
                                            .run = asker_run};

/* Source -> asker -> sink; the source is an end of the program if `count` is null. */
static void asked(builder *b, const asking *a, uint32_t *count, sink *s) {
  builder_init(b, "asking");
  uint32_t asks = builder_actor(b, "asker", &asker_class, a);
  builder_connect(b, asks, 0, builder_actor(b, "sink", &sink_class, s), 0, 64);
  uint32_t source = count ? builder_actor(b, "source", &source_class, count) : LVD_EXTERNAL;
  builder_connect(b, source, 0, asks, 0, 64);
}

static void until_asked(lvd_app *app) {
  char text[1000];
  for (int i = 0; i < 20000; i++) {
    lvd_app_wait_report(app, text, sizeof text);
    if (strstr(text, "asker has asked for what may come from outside\n") &&
        !strstr(text, "can fire"))
      return;
    sleep_ms(1);
  }
  fprintf(stderr, "%s", text);
  CHECK(!"it has asked");
}

void test_blocking_questions(void) {
  lvd_runtime *rt = runtime_of(2);
  asking a;
  CHECK_EQ(pipe(a.fd), 0);
  int to = a.fd[1];
  uint32_t count = 5;
  sink s = {0};
  builder b;
  asked(&b, &a, &count, &s);
  a.fd[1] = a.fd[0];
  lvd_app *app = app_begun(rt, &b);
  until_fired(app, 1, 5);
  for (uint64_t i = 0; i < 100; i++) {
    if (i % 10 == 0) until_asked(app);
    CHECK_EQ(lvd_app_move(app, 0, i % 2), LVD_OK);
    CHECK_EQ(write(to, "x", 1), 1);
    until_fired(app, 1, 6 + i);
  }
  until_asked(app);
  CHECK_EQ(lvd_app_wait(app, 50 * MS_NS), LVD_E_TIMEOUT); /* it is idle, but more may come */
  uint64_t before = cpu_ns();
  sleep_ms(100);
  CHECK(cpu_ns() - before < 50000000); /* nothing polls meanwhile */
  close(to);
  app_ended(app, LVD_OK);
  CHECK_EQ(s.count, 105);
  close(a.fd[0]);
  lvd_runtime_destroy(rt);
}

/* A descriptor that was polled before the last firing does not keep the application live. */
void test_blocking_questions_of_before(void) {
  lvd_runtime *rt = runtime_of(1);
  asking a;
  int silent[2], other[2];
  CHECK_EQ(pipe(silent), 0);
  CHECK_EQ(pipe(other), 0);
  a = (asking){{silent[0], other[0]}};
  sink s = {0};
  builder b;
  asked(&b, &a, NULL, &s);
  lvd_app *app = app_begun(rt, &b);
  until_asked(app);
  close(other[1]);
  lvd_producer *p = lvd_app_producer(app, 1);
  CHECK(p);
  LVD_PUT(p, uint32_t, 0);
  lvd_flush(p);
  /* It has polled the silent pipe again, and then reached the end of the other. */
  until_fired(app, 0, 2);
  char text[1000] = "asked";
  for (int i = 0; i < 20000 && strstr(text, "asked"); i++) {
    lvd_app_wait_report(app, text, sizeof text);
    sleep_ms(1);
  }
  CHECK(!strstr(text, "asked"));
  lvd_producer_close(p, LVD_OK);
  app_ended(app, LVD_OK);
  close(silent[0]);
  close(silent[1]);
  close(other[0]);
  lvd_runtime_destroy(rt);
}

/* Stopped, ended by a fault elsewhere, or unloaded while it watches several pipes at once. */
void test_blocking_questions_stop(void) {
  enum { INSTANCES = 40 };
  lvd_runtime *rt = runtime_of(2);
  static builder b[INSTANCES];
  static asking a[INSTANCES];
  lvd_app *app[INSTANCES];
  uint32_t count = 3;
  int fd[2];
  CHECK_EQ(pipe(fd), 0);
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < INSTANCES; i++) {
      a[i] = (asking){{fd[0], fd[0]}};
      asked(&b[i], &a[i], &count, NULL);
      app[i] = app_begun(rt, &b[i]);
    }
    for (int i = 0; round % 2 && i < INSTANCES; i++) until_asked(app[i]);
    for (int i = 0; round % 3 == 1 && i < INSTANCES; i++) CHECK_EQ(write(fd[1], "x", 1), 1);
    for (int i = 0; i < INSTANCES; i++) {
      if (round % 4) CHECK_EQ(lvd_app_stop(app[i]), LVD_OK);
      lvd_app_unload(app[i]);
    }
    for (char byte[INSTANCES]; lvd_poll_readable(fd[0]);) CHECK(read(fd[0], byte, INSTANCES) > 0);
  }
  close(fd[0]);
  close(fd[1]);
  lvd_runtime_destroy(rt);
}
