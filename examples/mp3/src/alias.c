/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "alias.h"
#include "vector.h"

/* From the standard's c: cs = 1 / √(1 + c²), ca = c / √(1 + c²). */
static const float cs[8] = {0.857492926f, 0.881741997f, 0.949628649f, 0.983314592f,
                            0.995517816f, 0.999160558f, 0.999899195f, 0.999993155f};
static const float ca[8] = {-0.514495755f, -0.471731969f, -0.313377454f,  -0.181913200f,
                            -0.094574193f, -0.040965583f, -0.0141985686f, -0.00369997467f};

void mp3_alias(mp3_spectrum *spectrum) {
  mp3_shape *shape = &spectrum->shape;
  unsigned edges = MP3_SUBBANDS - 1;
  if (shape->block_type == MP3_SHORT) edges = shape->mixed ? 1 : 0;
  /* Behind the last line that is not zero, only the edge right above it sees anything. */
  unsigned used = (shape->lines + MP3_SLOTS - 1u) / MP3_SLOTS;
  if (edges > used) edges = used;
  for (unsigned edge = 1; edge <= edges; edge++) {
    float *low = spectrum->line + MP3_SLOTS * edge, *high = low;
    for (unsigned i = 0; i < 8; i += 4) {
      mp3_v4 below = mp3_reverse(mp3_load(low - i - 4)), above = mp3_load(high + i);
      mp3_v4 s = mp3_load(cs + i), a = mp3_load(ca + i);
      mp3_store(low - i - 4, mp3_reverse(below * s - above * a));
      mp3_store(high + i, above * s + below * a);
    }
  }
  if (edges && shape->lines < MP3_SLOTS * edges + 8)
    shape->lines = (uint16_t)(MP3_SLOTS * edges + 8);
}
