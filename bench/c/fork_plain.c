/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* fib with one real call for each node: compiled so that the compiler makes no loop of it. */
#include "fork_kernels.h"

int fib_plain(int n) { return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2); }
