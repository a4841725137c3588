/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The parts of the paper's five programs that all contenders share: the leaves, which are compiled once,
 * and the problems. Without forks a program is one call of its leaf.
 *
 * Source: "Lazy Remote Procedure Call in C" (Latendresse and Feeley, 1997), section 2. */
#ifndef FORK_KERNELS_H
#define FORK_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The sizes at which a range is not divided further. */
enum { LEAF_SUM = 16384, LEAF_ROWS = 8, LEAF_SCAN = 32768, LEAF_POLY = 64 };

int fib_alone(int n);                      /* optimised freely by the compiler */
int fib_plain(int n);                      /* one function call per node */
static inline double forks_of_fib(int n) { /* nodes that are not leaves */
  double a = 0, b = 1;
  for (int i = 0; i <= n; i++) {
    double t = a + b;
    a = b;
    b = t;
  }
  return a - 1;
}

int64_t sum_leaf(const int32_t *x, size_t n);
/* Rows `from` to `to` of c = a * b, which are n x n. */
void mm_leaf(const int32_t *a, const int32_t *b, int32_t *c, size_t n, size_t from, size_t to);
/* out[i] = carry + x[0] + ... + x[i]; returns the last. */
int32_t scan_leaf(const int32_t *x, int32_t *out, size_t n, int32_t carry);
/* Coefficients `from` to `to` of the square of a polynomial of n terms. */
void poly_leaf(const int64_t *a, int64_t *out, size_t n, size_t from, size_t to);

#ifdef __cplusplus
}
#endif
#endif
