/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Four floats at once, by the vector extension that GCC and Clang have on all processors. */
#ifndef MP3_VECTOR_H
#define MP3_VECTOR_H

#include <stdint.h>
#include <string.h>

typedef float mp3_v4 __attribute__((vector_size(16)));
typedef int32_t mp3_v4i __attribute__((vector_size(16)));

/* Before a loop of known length: let it have no loop, so that its vectors stay in registers. */
#if defined(__clang__)
#define MP3_UNROLL _Pragma("unroll")
#else
#define MP3_UNROLL _Pragma("GCC unroll 32")
#endif

static inline mp3_v4 mp3_load(const float *from) {
  mp3_v4 v;
  memcpy(&v, from, sizeof v);
  return v;
}

static inline void mp3_store(float *to, mp3_v4 v) { memcpy(to, &v, sizeof v); }

#if defined(__clang__)
#define MP3_SHUFFLE(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define MP3_SHUFFLE(a, b, i, j, k, l) __builtin_shuffle(a, b, (mp3_v4i){i, j, k, l})
#endif

static inline mp3_v4 mp3_reverse(mp3_v4 v) { return MP3_SHUFFLE(v, v, 3, 2, 1, 0); }

static inline void mp3_transpose(mp3_v4 *a, mp3_v4 *b, mp3_v4 *c, mp3_v4 *d) {
  mp3_v4 ab_low = MP3_SHUFFLE(*a, *b, 0, 4, 1, 5), ab_high = MP3_SHUFFLE(*a, *b, 2, 6, 3, 7);
  mp3_v4 cd_low = MP3_SHUFFLE(*c, *d, 0, 4, 1, 5), cd_high = MP3_SHUFFLE(*c, *d, 2, 6, 3, 7);
  *a = MP3_SHUFFLE(ab_low, cd_low, 0, 1, 4, 5);
  *b = MP3_SHUFFLE(ab_low, cd_low, 2, 3, 6, 7);
  *c = MP3_SHUFFLE(ab_high, cd_high, 0, 1, 4, 5);
  *d = MP3_SHUFFLE(ab_high, cd_high, 2, 3, 6, 7);
}

#endif
