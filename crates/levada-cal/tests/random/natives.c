/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives that random programs call. */
#include <stdint.h>

int32_t random_mix(int32_t a, int32_t b) { return (int32_t)((uint32_t)a * 31u ^ (uint32_t)b); }

int32_t random_sum(int16_t *l) {
  int32_t sum = 0;
  for (int i = 0; i < 8; i++) sum = sum * 3 + l[i];
  return sum;
}

void random_fill(int16_t *l, int32_t n) {
  for (int i = 0; i < 8; i++) l[i] = (int16_t)(l[i] ^ (n >> i));
}
