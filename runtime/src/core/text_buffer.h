/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Appends formatted text to a buffer that may be too small or absent. The full length is counted
 * in either case, as with snprintf. */
#ifndef LVD_CORE_TEXT_BUFFER_H
#define LVD_CORE_TEXT_BUFFER_H

#include <levada/base.h>
#include <stdarg.h>
#include <stdio.h>

typedef struct text_buffer {
  char *text;
  size_t size, length;
} text_buffer;

static inline void text_append(text_buffer *s, const char *format, ...) LVD_PRINTF(2, 3);
static inline void text_append(text_buffer *s, const char *format, ...) {
  va_list list;
  va_start(list, format);
  bool room = s->text && s->length < s->size;
  int n =
      vsnprintf(room ? s->text + s->length : NULL, room ? s->size - s->length : 0, format, list);
  va_end(list);
  if (n > 0) s->length += (size_t)n;
}

#endif
