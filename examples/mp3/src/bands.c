/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "bands.h"

enum { LONG_BANDS = 22, SHORT_BANDS = 13 };

/* Where bands begin: MPEG-1 44.1, 48, 32 kHz; MPEG-2 22.05, 24, 16; MPEG-2.5 11.025, 12, 8. */
static const uint16_t long_start[9][LONG_BANDS + 1] = {
    {0,  4,  8,   12,  16,  20,  24,  30,  36,  44,  52, 62,
     74, 90, 110, 134, 162, 196, 238, 288, 342, 418, 576},
    {0,  4,  8,   12,  16,  20,  24,  30,  36,  42,  50, 60,
     72, 88, 106, 128, 156, 190, 230, 276, 330, 384, 576},
    {0,  4,   8,   12,  16,  20,  24,  30,  36,  44,  54, 66,
     82, 102, 126, 156, 194, 240, 296, 364, 448, 550, 576},
    {0,   6,   12,  18,  24,  30,  36,  44,  54,  66,  80, 96,
     116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576},
    {0,   6,   12,  18,  24,  30,  36,  44,  54,  66,  80, 96,
     114, 136, 162, 194, 232, 278, 332, 394, 464, 540, 576},
    {0,   6,   12,  18,  24,  30,  36,  44,  54,  66,  80, 96,
     116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576},
    {0,   6,   12,  18,  24,  30,  36,  44,  54,  66,  80, 96,
     116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576},
    {0,   6,   12,  18,  24,  30,  36,  44,  54,  66,  80, 96,
     116, 140, 168, 200, 238, 284, 336, 396, 464, 522, 576},
    {0,   12,  24,  36,  48,  60,  72,  88,  108, 132, 160, 192,
     232, 280, 336, 400, 476, 566, 568, 570, 572, 574, 576},
};

/* Of one window of a short block: 192 lines. */
static const uint16_t short_start[9][SHORT_BANDS + 1] = {
    {0, 4, 8, 12, 16, 22, 30, 40, 52, 66, 84, 106, 136, 192},
    {0, 4, 8, 12, 16, 22, 28, 38, 50, 64, 80, 100, 126, 192},
    {0, 4, 8, 12, 16, 22, 30, 42, 58, 78, 104, 138, 180, 192},
    {0, 4, 8, 12, 18, 24, 32, 42, 56, 74, 100, 132, 174, 192},
    {0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 136, 180, 192},
    {0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192},
    {0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192},
    {0, 4, 8, 12, 18, 26, 36, 48, 62, 80, 104, 134, 174, 192},
    {0, 8, 16, 24, 36, 52, 72, 96, 124, 160, 162, 164, 166, 192},
};

static mp3_bands shapes[9][3]; /* long, short, mixed */

static void add_short(mp3_bands *shape, unsigned row, unsigned first) {
  for (unsigned band = first; band < SHORT_BANDS; band++) {
    unsigned width = short_start[row][band + 1] - short_start[row][band];
    for (unsigned window = 0; window < 3; window++) {
      shape->start[shape->count] = (uint16_t)(3 * short_start[row][band] + window * width);
      shape->window[shape->count++] = (uint8_t)window;
    }
  }
}

static void add_long(mp3_bands *shape, unsigned row, unsigned end) {
  for (unsigned band = 0; band < end; band++) shape->start[shape->count++] = long_start[row][band];
  shape->long_count = shape->count;
}

void mp3_bands_prepare(void) {
  for (unsigned row = 0; row < 9; row++) {
    for (unsigned kind = 0; kind < 3; kind++) shapes[row][kind] = (mp3_bands){.count = 0};
    add_long(&shapes[row][0], row, LONG_BANDS);
    add_short(&shapes[row][1], row, 0);
    /* In a mixed block the short bands begin where the long ones end: at line 36, or 48 at 8 kHz. */
    unsigned first = row == 8 ? 2 : 3, end = 0;
    while (long_start[row][end] < 3 * short_start[row][first]) end++;
    add_long(&shapes[row][2], row, end);
    add_short(&shapes[row][2], row, first);
    for (unsigned kind = 0; kind < 3; kind++)
      shapes[row][kind].start[shapes[row][kind].count] = MP3_LINES;
  }
}

const mp3_bands *mp3_bands_of(unsigned rate_row, unsigned block_type, unsigned mixed) {
  return &shapes[rate_row][block_type != MP3_SHORT ? 0 : mixed ? 2 : 1];
}

unsigned mp3_bands_long(unsigned rate_row, unsigned band) {
  return long_start[rate_row][band < LONG_BANDS ? band : LONG_BANDS];
}
