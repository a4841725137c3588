/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Tail: the data appended to a video stream so that its last pictures are decoded.
 *
 * Such a stream has no end marker: a decoder knows that a picture is complete when the next one begins,
 * and applications for Orcc read their input in a loop. So a part of its beginning is repeated.
 *   MPEG-1, -2 and -4: up to the middle of the first picture. That flushes all earlier pictures, and is
 *     not a complete picture itself.
 *   AVC, HEVC: several complete pictures, since a unit is complete when the next begins, and pictures
 *     are reordered. They begin with one that flushes all others. The display drops pictures beyond the
 *     number in the input.
 *
 * A stream is recognised by the start code (00 00 01) at its beginning. Other data have no tail. */
#ifndef LEVADA_TAIL_H
#define LEVADA_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum stream_kind { NO_VIDEO, MPEG2, MPEG4, AVC, HEVC } stream_kind;

/* The format, from the first bytes after a start code. */
static stream_kind stream_kind_of(const uint8_t *unit, size_t size) {
  if (size < 2) return NO_VIDEO;
  if (unit[0] == 0xb3) return MPEG2; /* a sequence */
  /* A sequence of objects, an object, one of the first objects or layers. */
  if (unit[0] == 0xb0 || unit[0] == 0xb5 || (unit[0] & ~0x20) <= 5) return MPEG4;
  if (unit[1] == 0x01 && (unit[0] == 0x40 || unit[0] == 0x46)) return HEVC; /* VPS, delimiter */
  int type = unit[0] & 0x1f;
  bool forbidden = unit[0] & 0x80;
  return !forbidden && (type == 7 || type == 9) ? AVC : NO_VIDEO; /* SPS, delimiter */
}

typedef enum unit_role { OTHER, FIRST_OF_PICTURE, MORE_OF_PICTURE } unit_role;

static unit_role unit_role_of(stream_kind kind, const uint8_t *unit, size_t size) {
  bool slice, first;
  if (size < 3) return OTHER;
  switch (kind) {
  case MPEG4:
    return unit[0] == 0xb6 ? FIRST_OF_PICTURE : OTHER;
  case MPEG2:
    if (unit[0] == 0) return FIRST_OF_PICTURE;
    return unit[0] == 0xb3 || unit[0] == 0xb7 || unit[0] == 0xb8 ? OTHER : MORE_OF_PICTURE;
  case AVC:
    slice = (unit[0] & 0x1f) == 1 || (unit[0] & 0x1f) == 5;
    first = unit[1] & 0x80; /* its first macroblock is number 0 */
    break;
  case HEVC:
    slice = !(unit[0] & 0xc0); /* types 0 to 31 */
    first = unit[2] & 0x80;
    break;
  default:
    return OTHER;
  }
  return !slice ? OTHER : first ? FIRST_OF_PICTURE : MORE_OF_PICTURE;
}

/* The position of the next start code, or `size`. */
static size_t start_code(const uint8_t *bytes, size_t size, size_t from) {
  for (size_t i = from; i + 3 <= size; i++)
    if (bytes[i] == 0 && bytes[i + 1] == 0 && bytes[i + 2] == 1) return i;
  return size;
}

typedef struct tail {
  size_t bytes;    /* of the beginning that are repeated; may be more than there are */
  size_t pictures; /* pictures in the stream; 0: the tail adds none */
} tail;

enum { TAIL_PICTURES = 4 };

static tail tail_of(const uint8_t *bytes, size_t size) {
  tail t = {0, 0};
  size_t at = start_code(bytes, size, 0), begin = 0;
  if (at > 1 || size < at + 3 || (at == 1 && bytes[0])) return t;
  stream_kind kind = stream_kind_of(bytes + at + 3, size - at - 3);
  bool whole = kind == AVC || kind == HEVC;
  for (bool inside = false; kind; at = start_code(bytes, size, at + 3)) {
    unit_role role = at + 3 < size ? unit_role_of(kind, bytes + at + 3, size - at - 3) : OTHER;
    if (inside && role != MORE_OF_PICTURE) {
      inside = false;
      if (!whole) {
        t.bytes = begin + (at - begin) / 2;
        break;
      }
      if (++t.pictures <= TAIL_PICTURES) t.bytes = at + 4; /* and the next start code */
    }
    if (at >= size) break;
    if (role == FIRST_OF_PICTURE) {
      inside = true;
      begin = at;
    }
  }
  return t;
}

#endif
