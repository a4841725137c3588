/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The first form: one stage after the other, frame by frame. */
#include "decoder.h"
#include "entropy.h"
#include "hybrid.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

/* All that is needed is here, so nothing is claimed while it runs. */
typedef struct state {
  mp3_packet packet;
  mp3_spectrum spectrum[2][2];
  mp3_hybrid hybrid[2];
  mp3_subbands subbands[2];
  mp3_synthesis synthesis[2];
  mp3_sound sound[2];
} state;

bool mp3_form_sequential(mp3_decoder *decoder) {
  state *s = aligned_alloc(_Alignof(state), sizeof *s);
  if (!s) {
    fprintf(stderr, "mp3: no memory\n");
    return false;
  }
  memset(s, 0, sizeof *s);
  mp3_profile *profile = &decoder->profile;
  mp3_decoder_begin(decoder);
  mp3_profile_start(profile);
  while (mp3_source_next(&decoder->source, &s->packet)) {
    mp3_profile_was(profile, MP3_STAGE_SOURCE);
    unsigned bad = mp3_entropy(&s->packet, decoder->channels, s->spectrum);
    mp3_decoder_count(decoder, mp3_verdict_of(&s->packet, bad));
    mp3_profile_was(profile, MP3_STAGE_ENTROPY);
    for (unsigned granule = 0; granule < s->packet.header.granules; granule++) {
      for (unsigned channel = 0; channel < decoder->channels; channel++) {
        const mp3_spectrum *spectrum = &s->spectrum[granule][channel];
        mp3_hybrid_run(&s->hybrid[channel], &spectrum->shape, 0, MP3_SUBBANDS, spectrum->line,
                       s->subbands[channel].slot[0], MP3_SUBBANDS);
      }
      mp3_profile_was(profile, MP3_STAGE_HYBRID);
      for (unsigned channel = 0; channel < decoder->channels; channel++)
        mp3_synthesis_run(&s->synthesis[channel], &s->subbands[channel], &s->sound[channel]);
      mp3_profile_was(profile, MP3_STAGE_SYNTHESIS);
      mp3_wav_write(&decoder->wav, (const mp3_sound *[]){&s->sound[0], &s->sound[1]});
      mp3_profile_was(profile, MP3_STAGE_WAV);
    }
  }
  mp3_decoder_end(decoder);
  free(s);
  return true;
}
