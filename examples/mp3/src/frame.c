/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "frame.h"
#include "bands.h"
#include "bits.h"

static const uint16_t kbits[2][15] = {
    {0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320},
    {0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160},
};
static const uint16_t rates[3] = {44100, 48000, 32000};

bool mp3_header_read(const uint8_t *bytes, mp3_header *header) {
  static const uint8_t versions[4] = {2, 3, 1, 0};
  unsigned version = versions[bytes[1] >> 3 & 3], layer = bytes[1] >> 1 & 3;
  unsigned rate = bytes[2] >> 2 & 3, bits = bytes[2] >> 4;
  if (bytes[0] != 0xff || bytes[1] >> 5 != 7) return false;
  if (version == 3 || layer != 1 || rate == 3 || bits == 15) return false;
  if ((bytes[3] & 3) == 2) return false; /* an emphasis that does not exist */
  *header = (mp3_header){
      .rate = (uint32_t)rates[rate] >> version,
      .kbits = kbits[version != 0][bits],
      .version = (uint8_t)version,
      .rate_row = (uint8_t)(3 * version + rate),
      .checked = !(bytes[1] & 1),
      .padding = bytes[2] >> 1 & 1,
      .mode = bytes[3] >> 6,
      .channels = bytes[3] >> 6 == MP3_MONO ? 1 : 2,
      .granules = version == 0 ? 2 : 1,
  };
  if (header->mode == MP3_JOINT) header->extension = bytes[3] >> 4 & 3;
  if (header->kbits)
    header->bytes = 72000u * header->granules * header->kbits / header->rate + header->padding;
  return true;
}

bool mp3_header_agrees(const mp3_header *a, const mp3_header *b) {
  return a->rate_row == b->rate_row && (a->kbits == 0) == (b->kbits == 0);
}

unsigned mp3_side_bytes(const mp3_header *header) {
  if (header->version == 0) return header->channels == 1 ? 17 : 32;
  return header->channels == 1 ? 9 : 17;
}

/* Regions of the big values that the side information does not spell out. */
static void fixed_regions(const mp3_header *header, mp3_part *part) {
  unsigned row = header->rate_row;
  if (part->block_type == MP3_SHORT)
    part->region[0] = row == 8 ? 72 : 36;
  else
    part->region[0] = (uint16_t)mp3_bands_long(row, 8);
  part->region[1] = MP3_LINES;
}

static bool part_read(mp3_bits *bits, const mp3_header *header, mp3_part *part) {
  part->bits = (uint16_t)mp3_bits_get(bits, 12);
  part->big_values = (uint16_t)mp3_bits_get(bits, 9);
  part->global_gain = (uint8_t)mp3_bits_get(bits, 8);
  part->scalefactor_compress = (uint16_t)mp3_bits_get(bits, header->version == 0 ? 4 : 9);
  part->block_type = MP3_LONG;
  part->mixed = 0;
  if (mp3_bits_get(bits, 1)) { /* window switching */
    part->block_type = (uint8_t)mp3_bits_get(bits, 2);
    part->mixed = (uint8_t)mp3_bits_get(bits, 1);
    for (unsigned region = 0; region < 2; region++)
      part->table[region] = (uint8_t)mp3_bits_get(bits, 5);
    part->table[2] = 0;
    for (unsigned window = 0; window < 3; window++)
      part->subblock_gain[window] = (uint8_t)mp3_bits_get(bits, 3);
    if (part->block_type == MP3_LONG) return false;
    if (part->block_type != MP3_SHORT) memset(part->subblock_gain, 0, sizeof part->subblock_gain);
    fixed_regions(header, part);
  } else {
    for (unsigned region = 0; region < 3; region++)
      part->table[region] = (uint8_t)mp3_bits_get(bits, 5);
    unsigned first = mp3_bits_get(bits, 4) + 1, second = mp3_bits_get(bits, 3) + 1;
    part->region[0] = (uint16_t)mp3_bands_long(header->rate_row, first);
    part->region[1] = (uint16_t)mp3_bands_long(header->rate_row, first + second);
    memset(part->subblock_gain, 0, sizeof part->subblock_gain);
  }
  part->preflag = header->version == 0 ? (uint8_t)mp3_bits_get(bits, 1) : 0;
  part->coarse = (uint8_t)mp3_bits_get(bits, 1);
  part->count1_table = (uint8_t)mp3_bits_get(bits, 1);
  return part->big_values <= MP3_LINES / 2;
}

bool mp3_side_read(const uint8_t *bytes, mp3_packet *packet, unsigned *back) {
  const mp3_header *header = &packet->header;
  /* The last read looks at eight bytes: give it some behind the side information. */
  uint8_t side[32 + MP3_SLACK] = {0};
  memcpy(side, bytes, mp3_side_bytes(header));
  mp3_bits bits = {side, 0};
  uint8_t shared[2] = {0, 0};
  if (header->version == 0) {
    *back = mp3_bits_get(&bits, 9);
    mp3_bits_get(&bits, header->channels == 1 ? 5 : 3); /* private */
    for (unsigned channel = 0; channel < header->channels; channel++)
      shared[channel] = (uint8_t)mp3_bits_get(&bits, 4);
  } else {
    *back = mp3_bits_get(&bits, 8);
    mp3_bits_get(&bits, header->channels); /* private */
  }
  bool good = true;
  for (unsigned granule = 0; granule < header->granules; granule++)
    for (unsigned channel = 0; channel < header->channels; channel++) {
      mp3_part *part = &packet->part[granule][channel];
      good &= part_read(&bits, header, part);
      part->shared = granule ? shared[channel] : 0;
    }
  return good;
}

bool mp3_check_holds(const uint8_t *bytes, const mp3_header *header) {
  /* The polynomial x^16 + x^15 + x^2 + 1 over the header's last two bytes and the side
   * information; what stands between them is the checksum. */
  uint16_t sum = 0xffff;
  unsigned end = MP3_HEADER_BYTES + MP3_CHECK_BYTES + mp3_side_bytes(header);
  for (unsigned at = 2; at < end; at++) {
    if (at == MP3_HEADER_BYTES) at += MP3_CHECK_BYTES;
    sum ^= (uint16_t)(bytes[at] << 8);
    for (unsigned bit = 0; bit < 8; bit++)
      sum = (uint16_t)(sum & 0x8000 ? sum << 1 ^ 0x8005 : sum << 1);
  }
  return sum == (bytes[4] << 8 | bytes[5]);
}
