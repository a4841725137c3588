/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The polyphase synthesis filter bank: from time slots of 32 subband samples to sound. */
#ifndef MP3_SYNTHESIS_H
#define MP3_SYNTHESIS_H

#include "mp3.h"

enum {
  MP3_PAST = 15,                      /* slots that the window looks back */
  MP3_ROWS = MP3_PAST + 3 * MP3_SLOTS /* kept, so that the past is moved every third granule only */
};

/* What one channel keeps: the cosine transforms of the last slots. */
typedef struct mp3_synthesis {
  /* Of a transform C of 32 values: C[16] to C[31], then C[16] down to C[1]; and C[0]. */
  _Alignas(16) float row[MP3_ROWS][MP3_SUBBANDS];
  float zeroth[MP3_ROWS];
  uint32_t used; /* rows filled behind the past */
} mp3_synthesis;

void mp3_synthesis_run(mp3_synthesis *synthesis, const mp3_subbands *subbands, mp3_sound *sound);

/* To be called once, before anything else. */
void mp3_synthesis_prepare(void);

#endif
