/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Makes sounds to encode, as 16-bit WAV:   signals KIND RATE CHANNELS SECONDS OUT
 * Kinds: sweep, noise, chord, castanets (sharp attacks, which call for short blocks), and medley:
 * a bit of each. With two channels these are partly the same. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint32_t state = 12345;

static double noise(void) {
  state = state * 1664525u + 1013904223u;
  return (double)(int32_t)state / 2147483648.0;
}

static double sweep(double t, double seconds, double rate, unsigned channel) {
  double low = 40 + 20 * channel, high = rate * 0.45, k = log(high / low);
  return 0.5 * sin(2 * M_PI * low * seconds / k * (exp(t / seconds * k) - 1));
}

static double chord(double t, unsigned channel) {
  static const double notes[] = {130.81, 164.81, 196.00, 261.63, 392.00, 659.26};
  double sum = 0;
  for (unsigned i = 0; i < 6; i++)
    for (unsigned h = 1; h <= 5; h++)
      sum +=
          sin(2 * M_PI * notes[i] * h * t + i) / (h * h) * (channel ? 1 + 0.1 * i : 1.4 - 0.1 * i);
  return 0.08 * sum;
}

static double castanets(double t, unsigned channel) {
  double beat = fmod(t + 0.01 * channel, 0.137);
  return 0.7 * noise() * exp(-beat * 300) + 0.3 * sin(2 * M_PI * 2300 * beat) * exp(-beat * 120);
}

static double sample(const char *kind, double t, double seconds, double rate, unsigned channel) {
  if (strcmp(kind, "sweep") == 0) return sweep(t, seconds, rate, channel);
  if (strcmp(kind, "noise") == 0) return 0.3 * noise();
  if (strcmp(kind, "chord") == 0) return chord(t, channel);
  if (strcmp(kind, "castanets") == 0) return castanets(t, channel);
  double part = seconds / 4, in = fmod(t, part);
  switch ((int)(t / part)) {
  case 0:
    return sweep(in, part, rate, channel);
  case 1:
    return castanets(in, channel);
  case 2:
    return chord(in, channel);
  default:
    return 0.2 * noise() * (channel ? in / part : 1) + 0.5 * castanets(in, channel);
  }
}

static void put(FILE *file, uint32_t value, unsigned bytes) {
  for (unsigned i = 0; i < bytes; i++) fputc((int)(value >> 8 * i & 255), file);
}

int main(int count, char **words) {
  if (count != 6) {
    fprintf(stderr, "usage: signals KIND RATE CHANNELS SECONDS OUT\n");
    return 2;
  }
  unsigned rate = (unsigned)atoi(words[2]), channels = (unsigned)atoi(words[3]);
  double seconds = atof(words[4]);
  uint32_t samples = (uint32_t)(seconds * rate), size = samples * channels * 2;
  FILE *file = fopen(words[5], "wb");
  if (!file) {
    perror(words[5]);
    return 1;
  }
  fputs("RIFF", file), put(file, size + 36, 4), fputs("WAVEfmt ", file);
  put(file, 16, 4), put(file, 1, 2), put(file, channels, 2), put(file, rate, 4);
  put(file, rate * channels * 2, 4), put(file, channels * 2, 2), put(file, 16, 2);
  fputs("data", file), put(file, size, 4);
  for (uint32_t i = 0; i < samples; i++)
    for (unsigned channel = 0; channel < channels; channel++) {
      double value = sample(words[1], (double)i / rate, seconds, rate, channel);
      put(file, (uint32_t)lrint(fmax(-1, fmin(1, value)) * 32767) & 0xffff, 2);
    }
  return fclose(file) == 0 ? 0 : 1;
}
