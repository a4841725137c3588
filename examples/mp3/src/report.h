/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What is wrong with a file: every case is counted, the first few are told. */
#ifndef MP3_REPORT_H
#define MP3_REPORT_H

#include <stdint.h>

typedef struct mp3_report {
  const char *file;
  unsigned count; /* what was wrong */
  unsigned tell;  /* how many of it may be printed */
} mp3_report;

/* `frame` is the number of the frame that follows or is meant, from 0. */
void mp3_report_say(mp3_report *report, uint64_t offset, uint32_t frame, const char *what);

#endif
