/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "source.h"
#include "frame.h"
#include <stdio.h>
#include <string.h>

/* Reads the header at `at`, if one is there that agrees with the stream's first. */
static bool header_at(const mp3_source *source, const mp3_header *first, size_t at,
                      mp3_header *header) {
  return at + MP3_HEADER_BYTES <= source->size && mp3_header_read(source->bytes + at, header) &&
         (!first || mp3_header_agrees(first, header));
}

/* In free format the frame ends where the next one begins, and the one after that as far on. */
static uint32_t measure_free(const mp3_source *source, size_t at, const mp3_header *header) {
  mp3_header next, third;
  uint32_t least = MP3_HEADER_BYTES + mp3_side_bytes(header);
  for (uint32_t bytes = least; bytes <= MP3_FRAME_BYTES; bytes++) {
    if (!header_at(source, header, at + bytes, &next) || bytes <= header->padding) continue;
    uint32_t base = bytes - header->padding;
    if (header_at(source, header, at + bytes + base + next.padding, &third)) return base;
    if (at + bytes + base + next.padding == source->size) return base;
  }
  return 0;
}

/* The length of the frame; 0 if that can't be. */
static uint32_t frame_bytes(const mp3_source *source, const mp3_header *header) {
  uint32_t bytes = header->bytes ? header->bytes : source->free_bytes + header->padding;
  uint32_t least =
      MP3_HEADER_BYTES + (header->checked ? MP3_CHECK_BYTES : 0) + mp3_side_bytes(header);
  return bytes >= least && bytes <= MP3_FRAME_BYTES ? bytes : 0;
}

/* Finds the next frame from `at` on: a header that is followed by another one, or by the end. */
static bool find(mp3_source *source, const mp3_header *first, size_t at, size_t *found) {
  mp3_header header, next;
  for (; at + MP3_HEADER_BYTES <= source->size; at++) {
    const uint8_t *sync = memchr(source->bytes + at, 0xff, source->size - at);
    if (!sync) return false;
    at = (size_t)(sync - source->bytes);
    if (!header_at(source, first, at, &header)) continue;
    if (!header.kbits && !first && !(source->free_bytes = measure_free(source, at, &header)))
      continue;
    uint32_t bytes = frame_bytes(source, &header);
    if (!bytes || at + bytes > source->size) continue;
    if (at + bytes != source->size &&
        !mp3_tag_here(source->bytes + at + bytes, source->size - at - bytes) &&
        !header_at(source, &header, at + bytes, &next))
      continue;
    *found = at;
    return true;
  }
  return false;
}

bool mp3_source_open(mp3_source *source, const uint8_t *bytes, size_t size, mp3_report *report) {
  memset(source, 0, sizeof *source);
  source->bytes = bytes;
  source->size = mp3_without_end_tags(bytes, size);
  source->report = report;
  size_t at = 0, tag;
  while (at < source->size && (tag = mp3_tag_here(bytes + at, source->size - at))) at += tag;
  if (!find(source, NULL, at, &source->at)) return false;
  mp3_header_read(bytes + source->at, &source->first);
  if (source->at > at) mp3_report_say(report, at, 0, "these bytes are no frame; left out");
  uint32_t length = frame_bytes(source, &source->first);
  if (mp3_stream_info_read(bytes + source->at, &source->first, length, &source->info))
    source->at += length;
  return true;
}

/* Says if another kind of stream begins there; what is of it is no frame of this one. */
static bool leave_out(mp3_source *source, size_t from, size_t to) {
  mp3_kind kind;
  char text[160];
  if (!mp3_other_kind((mp3_bytes){source->bytes, source->size}, from, to, &source->first, &kind))
    return false;
  if (!source->left_out.name[0]) source->left_out = kind;
  snprintf(text, sizeof text, "%s another kind of stream (%s); left out",
           to == source->size ? "from here on it is" : "here begins", kind.name);
  mp3_report_say(source->report, kind.offset, source->frame, text);
  if (to == source->size) source->at = source->size;
  return true;
}

/* Goes to the next frame, over tags and damage. Sets its header and length. */
static bool go_on(mp3_source *source, mp3_header *header, uint32_t *bytes) {
  size_t tag;
  while (source->at < source->size &&
         (tag = mp3_tag_here(source->bytes + source->at, source->size - source->at)))
    source->at += tag;
  if (source->at >= source->size) return false;
  *bytes = 0;
  if (header_at(source, &source->first, source->at, header)) *bytes = frame_bytes(source, header);
  if (*bytes && source->at + *bytes <= source->size) return true;

  size_t damage = source->at, found;
  source->held = 0;
  bool more = find(source, &source->first, damage + 1, &found);
  if (leave_out(source, damage, more ? found : source->size) && !more) return false;
  if (more) {
    mp3_report_say(source->report, damage, source->frame, "no frame here; went on at the next one");
    source->at = found;
    mp3_header_read(source->bytes + found, header);
    *bytes = frame_bytes(source, header);
    return true;
  }
  const char *what = "no frame from here to the end";
  if (*bytes) what = "the file ends within this frame";
  mp3_report_say(source->report, damage, source->frame, what);
  source->at = source->size;
  return false;
}

/* Takes what the frame's parts need out of the reservoir into the packet. */
static void take_main(mp3_source *source, mp3_packet *packet, unsigned back, unsigned before) {
  uint32_t bits = 0;
  for (unsigned granule = 0; granule < packet->header.granules; granule++)
    for (unsigned channel = 0; channel < packet->header.channels; channel++)
      bits += packet->part[granule][channel].bits;
  const char *wrong = NULL;
  if (back > before) {
    wrong = source->frame == 0 ? "begins before the file does; silent"
                               : "begins in frames that are lost; silent";
  } else {
    unsigned from = before - back, have = source->held - from, need = (bits + 7) / 8;
    if (need > have) {
      wrong = "its data do not fit; partly silent";
      bits = 8 * have;
      need = have;
    }
    memcpy(packet->main, source->reservoir + from, need);
    memset(packet->main + need, 0, MP3_SLACK);
    packet->main_bits = bits;
  }
  if (wrong) mp3_report_say(source->report, packet->offset, packet->frame, wrong);
  packet->lost = back > before;
}

bool mp3_source_next(mp3_source *source, mp3_packet *packet) {
  uint32_t bytes;
  unsigned back;
  if (!go_on(source, &packet->header, &bytes)) return false;
  const mp3_header *header = &packet->header;
  const uint8_t *frame = source->bytes + source->at;
  packet->offset = source->at;
  packet->frame = source->frame;
  packet->main_bits = 0;
  source->at += bytes;

  unsigned begin = MP3_HEADER_BYTES + (header->checked ? MP3_CHECK_BYTES : 0);
  const char *wrong = NULL;
  if (!mp3_side_read(frame + begin, packet, &back))
    wrong = "its side information is damaged; silent";
  if (header->checked) {
    bool holds = mp3_check_holds(frame, header);
    /* An encoder that gets no checksum right is no reason to be silent. */
    if (!holds && source->check_held) wrong = "its checksum is wrong; silent";
    source->check_held |= holds;
  }

  /* Only the last bytes can be asked for. */
  begin += mp3_side_bytes(header);
  if (source->held > MP3_RESERVOIR) {
    memmove(source->reservoir, source->reservoir + source->held - MP3_RESERVOIR, MP3_RESERVOIR);
    source->held = MP3_RESERVOIR;
  }
  unsigned before = source->held;
  memcpy(source->reservoir + before, frame + begin, bytes - begin);
  source->held += bytes - begin;

  if (wrong) {
    mp3_report_say(source->report, packet->offset, packet->frame, wrong);
    packet->lost = 1;
    memset(packet->part, 0, sizeof packet->part);
  } else {
    take_main(source, packet, back, before);
  }
  source->frame++;
  return true;
}
