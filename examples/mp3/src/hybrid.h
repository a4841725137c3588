/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The hybrid part of the filter bank: inverse MDCT, overlap with the granule before, and frequency
 * inversion, from a spectrum's lines to subband samples. Subbands do not depend on each other, so
 * any range of them, in steps of four, may be worked on anywhere. */
#ifndef MP3_HYBRID_H
#define MP3_HYBRID_H

#include "mp3.h"

/* What one channel's subbands keep from granule to granule. */
typedef struct mp3_hybrid {
  _Alignas(16) float overlap[MP3_SLOTS][MP3_SUBBANDS];
} mp3_hybrid;

/* Transforms the subbands from `first` to before `end`, both multiples of 4. `line` are the lines
 * of subband `first` and on; slot i's samples of these subbands go to slot[i * stride] and on. */
void mp3_hybrid_run(mp3_hybrid *hybrid, const mp3_shape *shape, unsigned first, unsigned end,
                    const float *line, float *slot, unsigned stride);

/* To be called once, before anything else. */
void mp3_hybrid_prepare(void);

#endif
