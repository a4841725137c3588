/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The far half of the FFT. For each frame it transforms the odd samples, exchanges with the near side the values that
 * each needs for its butterflies of the last stage, and computes its own. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  static uint32_t odd[FFT_HALF];
  for (int frame = 0; frame < FFT_FRAMES; frame++) {
    for (uint32_t part = 0; part < 2; part++) {
      fft_gather(odd + part, link_get(l, FFT_PART), 1);
      link_got(l, FFT_PART);
    }
    fft_half(odd);
    copy_words(link_put(l, FFT_PART), odd, FFT_PART);
    link_push(l, FFT_PART);
    copy_words(link_put(l, FFT_PART), odd + FFT_PART, FFT_NEAR - FFT_PART);
    link_push(l, FFT_PART);
    uint32_t *out = link_put(l, FFT_PART);
    fft_last(out, out + FFT_FAR, link_get(l, FFT_PART), odd + FFT_NEAR, FFT_NEAR, FFT_FAR);
    link_got(l, FFT_PART);
    link_push(l, FFT_PART);
  }
  return 0;
}
