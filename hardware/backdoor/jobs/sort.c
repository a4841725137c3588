/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sorts the second half. */
#include "../kernels/kernels.h"
#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  const uint32_t *from = link_get(l, SORT_HALF);
  uint32_t *to = link_put(l, SORT_HALF); /* it is sorted where it is put */
  copy_words(to, from, SORT_HALF);
  link_got(l, SORT_HALF);
  sort_words((int32_t *)to, SORT_HALF);
  link_push(l, SORT_HALF);
  return 0;
}
