/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An empty program, to measure the cost of loading and running. It does not use job.c. */
#include <levada/window.h>

int job_start(const lvd_remote_hal *board);
int job_start(const lvd_remote_hal *board) {
  (void)board;
  return 0;
}
