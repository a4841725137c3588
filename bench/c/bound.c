/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The machine's bound for channels: moves the same bytes from one core to the other through plain memory.
 *
 * One thread writes a block of memory, the other reads it once; they synchronise by one flag per block,
 * which is the least possible. So compare the rows of the channel with this one. PAST is 1 for
 * non-temporal stores, so that the bytes go to the other core through memory. */
#include "bench.h"
#include "past.h"

enum { LINE_BYTES = 64, PREFETCH_BYTES = 512, BLOCKS_MAX = 4096 };

typedef struct flag {
  _Alignas(128) uint32_t full;  /* the round in which the block was last written, from 1 */
  _Alignas(128) uint32_t empty; /* the round in which it was last read */
} flag;

static flag flags[BLOCKS_MAX];
static uint64_t lines, blocks, rounds, past, sum;
static past_line *memory;

static void wait_for(const uint32_t *at, uint32_t round) {
  while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != round) bench_poll();
}

static void *write_blocks(void *argument) {
  (void)argument;
  for (uint32_t round = 0; round < rounds; round++)
    for (uint64_t b = 0; b < blocks; b++) {
      past_line *block = memory + b * lines;
      uint64_t first = (round * blocks + b) * lines;
      wait_for(&flags[b].empty, round);
      if (past) {
        for (uint64_t i = 0; i < lines; i++) past_fill(&block[i], first + i);
        past_done();
      } else {
        for (uint64_t i = 0; i < lines; i++) {
#if defined(__x86_64__)
          __asm__ volatile("prefetchw %0" : : "m"(*((char *)&block[i] + PREFETCH_BYTES)));
#else
          __builtin_prefetch((char *)&block[i] + PREFETCH_BYTES, 1);
#endif
          for (int w = 0; w < 8; w++) block[i].word[w] = first + i;
        }
      }
      __atomic_store_n(&flags[b].full, round + 1, __ATOMIC_RELEASE);
    }
  return NULL;
}

static void *read_blocks(void *argument) {
  (void)argument;
  uint64_t s = 0;
  for (uint32_t round = 0; round < rounds; round++)
    for (uint64_t b = 0; b < blocks; b++) {
      const past_line *block = memory + b * lines;
      wait_for(&flags[b].full, round + 1);
      for (uint64_t i = 0; i < lines; i++) {
        __builtin_prefetch((const char *)&block[i] + PREFETCH_BYTES, 0);
        for (int w = 0; w < 8; w++) s += block[i].word[w];
      }
      __atomic_store_n(&flags[b].empty, round + 1, __ATOMIC_RELEASE);
    }
  sum = s / 8;
  return NULL;
}

int main(int argc, char **argv) {
  static const char usage[] = "BYTES LINES BLOCKS COUNT PAST";
  uint64_t bytes = bench_number(argc, argv, 1, usage);
  lines = bench_number(argc, argv, 2, usage);
  blocks = bench_number(argc, argv, 3, usage);
  uint64_t count = bench_number(argc, argv, 4, usage);
  past = bench_number(argc, argv, 5, usage);
  if (lines == 0 || blocks == 0 || blocks > BLOCKS_MAX) {
    fprintf(stderr, "at least one line per block, and 1 to %d blocks\n", BLOCKS_MAX);
    return 2;
  }
  rounds = count * bytes / LINE_BYTES / (lines * blocks);
  size_t size = lines * blocks * LINE_BYTES;
  memory = (past_line *)aligned_alloc(4096, (size + 2 * 4096 - 1) / 4096 * 4096);
  if (!memory) {
    perror("aligned_alloc");
    return 1;
  }
  memset(memory, 0, size);
  double took = bench_pair(write_blocks, read_blocks, NULL);
  uint64_t moved = rounds * lines * blocks, expected = 0;
  for (uint64_t i = 0; i < moved; i++) expected += i;
  bench_expect("the sum", sum, expected);
  bench_say("elements_per_s", (double)(moved * LINE_BYTES / bytes) / took);
  return 0;
}
