/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's five programs with Levada's forks, and without: fib, sum, mm, scan, poly.
 *
 *   fork PROGRAM alone|plain|levada SIZE [WORKERS]
 *
 * The first fork, which starts the workers, is not in the time. */
#include <levada/fork.h>

#include "fork_run.h"

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

/* ---- without forks ------------------------------------------------------------------------- */

static void mm_alone(const matrices *m, size_t from, size_t to) {
  mm_leaf(m->a, m->b, m->c, m->n, from, to);
}
static int32_t scan_alone(const scanned *s, size_t from, size_t to, int32_t carry) {
  (void)from, (void)to;
  return scan_leaf(s->x, s->out, s->n, carry);
}
static void square_alone(const polynomial *p, size_t from, size_t to) {
  poly_leaf(p->a, p->out, p->n, from, to);
}

int main(int argc, char **argv) {
  static const char usage[] = "fib|sum|mm|scan|poly alone|plain|levada SIZE [WORKERS]";
  static const forked alone = {fib_alone, sum_leaf, mm_alone, scan_alone, square_alone},
                      plain = {fib_plain, sum_leaf, mm_alone, scan_alone, square_alone},
                      levada = {fib, sum, mm, scan, square};
  uint64_t size = bench_number(argc, argv, 3, usage);
  if (argv[2][0] != 'l') {
    run_forked(argv[2][0] == 'a' ? &alone : &plain, argv[1], size);
    return 0;
  }
  lvd_fork_workers((uint32_t)bench_number(argc, argv, 4, usage));
  fib(20);
  run_forked(&levada, argv[1], size);
  lvd_fork_counters c;
  lvd_fork_counters_read(&c);
  bench_say("stolen", (double)(c.stolen + c.leapt));
  bench_say("waits", (double)c.waits);
  return 0;
}
