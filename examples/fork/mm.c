/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The product of two matrices of integers: the rows of the result are halved until few are left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAF = 8 };

/* Rows from ... to of c = a b, all of n rows and n columns. */
static void multiply(int *c, const int *a, const int *b, long n, long from, long to) {
  if (to - from > LEAF) {
    long middle = (from + to) / 2;
    multiply(c, a, b, n, from, middle) !! { multiply(c, a, b, n, middle, to); }
    return;
  }
  for (long i = from; i < to; i++) {
    int *row = c + i * n;
    memset(row, 0, (size_t)n * sizeof *row);
    for (long k = 0; k < n; k++)
      for (long j = 0; j < n; j++) row[j] += a[i * n + k] * b[k * n + j];
  }
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 150, trace = 0;
  int *m = malloc(3 * (size_t)(n * n) * sizeof *m);
  if (!m) return 1;
  int *a = m, *b = m + n * n, *c = m + 2 * n * n;
  for (long i = 0; i < n * n; i++) {
    a[i] = (int)(i % 7);
    b[i] = (int)(i % 5);
  }
  multiply(c, a, b, n, 0, n);
  for (long i = 0; i < n; i++) trace += c[i * n + i];
  printf("the trace of the product of two %ld x %ld matrices is %ld\n", n, n, trace);
  free(m);
  return 0;
}
