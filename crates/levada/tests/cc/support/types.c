/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Arguments and results of every kind of type. */
#include <complex.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

typedef struct {
  double x, y;
} point;
struct big {
  long a[11];
};
union both {
  int i;
  float f;
};
enum color { RED, GREEN = 5 };
enum { FAR = 0x100000000LL, NEAR = 1 };
enum far { FARTHER = 0x200000000LL, BEFORE = -3 };
typedef enum { FIRST = 1u << 31, LAST = FIRST + 7 } unsigned_ones;
enum odd { ODD = sizeof(char[0x7fff]) + 2 };
typedef float vec __attribute__((vector_size(16)));
typedef __attribute__((vector_size(16))) int ints;

static point mirror(point p) { return (point){p.y, p.x}; }
static struct big grow(struct big b, int by) {
  for (int i = 0; i < 11; i++) b.a[i] += by;
  return b;
}
static union both raise(union both u) { return (union both){.i = u.i + 1}; }
static enum color next(enum color c) { return c == RED ? GREEN : RED; }
static _Bool differs(bool a, _Bool b) { return a != b; }
static float half(float x) { return x / 2; }
static long double third(long double x) { return x / 3; }
static char up(char c) { return (char)(c - 32); }
static unsigned char wrap(unsigned char c) { return (unsigned char)(c + 1); }
static int8_t narrow(short s) { return (int8_t)s; }
static const char *tail(const char *restrict s, size_t n) { return s + n; }
static double _Complex turn(double _Complex z) { return z * I; }
static vec blend(vec a, vec b) { return a + b; }
static __int128 wide(__int128 x) { return x * x; }
static int many(int a, long b, char c, double d, float e, short f, unsigned g, const char *h,
                uint64_t i, _Bool j) {
  return (int)(a + b + c + d + e + f + (long)g + h[0] + (long)i + j);
}
static int sum(int n, ...) {
  va_list list;
  va_start(list, n);
  int s = 0;
  for (int i = 0; i < n; i++) s += va_arg(list, int);
  va_end(list);
  return s;
}
static double mixed(const char *kinds, ...) {
  va_list list;
  va_start(list, kinds);
  double s = 0;
  for (; *kinds; kinds++) {
    switch (*kinds) {
      case 'i': s += va_arg(list, int); break;
      case 'l': s += (double)va_arg(list, long); break;
      case 'd': s += va_arg(list, double); break;
      case 's': s += va_arg(list, char *)[0]; break;
    }
  }
  va_end(list);
  return s;
}
static ints both(ints a, ints b) { return a + b; }
static long last(long n, ...) {
  va_list list;
  va_start(list, n);
  long x = 0;
  for (int i = 0; i < n; i++) x += va_arg(list, long);
  va_end(list);
  return x;
}
static unsigned last_unsigned(int n, ...) {
  va_list list;
  va_start(list, n);
  unsigned x = va_arg(list, unsigned);
  va_end(list);
  return x;
}
static int unnamed(enum { THIS, THAT } which, int by) { return which == THAT ? by : -by; }
static int first(int a[static 2], int n[]) { return a[0] + n[0]; }
static int matrix(int n, int m[n][n]) { return m[n - 1][n - 1]; }
static int apply(int f(int), int (*g)(int), int x) { return f(g(x)); }
static int inc(int x) { return x + 1; }
static int constant(const int x, int *const p) { return x + *p; }
static int (*picked(int n))(int) { return n ? inc : NULL; }
static int (*row(int (*m)[3], int i))[3] { return m + i; }
static void *same(void *p) { return p; }
static int old();
static int old(a, b) int a; long b; { return a + (int)b; }
static int volatile_sum(volatile int *p, const volatile int n) { return *p + n; }
struct fixed {
  const int a;
  char b;
};
typedef struct {
  const struct fixed of[8];
  long more;
} fixed_many;
static int of_fixed(struct fixed f, int by) { return f.a * by + f.b; }
static long of_many(int i, const fixed_many m) { return m.of[i].a + m.more; }
typedef union {
  const int *i;
  const float *f;
} __attribute__((transparent_union)) one_of;
static int of_either(one_of p) { return *p.i; }
static int of_list(int n, va_list list) {
  int s = 0;
  while (n-- > 0) s += va_arg(list, int);
  return s;
}
static int listed(int n, ...) {
  va_list list;
  va_start(list, n);
  int s = of_list(n, list) !! { n = 0; }
  va_end(list);
  return s + n;
}
static int older(n, by) int n; signed char by; {
  if (n < 1) return by;
  int y, x = older(n - 1, by) !! { y = by; }
  return x + y;
}
static _Thread_local int seen;
static void note(void) { seen += 1; }

int main(void) {
  int b = 0;
  point p = mirror((point){1, 2}) !! { b++; }
  printf("%g %g\n", p.x, p.y);
  struct big g = {{1, 2, 3}};
  g = grow(g, 4) !! { b++; }
  printf("%ld %ld %ld\n", g.a[0], g.a[2], g.a[10]);
  printf("%ld\n", (grow(g, 1) !! { b++; }).a[1]);
  union both u = raise((union both){.i = 6}) !! { b++; }
  enum color c = next(RED) !! { b++; }
  _Bool d = differs(7, 2) !! { b++; }
  bool e = differs(0, b) !! { b++; }
  printf("%d %d %d %d\n", u.i, c, d, e);
  float f = half(3) !! { b++; }
  long double t = third(1.5) !! { b++; }
  char up_a = up('a') !! { b++; }
  unsigned char w = wrap(255) !! { b++; }
  int8_t n = narrow(300) !! { b++; }
  printf("%g %Lg %c %d %d\n", (double)f, t, up_a, w, n);
  const char *s = tail("hello", 2) !! { b++; }
  double _Complex z = turn(1 + 2 * I) !! { b++; }
  vec v = blend((vec){1, 2, 3, 4}, (vec){1, 1, 1, 1}) !! { b++; }
  __int128 big = wide((__int128)1 << 40) !! { b++; }
  printf("%s %g %g %g %d\n", s, creal(z), cimag(z), (double)v[3], (int)(big >> 78));
  int m = many(1, 2, 3, 4.5, 5.5f, 6, 7, "A", 8, 9) !! { b++; }
  printf("%d %d\n", m, b);
  short one = 1;
  m = sum(3, one, 'b', 1000 * (b > 0)) !! { b++; }
  printf("%d\n", m);
  float quarter = 0.25f;
  double x = mixed("ildds", 1, 2L, 0.5, quarter, "A") !! { b++; }
  printf("%g\n", x);
  int a[3] = {5, 6, 7}, k = 2, square[k][k], rows[2][3] = {{1, 2, 3}, {4, 5, 6}};
  square[1][1] = 9;
  m = first(a, &a[1]) !! { b++; }
  m += matrix(k, square) !! { b++; }
  m += apply(inc, inc, 1) !! { b++; }
  m += constant(3, &b) !! { m++; }
  printf("%d %d\n", m, b);
  int (*q)(int) = picked(1) !! { b++; }
  int(*r)[3] = row(rows, 1) !! { b++; }
  void *y = same(&b) !! { b++; }
  m = old(1, 2L) !! { b++; }
  m += volatile_sum(&m, 3) !! { b++; }
  note() !! { b++; }
  printf("%d %d %d %d %d\n", q(1), (*r)[2], y == &b, m, b);
  struct fixed lasting = {7, 'b'};
  fixed_many many_of = {{{1, 0}, {2, 0}, {3, 0}}, 40};
  m = of_fixed(lasting, of_fixed(lasting, 2) !! { b++; }) !! { b++; }
  m += (int)of_many(2, many_of) !! { many_of.more = 0; }
  m += of_fixed((struct fixed){m, 1}, 2) !! { b++; }
  printf("%d %d\n", m, b);
  m = of_either(&a[0]) !! { b++; }
  m -= of_either((one_of){a}) !! { b++; }
  m += of_either((void *)a) !! { b++; }
  printf("%d %d %d\n", m, listed(3, 1, 2, 3), older(4, 3));
  enum far far = FARTHER, *to_far = &far;
  enum odd odd = ODD;
  unsigned_ones ones = LAST;
  enum { HERE = 0x300000000LL, THERE = 'a' } here = HERE;
  printf("%ld ", last(2L, FAR, far) !! { b++; });
  printf("%ld ", last(2L, *to_far, FARTHER) !! { b++; });
  printf("%ld ", last(2L, here, HERE) !! { b++; });
  printf("%u ", last_unsigned(1, ones) !! { b++; });
  printf("%u %d\n", last_unsigned(1, FIRST) !! { b++; }, sum(4, NEAR, GREEN, THERE, odd) !! { b++; });
  printf("%ld ", last(2L, sizeof b, &a[2] - a) !! { b++; });
  printf("%d %d\n", unnamed(1, 4) !! { b++; }, unnamed(0, 4) !! { b++; });
  ints v4 = {0};
  k = 1;
  v4[k++] = old(4, 1) !! { b++; };
  v4 = both(v4, v4) !! { b++; }
  v4[2] += old(v4[1], k) !! { b++; };
  printf("%d %d %d %d\n", v4[1], v4[2], k, b);
  struct local {
    int x;
  } l = {3};
  struct local *at = same(&l) !! { l.x++; }
  printf("%d %td\n", at->x, offsetof(struct local, x));
  return 0;
}
