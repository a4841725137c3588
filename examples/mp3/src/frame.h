/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Frame headers and side information: the part of a frame that says how to read the rest. */
#ifndef MP3_FRAME_H
#define MP3_FRAME_H

#include "mp3.h"
#include <stdbool.h>

enum { MP3_HEADER_BYTES = 4, MP3_CHECK_BYTES = 2 };

/* Reads a header of four bytes; false if they are none of Layer III. */
bool mp3_header_read(const uint8_t *bytes, mp3_header *header);

/* May both stand in one stream? Bit rate, padding and the kind of stereo may change. */
bool mp3_header_agrees(const mp3_header *a, const mp3_header *b);

unsigned mp3_side_bytes(const mp3_header *header);

/* Reads the side information into the packet's parts; sets how many bytes back the main data
 * begin. False if it says what cannot be. */
bool mp3_side_read(const uint8_t *bytes, mp3_packet *packet, unsigned *back);

/* Does the frame's checksum hold? `bytes` is the frame; its header says that there is one. */
bool mp3_check_holds(const uint8_t *bytes, const mp3_header *header);

#endif
