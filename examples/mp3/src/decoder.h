/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What all forms of the decoder share: an open stream, its output, and how it went. */
#ifndef MP3_DECODER_H
#define MP3_DECODER_H

#include "profile.h"
#include "source.h"
#include "wav.h"

typedef struct mp3_decoder {
  mp3_source source;
  mp3_wav wav;
  mp3_report *report;
  unsigned channels;
  uint64_t frames; /* decoded */
  mp3_profile profile;
} mp3_decoder;

/* A form reads the source to its end and writes the WAV. False with a message printed if it
 * cannot. */
typedef bool mp3_form(mp3_decoder *decoder);

/* Counts the frame of a packet, of which `bad` granules of a channel could not be read. */
void mp3_decoder_count(mp3_decoder *decoder, const mp3_packet *packet, unsigned bad);

mp3_form mp3_form_sequential;

#endif
