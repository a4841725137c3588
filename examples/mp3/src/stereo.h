/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Joint stereo: from what was coded to left and right. */
#ifndef MP3_STEREO_H
#define MP3_STEREO_H

#include "bands.h"
#include "scalefactors.h"

/* `left` and `right` are the lines of both channels, requantised, in the order of coding;
 * `factors` are the right channel's. `part` is the right channel's, too. */
void mp3_stereo(const mp3_header *header, const mp3_part *part, const mp3_bands *bands,
                const mp3_scalefactors *factors, float left[MP3_LINES], unsigned *left_lines,
                float right[MP3_LINES], unsigned *right_lines);

/* To be called once, before anything else. */
void mp3_stereo_prepare(void);

#endif
