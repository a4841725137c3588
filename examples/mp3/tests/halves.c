/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The hybrid stage in two halves gives what it gives in one, bit by bit. */
#include "halves.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRANULES = 3000 };

int main(void) {
  static mp3_hybrid whole[2], half[2][2];
  static mp3_spectrum spectrum[2];
  static mp3_subbands expected[2], got[2];
  static mp3_half in;
  static mp3_half_subbands out;
  mp3_hybrid_prepare();
  srand(1);
  for (unsigned granule = 0; granule < GRANULES; granule++) {
    unsigned channels = 1 + granule / 100 % 2;
    for (unsigned channel = 0; channel < channels; channel++) {
      mp3_spectrum *one = &spectrum[channel];
      memset(one, 0, sizeof *one);
      one->shape.lines = (uint16_t)(rand() % (MP3_LINES + 1));
      one->shape.block_type = (uint8_t)(rand() % 4);
      one->shape.mixed = (uint8_t)(one->shape.block_type && rand() % 2);
      for (unsigned i = 0; i < one->shape.lines; i++)
        one->line[i] = (float)rand() / (float)RAND_MAX - 0.5f;
      mp3_hybrid_run(&whole[channel], &one->shape, 0, MP3_SUBBANDS, one->line,
                     expected[channel].slot[0], MP3_SUBBANDS);
    }
    for (unsigned part = 0; part < 2; part++) {
      memset(&in, 0xff, sizeof in); /* what does not travel must not matter: these are no numbers */
      mp3_half_cut(spectrum, channels, part, &in);
      mp3_half_run(half[part], &in, &out);
      mp3_half_join(&out, channels, part, got);
    }
    if (memcmp(expected, got, channels * sizeof *got) != 0) {
      printf("granule %u differs\n", granule);
      return 1;
    }
  }
  printf("%d granules\n", GRANULES);
  return 0;
}
