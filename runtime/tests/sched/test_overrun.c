/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is queued behind an action that does not end is run by other workers meanwhile, and by
 * backup workers where all are in an overrun. */
#include "../support/test.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>

/* The thread sanitizer delays signals until a system call has returned. */
#if defined __SANITIZE_THREAD__
#define SKIP_ASLEEP() SKIP("the thread sanitizer handles signals itself")
#else
#define SKIP_ASLEEP()
#endif

enum { HELD_UP = 8 }; /* the largest number of workers */
static lvd_a32 may_end;
static lvd_a32 begun, ends; /* actions that occupy a worker: begun, and ended */

/* Computes until the test ends it; it is asked to yield, and does not. */
static lvd_run_result endless_run(lvd_actor *self) {
  (void)self;
  lvd_add_relaxed_u32(&begun, 1);
  while (!lvd_load_acquire_u32(&may_end)) continue;
  lvd_add_relaxed_u32(&ends, 1);
  return LVD_RUN_DONE;
}
static const lvd_actor_class endless_class = {.name = "Endless", .run = endless_run};

/* The same, blocked in the system: reads a pipe of which the test has the other end. */
static int pipe_end[2];
static lvd_run_result reader_run(lvd_actor *self) {
  char c;
  (void)self;
  lvd_add_relaxed_u32(&begun, 1);
  CHECK_EQ(read(pipe_end[0], &c, 1), 1);
  lvd_add_relaxed_u32(&ends, 1);
  return LVD_RUN_DONE;
}
static const lvd_actor_class reader_class = {.name = "Reader", .run = reader_run};

static lvd_app *alone_at(lvd_runtime *rt, const lvd_actor_class *cls, uint32_t worker) {
  static builder b;
  builder_init(&b, "alone");
  builder_actor(&b, "alone", cls, NULL);
  return app_begun_at(rt, &b, worker);
}

/* Occupies a worker until the test ends it. */
static void hold_up(void) {
  lvd_store_release_u32(&may_end, 0);
  CHECK_EQ(pipe(pipe_end), 0);
}
static void let_go_of(uint32_t all) {
  static const char bytes[HELD_UP];
  lvd_store_release_u32(&may_end, 1);
  CHECK_EQ(write(pipe_end[1], bytes, all), all);
}
static void let_go(void) { let_go_of(1); }
static void forget(void) {
  close(pipe_end[0]);
  close(pipe_end[1]);
}

static void sleeps(void *argument) {
  for (int i = 0; i < 3; i++) lvd_fiber_sleep(1000000);
  *(bool *)argument = true;
}

/* Starts `each` such actions on each worker; all of them have begun. */
static void hold_up_each(lvd_runtime *rt, const lvd_actor_class *cls, uint32_t each,
                         lvd_app **app) {
  uint32_t all = each * lvd_worker_count(rt);
  CHECK(all <= HELD_UP);
  lvd_store_relaxed_u32(&begun, 0);
  lvd_store_relaxed_u32(&ends, 0);
  for (uint32_t i = 0; i < all; i++) app[i] = alone_at(rt, cls, i % lvd_worker_count(rt));
  while (lvd_load_relaxed_u32(&begun) < all) sleep_ms(1);
}

/* Applications that are loaded onto the same worker before and after its overrun end, and are
 * unloaded. */
static void others_end(uint32_t workers, const lvd_actor_class *cls) {
  enum { COUNT = SCALED(100000), FIBERS = 4 };
  lvd_runtime *rt = runtime_of(workers);
  uint32_t count = COUNT, none = 0;
  sink early_result = {0}, late_result = {0}, nothing = {0};
  builder early, late, idle;
  pipeline(&idle, 2, &none, &nothing, 16);
  app_ended(app_begun_at(rt, &idle, 0), LVD_OK); /* an earlier application has been on the worker */
  hold_up();
  lvd_app *open;
  CHECK_EQ(lvd_app_open(rt, NULL, &open), LVD_OK);
  lvd_fiber *f[FIBERS];
  bool slept[FIBERS] = {0};
  for (int i = 0; i < FIBERS; i++) {
    lvd_fiber_options o = {.place = LVD_WORKER(0)};
    CHECK_EQ(lvd_fiber_start(open, sleeps, &slept[i], &o, &f[i]), LVD_OK);
  }
  pipeline(&early, 3, &count, &early_result, 16);
  lvd_app *first = app_begun_at(rt, &early, 0), *endless = alone_at(rt, cls, 0);
  pipeline(&late, 3, &count, &late_result, 16);
  lvd_app *second = app_begun_at(rt, &late, 0);
  app_ended(first, LVD_OK);
  app_ended(second, LVD_OK);
  check_pipeline(&early_result, COUNT, 3);
  check_pipeline(&late_result, COUNT, 3);
  for (int i = 0; i < FIBERS; i++) {
    CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
    CHECK(slept[i]);
  }
  CHECK_EQ(lvd_app_wait(endless, 0), LVD_E_TIMEOUT); /* all of that while the action runs */
  let_go();
  app_ended(endless, LVD_OK);
  lvd_app_close(open);
  CHECK_EQ(lvd_app_wait(open, -1), LVD_OK);
  lvd_app_unload(open);
  lvd_runtime_destroy(rt);
  forget();
}

void test_stuck_others_end(void) {
  for (uint32_t workers = 2; workers <= 4; workers++) others_end(workers, &endless_class);
}

/* The worker's clock stands still; the watchdog signals it. */
void test_stuck_asleep(void) {
  SKIP_ASLEEP();
  for (uint32_t workers = 2; workers <= 4; workers++) others_end(workers, &reader_class);
}

/* ns; ends after the watchdog has sampled the worker and its ready entities were migrated */
enum { LONG_NS = 300000000 };
static void sleeps_long(void *slept) {
  lvd_add_relaxed_u32(&begun, 1);
  CHECK_EQ(lvd_fiber_sleep(LONG_NS), LVD_OK);
  *(bool *)slept = true;
}
static lvd_run_result waits_long_run(lvd_actor *self) {
  (void)self;
  lvd_add_relaxed_u32(&begun, 1);
  return lvd_wait_until((int64_t)now_ns() + LONG_NS) == LVD_OK ? LVD_RUN_DONE : LVD_RUN_YIELD;
}
static const lvd_actor_class waits_long_class = {
    .name = "Waits", .flags = LVD_CLASS_CAN_BLOCK, .run = waits_long_run};

/* A timer on the worker of a blocked action expires on time. */
void test_stuck_asleep_timers(void) {
  SKIP_ASLEEP();
  for (uint32_t workers = 1; workers <= 3; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    hold_up();
    lvd_store_relaxed_u32(&begun, 0);
    lvd_app *open, *held[HELD_UP];
    CHECK_EQ(lvd_app_open(rt, NULL, &open), LVD_OK);
    lvd_fiber_options o = {.place = LVD_WORKER(0)};
    lvd_fiber *f;
    bool slept = false;
    CHECK_EQ(lvd_fiber_start(open, sleeps_long, &slept, &o, &f), LVD_OK);
    lvd_app *waits = alone_at(rt, &waits_long_class, 0);
    while (lvd_load_relaxed_u32(&begun) < 2) sleep_ms(1);
    hold_up_each(rt, &reader_class, 1, held);
    CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
    CHECK(slept);
    app_ended(waits, LVD_OK);
    for (uint32_t i = 0; i < workers; i++) CHECK_EQ(lvd_app_wait(held[i], 0), LVD_E_TIMEOUT);
    let_go_of(workers);
    for (uint32_t i = 0; i < workers; i++) app_ended(held[i], LVD_OK);
    lvd_app_close(open);
    CHECK_EQ(lvd_app_wait(open, -1), LVD_OK);
    lvd_app_unload(open);
    lvd_runtime_destroy(rt);
    forget();
  }
}

static void reads(void *unused) {
  char c;
  (void)unused;
  CHECK_EQ(read(pipe_end[0], &c, 1), 1);
}

/* The same for a fiber, with another fiber queued behind it. */
void test_stuck_fiber_asleep(void) {
  SKIP_ASLEEP();
  enum { FIBERS = 4 };
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 1000;
  sink result = {0};
  builder b;
  hold_up();
  lvd_app *open;
  CHECK_EQ(lvd_app_open(rt, NULL, &open), LVD_OK);
  lvd_fiber_options o = {.place = LVD_WORKER(0)};
  lvd_fiber *reader, *f[FIBERS];
  bool slept[FIBERS] = {0};
  CHECK_EQ(lvd_fiber_start(open, reads, NULL, &o, &reader), LVD_OK);
  for (int i = 0; i < FIBERS; i++)
    CHECK_EQ(lvd_fiber_start(open, sleeps, &slept[i], &o, &f[i]), LVD_OK);
  pipeline(&b, 3, &count, &result, 16);
  app_ended(app_begun_at(rt, &b, 0), LVD_OK);
  check_pipeline(&result, count, 3);
  for (int i = 0; i < FIBERS; i++) {
    CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
    CHECK(slept[i]);
  }
  CHECK_EQ(lvd_fiber_join(reader, 0), LVD_E_TIMEOUT);
  let_go();
  CHECK_EQ(lvd_fiber_join(reader, -1), LVD_OK);
  lvd_app_close(open);
  CHECK_EQ(lvd_app_wait(open, -1), LVD_OK);
  lvd_app_unload(open);
  lvd_runtime_destroy(rt);
  forget();
}

/* Natives that take EINTR for an answer, called as compiled actors do; and one that always tries
 * again. */
enum native { SLEEPS, POLLS, READS, WAITS, NATIVES, TRIES_AGAIN };
static sem_t never;
static int call_native(enum native native) {
  struct timespec t = {1000, 0};
  char c;
  switch (native) {
  case SLEEPS:
    return nanosleep(&t, &t);
  case POLLS:
    return poll(NULL, 0, -1);
  case READS:
    return (int)read(pipe_end[0], &c, 1);
  case WAITS:
    return sem_wait(&never);
  default:
    while (read(pipe_end[0], &c, 1) != 1) lvd_add_relaxed_u32(&ends, 1);
    return 1;
  }
}

static enum native native;
static bool in_a_loop; /* the action calls it again whatever it returns */
static lvd_run_result native_run(lvd_actor *self) {
  lvd_add_relaxed_u32(&begun, 1);
  do {
    *(const char *volatile *)&self->native = "native";
    int result = call_native(native);
    int error = errno;
    *(const char *volatile *)&self->native = NULL;
    if (native == TRIES_AGAIN) return LVD_RUN_DONE;
    CHECK_EQ(result, -1);
    CHECK_EQ(error, EINTR);
  } while (in_a_loop);
  return LVD_RUN_YIELD;
}
static const lvd_actor_class native_class = {
    .name = "Native", .flags = LVD_CLASS_ABANDONABLE | LVD_CLASS_CAN_BLOCK, .run = native_run};

static void stopped_in_native(lvd_runtime *rt) {
  lvd_store_relaxed_u32(&begun, 0);
  lvd_app *app = alone_at(rt, &native_class, 0);
  while (!lvd_load_relaxed_u32(&begun)) sleep_ms(1);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  app_ended(app, LVD_E_STOPPED);
}

/* A blocked native of a stopped application has its system call ended early, and its actor does
 * not continue with the result. Others in the same call are not disturbed. */
void test_stuck_native_ends(void) {
  SKIP_ASLEEP();
#if defined __x86_64__
  const bool everywhere = true;
#else
  const bool everywhere = false; /* only those calls that any signal ends early */
#endif
  CHECK_EQ(sem_init(&never, 0, 0), 0);
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    hold_up();
    lvd_app *other = workers > 1 ? alone_at(rt, &reader_class, 1) : NULL;
    for (native = SLEEPS; native < NATIVES; native++) {
      if (native > POLLS && !everywhere) continue;
      for (int loop = 0; loop <= everywhere; loop++) {
        in_a_loop = loop;
        stopped_in_native(rt);
      }
    }
    if (other) {
      CHECK_EQ(lvd_app_wait(other, 0), LVD_E_TIMEOUT);
      let_go();
      app_ended(other, LVD_OK);
    }
    lvd_runtime_destroy(rt);
    forget();
  }
  sem_destroy(&never);
}

/* A native that tries again is interrupted repeatedly, and ends when it has what it waits for.
 * One of an application that ends by itself is not interrupted. */
void test_stuck_native_tries_again(void) {
  SKIP_ASLEEP();
#if !defined __x86_64__
  SKIP("a read is restarted after the signal");
#endif
  uint32_t count = 1000;
  lvd_runtime *rt = runtime_of(2);
  native = TRIES_AGAIN;
  for (int stopped = 0; stopped < 2; stopped++) {
    sink result = {0};
    builder b;
    hold_up();
    lvd_store_relaxed_u32(&begun, 0);
    lvd_store_relaxed_u32(&ends, 0);
    lvd_app *app = alone_at(rt, &native_class, 0);
    while (!lvd_load_relaxed_u32(&begun)) sleep_ms(1);
    if (stopped) {
      CHECK_EQ(lvd_app_stop_timeout(app, 0), LVD_E_TIMEOUT);
      while (lvd_load_relaxed_u32(&ends) < 3) sleep_ms(1);
    } else {
      lvd_app_exit(app);
      /* By the end of this the watchdog has sampled the worker. */
      pipeline(&b, 3, &count, &result, 16);
      app_ended(app_begun_at(rt, &b, 0), LVD_OK);
      CHECK_EQ(lvd_load_relaxed_u32(&ends), 0);
    }
    let_go();
    app_ended(app, stopped ? LVD_E_STOPPED : LVD_OK);
    forget();
  }
  lvd_runtime_destroy(rt);
}

/* When all workers have slept for a while the watchdog sleeps; it still handles what comes then. */
void test_stuck_after_rest(void) {
  SKIP_ASLEEP();
  uint32_t count = 1000;
  lvd_runtime *rt = runtime_of(2);
  hold_up();
  for (int i = 0; i < 2; i++) {
    usleep(1000000);
    sink result = {0};
    builder b;
    lvd_app *reader = alone_at(rt, &reader_class, 0);
    pipeline(&b, 3, &count, &result, 16);
    app_ended(app_begun_at(rt, &b, 0), LVD_OK);
    check_pipeline(&result, count, 3);
    CHECK_EQ(lvd_app_wait(reader, 0), LVD_E_TIMEOUT);
    let_go();
    app_ended(reader, LVD_OK);
  }
  lvd_runtime_destroy(rt);
  forget();
}

/* Of the workers without priority and backup workers. */
static uint64_t activations_of_all(lvd_runtime *rt) {
  uint64_t all = 0;
  for (uint32_t i = 0; i < lvd_worker_count(rt); i++) {
    lvd_worker_counters w;
    CHECK_EQ(lvd_worker_counters_read(rt, i, &w), LVD_OK);
    all += w.activations;
  }
  return all;
}

/* If all workers are in an overrun, a backup worker shares the core with each. What was queued
 * before, what comes then, and fibers make progress, and return when the worker does. */
static void relieved(uint32_t workers, const lvd_actor_class *cls) {
  lvd_runtime *rt = runtime_of(workers);
  uint32_t count = UINT32_MAX, few = SCALED(100000);
  sink endless = {0}, result = {0};
  builder before, after;
  lvd_app *held[HELD_UP], *open;
  hold_up();
  CHECK_EQ(lvd_app_open(rt, NULL, &open), LVD_OK);
  pipeline(&before, 3, &count, &endless, 16);
  lvd_app *goes_on = app_begun_at(rt, &before, 0);
  hold_up_each(rt, cls, 1, held);
  uint64_t fired = firings_of(goes_on, 2);
  while (firings_of(goes_on, 2) < fired + 1000) sleep_ms(1);
  pipeline(&after, 3, &few, &result, 16);
  app_ended(app_begun_at(rt, &after, 0), LVD_OK);
  check_pipeline(&result, few, 3);
  bool slept = false;
  lvd_fiber_options o = {.place = LVD_WORKER(0)};
  lvd_fiber *f;
  CHECK_EQ(lvd_fiber_start(open, sleeps, &slept, &o, &f), LVD_OK);
  CHECK_EQ(lvd_fiber_join(f, -1), LVD_OK);
  CHECK(slept);
  CHECK_EQ(lvd_app_pause(goes_on), LVD_OK);
  CHECK_EQ(lvd_app_resume(goes_on), LVD_OK);
  for (uint32_t i = 0; i < workers; i++) CHECK_EQ(lvd_app_wait(held[i], 0), LVD_E_TIMEOUT);
  let_go_of(workers);
  for (uint32_t i = 0; i < workers; i++) app_ended(held[i], LVD_OK);
  uint64_t home = activations_of_all(rt);
  while (activations_of_all(rt) < home + 100) sleep_ms(1);
  CHECK_EQ(lvd_app_stop(goes_on), LVD_OK);
  app_ended(goes_on, LVD_E_STOPPED);
  lvd_app_close(open);
  CHECK_EQ(lvd_app_wait(open, -1), LVD_OK);
  lvd_app_unload(open);
  lvd_runtime_destroy(rt);
  forget();
}

void test_stuck_relief(void) {
  for (uint32_t workers = 1; workers <= 3; workers++) relieved(workers, &endless_class);
}

void test_stuck_relief_asleep(void) {
  SKIP_ASLEEP();
  for (uint32_t workers = 1; workers <= 3; workers++) relieved(workers, &reader_class);
}

/* Nor can it be given to a backup worker that is in an overrun itself: it waits, and is not
 * lost. */
void test_stuck_every_relief(void) {
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    uint32_t count = 1000;
    sink result = {0};
    builder b;
    lvd_app *held[HELD_UP];
    hold_up();
    hold_up_each(rt, &endless_class, 2, held);
    pipeline(&b, 3, &count, &result, 16);
    lvd_app *app = app_begun_at(rt, &b, 0);
    CHECK_EQ(lvd_app_wait(app, 300 * MS_NS), LVD_E_TIMEOUT);
    CHECK_EQ(lvd_app_pause(app), LVD_OK); /* no activation has to be waited for */
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
    let_go();
    for (uint32_t i = 0; i < 2 * workers; i++) app_ended(held[i], LVD_OK);
    CHECK_EQ(lvd_load_relaxed_u32(&ends), 2 * workers);
    app_ended(app, LVD_OK);
    check_pipeline(&result, count, 3);
    lvd_runtime_destroy(rt);
    forget();
  }
}

static int reapers(void) {
  DIR *all = opendir("/proc/self/task");
  CHECK(all);
  int count = 0;
  for (struct dirent *d; (d = readdir(all));) {
    char path[300], name[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
    FILE *file = fopen(path, "r"); /* the thread may have ended */
    if (!file) continue;
    if (fgets(name, sizeof name, file)) count += strcmp(name, "levada/reaper\n") == 0;
    fclose(file);
  }
  closedir(all);
  return count;
}

/* Each application that ends on an occupied worker takes a reaper; surplus reapers end when all
 * have ended. */
void test_stuck_reapers_leave(void) {
  enum { APPS = 12, KEPT = 2 };
  lvd_runtime *rt = runtime_of(1);
  uint32_t none = 0;
  for (int round = 0; round < 3; round++) {
    sink nothing[APPS] = {0};
    builder b[APPS];
    lvd_app *app[APPS];
    lvd_app *endless;
    hold_up();
    hold_up_each(rt, &endless_class, 1, &endless);
    for (int i = 0; i < APPS; i++) {
      pipeline(&b[i], 2, &none, &nothing[i], 16);
      app[i] = app_begun_at(rt, &b[i], 0);
    }
    for (int i = 0; i < APPS; i++) CHECK_EQ(lvd_app_stop_timeout(app[i], 0), LVD_E_TIMEOUT);
    while (reapers() < APPS) sleep_ms(1);
    let_go();
    app_ended(endless, LVD_OK);
    for (int i = 0; i < APPS; i++) app_ended(app[i], LVD_E_STOPPED);
    forget();
    if (round == 1) continue; /* they are reused */
    if (round == 2) break;    /* they end together with the runtime */
    while (reapers() > KEPT) sleep_ms(10);
    CHECK_EQ(reapers(), KEPT);
  }
  lvd_runtime_destroy(rt);
  /* Joined, but the kernel may list them a moment longer. */
  for (int ms = 0; reapers() && ms < 5000; ms++) sleep_ms(1);
  CHECK_EQ(reapers(), 0);
}
