/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Actors in C of networks with a native source and display: bytes from the file "in", and
 * pictures in blocks of 16x16 (four blocks of luma, one of each chroma) to the file "out", as the
 * samples alone. */
#include <levada/actor.h>
#include <levada/native.h>
#include <stdio.h>
#include <stdlib.h>

enum { MACROBLOCK = 384, MOST = 256 };

/* The file that an option names; an actor that has none fails. */
static FILE *opened(lvd_actor *self, const char *name, const char *mode) {
  const char *path = lvd_app_option(lvd_current_app(), name);
  FILE *file = path ? fopen(path, mode) : NULL;
  if (!file) lvd_actor_fail(self, LVD_FAULT_NATIVE, 0, "cannot open the file of --%s", name);
  return file;
}

/* ---- The source. Behind the end its beginning comes again, as a decoder looks for the next start. */

typedef struct source {
  FILE *file;
  uint8_t head[64];
  uint32_t heads, again;
} source;

static void source_start(lvd_actor *self) {
  source *s = self->state;
  s->file = opened(self, "in", "rb");
  s->heads = (uint32_t)fread(s->head, 1, sizeof s->head, s->file);
  rewind(s->file);
}

static lvd_run_result source_run(lvd_actor *self) {
  source *s = self->state;
  lvd_producer *out = &self->out[0];
  for (;;) {
    if (!lvd_room(out, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    int byte = getc(s->file);
    if (byte == EOF) {
      if (s->again == s->heads) return LVD_RUN_DONE;
      byte = s->head[s->again++];
    }
    LVD_PUT(out, uint8_t, (uint8_t)byte);
  }
}

static void source_stop(lvd_actor *self) {
  source *s = self->state;
  if (s->file) fclose(s->file);
}

static const lvd_port_class bytes_out[] = {{"Out", sizeof(uint8_t)}};

const lvd_actor_class art_Source_byte = {.name = "art_Source_byte",
                                         .state_size = sizeof(source),
                                         .outputs = 1,
                                         .output = bytes_out,
                                         .init = source_start,
                                         .run = source_run,
                                         .end = source_stop};

/* ---- The display ------------------------------------------------------------------------------- */

typedef struct display {
  FILE *file;
  uint8_t *picture;
  uint32_t wide, high, at; /* in macroblocks; how many of them there are of this picture */
} display;

enum { IN, WIDTH, HEIGHT };

static void display_start(lvd_actor *self) {
  display *d = self->state;
  d->file = opened(self, "out", "wb");
}

static void resize(lvd_actor *self, display *d) {
  uint32_t wide = (uint32_t)LVD_GET(&self->in[WIDTH], int16_t);
  uint32_t high = (uint32_t)LVD_GET(&self->in[HEIGHT], int16_t);
  if (wide - 1 >= MOST || high - 1 >= MOST)
    lvd_actor_fail(self, LVD_FAULT_CHECK, 0, "no picture has %lux%lu blocks", (unsigned long)wide,
                   (unsigned long)high);
  free(d->picture);
  d->picture = malloc((size_t)wide * high * MACROBLOCK);
  if (!d->picture) lvd_actor_fail(self, LVD_FAULT_CHECK, 0, "out of memory");
  d->wide = wide;
  d->high = high;
}

/* 8x8 samples to where they belong. */
static void block(lvd_actor *self, uint8_t *to, size_t stride) {
  for (size_t y = 0; y < 8; y++)
    for (size_t x = 0; x < 8; x++) to[y * stride + x] = (uint8_t)LVD_GET(&self->in[IN], int32_t);
}

static void macroblock(lvd_actor *self, display *d) {
  const size_t width = 16 * (size_t)d->wide, samples = width * 16 * d->high;
  const size_t x = d->at % d->wide, y = d->at / d->wide;
  uint8_t *luma = d->picture + 16 * y * width + 16 * x;
  uint8_t *chroma = d->picture + samples + 8 * y * (width / 2) + 8 * x;
  for (size_t i = 0; i < 4; i++) block(self, luma + i / 2 * 8 * width + i % 2 * 8, width);
  block(self, chroma, width / 2);
  block(self, chroma + samples / 4, width / 2);
  if (++d->at < d->wide * d->high) return;
  d->at = 0;
  fwrite(d->picture, 1, samples * 3 / 2, d->file);
}

static lvd_run_result display_run(lvd_actor *self) {
  display *d = self->state;
  for (;;) {
    bool sized = lvd_elements(&self->in[WIDTH], 1) && lvd_elements(&self->in[HEIGHT], 1);
    if (!d->at && sized) resize(self, d);
    if (!d->picture || lvd_elements(&self->in[IN], MACROBLOCK) < MACROBLOCK) break;
    macroblock(self, d);
  }
  if (lvd_ended(&self->in[IN]) != LVD_OK) return LVD_RUN_DONE;
  if (d->picture) {
    lvd_await_elements(self, IN, MACROBLOCK);
  } else {
    lvd_await_elements(self, WIDTH, 1);
    lvd_await_elements(self, HEIGHT, 1);
  }
  return LVD_RUN_WAIT;
}

static void display_stop(lvd_actor *self) {
  display *d = self->state;
  free(d->picture);
  if (d->file) fclose(d->file);
}

static const lvd_port_class shown[] = {
    {"In", sizeof(int32_t)}, {"WIDTH", sizeof(int16_t)}, {"HEIGHT", sizeof(int16_t)}};

const lvd_actor_class art_Display_yuv_width_height = {.name = "art_Display_yuv_width_height",
                                                      .state_size = sizeof(display),
                                                      .inputs = 3,
                                                      .input = shown,
                                                      .init = display_start,
                                                      .run = display_run,
                                                      .end = display_stop};
