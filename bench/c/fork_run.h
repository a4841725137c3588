/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs and checks the paper's five programs with any library that forks. The arrays are written before, so that all
 * pages are mapped. Prints `ms`, and for fib also `ns_per_fork`. C17 and C++17.
 *
 * `help` measures idle workers: how long they use CPU time before they sleep (`idle_us`), and how soon a worker takes
 * the next fork after that (`help_us`). */
#ifndef FORK_RUN_H
#define FORK_RUN_H

#include <sys/mman.h>

#include "bench.h"
#include "fork_kernels.h"

typedef struct matrices {
  const int32_t *a, *b;
  int32_t *c;
  size_t n;
} matrices;

typedef struct scanned {
  const int32_t *x;
  int32_t *out;
  size_t n;
  int32_t *block; /* sums of blocks of LEAF_SCAN */
} scanned;

typedef struct polynomial {
  const int64_t *a;
  int64_t *out;
  size_t n;
} polynomial;

/* A fork of `help`: the times of the fork and of the beginning of its call. */
typedef struct helped {
  double made, begun;
  int done; /* written by the thread that makes the call */
} helped;

static inline void helped_begin(helped *h) {
  h->begun = bench_now();
  __atomic_store_n(&h->done, 1, __ATOMIC_RELEASE);
}

/* The block: waits until another thread has begun the call, up to a limit. */
static inline void helped_wait(const helped *h) {
  enum { LONGEST_US = 20000 };
  while (!__atomic_load_n(&h->done, __ATOMIC_ACQUIRE) && bench_now() - h->made < LONGEST_US * 1e-6)
    bench_poll();
}

/* The functions of a contender. The range of `scan` counts blocks of LEAF_SCAN; its result is not used. */
typedef struct forked {
  int (*fib)(int n);
  int64_t (*sum)(const int32_t *x, size_t n);
  void (*mm)(const matrices *m, size_t from, size_t to);
  int32_t (*scan)(const scanned *s, size_t from, size_t to, int32_t carry);
  void (*square)(const polynomial *p, size_t from, size_t to);
  void (*help)(helped *h); /* forks helped_begin, with helped_wait as its block */
} forked;

static inline size_t elements(const scanned *s, size_t from, size_t to) {
  size_t end = to * LEAF_SCAN < s->n ? to * LEAF_SCAN : s->n;
  return end - from * LEAF_SCAN;
}

static inline int32_t scan_blocks(const scanned *s, size_t from, size_t to, int32_t carry) {
  return scan_leaf(s->x + from * LEAF_SCAN, s->out + from * LEAF_SCAN, elements(s, from, to),
                   carry);
}

/* Large pages if the machine has them. With small ones the physical pages differ in each run, and so does the
 * time of programs that are bound by memory. */
static inline void *filled(size_t n, size_t size) {
  const size_t page = n * size < (1u << 21) ? 4096 : 1u << 21;
  const size_t bytes = (n * size + page - 1) / page * page;
  unsigned char *p = (unsigned char *)aligned_alloc(page, bytes);
  if (!p) {
    perror("aligned_alloc");
    exit(1);
  }
  madvise(p, bytes, MADV_HUGEPAGE);
  memset(p, 0, n * size);
  return p;
}

static inline int32_t *numbers(size_t n) {
  int32_t *x = (int32_t *)filled(n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (int32_t)(i * 2654435761u >> 24) - 100;
  return x;
}

static inline double time_fib(const forked *k, int n) {
  double start = bench_now();
  int result = k->fib(n);
  double took = bench_now() - start;
  double a = 0, b = 1;
  for (int i = 0; i < n; i++) {
    double t = a + b;
    a = b;
    b = t;
  }
  bench_expect("fib", (uint64_t)result, (uint64_t)a);
  bench_say("ns_per_fork", took * 1e9 / forks_of_fib(n));
  return took;
}

static inline double time_sum(const forked *k, size_t n) {
  int32_t *x = numbers(n);
  int64_t expected = 0;
  for (size_t i = 0; i < n; i++) expected += (int32_t)(i * 2654435761u >> 24) - 100;
  double start = bench_now();
  int64_t result = k->sum(x, n);
  double took = bench_now() - start;
  bench_expect("the sum", (uint64_t)result, (uint64_t)expected);
  return took;
}

static inline double time_mm(const forked *k, size_t n) {
  matrices m = {numbers(n * n), numbers(n * n), (int32_t *)filled(n * n, sizeof(int32_t)), n};
  double start = bench_now();
  k->mm(&m, 0, n);
  double took = bench_now() - start;
  for (size_t i = 0; i < n; i += n / 16 + 1)
    for (size_t j = 0; j < n; j += n / 16 + 1) {
      int32_t expected = 0;
      for (size_t l = 0; l < n; l++) expected += m.a[i * n + l] * m.b[l * n + j];
      bench_expect("an element", (uint64_t)m.c[i * n + j], (uint64_t)expected);
    }
  return took;
}

static inline double time_scan(const forked *k, size_t n) {
  size_t blocks = (n + LEAF_SCAN - 1) / LEAF_SCAN;
  scanned s = {numbers(n), (int32_t *)filled(n, 4), n, (int32_t *)filled(blocks, 4)};
  double start = bench_now();
  k->scan(&s, 0, blocks, 0);
  double took = bench_now() - start;
  int32_t expected = 0;
  for (size_t i = 0; i < n; i++) {
    expected += s.x[i];
    if (s.out[i] != expected) bench_expect("a prefix", (uint64_t)s.out[i], (uint64_t)expected);
  }
  return took;
}

static inline double time_poly(const forked *k, size_t n) {
  int64_t *a = (int64_t *)filled(n, sizeof *a), at_one = 0, result = 0;
  for (size_t i = 0; i < n; i++) at_one += a[i] = (int64_t)(i * 2654435761u >> 20 & 1023) - 500;
  polynomial p = {a, (int64_t *)filled(2 * n - 1, sizeof *a), n};
  double start = bench_now();
  k->square(&p, 0, 2 * n - 1);
  double took = bench_now() - start;
  for (size_t i = 0; i < 2 * n - 1; i++) result += p.out[i];
  bench_expect("the square at 1", (uint64_t)result, (uint64_t)(at_one * at_one));
  return took;
}

static inline int helped_order(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Medians over a number of rounds; before each, all threads are idle for 10 ms. */
static inline void time_help(const forked *k, size_t rounds) {
  double *idle = (double *)filled(rounds, sizeof *idle);
  double *help = (double *)filled(rounds, sizeof *help);
  for (size_t i = 0; i < rounds; i++) {
    struct timespec rest = {0, 10000000};
    double cpu = bench_cpu();
    nanosleep(&rest, NULL);
    idle[i] = bench_cpu() - cpu;
    helped h = {bench_now(), 0, 0};
    k->help(&h);
    help[i] = h.begun - h.made;
  }
  qsort(idle, rounds, sizeof *idle, helped_order);
  qsort(help, rounds, sizeof *help, helped_order);
  bench_say("idle_us", idle[rounds / 2] * 1e6);
  bench_say("help_us", help[rounds / 2] * 1e6);
}

static inline void run_forked(const forked *k, const char *program, size_t size) {
  if (strcmp(program, "help") == 0) {
    time_help(k, size);
    return;
  }
  double took = strcmp(program, "fib") == 0    ? time_fib(k, (int)size)
                : strcmp(program, "sum") == 0  ? time_sum(k, size)
                : strcmp(program, "mm") == 0   ? time_mm(k, size)
                : strcmp(program, "scan") == 0 ? time_scan(k, size)
                                               : time_poly(k, size);
  bench_say("ms", took * 1e3);
}

#endif
