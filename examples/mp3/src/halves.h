/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The partition of the paper on streaming RPC: the hybrid stage's 32 subbands in two halves, each
 * worked on by another unit. */
#ifndef MP3_HALVES_H
#define MP3_HALVES_H

#include "hybrid.h"

enum { MP3_HALF = MP3_SUBBANDS / 2, MP3_HALF_LINES = MP3_HALF * MP3_SLOTS };

/* Half of a granule, on the way to a unit. */
typedef struct mp3_half {
  _Alignas(MP3_ELEMENT) float line[2][MP3_HALF_LINES]; /* of each channel */
  mp3_shape shape[2];
  uint32_t channels;
  uint32_t half; /* 0: subbands 0 to 15, 1: 16 to 31 */
} mp3_half;

/* ... and back. */
typedef struct mp3_half_subbands {
  _Alignas(MP3_ELEMENT) float slot[2][MP3_SLOTS][MP3_HALF];
} mp3_half_subbands;

void mp3_half_cut(const mp3_spectrum *spectrum, unsigned channels, unsigned half, mp3_half *out);

/* What a unit does. It keeps `hybrid`, one of each channel, from granule to granule. */
void mp3_half_run(mp3_hybrid *hybrid, const mp3_half *half, mp3_half_subbands *out);

void mp3_half_join(const mp3_half_subbands *half_subbands, unsigned channels, unsigned half,
                   mp3_subbands *out);

#endif
