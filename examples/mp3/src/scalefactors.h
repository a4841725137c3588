/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalefactors: one for each band, except the highest, which has none. */
#ifndef MP3_SCALEFACTORS_H
#define MP3_SCALEFACTORS_H

#include "bits.h"
#include "mp3.h"

typedef struct mp3_scalefactors {
  uint8_t of[MP3_BANDS];
  uint8_t illegal[MP3_BANDS]; /* from this value on it is no intensity position */
  uint8_t preflag;
} mp3_scalefactors;

/* Reads those of a part. `before` are those of the granule before, from which MPEG-1 may share;
 * `intensity` says that this is the right channel of intensity stereo, which MPEG-2 codes in
 * another way. */
void mp3_scalefactors_read(mp3_bits *bits, const mp3_header *header, const mp3_part *part,
                           unsigned intensity, const mp3_scalefactors *before,
                           mp3_scalefactors *factors);

#endif
