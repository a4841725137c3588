/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fourth form: a pipeline of source, pipes and sink, as wide as the cores allow.
 *
 *              ┌▶ pipe 0 ─┐
 *   source ────┤    ⋮     ├──▶ sink
 *              └▶ pipe n ─┘
 *
 * A pipe does all from packets to what lies in the file. What a frame leaves behind for the next one
 * goes back two granules only: the overlap, and the synthesis' past. So the source hands out frames
 * in chunks, each to the first pipe that has room, and puts before a chunk the last frames of the one
 * before, for the pipe to warm up with. That costs little, and all else may run side by side; a unit
 * that has more to do elsewhere takes fewer chunks. In which order they went, the source tells the
 * sink by a stream of its own. */
#include "entropy.h"
#include "hybrid.h"
#include "machine.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

enum {
  CHUNK = 24,                  /* frames, at the most ... */
  LEAST = 4,                   /* ... and at the least, towards the end */
  WARM = 2,                    /* the most frames that have two granules */
  AHEAD = 6,                   /* frames that a pipe has left when it gets its next chunk */
  JOBS = AHEAD + CHUNK + WARM, /* that wait before a pipe */
  FRAMES = 2 * CHUNK + 8,      /* behind it: one that is twice as fast as its neighbour goes on */
  ORDERS = 1024
};

typedef struct job {
  _Alignas(MP3_ELEMENT) mp3_packet packet;
  uint8_t warm; /* decode, but hand nothing on */
} job;

/* Followed by the granules as they will lie in the file. */
typedef struct finished {
  _Alignas(16) mp3_verdict verdict;
} finished;

/* What a pipe keeps. */
typedef struct pipe {
  lvd_stream *jobs, *finished;
  mp3_spectrum spectrum[2][2];
  mp3_hybrid hybrid[2];
  mp3_subbands subbands;
  mp3_synthesis synthesis[2];
  mp3_sound sound[2];
} pipe;

typedef struct state {
  mp3_decoder *decoder;
  unsigned width, granules;
  size_t from;       /* where in the file the first frame is */
  lvd_stream *order; /* source to sink: which pipe has the next frame */
  mp3_packet last[WARM];
  pipe pipe[]; /* width */
} state;

/* How many frames the next chunk is to have, as far as the file can tell: fewer towards its end, so
 * that all pipes come there together. */
static unsigned chunk_of(const state *s) {
  const mp3_source *source = &s->decoder->source;
  if (!source->frame) return CHUNK;
  size_t frame = (source->at - s->from) / source->frame + 1;
  size_t share = (source->size - source->at) / frame / (2 * s->width);
  return share > CHUNK ? CHUNK : share < LEAST ? LEAST : (unsigned)share;
}

/* The first pipe from `from` on that has room for a chunk, when one has. */
static lvd_status with_room(state *s, unsigned from, unsigned *which) {
  lvd_wait_item want[MP3_MOST_UNITS];
  lvd_status status;
  for (unsigned i = 0; i < s->width; i++) {
    *which = (from + i) % s->width;
    status = lvd_stream_wait_room(s->pipe[*which].jobs, CHUNK + WARM, 0); /* only looks */
    if (status != LVD_E_TIMEOUT) return status;
    want[i] = (lvd_wait_item){.room = &s->pipe[*which].jobs->put, .n = CHUNK + WARM};
  }
  uint32_t first = 0;
  status = lvd_wait_any(want, s->width, -1, &first);
  *which = (from + first) % s->width;
  return status;
}

static lvd_status mp3_pipe_source(lvd_call_frame *frame) {
  state *s = *(state *const *)frame->argument;
  unsigned warm = s->granules == 2 ? 1 : 2, kept = 0;
  uint32_t which = s->width - 1;
  /* Take the ends of all streams, so that they end with the source: a short file has no chunk for
   * some. */
  for (unsigned i = 0; i < s->width; i++) lvd_stream_wait_room(s->pipe[i].jobs, 1, 0);
  for (;;) {
    lvd_status status = with_room(s, (which + 1) % s->width, &which);
    if (status != LVD_OK) return status;
    lvd_stream *jobs = s->pipe[which].jobs;
    void *span;
    unsigned chunk = chunk_of(s);
    for (unsigned i = 0; i < kept + chunk; i++) {
      if ((status = lvd_stream_put_span(jobs, 1, &span)) != LVD_OK) return status;
      job *next = (job *)span;
      next->warm = i < kept;
      if (next->warm)
        next->packet = s->last[i];
      else if (!mp3_source_next(&s->decoder->source, &next->packet))
        return LVD_OK;
      else if (i >= kept + chunk - warm)
        s->last[i - (kept + chunk - warm)] = next->packet;
      lvd_put_done(&jobs->put, 1);
      lvd_stream_push(jobs);
      if (i < kept) continue;
      if ((status = lvd_stream_put(s->order, &which, sizeof which)) != LVD_OK) return status;
      lvd_stream_push(s->order);
    }
    kept = warm;
  }
}
LVD_PROCEDURE(mp3_pipe_source)

typedef struct pipe_call {
  state *s;
  unsigned index;
} pipe_call;

/* Decodes a job's granules; to `out`, unless it is null. */
static void decode(state *s, pipe *own, char *out) {
  const mp3_wav *wav = &s->decoder->wav;
  const mp3_sound *sound[2] = {&own->sound[0], &own->sound[1]};
  for (unsigned granule = 0; granule < s->granules; granule++) {
    for (unsigned channel = 0; channel < s->decoder->channels; channel++) {
      const mp3_spectrum *spectrum = &own->spectrum[granule][channel];
      mp3_hybrid_run(&own->hybrid[channel], &spectrum->shape, 0, MP3_SUBBANDS, spectrum->line,
                     own->subbands.slot[0], MP3_SUBBANDS);
      /* A frame that only warms up leaves its last granule's slots to the synthesis. */
      if (out || granule + 1 == s->granules)
        mp3_synthesis_run(&own->synthesis[channel], &own->subbands, &own->sound[channel]);
    }
    if (out) mp3_wav_convert(wav, sound, out + granule * mp3_wav_bytes(wav));
  }
}

static lvd_status mp3_pipe_pipe(lvd_call_frame *frame) {
  const pipe_call *call = (const pipe_call *)frame->argument;
  state *s = call->s;
  pipe *own = &s->pipe[call->index];
  for (;;) {
    const void *from;
    void *to = NULL;
    lvd_status status = lvd_stream_get_span(own->jobs, 1, &from);
    if (status == LVD_E_EOF) return LVD_OK;
    if (status != LVD_OK) return status;
    const job *next = (const job *)from;
    mp3_machine_claim(&own->finished->put);
    unsigned bad = mp3_entropy(&next->packet, s->decoder->channels, own->spectrum);
    mp3_verdict verdict = mp3_verdict_of(&next->packet, bad);
    bool warm = next->warm;
    lvd_get_done(&own->jobs->get, 1);
    lvd_stream_pop(own->jobs);
    if (warm) {
      decode(s, own, NULL);
      continue;
    }
    if ((status = lvd_stream_put_span(own->finished, 1, &to)) != LVD_OK) return status;
    ((finished *)to)->verdict = verdict;
    decode(s, own, (char *)to + sizeof(finished));
    lvd_put_done(&own->finished->put, 1);
    lvd_stream_push(own->finished);
    lvd_fiber_yield(); /* to the source or the sink, if they can go on: others may wait for them */
  }
}
LVD_PROCEDURE(mp3_pipe_pipe)

static lvd_status mp3_pipe_sink(lvd_call_frame *frame) {
  state *s = *(state *const *)frame->argument;
  mp3_wav *wav = &s->decoder->wav;
  for (;;) {
    uint32_t which;
    const void *from;
    lvd_status status = lvd_stream_get(s->order, &which, sizeof which);
    if (status == LVD_E_EOF) return LVD_OK;
    if (status != LVD_OK) return status;
    lvd_stream_pop(s->order);
    lvd_stream *in = s->pipe[which].finished;
    if ((status = lvd_stream_get_span(in, 1, &from)) != LVD_OK) return status;
    lvd_get_done(&in->get, 1);
    mp3_machine_expect(&in->get);
    mp3_decoder_count(s->decoder, ((const finished *)from)->verdict);
    for (unsigned granule = 0; granule < s->granules; granule++)
      mp3_wav_put(wav, (const char *)from + sizeof(finished) + granule * mp3_wav_bytes(wav));
    lvd_stream_pop(in);
  }
}
LVD_PROCEDURE(mp3_pipe_sink)

static void run(mp3_machine *machine, state *s) {
  size_t frame = sizeof(finished) + s->granules * mp3_wav_bytes(&s->decoder->wav);
  frame = (frame + MP3_ELEMENT - 1) / MP3_ELEMENT * MP3_ELEMENT;
  s->order = mp3_machine_stream(machine, "order", sizeof(uint32_t), ORDERS);
  for (unsigned i = 0; i < s->width; i++) {
    s->pipe[i].jobs = mp3_machine_stream(machine, "jobs", sizeof(job), JOBS);
    s->pipe[i].finished = mp3_machine_stream(machine, "finished", frame, FRAMES);
  }
  mp3_decoder_begin(s->decoder);
  mp3_machine_call(machine, 0, "mp3_pipe_sink", &s, sizeof s, 2);
  for (unsigned i = 0; i < s->width; i++)
    mp3_machine_call(machine, i, "mp3_pipe_pipe", &(pipe_call){s, i}, sizeof(pipe_call), 0);
  mp3_machine_call(machine, 1, "mp3_pipe_source", &s, sizeof s, 1);
  mp3_machine_wait(machine);
  mp3_decoder_end(s->decoder);
}

bool mp3_form_pipeline(mp3_decoder *decoder) {
  mp3_machine machine;
  if (mp3_machine_open(&machine, &decoder->tuning)) {
    size_t size = sizeof(state) + machine.units * sizeof(pipe);
    state *s = aligned_alloc(_Alignof(state), size);
    if (s) {
      memset(s, 0, size);
      s->decoder = decoder;
      s->width = machine.units;
      s->granules = decoder->source.first.granules;
      s->from = decoder->source.at;
      run(&machine, s);
    } else {
      mp3_machine_check(&machine, LVD_E_MEMORY, "the pipes");
    }
    bool good = mp3_machine_close(&machine);
    free(s);
    return good;
  }
  return mp3_machine_close(&machine);
}
