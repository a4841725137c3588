/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's five programs with OpenMP's tasks. */
#include <omp.h>

#include "fork_run.h"

static int fib(int n) {
  if (n < 2) return n;
  int y, z;
#pragma omp task shared(y)
  y = fib(n - 1);
  z = fib(n - 2);
#pragma omp taskwait
  return y + z;
}

static int64_t sum(const int32_t *x, size_t n) {
  if (n <= LEAF_SUM) return sum_leaf(x, n);
  int64_t left, right;
#pragma omp task shared(right)
  right = sum(x + n / 2, n - n / 2);
  left = sum(x, n / 2);
#pragma omp taskwait
  return left + right;
}

static void mm(const matrices *m, size_t from, size_t to) {
  if (to - from <= LEAF_ROWS) {
    mm_leaf(m->a, m->b, m->c, m->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
#pragma omp task
  mm(m, middle, to);
  mm(m, from, middle);
#pragma omp taskwait
}

/* In two passes, since a task cannot tell whether another thread has executed it. */
static int32_t add_up(const scanned *s, size_t from, size_t to) {
  if (to - from == 1)
    return s->block[from] = (int32_t)sum_leaf(s->x + from * LEAF_SCAN, elements(s, from, to));
  size_t middle = (from + to) / 2;
  int32_t left, right;
#pragma omp task shared(right)
  right = add_up(s, middle, to);
  left = add_up(s, from, middle);
#pragma omp taskwait
  return left + right;
}

static int32_t scan_known(const scanned *s, size_t from, size_t to, int32_t carry) {
  if (to - from == 1) return scan_blocks(s, from, to, carry);
  size_t middle = (from + to) / 2;
  int32_t before = carry, last;
  for (size_t i = from; i < middle; i++) before += s->block[i];
#pragma omp task shared(last)
  last = scan_known(s, middle, to, before);
  scan_known(s, from, middle, carry);
#pragma omp taskwait
  return last;
}

static int32_t scan(const scanned *s, size_t from, size_t to, int32_t carry) {
  add_up(s, from, to);
  return scan_known(s, from, to, carry);
}

static void square(const polynomial *p, size_t from, size_t to) {
  if (to - from <= LEAF_POLY) {
    poly_leaf(p->a, p->out, p->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
#pragma omp task
  square(p, middle, to);
  square(p, from, middle);
#pragma omp taskwait
}

static void help(helped *h) {
#pragma omp task
  helped_begin(h);
  helped_wait(h);
#pragma omp taskwait
}

int main(int argc, char **argv) {
  static const char usage[] = "fib|sum|mm|scan|poly|help SIZE WORKERS";
  static const forked openmp = {fib, sum, mm, scan, square, help};
  uint64_t size = bench_number(argc, argv, 2, usage);
  omp_set_num_threads((int)bench_number(argc, argv, 3, usage));
#pragma omp parallel
#pragma omp single
  {
    fib(10);
    run_forked(&openmp, argv[1], size);
  }
  return 0;
}
