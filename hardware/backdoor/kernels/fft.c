/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kernels.h"

/* sine[k] = sin(2π k / FFT_SIZE) for the first quarter, times 32767; made when this is built. */
#include "sine.h"

static inline int32_t real(uint32_t w) { return (int16_t)w; }
static inline int32_t imaginary(uint32_t w) { return (int32_t)w >> 16; }
static inline uint32_t both(int32_t re, int32_t im) { return (uint32_t)im << 16 | (uint16_t)re; }

/* e^(-2πi k / FFT_SIZE), k in the first half. */
static inline int32_t cosine_of(uint32_t k) {
  return k <= FFT_PART ? sine[FFT_PART - k] : -sine[k - FFT_PART];
}
static inline int32_t sine_of(uint32_t k) {
  return k <= FFT_PART ? -sine[k] : -sine[2 * FFT_PART - k];
}

static inline void butterfly(uint32_t *sum, uint32_t *difference, uint32_t a, uint32_t b,
                             int32_t cosine, int32_t s) {
  int32_t re = (real(b) * cosine - imaginary(b) * s) >> 15;
  int32_t im = (real(b) * s + imaginary(b) * cosine) >> 15;
  *sum = both((real(a) + re) >> 1, (imaginary(a) + im) >> 1);
  *difference = both((real(a) - re) >> 1, (imaginary(a) - im) >> 1);
}

void fft_gather(uint32_t *to, const uint32_t *from, uint32_t step) {
  uint32_t reversed = 0;
  for (uint32_t i = 0; i < FFT_PART; i++, from += step) {
    to[reversed] = *from;
    uint32_t bit = FFT_HALF / 2; /* adds one from the other end */
    while (reversed & bit) reversed ^= bit, bit >>= 1;
    reversed |= bit;
  }
}

void fft_half(uint32_t *samples) {
  for (uint32_t width = 1; width < FFT_HALF; width *= 2) {
    uint32_t stride = FFT_HALF / width;
    for (uint32_t j = 0; j < width; j++) {
      int32_t cosine = cosine_of(j * stride), s = sine_of(j * stride);
      for (uint32_t at = j; at < FFT_HALF; at += 2 * width)
        butterfly(&samples[at], &samples[at + width], samples[at], samples[at + width], cosine, s);
    }
  }
}

void fft_last(uint32_t *sums, uint32_t *differences, const uint32_t *even, const uint32_t *odd,
              uint32_t first, uint32_t n) {
  for (uint32_t j = 0; j < n; j++)
    butterfly(&sums[j], &differences[j], even[j], odd[j], cosine_of(first + j), sine_of(first + j));
}
