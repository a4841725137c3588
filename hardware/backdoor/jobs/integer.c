/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The far half of the integer benchmark: the second half of the rounds. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  uint32_t from = *link_get(l, 1);
  link_got(l, 1);
  *link_put(l, 1) = integer_rounds(from, INTEGER_HALF);
  link_push(l, 1);
  return 0;
}
