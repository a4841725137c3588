/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How much of the processor's time each stage takes, when asked for. */
#ifndef MP3_PROFILE_H
#define MP3_PROFILE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef enum mp3_stage {
  MP3_STAGE_SOURCE,
  MP3_STAGE_ENTROPY,
  MP3_STAGE_HYBRID,
  MP3_STAGE_SYNTHESIS,
  MP3_STAGE_WAV,
  MP3_STAGES
} mp3_stage;

typedef struct mp3_profile {
  bool on;
  uint64_t since;             /* when the clock was read last */
  uint64_t spent[MP3_STAGES]; /* nanoseconds */
  uint64_t readings[MP3_STAGES];
} mp3_profile;

static inline uint64_t mp3_profile_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What was done since the last call was this stage. */
static inline void mp3_profile_was(mp3_profile *profile, mp3_stage stage) {
  if (!profile->on) return;
  uint64_t now = mp3_profile_now();
  profile->spent[stage] += now - profile->since;
  profile->readings[stage]++;
  profile->since = now;
}

void mp3_profile_start(mp3_profile *profile);
void mp3_profile_print(const mp3_profile *profile);

#endif
