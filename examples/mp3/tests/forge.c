/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Writes Layer III streams that use all that the format has, with random contents: every Huffman
 * table, scalefactors of every length, all block shapes, intensity stereo, the bit reservoir, free
 * format. No encoder at hand does. They sound like nothing, but every decoder must agree on them.
 *
 *   forge OUT [seed=N] [frames=N] [version=0|1|2] [rate=0|1|2] [blocks=long|short|mixed|all]
 *             [mode=mono|stereo|dual|ms|intensity|both|any] [kbits=N] [crc] [free]
 *
 * Versions: MPEG-1, 2, 2.5. Without kbits each frame takes a bit rate that it fits in. */
#include "bands.h"
#include "frame.h"
#include "huffman_codes.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FRAMES = 4000, MAIN = MP3_MAIN_BYTES + 8 };

typedef struct bit_writer {
  uint8_t bytes[8192];
  unsigned at;
} bit_writer;

static void put(bit_writer *writer, uint32_t value, unsigned bits) {
  for (unsigned i = bits; i-- > 0; writer->at++)
    if (value >> i & 1) writer->bytes[writer->at >> 3] |= (uint8_t)(0x80 >> (writer->at & 7));
}

static uint64_t state = 1;

static uint32_t any(uint32_t below) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((state >> 33) % below);
}

static double uniform(void) { return (any(1 << 30) + 0.5) / (1 << 30); }

/* What is wanted. */
static unsigned version, rate, kbits_wanted, frames = 40;
static int checked, free_format;
static const char *mode = "stereo", *blocks = "all";

typedef struct coded_part {
  unsigned bits, big_values, gain, compress, block, mixed, table[3], subblock[3], region[2];
  unsigned preflag, coarse, quad_table;
} coded_part;

static unsigned rate_row(void) { return 3 * version + rate; }

/* How many bits each of the part's scalefactors has, in order; gives how many there are. */
static unsigned scalefactor_bits(const coded_part *part, int intensity, uint8_t bits[MP3_BANDS]) {
  static const uint8_t low[16] = {0, 0, 0, 0, 3, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4};
  static const uint8_t high[16] = {0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 2, 3};
  unsigned count[4] = {0}, length[4] = {0}, c = part->compress, all = 0;
  int shape = part->block != MP3_SHORT ? 0 : part->mixed ? 2 : 1;
  if (version == 0) {
    static const uint8_t first[3] = {11, 18, 17}, second[3] = {10, 18, 18};
    count[0] = first[shape], count[1] = second[shape];
    length[0] = low[c], length[1] = high[c];
  } else if (!intensity) { /* the forge keeps to the first way: below 400 */
    static const uint8_t counts[3][4] = {{6, 5, 5, 5}, {9, 9, 9, 9}, {6, 9, 9, 9}};
    static const uint8_t middle[3][4] = {{6, 5, 7, 3}, {9, 9, 12, 6}, {6, 9, 12, 6}};
    static const uint8_t last[3][4] = {{11, 10, 0, 0}, {18, 18, 0, 0}, {15, 18, 0, 0}};
    for (unsigned i = 0; i < 4; i++)
      count[i] = c < 400 ? counts[shape][i] : c < 500 ? middle[shape][i] : last[shape][i];
    if (c < 400)
      length[0] = c / 80, length[1] = c / 16 % 5, length[2] = c / 4 % 4, length[3] = c % 4;
    else if (c < 500)
      length[0] = (c - 400) / 20, length[1] = (c - 400) / 4 % 5, length[2] = c % 4;
    else
      length[0] = (c - 500) / 3, length[1] = (c - 500) % 3;
  } else {
    static const uint8_t counts[3][4] = {{7, 7, 7, 0}, {12, 12, 12, 0}, {6, 15, 12, 0}};
    static const uint8_t middle[3][4] = {{6, 6, 6, 3}, {12, 9, 9, 6}, {6, 12, 9, 6}};
    static const uint8_t last[3][4] = {{8, 8, 5, 0}, {15, 12, 9, 0}, {6, 18, 9, 0}};
    unsigned half = c / 2;
    for (unsigned i = 0; i < 4; i++)
      count[i] = half < 180 ? counts[shape][i] : half < 244 ? middle[shape][i] : last[shape][i];
    if (half < 180)
      length[0] = half / 36, length[1] = half % 36 / 6, length[2] = half % 6;
    else if (half < 244)
      length[0] = (half - 180) / 16, length[1] = (half - 180) / 4 % 4, length[2] = half % 4;
    else
      length[0] = (half - 244) / 3, length[1] = (half - 244) % 3;
  }
  for (unsigned i = 0; i < 4; i++)
    for (unsigned k = 0; k < count[i]; k++) bits[all++] = (uint8_t)length[i];
  return all;
}

/* An intensity position that decoders agree on. MPEG-1 has 0 to 6, and 7 for none. In MPEG-2 they
 * differ about which one means none, 7 or the highest, and some have no more than 16. */
static unsigned position(unsigned bits) {
  for (;;) {
    unsigned value = any(1u << bits);
    if (version == 0 ? value <= 7 : value != 7 && value < 16 && value + 1 < 1u << bits)
      return value;
  }
}

static int no_table(unsigned table) { return mp3_table_codebook[table] < 0; }

/* One value that the table can say; mostly small. */
static unsigned magnitude(unsigned table) {
  unsigned side = mp3_codebooks[mp3_table_codebook[table]].side, more = mp3_table_more[table];
  if (more && any(20) == 0) return 15 + any(1u << more);
  unsigned value = (unsigned)(-log(uniform()) * side / 4);
  return value < side ? value : side - 1;
}

static void put_value(bit_writer *writer, unsigned value, unsigned more) {
  if (more && value >= 15) put(writer, value - 15, more);
  if (value) put(writer, any(2), 1);
}

/* Writes scalefactors and codes of one part; says in the part what it wrote. */
static void write_part(bit_writer *writer, coded_part *part, int intensity, unsigned shared,
                       unsigned most_bits) {
  uint8_t bits[MP3_BANDS];
  unsigned begin = writer->at, count;
  part->compress = any(version == 0 ? 16 : 512);
  if (intensity && version != 0) /* no length of nothing: that is the highest position, too */
    do {
      part->compress = any(360);
      count = scalefactor_bits(part, 1, bits);
    } while (memchr(bits, 0, count));
  count = scalefactor_bits(part, intensity, bits);
  static const uint8_t group_of[21] = {0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1,
                                       2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
  for (unsigned i = 0; i < count; i++) {
    if (part->block != MP3_SHORT && version == 0 && shared & (8 >> group_of[i])) continue;
    put(writer, intensity ? position(bits[i]) : any(1u << bits[i]), bits[i]);
  }

  part->preflag = version == 0 && any(2);
  part->coarse = any(2);
  part->quad_table = any(2);
  for (unsigned i = 0; i < 3; i++) {
    part->subblock[i] = any(4);
    do part->table[i] = any(32);
    while (part->table[i] && no_table(part->table[i]));
  }
  unsigned edge[3] = {0, MP3_LINES, MP3_LINES};
  if (part->block == MP3_LONG) {
    part->region[0] = any(16);
    part->region[1] = any(8);
    if (part->region[0] + part->region[1] > 20) part->region[1] = 20 - part->region[0];
    edge[0] = mp3_bands_long(rate_row(), part->region[0] + 1);
    edge[1] = mp3_bands_long(rate_row(), part->region[0] + part->region[1] + 2);
  } else {
    edge[0] =
        part->block == MP3_SHORT ? (rate_row() == 8 ? 72 : 36) : mp3_bands_long(rate_row(), 8);
    part->table[2] = 0;
  }

  /* The right channel of intensity stereo ends early. */
  unsigned wanted = any(intensity ? 60 : MP3_LINES / 2 + 1), line = 0, region = 0, largest = 1;
  for (; line < 2 * wanted; line += 2) {
    while (region < 2 && line >= edge[region]) region++;
    unsigned table = part->table[region];
    if (!table) continue;
    if (writer->at - begin + 60 > most_bits) break;
    const mp3_codebook *book = &mp3_codebooks[mp3_table_codebook[table]];
    unsigned x = magnitude(table), y = magnitude(table), more = mp3_table_more[table];
    unsigned at = (x < 15 ? x : 15) * book->side + (y < 15 ? y : 15);
    put(writer, book->code[at], book->length[at]);
    put_value(writer, x, more);
    put_value(writer, y, more);
    if (x > largest) largest = x;
    if (y > largest) largest = y;
  }
  part->big_values = line / 2;
  for (unsigned quads = any(40); quads > 0 && line + 4 <= MP3_LINES; quads--, line += 4) {
    if (writer->at - begin + 12 > most_bits || (intensity && line > 120)) break;
    unsigned value = any(16);
    put(writer, mp3_quad_code[part->quad_table][value], mp3_quad_length[part->quad_table][value]);
    for (unsigned bit = 8; bit; bit >>= 1)
      if (value & bit) put(writer, any(2), 1);
  }
  part->bits = writer->at - begin;
  /* The loudest line at about a hundredth of full scale. */
  double gain = 210 + 4 * log2(0.02 / pow(largest, 4.0 / 3));
  part->gain = (unsigned)(gain + any(8));
}

static void write_side(bit_writer *writer, const coded_part *part) {
  put(writer, part->bits, 12);
  put(writer, part->big_values, 9);
  put(writer, part->gain, 8);
  put(writer, part->compress, version == 0 ? 4 : 9);
  put(writer, part->block != MP3_LONG, 1);
  if (part->block != MP3_LONG) {
    put(writer, part->block, 2);
    put(writer, part->mixed, 1);
    for (unsigned i = 0; i < 2; i++) put(writer, part->table[i], 5);
    for (unsigned i = 0; i < 3; i++)
      put(writer, part->block == MP3_SHORT ? part->subblock[i] : 0, 3);
  } else {
    for (unsigned i = 0; i < 3; i++) put(writer, part->table[i], 5);
    put(writer, part->region[0], 4);
    put(writer, part->region[1], 3);
  }
  if (version == 0) put(writer, part->preflag, 1);
  put(writer, part->coarse, 1);
  put(writer, part->quad_table, 1);
}

/* The shape after that of the granule before: between long and short ones stand start and stop,
 * and all from a start to a stop are mixed, or none. */
static void choose_shape(coded_part *part, coded_part *before) {
  part->block = MP3_LONG;
  part->mixed = 0;
  if (strcmp(blocks, "short") == 0 || strcmp(blocks, "mixed") == 0) {
    part->block = MP3_SHORT;
    part->mixed = blocks[0] == 'm';
  } else if (strcmp(blocks, "all") == 0) {
    int to_short = before->block == MP3_START || before->block == MP3_SHORT;
    part->block = to_short ? any(2) ? MP3_SHORT : MP3_STOP : any(2) ? MP3_LONG : MP3_START;
    part->mixed = to_short ? before->mixed : part->block == MP3_START ? any(2) : 0;
  }
  if (rate_row() == 8) part->mixed = 0; /* decoders differ about mixed blocks at 8 kHz */
  *before = *part;
}

typedef struct frame {
  uint8_t head[MP3_HEADER_BYTES + MP3_CHECK_BYTES + 32];
  unsigned head_bytes, area; /* where its part of the main data begins, and */
  unsigned area_bytes;
} frame;

static frame made[MOST_FRAMES];
static uint8_t *areas; /* all frames' main data, one after the other */

static void write_header(uint8_t head[4], unsigned bits_index, unsigned padding, unsigned code,
                         unsigned extension) {
  static const uint8_t ids[3] = {3, 2, 0};
  head[0] = 0xff;
  head[1] = (uint8_t)(0xe0 | ids[version] << 3 | 1 << 1 | !checked);
  head[2] = (uint8_t)(bits_index << 4 | rate << 2 | padding << 1);
  head[3] = (uint8_t)(code << 6 | extension << 4);
}

static void sum_up(frame *f) {
  uint32_t sum = 0xffff;
  for (unsigned at = 2; at < f->head_bytes; at++) {
    if (at == 4 || at == 5) continue;
    for (unsigned bit = 0; bit < 8; bit++) {
      unsigned in = f->head[at] >> (7 - bit) & 1, out = sum >> 15 & 1;
      sum = sum << 1 & 0xffff;
      if (in != out) sum ^= 0x8005;
    }
  }
  f->head[4] = (uint8_t)(sum >> 8);
  f->head[5] = (uint8_t)sum;
}

static const char *option(int count, char **words, const char *name) {
  size_t length = strlen(name);
  for (int i = 2; i < count; i++)
    if (strncmp(words[i], name, length) == 0)
      return words[i][length] == '=' ? words[i] + length + 1 : words[i] + length;
  return NULL;
}

static unsigned number(int count, char **words, const char *name, unsigned otherwise) {
  const char *word = option(count, words, name);
  return word ? (unsigned)strtoul(word, NULL, 10) : otherwise;
}

int main(int count, char **words) {
  if (count < 2) {
    fprintf(stderr, "usage: forge OUT [NAME=VALUE]...\n");
    return 2;
  }
  state = number(count, words, "seed", 1) * 0x9e3779b97f4a7c15u + 1;
  frames = number(count, words, "frames", 40);
  version = number(count, words, "version", 0);
  rate = number(count, words, "rate", 0);
  kbits_wanted = number(count, words, "kbits", 0);
  checked = option(count, words, "crc") != NULL;
  free_format = option(count, words, "free") != NULL;
  if (option(count, words, "mode")) mode = option(count, words, "mode");
  if (option(count, words, "blocks")) blocks = option(count, words, "blocks");
  if (frames > MOST_FRAMES || version > 2 || rate > 2) return 2;
  mp3_bands_prepare();
  areas = calloc(frames + 1, 8192);
  if (!areas) return 2;

  coded_part before[2] = {{.block = MP3_LONG}, {.block = MP3_LONG}};
  unsigned held = 0, area = 0, most_back = version == 0 ? 511 : 255, free_area = 700;
  for (unsigned n = 0; n < frames; n++) {
    frame *f = &made[n];
    unsigned code = strcmp(mode, "mono") == 0     ? MP3_MONO
                    : strcmp(mode, "stereo") == 0 ? MP3_STEREO
                    : strcmp(mode, "dual") == 0   ? MP3_DUAL
                                                  : MP3_JOINT;
    unsigned extension = strcmp(mode, "ms") == 0          ? MP3_MID_SIDE
                         : strcmp(mode, "intensity") == 0 ? MP3_INTENSITY
                         : strcmp(mode, "both") == 0      ? 3
                         : code == MP3_JOINT              ? any(4)
                                                          : 0;
    unsigned channels = code == MP3_MONO ? 1 : 2, granules = version == 0 ? 2 : 1;
    mp3_header header = {.version = (uint8_t)version, .channels = (uint8_t)channels};
    unsigned side_bytes = mp3_side_bytes(&header);
    unsigned head = MP3_HEADER_BYTES + (checked ? MP3_CHECK_BYTES : 0) + side_bytes;

    /* How much room this frame has, and so how much may be said. */
    unsigned padding = any(2), chosen = 14, least = kbits_wanted ? 0 : 1;
    mp3_header read;
    for (unsigned index = 1; index < 15 && kbits_wanted; index++) {
      write_header(f->head, index, padding, code, extension);
      if (mp3_header_read(f->head, &read) && read.kbits == kbits_wanted) chosen = index;
    }
    write_header(f->head, chosen, padding, code, extension);
    mp3_header_read(f->head, &read);
    unsigned room = free_format ? free_area + padding - head : read.bytes - head;
    unsigned most = 8 * (held + room) / (channels * granules);
    if (most > 4095) most = 4095;

    bit_writer main_data = {.at = 0};
    coded_part parts[2][2];
    unsigned shared[2] = {any(4) ? 0 : any(16), any(4) ? 0 : any(16)};
    for (unsigned granule = 0; granule < granules; granule++)
      for (unsigned channel = 0; channel < channels; channel++) {
        coded_part *part = &parts[granule][channel];
        memset(part, 0, sizeof *part);
        if (channel == 1 && code == MP3_JOINT) /* joint channels have the same shape */
          part->block = parts[granule][0].block, part->mixed = parts[granule][0].mixed;
        else
          choose_shape(part, &before[channel]);
        if (granule == 1 && shared[channel] &&
            (part->block == MP3_SHORT) != (parts[0][channel].block == MP3_SHORT))
          shared[channel] = 0; /* nothing that could be shared */
        if (granule == 1 && part->block == MP3_SHORT) shared[channel] = 0;
        write_part(&main_data, part, channel == 1 && extension & MP3_INTENSITY,
                   granule ? shared[channel] : 0, most);
      }
    unsigned bytes = (main_data.at + 7) / 8;
    if (bytes > held + room) {
      fprintf(stderr, "forge: %u bytes do not fit into %u\n", bytes, held + room);
      return 1;
    }
    if (least && !free_format) /* the lowest bit rate that has room, or one above */
      for (unsigned index = 1; index < 14; index++) {
        write_header(f->head, index, padding, code, extension);
        mp3_header_read(f->head, &read);
        if (read.bytes > head && read.bytes - head + held >= bytes && any(2)) {
          chosen = index;
          room = read.bytes - head;
          break;
        }
      }

    write_header(f->head, free_format ? 0 : chosen, padding, code, extension);
    bit_writer side = {.at = 0};
    put(&side, held, version == 0 ? 9 : 8);
    put(&side, 0, version == 0 ? (channels == 1 ? 5 : 3) : channels);
    for (unsigned channel = 0; channel < channels && version == 0; channel++)
      put(&side, shared[channel], 4);
    for (unsigned granule = 0; granule < granules; granule++)
      for (unsigned channel = 0; channel < channels; channel++)
        write_side(&side, &parts[granule][channel]);
    memcpy(f->head + head - side_bytes, side.bytes, side_bytes);
    f->head_bytes = head;
    if (checked) sum_up(f);

    f->area = area;
    f->area_bytes = room;
    memcpy(areas + area - held, main_data.bytes, bytes);
    area += room;
    held = held + room - bytes;
    if (held > most_back) held = most_back;
    if (any(5) == 0) held = any(held + 1); /* some bytes that belong to no frame */
  }

  FILE *file = fopen(words[1], "wb");
  if (!file) {
    perror(words[1]);
    return 1;
  }
  for (unsigned n = 0; n < frames; n++) {
    fwrite(made[n].head, 1, made[n].head_bytes, file);
    fwrite(areas + made[n].area, 1, made[n].area_bytes, file);
  }
  free(areas);
  return fclose(file) == 0 ? 0 : 1;
}
