/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Limits of forks: deques, when thousands of fibers wait with open forks; stacks, in stolen
 * calls; and what is not limited: cancellation scopes. */
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/test.h"

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

static long one(long n) { return n; }
LVD_FORKABLE(long, one, long)
/* Number of forks that are open at once. */
static __attribute__((noinline)) long chain(long n) {
  if (n == 0) return 0;
  LVD_FORK(f, one, 1);
  long rest = chain(n - 1);
  return LVD_JOIN(f, one) + rest;
}

static lvd_a32 made;
static int count_made(int n) {
  lvd_add_relaxed_u32(&made, 1);
  return n;
}
LVD_FORKABLE(int, count_made, int)

/* ---- deques -------------------------------------------------------------------------------- */

/* More fibers wait with open forks than there are deques, and resume in any order, on threads
 * without a deque, or with one again: in the middle of a fork that had none. */
typedef struct crowd {
  lvd_a32 waiting, go, without;
} crowd;
typedef struct one_of {
  crowd *all;
  uint32_t number;
} one_of;

static void forks_and_waits(void *argument) {
  const one_of *me = argument;
  crowd *c = me->all;
  LVD_FORK(f, one, me->number);
  lvd_cancel_scope scope;
  lvd_status scoped = lvd_cancel_begin(&scope);
  if (scoped != LVD_OK) {
    CHECK_EQ(scoped, LVD_E_LIMIT);
    CHECK(strstr(lvd_status_text(scoped), "deques"));
    lvd_add_relaxed_u32(&c->without, 1);
  }
  lvd_add_relaxed_u32(&c->waiting, 1);
  do lvd_fiber_sleep(1000000 + (int64_t)(me->number * 7919 % 100) * 1000000);
  while (!lvd_load_relaxed_u32(&c->go));
  CHECK_EQ(fib(8), 21);
  if (scoped == LVD_OK) {
    lvd_cancel(&scope);
    CHECK(lvd_cancelled());
  }
  lvd_cancel_end(&scope);
  CHECK_EQ(chain(50), 50);
  CHECK_EQ(LVD_JOIN(f, one), me->number);
  CHECK_EQ(chain(200), 200);
  CHECK(!lvd_cancelled());
}

void test_fork_deques(void) {
  enum { FIBERS = 4500 };
#ifdef __SANITIZE_THREAD__
  SKIP("the sanitizer does not support that number of fibers");
#endif
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  crowd all = {{0}, {0}, {0}};
  one_of *each = calloc(FIBERS, sizeof *each);
  /* The second round reuses what the first has released. */
  for (int round = 0; round < 2; round++) {
    lvd_store_relaxed_u32(&all.waiting, 0);
    lvd_store_relaxed_u32(&all.go, 0);
    lvd_store_relaxed_u32(&all.without, 0);
    lvd_fiber **f = calloc(FIBERS, sizeof(lvd_fiber *));
    for (uint32_t i = 0; i < FIBERS; i++) {
      each[i] = (one_of){&all, i};
      CHECK_EQ(lvd_fiber_start(app, forks_and_waits, &each[i], NULL, &f[i]), LVD_OK);
    }
    while (lvd_load_relaxed_u32(&all.waiting) < FIBERS) lvd_fiber_sleep(1000000);
    uint32_t without = lvd_load_relaxed_u32(&all.without);
    printf("%u of %d without a deque\n", without, FIBERS);
    CHECK(without >= FIBERS - 4096 && without < FIBERS - 4000);
    lvd_store_relaxed_u32(&all.go, 1);
    for (int i = 0; i < FIBERS; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
    free(f);
  }
  free(each);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- scopes -------------------------------------------------------------------------------- */

/* A scope per level, as in a search; the one at level `at` is cancelled from the deepest level. */
static void nest(int depth, int at, lvd_cancel_scope *which) {
  lvd_cancel_scope scope;
  CHECK_EQ(lvd_cancel_begin(&scope), LVD_OK);
  if (at == 0) which = &scope;
  if (depth) {
    nest(depth - 1, at - 1, which);
  } else {
    CHECK(!lvd_cancelled());
    LVD_FORK(before, count_made, 1);
    lvd_cancel(which);
    CHECK(lvd_cancelled());
    LVD_JOIN(before, count_made);
    LVD_FORK(after, count_made, 1);
    LVD_JOIN(after, count_made);
  }
  CHECK_EQ(lvd_cancelled(), at <= 0);
  LVD_FORK(f, count_made, 1);
  LVD_JOIN(f, count_made);
  lvd_cancel_end(&scope);
}

void test_fork_scopes(void) {
  /* The last one is deeper than the deque has slots. */
  const int depths[] = {1, 15, 16, 17, 100, SCALED(9000)};
  CHECK_EQ(lvd_fork_workers(1), LVD_OK);
  for (size_t i = 0; i < COUNT(depths); i++)
    for (int at = 0; at <= depths[i]; at += depths[i] > 100 ? 8500 : 1) {
      lvd_store_relaxed_u32(&made, 0);
      nest(depths[i], at, NULL);
      CHECK_EQ(lvd_load_relaxed_u32(&made), at); /* of the levels around it */
      CHECK(!lvd_cancelled());
    }
}

/* A stolen call is in the scope in which it was forked, whatever number of scopes is around that,
 * and inside it. */
static int waits_for_end(lvd_a32 *cancelled) {
  while (!lvd_cancelled()) {
  }
  lvd_store_relaxed_u32(cancelled, 1);
  return 1;
}
LVD_FORKABLE(int, waits_for_end, lvd_a32 *)

static void nest_and_take(int depth) {
  lvd_cancel_scope scope;
  CHECK_EQ(lvd_cancel_begin(&scope), LVD_OK);
  if (depth) {
    nest_and_take(depth - 1);
  } else {
    lvd_a32 cancelled = {0};
    lvd_cancel_scope inside[3];
    LVD_FORK(f, waits_for_end, &cancelled);
    for (int i = 0; i < 3; i++) CHECK_EQ(lvd_cancel_begin(&inside[i]), LVD_OK);
    for (uint64_t until = now_ns() + 200000; now_ns() < until;) CHECK_EQ(fib(5), 5);
    lvd_cancel(&inside[2]); /* not its own */
    for (int i = 3; i-- > 0;) lvd_cancel_end(&inside[i]);
    CHECK(!lvd_load_relaxed_u32(&cancelled));
    lvd_cancel(&scope);
    LVD_JOIN(f, waits_for_end); /* whether it was stolen or not */
  }
  lvd_cancel_end(&scope);
}

void test_fork_scopes_taken(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  lvd_fork_counters c = {0};
  uint64_t until = now_ns() + UINT64_C(60000000000);
  for (int i = 0; i < 200 || (!c.stolen && now_ns() < until); i++) {
    nest_and_take(i % 40);
    lvd_fork_counters_read(&c);
  }
  CHECK(c.stolen > 0);
}

/* ---- stacks -------------------------------------------------------------------------------- */

static lvd_a32 begun;
/* Uses at least this number of KiB of stack. */
static __attribute__((noinline)) long deep(long n) {
  volatile char frame[1024];
  frame[n % 1024] = 1;
  lvd_store_relaxed_u32(&begun, 1);
  return n ? deep(n - 1) + frame[n % 1024] : 0;
}
LVD_FORKABLE(long, deep, long)

/* A call that fits on its owner's stack fits where it is stolen. */
static void *deep_is_taken(void *unused) {
  const long n = 40 * 1024;
  CHECK_EQ(deep(n), n);
  for (int i = 0; i < 5; i++) {
    lvd_store_relaxed_u32(&begun, 0);
    LVD_FORK(f, deep, n);
    while (!lvd_load_relaxed_u32(&begun)) {
    }
    CHECK_EQ(LVD_JOIN(f, deep), n);
    CHECK(lvd_stolen());
  }
  return unused;
}

__attribute__((unused)) static long resident_kib(void) {
  long pages = 0, all;
  FILE *f = fopen("/proc/self/statm", "re");
  CHECK(f && fscanf(f, "%ld %ld", &all, &pages) == 2);
  fclose(f);
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

void test_fork_stacks(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  SKIP("frames are larger with a sanitizer");
#endif
  if (usable_cores() < 2) SKIP("one core");
  pthread_t t;
  pthread_attr_t large;
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  CHECK_EQ(pthread_attr_init(&large), 0);
  CHECK_EQ(pthread_attr_setstacksize(&large, (size_t)64 << 20), 0);
  CHECK_EQ(pthread_create(&t, &large, deep_is_taken, NULL), 0);
  CHECK_EQ(pthread_join(t, NULL), 0);
  sleep_ms(100);
#ifndef LVD_EMULATED
  CHECK(resident_kib() < 20 * 1024); /* deep stacks were returned to the system */
#endif
}

/* While no stack can be allocated, nothing is stolen: a stolen call would delay what runs below
 * it. */
static lvd_a32 on_no_stack, elsewhere, parked_all, park;

static long note_stack(lvd_fiber *owner) {
  lvd_fiber *here = lvd_fiber_self();
  if (!here) lvd_add_relaxed_u32(&on_no_stack, 1);
  if (here != owner) lvd_add_relaxed_u32(&elsewhere, 1);
  return 1;
}
LVD_FORKABLE(long, note_stack, lvd_fiber *)

static void parks(void *unused) {
  (void)unused;
  while (!lvd_load_acquire_u32(&park)) lvd_fiber_sleep(1000000);
}

/* Forks for a while without leaving the worker. */
static void forks_for_a_while(void *argument) {
  const uint32_t *until_taken = argument;
  lvd_fiber *owner = lvd_fiber_self();
  while (!lvd_load_acquire_u32(&parked_all)) lvd_fiber_sleep(1000000);
  uint64_t begun = now_ns();
  uint64_t limit = *until_taken ? 300000000000u : 100000000u;
  while (now_ns() - begun < limit && !(*until_taken && lvd_load_relaxed_u32(&elsewhere))) {
    LVD_FORK(f, note_stack, owner);
    for (int i = 0; i < 100; i++) CHECK_EQ(fib(5), 5);
    CHECK_EQ(LVD_JOIN(f, note_stack), 1);
  }
}

void test_fork_without_stacks(void) {
  enum { PARKED_MAX = 64 };
  if (usable_cores() < 2) SKIP("one core");
  const lvd_runtime_options o = {.workers = 2, .entities = PARKED_MAX};
  lvd_runtime *rt;
  lvd_app *app;
  lvd_fiber *forker, *parked[PARKED_MAX];
  CHECK_EQ(lvd_runtime_create(&o, &rt), LVD_OK);
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  const lvd_fiber_options as_large = {.stack = (size_t)8 << 20, .place = LVD_ANYWHERE};
  const lvd_fiber_options first = {.stack = (size_t)8 << 20, .place = LVD_WORKER(0)};
  static const uint32_t no = 0, yes = 1;
  CHECK_EQ(lvd_fiber_start(app, forks_for_a_while, (void *)(uintptr_t)&no, &first, &forker),
           LVD_OK);
  uint32_t n = 0;
  while (n < PARKED_MAX && lvd_fiber_start(app, parks, NULL, &as_large, &parked[n]) == LVD_OK) n++;
  CHECK(n > 0 && n < PARKED_MAX);
  lvd_store_release_u32(&parked_all, 1);
  CHECK_EQ(lvd_fiber_join(forker, -1), LVD_OK);
  printf("%u parked, %u calls elsewhere\n", n, lvd_load_relaxed_u32(&elsewhere));
  CHECK_EQ(lvd_load_relaxed_u32(&on_no_stack), 0);
  CHECK_EQ(lvd_load_relaxed_u32(&elsewhere), 0);

  lvd_store_release_u32(&park, 1); /* stacks are available again */
  for (uint32_t i = 0; i < n; i++) CHECK_EQ(lvd_fiber_join(parked[i], -1), LVD_OK);
  lvd_store_relaxed_u32(&elsewhere, 0);
  CHECK_EQ(lvd_fiber_start(app, forks_for_a_while, (void *)(uintptr_t)&yes, &first, &forker),
           LVD_OK);
  CHECK_EQ(lvd_fiber_join(forker, -1), LVD_OK);
  CHECK(lvd_load_relaxed_u32(&elsewhere) > 0);
  CHECK_EQ(lvd_load_relaxed_u32(&on_no_stack), 0);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A stolen call that overflows ends the program with a message. */
static long bottomless(int depth) {
  go_down(depth);
  return 0;
}
LVD_FORKABLE(long, bottomless, int)
static void overflow(void) {
  struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none);
  LVD_FORK(f, bottomless, 0);
  for (;;) CHECK_EQ(fib(5), 5);
  LVD_JOIN(f, bottomless);
}

void test_fork_overflow(void) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(LVD_EMULATED)
  SKIP("the sanitizer has a report of its own");
#endif
  if (usable_cores() < 2) SKIP("one core");
  int ends[2], status;
  char said[512] = "";
  CHECK_EQ(pipe(ends), 0);
  fflush(NULL);
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    alarm(20);
    dup2(ends[1], STDERR_FILENO);
    overflow();
  }
  close(ends[1]);
  for (size_t n = 0; n < sizeof said - 1;) {
    ssize_t got = read(ends[0], said + n, sizeof said - 1 - n);
    if (got <= 0) break;
    n += (size_t)got;
  }
  CHECK_EQ(waitpid(child, &status, 0), child);
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  printf("%s", said);
  CHECK(strstr(said, "levada: stack overflow of fiber 'fork'"));
  CHECK(strstr(said, "ulimit -s"));
}
