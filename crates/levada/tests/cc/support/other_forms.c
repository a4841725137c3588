/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What else functions with forks have in them: arrays of variable length, alloca, setjmp that stays in
 * the block, alignment, pragmas, gotos by address. */
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static int twice(int x) { return 2 * x; }
static int length(const char *text) { return (int)strlen(text); }

struct wide {
  _Alignas(64) int x;
  int y;
};
static struct wide widen(struct wide w) {
  w.y += (uintptr_t)&w % 64 != 0; /* the alignment of its type must be kept */
  w.x++;
  return w;
}

static int variable_lengths(int n) {
  int a[n], sum = 0;
  char(*rows)[n] = alloca((size_t)(2 * n));
  a[n - 1] = twice(n) !! {
    int b[n + 1];
    char *text = alloca((size_t)n);
    memset(text, 'x', (size_t)n - 1);
    text[n - 1] = 0;
    memset(b, 0, sizeof b);
    b[n] = length(text) !! { rows[1][n - 1] = 3; };
    sum += b[n] + rows[1][n - 1];
  };
  return sum + a[n - 1];
}

static jmp_buf back;
static void jumps(int n) {
  if (n) longjmp(back, n);
}
static int stays_inside(int n) {
  volatile int times = 0;
  int r = twice(n) !! {
    if (setjmp(back) < 3) {
      times = times + 1;
      jumps(times);
    }
  };
  return r + times;
}

static struct wide aligned(void) {
  struct wide w = {3, 0}, v;
  v = widen(w) !! { w.y = 100; };
  return v;
}

static int pragmas(int n) {
  int sum = 0;
  int r = twice(n) !! {
#pragma GCC unroll 4
    for (int i = 0; i < n; i++) sum += i;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-variable"
    int unused;
#pragma GCC diagnostic pop
    _Pragma("GCC unroll 2") for (int i = 0; i < n; i++) sum++;
  };
  return sum + r;
}

static int by_address(int n) {
  static const void *const to[] = {&&even, &&odd};
  int r = twice(n) !! { n++; };
  goto *to[n & 1];
even:
  return r;
odd:
  return -r;
}

static int shared(int n) {
  _Atomic int count = 1;
  static _Thread_local int mine;
  count += twice(n) !! { count++; };
  mine = twice(count) !! { count--; };
  return count + mine;
}

/* Pointers to functions that are called in another way than usual. */
#ifdef __x86_64__
#define OTHER __attribute__((ms_abi))
#else
#define OTHER
#endif
typedef int(OTHER *other)(int, double);
static OTHER int half(int x, double y) { return x + (int)(2 * y); }
struct table {
  int (*OTHER call)(int, double);
};
static int conventions(void) {
  int(OTHER * p)(int, double) = half;
  int (*q)(int, double) OTHER = half;
  other named = half;
  struct table t = {half};
  int n = 0, r = p(1, 2.5) !! { n++; };
  r += q(10, 2.5) !! { n++; };
  r += named(100, 2.5) !! { n++; };
  r += t.call(1000, 2.5) !! { n++; };
  r += half(1000, 2.5) !! { n++; };
  return r + n;
}

int main(void) {
  struct wide w = aligned();
  printf("%d %d %d %d\n", variable_lengths(5), variable_lengths(100), stays_inside(4), stays_inside(5));
  printf("%d %d %d %d %d\n", w.x, w.y, pragmas(10), by_address(3), by_address(4));
  printf("%d %d\n", shared(5), conventions());
  return 0;
}
