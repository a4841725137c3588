/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kernels.h"

void sort_words(int32_t *words, uint32_t n) {
  for (uint32_t i = 0; i + 1 < n; i++) {
    uint32_t least = i;
    int32_t value = words[i];
    for (uint32_t j = i + 1; j < n; j++)
      if (words[j] < value) value = words[j], least = j;
    words[least] = words[i];
    words[i] = value;
  }
}

void sort_merge(int32_t *to, const int32_t *a, uint32_t na, const int32_t *b, uint32_t nb) {
  while (na && nb) {
    if (*b < *a)
      *to++ = *b++, nb--;
    else
      *to++ = *a++, na--;
  }
  while (na--) *to++ = *a++;
  while (nb--) *to++ = *b++;
}
