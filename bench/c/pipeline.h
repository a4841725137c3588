/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The functions of the five trivial stages, to check results. C17 and C++17. */
#ifndef BENCH_PIPELINE_H
#define BENCH_PIPELINE_H

#include <stdint.h>

static inline uint32_t stage_first(uint32_t x) { return x + 1; }
static inline uint32_t stage_second(uint32_t x) { return x ^ 0x55; }
static inline uint32_t stage_third(uint32_t x) { return x + 3; }

/* The sum over the elements 1 ... count. */
static inline uint32_t pipeline_sum(uint64_t count) {
  uint32_t sum = 0;
  for (uint64_t i = 1; i <= count; i++) sum += stage_third(stage_second(stage_first((uint32_t)i)));
  return sum;
}

#endif
