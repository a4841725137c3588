/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What any fork costs at least: fib whose forks write down the call and take it back, with nobody
 * there who could take it, and no look whether somebody has.
 *
 *   fork_bound fib SIZE */
#include "fork_run.h"

typedef struct slot {
  void (*run)(struct slot *slot);
  int n, result;
} slot;

enum { SLOTS = 128 };
static __thread slot *head;
slot fork_bound_slots[SLOTS]; /* anybody may look at them, so they are written */

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

int main(int argc, char **argv) {
  static const forked bound = {fib, NULL, NULL, NULL, NULL, NULL};
  uint64_t size = bench_number(argc, argv, 2, "fib SIZE");
  if (strcmp(argv[1], "fib") != 0 || size >= SLOTS) return 2;
  head = fork_bound_slots;
  run_forked(&bound, "fib", size);
  return 0;
}
