/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "scalefactors.h"

/* Reads `count` scalefactors of `bits_each` bits from band `band` on. */
static unsigned read_some(mp3_bits *bits, mp3_scalefactors *factors, unsigned band, unsigned count,
                          unsigned bits_each, unsigned illegal) {
  for (; count > 0; count--, band++) {
    factors->of[band] = (uint8_t)mp3_bits_get(bits, bits_each);
    factors->illegal[band] = (uint8_t)illegal;
  }
  return band;
}

static void read_mpeg1(mp3_bits *bits, const mp3_part *part, const mp3_scalefactors *before,
                       mp3_scalefactors *factors) {
  static const uint8_t low[16] = {0, 0, 0, 0, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4};
  static const uint8_t high[16] = {0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 2, 3};
  static const uint8_t group[5] = {0, 6, 11, 16, 21};
  const unsigned illegal = 7;
  unsigned low_bits = low[part->scalefactor_compress], high_bits = high[part->scalefactor_compress];
  if (part->block_type == MP3_SHORT) {
    unsigned band = read_some(bits, factors, 0, part->mixed ? 17 : 18, low_bits, illegal);
    read_some(bits, factors, band, 18, high_bits, illegal);
    return;
  }
  for (unsigned i = 0; i < 4; i++) {
    unsigned count = group[i + 1] - group[i];
    if (part->shared & (8 >> i)) {
      memcpy(factors->of + group[i], before->of + group[i], count);
      memset(factors->illegal + group[i], (int)illegal, count);
    } else {
      read_some(bits, factors, group[i], count, i < 2 ? low_bits : high_bits, illegal);
    }
  }
}

static void read_mpeg2(mp3_bits *bits, const mp3_part *part, unsigned intensity,
                       mp3_scalefactors *factors) {
  /* How many scalefactors each of four lengths has: by the way of coding; long, short, mixed. */
  static const uint8_t counts[6][3][4] = {{{6, 5, 5, 5}, {9, 9, 9, 9}, {6, 9, 9, 9}},
                                          {{6, 5, 7, 3}, {9, 9, 12, 6}, {6, 9, 12, 6}},
                                          {{11, 10, 0, 0}, {18, 18, 0, 0}, {15, 18, 0, 0}},
                                          {{7, 7, 7, 0}, {12, 12, 12, 0}, {6, 15, 12, 0}},
                                          {{6, 6, 6, 3}, {12, 9, 9, 6}, {6, 12, 9, 6}},
                                          {{8, 8, 5, 0}, {15, 12, 9, 0}, {6, 18, 9, 0}}};
  unsigned value = part->scalefactor_compress, way;
  uint8_t length[4] = {0, 0, 0, 0};
  if (intensity) {
    value >>= 1;
    if (value < 180) {
      way = 3;
      length[0] = (uint8_t)(value / 36);
      length[1] = (uint8_t)(value % 36 / 6);
      length[2] = (uint8_t)(value % 6);
    } else if (value < 244) {
      way = 4;
      value -= 180;
      length[0] = (uint8_t)(value >> 4);
      length[1] = value >> 2 & 3;
      length[2] = value & 3;
    } else {
      way = 5;
      value -= 244;
      length[0] = (uint8_t)(value / 3);
      length[1] = (uint8_t)(value % 3);
    }
  } else if (value < 400) {
    way = 0;
    length[0] = (uint8_t)((value >> 4) / 5);
    length[1] = (uint8_t)((value >> 4) % 5);
    length[2] = value >> 2 & 3;
    length[3] = value & 3;
  } else if (value < 500) {
    way = 1;
    value -= 400;
    length[0] = (uint8_t)((value >> 2) / 5);
    length[1] = (uint8_t)((value >> 2) % 5);
    length[2] = value & 3;
  } else {
    way = 2;
    value -= 500;
    length[0] = (uint8_t)(value / 3);
    length[1] = (uint8_t)(value % 3);
    factors->preflag = 1;
  }
  unsigned shape = part->block_type != MP3_SHORT ? 0 : part->mixed ? 2 : 1, band = 0;
  for (unsigned i = 0; i < 4; i++)
    band = read_some(bits, factors, band, counts[way][shape][i], length[i], (1u << length[i]) - 1);
}

void mp3_scalefactors_read(mp3_bits *bits, const mp3_header *header, const mp3_part *part,
                           unsigned intensity, const mp3_scalefactors *before,
                           mp3_scalefactors *factors) {
  memset(factors, 0, sizeof *factors);
  factors->preflag = part->preflag;
  if (header->version == 0)
    read_mpeg1(bits, part, before, factors);
  else
    read_mpeg2(bits, part, intensity, factors);
}
