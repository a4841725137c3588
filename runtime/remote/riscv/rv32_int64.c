/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Compiler support for 64-bit integers on riscv32, for which the compiler's own library is not
 * available: division, and shifts and bit counts that are not inlined. */
#include <stdint.h>

#if __riscv_xlen == 32

typedef union both {
  uint64_t whole;
  struct {
    uint32_t low, high;
  } half;
} both;

uint64_t __ashldi3(uint64_t a, int by);
uint64_t __lshrdi3(uint64_t a, int by);
int64_t __ashrdi3(int64_t a, int by);
int __clzsi2(uint32_t a);
int __clzdi2(uint64_t a);
int __ctzsi2(uint32_t a);
int __ctzdi2(uint64_t a);
uint64_t __udivdi3(uint64_t a, uint64_t b);
uint64_t __umoddi3(uint64_t a, uint64_t b);
int64_t __divdi3(int64_t a, int64_t b);
int64_t __moddi3(int64_t a, int64_t b);

uint64_t __ashldi3(uint64_t a, int by) {
  both x = {a}, y = {0};
  if (by == 0) return a;
  if (by >= 32) {
    y.half.high = x.half.low << (by - 32);
  } else {
    y.half.high = x.half.high << by | x.half.low >> (32 - by);
    y.half.low = x.half.low << by;
  }
  return y.whole;
}

uint64_t __lshrdi3(uint64_t a, int by) {
  both x = {a}, y = {0};
  if (by == 0) return a;
  if (by >= 32) {
    y.half.low = x.half.high >> (by - 32);
  } else {
    y.half.low = x.half.low >> by | x.half.high << (32 - by);
    y.half.high = x.half.high >> by;
  }
  return y.whole;
}

int64_t __ashrdi3(int64_t a, int by) {
  uint64_t x = (uint64_t)a;
  return (int64_t)(a < 0 ? ~__lshrdi3(~x, by) : __lshrdi3(x, by));
}

int __clzsi2(uint32_t a) {
  int n = 0;
  for (int by = 16; by; by /= 2)
    if (!(a >> (32 - by))) {
      n += by;
      a <<= by;
    }
  return n;
}

int __clzdi2(uint64_t a) {
  both x = {a};
  return x.half.high ? __clzsi2(x.half.high) : 32 + __clzsi2(x.half.low);
}

int __ctzsi2(uint32_t a) { return 31 - __clzsi2(a & -a); }

int __ctzdi2(uint64_t a) {
  both x = {a};
  return x.half.low ? __ctzsi2(x.half.low) : 32 + __ctzsi2(x.half.high);
}

/* Shift and subtract, from the highest bit of the quotient. Division by zero yields all ones, like
 * the processor. */
static uint64_t divide(uint64_t a, uint64_t b, uint64_t *rest) {
  uint64_t quotient = 0;
  if (b == 0) {
    *rest = a;
    return UINT64_MAX;
  }
  if (((a | b) >> 32) == 0) {
    *rest = (uint32_t)a % (uint32_t)b;
    return (uint32_t)a / (uint32_t)b;
  }
  for (int by = a < b ? -1 : __clzdi2(b) - __clzdi2(a); by >= 0; by--) {
    uint64_t part = __ashldi3(b, by);
    if (a < part) continue;
    a -= part;
    quotient |= __ashldi3(1, by);
  }
  *rest = a;
  return quotient;
}

uint64_t __udivdi3(uint64_t a, uint64_t b) {
  uint64_t rest;
  return divide(a, b, &rest);
}

uint64_t __umoddi3(uint64_t a, uint64_t b) {
  uint64_t rest;
  divide(a, b, &rest);
  return rest;
}

static uint64_t size_of(int64_t a) { return a < 0 ? -(uint64_t)a : (uint64_t)a; }

int64_t __divdi3(int64_t a, int64_t b) {
  uint64_t rest, quotient = divide(size_of(a), size_of(b), &rest);
  return (int64_t)((a < 0) != (b < 0) ? -quotient : quotient);
}

int64_t __moddi3(int64_t a, int64_t b) {
  uint64_t rest;
  divide(size_of(a), size_of(b), &rest);
  return (int64_t)(a < 0 ? -rest : rest);
}

#endif
