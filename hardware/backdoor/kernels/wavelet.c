/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kernels.h"

/* Transforms a line of n samples (n is even) at a distance of `step`: computes details from both neighbours,
 * then averages, and stores the averages before the details. */
static void line(int16_t *at, uint32_t n, uint32_t step) {
  int16_t average[WAVELET_SIDE / 2], detail[WAVELET_SIDE / 2];
  uint32_t half = n / 2;
  const int16_t *from = at;
  for (uint32_t i = 0; i < half; i++, from += 2 * step) {
    int32_t left = from[0], right = i + 1 < half ? from[2 * step] : left;
    average[i] = (int16_t)left;
    detail[i] = (int16_t)(from[step] - ((left + right) >> 1));
  }
  int32_t before = detail[0];
  int16_t *to = at;
  for (uint32_t i = 0; i < half; i++, to += step) {
    *to = (int16_t)(average[i] + ((before + detail[i] + 2) >> 2));
    before = detail[i];
  }
  for (uint32_t i = 0; i < half; i++, to += step) *to = detail[i];
}

void wavelet_tile(int16_t *tile) {
  for (uint32_t level = 0, n = WAVELET_SIDE; level < WAVELET_LEVELS; level++, n /= 2) {
    for (uint32_t y = 0; y < n; y++) line(tile + y * WAVELET_SIDE, n, 1);
    for (uint32_t x = 0; x < n; x++) line(tile + x, n, WAVELET_SIDE);
  }
}
