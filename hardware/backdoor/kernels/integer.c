/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "kernels.h"

typedef struct record {
  struct record *next;
  uint32_t kind, number;
  char name[20];
} record;

static record one, two;
static int32_t row[16];

__attribute__((noinline)) static int order(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a - *b;
}

__attribute__((noinline)) static void name(record *r, uint32_t number) {
  static const char letters[] = "LEVADA BACK DOOR";
  int n = 0;
  for (; letters[n]; n++) r->name[n] = letters[n];
  r->name[n] = (char)('a' + (number & 15));
  r->name[n + 1] = 0;
}

__attribute__((noinline)) static uint32_t advance(record *r, uint32_t by) {
  switch (r->kind) {
  case 0:
    r->number += by;
    break;
  case 1:
    r->number ^= by << 3;
    break;
  case 2:
    r->number = r->number * 3 + by;
    break;
  default:
    r->number -= by / 7;
    break;
  }
  r->next->kind = (r->kind + by) & 3;
  return r->number;
}

uint32_t integer_rounds(uint32_t from, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t i = from; i != from + n; i++) {
    one = (record){.next = &two, .kind = i & 3, .number = i};
    two = (record){.next = &one, .kind = 0, .number = ~i};
    name(&one, i);
    name(&two, i >> 1);
    for (uint32_t j = 0; j < 16; j++) row[j] = (int32_t)(i * j) - 40;
    uint32_t by = i % 11 + 1;
    sum += advance(&one, by);
    sum = (sum << 1 | sum >> 31) ^ advance(one.next, by);
    for (uint32_t j = 1; j < 16; j += by) sum += (uint32_t)(row[j] - row[j - 1]);
    int o = order(one.name, two.name);
    sum += o < 0 ? 5u : o > 0 ? 9u : 1u;
  }
  return sum;
}
