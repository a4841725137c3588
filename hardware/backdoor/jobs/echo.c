/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Answers n rings with a ring each; n is the word that it receives first. */
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  uint32_t n = *link_get(l, 1);
  link_got(l, 1);
  bridge_write(BRIDGE_RUNG, 0);
  link_put(l, 1);
  link_push(l, 1); /* tells the near side that rings are answered from now on */
  while (n--) {
    while (!bridge_read(BRIDGE_AWAIT)) continue;
    bridge_write(BRIDGE_RUNG, 0);
    bridge_write(BRIDGE_BELL, 1);
  }
  return 0;
}
