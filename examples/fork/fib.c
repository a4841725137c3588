/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The nth Fibonacci number, with a fork for every addition: what a fork costs is all there is. */
#include <stdio.h>
#include <stdlib.h>

static int fib(int n) {
  if (n < 2) return n;
  int y, x = fib(n - 1) !! { y = fib(n - 2); }
  return x + y;
}

int main(int argc, char **argv) {
  int n = argc > 1 ? atoi(argv[1]) : 30;
  printf("fib(%d) = %d\n", n, fib(n));
  return 0;
}
