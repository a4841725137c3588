/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Units that are processes: calls, streams, and death at any moment. LEVADA_CHILD is child.c. */
#include "../support/bench.h"
#include "../support/ranks.h"

#include <levada/srpc.h>

#include <signal.h>
#include <time.h>

/* ---- calls ----------------------------------------------------------------------------------- */

void test_process_calls(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  CHECK_EQ(lvd_unit_state(u), LVD_OK);
  CHECK(lvd_unit_process(u) > 0 && strstr(lvd_unit_name(u), "process "));
  call_twice_of_many(&u, 1, SCALED(40) + 1);
  call_backwards(u, 0, LVD_CALL_BYTES_MAX, 100);
  call_overstates(u);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

/* The notifier has a higher real-time priority than the workers that it wakes. The child's process
 * has the default class. */
void test_process_realtime(void) {
  can_start();
  bench b = {.rt = realtime_runtime()};
  CHECK_EQ(lvd_app_open(b.rt, NULL, &b.app), LVD_OK);
  b.page = make_page(b.path);
  lvd_unit *u = load(&b, "serve");
  has_rank("levada/bell", 5);
  CHECK_EQ(sched_getscheduler(lvd_unit_process(u)), SCHED_OTHER);
  call_twice_of_many(&u, 1, 20);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

static void loads_in_a_fiber(void *argument) {
  lvd_unit *u;
  CHECK_EQ(lvd_unit_load(argument, LEVADA_CHILD, NULL, &u), LVD_E_STATE);
}

void test_process_statuses(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve"), *none;
  lvd_call *c[3];
  bool returned;
  CHECK_EQ(lvd_call_start(u, "nobody_knows_it", NULL, 0, NULL, &c[0]), LVD_OK);
  CHECK_EQ(result(c[0]), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_call_start(u, "twice", "xyz", 3, NULL, &c[0]), LVD_OK);
  CHECK_EQ(result(c[0]), LVD_E_ARGUMENT); /* the procedure's own status */
  int64_t ns[3] = {300000000000, 300000000000, 1000000};
  for (int i = 0; i < 3; i++)
    CHECK_EQ(lvd_call_start(u, "child_sleeps", &ns[i], sizeof ns[i], NULL, &c[i]), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_E_STATE);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, 1000000, &returned), LVD_E_TIMEOUT);
  CHECK(!returned);
  uint32_t which = 9;
  CHECK_EQ(lvd_call_wait_any(c, 3, -1, &which), LVD_OK);
  CHECK_EQ(which, 2);
  CHECK_EQ(result(c[2]), LVD_OK);
  lvd_call_cancel(c[0]);
  CHECK_EQ(lvd_call_wait(c[0], NULL, NULL, -1, &returned), LVD_E_CANCELLED);
  CHECK(returned);

  /* A procedure that crashes ends its process, and nothing else. */
  CHECK_EQ(lvd_call_start(u, "child_crashes", NULL, 0, NULL, &c[0]), LVD_OK);
  CHECK_EQ(result(c[0]), LVD_E_FAULT);
  CHECK_EQ(result(c[1]), LVD_E_STOPPED);
  while (lvd_unit_state(u) == LVD_OK) lvd_fiber_sleep(1000000);
  CHECK_EQ(lvd_unit_state(u), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_call_start(u, "twice", NULL, 0, NULL, &c[0]), LVD_E_PEER_GONE);
  lvd_stream *s;
  CHECK_EQ(open_stream(u, "s", 0, 0, &s), LVD_E_PEER_GONE);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);

  /* Programs that cannot be loaded. */
  CHECK_EQ(lvd_unit_load(b.app, "/nowhere/nothing", NULL, &none), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_unit_load(b.app, "no-such-program-anywhere", NULL, &none), LVD_E_NOT_FOUND);
  CHECK_EQ(lvd_unit_load(b.app, "/", NULL, &none), LVD_E_SYSTEM);
  CHECK_EQ(lvd_unit_load(b.app, b.path, NULL, &none), LVD_E_SYSTEM); /* not executable */
  static const struct {
    const char *what;
    lvd_status status;
  } bad[] = {{"sleep", LVD_E_TIMEOUT}, {"exit", LVD_E_PEER_GONE}, {"layout", LVD_E_ABI}};
  for (size_t i = 0; i < COUNT(bad); i++) {
    const char *const argument[] = {bad[i].what, NULL};
    const lvd_unit_options o = {.argument = argument,
                                .timeout_ns = bad[i].status == LVD_E_TIMEOUT ? 100000000 : 0};
    CHECK_EQ(lvd_unit_load(b.app, LEVADA_CHILD, &o, &none), bad[i].status);
  }
  CHECK_EQ(lvd_unit_load(b.app, LEVADA_CHILD, &(lvd_unit_options){.memory = SIZE_MAX}, &none),
           LVD_E_ARGUMENT);
  CHECK_EQ(lvd_unit_serve(NULL), LVD_E_STATE);
  CHECK(!lvd_unit_is_loaded() && !lvd_unit_parent());
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(b.app, loads_in_a_fiber, b.app, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);

  /* A procedure that never returns: its process is killed. */
  u = load(&b, "serve");
  CHECK_EQ(lvd_call_start(u, "child_spins", NULL, 0, NULL, &c[0]), LVD_OK);
  lvd_unit *core;
  CHECK_EQ(lvd_unit_core(b.app, 0, &core), LVD_OK);
  CHECK_EQ(open_stream(core, "s", 0, 0, &s), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_unit_unload(core), LVD_E_ARGUMENT);
  bench_free(&b); /* while a call and a process are left */
}

/* ---- streams --------------------------------------------------------------------------------- */

void test_process_streams(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  uint64_t random = 42;
  for (int round = 0; round < 60; round++) {
    order o = {.count = next_random(&random) % (SCALED(40000) + 50), .seed = round};
    o.capacity = (uint32_t)(1 + next_random(&random) % 2000);
    o.threshold = (uint32_t)(next_random(&random) % 3000);
    snprintf(o.name, sizeof o.name, "there");
    snprintf(o.back, sizeof o.back, "back");
    lvd_stream *s;
    uint64_t count = 0, got = 0;
    size_t size = sizeof got;
    bool late = round & 1; /* which side comes first */
    lvd_call *c = late ? call(u, "child_sends", &o) : NULL;
    CHECK_EQ(open_stream(u, "back", o.capacity, o.threshold, &s), LVD_OK);
    if (!c) c = call(u, "child_sends", &o);
    CHECK_EQ(receive_elements(s, &count, o.seed, NULL), LVD_E_EOF);
    CHECK_EQ(count, o.count);
    CHECK_EQ(result(c), LVD_OK);
    lvd_stream_destroy(s);

    c = late ? call(u, "child_receives", &o) : NULL;
    CHECK_EQ(open_stream(u, "there", o.capacity, o.threshold, &s), LVD_OK);
    if (!c) c = call(u, "child_receives", &o);
    CHECK_EQ(send_elements(s, o.count, o.seed, NULL), LVD_OK);
    CHECK_EQ(lvd_stream_close_sender(s, LVD_OK), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, &got, &size, -1, NULL), LVD_E_EOF);
    CHECK_EQ(got, o.count);
    lvd_stream_destroy(s);
  }
  CHECK_EQ(lvd_unit_unload(u), LVD_OK); /* no stream is left open */
  bench_free(&b);
}

/* Fibers on both sides, several streams at a time, and the application ends by itself. */
typedef struct two {
  lvd_app *app;
  lvd_unit *unit;
  order o;
  lvd_stream *there, *back;
} two;

static void sends(void *argument) {
  two *t = argument;
  CHECK_EQ(send_elements(t->there, t->o.count, t->o.seed, NULL), LVD_OK);
}
static void receives(void *argument) {
  two *t = argument;
  uint64_t count = 0;
  CHECK_EQ(receive_elements(t->back, &count, t->o.seed, NULL), LVD_E_EOF);
  CHECK_EQ(count, t->o.count);
}
static void calls(void *argument) {
  two *t = argument;
  CHECK_EQ(open_stream(t->unit, t->o.name, 100, 10, &t->there), LVD_OK);
  CHECK_EQ(open_stream(t->unit, t->o.back, 100, 0, &t->back), LVD_OK);
  lvd_fiber *f[2];
  lvd_call *c = call(t->unit, "child_pipes", &t->o);
  lvd_app *app = t->app;
  CHECK_EQ(lvd_fiber_start(app, sends, t, NULL, &f[0]), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, receives, t, NULL, &f[1]), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  CHECK_EQ(result(c), LVD_OK);
  lvd_stream_destroy(t->there);
  lvd_stream_destroy(t->back);
}

void test_process_fibers(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  static two t[8];
  for (uint32_t i = 0; i < COUNT(t); i++) {
    t[i].app = b.app;
    t[i].unit = u;
    t[i].o = (order){.count = SCALED(20000) + 100, .seed = i, .capacity = 50, .threshold = 8};
    snprintf(t[i].o.name, sizeof t[i].o.name, "there %u", i);
    snprintf(t[i].o.back, sizeof t[i].o.back, "back %u", i);
    CHECK_EQ(lvd_fiber_start(b.app, calls, &t[i], NULL, NULL), LVD_OK);
  }
  /* Quiescent here, while the other process works: no deadlock. */
  lvd_app_close(b.app);
  CHECK_EQ(lvd_app_wait(b.app, -1), LVD_OK);
  bench_free(&b);
}

/* Procedures can fork, on the other process's workers. */
void test_process_forks(void) {
  if (usable_cores() < 2) SKIP("one core");
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  for (int i = 0; i < 3; i++) {
    uint64_t stolen = 0;
    size_t size = sizeof stolen;
    lvd_call *c;
    CHECK_EQ(lvd_call_start(u, "child_forks", NULL, 0, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, &stolen, &size, -1, NULL), LVD_OK);
    CHECK(size == sizeof stolen && stolen >= 10);
  }
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

void test_process_stream_statuses(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  order o = {.name = "sized", .count = 4};
  lvd_stream *s, *t;
  /* A truncated name could be equal to another one. */
  CHECK_EQ(open_stream(u, "thirty-two bytes are one too many", 4, 0, &s), LVD_E_ARGUMENT);
  CHECK_EQ(open_stream(u, "12345678901234567890123456789012", 4, 0, &s), LVD_E_ARGUMENT);
  /* Different element sizes, in either order. */
  CHECK_EQ(open_stream(u, "sized", 0, 0, &s), LVD_OK);
  CHECK_EQ(result(call(u, "child_opens", &o)), LVD_E_ARGUMENT);
  lvd_stream_destroy(s);
  snprintf(o.name, sizeof o.name, "first");
  CHECK_EQ(result(call(u, "child_opens", &o)), LVD_OK);
  CHECK_EQ(open_stream(u, "first", 0, 0, &s), LVD_E_ARGUMENT);
  /* The child has opened it and gone without taking an end: both are closed for this side. */
  o.count = 8;
  snprintf(o.name, sizeof o.name, "unused");
  for (int i = 0; i < 2; i++) {
    uint64_t x = 0;
    CHECK_EQ(result(call(u, "child_opens", &o)), LVD_OK);
    CHECK_EQ(open_stream(u, "unused", 0, 0, &s), LVD_OK);
    if (i == 0) CHECK_EQ(lvd_stream_get(s, &x, 8), LVD_E_EOF);
    if (i == 1) CHECK_EQ(lvd_stream_put(s, &x, 8), LVD_E_PEER_GONE);
    lvd_stream_destroy(s);
  }
  /* Both sides want to send: the second is refused. */
  uint64_t x = 0, count = 0;
  o = (order){.back = "both", .count = 10};
  CHECK_EQ(open_stream(u, "both", 0, 0, &s), LVD_OK);
  CHECK_EQ(lvd_stream_put(s, &x, 8), LVD_OK);
  CHECK_EQ(result(call(u, "child_sends", &o)), LVD_E_STATE);
  lvd_stream_destroy(s);
  /* A timeout; the limit of the memory; no name. */
  CHECK_EQ(open_stream(u, "silent", 4, 0, &s), LVD_OK);
  CHECK_EQ(lvd_stream_wait_elements(s, 1, 1000000), LVD_E_TIMEOUT);
  CHECK_EQ(open_stream(u, "huge", 1 << 26, 0, &t), LVD_E_LIMIT);
  CHECK_EQ(open_stream(u, NULL, 0, 0, &t), LVD_E_ARGUMENT);
  CHECK_EQ(open_stream(u, "absurd", UINT32_MAX, 0, &t), LVD_E_ARGUMENT);
  CHECK_EQ(open_stream(u, "absurd", 0, UINT32_MAX, &t), LVD_E_ARGUMENT);
  o.count = UINT32_MAX; /* element size */
  CHECK_EQ(result(call(u, "child_opens", &o)), LVD_E_ARGUMENT);
  /* Both ends here, as for any stream. */
  CHECK_EQ(lvd_unit_unload(u), LVD_E_STATE);
  lvd_stream_destroy(s);
  CHECK_EQ(open_stream(u, "own", 64, 0, &s), LVD_OK);
  CHECK_EQ(send_elements(s, 50, 7, NULL), LVD_OK);
  CHECK_EQ(lvd_stream_close_sender(s, LVD_OK), LVD_OK);
  CHECK_EQ(receive_elements(s, &count, 7, NULL), LVD_E_EOF);
  CHECK_EQ(count, 50);
  lvd_stream_destroy(s);
  bench_free(&b);
}

/* The fault of a child is reported with the call. */
void test_process_fault(void) {
  static const struct {
    const char *procedure, *words;
  } fault[] = {{"child_crashes", "child_crashes: bad access to memory at 0x40"},
               {"child_fails", "child_fails: [31mthis is not what it should be"}};
  bench b = bench_of(2);
  char text[1024], line[1200];
  lvd_unit *u[2], *core;
  CHECK_EQ(lvd_unit_core(b.app, 0, &core), LVD_OK);
  CHECK_EQ(lvd_unit_error_text(core, text, sizeof text), 0);
  CHECK_EQ(lvd_unit_error_text(NULL, text, sizeof text), 0);
  for (size_t i = 0; i < COUNT(fault); i++) {
    lvd_call *c, *other;
    int64_t ns = INT64_MAX / 4;
    u[i] = load(&b, "serve");
    CHECK_EQ(lvd_unit_error_text(u[i], text, sizeof text), 0);
    CHECK(!strstr(text, "child"));
    CHECK_EQ(lvd_call_start(u[i], "child_sleeps", &ns, sizeof ns, NULL, &other), LVD_OK);
    CHECK_EQ(lvd_call_start(u[i], fault[i].procedure, NULL, 0, NULL, &c), LVD_OK);
    CHECK_EQ(result(c), LVD_E_FAULT);
    CHECK_EQ(lvd_unit_error_text(u[i], text, sizeof text), strlen(fault[i].words));
    CHECK(strcmp(text, fault[i].words) == 0);
    CHECK_EQ(lvd_unit_error_text(u[i], text, 8), strlen(fault[i].words));
    CHECK(strncmp(text, fault[i].words, 7) == 0 && text[7] == 0);
    CHECK_EQ(result(other), LVD_E_STOPPED);
  }
  lvd_app_wait_report(b.app, text, sizeof text);
  for (size_t i = 0; i < COUNT(fault); i++) {
    snprintf(line, sizeof line, "%s has failed: %s\n", lvd_unit_name(u[i]), fault[i].words);
    CHECK(strstr(text, line));
    CHECK_EQ(lvd_unit_unload(u[i]), LVD_OK);
  }
  lvd_app_wait_report(b.app, text, sizeof text);
  CHECK(!strstr(text, "has failed"));
  bench_free(&b);
}

/* The parent reports why the process of a procedure ended. */
void test_process_ends_itself(void) {
  static const struct {
    const char *procedure, *words;
    int status;
    lvd_status returned;
  } end[] = {{"child_aborts", "child_aborts: abort was called", 0, LVD_E_FAULT},
             {"child_exits", "child_exits: exit(3) was called", 3, LVD_E_FAULT},
             {"child_exits", "child_exits: exit(0) was called", 0, LVD_E_FAULT},
             {"child_thread_aborts", "it was ended by signal 6 (SIGABRT)", 0, LVD_E_FAULT},
             {"child_quits", "it exited with status 4", 4, LVD_E_PEER_GONE},
             {NULL, "it was ended by signal 9 (SIGKILL)", 0, LVD_E_PEER_GONE}};
  bench b = bench_of(2);
  for (size_t i = 0; i < COUNT(end); i++) {
    char text[1024], line[1200];
    lvd_unit *u = load(&b, "serve");
    lvd_call *c, *other;
    lvd_stream *s;
    uint64_t x;
    int64_t ns = INT64_MAX / 4;
    CHECK_EQ(open_stream(u, "s", 0, 0, &s), LVD_OK);
    CHECK_EQ(lvd_call_start(u, "child_sleeps", &ns, sizeof ns, NULL, &other), LVD_OK);
    if (end[i].procedure) {
      CHECK_EQ(lvd_call_start(u, end[i].procedure, &end[i].status, 4, NULL, &c), LVD_OK);
      CHECK_EQ(result(c), end[i].returned);
    } else {
      CHECK_EQ(kill((pid_t)lvd_unit_process(u), SIGKILL), 0);
    }
    CHECK_EQ(result(other), end[i].returned);
    CHECK_EQ(lvd_stream_get(s, &x, sizeof x), end[i].returned);
    CHECK_EQ(lvd_unit_state(u), LVD_E_PEER_GONE);
    CHECK_EQ(lvd_call_start(u, "twice", NULL, 0, NULL, &c), LVD_E_PEER_GONE);
    lvd_unit_error_text(u, text, sizeof text);
    if (strcmp(text, end[i].words) != 0) printf("%s\n", text);
    CHECK(strcmp(text, end[i].words) == 0);
    snprintf(line, sizeof line, "%s has failed: %s\n", lvd_unit_name(u), end[i].words);
    lvd_app_wait_report(b.app, text, sizeof text);
    CHECK(strstr(text, line));
    CHECK_EQ(lvd_stream_destroy(s), LVD_OK);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  }
  bench_free(&b);
}

void test_process_fault_untrusted(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  char text[4096];
  lvd_call *c;
  CHECK_EQ(lvd_call_start(u, "child_lies", NULL, 0, NULL, &c), LVD_OK);
  CHECK_EQ(result(c), LVD_OK);
  size_t n = lvd_unit_error_text(u, text, sizeof text);
  CHECK_EQ(n, 63 + 2 + 256 - 32); /* all except control characters; a newline is none */
  CHECK_EQ(strlen(text), n);
  for (size_t i = 0; i < n; i++) CHECK((unsigned char)text[i] >= ' ' || text[i] == '\n');
  CHECK(!strstr(text, "again"));
  CHECK_EQ(lvd_unit_state(u), LVD_OK);
  CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  bench_free(&b);
}

static void stop(pid_t id) {
  siginfo_t how;
  CHECK_EQ(kill(id, SIGSTOP), 0);
  CHECK_EQ(waitid(P_PID, (id_t)id, &how, WSTOPPED | WNOWAIT), 0);
}

/* A stopped process does not answer: all waits for it have timeouts. */
void test_process_time_limits(void) {
  bench b = bench_of(2);
  lvd_unit *u = load(&b, "serve");
  pid_t id = (pid_t)lvd_unit_process(u);
  uint32_t x = 21, which;
  size_t size = sizeof x;
  bool returned;
  lvd_stream *s;
  lvd_call *c;
  CHECK_EQ(open_stream(u, "silent", 4, 0, &s), LVD_OK);
  stop(id);
  CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
  CHECK_EQ(lvd_call_wait(c, NULL, NULL, 1000000, &returned), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_call_wait_any(&c, 1, 1000000, &which), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_stream_wait_elements(s, 1, 1000000), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_stream_select(&s, 1, 1000000, &which), LVD_E_TIMEOUT);
  CHECK_EQ(kill(id, SIGCONT), 0);
  CHECK_EQ(lvd_call_wait(c, &x, &size, -1, NULL), LVD_OK);
  CHECK_EQ(x, 42);
  CHECK_EQ(lvd_stream_close(s), true);
  lvd_stream_destroy(s);
  /* It cannot even end; once continued it can. */
  stop(id);
  CHECK_EQ(lvd_unit_unload_timeout(u, 1000000), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_unit_unload_timeout(u, 0), LVD_E_TIMEOUT);
  CHECK_EQ(kill(id, SIGCONT), 0);
  CHECK_EQ(lvd_unit_unload_timeout(u, 300000000000), LVD_OK);
  /* Otherwise it is killed after its 2 s. */
  u = load(&b, "serve");
  stop((pid_t)lvd_unit_process(u));
  CHECK_EQ(lvd_unit_unload_timeout(u, 3000000), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_unit_unload_timeout(u, 300000000000), LVD_OK);
  bench_free(&b);
}

/* The child has made a call that does not return until it is told to. */
static lvd_a32 takes_its_time, may_return, killed;

static lvd_status parent_takes_its_time(lvd_call_frame *f) {
  (void)f;
  lvd_add_relaxed_u32(&takes_its_time, 1);
  while (!lvd_load_acquire_u32(&may_return)) lvd_fiber_yield();
  return LVD_OK;
}
LVD_PROCEDURE(parent_takes_its_time)

/* Longer than the caller lives. */
static void outlive(void) {
  while (!lvd_load_acquire_u32(&killed)) lvd_fiber_yield();
  for (uint64_t end = now_ns() + 20000000; now_ns() < end;) lvd_fiber_yield();
}

static lvd_status parent_returns_late(lvd_call_frame *f) {
  (void)f;
  lvd_add_relaxed_u32(&takes_its_time, 1);
  outlive();
  return LVD_OK;
}
LVD_PROCEDURE(parent_returns_late)

static lvd_status parent_crashes(lvd_call_frame *f) {
  (void)f;
  lvd_add_relaxed_u32(&takes_its_time, 1);
  outlive();
  lvd_actor_fail(NULL, LVD_FAULT_CHECK, 0, "on purpose");
}
LVD_PROCEDURE(parent_crashes)

static void unloads(void *unit) { CHECK_EQ(lvd_unit_unload(unit), LVD_OK); }

void test_process_unload_in_time(void) {
  static const char *const callee[] = {"parent_takes_its_time", "parent_returns_late",
                                       "parent_crashes"};
  bench b = bench_of(2);
  for (int round = 0; round < 12; round++) {
    lvd_unit *u = load(&b, "serve");
    order o = {.count = 1};
    int which = round == 11 ? 2 : round % 2;
    snprintf(o.name, sizeof o.name, "%s", callee[which]);
    lvd_store_release_u32(&takes_its_time, 0);
    lvd_store_release_u32(&may_return, 0);
    lvd_store_release_u32(&killed, 0);
    lvd_call *c[4];
    for (int i = 0; i < 4; i++) c[i] = call(u, "child_calls_back", &o);
    while (!lvd_load_acquire_u32(&takes_its_time)) lvd_fiber_sleep(100000);
    CHECK_EQ(lvd_unit_unload_timeout(u, 0), LVD_E_STATE); /* calls are open */
    CHECK_EQ(kill((pid_t)lvd_unit_process(u), SIGKILL), 0);
    lvd_store_release_u32(&killed, 1);
    for (int i = 0; i < 4; i++) CHECK_EQ(result(c[i]), LVD_E_PEER_GONE);
    if (which == 0) {
      CHECK_EQ(lvd_unit_unload_timeout(u, 2000000), LVD_E_TIMEOUT);
      lvd_store_release_u32(&may_return, 1);
    }
    if (which == 2) {
      CHECK_EQ(lvd_unit_unload(u), LVD_E_STOPPED); /* what it had called failed */
    } else if (round % 4 < 2) {
      CHECK_EQ(lvd_unit_unload(u), LVD_OK);
    } else {
      lvd_fiber *f;
      CHECK_EQ(lvd_fiber_start(b.app, unloads, u, NULL, &f), LVD_OK);
      CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    }
  }
  CHECK_EQ(lvd_app_wait(b.app, -1), LVD_E_FAULT);
  bench_free(&b);
}

/* ---- death ----------------------------------------------------------------------------------- */

static uint32_t kills(void) {
  const char *value = getenv("LVD_KILLS");
  return value ? (uint32_t)atoi(value) : 20;
}

typedef struct killing {
  int32_t process;
  int64_t after_ns;
  lvd_a64 at_ns;
} killing;

static void kill_later(void *argument) {
  killing *k = argument;
  lvd_fiber_sleep(k->after_ns);
  lvd_store_release_u64(&k->at_ns, now_ns());
  CHECK_EQ(kill((pid_t)k->process, SIGKILL), 0);
}

/* Time until readers and senders found that the other side was dead. */
enum { MEASURED = 4096 };
static uint64_t took_ns[MEASURED];
static uint32_t measured;

static void is_known(uint64_t killed_ns) {
  if (measured < MEASURED) took_ns[measured++] = now_ns() - killed_ns;
}

static int by_length(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

/* At most 100 ms, provided that a killed process gets a core. Real-time threads can keep it from
 * all cores for 950 ms of each second: so a few may take longer. */
static void tell_how_soon(void) {
  qsort(took_ns, measured, sizeof *took_ns, by_length);
  uint32_t late = 0;
  for (uint32_t i = 0; i < measured; i++) late += took_ns[i] >= 100000000;
  printf(
      "%u killed; the other side knew after %.1f ms (median), %.1f ms (of 99 in 100), %.1f ms at "
      "most; after 100 ms: %u\n",
      measured, took_ns[measured / 2] * 1e-6, took_ns[(size_t)measured * 99 / 100] * 1e-6,
      took_ns[measured - 1] * 1e-6, late);
  if (getenv("LVD_KILLS")) CHECK(late <= measured / 20);
}

/* The survivor: a thread, or a fiber. */
typedef struct survivor {
  bench *b;
  lvd_stream *s;
  bool to_us;
  uint64_t seed, count;
  const killing *k;
} survivor;

static void survive(void *argument) {
  survivor *v = argument;
  lvd_status status = v->to_us ? receive_elements(v->s, &v->count, v->seed, NULL)
                               : send_elements(v->s, UINT64_MAX, v->seed, &v->b->page->pushed);
  is_known(lvd_load_acquire_u64(&v->k->at_ns));
  CHECK_EQ(status, LVD_E_PEER_GONE);
}

void test_process_kills(void) {
  bench b = bench_of(2);
  uint64_t random = (uint64_t)getpid() * 0x9e3779b97f4a7c15u | 1;
  for (uint32_t round = 0; round < kills(); round++) {
    memset(b.page, 0, sizeof *b.page);
    lvd_unit *u = load(&b, "serve");
    order o = {.count = UINT64_MAX, .seed = round, .name = "there", .back = "back"};
    o.capacity = (uint32_t)(1 + next_random(&random) % 3000);
    o.threshold = (uint32_t)(next_random(&random) % 2000);
    killing k = {.process = lvd_unit_process(u),
                 .after_ns = (int64_t)(next_random(&random) % 20000000)};
    bool to_us = round & 1;
    lvd_stream *s;
    lvd_fiber *f, *left;
    CHECK_EQ(open_stream(u, to_us ? "back" : "there", o.capacity, o.threshold, &s), LVD_OK);
    lvd_call *c = call(u, to_us ? "child_sends" : "child_receives", &o);
    CHECK_EQ(lvd_fiber_start(b.app, kill_later, &k, NULL, &f), LVD_OK);
    survivor v = {.b = &b, .s = s, .to_us = to_us, .seed = o.seed, .k = &k};
    if (round & 2) {
      CHECK_EQ(lvd_fiber_start(b.app, survive, &v, NULL, &left), LVD_OK);
      CHECK_EQ(lvd_fiber_join(left, -1), LVD_OK);
    } else {
      survive(&v);
    }
    uint64_t pushed = lvd_load_acquire_u64(&b.page->pushed);
    if (to_us)
      CHECK(v.count >= pushed); /* nothing that it reported is lost */
    else
      CHECK(lvd_load_acquire_u64(&b.page->got) <= pushed + 40);
    CHECK_EQ(result(c), LVD_E_PEER_GONE);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    CHECK_EQ(lvd_unit_state(u), LVD_E_PEER_GONE);
    lvd_stream_destroy(s);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
    /* Again. */
    u = load(&b, "serve");
    uint32_t x = 21;
    size_t size = sizeof x;
    CHECK_EQ(lvd_call_start(u, "twice", &x, 4, NULL, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, &x, &size, -1, NULL), LVD_OK);
    CHECK_EQ(x, 42);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  }
  if (measured) tell_how_soon();
  bench_free(&b);
}

/* When its parent is killed a process ends, even if it computes without end, or is in a call to the
 * parent. */
void test_process_orphans(void) {
  if (usable_cores() < 2) SKIP("one core: what computes for ever keeps the only worker");
  static const char *const what[] = {"parent", "called"};
  for (int i = 0; i < 2; i++) {
    bench b = bench_of(1);
    char *const argv[] = {(char *)LEVADA_CHILD, (char *)(uintptr_t)what[i], b.path, NULL};
    pid_t id;
    CHECK_EQ(posix_spawn(&id, LEVADA_CHILD, NULL, NULL, argv, environ), 0);
    uint32_t grandchild;
    while (!(grandchild = lvd_load_acquire_u32(&b.page->grandchild)) ||
           !lvd_load_acquire_u64(&b.page->pushed)) {
      CHECK_EQ(waitpid(id, NULL, WNOHANG), 0);
      lvd_fiber_sleep(1000000);
    }
    CHECK_EQ(kill(id, SIGKILL), 0);
    CHECK_EQ(waitpid(id, NULL, 0), id);
    /* It may have been adopted by a process that does not reap it: a zombie counts as dead. */
    char path[64], state = 'R';
    snprintf(path, sizeof path, "/proc/%u/stat", grandchild);
    for (int ms = 0; ms < 20000 && state != 'Z' && state != 'X'; ms++) {
      FILE *f = fopen(path, "r");
      if (!f) break;
      if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1) state = 'X';
      fclose(f);
      lvd_fiber_sleep(1000000);
      CHECK(ms < 19999);
    }
    bench_free(&b);
  }
}

/* ---- a process that writes arbitrary values
 * ------------------------------------------------------- */

static void wild_streams(lvd_unit *u, uint64_t *random, uint32_t round) {
  for (int i = 0; i < 20; i++) {
    order o = {.count = 2000, .seed = round, .name = "there", .back = "back"};
    o.capacity = (uint32_t)(1 + next_random(random) % 500);
    o.threshold = (uint32_t)(next_random(random) % 500);
    lvd_stream *s;
    lvd_call *c;
    bool to_us = next_random(random) & 1;
    if (open_stream(u, to_us ? "back" : "there", o.capacity, o.threshold, &s) != LVD_OK) return;
    s->timeout_ns = 20000000;
    lvd_status status =
        lvd_call_start(u, to_us ? "child_sends" : "child_receives", &o, sizeof o, NULL, &c);
    uint64_t x = 0;
    for (int n = 0; n < 2000; n++) {
      if ((to_us ? lvd_stream_get(s, &x, 8) : lvd_stream_put(s, &x, 8)) != LVD_OK) break;
      if (to_us)
        lvd_stream_pop(s);
      else
        lvd_stream_push(s);
    }
    bool returned = false;
    if (status == LVD_OK) {
      lvd_call_wait(c, NULL, NULL, 20000000, &returned);
      if (!returned) {
        kill((pid_t)lvd_unit_process(u), SIGKILL);
        lvd_call_wait(c, NULL, NULL, -1, &returned);
        CHECK(returned);
      }
    }
    lvd_stream_destroy(s);
    if (lvd_unit_state(u) != LVD_OK) return;
  }
}

void test_process_wild(void) {
  /* Such a child may crash, which is not to be reported by a sanitizer. */
  setenv("ASAN_OPTIONS", "log_path=stderr", 1);
  setenv("UBSAN_OPTIONS", "log_path=stderr", 1);
  setenv("TSAN_OPTIONS", "log_path=stderr", 1);
  bench b = bench_of(2);
  uint64_t random = 7;
  uint32_t rounds = kills() * 2;
  for (uint32_t round = 0; round < rounds; round++) {
    char seed[24];
    snprintf(seed, sizeof seed, "%u", round + 1);
    const char *const argument[] = {"wild", b.path, seed, NULL};
    const lvd_unit_options o = {.argument = argument, .timeout_ns = 2000000000};
    lvd_unit *u;
    lvd_status status = lvd_unit_load(b.app, LEVADA_CHILD, &o, &u);
    if (status != LVD_OK) continue; /* it was corrupted too far */
    wild_streams(u, &random, round);
    if (lvd_unit_state(u) == LVD_OK) kill((pid_t)lvd_unit_process(u), SIGKILL);
    CHECK_EQ(lvd_unit_unload(u), LVD_OK);
  }
  bench_free(&b);
}

/* ---- by the paper's API ---------------------------------------------------------------------- */

enum { ELEMENTS = 3000 };

static void pb_transmitter(void *unused) {
  (void)unused;
  stream_create(0);
  for (u32 i = 0; i < ELEMENTS; i++) {
    stream_put(0, i);
    if (i % 10 == 9) stream_push(0);
  }
}

static void receive_from_pipe(void) {
  u32 a = 0;
  CHECK_EQ(stream_create(1), LVD_OK);
  for (u32 i = 0; i < ELEMENTS; i++) {
    CHECK_EQ(stream_get(1, a), LVD_OK);
    CHECK_EQ(a, i + 1);
    stream_pop(1);
  }
  CHECK_EQ(stream_get(1, a), LVD_E_EOF);
  CHECK_EQ(stream_close(1), LVD_OK);
}
PB_PROCEDURE(receive_from_pipe)

void test_process_srpc(void) {
  pb_set_diagnostics(false);
  can_start();
  u32 a = 0;
  CHECK_EQ(pb_load("/nowhere/nothing"), LVD_E_NOT_FOUND);
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  CHECK(pb_create("nobody_anywhere", 0) == NULL);
  TASKID pipe = pb_create("remote_pipe", 1), here = pb_create("receive_from_pipe", 0);
  CHECK(pipe && here);
  CHECK_EQ(pb_wait(pipe), LVD_E_STATE);
  for (int round = 0; round < 20; round++) {
    CHECK(stream_rpc(pipe, pb_transmitter) == pipe);
    CHECK_EQ(pb_rpc(pipe), LVD_E_STATE);
    if (round & 1) {
      receive_from_pipe(); /* in a thread */
    } else {
      CHECK_EQ(pb_rpc(here), LVD_OK);
      CHECK_EQ(pb_wait(here), LVD_OK);
    }
    CHECK_EQ(pb_wait(pipe), LVD_OK);
  }
  /* Signals: one at a time; also before it runs. */
  TASKID s = pb_create("remote_signal", 0);
  CHECK_EQ(pb_signal(s, 43), LVD_OK);
  CHECK_EQ(pb_signal(s, 44), LVD_E_STATE);
  for (u32 round = 0; round < 10; round++) {
    CHECK_EQ(pb_rpc(s), LVD_OK);
    if (round) CHECK_EQ(pb_signal(s, 43 + round), LVD_OK);
    CHECK_EQ(stream_create(2), LVD_OK);
    CHECK_EQ(stream_get(2, a), LVD_OK);
    CHECK_EQ(a, 43 + round);
    CHECK_EQ(stream_close(2), LVD_OK);
    CHECK_EQ(pb_wait(s), LVD_OK);
  }
  CHECK_EQ(pb_rpc(s), LVD_OK);
  CHECK_EQ(pb_cancel(s), LVD_OK);
  CHECK_EQ(pb_release(s), LVD_OK);
  CHECK_EQ(stream_create(2), LVD_OK);
  CHECK_EQ(stream_get(2, a), LVD_E_EOF); /* it was cancelled */
  CHECK_EQ(stream_close(2), LVD_OK);
  /* A side that comes and goes. */
  TASKID nothing = pb_create("remote_nothing", 0);
  CHECK_EQ(pb_rpc(nothing), LVD_OK);
  CHECK_EQ(stream_create(3), LVD_OK);
  CHECK_EQ(stream_get(3, a), LVD_E_EOF);
  CHECK_EQ(pb_wait(nothing), LVD_OK);
  CHECK_EQ(stream_close(3), LVD_OK);
  /* And in the other direction. */
  CHECK_EQ(stream_create(0), LVD_OK);
  CHECK_EQ(stream_close(0), LVD_OK);
  CHECK_EQ(pb_rpc(pipe), LVD_OK);
  CHECK_EQ(stream_create(1), LVD_OK);
  CHECK_EQ(stream_get(1, a), LVD_E_EOF);
  CHECK_EQ(stream_close(1), LVD_OK);
  CHECK_EQ(pb_wait(pipe), LVD_OK);
  CHECK_EQ(pb_release(pipe), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
}

void test_process_srpc_dies(void) {
  pb_set_diagnostics(false);
  can_start();
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  for (u32 round = 0; round < 5; round++) {
    u32 a = round, b = 0;
    TASKID pipe = pb_create("remote_pipe", 0);
    CHECK_EQ(pb_rpc(pipe), LVD_OK);
    CHECK_EQ(stream_create(0), LVD_OK);
    CHECK_EQ(stream_create(1), LVD_OK);
    CHECK_EQ(stream_put(0, a), LVD_OK);
    CHECK_EQ(stream_flush(0), LVD_OK);
    CHECK_EQ(stream_get(1, b), LVD_OK);
    CHECK_EQ(b, a + 1);
    CHECK_EQ(kill((pid_t)pb_process(), SIGKILL), 0);
    CHECK_EQ(stream_get(1, b), LVD_E_PEER_GONE);
    CHECK_EQ(pb_wait(pipe), LVD_E_PEER_GONE);
    CHECK(pb_create("remote_pipe", 0) == NULL);
    CHECK_EQ(pb_rpc(pipe), LVD_E_PEER_GONE);
    CHECK_EQ(stream_close(0), LVD_OK);
    CHECK_EQ(stream_close(1), LVD_OK);
    CHECK_EQ(pb_release(pipe), LVD_OK);
    CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  }
  TASKID waits = pb_create("remote_waits", 0);
  CHECK_EQ(pb_rpc(waits), LVD_OK);
  CHECK_EQ(pb_signal(waits, 1), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK); /* with a task that was not waited for */
}

void test_process_srpc_fault(void) {
  can_start();
  char text[256];
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID t = pb_create("remote_crashes", 0);
  CHECK_EQ(pb_rpc(t), LVD_OK);
  CHECK_EQ(pb_wait(t), LVD_E_FAULT);
  size_t n = pb_task_error_text(t, text, sizeof text);
  CHECK_EQ(n, strlen(text));
  CHECK(strcmp(text, "remote_crashes: bad access to memory at 0x40") == 0);
  CHECK_EQ(pb_task_error_text(NULL, text, sizeof text), 0);
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK(strstr(pb_error_text(), "has failed: remote_crashes: bad access to memory at 0x40\n"));
  /* Not waited for. */
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  CHECK_EQ(pb_rpc(pb_create("remote_crashes", 0)), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_E_FAULT);
  CHECK(strstr(pb_error_text(), "has failed: remote_crashes: bad access to memory at 0x40\n"));
  CHECK_EQ(pb_boot(), LVD_OK);
  CHECK_EQ(pb_finish(), LVD_OK);
  CHECK(pb_error_text()[0] == 0);
}

void test_process_srpc_time_limits(void) {
  can_start();
  u32 a = 0;
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID waits = pb_create("remote_waits", 0);
  CHECK_EQ(pb_rpc(waits), LVD_OK);
  stop((pid_t)pb_process());
  pb_set_timeout(2000000);
  CHECK(pb_create("remote_pipe", 0) == NULL);
  CHECK_EQ(pb_status(), LVD_E_TIMEOUT);
  CHECK(pb_create_in(pb_process(), "remote_pipe", 0) == NULL);
  CHECK_EQ(pb_status(), LVD_E_TIMEOUT);
  CHECK_EQ(pb_signal(waits, 1), LVD_E_TIMEOUT); /* although it will come */
  CHECK_EQ(pb_wait(waits), LVD_E_TIMEOUT);
  CHECK_EQ(pb_wait_timeout(waits, 1000), LVD_E_TIMEOUT);
  CHECK_EQ(stream_create(0), LVD_OK);
  CHECK_EQ(stream_set_timeout(0, 1000000), LVD_OK);
  CHECK_EQ(stream_get(0, a), LVD_E_TIMEOUT);
  CHECK_EQ(pb_finish(), LVD_E_TIMEOUT);
  CHECK_EQ(kill((pid_t)pb_process(), SIGCONT), 0);
  pb_set_timeout(-1);
  CHECK_EQ(pb_wait(waits), LVD_OK);
  TASKID pipe = pb_create("remote_pipe", 0);
  CHECK(pipe != NULL);
  CHECK_EQ(pb_finish(), LVD_OK);
}

static void crashes_here(void) { lvd_actor_fail(NULL, LVD_FAULT_CHECK, 0, "on purpose"); }
PB_PROCEDURE(crashes_here)

/* Nothing can be started here any more, so nothing is. */
void test_process_srpc_starts_both(void) {
  pb_set_diagnostics(false);
  can_start();
  CHECK_EQ(pb_load(LEVADA_CHILD), LVD_OK);
  TASKID pipe = pb_create("remote_pipe", 0), crashes = pb_create("crashes_here", 0);
  CHECK_EQ(pb_rpc(crashes), LVD_OK);
  CHECK_EQ(pb_wait(crashes), LVD_E_FAULT);
  CHECK(stream_rpc(pipe, pb_transmitter) == NULL);
  CHECK_EQ(pb_status(), LVD_E_STATE);
  CHECK_EQ(pb_wait(pipe), LVD_E_STATE); /* it was not started */
  CHECK_EQ(pb_finish(), LVD_E_FAULT);
  CHECK(strstr(pb_error_text(), "crashes_here: on purpose"));
}
