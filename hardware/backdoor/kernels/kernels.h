/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The benchmarks' work, the same code for one processor and for both. */
#ifndef LVD_BACKDOOR_KERNELS_H
#define LVD_BACKDOOR_KERNELS_H

#include <stdint.h>

/* Selection sort of two halves, which are then merged. */
enum { SORT_HALF = 512 };
void sort_words(int32_t *words, uint32_t n);
void sort_merge(int32_t *to, const int32_t *a, uint32_t na, const int32_t *b, uint32_t nb);

/* Rounds of what integer programs do: records, strings, calls, branches, arrays. The sum of what
 * rounds [from, from + n) make. */
enum { INTEGER_HALF = 1400 };
uint32_t integer_rounds(uint32_t from, uint32_t n);

/* Fixed-point FFT of complex samples, real and imaginary part (16 bits each) in a word; halved at
 * each stage. The even and the odd samples are transformed apart, then comes the last stage. */
enum { FFT_SIZE = 512, FFT_HALF = FFT_SIZE / 2, FFT_PART = FFT_SIZE / 4, FFT_FRAMES = 16 };
/* Of the last stage the far side does so many butterflies, and the near side, which need not be loaded, the
 * others. What is sent goes in pieces of FFT_PART words. */
enum { FFT_FAR = FFT_HALF / 4, FFT_NEAR = FFT_HALF - FFT_FAR };
/* FFT_PART samples, each step-th, in the order that fft_half wants: the first half of a transform's to `to`, the
 * second to one word behind. */
void fft_gather(uint32_t *to, const uint32_t *from, uint32_t step);
void fft_half(uint32_t *samples);
/* n butterflies from number `first` on. */
void fft_last(uint32_t *sums, uint32_t *differences, const uint32_t *even, const uint32_t *odd,
              uint32_t first, uint32_t n);

/* Wavelet transform (5/3, by lifting, three levels) of tiles of 32 by 32 samples, in place. */
enum {
  WAVELET_SIDE = 32,
  WAVELET_LEVELS = 3,
  WAVELET_WORDS = WAVELET_SIDE * WAVELET_SIDE / 2,
  WAVELET_HALF = 16 /* tiles: each half */
};
void wavelet_tile(int16_t *tile);

#endif
