/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The reported time of an actor while others have its core: threads of this process on the same
 * core, or another program that holds the core's lease. The actor measures its real use by its
 * own CPU-time clock. Tested: firings much shorter and much longer than the others' time slice;
 * sleeps, many of them, and a first one after slow wake-ups; and a kernel that does not report
 * run delays. How much steal time there is in what period depends on the machine: each test
 * continues until it is enough. */
#include "../support/test.h"

#include <levada/lease.h>

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000 };
/* Many times the possible error at the end, which is a time slice of the others. */
static const uint64_t enough_ns = SCALED(400000000) + 100000000, turn_ns = 6000000;

static uint64_t time_of(clockid_t clock) {
  struct timespec t;
  CHECK_EQ(clock_gettime(clock, &t), 0);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static lvd_a32 stop;
static lvd_a64 used_ns; /* in all firings */

/* Computes for this number of microseconds of CPU time. */
static lvd_run_result computes_run(lvd_actor *self) {
  uint64_t work = *(const uint32_t *)self->params * UINT64_C(1000);
  uint64_t from = time_of(CLOCK_THREAD_CPUTIME_ID), is = from;
  while (is - from < work) is = time_of(CLOCK_THREAD_CPUTIME_ID);
  lvd_add_relaxed_u64(&used_ns, is - from);
  return lvd_load_relaxed_u32(&stop) ? LVD_RUN_DONE : LVD_RUN_YIELD;
}
static const lvd_actor_class computes_class = {.name = "computes", .run = computes_run};

/* Sleeps in the kernel, as a native may. */
static lvd_run_result sleeps_run(lvd_actor *self) {
  uint64_t ns = *(const uint32_t *)self->params * UINT64_C(1000), from = time_of(CLOCK_MONOTONIC);
  struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  nanosleep(&t, NULL);
  lvd_add_relaxed_u64(&used_ns, time_of(CLOCK_MONOTONIC) - from);
  return lvd_load_relaxed_u32(&stop) ? LVD_RUN_DONE : LVD_RUN_YIELD;
}
static const lvd_actor_class sleeps_class = {.name = "sleeps", .run = sleeps_run};

static lvd_app *begun(lvd_runtime *rt, const lvd_actor_class *cls, const uint32_t *us) {
  static builder b;
  lvd_store_relaxed_u32(&stop, 0);
  lvd_store_relaxed_u64(&used_ns, 0);
  builder_init(&b, "alone");
  builder_actor(&b, "alone", cls, us);
  return app_begun(rt, &b);
}

static lvd_worker_counters worker(lvd_runtime *rt) {
  lvd_worker_counters w;
  CHECK_EQ(lvd_worker_counters_read(rt, 0, &w), LVD_OK);
  return w;
}

static lvd_actor_counters of(lvd_app *app) {
  lvd_actor_counters actor;
  uint32_t one = 1;
  CHECK_EQ(lvd_app_counters(app, &actor, &one, NULL, NULL), LVD_OK);
  return actor;
}

/* The counters of the actor when it has stopped. */
static lvd_actor_counters stopped(lvd_app *app) {
  lvd_store_relaxed_u32(&stop, 1);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_actor_counters actor = of(app);
  lvd_app_unload(app);
  return actor;
}

/* Until there is enough steal time; then it must not be in the actor's busy time. What a
 * hypervisor steals from these cores is not reported. */
static bool cost_what_it_used(lvd_runtime *rt, uint32_t us) {
  lvd_worker_counters before = worker(rt);
  lvd_app *app = begun(rt, &computes_class, &us);
  for (int i = 0; worker(rt).preempted_ns - before.preempted_ns < enough_ns && i < PATIENCE_MS; i++)
    sleep_ms(1);
  lvd_actor_counters actor = stopped(app);
  uint64_t used = lvd_load_relaxed_u64(&used_ns), busy = actor.busy_ns;
  uint64_t lost = worker(rt).preempted_ns - before.preempted_ns;
  printf("%u us: %.0f ms used, %.0f reported, %.0f steal time\n", us, (double)used / 1e6,
         (double)busy / 1e6, (double)lost / 1e6);
  CHECK(lost >= enough_ns);
  CHECK(busy + turn_ns >= used - used / 10);
  return busy <= used + used / 4 + lost / 8 + turn_ns;
}

static void costs_what_it_uses(lvd_runtime *rt, uint32_t us) {
  int attempts = 1;
  while (!cost_what_it_used(rt, us)) CHECK(attempts++ < 4);
}

static const uint32_t lengths_us[] = {30, 1100, 25000};

/* ---- next to threads on its core ------------------------------------------------------------- */

static lvd_a32 others_end;

static void *computes_on(void *core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET((size_t) * (const int32_t *)core, &set);
  CHECK_EQ(sched_setaffinity(0, sizeof set, &set), 0);
  while (!lvd_load_relaxed_u32(&others_end)) continue;
  return NULL;
}

/* Sleeps for as many microseconds as requested, each time. */
static lvd_run_result obeys_run(lvd_actor *self) {
  lvd_consumer *in = &self->in[0];
  while (lvd_elements(in, 1)) {
    uint32_t us = LVD_GET(in, uint32_t);
    struct timespec t = {0, (long)us * 1000};
    if (us) nanosleep(&t, NULL);
    self->fired[0]++;
  }
  if (lvd_ended(in) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
static const lvd_port_class told[] = {{"told", sizeof(uint32_t)}};
static const lvd_action_class obey[] = {{"obey", NULL, 1}};
static const lvd_actor_class obeys_class = {.name = "obeys",
                                            .file = "test_steal_time.c",
                                            .inputs = 1,
                                            .actions = 1,
                                            .input = told,
                                            .action = obey,
                                            .run = obeys_run};

static bool tells_delays(void) { return access("/proc/thread-self/schedstat", R_OK) == 0; }

static lvd_runtime *contended_runtime(pthread_t *other, int32_t *core) {
  lvd_runtime *rt = runtime_of(1);
  *core = worker(rt).cpu;
  if (*core < 0 || *core >= CPU_SETSIZE) SKIP("workers are not pinned");
  CHECK_EQ(pthread_create(other, NULL, computes_on, core), 0);
  return rt;
}

static void ends(lvd_runtime *rt, pthread_t other) {
  lvd_store_relaxed_u32(&others_end, 1);
  pthread_join(other, NULL);
  lvd_runtime_destroy(rt);
}

static void costs_what_it_uses_contended(void) {
  pthread_t other;
  int32_t core;
  lvd_runtime *rt = contended_runtime(&other, &core);
  for (size_t i = 0; i < COUNT(lengths_us); i++) costs_what_it_uses(rt, lengths_us[i]);
  ends(rt, other);
}

/* Its sleep delays the others of its worker, so it counts as busy time. */
static void takes_what_it_sleeps_contended(void) {
  enum { TIMES = 20 };
  pthread_t other;
  int32_t core;
  lvd_runtime *rt = contended_runtime(&other, &core);
  uint32_t us = 20000;
  lvd_app *app = begun(rt, &sleeps_class, &us);
  while (lvd_load_relaxed_u64(&used_ns) < TIMES * UINT64_C(20000000)) sleep_ms(1);
  lvd_actor_counters actor = stopped(app);
  CHECK(actor.busy_ns >= actor.activations * UINT64_C(20000000) * 8 / 10);
  CHECK(actor.busy_ns <= lvd_load_relaxed_u64(&used_ns) + actor.activations * UINT64_C(1000000));
  ends(rt, other);
}

void test_lost_to_threads(void) {
  if (!tells_delays()) SKIP("the kernel does not report run delays");
  costs_what_it_uses_contended();
}

void test_lost_and_slept(void) {
  if (!tells_delays()) SKIP("the kernel does not report run delays");
  takes_what_it_sleeps_contended();
}

/* From here on the kernel does not report the run delays of this process. */
static void hide_delays(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("the sanitizer reads what would be hidden");
#endif
  bool apart = unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
  apart = apart && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
  if (!apart || mount("none", "/proc/self/task", "tmpfs", 0, NULL) != 0)
    SKIP("the kernel's report cannot be hidden");
  CHECK(!tells_delays());
}

void test_lost_untold(void) {
  hide_delays();
  costs_what_it_uses_contended();
}

void test_lost_untold_and_slept(void) {
  hide_delays();
  takes_what_it_sleeps_contended();
}

/* Its worker is woken repeatedly, each time while the others have the core: none of that counts
 * as its busy time, nor is its sleep reported shorter for it, within the error that steal_time.c
 * names. */
void test_lost_before_a_sleep(void) {
  enum { OTHERS = 3, WAKES = 400, SLEEP_MS = 50, LASTS_MS = 5 };
  pthread_t other[OTHERS];
  int32_t core;
  if (!tells_delays()) SKIP("the kernel does not report run delays");
  lvd_runtime *rt = contended_runtime(&other[0], &core);
  for (int i = 1; i < OTHERS; i++) CHECK_EQ(pthread_create(&other[i], NULL, computes_on, &core), 0);
  builder b;
  builder_init(&b, "alone");
  builder_connect(&b, LVD_EXTERNAL, 0, builder_actor(&b, "obeys", &obeys_class, NULL), 0, 10);
  lvd_app *app = app_begun(rt, &b);
  lvd_producer *p = lvd_app_producer(app, 0);
  for (uint64_t i = 1; i <= WAKES + 1; i++) {
    while (!lvd_room(p, 1)) sleep_ms(1);
    LVD_PUT(p, uint32_t, i <= WAKES ? 0 : SLEEP_MS * 1000);
    lvd_flush(p);
    do sleep_ms(1);
    while (firings_of(app, 0) < i);
  }
  lvd_producer_close(p, LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_actor_counters actor;
  uint32_t one = 1;
  CHECK_EQ(lvd_app_counters(app, &actor, &one, NULL, NULL), LVD_OK);
  printf("%.1f ms reported\n", (double)actor.longest_ns / 1e6);
  CHECK(actor.longest_ns >= (SLEEP_MS - LASTS_MS - 2) * UINT64_C(1000000));
  lvd_app_unload(app);
  lvd_store_relaxed_u32(&others_end, 1);
  for (int i = 1; i < OTHERS; i++) pthread_join(other[i], NULL);
  ends(rt, other[0]);
}

/* ---- next to a program that takes its turns -------------------------------------------------- */

static void always(void *unused) {
  (void)unused;
  for (volatile bool on = true; on;) continue;
}

static pid_t program(void) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  lvd_runtime *rt = runtime_of(0);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  for (uint32_t i = 0; i < lvd_worker_count(rt); i++) {
    lvd_fiber *f;
    lvd_fiber_options o = {.place = LVD_WORKER(i)};
    CHECK_EQ(lvd_fiber_start(app, always, NULL, &o, &f), LVD_OK);
  }
  for (;;) pause();
}

static pid_t lends_to_a_program(void) {
  char name[64];
  snprintf(name, sizeof name, "test-lost-%d", (int)getpid());
  setenv("LEVADA_LEASES", name, 1);
  pid_t child = program(); /* before there are threads */
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  return child;
}

static void lends_no_more(pid_t child) {
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, NULL, 0), child);
  lvd_leases_end();
}

void test_lost_to_a_lease(void) {
  pid_t child = lends_to_a_program();
  lvd_runtime *rt = runtime_of(1);
  for (size_t i = 0; i < COUNT(lengths_us); i++) costs_what_it_uses(rt, lengths_us[i]);
  lvd_runtime_destroy(rt);
  lends_no_more(child);
}

/* A thread that waits for a lease is not taken for one blocked in a native, since its worker
 * would be vacated (overrun.c). */
void test_lost_but_not_moved(void) {
  enum { US = 60000, FIRINGS = 12 }; /* longer than a time slice, and shorter than an overrun */
  pid_t child = lends_to_a_program();
  lvd_runtime *rt = runtime_of(2);
  uint32_t us = US, placement = 0;
  static builder b;
  lvd_app_options o = {.placement = &placement};
  lvd_app *both[2];
  lvd_store_relaxed_u32(&stop, 0);
  for (size_t i = 0; i < COUNT(both); i++) {
    builder_init(&b, "alone");
    builder_actor(&b, "alone", &computes_class, &us);
    CHECK_EQ(lvd_app_load(rt, &b.net, &o, &both[i], NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(both[i]), LVD_OK);
  }
  while (of(both[0]).activations < FIRINGS) {
    for (size_t i = 0; i < COUNT(both); i++) CHECK_EQ(of(both[i]).target, 0);
    sleep_ms(1);
  }
  CHECK(worker(rt).preempted_ns > 0);
  lvd_store_relaxed_u32(&stop, 1);
  for (size_t i = 0; i < COUNT(both); i++) {
    CHECK_EQ(lvd_app_wait(both[i], -1), LVD_OK);
    lvd_app_unload(both[i]);
  }
  lvd_runtime_destroy(rt);
  lends_no_more(child);
}
