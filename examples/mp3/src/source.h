/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The first stage: finds the frames among a file's bytes, gathers each one's main data from the
 * frames before it (the bit reservoir), and hands on packets. It reports what is damaged and goes
 * on behind it. */
#ifndef MP3_SOURCE_H
#define MP3_SOURCE_H

#include "kind.h"
#include "report.h"
#include "tags.h"

typedef struct mp3_source {
  const uint8_t *bytes;
  size_t size, at;
  mp3_report *report;
  mp3_header first;    /* what all frames must agree with */
  uint32_t free_bytes; /* of a frame in free format, without padding */
  uint32_t frame;      /* frames read */
  bool check_held;     /* a checksum was right, so a wrong one means damage */
  mp3_kind left_out;   /* the first part that is of another kind; no name: there is none */
  mp3_stream_info info;
  unsigned held; /* bytes in the reservoir */
  uint8_t reservoir[MP3_RESERVOIR + MP3_FRAME_BYTES];
} mp3_source;

/* False if there is no frame in the file. The bytes must live as long as the source. */
bool mp3_source_open(mp3_source *source, const uint8_t *bytes, size_t size, mp3_report *report);

/* The next packet; false at the end. */
bool mp3_source_next(mp3_source *source, mp3_packet *packet);

#endif
