/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entry of a program: starts the watchdog, clears its memory, attaches the link to the near side, calls job(). */
#include "job.h"

extern uint32_t bss[], bss_end[];

__attribute__((section(".text.start"))) int job_start(const lvd_remote_hal *board) {
  board->watch("job");
  for (uint32_t *word = bss; word != bss_end; word++) *word = 0;
  link l;
  uint64_t segment = board->window->segment;
  lvd_status status = link_attach(&l, (unsigned char *)board->window + segment, false);
  return status != LVD_OK ? (int)status : job(board, &l);
}
