/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The computations of the benchmarks, the same code on one processor and on both. */
#ifndef LVD_BACKDOOR_KERNELS_H
#define LVD_BACKDOOR_KERNELS_H

#include <stdint.h>

/* Selection sort of two halves, which are then merged. */
enum { SORT_HALF = 512 };
void sort_words(int32_t *words, uint32_t n);
void sort_merge(int32_t *to, const int32_t *a, uint32_t na, const int32_t *b, uint32_t nb);

/* Typical integer work: records, strings, calls, branches, arrays. Returns the sum of the results of
 * rounds [from, from + n). */
enum { INTEGER_HALF = 1400 };
uint32_t integer_rounds(uint32_t from, uint32_t n);

/* Fixed-point FFT of complex samples, real and imaginary part (16 bits each) in a word, scaled by 1/2 at
 * each stage. The even and the odd samples are transformed separately; the last stage combines them. */
enum { FFT_SIZE = 512, FFT_HALF = FFT_SIZE / 2, FFT_PART = FFT_SIZE / 4, FFT_FRAMES = 16 };
/* Numbers of butterflies of the last stage that each side computes. The near side has more, since its program need not
 * be loaded. Data are sent in pieces of FFT_PART words. */
enum { FFT_FAR = FFT_HALF / 4, FFT_NEAR = FFT_HALF - FFT_FAR };
/* Copies every step-th sample, FFT_PART in total, in bit-reversed order for fft_half: the first half of its input to
 * `to`, the second half to `to` + 1. */
void fft_gather(uint32_t *to, const uint32_t *from, uint32_t step);
void fft_half(uint32_t *samples);
/* Computes n butterflies of the last stage, beginning with number `first`. */
void fft_last(uint32_t *sums, uint32_t *differences, const uint32_t *even, const uint32_t *odd,
              uint32_t first, uint32_t n);

/* Wavelet transform (5/3, by lifting, three levels) of tiles of 32 by 32 samples, in place. */
enum {
  WAVELET_SIDE = 32,
  WAVELET_LEVELS = 3,
  WAVELET_WORDS = WAVELET_SIDE * WAVELET_SIDE / 2,
  WAVELET_HALF = 16 /* tiles of each side */
};
void wavelet_tile(int16_t *tile);

#endif
