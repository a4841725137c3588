/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A code is looked up by its first ROOT bits; a longer one finds there where to look on by the
 * rest. The lookup tables are made from the standard's at the start. */
#include "huffman.h"
#include "bits.h"
#include "huffman_codes.h"
#include <math.h>

enum { ROOT = 8, QUAD_ROOT = 6, ENTRIES = 9000, LARGEST = 15 + 8191 };

/* What a lookup finds. A leaf: a code's length in bits 16 up, x in bits 4 to 7, y in bits 0 to 3.
 * A link: LINK, how many bits to look on by in bits 16 up, and where in bits 0 to 15. */
typedef uint32_t entry;
#define LINK 0x80000000u

static entry entries[ENTRIES];
static uint32_t root_of[MP3_CODEBOOKS];
/* Quadruples: the length with signs in bits 8 up, without in bits 4 to 7, the four values below. */
static uint16_t quads[2][1 << QUAD_ROOT];
static float power[LARGEST + 1]; /* n to the power of 4/3 */

/* Fills the codes that begin with `prefix` into a table of 2^bits entries from `at`; gives where
 * the free entries go on. */
static uint32_t fill(const mp3_codebook *book, uint32_t prefix, unsigned prefix_bits, uint32_t at,
                     unsigned bits, uint32_t free) {
  for (unsigned index = 0; index < (1u << bits); index++) {
    uint32_t word = prefix << bits | index;
    unsigned have = prefix_bits + bits, longest = 0;
    for (unsigned i = 0; i < (unsigned)book->side * book->side; i++) {
      unsigned length = book->length[i];
      if (length <= have) {
        if (word >> (have - length) != book->code[i] || length <= prefix_bits) continue;
        entries[at + index] = length << 16 | i / book->side << 4 | i % book->side;
      } else if ((uint32_t)book->code[i] >> (length - have) == word && length > longest) {
        longest = length;
      }
    }
    if (longest > have) {
      uint32_t next = free;
      entries[at + index] = LINK | (longest - have) << 16 | next;
      free = fill(book, word, have, next, longest - have, free + (1u << (longest - have)));
    }
  }
  return free;
}

void mp3_huffman_prepare(void) {
  uint32_t free = 0;
  for (unsigned book = 0; book < MP3_CODEBOOKS; book++) {
    root_of[book] = free;
    free = fill(&mp3_codebooks[book], 0, 0, free, ROOT, free + (1u << ROOT));
  }
  for (unsigned table = 0; table < 2; table++)
    for (unsigned value = 0; value < 16; value++) {
      unsigned length = mp3_quad_length[table][value], rest = QUAD_ROOT - length;
      for (unsigned low = 0; low < (1u << rest); low++)
        quads[table][mp3_quad_code[table][value] << rest | low] =
            (uint16_t)((length + (unsigned)__builtin_popcount(value)) << 8 | length << 4 | value);
    }
  for (unsigned n = 0; n <= LARGEST; n++) power[n] = (float)(n * cbrt(n));
}

/* The value, negative if the word's first bit is set. */
static inline float with_sign(float value, uint64_t word) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits |= (uint32_t)(word >> 32) & 0x80000000u;
  memcpy(&value, &bits, sizeof bits);
  return value;
}

static inline entry look_up(const entry *root, uint64_t word) {
  entry found = root[word >> (64 - ROOT)];
  if (found & LINK) found = entries[(found & 0xffff) + (word << ROOT >> (64 - (found >> 16 & 31)))];
  return found;
}

/* Pairs of one region, of a table without further bits. Each function gives the position behind
 * what it read, at most some bits behind `end`. */
static uint32_t pairs(const uint8_t *bytes, uint32_t at, uint32_t end, const entry *root,
                      float *line, const float *last) {
  while (line < last && at <= end) {
    uint64_t word = mp3_bits_peek(bytes, at);
    entry found = look_up(root, word);
    unsigned length = found >> 16, x = found >> 4 & 15, y = found & 15;
    word <<= length;
    line[0] = with_sign(power[x], word);
    word <<= x != 0;
    line[1] = with_sign(power[y], word);
    at += length + (x != 0) + (y != 0);
    line += 2;
  }
  return at;
}

static uint32_t pairs_more(const uint8_t *bytes, uint32_t at, uint32_t end, const entry *root,
                           unsigned more, float *line, const float *last) {
  while (line < last && at <= end) {
    uint64_t word = mp3_bits_peek(bytes, at);
    entry found = look_up(root, word);
    unsigned length = found >> 16, value[2] = {found >> 4 & 15, found & 15};
    word <<= length;
    at += length;
    for (unsigned i = 0; i < 2; i++) {
      if (value[i] == 15) {
        value[i] += (unsigned)(word >> (64 - more));
        word <<= more;
        at += more;
      }
      line[i] = with_sign(power[value[i]], word);
      word <<= value[i] != 0;
      at += value[i] != 0;
    }
    line += 2;
  }
  return at;
}

bool mp3_huffman(const uint8_t *bytes, uint32_t at, uint32_t end, const mp3_part *part,
                 float line[MP3_LINES], unsigned *lines) {
  unsigned begin = 0, last = part->big_values * 2u;
  for (unsigned region = 0; region < 3; region++) {
    unsigned stop = region < 2 && part->region[region] < last ? part->region[region] : last;
    unsigned table = part->table[region];
    if (stop <= begin) continue;
    if (table == 0) {
      memset(line + begin, 0, (stop - begin) * sizeof *line);
    } else if (mp3_table_codebook[table] < 0) {
      return false;
    } else {
      const entry *root = entries + root_of[mp3_table_codebook[table]];
      unsigned more = mp3_table_more[table];
      at = more ? pairs_more(bytes, at, end, root, more, line + begin, line + stop)
                : pairs(bytes, at, end, root, line + begin, line + stop);
      if (at > end) return false;
    }
    begin = stop;
  }
  /* Quadruples of at most 1, until the bits end. Encoders may leave some bits over: what would
   * end behind the end is none. */
  unsigned to = last;
  const uint16_t *root = quads[part->count1_table];
  while (at < end && to + 4 <= MP3_LINES) {
    uint64_t word = mp3_bits_peek(bytes, at);
    unsigned found = root[word >> (64 - QUAD_ROOT)];
    word <<= found >> 4 & 15;
    unsigned next = at + (found >> 8);
    if (next > end) break;
    for (unsigned bit = 8; bit; bit >>= 1) {
      unsigned set = (found & bit) != 0;
      line[to++] = with_sign((float)set, word);
      word <<= set;
    }
    at = next;
  }
  memset(line + to, 0, (MP3_LINES - to) * sizeof *line);
  *lines = to;
  return true;
}
