/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "entropy.h"
#include "alias.h"
#include "bands.h"
#include "huffman.h"
#include "scalefactors.h"
#include "stereo.h"
#include "vector.h"
#include <math.h>

/* Gains count in quarters of a power of two, from the smallest that can be said to the largest. */
enum { GAIN_MIN = -210 - 8 * 7 - 4 * (31 + 3), GAIN_MAX = 255 - 210 };

static float gains[GAIN_MAX - GAIN_MIN + 1];

void mp3_entropy_prepare(void) {
  for (int gain = GAIN_MIN; gain <= GAIN_MAX; gain++)
    gains[gain - GAIN_MIN] = (float)exp2(gain / 4.0);
  mp3_bands_prepare();
  mp3_huffman_prepare();
  mp3_stereo_prepare();
}

static void requantise(const mp3_part *part, const mp3_bands *bands,
                       const mp3_scalefactors *factors, float *line, unsigned lines) {
  static const uint8_t pre[22] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 3, 2, 0};
  unsigned shift = part->coarse ? 2 : 1;
  for (unsigned band = 0; band < bands->count && bands->start[band] < lines; band++) {
    int gain = part->global_gain - 210, factor = factors->of[band];
    if (band < bands->long_count)
      factor += factors->preflag ? pre[band] : 0;
    else
      gain -= 8 * part->subblock_gain[bands->window[band]];
    float scale = gains[gain - (factor << shift) - GAIN_MIN];
    unsigned i = bands->start[band], end = bands->start[band + 1];
    for (; i + 4 <= end; i += 4) mp3_store(line + i, mp3_load(line + i) * scale);
    for (; i < end; i++) line[i] *= scale;
  }
}

/* In a short block's band, lines are coded window after window; the transform wants the three
 * windows' lines side by side. */
static unsigned reorder(const mp3_bands *bands, float *line, unsigned lines) {
  float copy[MP3_LINES];
  unsigned reached = lines; /* as long as all of them are in long bands */
  for (unsigned band = bands->long_count; band < bands->count; band += 3) {
    unsigned from = bands->start[band], width = bands->start[band + 1] - from;
    if (from >= lines) break;
    memcpy(copy, line + from, 3 * width * sizeof *line);
    for (unsigned i = 0; i < width; i++)
      for (unsigned window = 0; window < 3; window++)
        line[from + 3 * i + window] = copy[window * width + i];
    reached = from + 3 * width;
  }
  return reached;
}

/* A frame may have another number of channels than the stream. */
static void match(unsigned have, unsigned want, mp3_spectrum spectrum[2]) {
  if (have == 1 && want == 2) {
    spectrum[1] = spectrum[0];
  } else if (have == 2 && want == 1 &&
             spectrum[0].shape.block_type == spectrum[1].shape.block_type) {
    for (unsigned i = 0; i < MP3_LINES; i++)
      spectrum[0].line[i] = 0.5f * (spectrum[0].line[i] + spectrum[1].line[i]);
    if (spectrum[0].shape.lines < spectrum[1].shape.lines)
      spectrum[0].shape.lines = spectrum[1].shape.lines;
  }
}

unsigned mp3_entropy(const mp3_packet *packet, unsigned channels, mp3_spectrum spectrum[2][2]) {
  const mp3_header *header = &packet->header;
  mp3_scalefactors factors[2][2];
  unsigned bad = 0;
  uint32_t at = 0;
  memset(factors[0], 0, sizeof factors[0]);
  for (unsigned granule = 0; granule < header->granules; granule++) {
    const mp3_bands *bands[2];
    unsigned lines[2] = {0, 0};
    for (unsigned channel = 0; channel < header->channels; channel++) {
      const mp3_part *part = &packet->part[granule][channel];
      mp3_scalefactors *own = &factors[granule][channel];
      float *line = spectrum[granule][channel].line;
      uint32_t end = at + part->bits;
      bands[channel] = mp3_bands_of(header->rate_row, part->block_type, part->mixed);
      memset(own, 0, sizeof *own);
      int good = !packet->lost && end <= packet->main_bits;
      if (good) {
        mp3_bits bits = {packet->main, at};
        mp3_scalefactors_read(&bits, header, part,
                              channel == 1 && header->extension & MP3_INTENSITY,
                              &factors[0][channel], own);
        good =
            bits.at <= end && mp3_huffman(packet->main, bits.at, end, part, line, &lines[channel]);
      }
      if (good) {
        requantise(part, bands[channel], own, line, lines[channel]);
      } else {
        memset(line, 0, MP3_LINES * sizeof *line);
        lines[channel] = 0;
        bad++;
      }
      at = end;
    }
    if (header->channels == 2)
      mp3_stereo(header, &packet->part[granule][1], bands[1], &factors[granule][1],
                 spectrum[granule][0].line, &lines[0], spectrum[granule][1].line, &lines[1]);
    for (unsigned channel = 0; channel < header->channels; channel++) {
      const mp3_part *part = &packet->part[granule][channel];
      mp3_spectrum *out = &spectrum[granule][channel];
      if (part->block_type == MP3_SHORT)
        lines[channel] = reorder(bands[channel], out->line, lines[channel]);
      out->shape = (mp3_shape){(uint16_t)lines[channel], part->block_type, part->mixed};
      mp3_alias(out);
    }
    if (header->channels != channels) match(header->channels, channels, spectrum[granule]);
  }
  return bad;
}
