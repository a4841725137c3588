/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "tags.h"
#include "frame.h"
#include <string.h>

enum { ID3V1 = 128, ID3V2 = 10, APE = 32, DECODER_DELAY = 529 };

static uint32_t big(const uint8_t *bytes) {
  return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static uint32_t little(const uint8_t *bytes) {
  return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

static bool says(const uint8_t *bytes, size_t size, const char *word) {
  return size >= strlen(word) && memcmp(bytes, word, strlen(word)) == 0;
}

size_t mp3_tag_here(const uint8_t *bytes, size_t size) {
  size_t length = 0;
  if (size >= ID3V2 && says(bytes, size, "ID3") &&
      !((bytes[6] | bytes[7] | bytes[8] | bytes[9]) & 0x80)) {
    length = ID3V2 +
             ((size_t)bytes[6] << 21 | (size_t)bytes[7] << 14 | (size_t)bytes[8] << 7 | bytes[9]);
    if (bytes[5] & 0x10) length += ID3V2; /* a footer */
  } else if (size >= APE && says(bytes, size, "APETAGEX")) {
    /* The size counts what follows the header. */
    length = (size_t)little(bytes + 12) + (bytes[23] & 0x20 ? APE : 0);
  } else if (size >= ID3V1 && says(bytes, size, "TAG")) {
    length = ID3V1;
  }
  return length < size ? length : size;
}

size_t mp3_without_end_tags(const uint8_t *bytes, size_t size) {
  for (;;) {
    if (size >= ID3V1 && says(bytes + size - ID3V1, ID3V1, "TAG")) {
      size -= ID3V1;
    } else if (size >= APE && says(bytes + size - APE, APE, "APETAGEX")) {
      const uint8_t *footer = bytes + size - APE;
      size_t length = (size_t)little(footer + 12) + (footer[23] & 0x80 ? APE : 0);
      if (length < APE || length > size) return size;
      size -= length;
    } else {
      return size;
    }
  }
}

/* What LAME and its likes tell behind Xing's fields: how many samples they put before and after. */
static void read_lame(const uint8_t *at, const uint8_t *end, const mp3_header *header,
                      uint32_t frames, mp3_stream_info *info) {
  static const char *const encoders[] = {"LAME", "Lavf", "Lavc"};
  if (end - at < 24) return;
  for (unsigned i = 0; i < sizeof encoders / sizeof *encoders; i++)
    if (says(at, 4, encoders[i])) {
      uint32_t before = (uint32_t)at[21] << 4 | at[22] >> 4, after = (at[22] & 15u) << 8 | at[23];
      uint64_t all = (uint64_t)frames * header->granules * MP3_LINES;
      info->skip = before + DECODER_DELAY;
      info->all = all;
      info->samples = all > before + after ? all - before - after : 0;
    }
}

bool mp3_stream_info_read(const uint8_t *frame, const mp3_header *header, uint32_t bytes,
                          mp3_stream_info *info) {
  const uint8_t *end = frame + bytes;
  /* Some leave room for a checksum, others do not. */
  for (unsigned check = 0; check <= MP3_CHECK_BYTES; check += MP3_CHECK_BYTES) {
    const uint8_t *at = frame + MP3_HEADER_BYTES + check + mp3_side_bytes(header);
    if (end - at < 8 || (!says(at, 4, "Xing") && !says(at, 4, "Info"))) continue;
    uint32_t fields = big(at + 4), frames = 0;
    static const uint8_t lengths[4] = {4, 4, 100, 4}; /* frames, bytes, contents, quality */
    at += 8;
    for (unsigned i = 0; i < 4; i++) {
      if (!(fields >> i & 1)) continue;
      if (end - at < lengths[i]) return true;
      if (i == 0) frames = big(at);
      at += lengths[i];
    }
    if (fields & 1) read_lame(at, end, header, frames, info);
    return true;
  }
  const unsigned vbri = MP3_HEADER_BYTES + 32;
  return bytes >= vbri + 4 && says(frame + vbri, 4, "VBRI");
}
