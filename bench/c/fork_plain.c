/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* fib with one function call per node: compiled so that the compiler does not replace calls by loops. */
#include "fork_kernels.h"

int fib_plain(int n) { return n < 2 ? n : fib_plain(n - 1) + fib_plain(n - 2); }
