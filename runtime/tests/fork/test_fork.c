/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forks: each forked call is run exactly once, on any thread; deep, wide, waiting, cancelled,
 * abandoned. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "../support/test.h"

static void spin_ns(uint64_t ns) {
  uint64_t until = now_ns() + ns;
  while (now_ns() < until) {
  }
}

static lvd_fork_counters counters(void) {
  lvd_fork_counters c;
  lvd_fork_counters_read(&c);
  return c;
}

/* ---- the forms ---------------------------------------------------------------------------- */

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

void test_fork_fib(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  int n = SCALED(100) == 100 ? 30 : 22;
  CHECK_EQ(fib(n), n == 30 ? 832040 : 17711);
  CHECK_EQ(lvd_fork_workers(3), LVD_E_STATE);
  for (int i = 0; i < 100; i++) CHECK_EQ(fib(15), 610);
}

/* ---- results and arguments of every kind; a delay lets some of them be taken ---------------- */

typedef struct big {
  long x[20];
} big;
typedef struct small {
  char c;
  double d;
} small;

static big add_big(big b, const char *s, double d, _Bool yes) {
  b.x[19] += b.x[0] + s[0] + (long)d + yes;
  return b;
}
static small make_small(char c, double d) { return (small){c, d}; }
static double eight(char a, short b, int c, long d, float e, double f, _Bool g, const long *h) {
  return a + b + c + (double)d + (double)e + f + g + (double)*h;
}
static _Bool both(_Bool a, _Bool b) { return a && b; }
static void bump(lvd_a32 *n) { lvd_add_relaxed_u32(n, 1); }
static int *same(int *p) { return p; }
static int seven(void) { return 7; }
static lvd_a32 calls;
static void call(void) { lvd_add_relaxed_u32(&calls, 1); }
LVD_FORKABLE(big, add_big, big, const char *, double, _Bool)
LVD_FORKABLE(small, make_small, char, double)
LVD_FORKABLE(double, eight, char, short, int, long, float, double, _Bool, const long *)
LVD_FORKABLE(_Bool, both, _Bool, _Bool)
LVD_FORKABLE_VOID(bump, lvd_a32 *)
LVD_FORKABLE(int *, same, int *)
LVD_FORKABLE(int, seven)
LVD_FORKABLE_VOID(call)

void test_fork_types(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  lvd_a32 n = {0};
  long eighth = 8;
  int x = 1;
  uint64_t stolen = 0, rounds = SCALED(20000), done = 0;
  for (uint64_t i = 0; i < rounds || stolen == 0; i++) {
    big b = {{(long)i}};
    LVD_FORK(f1, add_big, b, "A", 2.5, true);
    LVD_FORK(f2, make_small, 'x', 0.25);
    LVD_FORK(f3, eight, 1, 2, 3, 4, 5.0f, 6.0, true, &eighth);
    LVD_FORK(f4, both, true, i % 2 == 0);
    LVD_FORK(f5, bump, &n);
    LVD_FORK(f6, same, &x);
    LVD_FORK(f7, seven);
    LVD_FORK(f8, call);
    if (i % 4 == 0) spin_ns(3000);
    LVD_JOIN(f8, call);
    stolen += lvd_stolen();
    CHECK_EQ(LVD_JOIN(f7, seven), 7);
    CHECK(LVD_JOIN(f6, same) == &x);
    LVD_JOIN(f5, bump);
    CHECK_EQ(LVD_JOIN(f4, both), i % 2 == 0);
    CHECK(LVD_JOIN(f3, eight) == 30.0);
    small s = LVD_JOIN(f2, make_small);
    CHECK(s.c == 'x' && s.d == 0.25);
    b = LVD_JOIN(f1, add_big);
    stolen += lvd_stolen();
    CHECK_EQ(b.x[19], (long)i + 'A' + 2 + 1);
    CHECK_EQ(b.x[0], (long)i);
    done++;
  }
  CHECK_EQ(lvd_load_relaxed_u32(&n), done);
  CHECK_EQ(lvd_load_relaxed_u32(&calls), done);
  CHECK(counters().stolen + counters().leapfrogged >= stolen);
}

/* ---- recursion ---------------------------------------------------------------------------- */

static long one(long n) { return n; }
LVD_FORKABLE(long, one, long)
/* Number of forks that are open at once. */
static __attribute__((noinline)) long chain(long n) {
  if (n == 0) return 0;
  LVD_FORK(f, one, n);
  long rest = chain(n - 1);
  return LVD_JOIN(f, one) + rest;
}

/* The call recurses, and is stolen on its way down. */
static __attribute__((noinline)) long descend(long n);
LVD_FORKABLE(long, descend, long)
static long descend(long n) {
  if (n == 0) return 0;
  LVD_FORK(f, descend, n - 1);
  if (n % 512 == 0) spin_ns(1000);
  return LVD_JOIN(f, descend) + 1;
}

void test_fork_deep(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  long n = 20000;
  for (int i = 0; i < 20; i++) CHECK_EQ(chain(n), n * (n + 1) / 2);
  CHECK(counters().full > 0);
  for (int i = 0; i < 5; i++)
    CHECK_EQ(descend(SCALED(30000) == 30000 ? 30000 : 5000), SCALED(30000) == 30000 ? 30000 : 5000);
}

/* ---- random trees, against their sequential form ------------------------------------------- */

static void delay(uint64_t r) {
  if (r % 4096 == 0)
    usleep(100);
  else if (r % 512 == 0)
    spin_ns(r / 512 % 4096);
  else if (r % 512 == 1)
    sched_yield();
}

/* A node has up to four children, most of them forked, and joins them in reverse order; in
 * between it does work of its own. */
static uint64_t grow(uint64_t seed, uint32_t depth, bool late);
LVD_FORKABLE(uint64_t, grow, uint64_t, uint32_t, bool)
static uint64_t grow(uint64_t seed, uint32_t depth, bool late) {
  uint64_t r = seed * 0x9E3779B97F4A7C15u + 1, sum = seed;
  next_random(&r);
  if (late) delay(next_random(&r));
  uint32_t children = depth ? (uint32_t)(next_random(&r) % 5) : 0;
  uint64_t a = next_random(&r), b = next_random(&r), c = next_random(&r), d = next_random(&r);
  if (children == 0) return sum;
  LVD_FORK(f1, grow, a, depth - 1, late);
  if (children > 1) sum = sum * 31 + grow(b, depth - 1, late);
  if (children > 2) {
    LVD_FORK(f2, grow, c, depth - 1, late);
    if (children > 3) {
      LVD_FORK(f3, grow, d, depth - 1, late);
      if (late) delay(next_random(&r));
      sum = sum * 31 + LVD_JOIN(f3, grow);
    }
    sum = sum * 31 + LVD_JOIN(f2, grow);
  }
  return sum * 31 + LVD_JOIN(f1, grow);
}

static uint64_t grow_alone(uint64_t seed, uint32_t depth) {
  uint64_t r = seed * 0x9E3779B97F4A7C15u + 1, sum = seed;
  next_random(&r);
  next_random(&r); /* as with delays */
  uint32_t children = depth ? (uint32_t)(next_random(&r) % 5) : 0;
  uint64_t a = next_random(&r), b = next_random(&r), c = next_random(&r), d = next_random(&r);
  if (children == 0) return sum;
  if (children > 1) sum = sum * 31 + grow_alone(b, depth - 1);
  if (children > 3) sum = sum * 31 + grow_alone(d, depth - 1);
  if (children > 2) sum = sum * 31 + grow_alone(c, depth - 1);
  return sum * 31 + grow_alone(a, depth - 1);
}

static void check_trees(uint64_t first, uint64_t trees) {
  for (uint64_t i = first; i < first + trees; i++) {
    /* Most are small: the difficult cases are at their ends. */
    uint32_t depth = i % 256 ? 1 + i % 3 : 8;
    CHECK(grow(i, depth, true) == grow_alone(i, depth));
  }
}

void test_fork_random_trees(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  /* All of them, or as many as can be done while other processes have the cores; more if these left
   * none for a thief. */
  uint64_t until = now_ns() + UINT64_C(15000000000), last = until + 3 * UINT64_C(15000000000);
  bool taken = false;
  for (uint64_t i = 1; now_ns() < (taken ? until : last); i += 1000) {
    if (taken && i >= SCALED(1000000)) break;
    check_trees(i, 1000);
    taken = counters().stolen > 100 && counters().leapfrogged > 0;
  }
  CHECK(taken);
}

/* ---- from several short-lived threads ------------------------------------------------------- */

static void *forking_thread(void *argument) {
  uint64_t first = (uint64_t)(uintptr_t)argument;
  check_trees(first, SCALED(3000));
  return NULL;
}

void test_fork_threads(void) {
  CHECK_EQ(lvd_fork_workers(2), LVD_OK);
  for (uint64_t round = 0; round < 4; round++) {
    pthread_t t[4];
    for (uint64_t i = 0; i < 4; i++)
      pthread_create(&t[i], NULL, forking_thread,
                     (void *)(uintptr_t)((round * 4 + i) * 100000 + 1));
    for (int i = 0; i < 4; i++) pthread_join(t[i], NULL);
  }
}

/* ---- in fibers ---------------------------------------------------------------------------- */

typedef struct grove {
  uint64_t first;
  lvd_event *go;
} grove;

static void trees_in_fiber(void *argument) {
  grove *g = argument;
  check_trees(g->first, SCALED(2000));
}

void test_fork_fibers(void) {
  lvd_runtime *rt = runtime_of(3);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  enum { FIBERS = 8 };
  grove g[FIBERS];
  lvd_fiber *f[FIBERS];
  lvd_fiber_options options = {.stack = 256 * 1024};
  for (uint64_t i = 0; i < FIBERS; i++) {
    g[i] = (grove){i * 100000 + 7, NULL};
    CHECK_EQ(lvd_fiber_start(app, trees_in_fiber, &g[i], &options, &f[i]), LVD_OK);
  }
  for (int i = 0; i < FIBERS; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  if (SCALED(20) == 20) CHECK(counters().stolen > 0); /* otherwise there is little to steal */
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- waiting with open forks, and in stolen calls ------------------------------------------- */

static int answer(lvd_event *question, lvd_event *reply, int n) {
  uint32_t data;
  lvd_event_set(question, (uint32_t)n);
  CHECK_EQ(lvd_event_wait(reply, &data, -1), LVD_OK);
  return (int)data + n;
}
LVD_FORKABLE(int, answer, lvd_event *, lvd_event *, int)

/* The block waits for an event of the call and the other way round: so the call must be stolen,
 * by another worker or by this one, and both suspend. */
static void dialogue(void *argument) {
  grove *g = argument;
  for (uint32_t i = 0; i < SCALED(400); i++) {
    lvd_event question, reply;
    lvd_event_init(&question);
    lvd_event_init(&reply);
    LVD_FORK(outer, fib, 5);
    LVD_FORK(f, answer, &question, &reply, (int)i);
    uint32_t data;
    if (i % 3 == 0) lvd_fiber_yield();
    if (i % 3 == 1) lvd_fiber_sleep(10000);
    CHECK_EQ(lvd_event_wait(&question, &data, -1), LVD_OK);
    CHECK_EQ(data, i);
    CHECK_EQ(fib(10), 55);
    CHECK_EQ(lvd_event_set(&reply, 100), LVD_OK);
    CHECK_EQ(LVD_JOIN(f, answer), (int)i + 100);
    CHECK_EQ(LVD_JOIN(outer, fib), 5);
  }
  (void)g;
}

static void run_dialogues(uint32_t workers) {
  lvd_runtime *rt = runtime_of(workers);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  enum { FIBERS = 6 };
  lvd_fiber *f[FIBERS];
  grove g[FIBERS];
  for (int i = 0; i < FIBERS; i++)
    CHECK_EQ(lvd_fiber_start(app, dialogue, &g[i], NULL, &f[i]), LVD_OK);
  for (int i = 0; i < FIBERS; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_fork_waits(void) {
  run_dialogues(3);
  run_dialogues(1);
}

/* A core is reserved while fibers on it have open forks: they stay until these are joined. */
static void long_forks(void *argument) {
  lvd_a32 *going = argument;
  for (int i = 0; i < 20; i++) {
    LVD_FORK(f, fib, 18);
    lvd_add_relaxed_u32(going, 1);
    lvd_fiber_sleep(1000000);
    CHECK_EQ(LVD_JOIN(f, fib), 2584);
  }
}

void test_fork_core_take(void) {
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  lvd_a32 going = {0};
  lvd_fiber *f[4];
  for (int i = 0; i < 4; i++)
    CHECK_EQ(lvd_fiber_start(app, long_forks, &going, NULL, &f[i]), LVD_OK);
  while (lvd_load_relaxed_u32(&going) < 8) usleep(100);
  CHECK_EQ(lvd_core_reserve(rt, 1), LVD_OK);
  for (int i = 0; i < 4; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  CHECK_EQ(lvd_core_release(rt, 1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

static __attribute__((noinline)) void mark_thread(uint32_t mark) { lvd_forks.stolen = mark; }
/* Between two forks of one function a fiber may move to another worker: it forks there, and not
 * on the thread that the compiler has cached. */
static __attribute__((noinline)) uint32_t moving_forks(uint32_t rounds) {
  uint32_t moves = 0;
  pid_t before = 0;
  for (uint32_t i = 0; i < rounds; i++) {
    LVD_FORK(f, one, i);
    CHECK_EQ(LVD_JOIN(f, one), i);
    lvd_fiber_sleep(i % 16 ? 1000 : 200000);
    const pid_t here = gettid();
    mark_thread((uint32_t)here);
    CHECK_EQ(lvd_forks.stolen, here);
    moves += before && here != before;
    before = here;
  }
  return moves;
}
typedef struct mover {
  uint32_t rounds;
  lvd_a32 *moves, *left;
} mover;
static void move_and_fork(void *argument) {
  const mover *m = argument;
  lvd_add_relaxed_u32(m->moves, moving_forks(m->rounds));
  lvd_add_relaxed_u32(m->left, UINT32_MAX);
}

void test_fork_moves(void) {
  enum { FIBERS = 4 };
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  lvd_a32 moves = {0}, left = {FIBERS};
  lvd_fiber *f[FIBERS];
  mover m = {1000, &moves, &left};
  for (int i = 0; i < FIBERS; i++)
    CHECK_EQ(lvd_fiber_start(app, move_and_fork, &m, NULL, &f[i]), LVD_OK);
  for (uint32_t i = 0; lvd_load_relaxed_u32(&left); i++) {
    CHECK_EQ(lvd_core_reserve(rt, i % 2), LVD_OK);
    usleep(200);
    CHECK_EQ(lvd_core_release(rt, i % 2), LVD_OK);
  }
  for (int i = 0; i < FIBERS; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  printf("%u moves\n", lvd_load_relaxed_u32(&moves));
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- in actors ---------------------------------------------------------------------------- */

static lvd_run_result forking_run(lvd_actor *self) {
  uint32_t *left = self->state;
  if (*left == 0) *left = SCALED(400) + 1;
  CHECK_EQ(fib(16), 987);
  return --*left == 1 ? LVD_RUN_DONE : LVD_RUN_YIELD;
}
static const lvd_actor_class forking_class = {
    .name = "forking", .state_size = sizeof(uint32_t), .run = forking_run};

void test_fork_actors(void) {
  lvd_runtime *rt = runtime_of(3);
  builder b;
  builder_init(&b, "forks");
  for (int i = 0; i < 4; i++) builder_actor(&b, "forking", &forking_class, NULL);
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &b.net, NULL, &app, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- short-lived runtimes ------------------------------------------------------------------ */

void test_fork_runtimes(void) {
  for (int i = 0; i < 10; i++) {
    lvd_runtime *rt = runtime_of(2);
    check_trees((uint64_t)i * 1000 + 1, SCALED(400));
    lvd_runtime_destroy(rt);
  }
  CHECK_EQ(fib(20), 6765); /* starts workers of its own */
  lvd_runtime *rt = runtime_of(2);
  CHECK_EQ(fib(20), 6765);
  lvd_runtime_destroy(rt);
  CHECK_EQ(fib(20), 6765);
}

/* ---- asleep and awake ----------------------------------------------------------------------- */

static uint64_t taken_at;
static bool note_time(int unused) {
  (void)unused;
  taken_at = now_ns();
  return true;
}
LVD_FORKABLE(bool, note_time, int)

void test_fork_wakes(void) {
  if (usable_cores() < 2) SKIP("one core");
  CHECK_EQ(lvd_fork_workers(2), LVD_OK);
  /* Disturbed by whatever disturbs a busy machine: so it is repeated until it is fast enough,
   * which it would never be if the workers did not sleep, or were not woken. */
  bool fast = SCALED(20) == 20;
  uint64_t least = UINT64_MAX, soon = fast ? 500000 : 5000000, begun = now_ns();
  while (least > soon) {
    CHECK(now_ns() - begun < 300000000000u);
    CHECK_EQ(fib(20), 6765);
    uint64_t before = cpu_ns();
    usleep(20000);
    if (cpu_ns() - before < least) least = cpu_ns() - before;
  }
  printf("asleep after %llu ns of computing\n", (unsigned long long)least);
  least = UINT64_MAX, soon = fast ? 50000 : 5000000, begun = now_ns();
  uint32_t stolen = 0, tries = 0;
  while (stolen < 10 || least > soon) {
    CHECK(now_ns() - begun < 300000000000u);
    usleep(2000);
    uint64_t start = now_ns();
    LVD_FORK(f, note_time, 0);
    spin_ns(500000);
    LVD_JOIN(f, note_time);
    tries++;
    if (!lvd_stolen()) continue;
    stolen++;
    if (taken_at - start < least) least = taken_at - start;
  }
  printf("%u of %u stolen; the soonest after %llu ns\n", stolen, tries, (unsigned long long)least);
}

/* ---- in the place of the only worker --------------------------------------------------------- */

/* The first fork of a thread is published for thieves. */
static void *forks_once(void *stolen) {
  LVD_FORK(f, note_time, 0);
  usleep(20000);
  LVD_JOIN(f, note_time);
  return lvd_stolen() ? stolen : NULL;
}

/* A worker does not help the thread that computes in its place, however long that has slept
 * before and the worker has helped others. On a busy machine the thread may be preempted. */
void test_fork_place(void) {
  enum { ROUNDS = 60 };
  uint32_t stolen = 0;
  CHECK_EQ(lvd_fork_workers(1), LVD_OK);
  CHECK_EQ(fib(20), 6765);
  uint64_t begun = now_ns();
  void *helped = NULL;
  while (!helped) {
    pthread_t other;
    CHECK(now_ns() - begun < 300000000000u);
    usleep(5000);
    CHECK_EQ(pthread_create(&other, NULL, forks_once, ""), 0);
    CHECK_EQ(pthread_join(other, &helped), 0);
  }
  for (int i = 0; i < ROUNDS; i++) {
    usleep(3000);
    LVD_FORK(f, note_time, i);
    spin_ns(500000);
    CHECK(LVD_JOIN(f, note_time));
    stolen += lvd_stolen();
  }
  printf("%u of %u stolen\n", stolen, (unsigned)ROUNDS);
  CHECK(stolen < ROUNDS / 2);
}

/* ---- cancellation and ranges ---------------------------------------------------------------- */

static lvd_a32 made;
static int count_made(int n) {
  lvd_add_relaxed_u32(&made, 1);
  spin_ns(1000);
  return n;
}
LVD_FORKABLE(int, count_made, int)

/* Searches for one number in a tree of 2^depth, and cancels when it is found: the owner finds it
 * soon, and no thread reaches all the others, unless the owner is preempted for that long. */
static void search(lvd_cancel_scope *scope, uint32_t depth, uint32_t at, uint32_t wanted);
LVD_FORKABLE_VOID(search, lvd_cancel_scope *, uint32_t, uint32_t, uint32_t)
static void search(lvd_cancel_scope *scope, uint32_t depth, uint32_t at, uint32_t wanted) {
  if (depth == 0) {
    lvd_add_relaxed_u32(&made, 1);
    if (at == wanted) lvd_cancel(scope);
    return;
  }
  LVD_FORK(f, search, scope, depth - 1, 2 * at, wanted);
  search(scope, depth - 1, 2 * at + 1, wanted);
  LVD_JOIN(f, search);
}

void test_fork_cancel(void) {
  uint32_t cut_short = 0, rounds = SCALED(200);
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  CHECK(!lvd_cancelled());
  for (uint32_t i = 0; i < rounds; i++) {
    lvd_cancel_scope scope, inner;
    lvd_cancel_begin(&scope);
    lvd_store_relaxed_u32(&made, 0);
    uint32_t wanted = 32767 - i;
    search(&scope, 15, 0, wanted);
    CHECK(lvd_cancelled());
    uint32_t leaves = lvd_load_relaxed_u32(&made);
    CHECK(leaves >= 1 && leaves <= 32768);
    cut_short += leaves < 32768;
    LVD_FORK(late, search, &scope, 0, 0, wanted);
    LVD_JOIN(late, search);
    CHECK_EQ(lvd_load_relaxed_u32(&made), leaves); /* what had not begun did not begin */
    lvd_cancel_begin(&inner);
    CHECK(lvd_cancelled()); /* the enclosing one is */
    lvd_cancel_end(&inner);
    lvd_cancel_end(&scope);
    CHECK(!lvd_cancelled());
    LVD_FORK(f, count_made, 3);
    CHECK_EQ(LVD_JOIN(f, count_made), 3);
  }
  printf("%u of %u cut short\n", cut_short, rounds);
  CHECK(cut_short);
  lvd_cancel_scope outer, inner;
  lvd_cancel_begin(&outer);
  lvd_cancel_begin(&inner);
  lvd_cancel(&inner);
  CHECK(lvd_cancelled());
  lvd_cancel_end(&inner);
  CHECK(!lvd_cancelled());
  CHECK_EQ(fib(15), 610);
  lvd_cancel_end(&outer);
}

static void touch(void *context, size_t from, size_t to) {
  unsigned char *seen = context;
  for (size_t i = from; i < to; i++) {
    seen[i]++;
    if (i % 1000 == 0) spin_ns(20000);
  }
}

static void no_text(void *context, void *result) {
  (void)context;
  memset(result, 0, 512);
}
/* Computes a text's length, first and last letter: not commutative. */
typedef struct ends {
  uint64_t count, first, last;
  char room[488];
} ends;
static void add_text(void *context, size_t from, size_t to, void *result) {
  ends *e = result;
  (void)context;
  for (size_t i = from; i < to; i++) {
    if (!e->count++) e->first = i;
    CHECK(e->count == 1 || e->last + 1 == i);
    e->last = i;
    if (i % 1000 == 0) spin_ns(10000);
  }
}
static void join_text(void *context, void *left, const void *right) {
  ends *l = left;
  const ends *r = right;
  (void)context;
  if (!r->count) return;
  CHECK(!l->count || l->last + 1 == r->first);
  if (!l->count) l->first = r->first;
  l->last = r->last;
  l->count += r->count;
}

/* Partial results with the alignment of a vector, small and large. */
static bool lies_well(const void *result) { return (uintptr_t)result % 64 == 0; }
static void no_lanes(void *context, void *result) {
  CHECK(lies_well(result));
  memset(result, 0, *(const size_t *)context);
}
static void add_lanes(void *context, size_t from, size_t to, void *result) {
  (void)context;
  CHECK(lies_well(result));
  for (size_t i = from; i < to; i++) ((uint64_t *)result)[i % 8] += i;
  if (from / 1000 != to / 1000) spin_ns(10000);
}
static void join_lanes(void *context, void *left, const void *right) {
  (void)context;
  CHECK(lies_well(left) && lies_well(right));
  for (int i = 0; i < 8; i++) ((uint64_t *)left)[i] += ((const uint64_t *)right)[i];
}

static void reduce_lanes(size_t n, size_t size) {
  _Alignas(64) uint64_t lanes[64] = {0};
  lvd_reduction sum = {size, no_lanes, add_lanes, join_lanes, &size};
  lvd_reduce(0, n, &sum, lanes);
  uint64_t all = 0;
  for (int i = 0; i < 8; i++) all += lanes[i];
  CHECK_EQ(all, (uint64_t)n * (n - 1) / 2);
}

void test_fork_ranges(void) {
  CHECK_EQ(lvd_fork_workers(3), LVD_OK);
  size_t n = SCALED(1000000);
  unsigned char *seen = calloc(n, 1);
  lvd_for(0, n, touch, seen);
  for (size_t i = 0; i < n; i++) CHECK_EQ(seen[i], 1);
  lvd_for(5, 5, touch, seen);
  lvd_for(6, 5, touch, seen);
  free(seen);
  lvd_reduction text = {sizeof(ends), no_text, add_text, join_text, NULL};
  for (int i = 0; i < 5; i++) {
    ends e;
    lvd_reduce(17, 17 + n, &text, &e);
    CHECK_EQ(e.count, n);
    CHECK_EQ(e.first, 17);
    CHECK_EQ(e.last, 16 + n);
  }
  /* Until something is stolen: other programs may leave no core for a thief. */
  uint64_t until = now_ns() + UINT64_C(60000000000);
  for (int i = 0; i < 5 || (!counters().stolen && now_ns() < until); i++) {
    reduce_lanes(n, 64);
    reduce_lanes(n, 512);
  }
  CHECK(counters().stolen > 0);
}

/* ---- faults ------------------------------------------------------------------------------- */

static int fall(int n) {
  spin_ns(20000);
  if (n % 3 == 0) lvd_actor_fail(NULL, LVD_FAULT_CHECK, 1, "call %d", n);
  return n;
}
LVD_FORKABLE(int, fall, int)

/* Sometimes the block fails, sometimes the call, here or where it was stolen. */
static void fails(void *argument) {
  int n = *(int *)argument;
  LVD_FORK(f1, fib, 12);
  LVD_FORK(f2, fall, n);
  spin_ns(50000);
  if (n % 2 == 0) lvd_actor_fail(NULL, LVD_FAULT_CHECK, 1, "block %d", n);
  LVD_JOIN(f2, fall);
  LVD_JOIN(f1, fib);
}

void test_fork_faults(void) {
  lvd_runtime *rt = runtime_of(3);
  for (int n = 0; n < (int)SCALED(120); n++) {
    lvd_app *app;
    lvd_fiber *f;
    CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
    CHECK_EQ(lvd_fiber_start(app, fails, &n, NULL, &f), LVD_OK);
    bool falls = n % 3 == 0 || n % 2 == 0;
    CHECK_EQ(lvd_fiber_join(f, -1), falls ? LVD_E_FAULT : LVD_OK);
    lvd_app_close(app);
    CHECK_EQ(lvd_app_wait(app, -1), falls ? LVD_E_FAULT : LVD_OK);
    lvd_app_unload(app);
    CHECK_EQ(fib(12), 144);
  }
  lvd_runtime_destroy(rt);
}
