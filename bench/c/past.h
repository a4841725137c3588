/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stores past the caches, where the processor has them: a line is not fetched before it is written,
 * and goes to memory. They obey no order among stores until past_done. */
#ifndef BENCH_PAST_H
#define BENCH_PAST_H

#include <stdint.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

typedef struct past_line {
  _Alignas(64) uint64_t word[8];
} past_line;

/* The same number in each word of a line. */
static inline void past_fill(past_line *to, uint64_t with) {
#if defined(__x86_64__)
  __m128i two = _mm_set1_epi64x((long long)with);
  for (int i = 0; i < 4; i++) _mm_stream_si128((__m128i *)(void *)to->word + i, two);
#else
  for (int i = 0; i < 8; i++) to->word[i] = with;
#endif
}

/* All of them come before every store that follows. */
static inline void past_done(void) {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

#endif
