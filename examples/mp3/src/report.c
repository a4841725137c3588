/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "report.h"
#include <inttypes.h>
#include <stdio.h>

void mp3_report_say(mp3_report *report, uint64_t offset, uint32_t frame, const char *what) {
  if (report->count++ < report->tell)
    fprintf(stderr, "mp3: %s: byte %" PRIu64 ", frame %" PRIu32 ": %s\n", report->file, offset,
            frame, what);
}
