/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A line is certainly dirty if it differs from its contents when it was last read or written back.
 * (Writing the same value cannot be detected; so a cleaned line is always written.) A hook in an
 * interrupt may occur during another hook's copy, which is then repeated. */
#include "caches.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { WORDS = LVD_CACHE_LINE / 8, RECENT = 32, NEAR = 32 /* lines */, TRIES = 8 };

typedef struct line {
  uint64_t word[WORDS];
} line;

static line *view, *base; /* base: contents of the view when last equal to memory */
static volatile line *memory;
static uint64_t lines, seed = 88172645463325252u;
static bool evicts;
static uint64_t recent[RECENT];
static volatile unsigned hooks, in_hook;

static bool is_dirty(uint64_t at) {
  for (int i = 0; i < WORDS; i++)
    if (view[at].word[i] != base[at].word[i]) return true;
  return false;
}

/* In ascending order of addresses, as the words were written. */
static void write_back(uint64_t at) {
  unsigned before;
  do {
    before = hooks;
    for (int i = 0; i < WORDS; i++) {
      uint64_t word = view[at].word[i];
      __atomic_store_n(&memory[at].word[i], word, __ATOMIC_RELEASE);
      base[at].word[i] = word;
    }
  } while (before != hooks);
}

/* All words of one moment, like a cache fill. */
static void read_in(uint64_t at) {
  line now;
  bool same;
  unsigned before;
  do {
    do {
      same = true;
      for (int i = 0; i < WORDS; i++)
        now.word[i] = __atomic_load_n(&memory[at].word[i], __ATOMIC_ACQUIRE);
      for (int i = 0; i < WORDS; i++)
        same &= now.word[i] == __atomic_load_n(&memory[at].word[i], __ATOMIC_ACQUIRE);
    } while (!same);
    before = hooks;
    view[at] = base[at] = now;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
  } while (before != hooks);
}

static uint64_t next_random(void) {
  seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
  return seed;
}

static void evict(void) {
  for (int n = 0; n < TRIES; n++) {
    uint64_t r = next_random(), at = recent[r % RECENT] + (r >> 32) % (2 * NEAR + 1) - NEAR;
    if (at < lines && is_dirty(at)) write_back(at);
  }
}

static void each(const void *from, size_t size, void (*what)(uint64_t at)) {
  uintptr_t offset = (uintptr_t)from - (uintptr_t)view;
  if (size == 0) return;
  if (offset / LVD_CACHE_LINE >= lines || (offset + size - 1) / LVD_CACHE_LINE >= lines) abort();
  unsigned outer = in_hook;
  in_hook = 1;
  hooks++;
  uint64_t first = offset / LVD_CACHE_LINE, last = (offset + size - 1) / LVD_CACHE_LINE;
  for (uint64_t at = first; at <= last; at++) what(at);
  uint64_t r = next_random(); /* touched lines are remembered for long */
  if (r % 8 == 0) recent[(r >> 8) % RECENT] = r >> 63 ? first : last;
  if (evicts && !outer) evict();
  in_hook = outer;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void clean(const void *from, size_t size) { each(from, size, write_back); }
static void drop(const void *from, size_t size) { each(from, size, read_in); }

const lvd_caches lvd_native_caches = {clean, drop};

void lvd_native_caches_begin(void *at, void *behind, size_t size, bool may_evict) {
  view = at;
  memory = behind;
  lines = size / LVD_CACHE_LINE;
  evicts = may_evict;
  base =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) abort();
}

void lvd_native_caches_again(void) { in_hook = 0; }
