/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The shared memory of c/bare.c and remote/bare.c, the minimum for a measurement, without any part of Levada. */
#ifndef BENCH_BARE_H
#define BENCH_BARE_H

#include <stdint.h>

enum { BARE_LOOKS = 1, BARE_SLEEPS, BARE_LOADS };
#define BARE_READY 0xffffffffu /* written when the machine is ready */
enum {
  BARE_WORDS = 1 << 20,
  BARE_IMAGE = 2 << 20,
  BARE_MEMORY = 16 << 20
}; /* addresses in the machine's memory */

typedef struct bare {
  _Alignas(64) volatile uint32_t there; /* written by the host */
  uint32_t mode, length, sum;
  _Alignas(64) volatile uint32_t back; /* written by the machine: the same number */
  uint32_t result;
} bare;

static inline uint32_t bare_sum(const unsigned char *at, uint32_t length) {
  uint32_t sum = 0;
  for (uint32_t i = 0; i < length; i++) sum = sum * 31 + at[i];
  return sum;
}

#endif
