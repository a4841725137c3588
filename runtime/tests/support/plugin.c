/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A library that forks and has a runtime of its own; the tests load and close it. */
#include <levada/fork.h>

LVD_API int plugin_fib(int n);
LVD_FORKABLE(int, plugin_fib, int)
int plugin_fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, plugin_fib, n - 1);
  int second = plugin_fib(n - 2);
  return LVD_JOIN(first, plugin_fib) + second;
}
