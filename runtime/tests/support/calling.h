/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of the procedures of procedures.h, many at once and with large arguments. */
#ifndef LVD_TEST_CALLING_H
#define LVD_TEST_CALLING_H

#include "test.h"

enum { CALLS = 300 /* more than a channel of records holds */ };

/* Of each unit in turn. */
static inline void call_twice_of_many(lvd_unit *const *u, uint32_t units, uint32_t rounds) {
  lvd_call *c[CALLS];
  for (uint32_t round = 0; round < rounds; round++) {
    for (uint32_t i = 0; i < CALLS; i++)
      CHECK_EQ(lvd_call_start(u[i % units], "twice", &i, 4, NULL, &c[i]), LVD_OK);
    for (uint32_t i = 0; i < CALLS; i++) {
      uint32_t x = 0;
      size_t size = sizeof x;
      CHECK_EQ(lvd_call_wait(c[i], &x, &size, -1, NULL), LVD_OK);
      CHECK_EQ(size, 4);
      CHECK_EQ(x, 2 * i);
    }
  }
}

/* `rounds` sizes from `least` to `most` bytes. */
static inline void call_backwards(lvd_unit *u, size_t least, size_t most, uint32_t rounds) {
  unsigned char *from = malloc(most), *to = malloc(most);
  for (size_t i = 0; i < most; i++) from[i] = (unsigned char)(i * 7);
  const lvd_call_options o = {.result_room = most};
  for (uint32_t round = 1; round <= rounds; round++) {
    lvd_call *c;
    size_t n = rounds == 1 ? most : least + (round - 1) * (most - least) / (rounds - 1),
           size = most;
    CHECK_EQ(lvd_call_start(u, "backwards", from, n, &o, &c), LVD_OK);
    CHECK_EQ(lvd_call_wait(c, to, &size, -1, NULL), LVD_OK);
    CHECK_EQ(size, n);
    for (size_t i = 0; i < n; i++) CHECK(to[i] == from[n - 1 - i]);
  }
  free(from);
  free(to);
}

/* A result larger than its buffer is an error, whatever the buffer's size, and nothing of it is
 * returned. */
static inline void call_overstates(lvd_unit *u) {
  static const size_t room[] = {0, 16, 100000};
  for (size_t i = 0; i < 2 * COUNT(room); i++) {
    const lvd_call_options o = {.result_room = room[i / 2]};
    unsigned char to[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    size_t size = sizeof to;
    lvd_call *c;
    CHECK_EQ(lvd_call_start(u, "overstates", "x", i % 2, &o, &c), LVD_OK);
    lvd_status status = lvd_call_wait(c, to, &size, -1, NULL);
    CHECK_EQ(status, i % 2 ? LVD_E_NOT_FOUND : LVD_E_LIMIT);
    if (i % 2 == 0) CHECK(strstr(lvd_status_text(status), "lvd_call_options.result_room"));
    CHECK_EQ(size, 0);
    for (size_t k = 0; k < sizeof to; k++) CHECK_EQ(to[k], 7);
  }
}

#endif
