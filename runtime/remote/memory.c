/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions of the C library to which compilers emit calls even without a C library. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memmove(void *to, const void *from, size_t n);
void *memset(void *to, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);

typedef uintptr_t word;
enum { WORD = sizeof(word) };

/* Copies words if both are aligned alike: under an emulator a load or store costs the same at any
 * width. */
void *memcpy(void *restrict to, const void *restrict from, size_t n) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if ((((uintptr_t)t ^ (uintptr_t)f) & (WORD - 1)) == 0) {
    for (; n && (uintptr_t)t & (WORD - 1); n--) *t++ = *f++;
    for (; n >= 2 * WORD; n -= 2 * WORD, t += 2 * WORD, f += 2 * WORD) {
      const word *two = (const void *)f;
      word a = two[0], b = two[1];
      ((word *)(void *)t)[0] = a;
      ((word *)(void *)t)[1] = b;
    }
    for (; n >= WORD; n -= WORD, t += WORD, f += WORD)
      *(word *)(void *)t = *(const word *)(const void *)f;
  }
  while (n--) *t++ = *f++;
  return to;
}

void *memmove(void *to, const void *from, size_t n) {
  unsigned char *t = to;
  const unsigned char *f = from;
  if ((uintptr_t)t <= (uintptr_t)f)
    for (size_t i = 0; i < n; i++) t[i] = f[i];
  else
    while (n--) t[n] = f[n];
  return to;
}

void *memset(void *to, int c, size_t n) {
  unsigned char *t = to;
  for (; n && (uintptr_t)t & (WORD - 1); n--) *t++ = (unsigned char)c;
  word all = (unsigned char)c * ((word)-1 / 255);
  for (; n >= WORD; n -= WORD, t += WORD) *(word *)(void *)t = all;
  while (n--) *t++ = (unsigned char)c;
  return to;
}

int memcmp(const void *a, const void *b, size_t n) {
  const unsigned char *x = a, *y = b;
  for (size_t i = 0; i < n; i++)
    if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
  return 0;
}

size_t strlen(const char *s) {
  size_t n = 0;
  while (s[n]) n++;
  return n;
}

int strcmp(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return (unsigned char)*a - (unsigned char)*b;
}
