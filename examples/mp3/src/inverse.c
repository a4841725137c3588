/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "inverse.h"
#include <levada/call.h>
#include <string.h>

static mp3_hybrid hybrid[MP3_INVERSES][2];

static lvd_status mp3_inverse_begin(lvd_call_frame *frame) {
  (void)frame;
  memset(hybrid, 0, sizeof hybrid);
  mp3_hybrid_prepare();
  return LVD_OK;
}
LVD_PROCEDURE(mp3_inverse_begin)

static lvd_status mp3_inverse(lvd_call_frame *frame) {
  const mp3_half *half = (const mp3_half *)frame->argument;
  if (frame->argument_size != sizeof *half || frame->result_room < sizeof(mp3_half_subbands) ||
      half->half >= MP3_INVERSES || half->channels > 2)
    return LVD_E_ARGUMENT;
  mp3_half_run(hybrid[half->half], half, (mp3_half_subbands *)frame->result);
  frame->result_size = sizeof(mp3_half_subbands);
  return LVD_OK;
}
LVD_PROCEDURE(mp3_inverse)
