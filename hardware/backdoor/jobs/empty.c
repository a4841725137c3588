/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that does nothing: what loading and running costs. It needs no job.c. */
#include <levada/window.h>

int job_start(const lvd_remote_hal *board);
int job_start(const lvd_remote_hal *board) {
  (void)board;
  return 0;
}
