/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The third form, streaming RPC, with the same partition: a transmitter, a pipe for each half of the
 * subbands, each on a unit of its own, and a sink.
 *
 *                  ┌▶ half 0 ─┐
 *   transmitter ───┤          ├──▶ sink
 *                  └▶ half 1 ─┘
 *
 * No stage waits for a reply: while the halves of one granule are transformed, the transmitter reads the
 * next ones, and the sink filters the previous ones. In the paper the sink is on the transmitter's unit;
 * here it is on the other unit by default, which divides the work better. */
#include "entropy.h"
#include "halves.h"
#include "machine.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

enum {
  HALVES = 2,
  CAPACITY = 128
}; /* capacity in granules: more than pass during a write to the file */

typedef struct state {
  mp3_decoder *decoder;
  lvd_stream *there[HALVES], *back[HALVES];
  /* Of the transmitter. */
  mp3_packet packet;
  mp3_spectrum spectrum[2][2];
  /* Of the halves. */
  mp3_hybrid hybrid[HALVES][2];
  /* Of the sink. */
  mp3_subbands subbands[2];
  mp3_synthesis synthesis[2];
  mp3_sound sound[2];
} state;

typedef struct half_call {
  state *s;
  unsigned half;
} half_call;

static lvd_status mp3_stream_transmitter(lvd_call_frame *frame) {
  state *s = *(state *const *)frame->argument;
  mp3_decoder *decoder = s->decoder;
  while (mp3_source_next(&decoder->source, &s->packet)) {
    unsigned bad = mp3_entropy(&s->packet, decoder->channels, s->spectrum);
    mp3_decoder_count(decoder, mp3_verdict_of(&s->packet, bad));
    for (unsigned granule = 0; granule < s->packet.header.granules; granule++)
      for (unsigned half = 0; half < HALVES; half++) {
        void *span;
        lvd_status status = lvd_stream_put_span(s->there[half], 1, &span);
        if (status != LVD_OK) return status;
        mp3_half_cut(s->spectrum[granule], decoder->channels, half, (mp3_half *)span);
        lvd_put_done(&s->there[half]->producer, 1);
        lvd_stream_push(s->there[half]);
        mp3_machine_claim(&s->there[half]->producer);
      }
  }
  return LVD_OK;
}
LVD_PROCEDURE(mp3_stream_transmitter)

static lvd_status mp3_stream_half(lvd_call_frame *frame) {
  const half_call *call = (const half_call *)frame->argument;
  state *s = call->s;
  lvd_stream *in = s->there[call->half], *out = s->back[call->half];
  for (;;) {
    const void *from;
    void *to;
    lvd_status status = lvd_stream_get_span(in, 1, &from);
    if (status == LVD_E_EOF) return LVD_OK;
    if (status != LVD_OK || (status = lvd_stream_put_span(out, 1, &to)) != LVD_OK) return status;
    mp3_machine_claim(&out->producer);
    lvd_get_done(&in->consumer, 1);
    mp3_machine_expect(&in->consumer);
    mp3_half_run(s->hybrid[call->half], (const mp3_half *)from, (mp3_half_subbands *)to);
    lvd_stream_pop(in);
    lvd_put_done(&out->producer, 1);
    lvd_stream_push(out);
  }
}
LVD_PROCEDURE(mp3_stream_half)

static lvd_status mp3_stream_sink(lvd_call_frame *frame) {
  state *s = *(state *const *)frame->argument;
  mp3_decoder *decoder = s->decoder;
  for (;;) {
    for (unsigned half = 0; half < HALVES; half++) {
      const void *from;
      lvd_status status = lvd_stream_get_span(s->back[half], 1, &from);
      if (status == LVD_E_EOF) return LVD_OK;
      if (status != LVD_OK) return status;
      mp3_half_join((const mp3_half_subbands *)from, decoder->channels, half, s->subbands);
      lvd_get_done(&s->back[half]->consumer, 1);
      lvd_stream_pop(s->back[half]);
      mp3_machine_expect(&s->back[half]->consumer);
    }
    for (unsigned channel = 0; channel < decoder->channels; channel++)
      mp3_synthesis_run(&s->synthesis[channel], &s->subbands[channel], &s->sound[channel]);
    mp3_wav_write(&decoder->wav, (const mp3_sound *[]){&s->sound[0], &s->sound[1]});
  }
}
LVD_PROCEDURE(mp3_stream_sink)

bool mp3_form_streaming(mp3_decoder *decoder) {
  mp3_machine machine;
  state *s = aligned_alloc(_Alignof(state), sizeof *s);
  if (!s) {
    fprintf(stderr, "mp3: no memory\n");
    return false;
  }
  memset(s, 0, sizeof *s);
  s->decoder = decoder;
  if (mp3_machine_open(&machine, &decoder->tuning)) {
    for (unsigned half = 0; half < HALVES; half++) {
      s->there[half] = mp3_machine_stream(&machine, half ? "to half 1" : "to half 0",
                                          sizeof(mp3_half), CAPACITY);
      s->back[half] = mp3_machine_stream(&machine, half ? "from half 1" : "from half 0",
                                         sizeof(mp3_half_subbands), CAPACITY);
    }
    mp3_decoder_begin(decoder);
    mp3_machine_call(&machine, decoder->tuning.sink, "mp3_stream_sink", &s, sizeof s, 2);
    for (unsigned half = 0; half < HALVES; half++)
      mp3_machine_call(&machine, half, "mp3_stream_half", &(half_call){s, half}, sizeof(half_call),
                       1);
    mp3_machine_call(&machine, 0, "mp3_stream_transmitter", &s, sizeof s, 0);
    mp3_machine_wait(&machine);
    mp3_decoder_end(decoder);
  }
  bool good = mp3_machine_close(&machine);
  free(s);
  return good;
}
