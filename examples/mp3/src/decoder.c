/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "decoder.h"

mp3_verdict mp3_verdict_of(const mp3_packet *packet, unsigned bad) {
  mp3_verdict verdict = {.offset = packet->offset, .frame = packet->frame, .lost = packet->lost};
  uint32_t bits = 0;
  for (unsigned granule = 0; granule < packet->header.granules; granule++)
    for (unsigned channel = 0; channel < packet->header.channels; channel++)
      bits += packet->part[granule][channel].bits;
  /* What the source knew to be missing, it has reported. */
  verdict.damaged = bad && !packet->lost && bits <= packet->main_bits;
  return verdict;
}

void mp3_decoder_count(mp3_decoder *decoder, mp3_verdict verdict) {
  decoder->frames += !verdict.lost;
  if (verdict.damaged)
    mp3_report_say(&decoder->damage, verdict.offset, verdict.frame,
                   "its codes are damaged; partly silent");
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void mp3_decoder_begin(mp3_decoder *decoder) { decoder->begun = now(); }

void mp3_decoder_end(mp3_decoder *decoder) { decoder->took = now() - decoder->begun; }
