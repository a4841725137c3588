/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bounds for all contenders of the fork programs.
 *
 * fib: the minimum cost of a fork. A fork writes the call to memory and reads it back; no other thread can
 * take it, and nothing is checked.
 *
 * sum, mm, poly: two threads on their own cores each make one call of the leaf for half of the problem, so
 * the only synchronisation is at the end. Any time above half of the sequential program's is due to the
 * machine: cores that share a memory bus, or two hardware threads of one core.
 *
 * help: a second thread, which sleeps in the kernel on its own core and is woken by a futex.
 *
 *   fork_bound fib|sum|mm|poly|help SIZE */
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fork_run.h"

typedef struct slot {
  void (*run)(struct slot *slot);
  int n, result;
} slot;

enum { SLOTS = 128 };
static __thread slot *head;
slot fork_bound_slots[SLOTS]; /* they are visible to all, so they are written */

static int fib(int n);

static void run_fib(slot *s) { s->result = fib(s->n); }

static int fib(int n) {
  if (n < 2) return n;
  slot *mine = head;
  __atomic_store_n(&mine->run, run_fib, __ATOMIC_RELAXED);
  __atomic_store_n(&mine->n, n - 1, __ATOMIC_RELAXED);
  head = mine + 1;
  int y = fib(n - 2);
  head = mine;
  return fib(n - 1) + y;
}

/* ---- halves -------------------------------------------------------------------------------- */

typedef struct half {
  void (*run)(const void *problem);
  const void *problem;
  int given, done; /* written by the first thread, and by the second */
} half;

static half other_half;

static void *second_thread(void *sleeps) {
  bench_pin(bench_core(1));
  for (int turn = 1;; turn++) {
    while (__atomic_load_n(&other_half.given, __ATOMIC_ACQUIRE) != turn)
      if (sleeps)
        syscall(SYS_futex, &other_half.given, FUTEX_WAIT_PRIVATE, turn - 1, NULL);
      else
        bench_poll();
    if (!other_half.run) return NULL;
    other_half.run(other_half.problem);
    __atomic_store_n(&other_half.done, turn, __ATOMIC_RELEASE);
  }
}

static void give(void (*run)(const void *), const void *problem) {
  other_half.run = run;
  other_half.problem = problem;
  __atomic_store_n(&other_half.given, other_half.given + 1, __ATOMIC_RELEASE);
}

static void wait_for_it(void) {
  while (__atomic_load_n(&other_half.done, __ATOMIC_ACQUIRE) != other_half.given) bench_poll();
}

typedef struct numbers_of {
  const int32_t *x;
  size_t n;
} numbers_of;

static int64_t right_sum;
static void sum_right(const void *problem) {
  const numbers_of *s = (const numbers_of *)problem;
  right_sum = sum_leaf(s->x + s->n / 2, s->n - s->n / 2);
}
static int64_t sum(const int32_t *x, size_t n) {
  numbers_of s = {x, n};
  give(sum_right, &s);
  int64_t left = sum_leaf(x, n / 2);
  wait_for_it();
  return left + right_sum;
}

static void mm_right(const void *problem) {
  const matrices *m = (const matrices *)problem;
  mm_leaf(m->a, m->b, m->c, m->n, m->n / 2, m->n);
}
static void mm(const matrices *m, size_t from, size_t to) {
  (void)to;
  give(mm_right, m);
  mm_leaf(m->a, m->b, m->c, m->n, from, m->n / 2);
  wait_for_it();
}

static void square_right(const void *problem) {
  const polynomial *p = (const polynomial *)problem;
  poly_leaf(p->a, p->out, p->n, p->n, 2 * p->n - 1);
}
static void square(const polynomial *p, size_t from, size_t to) {
  (void)to;
  give(square_right, p);
  poly_leaf(p->a, p->out, p->n, from, p->n);
  wait_for_it();
}

static void help_begins(const void *helped_one) { helped_begin((helped *)(uintptr_t)helped_one); }
static void wake_second(void) { syscall(SYS_futex, &other_half.given, FUTEX_WAKE_PRIVATE, 1); }
static void help(helped *h) {
  give(help_begins, h);
  wake_second();
  helped_wait(h);
  wait_for_it();
}

int main(int argc, char **argv) {
  static const char usage[] = "fib|sum|mm|poly|help SIZE";
  static const forked bound = {fib, sum, mm, NULL, square, help};
  uint64_t size = bench_number(argc, argv, 2, usage);
  if (strcmp(argv[1], "fib") == 0) {
    if (size >= SLOTS) return 2;
    head = fork_bound_slots;
    run_forked(&bound, "fib", size);
    return 0;
  }
  if (strcmp(argv[1], "scan") == 0) return 2;
  pthread_t second;
  void *sleeps = strcmp(argv[1], "help") == 0 ? argv[1] : NULL;
  if (pthread_create(&second, NULL, second_thread, sleeps) != 0) {
    perror("pthread_create");
    return 1;
  }
  bench_pin(bench_core(0));
  run_forked(&bound, argv[1], size);
  give(NULL, NULL);
  wake_second();
  pthread_join(second, NULL);
  return 0;
}
