/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Non-temporal stores, if the processor has them: they write to memory, and do not fetch the line first.
 * They are not ordered with other stores until past_done. */
#ifndef BENCH_PAST_H
#define BENCH_PAST_H

#include <stdint.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

typedef struct past_line {
  _Alignas(64) uint64_t word[8];
} past_line;

/* Writes the same number to each word of a line. */
static inline void past_fill(past_line *to, uint64_t with) {
#if defined(__x86_64__)
  __m128i two = _mm_set1_epi64x((long long)with);
  for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)(void *)to->word + i, two);
#else
  for (int i = 0; i < 8; i++) to->word[i] = with;
#endif
}

/* Orders them before all later stores. */
static inline void past_done(void) {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

#endif
