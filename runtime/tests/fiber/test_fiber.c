/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fibers: they start, switch, wait, are cancelled, overflow, and end with their application. */
#include "../support/test.h"

#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "platform/platform.h"

static lvd_app *open_app(lvd_runtime *rt) {
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  return app;
}

/* ---- start, yield, join ------------------------------------------------------------------- */

static void count_up(void *argument) {
  lvd_a32 *n = argument;
  for (int i = 0; i < 10; i++) {
    lvd_add_relaxed_u32(n, 1);
    lvd_fiber_yield();
  }
}

void test_fiber_start_join(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_a32 n = {0};
  lvd_fiber *f[100];
  for (int i = 0; i < 100; i++) CHECK_EQ(lvd_fiber_start(app, count_up, &n, NULL, &f[i]), LVD_OK);
  for (int i = 0; i < 100; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&n), 1000);
  CHECK(lvd_fiber_self() == NULL);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, count_up, &n, NULL, NULL), LVD_E_STATE);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void come_and_go(void *argument) {
  (void)argument;
  lvd_fiber_yield();
}

/* A stack serves one fiber after the other, also where a sanitizer keeps a second stack for each,
 * which has room for 65,536 frames. */
void test_fiber_lives(void) {
  enum { LIVES = 30000 };
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  for (int i = 0; i < LIVES; i++) {
    lvd_fiber *f;
    CHECK_EQ(lvd_fiber_start(app, come_and_go, NULL, NULL, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void wait_to_be_told(void *argument) {
  (void)argument;
  lvd_fiber_sleep(60 * INT64_C(1000000000));
}

/* Number of mapped pages of the process. */
static uint64_t pages_mapped(void) {
  unsigned long long pages;
  FILE *f = fopen("/proc/self/statm", "r");
  CHECK(f && fscanf(f, "%llu", &pages) == 1);
  fclose(f);
  return pages;
}

/* A fiber that is refused for lack of slots, again and again, uses no memory. */
void test_fiber_limit(void) {
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(&(lvd_runtime_options){.workers = 1, .entities = 40}, &rt), LVD_OK);
  lvd_app *app = open_app(rt);
  uint32_t started = 0;
  lvd_status status;
  while ((status = lvd_fiber_start(app, wait_to_be_told, NULL, NULL, NULL)) == LVD_OK) started++;
  CHECK_EQ(status, LVD_E_LIMIT);
  CHECK(started > 0 && started <= 40);
  uint64_t before = pages_mapped();
  for (int i = 0; i < 1000; i++)
    CHECK_EQ(lvd_fiber_start(app, wait_to_be_told, NULL, NULL, NULL), LVD_E_LIMIT);
  CHECK(pages_mapped() < before + 100000);
  lvd_app_stop(app);
  lvd_app_unload(app);
  /* An ended fiber keeps its slot: a new one then uses its stack, even if a smaller one would do.
   * A few are in the worker's own list. */
  for (size_t stack = 1 << 14; stack <= 1 << 16; stack *= 2) {
    app = open_app(rt);
    const lvd_fiber_options o = {.stack = stack};
    for (uint32_t again = 0; again < started - started / 4; again++)
      CHECK_EQ(lvd_fiber_start(app, wait_to_be_told, NULL, &o, NULL), LVD_OK);
    lvd_app_stop(app);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- priorities; available workers ----------------------------------------------------------- */

static int32_t gone[32];
static uint32_t gone_count;

static void note_priority(void *argument) { gone[gone_count++] = *(const int32_t *)argument; }

/* All on one worker, started in any order; of equal priorities the first comes first. */
static void start_of_all(void *argument) {
  static const int32_t priority[] = {0, 3, -4, 1, -1, 2, -3, -2, 3, 0, 1, -4, 100, -100};
  for (size_t i = 0; i < COUNT(priority); i++) {
    const lvd_fiber_options o = {.priority = priority[i], .place = LVD_HERE};
    CHECK_EQ(lvd_fiber_start(argument, note_priority, (void *)(uintptr_t)&priority[i], &o, NULL),
             LVD_OK);
  }
}

void test_fiber_priorities(void) {
  static const int32_t expected[] = {3, 3, 100, 2, 1, 1, 0, 0, -1, -2, -3, -4, -4, -100};
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  CHECK_EQ(lvd_fiber_start(app, start_of_all, app, NULL, NULL), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  CHECK_EQ(gone_count, COUNT(expected));
  for (uint32_t i = 0; i < gone_count; i++) CHECK_EQ(gone[i], expected[i]);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void wait_for_two(void *argument) {
  lvd_event *e = argument;
  CHECK_EQ(lvd_event_wait(&e[0], NULL, -1), LVD_OK);
  CHECK_EQ(lvd_event_wait(&e[1], NULL, -1), LVD_OK);
}

static lvd_fiber_counters counters_of(lvd_app *app, const char *name) {
  lvd_fiber_counters c[4];
  uint32_t n = COUNT(c);
  CHECK_EQ(lvd_app_fibers(app, c, &n), LVD_OK);
  CHECK_EQ(n, 2);
  for (uint32_t i = 0; i < n; i++)
    if (strcmp(c[i].name, name) == 0) return c[i];
  CHECK(!"a fiber of that name");
  return c[0];
}

void test_fiber_counters(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_event first[2], second[2];
  for (int i = 0; i < 2; i++) {
    lvd_event_init(&first[i]);
    lvd_event_init(&second[i]);
  }
  const lvd_fiber_options o = {.name = "decoder", .place = LVD_WORKER(1)};
  CHECK_EQ(lvd_fiber_start(app, wait_for_two, first, &o, NULL), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, wait_for_two, second, NULL, NULL), LVD_OK);
  while (!counters_of(app, "decoder").waiting || !counters_of(app, "fiber").waiting)
    lvd_fiber_sleep(100000);
  lvd_fiber_counters before = counters_of(app, "decoder"), other = counters_of(app, "fiber");
  CHECK_EQ(before.worker, 1);
  CHECK(before.activations >= 1);
  CHECK_EQ(lvd_event_set(&first[0], 1), LVD_OK);
  /* It has run, and waits for the other one, which has not run yet, nor has any other. */
  while (counters_of(app, "decoder").activations == before.activations ||
         !counters_of(app, "decoder").waiting)
    lvd_fiber_sleep(100000);
  CHECK_EQ(counters_of(app, "fiber").activations, other.activations);
  uint32_t n = 1;
  lvd_fiber_counters one;
  CHECK_EQ(lvd_app_fibers(app, &one, &n), LVD_OK); /* there is room for one, and there are two */
  CHECK_EQ(n, 2);
  CHECK_EQ(lvd_event_set(&first[1], 1), LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_event_set(&second[i], 1), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  n = 0;
  CHECK_EQ(lvd_app_fibers(app, NULL, &n), LVD_OK);
  CHECK_EQ(n, 0);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A tree: each fiber starts two on any worker, and joins them. */
typedef struct tree {
  lvd_app *app;
  uint32_t depth, leaves;
} tree;

static void grow(void *argument) {
  tree *t = argument;
  if (t->depth == 0) {
    t->leaves = 1;
    return;
  }
  tree sub[2] = {{t->app, t->depth - 1, 0}, {t->app, t->depth - 1, 0}};
  lvd_fiber *f[2];
  for (int i = 0; i < 2; i++)
    CHECK_EQ(lvd_fiber_start(t->app, grow, &sub[i], &(lvd_fiber_options){.stack = 16384}, &f[i]),
             LVD_OK);
  for (int i = 0; i < 2; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  t->leaves = sub[0].leaves + sub[1].leaves;
}

void test_fiber_tree(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  tree t = {app, SCALED(10) ? 10 : 6, 0};
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(app, grow, &t, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  CHECK_EQ(t.leaves, 1u << t.depth);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* Many fibers that live at once, each waiting for one event. */
typedef struct crowd {
  lvd_event go;
  lvd_a32 *arrived;
} crowd;

static void stand(void *argument) {
  crowd *c = argument;
  uint32_t data = 0;
  CHECK_EQ(lvd_event_wait(&c->go, &data, -1), LVD_OK);
  lvd_add_relaxed_u32(c->arrived, data);
}

void test_fiber_crowd(void) {
  enum { INSTANCES = 20000 };
  uint32_t n = SCALED(INSTANCES);
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_a32 arrived = {0};
  crowd *c = calloc(n, sizeof *c);
  lvd_fiber **f = calloc(n, sizeof *f);
  for (uint32_t i = 0; i < n; i++) {
    lvd_event_init(&c[i].go);
    c[i].arrived = &arrived;
    CHECK_EQ(lvd_fiber_start(app, stand, &c[i], &(lvd_fiber_options){.stack = 16384}, &f[i]),
             LVD_OK);
  }
  uint32_t count = 0;
  CHECK_EQ(lvd_app_fibers(app, NULL, &count), LVD_OK);
  CHECK_EQ(count, n);
  for (uint32_t i = 0; i < n; i++) CHECK_EQ(lvd_event_set(&c[i].go, 1), LVD_OK);
  for (uint32_t i = 0; i < n; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&arrived), n);
  free(c);
  free(f);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- time --------------------------------------------------------------------------------- */

static void sleep_long(void *argument) {
  int64_t *ns = argument;
  uint64_t before = now_ns();
  CHECK_EQ(lvd_fiber_sleep(*ns), LVD_OK);
  CHECK((int64_t)(now_ns() - before) >= *ns);
}

static void wait_without_result(void *argument) {
  lvd_event *e = argument;
  CHECK_EQ(lvd_event_wait(e, NULL, 0), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_event_wait(e, NULL, 2000000), LVD_E_TIMEOUT);
}

void test_fiber_time_limits(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  int64_t ns[50];
  uint64_t seed = 7;
  lvd_event never[10];
  for (int i = 0; i < 10; i++) {
    lvd_event_init(&never[i]);
    CHECK_EQ(lvd_fiber_start(app, wait_without_result, &never[i], NULL, NULL), LVD_OK);
  }
  for (int i = 0; i < 50; i++) {
    ns[i] = (int64_t)(next_random(&seed) % 20000000);
    CHECK_EQ(lvd_fiber_start(app, sleep_long, &ns[i], NULL, NULL), LVD_OK);
  }
  lvd_app_close(app); /* it ends when they have, and not while they sleep */
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- cancelling, stopping ----------------------------------------------------------------- */

static void until_cancelled(void *argument) {
  lvd_event *e = argument;
  CHECK_EQ(lvd_event_wait(e, NULL, -1), LVD_E_CANCELLED);
  CHECK_EQ(lvd_event_wait(e, NULL, -1), LVD_E_CANCELLED);
  CHECK_EQ(lvd_fiber_sleep(1000000000), LVD_E_CANCELLED);
}

void test_fiber_cancel(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  for (int i = 0; i < SCALED(2000); i++) {
    lvd_event e;
    lvd_event_init(&e);
    lvd_fiber *f;
    CHECK_EQ(lvd_fiber_start(app, until_cancelled, &e, NULL, &f), LVD_OK);
    if (i % 2) usleep(i % 50);
    lvd_fiber_cancel(f);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  }
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void until_stopped_alone(void *event) {
  CHECK_EQ(lvd_event_wait(event, NULL, -1), LVD_E_STOPPED);
}

static void until_stopped(void *argument) {
  lvd_event e;
  lvd_event_init(&e);
  CHECK_EQ(lvd_event_wait(&e, NULL, -1), LVD_E_STOPPED);
  lvd_add_relaxed_u32(argument, 1);
}

void test_fiber_stop(void) {
  lvd_runtime *rt = runtime_of(2);
  for (int round = 0; round < SCALED(200) + 1; round++) {
    lvd_app *app = open_app(rt);
    lvd_a32 n = {0};
    for (int i = 0; i < 20; i++)
      CHECK_EQ(lvd_fiber_start(app, until_stopped, &n, NULL, NULL), LVD_OK);
    if (round % 3 == 0) usleep(200);
    if (round % 5 == 0) lvd_app_pause(app);
    CHECK_EQ(lvd_app_stop(app), LVD_OK);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_E_STOPPED);
    CHECK_EQ(lvd_load_relaxed_u32(&n), 20);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* ---- faults ------------------------------------------------------------------------------- */

static int dig(volatile char *above, int n) {
  volatile char here[1024];
  here[0] = above ? above[0] : (char)n;
  return n > 1000000 ? here[0] : dig(here, n + 1) + here[0];
}
static void overflow(void *argument) { *(volatile int *)argument = dig(NULL, 0); }

/* Recursion with a wait at each depth: the overflow is in a wait, or before it. */
static int dig_and_wait(volatile char *above, int n) {
  volatile char here[200];
  here[0] = above ? above[0] : (char)n;
  lvd_fiber_sleep(n % 3 * 1000);
  return n > 1000000 ? here[0] : dig_and_wait(here, n + 1) + here[0];
}
static void overflow_in_wait(void *argument) { *(volatile int *)argument = dig_and_wait(NULL, 0); }

void test_fiber_overflow_in_wait(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  int unused;
  lvd_fiber *f;
  lvd_fault fault;
  CHECK_EQ(
      lvd_fiber_start(app, overflow_in_wait, &unused, &(lvd_fiber_options){.stack = 16384}, &f),
      LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_E_FAULT);
  CHECK(lvd_app_fault(app, &fault));
  CHECK_EQ(fault.kind, LVD_FAULT_STACK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_fiber_stack_overflow(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *other = open_app(rt), *app = open_app(rt);
  lvd_a32 n = {0};
  int unused;
  lvd_fiber *f;
  for (int i = 0; i < 20; i++) CHECK_EQ(lvd_fiber_start(other, count_up, &n, NULL, NULL), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, overflow, &unused, &(lvd_fiber_options){.name = "digger"}, &f),
           LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_E_FAULT);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_E_FAULT);
  lvd_fault fault;
  CHECK(lvd_app_fault(app, &fault));
  CHECK_EQ(fault.kind, LVD_FAULT_STACK);
  CHECK(strcmp(fault.actor, "digger") == 0);
  CHECK(strstr(fault.message, "stack overflow"));
  lvd_app_unload(app);
  lvd_app_close(other);
  CHECK_EQ(lvd_app_wait(other, -1), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&n), 200);
  lvd_runtime_destroy(rt);
}

/* A frame that is only touched far from its beginning: the requested stack is there, and what is
 * below it, perhaps another fiber's stack, cannot be reached. */
static void touch_below(void *argument) {
  size_t *depth = argument;
  volatile char *at = (volatile char *)__builtin_frame_address(0) - *depth;
  *at = 1;
}

void test_fiber_guard(void) {
  lvd_runtime *rt = runtime_of(1);
  const lvd_fiber_options small = {.stack = 16384};
  for (size_t depth = 8000; depth < 60000; depth += depth < 13000 ? 1000 : 8000) {
#ifdef __SANITIZE_THREAD__
    if (depth > 13000) break; /* the jump out of it cannot be repeated without limit */
#endif
    lvd_app *app = open_app(rt);
    lvd_event never[20];
    lvd_fiber *f;
    for (int i = 0; i < 20; i++) {
      lvd_event_init(&never[i]);
      CHECK_EQ(lvd_fiber_start(app, until_stopped_alone, &never[i], &small, NULL), LVD_OK);
    }
    CHECK_EQ(lvd_fiber_start(app, touch_below, &depth, &small, &f), LVD_OK);
    CHECK_EQ(lvd_fiber_join(f, -1), depth <= 13000 ? LVD_OK : LVD_E_FAULT);
    lvd_fault fault;
    if (depth > 13000) CHECK(lvd_app_fault(app, &fault) && fault.kind == LVD_FAULT_STACK);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
}

/* The system's limit of mappings is reached: no stack can be allocated, and the status names the
 * limit. */
void test_fiber_mappings(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || !defined(__x86_64__)
  SKIP("a sanitizer or an emulator needs mappings of its own");
#else
  enum { MAPPINGS_MAX = 1 << 18 };
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  lvd_a32 n = {0};
  uint32_t taken = 0;
  void **at = calloc(MAPPINGS_MAX, sizeof *at);
  /* Neighbours with different protections are separate mappings. */
  for (; taken < MAPPINGS_MAX; taken++) {
    int protection = taken % 2 ? PROT_READ : PROT_READ | PROT_WRITE;
    at[taken] = mmap(NULL, page, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at[taken] == MAP_FAILED) break;
  }
  if (taken == MAPPINGS_MAX) SKIP("vm.max_map_count is very large here");
  lvd_status status = lvd_fiber_start(app, count_up, &n, NULL, NULL);
  while (taken) munmap(at[--taken], page);
  free(at);
  CHECK_EQ(status, LVD_E_MAPPINGS);
  CHECK(strstr(lvd_status_text(status), "vm.max_map_count"));
  CHECK_EQ(lvd_fiber_start(app, count_up, &n, NULL, NULL), LVD_OK); /* nothing was lost */
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  CHECK_EQ(lvd_load_relaxed_u32(&n), 10);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
#endif
}

/* ---- reserved cores, blocking calls, urgent fibers ------------------------------------------ */

static void wander(void *argument) {
  lvd_a32 *stop = argument;
  while (!lvd_load_relaxed_u32(stop)) CHECK_EQ(lvd_fiber_sleep(50000), LVD_OK);
}

void test_fiber_core_take(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app = open_app(rt);
  lvd_a32 stop = {0};
  for (int i = 0; i < 20; i++) CHECK_EQ(lvd_fiber_start(app, wander, &stop, NULL, NULL), LVD_OK);
  for (uint32_t i = 0; i < 20; i++) {
    CHECK_EQ(lvd_core_reserve(rt, i % 2), LVD_OK);
    lvd_fiber_counters c[20];
    uint32_t n = 20;
    CHECK_EQ(lvd_app_fibers(app, c, &n), LVD_OK);
    CHECK_EQ(n, 20);
    for (uint32_t k = 0; k < n; k++) CHECK_EQ(c[k].worker, 1 - i % 2);
    CHECK_EQ(
        lvd_fiber_start(app, wander, &stop, &(lvd_fiber_options){.place = LVD_WORKER(i % 2)}, NULL),
        LVD_E_ARGUMENT);
    CHECK_EQ(lvd_core_release(rt, i % 2), LVD_OK);
  }
  lvd_store_relaxed_u32(&stop, 1);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void read_pipe(void *argument) {
  int *fd = argument;
  char byte;
  *fd = read(*fd, &byte, 1) == 1 ? byte : -1;
}
static void read_blocking(void *argument) {
  CHECK_EQ(lvd_run_blocking(read_pipe, argument), LVD_OK);
  CHECK_EQ(*(int *)argument, 'x');
}

void test_fiber_blocking_call(void) {
  enum { INSTANCES = 100 };
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  int fd[INSTANCES][2];
  for (int i = 0; i < INSTANCES; i++) {
    CHECK_EQ(pipe(fd[i]), 0);
    CHECK_EQ(lvd_fiber_start(app, read_blocking, &fd[i][0], NULL, NULL), LVD_OK);
  }
  lvd_a32 n = {0};
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(app, count_up, &n, NULL, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK); /* the only worker continues while all of them block */
  lvd_app_close(app);
  for (int i = 0; i < INSTANCES; i++) CHECK_EQ(write(fd[i][1], "x", 1), 1);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static void spin_until(void *argument) {
  lvd_a32 *stop = argument;
  while (!lvd_load_acquire_u32(stop)) {
  }
}

/* How a thread is scheduled: its class, and its nice value. */
typedef struct scheduled {
  int class, nice;
} scheduled;

static scheduled how_scheduled(void) {
  return (scheduled){sched_getscheduler(0), getpriority(PRIO_PROCESS, 0)};
}

/* The highest priority that the system permits a thread of this process. */
static void try_best(void *argument) {
  const struct sched_param least = {.sched_priority = sched_get_priority_min(SCHED_FIFO)};
  if (sched_setscheduler(0, SCHED_FIFO, &least) != 0) setpriority(PRIO_PROCESS, 0, -20);
  *(scheduled *)argument = how_scheduled();
}

static scheduled usual, urgent;
static void spin_as_usual(void *argument) {
  usual = how_scheduled();
  spin_until(argument);
}
static void say_stop(void *argument) {
  urgent = how_scheduled();
  lvd_store_release_u32(argument, 1);
}

void test_fiber_urgent(void) {
  lvd_os_thread *thread;
  scheduled best;
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "best", try_best, &best), LVD_OK);
  lvd_os_thread_join(thread);
  lvd_runtime *rt = runtime_of(1);
  lvd_app *app = open_app(rt);
  lvd_a32 stop = {0};
  CHECK_EQ(lvd_fiber_start(app, spin_as_usual, &stop, NULL, NULL), LVD_OK);
  /* It never waits nor yields: only an urgent fiber can stop it. */
  CHECK_EQ(lvd_fiber_start(app, say_stop, &stop, &(lvd_fiber_options){.urgent = true}, NULL),
           LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  /* Normal fibers have the program's scheduling; urgent ones the highest permitted. */
  scheduled here = how_scheduled();
  CHECK_EQ(usual.class, here.class);
  CHECK_EQ(usual.nice, here.nice);
  CHECK_EQ(urgent.class, best.class);
  CHECK_EQ(urgent.nice, best.nice);
  if (best.class == here.class && best.nice >= here.nice)
    SKIP("the system permits neither a real-time class nor a better nice value "
         "(RLIMIT_RTPRIO, RLIMIT_NICE, CAP_SYS_NICE): urgent fibers ran, without preference");
}

/* ---- real-time priorities ------------------------------------------------------------------- */

typedef struct ranked {
  int class, priority;
} ranked;

static void say_rank(void *argument) {
  struct sched_param p;
  sched_getparam(0, &p);
  *(ranked *)argument = (ranked){sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, p.sched_priority};
}

typedef struct asked {
  lvd_runtime *rt;
  ranked own, started, blocks;
} asked;

static void start_a_thread(void *argument) {
  asked *a = argument;
  lvd_os_thread *thread;
  say_rank(&a->own);
  lvd_run_blocking(say_rank, &a->blocks);
  if (lvd_os_thread_start(&thread, -1, "started", say_rank, &a->started) == LVD_OK)
    lvd_os_thread_join(thread);
}

static void serve(void *argument) {
  asked *a = argument;
  lvd_thread_set_service_priority(a->rt);
  say_rank(&a->own);
}

/* Application, urgent and service threads have the priorities 3, 4 and 5. */
void test_fiber_realtime(void) {
  lvd_runtime *rt;
  lvd_runtime_options options = {.workers = 1, .realtime = LVD_REALTIME_MAX + 1};
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_E_ARGUMENT);
  CHECK(!lvd_realtime_allowed(0));
  CHECK(!lvd_realtime_allowed(LVD_REALTIME_MAX + 1));
  options.realtime = 3;
  if (!lvd_realtime_allowed(3)) {
    CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_E_LIMIT);
    CHECK(strstr(lvd_status_text(LVD_E_LIMIT), "ulimit -r"));
    SKIP("the system permits no real-time priority (RLIMIT_RTPRIO, CAP_SYS_NICE)");
    return;
  }
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  lvd_app *app = open_app(rt);
  asked a = {.rt = rt}, serves = a;
  ranked first;
  CHECK_EQ(lvd_fiber_start(app, start_a_thread, &a, NULL, NULL), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, say_rank, &first, &(lvd_fiber_options){.urgent = true}, NULL),
           LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, 20000 * MS_NS), LVD_OK);
  lvd_os_thread *thread;
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "serves", serve, &serves), LVD_OK);
  lvd_os_thread_join(thread);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  CHECK_EQ(a.own.class, SCHED_RR);
  CHECK_EQ(a.own.priority, 3);
  CHECK_EQ(a.blocks.class, SCHED_RR);
  CHECK_EQ(a.blocks.priority, 3);
  CHECK_EQ(first.class, SCHED_RR);
  CHECK_EQ(first.priority, 4);
  CHECK_EQ(serves.own.class, SCHED_RR);
  CHECK_EQ(serves.own.priority, 5);
  CHECK_EQ(a.started.class, SCHED_OTHER);
  CHECK_EQ(a.started.priority, 0);
}
