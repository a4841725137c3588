/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The last stage: sound into a WAV file, of 16-bit whole numbers or of 32-bit floats. The file has
 * its name only once it is whole. */
#ifndef MP3_WAV_H
#define MP3_WAV_H

#include "mp3.h"
#include <stdbool.h>
#include <stdio.h>

typedef struct mp3_wav {
  FILE *file;
  const char *path; /* "-" is the standard output */
  char *unfinished; /* the name until then */
  uint32_t rate;
  unsigned channels;
  bool floats;
  uint64_t skip, left; /* samples not to write, and then to write, of each channel */
  uint64_t seen, all; /* samples given; if there are more than `all`, all that follow are written */
  uint64_t written;
  bool failed;
} mp3_wav;

/* Each says false, with errno set, if the file cannot be written. */
bool mp3_wav_open(mp3_wav *wav, const char *path, uint32_t rate, unsigned channels, bool floats);

/* The bytes that a granule takes in the file. */
size_t mp3_wav_bytes(const mp3_wav *wav);
/* A granule of each channel, as it will lie in the file. For any thread. */
void mp3_wav_convert(const mp3_wav *wav, const mp3_sound *const sound[2], void *granule);
/* Writes a granule that has been converted, but for what is to be skipped. */
void mp3_wav_put(mp3_wav *wav, const void *granule);
/* Both. */
void mp3_wav_write(mp3_wav *wav, const mp3_sound *const sound[2]);

bool mp3_wav_close(mp3_wav *wav);

#endif
