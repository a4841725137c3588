/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of std.audio.Audio: the samples are written to a .wav file, which the option "out" names;
 * without it they are dropped. The length is not known at the start, and a pipe cannot be rewound, so
 * the header contains the maximum length, as is usual for streams.
 *
 * All of them are weak, so that the user's own functions override them. */
#include "files.h"

#define STD __attribute__((weak))

typedef struct player {
  bool begun;
  uint32_t rate;
  uint16_t bits, channels;
} player;

static const char player_key;

static uint8_t *put_little(uint8_t *at, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; i++) *at++ = (uint8_t)(value >> (8 * i));
  return at;
}

static void put_header(const player *p) {
  uint32_t block = (uint32_t)p->channels * ((p->bits + 7u) / 8);
  uint8_t header[44], *at = header;
  memcpy(at, "RIFF", 4);
  at = put_little(at + 4, UINT32_MAX, 4);
  memcpy(at, "WAVEfmt ", 8);
  at = put_little(at + 8, 16, 4);
  at = put_little(at, 1, 2); /* integers, not packed */
  at = put_little(at, p->channels, 2);
  at = put_little(at, p->rate, 4);
  at = put_little(at, p->rate * block, 4);
  at = put_little(at, block, 2);
  at = put_little(at, p->bits, 2);
  memcpy(at, "data", 4);
  put_little(at + 4, UINT32_MAX - (sizeof header - 8), 4);
  output_put(output_of_app(), header, sizeof header);
}

STD void audio_initAudioFormat(uint32_t rate, uint16_t bits, uint16_t channels) {
  player now = {true, rate, bits, channels},
         *p = persistent_block("levada.player", &player_key, sizeof *p, NULL);
  if (p->begun && (p->rate != rate || p->bits != bits || p->channels != channels))
    refuse("one output holds samples of one format: %" PRIu32 " Hz, %d bits, %d channels", p->rate,
           p->bits, p->channels);
  if (p->begun) return;
  *p = now;
  if (option("out")) put_header(p);
}

/* Nothing waits for a loudspeaker. */
STD bool audio_bufferFull(void) { return false; }

STD void audio_receive(uint8_t byte) {
  if (option("out")) output_put(output_of_app(), &byte, 1);
}

STD void audio_play(void) {
  if (option("out")) output_show(output_of_app());
}

STD void audio_close(void) {}
