/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the port reads from the system. */
#include "port/port.h"
#include "test.h"

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

/* A mock of the control groups' file system: the root group's files are read too. */
void test_port_quota(void) {
  char root[] = "/tmp/levada-test-XXXXXX", cpu[64], path[80];
  CHECK(mkdtemp(root));
  CHECK_EQ(lvd_port_quota(root), 0);
  write_file(root, "cpu.max", "max 100000\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  write_file(root, "cpu.max", "250000 100000\n");
  CHECK_EQ(lvd_port_quota(root), 2); /* rounded down: no worker is stopped half way */
  write_file(root, "cpu.max", "50000 100000\n");
  CHECK_EQ(lvd_port_quota(root), 1);
  write_file(root, "cpu.max", "nonsense\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  snprintf(path, sizeof path, "%s/cpu.max", root);
  unlink(path);
  snprintf(cpu, sizeof cpu, "%s/cpu", root);
  mkdir(cpu, 0700);
  write_file(cpu, "cpu.cfs_quota_us", "300000\n");
  write_file(cpu, "cpu.cfs_period_us", "100000\n");
  uint32_t v1 = lvd_port_quota(root);
  CHECK(v1 == 3 || v1 == 0); /* 0: this system has no cpu hierarchy of version 1 */
  write_file(cpu, "cpu.cfs_quota_us", "-1\n");
  CHECK_EQ(lvd_port_quota(root), 0);
  snprintf(path, sizeof path, "rm -r %s", root);
  CHECK_EQ(system(path), 0);
  int32_t list[4];
  uint32_t n = lvd_port_cpus(list, 4);
  CHECK(n >= 1 && list[0] >= 0);
}

/* ---- clocks --------------------------------------------------------------------------------- */

static struct {
  uintptr_t low, high; /* of the thread's own stack, as far as it is used here */
  lvd_a32 ticks, elsewhere, others;
} clocks;

static void on_trap(void *self, lvd_port_trap trap, const void *sp, const void *at) {
  uintptr_t top = (uintptr_t)sp;
  (void)self, (void)at;
  CHECK_EQ(trap, LVD_TRAP_TICK);
  bool here = top >= clocks.low && top < clocks.high;
  lvd_add_relaxed_u32(here ? &clocks.ticks : &clocks.elsewhere, 1);
}
static void on_other(void *argument) { lvd_add_relaxed_u32(argument, 1); }

static void compute_for(uint64_t ns) {
  for (uint64_t from = lvd_port_thread_cpu_ns(); lvd_port_thread_cpu_ns() - from < ns;) continue;
}

static void has_both(void *unused) {
  enum { ROUNDS = 50, OTHER_NS = 1000000, BOTH_NS = 3 * LVD_TICK_MS * 1000000 };
  char here;
  (void)unused;
  clocks.low = (uintptr_t)lvd_port_stack_low(NULL);
  clocks.high = (uintptr_t)&here + 1024;
  sigset_t all;
  sigfillset(&all);
  CHECK_EQ(lvd_port_traps_begin(on_trap, true), LVD_OK);
  CHECK(lvd_port_clock_begin(on_other, &clocks.others, OTHER_NS));
  /* The system ticks when it likes, so that not each round sees both. */
  while (lvd_load_relaxed_u32(&clocks.others) < ROUNDS ||
         lvd_load_relaxed_u32(&clocks.ticks) + lvd_load_relaxed_u32(&clocks.elsewhere) < ROUNDS) {
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    compute_for(BOTH_NS);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL); /* both are due, and come at once */
  }
  CHECK_EQ(lvd_load_relaxed_u32(&clocks.elsewhere), 0);
  lvd_port_clock_end();
  lvd_port_traps_end();
}

/* A thread has two clocks: each tells what the thread does, and not what the other's handler does. */
void test_port_clocks_at_once(void) {
  lvd_port_thread *thread;
  CHECK_EQ(lvd_port_thread_start(&thread, -1, "clocks", has_both, NULL), LVD_OK);
  lvd_port_thread_join(thread);
}

static void never_ends(void *self) {
  (void)self;
  for (;;) compute_for(LVD_TICK_MS * 1000000);
}
static void jump(void *self, lvd_port_trap trap, const void *sp, const void *at) {
  (void)trap, (void)sp, (void)at;
  lvd_port_jump(self);
}
static void is_left(void *unused) {
  enum { TIMES = 5 };
  (void)unused;
  lvd_port_escape *escape = malloc(lvd_port_escape_size());
  CHECK(escape);
  lvd_port_set_self(escape);
  CHECK_EQ(lvd_port_traps_begin(jump, true), LVD_OK);
  for (int i = 0; i < TIMES; i++) CHECK(!lvd_port_try(escape, never_ends, NULL));
  lvd_port_traps_end();
  lvd_port_set_self(NULL);
  free(escape);
}

/* Its handler may jump away, and the clock goes on. */
void test_port_clock_jumps(void) {
#ifdef __SANITIZE_THREAD__
  SKIP("the sanitizer takes who has left a handler by a jump for one that is still in it");
#endif
  lvd_port_thread *thread;
  CHECK_EQ(lvd_port_thread_start(&thread, -1, "jumps", is_left, NULL), LVD_OK);
  lvd_port_thread_join(thread);
}
