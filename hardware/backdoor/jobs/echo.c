/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Rings back as often as it is told to, each time it is rung. */
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  uint32_t n = *link_get(l, 1);
  link_got(l, 1);
  bridge_write(BRIDGE_RUNG, 0);
  link_put(l, 1);
  link_push(l, 1); /* from now on a ring is answered */
  while (n--) {
    while (!bridge_read(BRIDGE_AWAIT)) continue;
    bridge_write(BRIDGE_RUNG, 0);
    bridge_write(BRIDGE_BELL, 1);
  }
  return 0;
}
