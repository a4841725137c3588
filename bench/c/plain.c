/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The five trivial stages as one loop, fused by hand: an upper bound for all pipelines. */
#include "bench.h"
#include "pipeline.h"

int main(int argc, char **argv) {
  uint64_t count = bench_number(argc, argv, 1, "COUNT");
  bench_pin(bench_core(0));
  double start = bench_now();
  uint32_t sum = pipeline_sum(count);
  bench_say("elements_per_s", (double)count / (bench_now() - start));
  printf("sum %u\n", sum);
  return 0;
}
