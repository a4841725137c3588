/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Each form that a fork can have. Prints what came of it, which is the same with --serial. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int trace;

static int twice(int x) { return 2 * x; }
static int add(int a, int b) { return a + b; }
static void store(int *to, int value) { *to = value; }
static int nothing(void) { return 41; }
static inline long square(long x) { return x * x; }

static int fib(int n) {
  if (n < 2) return n;
  int y, x = fib(n - 1) !! { y = fib(n - 2); }
  return x + y;
}

/* A statement, with and without a semicolon, and as the only one of an if. */
static void statements(void) {
  int a = 0, b = 0;
  store(&a, 3) !! { b = 4; }
  printf("%d %d\n", a, b);
  store(&a, 5) !! { b = 6; };
  printf("%d %d\n", a, b);
  if (a == 5)
    store(&a, 7) !! { b = 8; }
  else
    store(&a, 9) !! { b = 10; }
  printf("%d %d\n", a, b);
  for (int i = 0; i < 3; i++)
    twice(i) !! { b += i; }
  printf("%d\n", b);
}

/* Assignments: the left side is evaluated once, before the fork. */
static void assignments(void) {
  int y, i = 0, b = 0, a[4] = {1, 2, 3, 4};
  struct pair {
    int x;
    unsigned bits : 3;
  } p = {1, 2}, *q = &p, ps[2] = {{1, 1}, {2, 2}};
  y = twice(4) !! { b = 1; }
  a[i++] = twice(5) !! { b += i; };
  a[i++] += twice(6) !! { b += 10 * i; }
  a[i] <<= add(1, 1) !! { i = 3; };
  *(a + i) -= nothing() !! { b++; }
  p.x = twice(y) !! { b++; }
  q->x += twice(1) !! { b++; }
  q->bits = add(2, 1) !! { b++; }
  p.bits += nothing() !! { b++; }
  i = 0;
  ps[i++].bits = add(1, 2) !! { b += ps[0].bits; }
  (y) = add(y, 1) !! { b++; }
  printf("%d %d %d | %d %d %d %d | %d %u | %u %u\n", y, i, b, a[0], a[1], a[2], a[3], p.x, p.bits,
         ps[0].bits, ps[1].bits);
}

static void declarations(void) {
  int b = 0;
  int x = twice(1) !! { b = 1; }
  int p, q = 3, y = add(x, q) !! { p = 4; b++; };
  const int c = twice(x) !! { b++; }
  int m = twice(2) !! { b++; }, n = twice(m) !! { b++; }
  long s = square(1L << 20) !! { b++; }
  int *z = &x, **zz = &z, t[2] = {twice(1) !! { b++; }, 2};
  printf("%d %d %d %d %d %d %d %ld %d %d\n", x, p, y, c, m, n, b, s, **zz, t[0]);
  for (int i = twice(0) !! { b = 0; }; i < 2; i++) b += 2;
  printf("%d\n", b);
}

static int returns(int n) {
  if (n > 2) return add(n, 1) !! { trace += n; }
  return add(n, 2) !! { trace -= n; };
}

static void returns_nothing(int *to) { return store(to, 12) !! { trace++; }; }

static void operands(void) {
  int a = 1, b = 0, y;
  y = 3 * (twice(4) !! { b = 1; }) + 1;
  printf("%d %d\n", y, b);
  y = twice(4) !! { b = 2; } + twice(5) !! { b += 3; } - 1;
  printf("%d %d\n", y, b);
  y = a && twice(1) !! { b = 7; };
  printf("%d %d\n", y, b);
  y = !a && twice(1) !! { b = 8; };
  printf("%d %d\n", y, b);
  y = a ? twice(6) !! { b++; } : twice(7) !! { b--; };
  printf("%d %d\n", y, b);
  printf("%d\n", add(twice(2) !! { b = 1; }, -1));
  y = (b = 4, twice(b) !! { b = 5; });
  printf("%d %d\n", y, b);
  if (twice(1) !! { b = 0; } == 2) printf("two\n");
  while (b < 3 && (twice(b) !! { b++; }) < 3) printf("%d\n", b);
  y = (int)twice(3) !! { b = 9; };
  y += -twice(3) !! { b++; };
  printf("%d %d\n", y, b);
  int c = y = twice(8) !! { b++; };
  printf("%d %d %d\n", c, y, b);
  char text[] = {(char)(add('a', 1) !! { b++; }), 0};
  printf("%s %zu\n", text, strlen(text));
  switch (twice(1) !! { b++; }) {
    case 2: y = twice(2) !! { b++; } break;
    default: y = 0;
  }
  printf("%d %d\n", y, b);
}

/* The value of a call is not used: no compiler warns about that. */
static void dropped(void) {
  int a = 1, b = 0;
  a ? twice(a) !! { b++; } : nothing() !! { b--; };
  for (twice(1) !! { b++; }; a < 3; twice(2) !! { a++; }) b++;
  twice(1) !! { b++; }, add(a, b) !! { a--; };
  (twice(1) !! { b++; });
  (void)(twice(1) !! { b++; });
  printf("%d %d\n", a, b);
}

/* Forks in blocks, in arguments, one after the other. */
static void nests(void) {
  int a, b, c, d;
  a = twice(1) !! {
    b = twice(2) !! {
      c = twice(3) !! { d = 4; }
      d += c;
    }
    b += d;
  }
  printf("%d %d %d %d\n", a, b, c, d);
  a = add(twice(5) !! { b = 1; }, twice(6) !! { c = 2; }) !! {
    for (int i = 0; i < 3; i++) d += twice(i) !! { d++; }
  }
  printf("%d %d %d %d\n", a, b, c, d);
  a = twice(1) !! {} b = twice(2) !! { ; } c = nothing() !! {
    a += 0;
  }
  printf("%d %d %d\n", a, b, c);
}

typedef int (*operation)(int, int);
struct operations {
  operation apply;
  int (*table[2])(int);
  struct {
    void (*put)(int *, int);
  };
};
static operation choose(int n) { return n ? add : 0; }

static void pointers(void) {
  int (*f)(int) = twice, b = 0, y;
  struct operations o = {add, {twice, twice}, {store}}, *p = &o;
  y = f(1) !! { f = 0; }
  printf("%d\n", y);
  f = twice;
  y = (*f)(2) !! { b = 1; }
  y += o.apply(1, 2) !! { b++; }
  y += p->apply(3, 4) !! { b++; }
  y += p->table[b & 1](5) !! { b++; }
  p->put(&y, y + 1) !! { b++; }
  y += choose(1)(1, 1) !! { b++; }
  y += ((operation)(void *)o.apply)(1, 0) !! { b++; }
  y += (b ? add : add)(1, 0) !! { b++; }
  printf("%d %d\n", y, b);
}

#ifndef WRITTEN_OUT
#define BOTH(call, other) call !! { other; }
#else
#define BOTH(call, other) call; other;
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))

static void macros(void) {
  int a, b;
  a = BOTH(twice(3), b = 4)
  printf("%d %d\n", a, b);
  a = twice(MAX(a, b)) !! { b = MAX(a, 1); }
  printf("%d %d\n", a, b);
}

int main(void) {
  statements();
  assignments();
  declarations();
  int to = 0;
  returns_nothing(&to);
  int one = returns(1), five = returns(5);
  printf("%d %d %d %d\n", one, five, to, trace);
  operands();
  dropped();
  nests();
  pointers();
  macros();
  printf("%d\n", fib(20));
  return 0;
}
