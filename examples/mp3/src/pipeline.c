/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fourth form: a pipeline of source, pipes and sink, as wide as the cores allow.
 *
 *              ┌▶ entropy 0 ─┬▶ channel 0 ─┐
 *   source ────┤      ⋮      │             ├──▶ sink
 *              └▶ entropy n ─┴▶ channel 1 ─┘
 *
 * Packets do not depend on each other, so there is an entropy pipe on each unit, and the source gives
 * a packet to the first that has room: a unit that has more to do elsewhere takes fewer. In which
 * order they went, the source tells the channels by a stream of its own. A channel's pipe has what
 * must go in order: hybrid and synthesis. Elements are whole frames. */
#include "entropy.h"
#include "hybrid.h"
#include "machine.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

enum { PACKETS = 4, FRAMES = 16, ORDERS = 1024 };

typedef struct frame_spectrum {
  mp3_spectrum granule[2];
  mp3_verdict verdict;
} frame_spectrum;

typedef struct frame_sound {
  mp3_sound granule[2];
  mp3_verdict verdict;
} frame_sound;

typedef struct state {
  mp3_decoder *decoder;
  unsigned width, channels, granules;
  lvd_stream *packets[MP3_MOST_UNITS];    /* source to entropy */
  lvd_stream *spectra[MP3_MOST_UNITS][2]; /* entropy to channel */
  lvd_stream *order[2];                   /* source to channel: which entropy pipe */
  lvd_stream *sounds[2];                  /* channel to sink */
  mp3_hybrid hybrid[2];
  mp3_synthesis synthesis[2];
  mp3_subbands subbands[2];
} state;

typedef struct pipe_call {
  state *s;
  unsigned index;
} pipe_call;

/* The pipe that has room first, beginning at `from`; or the one at `from`, when there is room. */
static lvd_status with_room(state *s, unsigned from, unsigned *which) {
  lvd_want want[MP3_MOST_UNITS];
  lvd_status status;
  for (unsigned i = 0; i < s->width; i++) {
    *which = (from + i) % s->width;
    status = lvd_stream_wait_room(s->packets[*which], 1, 0); /* only looks */
    if (status != LVD_E_TIME) return status;
    want[i] = (lvd_want){.room = &s->packets[*which]->put, .n = 1};
  }
  uint32_t first = 0;
  status = lvd_wait_any(want, s->width, -1, &first);
  *which = (from + first) % s->width;
  return status;
}

static lvd_status mp3_pipe_source(lvd_frame *frame) {
  state *s = *(state *const *)frame->argument;
  unsigned next = 0;
  void *span;
  for (;; next++) {
    lvd_status status = with_room(s, next % s->width, &next);
    if (status != LVD_OK) return status;
    lvd_stream *to = s->packets[next];
    if ((status = lvd_stream_put_span(to, 1, &span)) != LVD_OK) return status;
    if (!mp3_source_next(&s->decoder->source, (mp3_packet *)span)) return LVD_OK;
    lvd_put_done(&to->put, 1);
    lvd_stream_push(to);
    for (unsigned channel = 0; channel < s->channels; channel++) {
      uint32_t pipe = next;
      status = lvd_stream_put(s->order[channel], &pipe, sizeof pipe);
      if (status != LVD_OK) return status;
      lvd_stream_push(s->order[channel]);
    }
  }
}
LVD_PROCEDURE(mp3_pipe_source)

static lvd_status mp3_pipe_entropy(lvd_frame *frame) {
  const pipe_call *call = (const pipe_call *)frame->argument;
  state *s = call->s;
  lvd_stream *in = s->packets[call->index];
  mp3_spectrum spectrum[2][2];
  for (;;) {
    const void *from;
    lvd_status status = lvd_stream_get_span(in, 1, &from);
    if (status == LVD_E_ENDED) return LVD_OK;
    if (status != LVD_OK) return status;
    const mp3_packet *packet = (const mp3_packet *)from;
    mp3_verdict verdict = mp3_verdict_of(packet, mp3_entropy(packet, s->channels, spectrum));
    lvd_get_done(&in->get, 1);
    lvd_stream_pop(in);
    for (unsigned channel = 0; channel < s->channels; channel++) {
      lvd_stream *out = s->spectra[call->index][channel];
      void *to;
      if ((status = lvd_stream_put_span(out, 1, &to)) != LVD_OK) return status;
      frame_spectrum *one = (frame_spectrum *)to;
      for (unsigned granule = 0; granule < s->granules; granule++)
        one->granule[granule] = spectrum[granule][channel];
      one->verdict = verdict;
      lvd_put_done(&out->put, 1);
      lvd_stream_push(out);
    }
  }
}
LVD_PROCEDURE(mp3_pipe_entropy)

static lvd_status mp3_pipe_channel(lvd_frame *frame) {
  const pipe_call *call = (const pipe_call *)frame->argument;
  state *s = call->s;
  unsigned channel = call->index;
  mp3_subbands *subbands = &s->subbands[channel];
  for (;;) {
    uint32_t pipe;
    const void *from;
    void *to;
    lvd_status status = lvd_stream_get(s->order[channel], &pipe, sizeof pipe);
    if (status == LVD_E_ENDED) return LVD_OK;
    if (status != LVD_OK) return status;
    lvd_stream_pop(s->order[channel]);
    lvd_stream *in = s->spectra[pipe][channel], *out = s->sounds[channel];
    if ((status = lvd_stream_get_span(in, 1, &from)) != LVD_OK) return status;
    if ((status = lvd_stream_put_span(out, 1, &to)) != LVD_OK) return status;
    const frame_spectrum *spectra = (const frame_spectrum *)from;
    frame_sound *sounds = (frame_sound *)to;
    for (unsigned granule = 0; granule < s->granules; granule++) {
      const mp3_spectrum *spectrum = &spectra->granule[granule];
      mp3_hybrid_run(&s->hybrid[channel], &spectrum->shape, 0, MP3_SUBBANDS, spectrum->line,
                     subbands->slot[0], MP3_SUBBANDS);
      mp3_synthesis_run(&s->synthesis[channel], subbands, &sounds->granule[granule]);
    }
    sounds->verdict = spectra->verdict;
    lvd_get_done(&in->get, 1);
    lvd_stream_pop(in);
    lvd_put_done(&out->put, 1);
    lvd_stream_push(out);
  }
}
LVD_PROCEDURE(mp3_pipe_channel)

static lvd_status mp3_pipe_sink(lvd_frame *frame) {
  state *s = *(state *const *)frame->argument;
  for (;;) {
    const void *from[2] = {NULL, NULL};
    for (unsigned channel = 0; channel < s->channels; channel++) {
      lvd_status status = lvd_stream_get_span(s->sounds[channel], 1, &from[channel]);
      if (status == LVD_E_ENDED) return LVD_OK;
      if (status != LVD_OK) return status;
    }
    mp3_decoder_count(s->decoder, ((const frame_sound *)from[0])->verdict);
    for (unsigned granule = 0; granule < s->granules; granule++) {
      const mp3_sound *sound[2] = {NULL, NULL};
      for (unsigned channel = 0; channel < s->channels; channel++)
        sound[channel] = &((const frame_sound *)from[channel])->granule[granule];
      mp3_wav_write(&s->decoder->wav, sound);
    }
    for (unsigned channel = 0; channel < s->channels; channel++) {
      lvd_get_done(&s->sounds[channel]->get, 1);
      lvd_stream_pop(s->sounds[channel]);
    }
  }
}
LVD_PROCEDURE(mp3_pipe_sink)

static void make_streams(state *s, mp3_machine *machine) {
  static const char *const spectra[2] = {"spectra of channel 0", "spectra of channel 1"};
  static const char *const order[2] = {"order for channel 0", "order for channel 1"};
  static const char *const sounds[2] = {"sound of channel 0", "sound of channel 1"};
  for (unsigned i = 0; i < s->width; i++) {
    s->packets[i] = mp3_machine_stream(machine, "packets", sizeof(mp3_packet), PACKETS);
    for (unsigned channel = 0; channel < s->channels; channel++)
      s->spectra[i][channel] =
          mp3_machine_stream(machine, spectra[channel], sizeof(frame_spectrum), FRAMES);
  }
  for (unsigned channel = 0; channel < s->channels; channel++) {
    s->order[channel] = mp3_machine_stream(machine, order[channel], sizeof(uint32_t), ORDERS);
    s->sounds[channel] = mp3_machine_stream(machine, sounds[channel], sizeof(frame_sound), FRAMES);
  }
}

bool mp3_form_pipeline(mp3_decoder *decoder) {
  mp3_machine machine;
  state *s = aligned_alloc(_Alignof(state), sizeof *s);
  if (!s) {
    fprintf(stderr, "mp3: no memory\n");
    return false;
  }
  memset(s, 0, sizeof *s);
  s->decoder = decoder;
  s->channels = decoder->channels;
  s->granules = decoder->source.first.granules;
  if (mp3_machine_open(&machine, &decoder->tuning)) {
    s->width = machine.units;
    make_streams(s, &machine);
    mp3_decoder_begin(decoder);
    /* Sink and source where the fewest channels are, as far as there are units. */
    mp3_machine_call(&machine, 2, "mp3_pipe_sink", &s, sizeof s, 3);
    for (unsigned i = 0; i < s->channels; i++)
      mp3_machine_call(&machine, 1 - i, "mp3_pipe_channel", &(pipe_call){s, i}, sizeof(pipe_call),
                       2);
    for (unsigned i = 0; i < s->width; i++)
      mp3_machine_call(&machine, i, "mp3_pipe_entropy", &(pipe_call){s, i}, sizeof(pipe_call), 0);
    mp3_machine_call(&machine, 3, "mp3_pipe_source", &s, sizeof s, 1);
    mp3_machine_wait(&machine);
    mp3_decoder_end(decoder);
  }
  bool good = mp3_machine_close(&machine);
  free(s);
  return good;
}
