/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reads bits, most significant first. There are no bounds checks: MP3_SLACK bytes after the data must
 * be readable, and the caller compares the position with the end afterwards. */
#ifndef MP3_BITS_H
#define MP3_BITS_H

#include <stdint.h>
#include <string.h>

typedef struct mp3_bits {
  const uint8_t *bytes;
  uint32_t at; /* bit position */
} mp3_bits;

/* At least the next 57 bits, at the top of the word. */
static inline uint64_t mp3_bits_peek(const uint8_t *bytes, uint32_t at) {
  uint64_t word;
  memcpy(&word, bytes + (at >> 3), 8);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word << (at & 7);
}

/* 0 to 32 bits. */
static inline uint32_t mp3_bits_get(mp3_bits *bits, uint32_t count) {
  uint64_t word = mp3_bits_peek(bits->bytes, bits->at);
  bits->at += count;
  return (uint32_t)(word >> 1 >> (63 - count));
}

#endif
