/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stack overflow at any point, without a hang. In a call of the runtime only the application
 * ends; in the C library, which has locks that all threads share, the process ends with a
 * message. */
#include "../support/test.h"

#include <levada/srpc.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- recursion ------------------------------------------------------------------------------- */

/* What is done at each level. The frame size differs per round, so that the stack ends at another
 * instruction. */
typedef struct digging {
  void (*what)(struct digging *d, int level);
  size_t frame;
  lvd_app *app;
  lvd_unit *unit;
  lvd_stream *stream;
  lvd_event event, never;
} digging;

/* Not instrumented by a sanitizer, since its checks are library calls. */
__attribute__((no_sanitize("address"))) static int dig(digging *d, int level,
                                                       volatile char *above) {
  volatile char here[d->frame];
  here[0] = above ? above[0] : (char)level;
  d->what(d, level);
  return level > 1000000 ? 0 : dig(d, level + 1, here) + here[0];
}

static volatile int depth;
static void digs(void *argument) { depth = dig(argument, 0, NULL); }

static void nothing(void *argument) { (void)argument; }
static lvd_status leaf(lvd_call_frame *f) {
  f->result_size = 0;
  return LVD_OK;
}
LVD_PROCEDURE(leaf)

static void starts_fiber(digging *d, int level) {
  lvd_fiber *f;
  lvd_fiber_options o = {.place = level % 2 ? LVD_HERE : LVD_ANYWHERE,
                         .stack = level % 3 ? 0 : 16384};
  lvd_fiber_start(d->app, nothing, NULL, &o, level % 5 ? NULL : &f);
}
static void starts_and_joins(digging *d, int level) {
  lvd_fiber *f;
  (void)level;
  if (lvd_fiber_start(d->app, nothing, NULL, NULL, &f) == LVD_OK) lvd_fiber_join(f, -1);
}
static void starts_call(digging *d, int level) {
  static const char large[1000];
  lvd_call *c;
#ifdef __SANITIZE_ADDRESS__ /* what a call transfers is not freed if the call is not waited for */
  size_t size = 1 + (size_t)level % 10;
#else
  size_t size = level % 2 ? 10 : sizeof large;
#endif
  lvd_call_start(d->unit, "leaf", large, size, NULL, &c);
}
static void calls(digging *d, int level) {
  lvd_call *c;
  (void)level;
  if (lvd_call_start(d->unit, "leaf", NULL, 0, NULL, &c) == LVD_OK)
    lvd_call_wait(c, NULL, NULL, -1, NULL);
}
static void makes_stream(digging *d, int level) {
  lvd_stream *s;
  lvd_stream_options o = {.elem_size = 4};
  if (lvd_stream_create(d->app, &o, &s) != LVD_OK) return;
  lvd_stream_put(s, &level, 4);
  if (level % 2) lvd_stream_close(s);
  if (level % 4) lvd_stream_destroy(s);
}
static void waits(digging *d, int level) {
  lvd_event_wait(&d->never, NULL, level % 2 ? 1000 : 0);
  lvd_fiber_yield();
}
static void sets_event(digging *d, int level) {
  lvd_event_set(&d->event, (uint32_t)level);
  lvd_event_wait(&d->event, NULL, 0);
}
static void puts_and_flushes(digging *d, int level) {
  lvd_stream_put(d->stream, &level, 4);
  lvd_stream_push(d->stream);
  lvd_stream_flush(d->stream);
}
static void calls_out(digging *d, int level) {
  (void)d;
  if (level % 16 == 0) lvd_run_blocking(nothing, NULL);
}

/* Takes from the stream until it ends. */
static void takes(void *argument) {
  digging *d = argument;
  int x;
  while (lvd_stream_get(d->stream, &x, 4) == LVD_OK) lvd_stream_pop(d->stream);
}

/* All functions that an application may call still work. */
static void lives(void *argument) {
  digging *d = argument;
  for (int i = 0; i < 40; i++) {
    lvd_fiber *f;
    lvd_call *c;
    lvd_stream *s;
    CHECK_EQ(lvd_fiber_start(d->app, nothing, NULL, NULL, &f), LVD_OK);
    CHECK_EQ(lvd_call_start(d->unit, "leaf", NULL, 0, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_stream_create(d->app, &(lvd_stream_options){.elem_size = 4}, &s), LVD_OK);
    CHECK_EQ(lvd_stream_put(s, &i, 4), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), LVD_OK);
    CHECK_EQ(lvd_stream_destroy(s), LVD_OK);
    free(malloc((size_t)i * 1000));
  }
}

static void others_live(lvd_runtime *rt) {
  digging d = {0};
  CHECK_EQ(lvd_app_open(rt, NULL, &d.app), LVD_OK);
  CHECK_EQ(lvd_unit_core(d.app, 1, &d.unit), LVD_OK);
  CHECK_EQ(lvd_fiber_start(d.app, lives, &d, NULL, NULL), LVD_OK);
  lvd_app_close(d.app);
  CHECK_EQ(lvd_app_wait(d.app, 10000 * MS_NS), LVD_OK);
  lvd_app_unload(d.app);
}

enum { ROUNDS = 20 };

#ifdef __SANITIZE_THREAD__
#define NOT_HERE SKIP("the stack may end in a call of the thread sanitizer, which is a library's")
#else
#define NOT_HERE (void)0
#endif

static void overflow(void (*what)(digging *, int)) {
  NOT_HERE;
  lvd_runtime *rt = runtime_of(2);
  for (int round = 0; round < ROUNDS; round++) {
    digging d = {.what = what, .frame = 8 + 40 * (size_t)round};
    lvd_fault fault;
    CHECK_EQ(lvd_app_open(rt, NULL, &d.app), LVD_OK);
    CHECK_EQ(lvd_unit_core(d.app, 1, &d.unit), LVD_OK);
    CHECK_EQ(lvd_stream_create(d.app, &(lvd_stream_options){.elem_size = 4}, &d.stream), LVD_OK);
    lvd_event_init(&d.event);
    lvd_event_init(&d.never);
    lvd_fiber_options o = {
        .name = "digger", .place = LVD_WORKER(0), .stack = round % 2 ? 0 : 32768};
    CHECK_EQ(lvd_fiber_start(d.app, takes, &d, &(lvd_fiber_options){.place = LVD_WORKER(1)}, NULL),
             LVD_OK);
    CHECK_EQ(lvd_fiber_start(d.app, digs, &d, &o, NULL), LVD_OK);
    CHECK_EQ(lvd_app_wait(d.app, 20000 * MS_NS), LVD_E_FAULT);
    CHECK(lvd_app_fault(d.app, &fault));
    CHECK_EQ(fault.kind, LVD_FAULT_STACK);
    CHECK(strcmp(fault.actor, "digger") == 0 &&
          strstr(fault.message, "stack overflow: lvd_fiber_options.stack "));
    others_live(rt);
    lvd_app_unload(d.app);
  }
  lvd_runtime_destroy(rt);
}

void test_overflow_starting_fibers(void) { overflow(starts_fiber); }
void test_overflow_joining(void) { overflow(starts_and_joins); }
void test_overflow_starting_calls(void) { overflow(starts_call); }
void test_overflow_calling(void) { overflow(calls); }
void test_overflow_making_streams(void) { overflow(makes_stream); }
void test_overflow_waiting(void) { overflow(waits); }
void test_overflow_setting_events(void) { overflow(sets_event); }
void test_overflow_putting(void) { overflow(puts_and_flushes); }
void test_overflow_calling_out(void) { overflow(calls_out); }

/* ---- srpc interface -------------------------------------------------------------------------- */

static digging here;
static void leaf_task(void) {}
PB_PROCEDURE(leaf_task)
static void digging_task(void) { digs(&here); }
PB_PROCEDURE(digging_task)

static void waits_for_task(digging *d, int level) {
  TASKID t = pb_create("leaf_task", 0);
  (void)d;
  if (!t) return;
  pb_rpc(t);
  if (level % 2)
    pb_wait(t);
  else
    pb_release(t);
}
static void creates_number(digging *d, int level) {
  (void)d;
  stream_configure(level % PB_STREAMS, 64, 1);
  stream_create(level % PB_STREAMS);
  stream_put(level % PB_STREAMS, level);
  stream_push(level % PB_STREAMS);
}

static void overflow_of_task(void (*what)(digging *, int)) {
  NOT_HERE;
  for (int round = 0; round < ROUNDS; round++) {
    here = (digging){.what = what, .frame = 8 + 40 * (size_t)round};
    TASKID t = pb_create("digging_task", 0);
    CHECK_EQ(pb_rpc(t), LVD_OK);
    CHECK_EQ(pb_wait_timeout(t, 300000000000), LVD_E_FAULT);
    pb_set_timeout(300000000000);
    CHECK_EQ(pb_finish(), LVD_E_FAULT);
    CHECK(strstr(pb_error_text(), "digging_task: stack overflow: pb_stack_size "));
  }
}

/* ---- what makes it larger -------------------------------------------------------------------- */

enum { NEEDS = 300000 }; /* bytes of stack: more than a fiber's default */

__attribute__((noinline, no_sanitize("address"))) static void needs_much(void) {
  volatile unsigned char frame[NEEDS];
  for (size_t i = sizeof frame; i > 0; i -= 1000 < i ? 1000 : i) frame[i - 1] = 1;
}
PB_PROCEDURE(needs_much)

static lvd_status much_in_call(lvd_call_frame *f) {
  (void)f;
  needs_much();
  return LVD_OK;
}
LVD_PROCEDURE(much_in_call)

void test_overflow_of_task_mended(void) {
  pb_set_diagnostics(false);
  NOT_HERE;
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(pb_stack_size(i ? 2 * NEEDS : 0), LVD_OK);
    CHECK_EQ(pb_stack_size((8 << 20) + 1), LVD_E_ARGUMENT);
    TASKID t = pb_create("needs_much", 0);
    CHECK_EQ(pb_rpc(t), LVD_OK);
    CHECK_EQ(pb_wait_timeout(t, 300000000000), i ? LVD_OK : LVD_E_FAULT);
    CHECK_EQ(pb_finish(), i ? LVD_OK : LVD_E_FAULT);
    CHECK(i || strstr(pb_error_text(), "needs_much: stack overflow: pb_stack_size "));
  }
}

void test_overflow_of_call_mended(void) {
  NOT_HERE;
  lvd_runtime *rt = runtime_of(2);
  for (int i = 0; i < 2; i++) {
    lvd_app *app;
    lvd_unit *u;
    lvd_call *c;
    lvd_fault fault;
    lvd_call_options o = {.stack = i ? 2 * NEEDS : 0};
    CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
    CHECK_EQ(lvd_unit_core(app, 1, &u), LVD_OK);
    CHECK_EQ(lvd_call_start(u, "much_in_call", NULL, 0, &o, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, NULL, NULL, -1, NULL), i ? LVD_OK : LVD_E_FAULT);
    if (!i) {
      CHECK(lvd_app_fault(app, &fault));
      CHECK(strstr(fault.message, "stack overflow: lvd_call_options.stack "));
    }
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

void test_overflow_waiting_for_tasks(void) { overflow_of_task(waits_for_task); }
void test_overflow_creating_numbers(void) { overflow_of_task(creates_number); }

/* The smallest stack suffices for what needs most: a fiber of another runtime that starts the
 * runtime of the program. */
static void boots(void *unused) {
  (void)unused;
  CHECK_EQ(stream_create(1), LVD_OK);
}
void test_overflow_not_of_the_least_stack(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, boots, NULL, &(lvd_fiber_options){.stack = 16384}, NULL), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  CHECK_EQ(pb_finish(), LVD_OK);
}

/* ---- in the C library ------------------------------------------------------------------------ */

static void allocates(digging *d, int level) {
  (void)d;
  /* The compiler must not remove it. */
  char *volatile p = malloc((size_t)(2000 + level * 37 % 9000));
  if (level % 2) free(p);
}
static void prints(digging *d, int level) {
  (void)d;
  printf("%d", level);
}

/* Waits until the child ends, or for too long; its output is in `text`. */
static int await_child(pid_t child, int from, char *text, size_t size) {
  size_t n = 0;
  struct pollfd p = {.fd = from, .events = POLLIN};
  for (;;) {
    if (poll(&p, 1, 20000) <= 0) break;
    ssize_t got = read(from, text + n, size - 1 - n);
    if (got <= 0 && errno != EINTR) break;
    if (got > 0) n += (size_t)got;
    if (n == size - 1) n /= 2;
  }
  text[n] = 0;
  int status = 0;
  for (int i = 0; i < 2000 && waitpid(child, &status, WNOHANG) == 0; i++) sleep_ms(10);
  if (kill(child, 0) != 0) return status;
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  CHECK(!"it hangs");
  return status;
}

/* A program with a fiber that does that recursively, while other threads want the same locks. */
static void program(void (*what)(digging *, int), size_t frame) {
  digging d = {.what = what, .frame = frame};
  lvd_runtime *rt = runtime_of(2);
  CHECK_EQ(lvd_app_open(rt, &(lvd_app_options){.name = "forest"}, &d.app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(d.app, digs, &d, &(lvd_fiber_options){.name = "tree"}, NULL), LVD_OK);
  lvd_app_wait(d.app, -1);
  for (int i = 0; i < 1000; i++) free(malloc((size_t)i * 100));
  lvd_app_unload(d.app);
  lvd_runtime_destroy(rt);
}

static void overflow_in_library(void (*what)(digging *, int)) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("the sanitizers have something to say of their own when a process ends by a signal");
#endif
  uint32_t said = 0;
  for (int round = 0; round < ROUNDS; round++) {
    int ends[2];
    char text[4096];
    CHECK_EQ(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      dup2(ends[1], 2);
      close(ends[0]);
      close(ends[1]);
      CHECK(freopen("/dev/null", "w", stdout) != NULL);
      program(what, 8 + 8 * (size_t)round);
      _exit(0);
    }
    close(ends[1]);
    int status = await_child(child, ends[0], text, sizeof text);
    close(ends[0]);
    /* The overflow was between two calls. */
    bool whole = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bool says = strstr(text, "stack overflow of fiber 'tree' of 'forest' in the C library");
    if (!whole && !says) fprintf(stderr, "status %x: %s\n", (unsigned)status, text);
    CHECK(whole || says);
    said += says && !whole;
  }
  CHECK(said > 0);
}

void test_overflow_allocating(void) { overflow_in_library(allocates); }
void test_overflow_printing(void) { overflow_in_library(prints); }
