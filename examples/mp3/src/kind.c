/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kind.h"
#include "frame.h"
#include <stdio.h>
#include <string.h>

enum { CHAIN = 3 /* frames in a row are no accident */ };

/* A frame's header of whatever layer. */
typedef struct any_header {
  uint32_t rate, bytes; /* bytes 0: free format */
  uint8_t layer, padding;
} any_header;

static bool other_layer_read(const uint8_t *bytes, any_header *header) {
  static const uint16_t kbits[2][2][15] = {
      {{0, 32, 64, 96, 128, 160, 192, 224, 256, 288, 320, 352, 384, 416, 448},
       {0, 32, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384}},
      {{0, 32, 48, 56, 64, 80, 96, 112, 128, 144, 160, 176, 192, 224, 256},
       {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160}},
  };
  static const uint8_t versions[4] = {2, 3, 1, 0};
  static const uint16_t rates[3] = {44100, 48000, 32000};
  unsigned version = versions[bytes[1] >> 3 & 3], layer = 4 - (bytes[1] >> 1 & 3);
  unsigned bits = bytes[2] >> 4, rate = bytes[2] >> 2 & 3;
  if (bytes[0] != 0xff || bytes[1] >> 5 != 7) return false;
  if (version == 3 || layer > 2 || rate == 3 || bits == 15 || !bits) return false;
  *header = (any_header){.rate = (uint32_t)rates[rate] >> version,
                         .layer = (uint8_t)layer,
                         .padding = bytes[2] >> 1 & 1};
  uint32_t k = kbits[version != 0][layer - 1][bits];
  header->bytes = layer == 1 ? 4 * (12000 * k / header->rate + header->padding)
                             : 144000 * k / header->rate + header->padding;
  return true;
}

/* `same` may be null: any header will do. */
static bool header_at(const mp3_bytes *b, size_t at, const any_header *same, any_header *header) {
  mp3_header own;
  if (at + MP3_HEADER_BYTES > b->size) return false;
  if (mp3_header_read(b->at + at, &own))
    *header =
        (any_header){.rate = own.rate, .bytes = own.bytes, .layer = 3, .padding = own.padding};
  else if (!other_layer_read(b->at + at, header))
    return false;
  return !same || (same->rate == header->rate && same->layer == header->layer &&
                   !same->bytes == !header->bytes);
}

/* Without its padding; 0: no second and third frame follow. */
static uint32_t measure_free(const mp3_bytes *b, size_t at, const any_header *first) {
  any_header next, third;
  for (uint32_t bytes = MP3_HEADER_BYTES + 1; bytes <= MP3_FRAME_BYTES; bytes++)
    if (header_at(b, at + bytes + first->padding, first, &next) &&
        header_at(b, at + 2 * bytes + first->padding + next.padding, first, &third))
      return bytes;
  return 0;
}

/* Do frames of one kind follow one another from here on? */
static bool is_chain(const mp3_bytes *b, size_t at, const any_header *first) {
  uint32_t bare = first->bytes ? 0 : measure_free(b, at, first);
  any_header header = *first;
  if (!first->bytes && !bare) return false;
  for (unsigned n = 1; n < CHAIN; n++) {
    at += header.bytes ? header.bytes : bare + header.padding;
    if (at == b->size) return n > 1;
    if (!header_at(b, at, first, &header)) return false;
  }
  return true;
}

bool mp3_other_kind(mp3_bytes b, size_t from, size_t to, const mp3_header *first, mp3_kind *kind) {
  any_header header;
  for (size_t at = from; at < to && at < b.size; at++) {
    const uint8_t *sync = memchr(b.at + at, 0xff, b.size - at);
    if (!sync) return false;
    at = (size_t)(sync - b.at);
    if (at >= to || !header_at(&b, at, NULL, &header)) continue;
    bool same = header.layer == 3 && header.rate == first->rate && !header.bytes == !first->bytes;
    if (same || !is_chain(&b, at, &header)) continue;
    kind->offset = at;
    snprintf(kind->name, sizeof kind->name, "Layer %s, %u Hz%s, after Layer III, %u Hz%s",
             header.layer == 1   ? "I"
             : header.layer == 2 ? "II"
                                 : "III",
             (unsigned)header.rate, header.bytes ? "" : ", free format", (unsigned)first->rate,
             first->bytes ? "" : ", free format");
    return true;
  }
  return false;
}
