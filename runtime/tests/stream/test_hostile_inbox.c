/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hostile memory: other processes write arbitrary values at arbitrary times into an inbox and its
 * slots. The receiver gets slots of the table, each once until it releases it; it never loops
 * without end, never accesses memory outside, and reports the inbox as corrupt from then on.
 *
 * Inbox and slots, and the receiver's own list, end where an inaccessible page begins. */
#include "../support/test.h"

#include <levada/inbox.h>
#include <pthread.h>
#include <sys/mman.h>

enum { SLOTS = 16, PAGE = 65536 };

typedef struct victim {
  unsigned char *base[3];
  lvd_inbox *in;
  lvd_slot *slot;
  uint32_t *list;
  lvd_receiver r;
  bool held[SLOTS];
  uint32_t got, corrupt;
} victim;

/* `size` bytes that end where an inaccessible page begins. */
static void *at_the_edge(unsigned char **base, size_t size, size_t align) {
  *base = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(*base != MAP_FAILED);
  CHECK_EQ(mprotect(*base + PAGE, PAGE, PROT_NONE), 0);
  return *base + (PAGE - size) / align * align;
}

static void victim_make(victim *v) {
  memset(v, 0, sizeof *v);
  v->in = at_the_edge(&v->base[0], sizeof *v->in, LVD_CACHE_LINE);
  v->slot = at_the_edge(&v->base[1], SLOTS * sizeof *v->slot, sizeof *v->slot);
  v->list = at_the_edge(&v->base[2], SLOTS * sizeof *v->list, sizeof *v->list);
}
static void victim_free(victim *v) {
  for (int i = 0; i < 3; i++) munmap(v->base[i], 2 * PAGE);
}
static void lay_out(victim *v) {
  lvd_inbox_init(v->in);
  memset(v->slot, 0, SLOTS * sizeof *v->slot);
  lvd_receiver_init(&v->r, v->in, v->slot, SLOTS, v->list);
  memset(v->held, 0, sizeof v->held);
}

static void send(victim *v, uint32_t hint, uint32_t level) {
  uint32_t sleep, n = lvd_slot_claim(v->slot, SLOTS, hint, 1 + hint % 3);
  CHECK(n <= SLOTS);
  if (n < SLOTS && lvd_inbox_post(v->in, v->slot, n, level, &sleep))
    lvd_inbox_ack_wake(v->in, sleep);
}

static void is_done(victim *v) {
  CHECK(v->r.corrupt);
  CHECK_EQ(lvd_receiver_take(&v->r), 0);
  CHECK_EQ(lvd_receiver_get(&v->r), SLOTS);
  CHECK_EQ(lvd_receiver_reap(&v->r, 1), 0);
}

/* ---- detection ------------------------------------------------------------------------------- */

#define SPOILS(statement)                                                                          \
  do {                                                                                             \
    lay_out(&v);                                                                                   \
    for (uint32_t i_ = 0; i_ < 4; i_++) send(&v, i_, 2);                                           \
    statement;                                                                                     \
    CHECK_EQ(lvd_receiver_get(&v.r), SLOTS);                                                       \
    is_done(&v);                                                                                   \
    lay_out_shared_again(&v);                                                                      \
    is_done(&v);                                                                                   \
  } while (0)

/* The shared part is repaired; the receiver keeps its state. */
static void lay_out_shared_again(victim *v) {
  lvd_inbox_init(v->in);
  memset(v->slot, 0, SLOTS * sizeof *v->slot);
  send(v, 0, 2);
}

void test_hostile_inbox_links(void) {
  victim v;
  victim_make(&v);
  SPOILS(lvd_store_relaxed_u32(&v.in->head[2].newest, SLOTS + 1));
  SPOILS(lvd_store_relaxed_u32(&v.in->head[7].newest, UINT32_MAX));
  SPOILS(lvd_store_relaxed_u32(&v.in->head[0].newest, 1u << 31));
  SPOILS(lvd_store_relaxed_u32(&v.slot[2].next, SLOTS + 1));
  SPOILS(lvd_store_relaxed_u32(&v.slot[0].next, UINT32_MAX));
  SPOILS(lvd_store_relaxed_u32(&v.slot[0].next, 4));       /* a cycle */
  SPOILS(lvd_store_relaxed_u32(&v.slot[3].next, 4));       /* a cycle of one */
  SPOILS(lvd_store_relaxed_u32(&v.in->head[5].newest, 3)); /* the same at two levels */
  /* A slot that the receiver holds is posted again. */
  lay_out(&v);
  send(&v, 9, 1);
  CHECK_EQ(lvd_receiver_get(&v.r), 9);
  lvd_store_relaxed_u32(&v.in->head[1].newest, 9 + 1);
  CHECK_EQ(lvd_receiver_get(&v.r), SLOTS);
  is_done(&v);
  victim_free(&v);
}

/* Order, priorities, and slots that a dead sender had claimed. */
void test_inbox_receiver(void) {
  victim v;
  victim_make(&v);
  lay_out(&v);
  uint32_t sleep;
  CHECK_EQ(lvd_receiver_get(&v.r), SLOTS);
  for (uint32_t round = 0; round < 3; round++) {
    for (uint32_t i = 0; i < SLOTS; i++) send(&v, i, i % 2 ? 6 : 1);
    CHECK_EQ(lvd_slot_claim(v.slot, SLOTS, 0, 1), SLOTS);
    CHECK_EQ(lvd_receiver_get(&v.r), 1);
    lvd_receiver_give_back(&v.r, 1);
    send(&v, 1, 7); /* overtakes what was taken before */
    CHECK_EQ(lvd_receiver_take(&v.r), SLOTS);
    CHECK_EQ(lvd_receiver_get(&v.r), 1);
    lvd_receiver_give_back(&v.r, 1);
    for (uint32_t i = 3; i < SLOTS; i += 2) CHECK_EQ(lvd_receiver_get(&v.r), i);
    for (uint32_t i = 0; i < SLOTS; i += 2) CHECK_EQ(lvd_receiver_get(&v.r), i);
    CHECK_EQ(lvd_receiver_get(&v.r), SLOTS);
    for (uint32_t i = SLOTS; i-- > 0;) /* in any order */
      if (i != 1) lvd_receiver_give_back(&v.r, i);
  }
  CHECK_EQ(lvd_slot_claim(v.slot, SLOTS, 2, 77), 2);
  CHECK_EQ(lvd_slot_claim(v.slot, SLOTS, 3, 77), 3);
  CHECK_EQ(lvd_slot_claim(v.slot, SLOTS, 4, 78), 4);
  CHECK(!lvd_inbox_post(v.in, v.slot, 3, 0, &sleep));
  CHECK_EQ(lvd_receiver_reap(&v.r, 77), 1); /* slot 2; what was posted has yet to be read */
  CHECK_EQ(lvd_receiver_get(&v.r), 3);
  lvd_receiver_give_back(&v.r, 3);
  CHECK_EQ(lvd_slot_claim(v.slot, SLOTS, 2, 79), 2);
  CHECK_EQ(lvd_load_relaxed_u32(&v.slot[4].owner), 78);
  CHECK(!v.r.corrupt);
  victim_free(&v);
}

/* ---- anything, at any time ------------------------------------------------------------------- */

static void scribble(const victim *v, uint64_t *seed) {
  uint64_t r = next_random(seed);
  size_t words = sizeof *v->in / sizeof(uint32_t);
  lvd_a32 *word = r % 3 == 0   ? &v->in->head[r / 3 % LVD_INBOX_LEVELS].newest
                  : r % 3 == 1 ? (lvd_a32 *)(void *)v->slot + r / 3 % (2 * SLOTS)
                               : (lvd_a32 *)(void *)v->in + r / 3 % words;
  const uint32_t values[] = {
      (uint32_t)(r >> 32), 0, 1, UINT32_MAX, (uint32_t)(r >> 32) % SLOTS + 1, SLOTS + 1};
  lvd_store_relaxed_u32(word, values[(r >> 24) % COUNT(values)]);
}

/* One legitimate call of the receiver. */
static void receive(victim *v, uint64_t *seed) {
  uint64_t r = next_random(seed);
  uint32_t some = (uint32_t)(r >> 8) % SLOTS;
  switch (r % 8) {
  default: {
    uint32_t n = lvd_receiver_get(&v->r);
    CHECK(n <= SLOTS);
    if (n == SLOTS) break;
    CHECK(!v->r.corrupt && !v->held[n]);
    v->held[n] = true;
    v->got++;
    break;
  }
  case 4:
  case 5:
    for (uint32_t n = some; n < SLOTS; n++)
      if (v->held[n]) {
        v->held[n] = false;
        lvd_receiver_give_back(&v->r, n);
      }
    break;
  case 6:
    CHECK(lvd_receiver_reap(&v->r, 1 + some % 3) <= SLOTS);
    break;
  case 7:
    if (lvd_inbox_prepare_sleep(v->in)) lvd_inbox_cancel_sleep(v->in);
    CHECK(lvd_receiver_take(&v->r) <= SLOTS);
    break;
  }
  if (v->r.corrupt) is_done(v);
}

/* Alternating with the receiver's calls: each run is the same. */
void test_hostile_inbox_turns(void) {
  uint64_t seed = 0x9e3779b97f4a7c15u, got = 0, corrupt = 0;
  victim v;
  victim_make(&v);
  for (uint32_t round = 0; round < SCALED(20000); round++) {
    lay_out(&v);
    uint64_t often = 1 + next_random(&seed) % 30;
    for (int step = 0; step < 60 && !v.r.corrupt; step++) {
      uint64_t r = next_random(&seed);
      if (r % 2)
        send(&v, (uint32_t)(r >> 8), (uint32_t)(r >> 40) % LVD_INBOX_LEVELS);
      else
        receive(&v, &seed);
      if (next_random(&seed) % often == 0) scribble(&v, &seed);
    }
    corrupt += v.r.corrupt;
  }
  got = v.got;
  printf("%llu slots got; %llu inboxes were corrupt\n", (unsigned long long)got,
         (unsigned long long)corrupt);
  CHECK(got > 100 && corrupt > 100);
  victim_free(&v);
}

/* Concurrently with the receiver's calls. */
typedef struct vandal {
  victim *v;
  lvd_a32 stop, written;
} vandal;

static void *vandalise(void *argument) {
  vandal *d = argument;
  uint64_t seed = 0x2545f4914f6cdd1du;
  while (!lvd_load_relaxed_u32(&d->stop)) {
    scribble(d->v, &seed);
    lvd_store_relaxed_u32(&d->written, lvd_load_relaxed_u32(&d->written) + 1);
    for (uint64_t n = next_random(&seed) % 200; n--;) __asm__ volatile("");
  }
  return NULL;
}

void test_hostile_inbox_threads(void) {
#ifdef __SANITIZE_THREAD__
  SKIP("the other thread races on purpose");
#endif
  uint64_t seed = 0xda942042e4dd58b5u, corrupt = 0;
  victim v;
  victim_make(&v);
  lay_out(&v);
  vandal d = {.v = &v};
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, vandalise, &d), 0);
  /* On a busy machine the other thread may begin late, or run while this one does not. */
  for (uint32_t round = 0;
       round < SCALED(20000) || lvd_load_relaxed_u32(&d.written) < SCALED(20000) || !corrupt;
       round++) {
    lvd_receiver_init(&v.r, v.in, v.slot, SLOTS, v.list); /* the shared part stays as it is */
    memset(v.held, 0, sizeof v.held);
    for (int step = 0; step < 60 && !v.r.corrupt; step++) {
      uint64_t r = next_random(&seed);
      if (r % 2)
        send(&v, (uint32_t)(r >> 8), (uint32_t)(r >> 40) % LVD_INBOX_LEVELS);
      else
        receive(&v, &seed);
    }
    corrupt += v.r.corrupt;
  }
  lvd_store_relaxed_u32(&d.stop, 1);
  pthread_join(thread, NULL);
  printf("%u slots got; %llu inboxes were corrupt\n", v.got, (unsigned long long)corrupt);
  CHECK(corrupt > 0);
  victim_free(&v);
}
