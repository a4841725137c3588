/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "profile.h"
#include <stdio.h>

void mp3_profile_start(mp3_profile *profile) { profile->since = mp3_profile_now(); }

void mp3_profile_print(const mp3_profile *profile) {
  static const char *const names[MP3_STAGES] = {
      "source: frames, side information, reservoir",
      "entropy: scalefactors, Huffman, requantise, stereo, alias",
      "hybrid: inverse MDCT, overlap, frequency inversion", "synthesis: polyphase filter bank",
      "WAV: conversion and writing"};
  /* Subtract the time that reading the clock takes. */
  enum { CLOCK_READS = 10000 };
  uint64_t begin = mp3_profile_now(), end = begin;
  for (unsigned i = 0; i < CLOCK_READS; i++) end = mp3_profile_now();
  double reading = (double)(end - begin) / CLOCK_READS, spent[MP3_STAGES], all = 0;
  for (unsigned i = 0; i < MP3_STAGES; i++) {
    spent[i] = (double)profile->spent[i] - reading * (double)profile->readings[i];
    if (spent[i] < 0) spent[i] = 0;
    all += spent[i];
  }
  for (unsigned i = 0; i < MP3_STAGES; i++)
    fprintf(stderr, "%8.2f ms %5.1f %%  %s\n", spent[i] / 1e6, 100 * spent[i] / all, names[i]);
  fprintf(stderr, "%8.2f ms          in all\n", all / 1e6);
}
