/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The platform layer: CPU quotas, timers, single steps. */
#include "../support/test.h"
#include "platform/platform.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *folder, const char *name, const char *text) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *f = fopen(path, "w");
  CHECK(f && fputs(text, f) >= 0);
  fclose(f);
}

/* A simulated control group file system, with a root group. */
void test_platform_quota(void) {
  char root[] = "/tmp/levada-test-XXXXXX", cpu[64], path[80];
  CHECK(mkdtemp(root));
  CHECK_EQ(lvd_os_cpu_quota(root), 0);
  write_file(root, "cpu.max", "max 100000\n");
  CHECK_EQ(lvd_os_cpu_quota(root), 0);
  write_file(root, "cpu.max", "250000 100000\n");
  CHECK_EQ(lvd_os_cpu_quota(root), 2); /* rounded down, so that no worker is throttled */
  write_file(root, "cpu.max", "50000 100000\n");
  CHECK_EQ(lvd_os_cpu_quota(root), 1);
  write_file(root, "cpu.max", "nonsense\n");
  CHECK_EQ(lvd_os_cpu_quota(root), 0);
  snprintf(path, sizeof path, "%s/cpu.max", root);
  unlink(path);
  snprintf(cpu, sizeof cpu, "%s/cpu", root);
  mkdir(cpu, 0700);
  write_file(cpu, "cpu.cfs_quota_us", "300000\n");
  write_file(cpu, "cpu.cfs_period_us", "100000\n");
  uint32_t v1 = lvd_os_cpu_quota(root);
  CHECK(v1 == 3 || v1 == 0); /* 0: this system has no cgroup v1 cpu hierarchy */
  write_file(cpu, "cpu.cfs_quota_us", "-1\n");
  CHECK_EQ(lvd_os_cpu_quota(root), 0);
  snprintf(path, sizeof path, "rm -r %s", root);
  CHECK_EQ(system(path), 0);
  int32_t list[4];
  uint32_t n = lvd_os_usable_cpus(list, 4);
  CHECK(n >= 1 && list[0] >= 0);
}

/* ---- timers ---------------------------------------------------------------------------------- */

static struct {
  uintptr_t low, high; /* the used part of the thread's own stack */
  lvd_a32 ticks, elsewhere, others;
} clocks;

static void on_trap(void *self, lvd_os_trap trap, const void *sp, const void *at) {
  uintptr_t top = (uintptr_t)sp;
  (void)self, (void)at;
  CHECK_EQ(trap, LVD_TRAP_TICK);
  bool here = top >= clocks.low && top < clocks.high;
  lvd_add_relaxed_u32(here ? &clocks.ticks : &clocks.elsewhere, 1);
}
static void on_other(void *argument) { lvd_add_relaxed_u32(argument, 1); }

static void compute_for(uint64_t ns) {
  for (uint64_t from = lvd_os_thread_cpu_ns(); lvd_os_thread_cpu_ns() - from < ns;) continue;
}

static void has_both(void *unused) {
  enum { ROUNDS = 50, OTHER_NS = 1000000, BOTH_NS = 3 * LVD_TICK_MS * 1000000 };
  char here;
  (void)unused;
  clocks.low = (uintptr_t)lvd_os_stack_low(NULL);
  clocks.high = (uintptr_t)&here + 1024;
  sigset_t all;
  sigfillset(&all);
  CHECK_EQ(lvd_os_traps_begin(on_trap, true), LVD_OK);
  CHECK(lvd_os_tick_timer_start(on_other, &clocks.others, OTHER_NS));
  /* The time of a tick varies, so a round need not see both. */
  while (lvd_load_relaxed_u32(&clocks.others) < ROUNDS ||
         lvd_load_relaxed_u32(&clocks.ticks) + lvd_load_relaxed_u32(&clocks.elsewhere) < ROUNDS) {
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    compute_for(BOTH_NS);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL); /* both signals are pending, and delivered together */
  }
  CHECK_EQ(lvd_load_relaxed_u32(&clocks.elsewhere), 0);
  lvd_os_tick_timer_stop();
  lvd_os_traps_end();
}

/* A thread has two timers: each interrupts the thread's code, not the other's handler. */
void test_platform_timers_at_once(void) {
  lvd_os_thread *thread;
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "clocks", has_both, NULL), LVD_OK);
  lvd_os_thread_join(thread);
}

static void never_ends(void *self) {
  (void)self;
  for (;;) compute_for(LVD_TICK_MS * 1000000);
}
static void jump(void *self, lvd_os_trap trap, const void *sp, const void *at) {
  (void)trap, (void)sp, (void)at;
  lvd_os_jump(self);
}
static void is_left(void *unused) {
  enum { TIMES = 5 };
  (void)unused;
  lvd_os_escape *escape = malloc(lvd_os_escape_size());
  CHECK(escape);
  lvd_os_set_self(escape);
  CHECK_EQ(lvd_os_traps_begin(jump, true), LVD_OK);
  for (int i = 0; i < TIMES; i++) CHECK(!lvd_os_try(escape, never_ends, NULL));
  lvd_os_traps_end();
  lvd_os_set_self(NULL);
  free(escape);
}

/* Its handler may jump away, and the timer continues. */
void test_platform_timer_jumps(void) {
#ifdef __SANITIZE_THREAD__
  SKIP(
      "the sanitizer takes a thread that has left a handler by a jump for one that is still in it");
#endif
  lvd_os_thread *thread;
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "jumps", is_left, NULL), LVD_OK);
  lvd_os_thread_join(thread);
}

/* ---- ending a system call early -------------------------------------------------------------- */

static struct {
  lvd_a32 number, steps, back, ends;
  int pipe[2];
  int fails; /* with this errno */
} traced;

static bool until_back(void *self, const void *sp, const void *at) {
  (void)self, (void)sp;
  lvd_add_relaxed_u32(&traced.steps, 1);
  if (lvd_os_in_system_library(at)) return true;
  lvd_add_relaxed_u32(&traced.back, 1);
  return false;
}
static void trace(void *self, lvd_os_trap trap, const void *sp, const void *at) {
  (void)self, (void)sp, (void)at;
  if (trap == LVD_TRAP_SIGNAL) lvd_os_single_step(until_back);
}

static void sleeps_in_the_system(void *unused) {
  char byte;
  (void)unused;
  lvd_os_set_self(&traced);
  CHECK_EQ(lvd_os_traps_begin(trace, false), LVD_OK);
  lvd_store_relaxed_u32(&traced.number, lvd_os_thread_id());
  CHECK(sleep(1000) > 0);
  CHECK_EQ(read(traced.pipe[0], &byte, 1), -1);
  traced.fails = errno;
  sigset_t all, none;
  sigfillset(&all);
  sigdelset(&all, SIGRTMIN + 3);
  sigemptyset(&none);
  /* If the trap is blocked, the call continues as usual. */
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  uint32_t back = lvd_load_relaxed_u32(&traced.back);
  CHECK(sleep(1000) > 0);
  CHECK_EQ(lvd_load_relaxed_u32(&traced.back), back);
  pthread_sigmask(SIG_SETMASK, &none, NULL);
  lvd_os_traps_end();
  lvd_os_set_self(NULL);
  lvd_store_relaxed_u32(&traced.ends, 1);
}

/* Stepping sees the return to the caller, also of a call that would be restarted, and ends
 * there. */
void test_platform_single_step(void) {
#if !defined __x86_64__ || defined __SANITIZE_THREAD__
  SKIP("threads are traced on x86-64 alone, and not under the thread sanitizer");
#endif
  lvd_os_thread *thread;
  CHECK_EQ(pipe(traced.pipe), 0);
  CHECK_EQ(lvd_os_thread_start(&thread, -1, "sleeps", sleeps_in_the_system, NULL), LVD_OK);
  uint32_t number;
  while (!(number = lvd_load_relaxed_u32(&traced.number))) sleep_ms(1);
  while (!lvd_load_relaxed_u32(&traced.ends)) {
    if (lvd_os_thread_is_blocked(number)) lvd_os_thread_signal(number);
    sleep_ms(5);
  }
  lvd_os_thread_join(thread);
  CHECK_EQ(traced.fails, EINTR);
  CHECK(lvd_load_relaxed_u32(&traced.back) >= 2);
  CHECK(lvd_load_relaxed_u32(&traced.steps) >= 2);
}
