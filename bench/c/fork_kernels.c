/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The leaves of the fork programs (fork_kernels.h). */
#include "fork_kernels.h"

#include <string.h>

int fib_alone(int n) { return n < 2 ? n : fib_alone(n - 1) + fib_alone(n - 2); }

int64_t sum_leaf(const int32_t *x, size_t n) {
  int64_t sum = 0;
  for (size_t i = 0; i < n; i++) sum += x[i];
  return sum;
}

void mm_leaf(const int32_t *a, const int32_t *b, int32_t *c, size_t n, size_t from, size_t to) {
  for (size_t i = from; i < to; i++) {
    int32_t *row = &c[i * n];
    memset(row, 0, n * sizeof *row);
    for (size_t k = 0; k < n; k++) {
      int32_t x = a[i * n + k];
      const int32_t *other = &b[k * n];
      for (size_t j = 0; j < n; j++) row[j] += x * other[j];
    }
  }
}

int32_t scan_leaf(const int32_t *x, int32_t *out, size_t n, int32_t carry) {
  for (size_t i = 0; i < n; i++) out[i] = carry += x[i];
  return carry;
}

void poly_leaf(const int64_t *a, int64_t *out, size_t n, size_t from, size_t to) {
  for (size_t k = from; k < to; k++) {
    size_t first = k < n ? 0 : k - n + 1, last = k < n ? k : n - 1;
    int64_t sum = 0;
    for (size_t i = first; i <= last; i++) sum += a[i] * a[k - i];
    out[k] = sum;
  }
}
