/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Core leases: processes that share the cores. Each test has its own leases, by name, and its
 * programs are processes forked before there are threads. No test checks a waiting time, which
 * depends on the machine. */
#include "../support/test.h"

#include <levada/fiber.h>
#include <levada/fork.h>
#include <levada/lease.h>

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 30000 };

/* Shared by all processes of a test. */
static struct shared {
  lvd_a32 go, stop, wrong;
  lvd_a64 rounds[4]; /* of each program */
} * all;

static void begin(void) {
  char name[64];
  snprintf(name, sizeof name, "test-%d", (int)getpid());
  setenv("LEVADA_LEASES", name, 1);
  all = mmap(NULL, sizeof *all, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(all != MAP_FAILED);
}

static pid_t start(void (*program)(int), int which) {
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if the test fails */
    program(which);
    exit(0);
  }
  return child;
}

static void ends(pid_t child) {
  int status;
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}
static void is_killed(pid_t child) {
  int status;
  CHECK_EQ(kill(child, SIGKILL), 0);
  CHECK_EQ(waitpid(child, &status, 0), child);
}

static void come(lvd_a32 *word) {
  for (int i = 0; !lvd_load_acquire_u32(word) && i < PATIENCE_MS; i++) sleep_ms(1);
  CHECK(lvd_load_acquire_u32(word));
}
static void text_append(lvd_a32 *word) { lvd_store_release_u32(word, 1); }

/* Waits until program `which` has done `rounds` more rounds. */
static void goes_on(int which, uint64_t rounds) {
  uint64_t from = lvd_load_relaxed_u64(&all->rounds[which]);
  for (int i = 0; i < PATIENCE_MS; i++) {
    if (lvd_load_relaxed_u64(&all->rounds[which]) - from >= rounds) return;
    sleep_ms(1);
  }
  CHECK(!"no progress");
}

/* The sums over the leases of all cores; `thread` is the number of leases that are held. */
static lvd_lease_core seen(void) {
  lvd_lease_core core[256], sum = {0};
  uint32_t count = COUNT(core);
  CHECK_EQ(lvd_leases_read(core, &count), LVD_OK);
  for (uint32_t i = 0; i < count && i < COUNT(core); i++) {
    sum.transfers += core[i].transfers;
    sum.preempted += core[i].preempted;
    sum.reclaimed_idle += core[i].reclaimed_idle;
    sum.thread += core[i].thread != 0;
  }
  return sum;
}
/* The number of leases that the process holds. */
static uint32_t is_holder(pid_t process) {
  lvd_lease_core core[256];
  uint32_t count = COUNT(core), held = 0;
  CHECK_EQ(lvd_leases_read(core, &count), LVD_OK);
  for (uint32_t i = 0; i < count && i < COUNT(core); i++) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task/%u", (int)process, core[i].thread);
    held += core[i].thread && access(path, F_OK) == 0;
  }
  return held;
}
/* One sample decides: a worker without work releases its core for a moment. */
static void all_are_held(void) {
  for (int i = 0; i < PATIENCE_MS; i++) {
    if (seen().thread == usable_cores()) return;
    sleep_ms(1);
  }
  CHECK(!"a core has no holder");
}

/* ---- programs -------------------------------------------------------------------------------- */

static int which_here;

/* Never checks for requests: only the clock takes the core from it. */
static void compute(void *unused) {
  (void)unused;
  while (!lvd_load_relaxed_u32(&all->stop)) {
    uint64_t x = 1;
    for (int i = 0; i < 10000; i++) x = x * 6364136223846793005u + 1;
    lvd_add_relaxed_u64(&all->rounds[which_here], 1 + (x == 0));
  }
}

/* Starts such a fiber on each worker. */
static void computes_at(int which, uint32_t realtime) {
  lvd_runtime *rt;
  lvd_app *app;
  lvd_fiber *f[64];
  which_here = which;
  CHECK_EQ(lvd_runtime_create(&(lvd_runtime_options){.realtime = realtime}, &rt), LVD_OK);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  uint32_t n = lvd_worker_count(rt) < COUNT(f) ? lvd_worker_count(rt) : COUNT(f);
  for (uint32_t i = 0; i < n; i++)
    CHECK_EQ(
        lvd_fiber_start(app, compute, NULL, &(lvd_fiber_options){.place = LVD_WORKER(i)}, &f[i]),
        LVD_OK);
  for (uint32_t i = 0; i < n; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
static void computes(int which) { computes_at(which, 0); }
static void computes_first(int which) { computes_at(which, which ? 1 : 0); }

/* Wakes repeatedly, and does very little. */
static void wake(void *unused) {
  (void)unused;
  while (!lvd_load_relaxed_u32(&all->stop)) {
    lvd_fiber_sleep(1000000);
    lvd_add_relaxed_u64(&all->rounds[which_here], 1);
  }
}

static void wakes_first(int which) {
  lvd_runtime *rt;
  lvd_app *app;
  which_here = which;
  CHECK_EQ(lvd_runtime_create(&(lvd_runtime_options){.workers = 1, .realtime = 1}, &rt), LVD_OK);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  CHECK_EQ(lvd_fiber_start(app, wake, NULL, NULL, NULL), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(f, fib, n - 1);
  int b = fib(n - 2);
  return LVD_JOIN(f, fib) + b;
}
static void forks(int which) {
  come(&all->go);
  while (!lvd_load_relaxed_u32(&all->stop)) {
    CHECK_EQ(fib(18), 2584);
    lvd_add_relaxed_u64(&all->rounds[which], 1);
  }
}

static void is_host(int which) {
  (void)which;
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  text_append(&all->go);
  for (;;) sleep_ms(1000);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Both programs make progress, and the cores are handed over between them. */
static void share(void (*program)(int)) {
  begin();
  pid_t a = start(program, 0), b = start(program, 1);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  text_append(&all->go);
  for (int i = 0; i < PATIENCE_MS && seen().transfers + seen().preempted < 10; i++) sleep_ms(1);
  CHECK(seen().transfers + seen().preempted >= 10);
  goes_on(0, 3);
  goes_on(1, 3);
  text_append(&all->stop);
  ends(a);
  ends(b);
  CHECK(!seen().thread); /* all leases were released */
  lvd_leases_end();
  uint32_t none = 0;
  CHECK_EQ(lvd_leases_read(NULL, &none), LVD_E_STATE);
}
void test_lease_fibers(void) { share(computes); }
void test_lease_forks(void) { share(forks); }

static bool may_go_first(void) {
  if (lvd_realtime_allowed(1)) return true;
  SKIP("the system permits no real-time priority (RLIMIT_RTPRIO, CAP_SYS_NICE)");
  return false;
}

/* A process that computes continuously shares the cores in turns, whatever its priority. */
void test_lease_realtime(void) {
  if (may_go_first()) share(computes_first);
}

/* A real-time thread that wakes for a moment waits for no lease: not for that of a stopped
 * process which holds all leases, and takes none from it. */
void test_lease_realtime_wakes(void) {
  if (!may_go_first()) return;
  begin();
  pid_t a = start(computes, 0), b = start(wakes_first, 1);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  goes_on(0, 3);
  goes_on(1, 2000); /* for more than a second, after which it takes part */
  bool held = false;
  for (int i = 0; i < PATIENCE_MS / 10 && !held; i++) {
    CHECK_EQ(kill(a, SIGSTOP), 0);
    /* The process that is stopped while it holds leases still holds them; the other one sleeps
     * most of the time. */
    sleep_ms(10);
    held = is_holder(a) == usable_cores();
    if (!held) CHECK_EQ(kill(a, SIGCONT), 0);
  }
  CHECK(held);
  goes_on(1, 200);
  CHECK_EQ(is_holder(a), usable_cores());
  CHECK_EQ(kill(a, SIGCONT), 0);
  goes_on(0, 3);
  text_append(&all->stop);
  ends(a);
  ends(b);
  lvd_leases_end();
}

void test_lease_killed(void) {
  begin();
  pid_t a = start(computes, 0);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  all_are_held();
  pid_t b = start(computes, 1);
  goes_on(1, 3);
  is_killed(a);
  goes_on(1, 3);
  pid_t c = start(computes, 2);
  goes_on(2, 3); /* in the slot of the dead process */
  text_append(&all->stop);
  ends(b);
  ends(c);
  CHECK(!seen().thread);
  lvd_leases_end();
}

/* No process waits for a stopped one; that is counted, and it takes part again when it is
 * continued. */
void test_lease_stopped(void) {
  begin();
  pid_t a = start(computes, 0);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  all_are_held();
  goes_on(0, 3);                      /* the computing process holds at least one core */
  uint64_t before = seen().preempted; /* from the stop on its lease may be seized */
  CHECK_EQ(kill(a, SIGSTOP), 0);
  CHECK_EQ(waitpid(a, NULL, WUNTRACED), a);
  pid_t b = start(computes, 1);
  goes_on(1, 3);
  /* The other process may have begun on a core that was free. */
  while (seen().preempted <= before) sleep_ms(1);
  CHECK_EQ(kill(a, SIGCONT), 0);
  goes_on(0, 3);
  goes_on(1, 3);
  text_append(&all->stop);
  ends(a);
  ends(b);
  lvd_leases_end();
}

/* Without a host, before it starts and after it has ended, all processes continue. */
static void host_goes(int signal_or_end) {
  begin();
  pid_t a = start(computes, 0), b = start(computes, 1);
  goes_on(0, 3);
  goes_on(1, 3);
  pid_t host = start(is_host, 2);
  come(&all->go);
  goes_on(0, 3);
  goes_on(1, 3);
  CHECK_EQ(lvd_leases_begin(), LVD_E_STATE); /* there is one already */
  CHECK_EQ(kill(host, signal_or_end), 0);
  CHECK_EQ(waitpid(host, NULL, 0), host);
  goes_on(0, 3);
  goes_on(1, 3);
  CHECK_EQ(lvd_leases_begin(), LVD_OK); /* with the file that the earlier host has left */
  all_are_held();                       /* the processes have found the new host */
  text_append(&all->stop);
  ends(a);
  ends(b);
  lvd_leases_end();
}
void test_lease_host_killed(void) { host_goes(SIGKILL); }

void test_lease_off(void) {
  uint32_t none = 0;
  static const char *const names[] = {"off", "a/b", "..", ".x"};
  for (size_t i = 0; i < COUNT(names); i++) {
    setenv("LEVADA_LEASES", names[i], 1);
    CHECK_EQ(lvd_leases_begin(), LVD_E_NOT_FOUND);
  }
  CHECK_EQ(lvd_leases_read(NULL, &none), LVD_E_STATE);
  lvd_leases_end();
  begin();
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(lvd_leases_begin(), LVD_OK);
    CHECK_EQ(lvd_leases_read(NULL, &none), LVD_OK);
    lvd_leases_end();
  }
}
