/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's five programs with oneTBB: task_group, and its own algorithms for ranges, with the
 * grain that the others have.
 *
 *   fork_tbb fib|sum|mm|scan|poly|help SIZE WORKERS */
#include <oneapi/tbb/blocked_range.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/parallel_reduce.h>
#include <oneapi/tbb/parallel_scan.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include "../c/fork_run.h"

namespace tbb = oneapi::tbb;
using range = tbb::blocked_range<size_t>;

static int fib(int n) {
  if (n < 2) return n;
  int x, y;
  tbb::task_group group;
  group.run([&x, n] { x = fib(n - 1); });
  y = fib(n - 2);
  group.wait();
  return x + y;
}

static int64_t sum(const int32_t *x, size_t n) {
  return tbb::parallel_reduce(
      range(0, n, LEAF_SUM), int64_t{0},
      [x](const range &r, int64_t before) { return before + sum_leaf(x + r.begin(), r.size()); },
      [](int64_t a, int64_t b) { return a + b; });
}

static void mm(const matrices *m, size_t from, size_t to) {
  tbb::parallel_for(range(from, to, LEAF_ROWS),
                    [m](const range &r) { mm_leaf(m->a, m->b, m->c, m->n, r.begin(), r.end()); });
}

static int32_t scan(const scanned *s, size_t, size_t, int32_t carry) {
  return tbb::parallel_scan(
      range(0, s->n, LEAF_SCAN), carry,
      [s](const range &r, int32_t before, bool known) {
        return known ? scan_leaf(s->x + r.begin(), s->out + r.begin(), r.size(), before)
                     : before + static_cast<int32_t>(sum_leaf(s->x + r.begin(), r.size()));
      },
      [](int32_t left, int32_t right) { return left + right; });
}

static void square(const polynomial *p, size_t from, size_t to) {
  tbb::parallel_for(range(from, to, LEAF_POLY),
                    [p](const range &r) { poly_leaf(p->a, p->out, p->n, r.begin(), r.end()); });
}

static void help(helped *h) {
  tbb::task_group group;
  group.run([h] { helped_begin(h); });
  helped_wait(h);
  group.wait();
}

int main(int argc, char **argv) {
  static const char usage[] = "fib|sum|mm|scan|poly|help SIZE WORKERS";
  static const forked k = {fib, sum, mm, scan, square, help};
  const uint64_t size = bench_number(argc, argv, 2, usage);
  const int workers = static_cast<int>(bench_number(argc, argv, 3, usage));
  tbb::global_control limit(tbb::global_control::max_allowed_parallelism,
                            static_cast<size_t>(workers));
  tbb::task_arena arena(workers);
  arena.execute([&] {
    fib(20); /* starts the threads */
    run_forked(&k, argv[1], size);
  });
  return 0;
}
