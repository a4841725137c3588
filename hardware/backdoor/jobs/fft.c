/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Of each frame: transforms the odd samples, gives the first half of what comes out for the second
 * half of what the near side makes of the even ones, and makes of both the second quarter of the
 * spectrum and the fourth. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_far_board *board, link *l) {
  (void)board;
  static uint32_t odd[FFT_HALF], fourth[FFT_PART];
  for (int frame = 0; frame < FFT_FRAMES; frame++) {
    fft_gather(odd, link_get(l, FFT_HALF), 1);
    link_got(l, FFT_HALF);
    fft_half(odd);
    copy_words(link_put(l, FFT_PART), odd, FFT_PART);
    link_push(l, FFT_PART);
    const uint32_t *even = link_get(l, FFT_PART);
    fft_last(link_put(l, FFT_PART), fourth, even, odd + FFT_PART, FFT_PART);
    link_got(l, FFT_PART);
    link_push(l, FFT_PART);
    copy_words(link_put(l, FFT_PART), fourth, FFT_PART);
    link_push(l, FFT_PART);
  }
  return 0;
}
