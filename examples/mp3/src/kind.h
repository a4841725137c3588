/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A file may go on with another kind of stream, of another layer or sampling rate: joined from two,
 * for instance. What is written has one rate, so that part is left out; but not as if it were damage. */
#ifndef MP3_KIND_H
#define MP3_KIND_H

#include "mp3.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct mp3_bytes {
  const uint8_t *at;
  size_t size;
} mp3_bytes;

typedef struct mp3_kind {
  size_t offset;
  char name[96]; /* which it is, and which the first one is */
} mp3_kind;

/* Does another kind than the first one's begin between these places? */
bool mp3_other_kind(mp3_bytes bytes, size_t from, size_t to, const mp3_header *first,
                    mp3_kind *kind);

#endif
