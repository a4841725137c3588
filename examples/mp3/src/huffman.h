/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Huffman decoding of the lines of one granule of one channel. */
#ifndef MP3_HUFFMAN_H
#define MP3_HUFFMAN_H

#include "mp3.h"
#include <stdbool.h>

/* Reads the lines between the bit positions `at` and `end` of `bytes`: sign and magnitude to the
 * power of 4/3, without the gain. Sets from where all lines are zero; all lines are written.
 * False if the codes run past the end or use a table that does not exist. */
bool mp3_huffman(const uint8_t *bytes, uint32_t at, uint32_t end, const mp3_part *part,
                 float line[MP3_LINES], unsigned *lines);

/* To be called once, before anything else. */
void mp3_huffman_prepare(void);

#endif
