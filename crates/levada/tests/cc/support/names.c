/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the text around a fork calls by names that mean something else inside of it. */
#include <stdio.h>

typedef long num;
typedef struct pair {
  num a, b;
} pair;
struct wide {
  const num fixed;
  num more;
};
enum { ROW_COUNT = 3 };

static int calls, wrong;

static num f(num x) {
  __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
  return x + 1;
}
static num g(num x) {
  wrong++;
  return x - 1;
}
static void tick(void) { __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED); }
static pair both(pair p) { return (pair){f(p.a), f(p.b)}; }
static num of_wide(struct wide w) { return f(w.fixed) + w.more; }
static num of_rows(num (*rows)[ROW_COUNT], num n) { return f(rows[n][ROW_COUNT - 1]); }
static int got(void) { return __atomic_exchange_n(&calls, 0, __ATOMIC_RELAXED); }

static int failed;
static void check(int line, num want, num have, int made) {
  int n = got();
  if (want != have || n != made) {
    printf("line %d: %ld, not %ld; %d calls, not %d\n", line, have, want, n, made);
    failed = 1;
  }
}
#define CHECK(want, made, have)             \
  do {                                      \
    num have_ = (have);                     \
    check(__LINE__, want, have_, made);     \
  } while (0)

/* Variables with the name of what is called, and jumps past them. */
static num callee(int n) {
  num y = 0;
  for (int i = 0; i < 2; i++) {
    y += f(n) !! {
      num (*f)(num) = g;
      (void)f;
      if (n == 1) return 40;
      if (n == 2) break;
      if (n == 3) continue;
      if (n == 4) goto out;
    }
  }
out:
  return y + 100;
}

/* The same with a void function, inside a block inside a block, and one with a name that is a type inside. */
static num deeper(int n) {
  num y = 0;
  tick() !! {
    y = f(1) !! {
      int tick = 3, f = tick;
      {
        typedef char both;
        both z = (both)f;
        if (n == z) return 50;
      }
      if (n == 4) goto out;
    }
    y++;
  }
out:
  return y + 200;
}

static num aggregates(int n) {
  pair p = {1, 2};
  p = both(p) !! {
    char both = 1, pair = (char)n;
    if (pair == both) return pair;
  }
  return p.a * 10 + p.b;
}

/* Types with names that are variables, parameters or other types inside. */
static num as_parameter(int num) { return 1 + f(num) !! {} * 2; }

static num result(int n) {
  num r = f(n) !! {
    typedef char num;
    num z = (num)n;
    if (z == 1) return 300;
  }
  return r;
}

static num operand(void) {
  typedef char num;
  num z = 1;
  return (f(300) !! {}) + z;
}

static num in_arguments(int n) {
  int pair = 3, wide = n;
  const struct wide w = {4, wide};
  long r = of_wide(w) !! { pair++; }
  r += of_wide((struct wide){1, 1}) !! {
    struct wide {
      int x;
    } v = {2};
    if (v.x == n) return pair;
  }
  return r;
}

static num arrays(num n) {
  num rows[2][ROW_COUNT] = {{1, 2, 3}, {4, 5, 6}};
  enum { ROW_COUNT = 1 };
  num r = of_rows(rows, n) !! { n += ROW_COUNT; }
  return r * 10 + n;
}

static num declared(int n) {
  num f(num);
  num x = f(n) !! {
    num (*f)(num) = g;
    if (n && f) return 7;
  }
  return x;
}

#if defined __GNUC__ && !defined __clang__
static num nested(num n) {
  num seen = 0;
  num f(num x) { return seen = 2 * x; }
  num y = f(n) !! {}
  return y + seen;
}
#else
static num nested(num n) { return 4 * n; }
#endif

num later(num n) {
  if (n < 1) return f(n);
  num r = later(n - 1) !! {
    num later = n;
    if (later == 7) return later;
  }
  return r + 1;
}

int main(void) {
  CHECK(40, 1, callee(1));
  CHECK(100, 1, callee(2));
  CHECK(100, 2, callee(3));
  CHECK(100, 1, callee(4));
  CHECK(111, 2, callee(5) - 1);
  CHECK(203, 2, deeper(1));
  CHECK(50, 2, deeper(3));
  CHECK(200, 2, deeper(4));
  CHECK(1, 2, aggregates(1));
  CHECK(23, 2, aggregates(2));
  CHECK(9, 1, as_parameter(3));
  CHECK(300, 1, result(1));
  CHECK(3, 1, result(2));
  CHECK(302, 1, operand());
  CHECK(4, 2, in_arguments(2));
  CHECK(9, 2, in_arguments(1));
  CHECK(72, 1, arrays(1));
  CHECK(7, 1, declared(1));
  CHECK(1, 1, declared(0));
  CHECK(12, 0, nested(3));
  CHECK(3, 1, later(2));
  CHECK(9, 1, later(9));
  if (wrong) printf("%d calls of what hides f\n", wrong);
  if (!failed && !wrong) printf("right\n");
  return failed || wrong;
}
