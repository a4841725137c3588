/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The running sums of a million integers, in place.
 *
 * The right half needs the sum of the left one. If no worker steals the right half, it runs after the
 * left one and starts with that sum: one pass over the numbers. If another worker steals it, it starts
 * with zero, and the sum is added to it when both are done. */
#include <levada/fork.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { LEAF = 32768 };

static void add(int *v, long n, int more) {
  if (n > LEAF) {
    add(v, n / 2, more) !! { add(v + n / 2, n - n / 2, more); }
    return;
  }
  for (long i = 0; i < n; i++) v[i] += more;
}

/* Sums v[0] ... v[n - 1] up, beginning with what *before holds by then; returns that. */
static int scan(int *v, long n, _Atomic int *before) {
  int begin = *before;
  if (n <= LEAF) {
    int sum = begin;
    for (long i = 0; i < n; i++) v[i] = sum += v[i];
    return begin;
  }
  long half = n / 2;
  _Atomic int first = begin, second = 0;
  int begun = scan(v + half, n - half, &second) !! {
    scan(v, half, &first);
    second = v[half - 1];
  }
  if (lvd_stolen() && begun != second) add(v + half, n - half, second - begun);
  return begin;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000000;
  int *v = malloc((size_t)n * sizeof *v);
  if (!v) return 1;
  for (long i = 0; i < n; i++) v[i] = (int)(i % 10);
  _Atomic int zero = 0;
  scan(v, n, &zero);
  long wrong = 0;
  int sum = 0;
  for (long i = 0; i < n; i++) wrong += v[i] != (sum += (int)(i % 10));
  printf("the last of %ld running sums is %d, and %ld are wrong\n", n, v[n - 1], wrong);
  free(v);
  return wrong != 0;
}
