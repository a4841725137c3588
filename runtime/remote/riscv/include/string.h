/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The part of <string.h> that programs have on a processor without a C library (memory.c). */
#ifndef LVD_REMOTE_STRING_H
#define LVD_REMOTE_STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

#endif
