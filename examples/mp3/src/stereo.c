/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Mid-side: left and right are sum and difference. Intensity: above the right channel's last line
 * that is not zero, both channels have the left one's lines, and a position for each band says how
 * loud each side is; the right channel's scalefactors are these positions. */
#include "stereo.h"
#include "vector.h"
#include <math.h>
#include <stdbool.h>

enum { POSITIONS = 32 };

static float mpeg1_side[7][2];            /* position; left, right */
static float mpeg2_side[2][POSITIONS][2]; /* the step between positions; position; left, right */

void mp3_stereo_prepare(void) {
  for (unsigned position = 0; position < 7; position++) {
    double angle = position * M_PI / 12;
    mpeg1_side[position][0] = (float)(sin(angle) / (sin(angle) + cos(angle)));
    mpeg1_side[position][1] = (float)(cos(angle) / (sin(angle) + cos(angle)));
  }
  for (unsigned step = 0; step < 2; step++)
    for (unsigned position = 0; position < POSITIONS; position++) {
      double softer = exp2(-(double)((position + 1) / 2) * (step ? 0.5 : 0.25));
      mpeg2_side[step][position][0] = position & 1 ? (float)softer : 1;
      mpeg2_side[step][position][1] = position & 1 ? 1 : (float)softer;
    }
}

/* Lines from `from` to `to` from sum and difference. Both are multiples of two only, so what is
 * left over goes one by one. */
static void mid_side(float *left, float *right, unsigned from, unsigned to) {
  const float half = 0.70710678f;
  unsigned i = from;
  for (; i + 4 <= to; i += 4) {
    mp3_v4 mid = mp3_load(left + i), side = mp3_load(right + i);
    mp3_store(left + i, (mid + side) * half);
    mp3_store(right + i, (mid - side) * half);
  }
  for (; i < to; i++) {
    float mid = left[i], side = right[i];
    left[i] = (mid + side) * half;
    right[i] = (mid - side) * half;
  }
}

static bool silent(const float *line, unsigned from, unsigned to) {
  for (unsigned i = from; i < to; i++)
    if (line[i] != 0) return false;
  return true;
}

static void intensity(const mp3_header *header, const mp3_part *part, const mp3_bands *bands,
                      const mp3_scalefactors *factors, float *left, float *right) {
  /* Is there a line that is not zero in a higher band of this window? */
  bool heard[3] = {false, false, false};
  /* The highest band has no scalefactor and uses that below it. */
  unsigned last = part->block_type == MP3_SHORT ? bands->count - 3u : bands->count - 1u;
  for (unsigned band = bands->count; band-- > 0;) {
    unsigned from = bands->start[band], to = bands->start[band + 1], window = bands->window[band];
    if (band + 1 == bands->long_count && band + 1 < bands->count)
      heard[0] = heard[0] || heard[1] || heard[2]; /* on to a mixed block's long lines */
    if (!heard[window] && !silent(right, from, to)) heard[window] = true;
    unsigned source = band < last ? band : band - (bands->count - last);
    unsigned position = factors->of[source];
    if (heard[window] || position >= factors->illegal[source]) {
      if (header->extension & MP3_MID_SIDE) mid_side(left, right, from, to);
      continue;
    }
    const float *side = header->version == 0
                            ? mpeg1_side[position]
                            : mpeg2_side[part->scalefactor_compress & 1][position % POSITIONS];
    for (unsigned i = from; i < to; i++) {
      right[i] = left[i] * side[1];
      left[i] *= side[0];
    }
  }
}

void mp3_stereo(const mp3_header *header, const mp3_part *part, const mp3_bands *bands,
                const mp3_scalefactors *factors, float left[MP3_LINES], unsigned *left_lines,
                float right[MP3_LINES], unsigned *right_lines) {
  unsigned lines = *left_lines > *right_lines ? *left_lines : *right_lines;
  if (header->extension & MP3_INTENSITY)
    intensity(header, part, bands, factors, left, right);
  else if (header->extension & MP3_MID_SIDE)
    mid_side(left, right, 0, lines);
  else
    return;
  *left_lines = *right_lines = lines;
}
