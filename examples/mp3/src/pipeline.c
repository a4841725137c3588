/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fourth form: a pipeline of source, pipes and sink, with one pipe per core.
 *
 *              ┌▶ pipe 0 ─┐
 *   source ────┤    ⋮     ├──▶ sink
 *              └▶ pipe n ─┘
 *
 * A pipe does everything from packets to samples. A frame depends on at most two granules before it:
 * the overlap, and the state of the synthesis. So the source distributes frames in chunks, each to the
 * first pipe that has room, and repeats the last frames of the previous chunk before it, with which the
 * pipe warms up. This costs little, and the pipes are otherwise independent; a unit that is busy
 * otherwise takes fewer chunks. A separate stream tells the sink the order of the chunks. */
#include "entropy.h"
#include "hybrid.h"
#include "machine.h"
#include "synthesis.h"
#include <stdlib.h>
#include <string.h>

enum {
  CHUNK_FRAMES_MAX = 24,
  CHUNK_FRAMES_MIN = 4, /* at the end of the stream */
  WARM_FRAMES = 2,      /* with at least two granules */
  AHEAD_FRAMES = 6,     /* frames that a pipe has left when it gets its next chunk */
  /* Capacities of the streams before and after a pipe, in frames. The second one lets a pipe continue
   * that is twice as fast as another. */
  JOBS_CAPACITY = AHEAD_FRAMES + CHUNK_FRAMES_MAX + WARM_FRAMES,
  FINISHED_CAPACITY = 2 * CHUNK_FRAMES_MAX + 8,
  ORDERS_CAPACITY = 1024 /* chunks */
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
  mp3_packet last[WARM_FRAMES];
  pipe pipe[]; /* width */
} state;

/* How many frames the next chunk is to have, as far as the file can tell: fewer towards its end, so
 * that all pipes come there together. */
static unsigned chunk_of(const state *s) {
  const mp3_source *source = &s->decoder->source;
  if (!source->frame) return CHUNK_FRAMES_MAX;
  size_t frame = (source->at - s->from) / source->frame + 1;
  size_t share = (source->size - source->at) / frame / (2 * s->width);
  return share > CHUNK_FRAMES_MAX   ? CHUNK_FRAMES_MAX
         : share < CHUNK_FRAMES_MIN ? CHUNK_FRAMES_MIN
                                    : (unsigned)share;
}

/* The first pipe from `from` on that has room for a chunk, when one has. */
static lvd_status with_room(state *s, unsigned from, unsigned *which) {
  lvd_wait_item want[MP3_MOST_UNITS];
  lvd_status status;
  for (unsigned i = 0; i < s->width; i++) {
    *which = (from + i) % s->width;
    status = lvd_stream_wait_room(s->pipe[*which].jobs, CHUNK_FRAMES_MAX + WARM_FRAMES,
                                  0); /* only looks */
    if (status != LVD_E_TIMEOUT) return status;
    want[i] = (lvd_wait_item){.room = &s->pipe[*which].jobs->producer,
                              .n = CHUNK_FRAMES_MAX + WARM_FRAMES};
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
      lvd_put_done(&jobs->producer, 1);
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
    mp3_machine_claim(&own->finished->producer);
    unsigned bad = mp3_entropy(&next->packet, s->decoder->channels, own->spectrum);
    mp3_verdict verdict = mp3_verdict_of(&next->packet, bad);
    bool warm = next->warm;
    lvd_get_done(&own->jobs->consumer, 1);
    lvd_stream_pop(own->jobs);
    if (warm) {
      decode(s, own, NULL);
      continue;
    }
    if ((status = lvd_stream_put_span(own->finished, 1, &to)) != LVD_OK) return status;
    ((finished *)to)->verdict = verdict;
    decode(s, own, (char *)to + sizeof(finished));
    lvd_put_done(&own->finished->producer, 1);
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
    lvd_get_done(&in->consumer, 1);
    mp3_machine_expect(&in->consumer);
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
  s->order = mp3_machine_stream(machine, "order", sizeof(uint32_t), ORDERS_CAPACITY);
  for (unsigned i = 0; i < s->width; i++) {
    s->pipe[i].jobs = mp3_machine_stream(machine, "jobs", sizeof(job), JOBS_CAPACITY);
    s->pipe[i].finished = mp3_machine_stream(machine, "finished", frame, FINISHED_CAPACITY);
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
