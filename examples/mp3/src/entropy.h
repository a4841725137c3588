/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* From a packet to spectra: scalefactors, Huffman codes, requantisation, stereo, the order of short
 * blocks, and alias reduction. It keeps nothing from packet to packet, so packets may be decoded
 * side by side. */
#ifndef MP3_ENTROPY_H
#define MP3_ENTROPY_H

#include "mp3.h"

/* Writes the spectrum of each granule of the packet and of each of the stream's `channels`. Gives
 * how many of them could not be read; these are silent. */
unsigned mp3_entropy(const mp3_packet *packet, unsigned channels, mp3_spectrum spectrum[2][2]);

/* To be called once, before anything else. */
void mp3_entropy_prepare(void);

#endif
