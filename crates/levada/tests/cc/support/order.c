/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The order in which expressions with forks are evaluated: from left to right, and a fork is done
 * before what stands right of it begins. */
#include <stdio.h>

static int failed;
static void check(int line, long want, long have) {
  if (want != have) {
    printf("line %d: %ld, not %ld\n", line, have, want);
    failed = 1;
  }
}
#define CHECK(want, have) check(__LINE__, want, have)

static int same(int x) { return x; }
static int two(int a, int b) { return 100 * a + b; }
static int three(int a, int b, int c) { return 10000 * a + 100 * b + c; }
static int global;
static int set(int v) {
  int before = global;
  global = v;
  return before;
}
struct pair {
  int x;
  unsigned bits : 5;
  signed char c;
  int v[2];
};
static struct pair make(int x) { return (struct pair){x, 3, 7, {x, x + 1}}; }
static int sum(struct pair p) { return p.x + p.v[1]; }
static int *at(int *p) { return p; }
typedef int vec __attribute__((vector_size(16)));
static int (*chosen)(int, int) = two;
static int other(int a, int b) { return a - b; }

/* What stands left of a fork is read before it, what stands right of it afterwards. */
static int left(int x) { return x + same(x) !! { x = 30; }; }
static int right(int x) { return same(x) !! { x = 30; } + x; }
static int middle(int x) { return x * 100 + same(x) !! { x = 3; } * 10 + x; }
static int of_globals(void) {
  global = 1;
  return global + same(1) !! { global = 30; };
}
static int of_arrays(int x) {
  int a[2] = {1, 2};
  return a[0] + same(a[1]) !! { a[0] = 50; } + a[0] * x;
}
static int of_pointers(int x) {
  int *p = &x, y = 5;
  return *p * 10 + same(y) !! { *p = 4; p = &y; } + *p;
}
static int of_calls(void) {
  global = 1;
  return set(2) * 1000 + same(set(3)) !! { set(4); } * 100 + set(5) * 10 + global;
}
static int of_members(int x) {
  struct pair p = {x, 3, 7, {8, 9}}, *q = &p;
  return p.x + q->bits + p.c + p.v[1] + same(1) !! { p = make(20); } + p.bits;
}
static int arguments(int x) { return two(x, same(x) !! { x = 9; }); }
static int arguments_all(int x) { return three(x++, same(x) !! { x = 9; }, x); }
static int written_besides(int x) { return two(x++, same(x) !! { x = 9; }) + x; }
static int callee(void) {
  return chosen(1, same(2) !! { chosen = other; });
}
static int two_forks(int x) {
  return same(x) !! { x = 5; } * 100 + same(x) !! { x = 7; } * 10 + x;
}
static int conditional(int x) {
  return x + (x ? same(x) !! { x = 20; } : set(x)) + x;
}
static int conjunction(int x) {
  return x + (x && same(x) !! { x = 20; }) + x;
}
static int disjunction(int x) { return (same(x) !! { x = 4; } || set(3)) + 10 * x; }
static int commas(int x) { return x + (x++, same(x) !! { x = 20; }) + x; }
static int inner_assignment(int x) {
  int y = 1;
  return x + (y = same(x) !! { x = 20; }) + x + y;
}
static int of_block(int x) {
  return x + ({
    x = 3;
    same(x) !! { x = 20; };
  }) + x;
}
static int literals(int x) {
  struct pair p = (struct pair){x, 1, 2, {same(x) !! { x = 6; }, x}};
  return p.x * 100 + p.v[0] * 10 + p.v[1];
}
static int of_results(int x) {
  return make(x).v[1] + make(x).v[same(1) !! { x = 20; }] + sum(make(x)) + (make(x) !! {}).v[0];
}

/* Left sides: which object is meant is known before the fork; what is in it, afterwards. */
static int assigned(int x) {
  int r[3] = {0};
  r[x] = 1 + same(x) !! { x = 2; };
  return r[0] + 10 * r[1] + 100 * r[2];
}
static int assigned_at_once(int x) {
  int r[3] = {0}, i = 0;
  r[i++] = x + same(x) !! { x = 5, i = 2; };
  r[i] += x * same(i) !! { r[2] = 4; };
  return r[0] + 100 * r[2] + i;
}
static int compound(int x) {
  x += 1 + same(x) !! { x = 2; };
  return x;
}
static int compound_direct(int x) {
  x += same(x) !! { x = 20; };
  return x;
}
static int through_pointers(int x) {
  int y = 100, *p = &x;
  *p = 1 + same(y) !! { p = &y; };
  *at(p) += 2 * same(x) !! { x = 1, p = 0; };
  return x + y;
}
static int members(int n) {
  struct pair p[2] = {{1, 1, 1, {1, 1}}, {2, 2, 2, {2, 2}}}, *q = p;
  (q++)->bits = 3 + same(n) !! { q++; };
  q = p;
  q->v[q->x] = 4 * same(n) !! { q = p + 1; };
  return p[0].bits + 100 * p[0].v[1] + (int)(q - p);
}
static int inside_the_left(int x) {
  int r[4] = {0};
  r[same(x) !! { x = 3; }] = x;
  r[same(x) !! { x = 1; } - 1] += 10 * same(x) !! { x = 0; };
  return r[1] + 100 * r[2] + 10000 * x;
}
static int chains(int x) {
  int a[2] = {0, 0}, b = 0;
  a[x] = b = x + same(x) !! { x = 0; };
  return a[1] + 10 * b + 100 * a[0];
}
static int vectors(int i) {
  vec v = {1, 2, 3, 4};
  v[i++] = same(i) !! { i = 7; };
  v[i - 6] += 2 + same(i) !! { v[1] = 10; };
  v[same(2) !! { i = 3; }] = i;
  return v[0] + 100 * v[1] + 10000 * v[2];
}

/* Places of other kinds. */
static int places(int n) {
  int s = 0, x = 1;
  for (int i = 0, j = x + same(n) !! { x = 3; }; i < j + same(0) !! { s++; }; i += 1 + same(0) !! { x++; })
    s += 10 * x;
  if (x * 10 + same(1) !! { x = 50; } < 60) s += 1000;
  switch (x + same(1) !! { x = 2; }) {
    case 51: s += x; break;
    default: s = -1;
  }
  do s += 10000; while (x-- + same(0) !! { x--; } > 1);
  int t[2] = {n, same(n) !! { s++; }};
  return s + t[0] + t[1];
}
static int values_of_blocks(int x) {
  int y = ({ same(x) !! { x++; }; }), q, z = ({ q = same(2) !! {}; }), w = ({ x + same(x) !! { x = 9; } });
  ({ set(1) !! { x++; }; });
  return 1000 * x + 100 * y + 10 * z + w;
}
static int from_the_block(int x) {
  int y = x + same(x) !! {
    x = 8;
    if (x) return x + same(2) !! { x = 5; } + x;
  };
  return y;
}
static int multiplied(int x) {
  int z, *p = &x;
  z = 1 + same(x) !! {} * *p;
  same(x) !! { z++; };
  *p = 1 + z;
  return 10 * z + x;
}

int main(void) {
  CHECK(2, left(1));
  CHECK(31, right(1));
  CHECK(223, middle(2));
  CHECK(2, of_globals());
  CHECK(1 + 2 + 100, of_arrays(2));
  CHECK(30 + 5 + 5, of_pointers(3));
  CHECK(1000 + 200 + 40 + 5, of_calls());
  CHECK(1 + 3 + 7 + 9 + 1 + 3, of_members(1));
  CHECK(101, arguments(1));
  CHECK(10209, arguments_all(1));
  CHECK(111, written_besides(1));
  CHECK(102, callee());
  CHECK(157, two_forks(1));
  CHECK(22, conditional(1));
  CHECK(22, conjunction(1));
  CHECK(41, disjunction(1));
  CHECK(1 + 2 + 20, commas(1));
  CHECK(1 + 1 + 20 + 1, inner_assignment(1));
  CHECK(1 + 3 + 20, of_block(1));
  CHECK(116, literals(1));
  CHECK(2 + 2 + 41 + 20, of_results(1));
  CHECK(20, assigned(1));
  CHECK(2 + 100 * (4 + 5 * 2) + 2, assigned_at_once(1));
  CHECK(4, compound(1));
  CHECK(21, compound_direct(1));
  CHECK(1 + 100 + 2 * 101, through_pointers(1));
  CHECK(4 + 400 + 1, members(1));
  CHECK(3 + 1000, inside_the_left(1));
  CHECK(2 + 20, chains(1));
  CHECK(1 + 100 * 19 + 10000 * 3, vectors(0));
  CHECK(70 + 3 + 1000 + 2 + 20000 + 1 + 2, places(1));
  CHECK(10000 + 100 + 20 + 4, values_of_blocks(1));
  CHECK(8 + 2 + 5, from_the_block(1));
  CHECK(67, multiplied(2));
  if (!failed) printf("right\n");
  return failed;
}
