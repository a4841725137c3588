/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory and threads, for the harnesses in which the runtime asks for them itself.
 *
 * All memory, also what is made while threads run, lies in one arena, which the checker watches
 * from the beginning. What is freed is not used again, and not to be touched. A thread that is
 * started is one that the check has spawned, which slept until then (model_thread). */
#include "arena.h"

#include <stdlib.h>
#include <string.h>

/* Pieces of the same size, of at most this number of lines, lie together, in groups of this number: where a
 * piece is does not depend on what else was made before. All others lie behind, in the order of
 * making. */
enum { LINES = 256, SAME = 16, PIECES = 512, THREADS = 6, OTHERS = 1 << 19 };
#define POOLS ((size_t)LINES * (LINES + 1) / 2 * SAME * LVD_CACHE_LINE)
#define ARENA (POOLS + OTHERS)

struct lvd_os_thread {
  lvd_a32 started, ended;
  void (*body)(void *);
  void *argument;
};

void model_freed(void *p, size_t size);

static LVD_ALIGNED(4096) unsigned char arena[ARENA];
static struct piece {
  unsigned char *at;
  size_t size;
} piece[PIECES];
static uint32_t pieces;
static size_t others;
static uint32_t same[LINES + 1];
static lvd_os_thread *thread;
static uint32_t threads;

/* ---- memory -------------------------------------------------------------------------------- */

static unsigned char *note(size_t at, size_t size) {
  if (pieces == PIECES || at + size > ARENA) abort();
  piece[pieces] = (struct piece){arena + at, size};
  return piece[pieces++].at;
}
static void *give_aligned(size_t size, size_t aligned) {
  size_t at = (others + aligned - 1) / aligned * aligned;
  others = at + size;
  return note(at, size);
}
static void *give(size_t size) {
  size_t n = (size + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE;
  if (n == 0) n = 1;
  if (n > LINES) return give_aligned(n * LVD_CACHE_LINE, LVD_CACHE_LINE);
  if (same[n] == SAME) abort();
  return note((n * (n - 1) / 2 * SAME + n * same[n]++) * LVD_CACHE_LINE, n * LVD_CACHE_LINE);
}
static void take_back(void *p) {
  for (uint32_t i = 0; p && i < pieces; i++)
    if (piece[i].at == p) model_freed(p, piece[i].size);
}

void model_arena_reset(void) {
  for (uint32_t i = 0; i < pieces; i++) memset(piece[i].at, 0, piece[i].size);
  memset(same, 0, sizeof same);
  others = POOLS;
  pieces = threads = 0;
  thread = give(THREADS * sizeof *thread);
}
void *model_arena(void) { return arena; }
size_t model_arena_size(void) { return ARENA; }
void *model_pages(size_t size) { return give_aligned(size, 4096); }

void *lvd_os_alloc(size_t size) { return give(size); }
void lvd_os_free(void *p, size_t size) { (void)size, take_back(p); }

/* The allocator of the C library, for the sources under test alone: nothing else is linked with
 * these. */
void *malloc(size_t size) { return give(size); }
void *calloc(size_t n, size_t size) { return give(n * size); }
void free(void *p) { take_back(p); }

__attribute__((weak)) size_t lvd_os_ring_granularity(void) { return 4; }
lvd_status lvd_os_rings_alloc(lvd_os_rings *rings, uint32_t count, const size_t *size,
                              void **ring) {
  rings->size = 0;
  for (uint32_t i = 0; i < count; i++)
    rings->size += (size[i] + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
  unsigned char *at = rings->base = give(rings->size);
  for (uint32_t i = 0; i < count; i++) {
    ring[i] = at;
    at += (size[i] + LVD_CACHE_LINE - 1) / LVD_CACHE_LINE * LVD_CACHE_LINE;
  }
  return LVD_OK;
}
void lvd_os_rings_free(lvd_os_rings *rings) { take_back(rings->base); }

/* ---- threads ------------------------------------------------------------------------------- */

lvd_status lvd_os_thread_start(lvd_os_thread **out, int32_t cpu, const char *name,
                               void (*body)(void *), void *argument) {
  (void)cpu, (void)name;
  if (threads == THREADS) abort();
  lvd_os_thread *t = *out = &thread[threads++];
  t->body = body;
  t->argument = argument;
  lvd_store_release_u32(&t->started, 1);
  lvd_os_wake(&t->started);
  return LVD_OK;
}
void lvd_os_thread_join(lvd_os_thread *t) {
  while (!lvd_load_acquire_u32(&t->ended)) lvd_os_wait(&t->ended, 0, -1);
}
uint32_t model_threads(void) { return threads; }
void model_thread(uint32_t i) {
  lvd_os_thread *t = &thread[i];
  while (!lvd_load_acquire_u32(&t->started)) lvd_os_wait(&t->started, 0, -1);
  t->body(t->argument);
  lvd_store_release_u32(&t->ended, 1);
  lvd_os_wake(&t->ended);
}
