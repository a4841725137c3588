/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Bounds for message passing: a bare ring of slots between two sides that spin (`ring`) or sleep at once
 * (`futex`), without any check; and copying alone (`memcpy`). */
#include "pair.h"

#include <linux/futex.h>
#include <sys/syscall.h>

enum { SLOTS = 64 };

typedef struct ring {
  _Alignas(64) uint32_t tail;
  uint32_t sleeps; /* the receiver sleeps or is about to */
  _Alignas(64) uint32_t head;
  _Alignas(64) unsigned char slot[SLOTS * PAIR_BYTES_MAX];
} ring;

static struct {
  ring *out, *in;
  _Alignas(64) uint32_t put, room;
  _Alignas(64) uint32_t got;
  _Alignas(64) unsigned char data[PAIR_BYTES_MAX];
} mine[2];
static ring *rings;
static size_t stride; /* from slot to slot */

static void make(void *shared) { rings = (ring *)shared; }

static void begin(int side, int other, size_t size) {
  stride = (size + 63) / 64 * 64;
  mine[side].out = &rings[other];
  mine[side].in = &rings[side];
}

static void put(int side, const void *data, size_t size) {
  ring *r = mine[side].out;
  uint32_t n = mine[side].put;
  while (n - mine[side].room >= SLOTS)
    mine[side].room = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE);
  memcpy(&r->slot[n % SLOTS * stride], data, size);
  __atomic_store_n(&r->tail, mine[side].put = n + 1, __ATOMIC_RELEASE);
}

static uint64_t get(int side, size_t size) {
  uint64_t number;
  ring *r = mine[side].in;
  memcpy(mine[side].data, &r->slot[mine[side].got % SLOTS * stride], size);
  __atomic_store_n(&r->head, ++mine[side].got, __ATOMIC_RELEASE);
  memcpy(&number, mine[side].data, sizeof number);
  return number;
}

static uint64_t spin(int side, size_t size) {
  while (__atomic_load_n(&mine[side].in->tail, __ATOMIC_ACQUIRE) == mine[side].got) {
  }
  return get(side, size);
}

static void put_and_wake(int side, const void *data, size_t size) {
  ring *r = mine[side].out;
  put(side, data, size);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (__atomic_load_n(&r->sleeps, __ATOMIC_RELAXED) &&
      __atomic_exchange_n(&r->sleeps, 0, __ATOMIC_RELAXED))
    syscall(SYS_futex, &r->tail, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static uint64_t sleep_for(int side, size_t size) {
  ring *r = mine[side].in;
  while (__atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) == mine[side].got) {
    __atomic_store_n(&r->sleeps, 1, __ATOMIC_SEQ_CST);
    syscall(SYS_futex, &r->tail, FUTEX_WAIT, mine[side].got, NULL, NULL, 0);
  }
  return get(side, size);
}

static void copy(int side, const void *data, size_t size) {
  memcpy(&rings->slot[mine[side].put++ % PAIR_BURST * stride], data, size);
}
static uint64_t copied(int side, size_t size) {
  uint64_t number;
  (void)size;
  memcpy(&number, &rings->slot[mine[side].got++ % PAIR_BURST * stride], sizeof number);
  return number;
}

int main(int argc, char **argv) {
  static const char usage[] = "ring|futex|memcpy WHERE SIZE TO_AND_FRO ONE_WAY";
  static const struct {
    const char *word;
    pair_carrier carrier;
  } known[] = {{"ring", {2 * sizeof(ring), make, begin, put, spin, NULL}},
               {"futex", {2 * sizeof(ring), make, begin, put_and_wake, sleep_for, NULL}},
               {"memcpy", {2 * sizeof(ring), make, begin, copy, copied, NULL}}};
  for (size_t i = 0; i < sizeof known / sizeof *known && argc > 2; i++)
    if (strcmp(argv[1], known[i].word) == 0)
      return pair_main(&known[i].carrier, i == 2 ? "itself" : argv[2],
                       bench_number(argc, argv, 3, usage), bench_number(argc, argv, 4, usage),
                       bench_number(argc, argv, 5, usage));
  fprintf(stderr, "usage: %s %s\n", argv[0], usage);
  return 2;
}
