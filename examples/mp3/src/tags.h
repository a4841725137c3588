/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What stands around the frames: ID3 and APE tags, and what an encoder says of the stream in a
 * first frame without sound (Xing, Info, VBRI). */
#ifndef MP3_TAGS_H
#define MP3_TAGS_H

#include "mp3.h"
#include <stdbool.h>
#include <stddef.h>

/* The length of the tag that begins here; 0 if none does. */
size_t mp3_tag_here(const uint8_t *bytes, size_t size);

/* How many of the bytes are left when tags at their end are taken away. */
size_t mp3_without_end_tags(const uint8_t *bytes, size_t size);

typedef struct mp3_stream_info {
  uint32_t skip;    /* samples that encoder and decoder put before the sound */
  uint64_t samples; /* of the sound; 0 if it does not say */
  uint64_t all;     /* of all frames, with what is before and after the sound */
} mp3_stream_info;

/* Is the frame one without sound? Then says what it tells. */
bool mp3_stream_info_read(const uint8_t *frame, const mp3_header *header, uint32_t bytes,
                          mp3_stream_info *info);

#endif
