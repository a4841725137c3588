/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "halves.h"
#include <string.h>

void mp3_half_cut(const mp3_spectrum *spectrum, unsigned channels, unsigned half, mp3_half *out) {
  out->channels = channels;
  out->half = half;
  for (unsigned channel = 0; channel < channels; channel++) {
    const mp3_spectrum *from = &spectrum[channel];
    out->shape[channel] = from->shape;
    /* Lines that are zero need not travel: the shape tells. */
    unsigned first = half * MP3_HALF_LINES, lines = from->shape.lines;
    unsigned count = lines <= first ? 0 : lines - first;
    if (count > MP3_HALF_LINES) count = MP3_HALF_LINES;
    count = (count + 4 * MP3_SLOTS - 1) / (4 * MP3_SLOTS) * (4 * MP3_SLOTS);
    memcpy(out->line[channel], from->line + first, count * sizeof *from->line);
  }
}

void mp3_half_run(mp3_hybrid *hybrid, const mp3_half *half, mp3_half_subbands *out) {
  unsigned first = half->half * MP3_HALF;
  for (unsigned channel = 0; channel < half->channels; channel++)
    mp3_hybrid_run(&hybrid[channel], &half->shape[channel], first, first + MP3_HALF,
                   half->line[channel], out->slot[channel][0], MP3_HALF);
}

void mp3_half_join(const mp3_half_subbands *half_subbands, unsigned channels, unsigned half,
                   mp3_subbands *out) {
  for (unsigned channel = 0; channel < channels; channel++)
    for (unsigned i = 0; i < MP3_SLOTS; i++)
      memcpy(out[channel].slot[i] + half * MP3_HALF, half_subbands->slot[channel][i],
             sizeof half_subbands->slot[channel][i]);
}
