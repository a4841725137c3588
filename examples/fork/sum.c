/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The sum of a million integers. */
#include <stdio.h>
#include <stdlib.h>

enum { LEAF = 16384 };

static long sum(const int *v, long n) {
  if (n <= LEAF) {
    long s = 0;
    for (long i = 0; i < n; i++) s += v[i];
    return s;
  }
  long right, left = sum(v, n / 2) !! { right = sum(v + n / 2, n - n / 2); }
  return left + right;
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 1000000;
  int *v = malloc((size_t)n * sizeof *v);
  if (!v) return 1;
  for (long i = 0; i < n; i++) v[i] = (int)(i % 1000);
  printf("the sum of %ld numbers is %ld\n", n, sum(v, n));
  free(v);
  return 0;
}
