/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The far half of the wavelet benchmark: transforms tiles, in place in the ring that carries them back. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  for (int tile = 0; tile < WAVELET_HALF; tile++) {
    const uint32_t *from = link_get(l, WAVELET_WORDS);
    uint32_t *to = link_put(l, WAVELET_WORDS);
    copy_words(to, from, WAVELET_WORDS);
    link_got(l, WAVELET_WORDS);
    wavelet_tile((int16_t *)(void *)to);
    link_push(l, WAVELET_WORDS);
  }
  return 0;
}
