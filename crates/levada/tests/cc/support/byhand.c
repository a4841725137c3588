/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Forks by hand, for C and C++: no compiler warns of what the macros become, and macros of the program
 * may be called as anything. */
#include <levada/fork.h>
#include <stdio.h>

#define in 5
#define out 6
#define run 7
#define head 8
#define limit 9
#define record 10
#define a 11
#define r 12

struct big {
  long data[20];
};
static int fib(int n);
static int nothing(void);
static void put(int *to, int value);
static struct big grow(struct big b, int by);
static int many(int c, long d, char e, double f, unsigned g, short h, const int *i, unsigned char j);
LVD_FORKABLE(int, fib, int)
LVD_FORKABLE(int, nothing)
LVD_FORKABLE_VOID(put, int *, int)
LVD_FORKABLE(struct big, grow, struct big, int)
LVD_FORKABLE(int, many, int, long, char, double, unsigned, short, const int *, unsigned char)

static int nothing(void) { return in; }
static void put(int *to, int value) { *to = value; }
static struct big grow(struct big b, int by) {
  b.data[0] += by;
  return b;
}
static int many(int c, long d, char e, double f, unsigned g, short h, const int *i, unsigned char j) {
  return c + (int)d + e + (int)f + (int)g + h + *i + j;
}
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

int main(void) {
  int x = 0, y = out;
  struct big b = {{run}};
  LVD_FORK(one, nothing);
  LVD_FORK(two, put, &x, head);
  LVD_FORK(three, grow, b, limit);
  LVD_FORK(four, many, 1, 2L, 'a', 4.0, 5U, (short)6, &y, (unsigned char)8);
  int sum = LVD_JOIN(four, many);
  b = LVD_JOIN(three, grow);
  LVD_JOIN(two, put);
  printf("%d %d %ld %d %d %d\n", fib(20), LVD_JOIN(one, nothing), b.data[0], x, sum,
         a + record + r);
  return 0;
}
