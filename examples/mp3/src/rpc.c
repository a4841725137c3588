/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The second form, plain RPC: the decoder calls a procedure for each half of the subbands, each on a
 * unit of its own, and waits for both, granule by granule. */
#include "entropy.h"
#include "inverse.h"
#include "machine.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

enum { UNITS = MP3_INVERSES };

typedef struct state {
  mp3_decoder *decoder;
  mp3_machine *machine;
  mp3_packet packet;
  mp3_spectrum spectrum[2][2];
  mp3_half half;
  mp3_half_subbands back;
  mp3_subbands subbands[2];
  mp3_synthesis synthesis[2];
  mp3_sound sound[2];
} state;

static lvd_status granule(state *s, const mp3_spectrum *spectrum) {
  unsigned channels = s->decoder->channels;
  const lvd_call_options options = {.result_room = sizeof(mp3_half_subbands)};
  lvd_call *call[UNITS];
  unsigned begun = 0;
  lvd_status status = LVD_OK;
  for (; begun < UNITS && status == LVD_OK; begun += status == LVD_OK) {
    mp3_half_cut(spectrum, channels, begun, &s->half);
    lvd_unit *unit = mp3_machine_inverse(s->machine, begun);
    status = lvd_call_start(unit, "mp3_inverse", &s->half, sizeof s->half, &options, &call[begun]);
  }
  for (unsigned i = 0; i < begun; i++) {
    size_t size = sizeof s->back;
    lvd_status one = lvd_call_wait(call[i], &s->back, &size, -1, NULL);
    if (one != LVD_OK) status = one;
    mp3_half_join(&s->back, channels, i, s->subbands);
  }
  return status;
}

static lvd_status mp3_rpc_main(lvd_call_frame *frame) {
  state *s = *(state *const *)frame->argument;
  mp3_decoder *decoder = s->decoder;
  while (mp3_source_next(&decoder->source, &s->packet)) {
    unsigned bad = mp3_entropy(&s->packet, decoder->channels, s->spectrum);
    mp3_decoder_count(decoder, mp3_verdict_of(&s->packet, bad));
    for (unsigned i = 0; i < s->packet.header.granules; i++) {
      lvd_status status = granule(s, s->spectrum[i]);
      if (status != LVD_OK) return status;
      for (unsigned channel = 0; channel < decoder->channels; channel++)
        mp3_synthesis_run(&s->synthesis[channel], &s->subbands[channel], &s->sound[channel]);
      mp3_wav_write(&decoder->wav, (const mp3_sound *[]){&s->sound[0], &s->sound[1]});
    }
  }
  return LVD_OK;
}
LVD_PROCEDURE(mp3_rpc_main)

/* The unit of another processor makes its tables. */
static void begin_far(mp3_machine *machine) {
  lvd_call *call;
  lvd_status status = lvd_call_start(machine->far, "mp3_inverse_begin", NULL, 0, NULL, &call);
  if (status == LVD_OK) status = lvd_call_wait(call, NULL, NULL, -1, NULL);
  mp3_machine_check(machine, status, "mp3_inverse_begin");
}

bool mp3_form_rpc(mp3_decoder *decoder) {
  mp3_machine machine;
  state *s = aligned_alloc(_Alignof(state), sizeof *s);
  if (!s) {
    fprintf(stderr, "mp3: no memory\n");
    return false;
  }
  memset(s, 0, sizeof *s);
  s->decoder = decoder;
  s->machine = &machine;
  if (mp3_machine_open(&machine, &decoder->tuning)) {
    mp3_decoder_begin(decoder);
    if (decoder->tuning.unit) begin_far(&machine);
    mp3_machine_call(&machine, 0, "mp3_rpc_main", &s, sizeof s, 0);
    mp3_machine_wait(&machine);
    mp3_decoder_end(decoder);
  }
  bool good = mp3_machine_close(&machine);
  free(s);
  return good;
}
