/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures the round trip time of a cache line between the two cores used, on which all figures of two
 * communicating cores depend. */
#include "bench.h"

enum { TRIPS = 2000, PARTS = 5 };

static _Alignas(128) uint32_t line;

static void *ping(void *argument) {
  double *best = argument;
  for (uint32_t part = 0; part < PARTS; part++) {
    double start = bench_now();
    for (uint32_t i = part * TRIPS; i < (part + 1) * TRIPS; i++) {
      __atomic_store_n(&line, 2 * i + 1, __ATOMIC_RELEASE);
      while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != 2 * i + 2) bench_relax();
    }
    double took = (bench_now() - start) / TRIPS;
    if (part == 0 || took < *best) *best = took;
  }
  return NULL;
}

static void *pong(void *argument) {
  (void)argument;
  for (uint32_t i = 0; i < PARTS * TRIPS; i++) {
    while (__atomic_load_n(&line, __ATOMIC_ACQUIRE) != 2 * i + 1) bench_relax();
    __atomic_store_n(&line, 2 * i + 2, __ATOMIC_RELEASE);
  }
  return NULL;
}

int main(void) {
  double best = 0;
  bench_pair(ping, pong, &best);
  bench_say("ns", best * 1e9);
  return 0;
}
