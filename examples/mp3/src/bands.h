/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Scalefactor bands: which lines share a scalefactor, for each sampling rate and block shape, in
 * the order in which both scalefactors and lines are coded. A short block counts each window's
 * share of a band as a band, so band and scalefactor have the same index in all shapes. */
#ifndef MP3_BANDS_H
#define MP3_BANDS_H

#include "mp3.h"

typedef struct mp3_bands {
  uint16_t start[MP3_BANDS + 1]; /* the last one is MP3_LINES */
  uint8_t window[MP3_BANDS];     /* 0 to 2; bands of a long block have window 0 */
  uint8_t count;
  uint8_t long_count; /* how many of the bands, from the first, are of a long block */
} mp3_bands;

const mp3_bands *mp3_bands_of(unsigned rate_row, unsigned block_type, unsigned mixed);

/* The first line of long band `band`. */
unsigned mp3_bands_long(unsigned rate_row, unsigned band);

/* To be called once, before anything else. */
void mp3_bands_prepare(void);

#endif
