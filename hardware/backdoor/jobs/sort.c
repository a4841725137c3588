/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The far half of the sorting benchmark: sorts the second half of the numbers. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  const uint32_t *from = link_get(l, SORT_HALF);
  uint32_t *to = link_put(l, SORT_HALF); /* sorted in place in the ring */
  copy_words(to, from, SORT_HALF);
  link_got(l, SORT_HALF);
  sort_words((int32_t *)to, SORT_HALF);
  link_push(l, SORT_HALF);
  return 0;
}
