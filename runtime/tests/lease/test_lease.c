/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Leases: processes that share the cores. Each test has leases of its own name, and its programs are
 * processes that were made before there were threads. How long somebody waited is in no test: that is the
 * machine's, too. */
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

/* What all processes of a test see. */
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

/* It goes on, by so many rounds. */
static void goes_on(int which, uint64_t rounds) {
  uint64_t from = lvd_load_relaxed_u64(&all->rounds[which]);
  for (int i = 0; i < PATIENCE_MS; i++) {
    if (lvd_load_relaxed_u64(&all->rounds[which]) - from >= rounds) return;
    sleep_ms(1);
  }
  CHECK(!"it stands still");
}

/* What the leases of all cores together have seen; `thread` is how many are somebody's. */
static lvd_lease_core seen(void) {
  lvd_lease_core core[256], sum = {0};
  uint32_t count = COUNT(core);
  CHECK_EQ(lvd_leases_read(core, &count), LVD_OK);
  for (uint32_t i = 0; i < count && i < COUNT(core); i++) {
    sum.given += core[i].given;
    sum.seized += core[i].seized;
    sum.left += core[i].left;
    sum.thread += core[i].thread != 0;
  }
  return sum;
}
/* Of how many cores a thread of that process has the lease. */
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
/* One look decides: a worker that has nothing yet gives its core back for a moment. */
static void all_are_held(void) {
  for (int i = 0; i < PATIENCE_MS; i++) {
    if (seen().thread == usable_cores()) return;
    sleep_ms(1);
  }
  CHECK(!"some core is nobody's");
}

/* ---- programs -------------------------------------------------------------------------------- */

static int which_here;

/* Never looks up: only the clock takes the core from it. */
static void compute(void *unused) {
  (void)unused;
  while (!lvd_load_relaxed_u32(&all->stop)) {
    uint64_t x = 1;
    for (int i = 0; i < 10000; i++) x = x * 6364136223846793005u + 1;
    lvd_add_relaxed_u64(&all->rounds[which_here], 1 + (x == 0));
  }
}

/* A fiber on each worker that does. */
static void computes_at(int which, uint32_t realtime) {
  lvd_runtime *rt;
  lvd_app *app;
  lvd_fiber *f[64];
  which_here = which;
  CHECK_EQ(lvd_runtime_create(&(lvd_runtime_options){.realtime = realtime}, &rt), LVD_OK);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  uint32_t n = lvd_workers(rt) < COUNT(f) ? lvd_workers(rt) : COUNT(f);
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

/* Wakes up again and again, and does next to nothing. */
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

/* Both go on, and the cores go from one to the other. */
static void share(void (*program)(int)) {
  begin();
  pid_t a = start(program, 0), b = start(program, 1);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  text_append(&all->go);
  for (int i = 0; i < PATIENCE_MS && seen().given + seen().seized < 10; i++) sleep_ms(1);
  CHECK(seen().given + seen().seized >= 10);
  goes_on(0, 3);
  goes_on(1, 3);
  text_append(&all->stop);
  ends(a);
  ends(b);
  CHECK(!seen().thread); /* all is given back */
  lvd_leases_end();
  uint32_t none = 0;
  CHECK_EQ(lvd_leases_read(NULL, &none), LVD_E_STATE);
}
void test_lease_fibers(void) { share(computes); }
void test_lease_forks(void) { share(forks); }

static bool may_go_first(void) {
  if (lvd_realtime_allowed(1)) return true;
  SKIP("the system gives this program no real-time priority (RLIMIT_RTPRIO, CAP_SYS_NICE)");
  return false;
}

/* Who computes on and on has turns, whatever its priority. */
void test_lease_realtime(void) {
  if (may_go_first()) share(computes_first);
}

/* Who wakes for a moment waits for nobody's: not for one that is stopped and has all leases, and takes none from it. */
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
    sleep_ms(
        10); /* who has it when it is stopped, has it still; the other sleeps most of the time */
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
  goes_on(2, 3); /* in the slot of the dead one */
  text_append(&all->stop);
  ends(b);
  ends(c);
  CHECK(!seen().thread);
  lvd_leases_end();
}

/* Nobody waits for one that is stopped; it is counted, and takes part again when it goes on. */
void test_lease_stopped(void) {
  begin();
  pid_t a = start(computes, 0);
  CHECK_EQ(lvd_leases_begin(), LVD_OK);
  all_are_held();
  goes_on(0, 3);                   /* a core at least is held by who computes */
  uint64_t before = seen().seized; /* from the stop on it may be taken */
  CHECK_EQ(kill(a, SIGSTOP), 0);
  CHECK_EQ(waitpid(a, NULL, WUNTRACED), a);
  pid_t b = start(computes, 1);
  goes_on(1, 3);
  while (seen().seized <= before) sleep_ms(1); /* it may have begun on a core that was nobody's */
  CHECK_EQ(kill(a, SIGCONT), 0);
  goes_on(0, 3);
  goes_on(1, 3);
  text_append(&all->stop);
  ends(a);
  ends(b);
  lvd_leases_end();
}

/* Without a host, before there is one, and when it has gone, all go on. */
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
  CHECK_EQ(lvd_leases_begin(), LVD_OK); /* with what the earlier one has left */
  all_are_held();                       /* they have found it */
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
    CHECK_EQ(lvd_leases_begin(), LVD_E_UNKNOWN);
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
