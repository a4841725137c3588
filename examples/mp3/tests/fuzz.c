/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Decodes randomly damaged copies of streams:   fuzz ROUNDS FILE...
 * Built with sanitizers it finds reads and writes that stray; by itself it looks for samples that
 * are no numbers, and for rounds that take too long. */
#include "entropy.h"
#include "hybrid.h"
#include "source.h"
#include "synthesis.h"
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t state = 88172645463325252u;
static unsigned long round_now;

static uint32_t any(size_t below) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (uint32_t)(state % below);
}

/* Damages a copy; gives its new size. There is room for twice the size. */
static size_t damage(uint8_t *bytes, size_t size) {
  for (unsigned times = 1 + any(8); times > 0 && size > 8; times--) {
    size_t at = any(size), length = 1 + any(64);
    if (length > size - at) length = size - at;
    switch (any(7)) {
    case 0:
      bytes[at] ^= (uint8_t)(1 << any(8));
      break;
    case 1:
      bytes[at] = (uint8_t)any(256);
      break;
    case 2:
      for (size_t i = 0; i < length; i++) bytes[at + i] = (uint8_t)any(256);
      break;
    case 3: /* something is missing */
      memmove(bytes + at, bytes + at + length, size - at - length);
      size -= length;
      break;
    case 4: /* something is twice there */
      memmove(bytes + at + length, bytes + at, size - at);
      size += length;
      break;
    case 5:
      memset(bytes + at, any(2) ? 0xff : 0, length);
      break;
    default: /* in what looks like a header or what follows it */
      for (size_t i = at; i + 8 < size; i++)
        if (bytes[i] == 0xff && bytes[i + 1] >= 0xe0) {
          bytes[i + any(8)] ^= (uint8_t)(1 << any(8));
          break;
        }
    }
  }
  return any(10) == 0 ? any(size) + 1 : size;
}

static void decode(const uint8_t *bytes, size_t size) {
  static mp3_packet packet;
  static mp3_spectrum spectrum[2][2];
  static mp3_subbands subbands;
  static mp3_sound sound;
  static mp3_source source;
  mp3_report report = {.file = "", .tell = 0};
  mp3_hybrid hybrid[2] = {0};
  static mp3_synthesis synthesis[2];
  memset(synthesis, 0, sizeof synthesis);
  if (!mp3_source_open(&source, bytes, size, &report)) return;
  unsigned channels = source.first.channels;
  while (mp3_source_next(&source, &packet)) {
    mp3_entropy(&packet, channels, spectrum);
    for (unsigned granule = 0; granule < packet.header.granules; granule++)
      for (unsigned channel = 0; channel < channels; channel++) {
        mp3_spectrum *one = &spectrum[granule][channel];
        mp3_hybrid_run(&hybrid[channel], &one->shape, 0, MP3_SUBBANDS, one->line, subbands.slot[0],
                       MP3_SUBBANDS);
        mp3_synthesis_run(&synthesis[channel], &subbands, &sound);
        for (unsigned i = 0; i < MP3_LINES; i++)
          if (!isfinite(sound.sample[i])) {
            printf("round %lu: a sample that is no number\n", round_now);
            exit(1);
          }
      }
  }
}

static void too_long(int number) {
  static const char text[] = "a round takes more than 20 seconds\n";
  (void)number;
  if (write(1, text, sizeof text - 1) < 0) _exit(2);
  _exit(1);
}

int main(int count, char **words) {
  if (count < 3) {
    fprintf(stderr, "usage: fuzz ROUNDS FILE...\n");
    return 2;
  }
  mp3_entropy_prepare();
  mp3_hybrid_prepare();
  mp3_synthesis_prepare();
  signal(SIGALRM, too_long);
  unsigned long rounds = strtoul(words[1], NULL, 10);
  for (round_now = 0; round_now < rounds; round_now++) {
    FILE *file = fopen(words[2 + round_now % (unsigned)(count - 2)], "rb");
    if (!file) {
      perror(words[2 + round_now % (unsigned)(count - 2)]);
      return 2;
    }
    static uint8_t whole[1 << 20];
    size_t size = fread(whole, 1, sizeof whole / 2, file);
    fclose(file);
    size = damage(whole, size);
    /* A block of just this size, so that reading behind it is seen. */
    uint8_t *bytes = malloc(size);
    if (!bytes) return 2;
    memcpy(bytes, whole, size);
    alarm(20);
    decode(bytes, size);
    free(bytes);
  }
  printf("%lu damaged streams\n", rounds);
  return 0;
}
