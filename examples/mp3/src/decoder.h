/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What all forms of the decoder share: an open stream, its output, and how it went. */
#ifndef MP3_DECODER_H
#define MP3_DECODER_H

#include "profile.h"
#include "source.h"
#include "wav.h"

/* Options of the forms that run on Levada. */
typedef struct mp3_tuning {
  const char *unit;   /* the unit of the rpc form's inverse MDCT; null: the cores */
  unsigned workers;   /* 0: one per core */
  unsigned threshold; /* elements that wake a receiver; 0: chosen by measurement */
  unsigned sink;      /* the unit of the streaming form's sink: 0 is the transmitter's */
  bool sleep;         /* idle workers sleep at once, without spinning */
} mp3_tuning;

typedef struct mp3_decoder {
  mp3_source source;
  mp3_wav wav;
  unsigned channels;
  mp3_tuning tuning;
  mp3_profile profile;
  mp3_report damage;  /* codes that cannot be read; what the source finds it reports itself */
  uint64_t frames;    /* decoded */
  double begun, took; /* seconds */
} mp3_decoder;

/* What the entropy stage found of a packet, to be counted in order. */
typedef struct mp3_verdict {
  uint64_t offset;
  uint32_t frame;
  uint8_t lost; /* nothing of it was there; that is reported already */
  uint8_t damaged;
} mp3_verdict;

mp3_verdict mp3_verdict_of(const mp3_packet *packet, unsigned bad);

/* Counts a frame. */
void mp3_decoder_count(mp3_decoder *decoder, mp3_verdict verdict);

/* All that is decoded is decoded between these two. */
void mp3_decoder_begin(mp3_decoder *decoder);
void mp3_decoder_end(mp3_decoder *decoder);

/* A form reads the source to its end and writes the WAV. False with a message printed if it
 * cannot. */
typedef bool mp3_form(mp3_decoder *decoder);

mp3_form mp3_form_sequential, mp3_form_rpc, mp3_form_streaming, mp3_form_pipeline;

#endif
