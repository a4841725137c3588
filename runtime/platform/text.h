/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* String functions that ISO C does not have (syscall.h tells why those of the C library are not
 * called). */
#ifndef LVD_PLATFORM_TEXT_H
#define LVD_PLATFORM_TEXT_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static inline size_t lvd_text_length(const char *text, size_t most) {
  const char *end = memchr(text, 0, most);
  return end ? (size_t)(end - text) : most;
}

/* A copy of the first `length` bytes, to be freed; null: no memory. */
static inline char *lvd_text_copy_part(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (!copy) return NULL;
  memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

static inline char *lvd_text_copy(const char *text) {
  return lvd_text_copy_part(text, strlen(text));
}

/* Cuts the next comma-separated word off *rest; null: there is none. */
static inline char *lvd_text_word(char **rest) {
  char *word = *rest + strspn(*rest, ",");
  if (!*word) return NULL;
  char *end = word + strcspn(word, ",");
  *rest = *end ? end + 1 : end;
  *end = 0;
  return word;
}

#endif
