/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A short piece of music to decode: plays eight bars into a WAV file.
 *
 *   piece OUT.wav
 *
 * A bass, a broken chord, strings behind, and bells; then a small room around all of it. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { RATE = 44100, BARS = 8, SECONDS = 24, SAMPLES = RATE * SECONDS };

static float dry[2][SAMPLES], wet[2][SAMPLES];

static double pitch(int note) { return 440 * exp2((note - 69) / 12.0); } /* MIDI's numbers */

/* How a voice sounds: partials, each fading faster than the one below. */
typedef struct voice {
  double partial[6], ratio[6]; /* loudness, and frequency against the note's */
  double attack, decay, brighter_decay, shimmer;
} voice;

static const voice bass = {{1, 0.5, 0.2, 0.08, 0.03, 0}, {1, 2, 3, 4, 5, 6}, 0.008, 0.9, 0.6, 0};
static const voice harp = {
    {1, 0.45, 0.3, 0.16, 0.1, 0.05}, {1, 2.001, 3.004, 4.008, 5.015, 6.02}, 0.003, 0.55, 0.35, 0};
static const voice strings = {
    {1, 0.6, 0.4, 0.25, 0.12, 0.08}, {1, 2, 3, 4, 5, 6}, 0.5, 3, 0.1, 0.004};
static const voice bells = {
    {1, 0.55, 0.3, 0.2, 0.1, 0.06}, {1, 2.0, 2.76, 4.1, 5.4, 8.93}, 0.002, 1.1, 0.5, 0};

/* Adds a note; `side` is from 0, left, to 1, right. */
static void play(const voice *sound, int note, double from, double length, double loudness,
                 double side) {
  double base = pitch(note), gain[2] = {cos(side * M_PI / 2), sin(side * M_PI / 2)};
  for (unsigned channel = 0; channel < 2; channel++)
    for (unsigned p = 0; p < 6; p++) {
      double frequency = base * sound->ratio[p];
      if (frequency > 18000 || sound->partial[p] == 0) continue;
      /* The two ears hear a slightly different pitch of what shimmers. */
      frequency *= 1 + sound->shimmer * (channel ? 0.5 : -0.5) * (p % 2 ? 1 : -1);
      double decay = sound->decay / (1 + sound->brighter_decay * p);
      double loud = loudness * gain[channel] * sound->partial[p];
      size_t begin = (size_t)(from * RATE), end = (size_t)((from + length) * RATE);
      /* Both the tone and its fading follow from what was before. */
      double turn = 2 * M_PI * frequency / RATE, twice = 2 * cos(turn);
      double tone = sin(p), before = sin(p - turn), fade = loud, fading = exp(-1 / (decay * RATE));
      for (size_t i = begin; i < end && i < SAMPLES; i++) {
        double t = (double)(i - begin) / RATE, left = length - t, shape = fade;
        if (t < sound->attack) shape *= t / sound->attack;
        if (left < 0.05) shape *= left / 0.05;
        dry[channel][i] += (float)(shape * tone);
        double next = twice * tone - before;
        before = tone;
        tone = next;
        fade *= fading;
      }
    }
}

/* A room after Schroeder: echoes that repeat, four of different lengths, then two that smear. */
static void room(const float *in, float *out, unsigned channel) {
  static const unsigned repeat[4] = {1557, 1617, 1491, 1422}, smear[2] = {225, 556};
  for (unsigned k = 0; k < 4; k++) {
    unsigned delay = repeat[k] + 23 * channel;
    float *echo = calloc(SAMPLES, sizeof *echo), dull = 0;
    if (!echo) exit(1);
    for (size_t i = delay; i < SAMPLES; i++) {
      dull = 0.7f * echo[i - delay] + 0.3f * dull; /* walls take the treble first */
      echo[i] = in[i - delay] + 0.84f * dull;
      out[i] += 0.25f * echo[i];
    }
    free(echo);
  }
  for (unsigned k = 0; k < 2; k++) {
    unsigned delay = smear[k] + 23 * channel;
    float *line = calloc(SAMPLES, sizeof *line);
    if (!line) exit(1);
    for (size_t i = 0; i < SAMPLES; i++) {
      float late = i < delay ? 0 : line[i - delay];
      line[i] = out[i] + 0.5f * late;
      out[i] = late - 0.5f * line[i];
    }
    free(line);
  }
}

static void compose(void) {
  /* The chords: a root for the bass, and four notes above it. */
  static const int root[BARS] = {45, 41, 48, 43, 45, 41, 43, 45};
  static const int chord[BARS][4] = {{57, 60, 64, 71}, {57, 60, 65, 67}, {55, 60, 64, 67},
                                     {55, 59, 62, 69}, {57, 60, 64, 72}, {57, 60, 65, 69},
                                     {55, 59, 62, 67}, {57, 60, 64, 69}};
  static const int order[16] = {0, 1, 2, 3, 2, 1, 2, 3, 0, 1, 2, 3, 2, 3, 2, 1};
  /* The bells' tune: sixteenths of the whole since the last one, and the note; 0 rests. */
  static const int tune[][2] = {{4, 0},  {4, 76}, {4, 79}, {4, 81}, {6, 84}, {2, 83}, {4, 81},
                                {4, 77}, {8, 79}, {4, 76}, {4, 72}, {8, 74}, {4, 71}, {4, 0},
                                {4, 76}, {4, 81}, {4, 83}, {4, 84}, {6, 88}, {2, 86}, {4, 84},
                                {4, 81}, {6, 83}, {2, 81}, {4, 79}, {4, 74}, {16, 76}};
  const double bar = 2.5, step = bar / 16;
  for (unsigned b = 0; b < BARS; b++) {
    double at = b * bar;
    play(&bass, root[b] - 12, at, 1.4, 0.30, 0.5);
    play(&bass, root[b] - 12, at + 10 * step, 0.9, 0.22, 0.5);
    for (unsigned n = 0; n < 16; n++)
      play(&harp, chord[b][order[n]] + (n >= 8 ? 12 : 0), at + n * step + 0.004 * (n % 3), 1.3,
           0.10 + 0.03 * (n % 4 == 0), 0.15 + 0.05 * n);
    for (unsigned n = 0; n < 4; n++)
      play(&strings, chord[b][n], at, bar + 0.25, 0.020, 0.25 + 0.17 * n);
  }
  double at = 0;
  for (unsigned n = 0; n < sizeof tune / sizeof *tune; n++) {
    if (tune[n][1]) play(&bells, tune[n][1], at, 2.4, 0.09, 0.62);
    at += tune[n][0] * step;
  }
  play(&bass, 33, BARS * bar, 3, 0.3, 0.5);
  for (unsigned n = 0; n < 5; n++)
    play(&harp, (const int[]){57, 64, 69, 72, 76}[n], BARS * bar + 0.06 * n, 3, 0.12, 0.2 * n);
}

static void put(FILE *file, uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) fputc((int)(value >> 8 * i & 255), file);
}

int main(int count, char **words) {
  if (count != 2) {
    fprintf(stderr, "usage: piece OUT.wav\n");
    return 2;
  }
  compose();
  for (unsigned channel = 0; channel < 2; channel++) room(dry[channel], wet[channel], channel);
  float loudest = 0;
  for (size_t i = 0; i < SAMPLES; i++)
    for (unsigned channel = 0; channel < 2; channel++) {
      dry[channel][i] += 0.35f * wet[channel][i];
      loudest = fmaxf(loudest, fabsf(dry[channel][i]));
    }
  FILE *file = fopen(words[1], "wb");
  if (!file) {
    perror(words[1]);
    return 1;
  }
  const uint32_t size = SAMPLES * 4;
  fputs("RIFF", file), put(file, size + 36, 4), fputs("WAVEfmt ", file);
  put(file, 16, 4), put(file, 1, 2), put(file, 2, 2), put(file, RATE, 4);
  put(file, RATE * 4, 4), put(file, 4, 2), put(file, 16, 2);
  fputs("data", file), put(file, size, 4);
  for (size_t i = 0; i < SAMPLES; i++) {
    float fade = i > SAMPLES - RATE ? (float)(SAMPLES - i) / RATE : 1;
    for (unsigned channel = 0; channel < 2; channel++)
      put(file, (uint32_t)lrintf(dry[channel][i] / loudest * fade * 29000) & 0xffff, 2);
  }
  if (fclose(file) != 0) {
    perror(words[1]);
    return 1;
  }
  return 0;
}
