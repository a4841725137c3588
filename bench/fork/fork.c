/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's five programs with `!!`, and without: fib, sum, mm, scan, poly. `levada cc` compiles it.
 *
 *   fork fib|sum|mm|scan|poly alone|plain|levada SIZE [WORKERS]
 *   fork help levada ROUNDS WORKERS
 *
 * The first fork, which starts the workers, is not in the time. */
#include <levada/fork.h>
#include <stdatomic.h>

#include "../c/fork_run.h"

static int fib(int n) {
  if (n < 2) return n;
  int y, x = fib(n - 1) !! { y = fib(n - 2); }
  return x + y;
}

static int64_t sum(const int32_t *x, size_t n) {
  if (n <= LEAF_SUM) return sum_leaf(x, n);
  int64_t left, right = sum(x + n / 2, n - n / 2) !! { left = sum(x, n / 2); }
  return left + right;
}

static void mm(const matrices *m, size_t from, size_t to) {
  if (to - from <= LEAF_ROWS) {
    mm_leaf(m->a, m->b, m->c, m->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
  mm(m, middle, to) !! { mm(m, from, middle); }
}

/* ---- scan: a half that another worker begins before the half to its left is done is only added up,
 * and scanned when it is known what comes before it; a half that is not taken is scanned at once. -- */

typedef struct left_half {
  int32_t carry; /* what the left half ends with */
  _Atomic bool done;
} left_half;

static int32_t add_up(const scanned *s, size_t from, size_t to) {
  if (to - from == 1)
    return s->block[from] = (int32_t)sum_leaf(s->x + from * LEAF_SCAN, elements(s, from, to));
  size_t middle = (from + to) / 2;
  int32_t left, right = add_up(s, middle, to) !! { left = add_up(s, from, middle); }
  return left + right;
}

static int32_t scan(const scanned *s, size_t from, size_t to, int32_t carry);

/* Says whether it has scanned it. */
static bool right_half(const scanned *s, size_t from, size_t to, left_half *left, int32_t *last) {
  if (atomic_load_explicit(&left->done, memory_order_acquire)) {
    *last = scan(s, from, to, left->carry);
    return true;
  }
  add_up(s, from, to);
  return false;
}

/* What comes before each block is known. */
static int32_t scan_known(const scanned *s, size_t from, size_t to, int32_t carry) {
  if (to - from == 1) return scan_blocks(s, from, to, carry);
  size_t middle = (from + to) / 2;
  int32_t before = carry;
  for (size_t i = from; i < middle; i++) before += s->block[i];
  return scan_known(s, middle, to, before) !! { scan_known(s, from, middle, carry); }
}

static int32_t scan(const scanned *s, size_t from, size_t to, int32_t carry) {
  if (to - from == 1) return scan_blocks(s, from, to, carry);
  size_t middle = (from + to) / 2;
  left_half left = {0, false};
  int32_t last;
  bool scanned = right_half(s, middle, to, &left, &last) !! {
    left.carry = scan(s, from, middle, carry);
    atomic_store_explicit(&left.done, true, memory_order_release);
  }
  return scanned ? last : scan_known(s, middle, to, left.carry);
}

static void square(const polynomial *p, size_t from, size_t to) {
  if (to - from <= LEAF_POLY) {
    poly_leaf(p->a, p->out, p->n, from, to);
    return;
  }
  size_t middle = (from + to) / 2;
  square(p, middle, to) !! { square(p, from, middle); }
}

static void help(helped *h) {
  helped_begin(h) !! { helped_wait(h); }
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
  static const char usage[] = "fib|sum|mm|scan|poly|help alone|plain|levada SIZE [WORKERS]";
  static const forked alone = {fib_alone, sum_leaf, mm_alone, scan_alone, square_alone, NULL},
                      plain = {fib_plain, sum_leaf, mm_alone, scan_alone, square_alone, NULL},
                      levada = {fib, sum, mm, scan, square, help};
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
  bench_say("stolen", (double)(c.stolen + c.leapfrogged));
  bench_say("waits", (double)c.waits);
  return 0;
}
