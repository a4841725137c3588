/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A library with forks in it, and with a runtime of its own, that the tests load and close. */
#include <levada/fork.h>

LVD_API int plugin_fib(int n);
LVD_FORKABLE(int, plugin_fib, int)
int plugin_fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, plugin_fib, n - 1);
  int second = plugin_fib(n - 2);
  return LVD_JOIN(first, plugin_fib) + second;
}
