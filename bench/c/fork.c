/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's five programs with Levada's forks, and without: fib, sum, mm, scan, poly.
 *
 *   fork PROGRAM alone|plain|levada SIZE [WORKERS]
 *
 * Prints `ms`; for fib also `ns_per_fork`. The first fork, which starts the workers, is not in the
 * time. The arrays have been written before, so that every page is there. */
#include <levada/fork.h>

#include "bench.h"
#include "fork_kernels.h"

/* ---- fib: every node forks ---------------------------------------------------------------- */

static int fib(int n);
typedef union fib_fork {
  struct {
    int n;
  } in;
  int out;
} fib_fork;
static void run_fib(lvd_fork *slot) {
  fib_fork *r = LVD_FORK_RECORD(slot, fib_fork);
  r->out = fib(r->in.n);
}
/* As the translator writes y = fib(n - 1) !! { z = fib(n - 2); }. */
static int fib(int n) {
  if (n < 2) return n;
  int y, z;
  fib_fork r;
  lvd_fork *h;
  r.in.n = n - 1;
  LVD_FORK_PUSH(h, fib_fork, r, run_fib);
  z = fib(n - 2);
  if (LVD_LIKELY(lvd_fork_pop(h)))
    y = fib(r.in.n);
  else if (lvd_fork_join_seldom(h))
    y = fib(r.in.n);
  else
    y = LVD_FORK_OUT(h, fib_fork, r)->out;
  return y + z;
}

/* ---- sum ---------------------------------------------------------------------------------- */

static int64_t sum(const int32_t *x, size_t n);
LVD_FORKABLE(int64_t, sum, const int32_t *, size_t)
static int64_t sum(const int32_t *x, size_t n) {
  if (n <= LEAF_SUM) return sum_leaf(x, n);
  LVD_FORK(right, sum, x + n / 2, n - n / 2);
  int64_t left = sum(x, n / 2);
  return left + LVD_JOIN(right, sum);
}

/* ---- mm ----------------------------------------------------------------------------------- */

typedef struct matrices {
  const int32_t *a, *b;
  int32_t *c;
  size_t n;
} matrices;

static void mm(const matrices *m, size_t from, size_t to);
LVD_FORKABLE_VOID(mm, const matrices *, size_t, size_t)
static void mm(const matrices *m, size_t from, size_t to) {
  if (to - from <= LEAF_ROWS) {
    mm_leaf(m->a, m->b, m->c, m->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
  LVD_FORK(right, mm, m, middle, to);
  mm(m, from, middle);
  LVD_JOIN(right, mm);
}

/* ---- scan: the right half is summed while the left is scanned, but only if it is taken ---------- */

typedef struct scanned {
  const int32_t *x;
  int32_t *out;
  size_t n;
  int32_t *block; /* sums of blocks of LEAF_SCAN */
} scanned;

static size_t elements(const scanned *s, size_t from, size_t to) {
  size_t end = to * LEAF_SCAN < s->n ? to * LEAF_SCAN : s->n;
  return end - from * LEAF_SCAN;
}

static int32_t add_up(const scanned *s, size_t from, size_t to);
LVD_FORKABLE(int32_t, add_up, const scanned *, size_t, size_t)
static int32_t add_up(const scanned *s, size_t from, size_t to) {
  if (to - from == 1)
    return s->block[from] = (int32_t)sum_leaf(s->x + from * LEAF_SCAN, elements(s, from, to));
  size_t middle = (from + to) / 2;
  LVD_FORK(right, add_up, s, middle, to);
  int32_t left = add_up(s, from, middle);
  return left + LVD_JOIN(right, add_up);
}

static int32_t scan_blocks(const scanned *s, size_t from, size_t to, int32_t carry) {
  return scan_leaf(s->x + from * LEAF_SCAN, s->out + from * LEAF_SCAN, elements(s, from, to),
                   carry);
}

/* What comes before each block is known. */
static int32_t scan_known(const scanned *s, size_t from, size_t to, int32_t carry);
LVD_FORKABLE(int32_t, scan_known, const scanned *, size_t, size_t, int32_t)
static int32_t scan_known(const scanned *s, size_t from, size_t to, int32_t carry) {
  if (to - from == 1) return scan_blocks(s, from, to, carry);
  size_t middle = (from + to) / 2;
  int32_t before = carry;
  for (size_t i = from; i < middle; i++) before += s->block[i];
  LVD_FORK(right, scan_known, s, middle, to, before);
  scan_known(s, from, middle, carry);
  return LVD_JOIN(right, scan_known);
}

static int32_t scan(const scanned *s, size_t from, size_t to, int32_t carry) {
  if (to - from == 1) return scan_blocks(s, from, to, carry);
  size_t middle = (from + to) / 2;
  lvd_record_add_up r = lvd_args_add_up(s, middle, to);
  lvd_fork *right;
  LVD_FORK_PUSH(right, lvd_record_add_up, r, lvd_run_add_up);
  carry = scan(s, from, middle, carry);
  if (lvd_fork_join(right)) return scan(s, middle, to, carry);
  return scan_known(s, middle, to, carry);
}

/* ---- poly --------------------------------------------------------------------------------- */

typedef struct polynomial {
  const int64_t *a;
  int64_t *out;
  size_t n;
} polynomial;

static void square(const polynomial *p, size_t from, size_t to);
LVD_FORKABLE_VOID(square, const polynomial *, size_t, size_t)
static void square(const polynomial *p, size_t from, size_t to) {
  if (to - from <= LEAF_POLY) {
    poly_leaf(p->a, p->out, p->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
  LVD_FORK(right, square, p, middle, to);
  square(p, from, middle);
  LVD_JOIN(right, square);
}

/* ---- the runs ----------------------------------------------------------------------------- */

static bool alone, plain;

static void *filled(size_t n, size_t size) {
  unsigned char *p = (unsigned char *)aligned_alloc(4096, (n * size + 4095) / 4096 * 4096);
  if (!p) {
    perror("aligned_alloc");
    exit(1);
  }
  memset(p, 0, n * size);
  return p;
}

static int32_t *numbers(size_t n) {
  int32_t *x = (int32_t *)filled(n, sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (int32_t)(i * 2654435761u >> 24) - 100;
  return x;
}

static double time_fib(int n) {
  double start = bench_now();
  int result = alone ? fib_alone(n) : plain ? fib_plain(n) : fib(n);
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

static double time_sum(size_t n) {
  int32_t *x = numbers(n);
  int64_t expected = 0;
  for (size_t i = 0; i < n; i++) expected += (int32_t)(i * 2654435761u >> 24) - 100;
  double start = bench_now();
  int64_t result = alone ? sum_leaf(x, n) : sum(x, n);
  double took = bench_now() - start;
  bench_expect("the sum", (uint64_t)result, (uint64_t)expected);
  return took;
}

static double time_mm(size_t n) {
  matrices m = {numbers(n * n), numbers(n * n), (int32_t *)filled(n * n, sizeof(int32_t)), n};
  double start = bench_now();
  if (alone)
    mm_leaf(m.a, m.b, m.c, n, 0, n);
  else
    mm(&m, 0, n);
  double took = bench_now() - start;
  for (size_t i = 0; i < n; i += n / 16 + 1)
    for (size_t j = 0; j < n; j += n / 16 + 1) {
      int32_t expected = 0;
      for (size_t k = 0; k < n; k++) expected += m.a[i * n + k] * m.b[k * n + j];
      bench_expect("an element", (uint64_t)m.c[i * n + j], (uint64_t)expected);
    }
  return took;
}

static double time_scan(size_t n) {
  size_t blocks = (n + LEAF_SCAN - 1) / LEAF_SCAN;
  scanned s = {numbers(n), (int32_t *)filled(n, 4), n, (int32_t *)filled(blocks, 4)};
  double start = bench_now();
  if (alone)
    scan_leaf(s.x, s.out, n, 0);
  else
    scan(&s, 0, blocks, 0);
  double took = bench_now() - start;
  int32_t expected = 0;
  for (size_t i = 0; i < n; i++) {
    expected += s.x[i];
    if (s.out[i] != expected) bench_expect("a prefix", (uint64_t)s.out[i], (uint64_t)expected);
  }
  return took;
}

static double time_poly(size_t n) {
  int64_t *a = (int64_t *)filled(n, sizeof *a), at_one = 0, result = 0;
  for (size_t i = 0; i < n; i++) at_one += a[i] = (int64_t)(i * 2654435761u >> 20 & 1023) - 500;
  polynomial p = {a, (int64_t *)filled(2 * n - 1, sizeof *a), n};
  double start = bench_now();
  if (alone)
    poly_leaf(a, p.out, n, 0, 2 * n - 1);
  else
    square(&p, 0, 2 * n - 1);
  double took = bench_now() - start;
  for (size_t i = 0; i < 2 * n - 1; i++) result += p.out[i];
  bench_expect("the square at 1", (uint64_t)result, (uint64_t)(at_one * at_one));
  return took;
}

int main(int argc, char **argv) {
  static const char usage[] = "fib|sum|mm|scan|poly alone|plain|levada SIZE [WORKERS]";
  uint64_t size = bench_number(argc, argv, 3, usage);
  const char *program = argv[1];
  alone = strcmp(argv[2], "alone") == 0;
  plain = strcmp(argv[2], "plain") == 0;
  if (!alone && !plain) {
    lvd_fork_workers((uint32_t)bench_number(argc, argv, 4, usage));
    fib(20);
  }
  double took = strcmp(program, "fib") == 0    ? time_fib((int)size)
                : strcmp(program, "sum") == 0  ? time_sum(size)
                : strcmp(program, "mm") == 0   ? time_mm(size)
                : strcmp(program, "scan") == 0 ? time_scan(size)
                                               : time_poly(size);
  bench_say("ms", took * 1e3);
  if (alone || plain) return 0;
  lvd_fork_counters c;
  lvd_fork_counters_read(&c);
  bench_say("stolen", (double)(c.stolen + c.leapt));
  bench_say("waits", (double)c.waits);
  return 0;
}
