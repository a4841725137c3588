/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Spelling suggestion: finds which of several names a misspelt one most probably stands for.
 * Freestanding. */
#ifndef LVD_CLOSEST_NAME_H
#define LVD_CLOSEST_NAME_H

#include <stdbool.h>
#include <string.h>

enum { LVD_CLOSEST_NAME_MAX = 64 /* bytes, including the terminating null */ };

static inline bool lvd_same_letter(char a, char b) {
  char x = a >= 'A' && a <= 'Z' ? (char)(a + 32) : a, y = b >= 'A' && b <= 'Z' ? (char)(b + 32) : b;
  return x == y;
}

/* Optimal string alignment distance: the number of insertions, deletions, replacements and swaps
 * of adjacent characters that turn `a` into `b`. Case is ignored. */
static inline unsigned lvd_name_distance(const char *a, const char *b) {
  unsigned char row[3][LVD_CLOSEST_NAME_MAX];
  unsigned n = (unsigned)strlen(a), m = (unsigned)strlen(b);
  if (n >= LVD_CLOSEST_NAME_MAX || m >= LVD_CLOSEST_NAME_MAX) return LVD_CLOSEST_NAME_MAX;
  unsigned char *before = row[0], *above = row[1], *here = row[2];
  for (unsigned j = 0; j <= m; j++) above[j] = (unsigned char)j;
  for (unsigned i = 1; i <= n; i++) {
    here[0] = (unsigned char)i;
    for (unsigned j = 1; j <= m; j++) {
      unsigned least = above[j - 1] + !lvd_same_letter(a[i - 1], b[j - 1]);
      if (above[j] + 1u < least) least = above[j] + 1u;
      if (here[j - 1] + 1u < least) least = here[j - 1] + 1u;
      bool swapped = i > 1 && j > 1 && lvd_same_letter(a[i - 1], b[j - 2]) &&
                     lvd_same_letter(a[i - 2], b[j - 1]);
      if (swapped && before[j - 2] + 1u < least) least = before[j - 2] + 1u;
      here[j] = (unsigned char)least;
    }
    unsigned char *oldest = before;
    before = above;
    above = here;
    here = oldest;
  }
  return above[m];
}

/* Updates `best` (LVD_CLOSEST_NAME_MAX bytes; empty: no candidate yet) to `name` if `name` is
 * closer to `meant`. A name with a distance above a third of the length of `meant` is no
 * candidate. */
static inline void lvd_closest_name(char *best, const char *meant, const char *name) {
  unsigned distance = lvd_name_distance(meant, name), length = (unsigned)strlen(meant);
  unsigned most = length < 3 ? 1 : length / 3;
  if (!*name || distance > most || distance >= length) return;
  if (*best && lvd_name_distance(meant, best) <= distance) return;
  memcpy(best, name, strlen(name) + 1);
}

#endif
