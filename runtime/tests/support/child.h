/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by the tests of process units and the program that they load (child.c). */
#ifndef LVD_TEST_CHILD_H
#define LVD_TEST_CHILD_H

#include <levada/levada.h>

/* A file that both map, in addition to what the library shares: the child's reports. */
typedef struct page {
  lvd_a64 pushed, got; /* elements, stored after the push, the pop */
  lvd_a32 grandchild;  /* a process that the child has loaded */
  lvd_a32 alive;       /* counts, as long as that lives */
  /* 1 + the status with which a procedure's wait ended; UINT32_MAX: it waits */
  lvd_a32 told[2];
} page;

/* The argument of the procedures that stream. */
typedef struct order {
  char name[32], back[32]; /* names of the streams to the child and from it */
  uint64_t count, seed;
  uint32_t capacity, threshold;
} order;

/* Element number n of the stream with this seed. */
static inline uint64_t element(uint64_t seed, uint64_t n) {
  uint64_t x = seed + n * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  return x ^ x >> 27;
}

static inline lvd_status open_stream(lvd_unit *unit, const char *name, uint32_t capacity,
                                     uint32_t threshold, lvd_stream **out) {
  const lvd_stream_options o = {
      .name = name, .elem_size = 8, .capacity = capacity, .threshold = threshold};
  return lvd_stream_open(unit, &o, out);
}

/* Groups of random sizes, each pushed; `said` (may be null) is set to the number pushed. */
static inline lvd_status send_elements(lvd_stream *s, uint64_t count, uint64_t seed,
                                       lvd_a64 *said) {
  uint64_t random = seed | 1;
  lvd_status status = LVD_OK;
  for (uint64_t n = 0; n < count && status == LVD_OK;) {
    random ^= random << 13, random ^= random >> 7, random ^= random << 17;
    uint64_t group = 1 + random % 40;
    if (group > count - n) group = count - n;
    for (; group && status == LVD_OK; group--) {
      uint64_t x = element(seed, n);
      status = lvd_stream_put(s, &x, sizeof x);
      n += status == LVD_OK;
    }
    if (status != LVD_OK) break;
    lvd_stream_push(s);
    if (said) lvd_store_release_u64(said, n);
  }
  return status;
}

/* Until it ends; *count is the number received. LVD_E_EOF: in order; LVD_E_FAULT: one was
 * wrong. */
static inline lvd_status receive_elements(lvd_stream *s, uint64_t *count, uint64_t seed,
                                          lvd_a64 *said) {
  uint64_t x;
  lvd_status status;
  while ((status = lvd_stream_get(s, &x, sizeof x)) == LVD_OK) {
    if (x != element(seed, *count)) return LVD_E_FAULT;
    ++*count;
    if (*count % 7 == 0) lvd_stream_pop(s);
    if (said) lvd_store_release_u64(said, *count);
  }
  return status;
}

#endif
