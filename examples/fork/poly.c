/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The square of a polynomial: the terms of the result are halved until few are left. The terms in the
 * middle take longest, so the halves are uneven, and a worker that finishes first steals from another. */
#include <stdio.h>
#include <stdlib.h>

enum { LEAF = 64 };

typedef struct {
  long *term;
  long n;
} polynomial;

/* Terms from ... to of the square of p. */
static void square(polynomial s, polynomial p, long from, long to) {
  if (to - from > LEAF) {
    long middle = (from + to) / 2;
    square(s, p, from, middle) !! { square(s, p, middle, to); }
    return;
  }
  for (long k = from; k < to; k++) {
    long sum = 0;
    for (long i = k < p.n ? 0 : k - p.n + 1; i <= k && i < p.n; i++)
      sum += p.term[i] * p.term[k - i];
    s.term[k] = sum;
  }
}

int main(int argc, char **argv) {
  long n = argc > 1 ? atol(argv[1]) : 2000;
  polynomial p = {malloc((size_t)n * sizeof(long)), n};
  polynomial s = {malloc((size_t)(2 * n) * sizeof(long)), 2 * n - 1};
  if (!p.term || !s.term) return 1;
  for (long i = 0; i < n; i++) p.term[i] = i % 10 + 1;
  square(s, p, 0, s.n);
  long largest = 0;
  for (long k = 0; k < s.n; k++) largest = s.term[k] > largest ? s.term[k] : largest;
  printf("the largest of the %ld terms of the square is %ld\n", s.n, largest);
  free(p.term);
  free(s.term);
  return 0;
}
