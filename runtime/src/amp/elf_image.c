/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Images for a processor behind a window, ELF files or raw ones, read into contiguous bytes. The
 * contents of a file are checked before they are used. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

enum { ELF_HEADER_BYTES = 64, PT_LOAD_TYPE = 1, SEGMENTS_MAX = 64 };
enum { IMAGE_BYTES_MAX = 64 << 20 };

static uint64_t word(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int i = bytes - 1; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

/* Offsets in ELF files of 32 and of 64 bits: in the file header, and in a program header. */
typedef struct format {
  uint32_t bits;
  int word; /* bytes of an address */
  int entry, parts, part_size, count;
  uint64_t part; /* bytes of a program header */
  int offset, address, size, memory;
} format;

static const format formats[2] = {{32, 4, 24, 28, 42, 44, 32, 4, 12, 16, 20},
                                  {64, 8, 24, 32, 54, 56, 56, 8, 24, 32, 40}};

typedef struct part {
  uint64_t offset, address, size, memory;
} part;

static lvd_status part_of(const format *f, const unsigned char *at, size_t size, part *p) {
  *p = (part){word(at + f->offset, f->word), word(at + f->address, f->word),
              word(at + f->size, f->word), word(at + f->memory, f->word)};
  if (p->offset > size || p->size > size - p->offset)
    return lvd_window_refuse(LVD_E_ARGUMENT, "the image is cut off: a part of it is not there");
  if (p->memory < p->size || p->address > UINT64_MAX - p->memory)
    return lvd_window_refuse(LVD_E_ARGUMENT, "the image is damaged: a part of it has no place");
  return LVD_OK;
}

static lvd_status flatten(const unsigned char *file, size_t size, const lvd_board *board,
                          lvd_image *out) {
  if (size < ELF_HEADER_BYTES) return lvd_window_refuse(LVD_E_ARGUMENT, "the image is cut off");
  const format *f = file[4] == 1 || file[4] == 2 ? &formats[file[4] - 1] : NULL;
  if (!f || file[5] != 1 || (board->machine && word(file + 18, 2) != board->machine) ||
      (board->bits && f->bits != board->bits))
    return lvd_window_refuse(LVD_E_ABI, "the image is for another processor: the window's takes %s",
                             board->takes);
  uint64_t at = word(file + f->parts, f->word), count = word(file + f->count, 2);
  if (word(file + 16, 2) != 2 || word(file + f->part_size, 2) != f->part || count == 0 ||
      count > SEGMENTS_MAX)
    return lvd_window_refuse(LVD_E_ARGUMENT,
                             "the image is no program: link it without a dynamic loader, -static");
  if (at > size || count * f->part > size - at)
    return lvd_window_refuse(LVD_E_ARGUMENT,
                             "the image is cut off: its table of parts is not there");
  uint64_t low = UINT64_MAX, high = 0;
  part p;
  for (int fill = 0; fill < 2; fill++) {
    for (uint64_t i = 0; i < count; i++) {
      const unsigned char *header = file + at + i * f->part;
      if (word(header, 4) != PT_LOAD_TYPE) continue;
      lvd_status status = part_of(f, header, size, &p);
      if (status != LVD_OK) return status;
      if (p.size == 0) continue;
      if (fill) memcpy(out->bytes + (p.address - low), file + p.offset, p.size);
      if (p.address < low) low = p.address;
      if (p.address + p.size > high) high = p.address + p.size;
    }
    if (fill) break;
    if (high <= low) return lvd_window_refuse(LVD_E_ARGUMENT, "the image is empty");
    if (high - low > IMAGE_BYTES_MAX)
      return lvd_window_refuse(LVD_E_ARGUMENT, "the image is larger than %d MiB",
                               IMAGE_BYTES_MAX >> 20);
    out->size = (size_t)(high - low);
    if (!(out->bytes = calloc(1, out->size))) return LVD_E_MEMORY;
  }
  out->address = low;
  out->entry = word(file + f->entry, f->word);
  if (out->entry >= low && out->entry < high) return LVD_OK;
  return lvd_window_refuse(LVD_E_ARGUMENT, "the image begins outside of itself");
}

lvd_status lvd_image_parse(const unsigned char *file, size_t size, const lvd_board *board,
                           lvd_image *out) {
  *out = (lvd_image){0};
  if (size == 0) return lvd_window_refuse(LVD_E_ARGUMENT, "the image is empty");
  lvd_status status;
  if (size >= 4 && memcmp(file, "\177ELF", 4) == 0) {
    status = flatten(file, size, board, out);
  } else if ((out->bytes = malloc(size))) {
    memcpy(out->bytes, file, out->size = size);
    return LVD_OK;
  } else {
    status = LVD_E_MEMORY;
  }
  if (status != LVD_OK) lvd_image_free(out);
  return status;
}

lvd_status lvd_image_read(const char *name, const lvd_board *board, lvd_image *out) {
  if (lvd_os_file_is_special(name)) /* for example a pipe: reading it could block without limit */
    return lvd_window_refuse(LVD_E_ARGUMENT, "the image %s is no file", name);
  unsigned char *bytes = malloc(IMAGE_BYTES_MAX + 1);
  size_t size = 0;
  lvd_status status =
      bytes ? lvd_os_file_read_start(name, bytes, IMAGE_BYTES_MAX + 1, &size) : LVD_E_MEMORY;
  if (status == LVD_E_NOT_FOUND)
    lvd_window_refuse(status, "the image %s cannot be opened", name);
  else if (status == LVD_E_SYSTEM)
    status = lvd_window_refuse(LVD_E_ARGUMENT, "the image %s cannot be read", name);
  else if (size > IMAGE_BYTES_MAX)
    status = lvd_window_refuse(LVD_E_ARGUMENT, "the image %s is larger than %d MiB", name,
                               IMAGE_BYTES_MAX >> 20);
  else if (bytes)
    status = lvd_image_parse(bytes, size, board, out);
  free(bytes);
  return status;
}

void lvd_image_free(lvd_image *image) {
  free(image->bytes);
  *image = (lvd_image){0};
}
