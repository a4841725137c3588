/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Hostile memory: the other side of a channel writes arbitrary values at arbitrary times. This side
 * may report that the channel is corrupt; it never leaves the ring, and never takes more than there
 * can be.
 *
 * Header and ring lie in mappings of their own with inaccessible pages around each, so that an
 * access outside ends the test. */
#include "../support/test.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

enum { CONSUMERS = 3, PAGE = 65536 }; /* at least as large as pages are anywhere */

/* [inaccessible][header][inaccessible][ring, twice if mirrored][inaccessible] */
typedef struct victim {
  unsigned char *base;
  size_t mapped, header_size, ring_size, size; /* `size`: what an end is told it may access */
  lvd_channel *ch;
  unsigned char *ring;
  uint32_t elem_size, slots, capacity;
  bool mirrored;
  lvd_producer p;
  lvd_consumer c[CONSUMERS];
  lvd_wait_point wait_point;
} victim;

static void *map_at(unsigned char *at, size_t size, int fd) {
  void *p = mmap(at, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  CHECK(p == at);
  return p;
}

static void victim_map(victim *v, uint32_t elem_size, uint32_t slots, bool mirrored) {
  memset(v, 0, sizeof *v);
  v->elem_size = elem_size;
  v->slots = slots;
  v->mirrored = mirrored;
  v->ring_size = (size_t)slots * elem_size;
  CHECK_EQ(v->ring_size % PAGE, 0);
  v->header_size = (lvd_channel_header_size(CONSUMERS) + PAGE - 1) / PAGE * PAGE;
  size_t rings = mirrored ? 2 * v->ring_size : v->ring_size;
  v->mapped = 3 * PAGE + v->header_size + rings + PAGE;
  v->base = mmap(NULL, v->mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(v->base != MAP_FAILED);
  unsigned char *start = (unsigned char *)(((uintptr_t)v->base + PAGE - 1) / PAGE * PAGE);
  int header = memfd_create("header", 0), ring = memfd_create("ring", 0);
  CHECK(header >= 0 && ring >= 0);
  CHECK_EQ(ftruncate(header, (off_t)v->header_size), 0);
  CHECK_EQ(ftruncate(ring, (off_t)v->ring_size), 0);
  v->ch = map_at(start + PAGE, v->header_size, header);
  v->ring = map_at(start + 2 * PAGE + v->header_size, v->ring_size, ring);
  if (mirrored) map_at(v->ring + v->ring_size, v->ring_size, ring);
  v->size = (size_t)(v->ring + rings - (unsigned char *)v->ch);
  close(header);
  close(ring);
  lvd_wait_point_init(&v->wait_point, 0);
}

static void victim_unmap(victim *v) { munmap(v->base, v->mapped); }

static void lay_out(victim *v, uint32_t capacity) {
  v->capacity = capacity;
  lvd_channel_init(v->ch, v->ring, v->elem_size, v->slots, capacity, CONSUMERS,
                   v->mirrored ? LVD_CHANNEL_MIRRORED : 0);
}

static void attach(victim *v) {
  CHECK_EQ(lvd_producer_attach_shared(&v->p, v->ch, v->size, v->elem_size, NULL), LVD_OK);
  v->p.self = &v->wait_point.waiter;
  for (uint32_t i = 0; i < CONSUMERS; i++) {
    CHECK_EQ(lvd_consumer_attach_shared(&v->c[i], v->ch, v->size, v->elem_size, i, NULL), LVD_OK);
    v->c[i].self = &v->wait_point.waiter;
  }
}

/* ---- detection ------------------------------------------------------------------------------- */

#define REFUSES(expected, statement)                                                               \
  do {                                                                                             \
    lay_out(&v, 100);                                                                              \
    statement;                                                                                     \
    lvd_producer p_;                                                                               \
    lvd_consumer c_;                                                                               \
    CHECK_EQ(lvd_producer_attach_shared(&p_, v.ch, v.size, v.elem_size, NULL), expected);          \
    CHECK_EQ(lvd_consumer_attach_shared(&c_, v.ch, v.size, v.elem_size, 0, NULL), expected);       \
  } while (0)

void test_hostile_header(void) {
  victim v;
  lvd_producer p;
  lvd_consumer c;
  victim_map(&v, 64, PAGE / 64, false);
  REFUSES(LVD_OK, (void)0);
  REFUSES(LVD_E_CORRUPT, v.ch->magic++);
  REFUSES(LVD_E_ABI, v.ch->abi_version++);
  REFUSES(LVD_E_ABI, v.ch->line = 64);
  REFUSES(LVD_E_CORRUPT, v.ch->elem_size = 0);
  REFUSES(LVD_E_ARGUMENT, v.ch->elem_size = 32);
  REFUSES(LVD_E_CORRUPT, v.ch->elem_size = UINT32_MAX);
  REFUSES(LVD_E_CORRUPT, v.ch->slots = 0);
  REFUSES(LVD_E_CORRUPT, v.ch->slots--);
  REFUSES(LVD_E_CORRUPT, v.ch->slots *= 2);
  REFUSES(LVD_E_CORRUPT, (v.ch->slots = 1u << 31, v.ch->elem_size = 1u << 31));
  REFUSES(LVD_E_CORRUPT, v.ch->capacity = 0);
  REFUSES(LVD_E_CORRUPT, v.ch->capacity = v.slots + 1);
  REFUSES(LVD_E_CORRUPT, v.ch->consumers = 0);
  REFUSES(LVD_E_CORRUPT, v.ch->consumers = UINT32_MAX);
  REFUSES(LVD_E_CORRUPT, v.ch->consumers = 4096); /* they would extend into the ring */
  REFUSES(LVD_E_CORRUPT, v.ch->flags = LVD_CHANNEL_MIRRORED);
  REFUSES(LVD_E_CORRUPT, v.ch->flags = 2);
  REFUSES(LVD_E_CORRUPT, v.ch->data = -v.ch->data);
  REFUSES(LVD_E_CORRUPT, v.ch->data = 0);
  REFUSES(LVD_E_CORRUPT, v.ch->data++);
  REFUSES(LVD_E_CORRUPT, v.ch->data += LVD_CACHE_LINE);
  REFUSES(LVD_E_CORRUPT, v.ch->data = INT64_MAX / LVD_CACHE_LINE * LVD_CACHE_LINE);
  REFUSES(LVD_E_CORRUPT, v.ch->data = INT64_MIN);
  lay_out(&v, 100);
  CHECK_EQ(lvd_consumer_attach_shared(&c, v.ch, v.size, 64, CONSUMERS, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_producer_attach_shared(&p, v.ch, v.size - 1, 64, NULL), LVD_E_CORRUPT);
  CHECK_EQ(lvd_producer_attach_shared(&p, v.ch, 64, 64, NULL), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_producer_attach_shared(&p, NULL, v.size, 64, NULL), LVD_E_ARGUMENT);
  victim_unmap(&v);
}

static void producer_is_done(victim *v) {
  CHECK_EQ(lvd_room(&v->p, 1), 0);
  CHECK(v->p.corrupt);
  CHECK_EQ(lvd_wait_room(&v->p, 1, -1), LVD_E_CORRUPT);
}
static void consumer_is_done(victim *v) {
  CHECK_EQ(lvd_elements(&v->c[0], 1), 0);
  CHECK(v->c[0].corrupt);
  CHECK_EQ(lvd_ended(&v->c[0]), LVD_E_CORRUPT);
  CHECK_EQ(lvd_wait_elements(&v->c[0], 1, -1), LVD_E_CORRUPT);
}

/* The first invalid value counts, whatever follows; a waiter is told, once. */
void test_hostile_cursors(void) {
  victim v;
  victim_map(&v, 4, PAGE / 4, false);
  static const uint32_t jumps[] = {101, 1000, 1u << 31, UINT32_MAX}; /* from 0 to 100 */
  for (size_t i = 0; i < COUNT(jumps); i++) {
    lay_out(&v, 100);
    attach(&v);
    lvd_store_relaxed_u32(&v.ch->tail, jumps[i]);
    CHECK_EQ(lvd_elements(&v.c[0], 1), 0);
    CHECK(lvd_consumer_arm(&v.c[0], 1) != lvd_consumer_settled(&v.c[0], 1));
    lvd_store_relaxed_u32(&v.ch->tail, 3);
    consumer_is_done(&v);

    lay_out(&v, 100);
    attach(&v);
    lvd_store_relaxed_u32(&v.ch->consumer[1].head, jumps[i] - 100);
    CHECK_EQ(lvd_room(&v.p, 1), 0);
    CHECK(lvd_producer_arm(&v.p, 1) != lvd_producer_settled(&v.p, 1));
    lvd_store_relaxed_u32(&v.ch->consumer[1].head, 0);
    producer_is_done(&v);
  }

  /* Backwards. */
  lay_out(&v, 100);
  attach(&v);
  CHECK_EQ(lvd_room(&v.p, 100), 100);
  lvd_put_done(&v.p, 50);
  lvd_push(&v.p);
  CHECK_EQ(lvd_elements(&v.c[0], 1), 50);
  lvd_get_done(&v.c[0], 20);
  lvd_pop(&v.c[0]);
  lvd_store_relaxed_u32(&v.ch->tail, 40);
  CHECK_EQ(lvd_elements(&v.c[0], 1), 30); /* as seen before */
  CHECK_EQ(lvd_elements(&v.c[0], 31), 0);
  consumer_is_done(&v);
  lvd_store_relaxed_u32(&v.ch->consumer[1].head, 20);
  lvd_store_relaxed_u32(&v.ch->consumer[2].head, 20);
  CHECK_EQ(lvd_room(&v.p, 51), 70);
  lvd_store_relaxed_u32(&v.ch->consumer[2].head, 10);
  CHECK_EQ(lvd_room(&v.p, 71), 0);
  producer_is_done(&v);

  /* An end that has left may fall behind without limit. */
  lay_out(&v, 100);
  attach(&v);
  lvd_consumer_close(&v.c[1]);
  for (int i = 0; i < 10; i++) {
    CHECK_EQ(lvd_room(&v.p, 100), 100);
    lvd_put_done(&v.p, 100);
    lvd_push(&v.p);
    for (int k = 0; k <= 2; k += 2) {
      CHECK_EQ(lvd_elements(&v.c[k], 100), 100);
      lvd_get_done(&v.c[k], 100);
      lvd_pop(&v.c[k]);
    }
  }

  /* A state that does not exist. */
  static const uint32_t states[] = {LVD_CLOSED + LVD_STATUS_COUNT, LVD_CLOSED + LVD_E_TIMEOUT,
                                    1u << 31, UINT32_MAX};
  for (size_t i = 0; i < COUNT(states); i++) {
    lay_out(&v, 100);
    attach(&v);
    lvd_store_relaxed_u32(&v.ch->state, states[i]);
    CHECK_EQ(i % 2 ? lvd_wait_elements(&v.c[0], 1, -1) : lvd_ended(&v.c[0]), LVD_E_CORRUPT);
    lvd_store_relaxed_u32(&v.ch->state, LVD_OPEN);
    consumer_is_done(&v);
  }
  victim_unmap(&v);
}

/* ---- arbitrary values at arbitrary times
 * --------------------------------------------------------- */

static lvd_a32 *header_word(const victim *v, uint64_t *seed) {
  /* Four times of five a word that this side reads; else any. */
  lvd_consumer_shared *c = &v->ch->consumer[next_random(seed) % CONSUMERS];
  lvd_a32 *const words[] = {&v->ch->tail,  &v->ch->state,   &v->ch->flushed,   &c->head,
                            &c->state,     &c->released,    &c->room.armed,    &c->room.at,
                            &c->room.need, &c->elements.at, &c->elements.need, &c->elements.armed};
  uint64_t r = next_random(seed);
  if (r % 5) return words[r / 5 % COUNT(words)];
  size_t all = lvd_channel_header_size(CONSUMERS) / sizeof(lvd_a32);
  return (lvd_a32 *)(void *)v->ch + r / 5 % all;
}

static void scribble(const victim *v, uint64_t *seed) {
  lvd_a32 *word = header_word(v, seed);
  uint64_t r = next_random(seed);
  uint32_t now = lvd_load_relaxed_u32(word), near = (uint32_t)(r >> 8) % (2 * v->capacity + 2);
  const uint32_t values[] = {(uint32_t)(r >> 32), 0,          1,          UINT32_MAX, 1u << 31,
                             now + near,          now - near, now ^ near, near};
  lvd_store_relaxed_u32(word, values[r % COUNT(values)]);
}

static void inside(const victim *v, const void *span, uint32_t n, uint32_t edge) {
  CHECK(n <= v->capacity);
  CHECK(edge >= 1 && edge <= v->slots);
  uint32_t most = n < edge ? n : edge;
  uintptr_t ring = (uintptr_t)v->ring, from = (uintptr_t)span;
  uintptr_t end = ring + (v->mirrored ? 2 : 1) * v->ring_size;
  CHECK(from >= ring && from + (uintptr_t)most * v->elem_size <= end);
}

/* One legitimate call of the producer, whatever its status was. */
static void produce(victim *v, uint64_t *seed) {
  lvd_producer *p = &v->p;
  uint64_t r = next_random(seed);
  uint32_t want = 1 + (uint32_t)(r >> 8) % v->capacity;
  switch (r % 8) {
  default: {
    uint32_t n = lvd_room(p, want), edge = lvd_put_contiguous(p);
    inside(v, lvd_put_span(p), n, edge);
    n = n < want ? n : want;
    n = n < edge ? n : edge;
    memset(lvd_put_span(p), (int)(r >> 40), (size_t)n * v->elem_size);
    lvd_put_done(p, n);
    break;
  }
  case 3:
    lvd_push(p);
    break;
  case 4:
    lvd_flush(p);
    break;
  case 5: {
    bool was = p->corrupt;
    lvd_status s = lvd_wait_room(p, want, (int64_t)(r >> 50));
    CHECK(s == LVD_OK || s == LVD_E_PEER_GONE || s == LVD_E_TIMEOUT || s == LVD_E_CORRUPT);
    CHECK(p->corrupt ? s == LVD_E_CORRUPT || !was : s != LVD_E_CORRUPT);
    break;
  }
  case 6:
    if (!lvd_producer_arm(p, want)) lvd_producer_settled(p, want);
    lvd_producer_disarm(p);
    break;
  case 7:
    lvd_consumers_closed(p);
    break;
  }
  if (p->corrupt) {
    CHECK_EQ(lvd_room(p, 1), 0);
    CHECK_EQ(lvd_wait_room(p, 1, -1), LVD_E_CORRUPT);
  }
}

static void consume(victim *v, lvd_consumer *c, uint64_t *seed) {
  uint64_t r = next_random(seed);
  uint32_t want = 1 + (uint32_t)(r >> 8) % v->capacity;
  switch (r % 8) {
  default: {
    uint32_t n = lvd_elements(c, want), edge = lvd_get_edge(c);
    const unsigned char *span = lvd_get_span(c);
    inside(v, span, n, edge);
    n = n < want ? n : want;
    n = n < edge ? n : edge;
    unsigned sum = 0;
    for (size_t i = 0; i < (size_t)n * v->elem_size; i++) sum += span[i];
    __asm__ volatile("" ::"r"(sum));
    lvd_get_done(c, n);
    break;
  }
  case 3:
    lvd_pop(c);
    break;
  case 4:
    lvd_release(c);
    break;
  case 5: {
    lvd_status s = lvd_wait_elements(c, want, (int64_t)(r >> 50));
    CHECK((unsigned)s < LVD_STATUS_COUNT);
    break;
  }
  case 6:
    if (!lvd_consumer_arm(c, want)) lvd_consumer_settled(c, want);
    lvd_consumer_disarm(c);
    break;
  case 7:
    CHECK((unsigned)lvd_ended(c) < LVD_STATUS_COUNT);
    break;
  }
  if (c->corrupt) {
    CHECK_EQ(lvd_elements(c, 1), 0);
    CHECK_EQ(lvd_ended(c), LVD_E_CORRUPT);
    CHECK_EQ(lvd_wait_elements(c, 1, -1), LVD_E_CORRUPT);
  }
}

static bool all_corrupt(const victim *v) {
  bool all = v->p.corrupt;
  for (int i = 0; i < CONSUMERS; i++) all = all && v->c[i].corrupt;
  return all;
}

static void use(victim *v, uint64_t *seed) {
  uint64_t end = next_random(seed) % (CONSUMERS + 1);
  if (end == CONSUMERS)
    produce(v, seed);
  else
    consume(v, &v->c[end], seed);
}

static const struct {
  uint32_t elem_size, slots;
  bool mirrored;
} shapes[] = {{1, PAGE, false}, {4, PAGE / 4, true}, {4096, 16, false}, {12 * 1024, 64, true}};

/* Interleaved with this side's calls: each run is the same. */
void test_hostile_turns(void) {
  uint64_t seed = 0x9e3779b97f4a7c15u, corrupt = 0, served = 0;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    victim v;
    victim_map(&v, shapes[i].elem_size, shapes[i].slots, shapes[i].mirrored);
    for (uint32_t round = 0; round < SCALED(1000); round++) {
      lay_out(&v, 1 + (uint32_t)(next_random(&seed) % v.slots) / (1 + round % 7));
      uint32_t start = (uint32_t)next_random(&seed);
      lvd_store_relaxed_u32(&v.ch->tail, start);
      for (int k = 0; k < CONSUMERS; k++) lvd_store_relaxed_u32(&v.ch->consumer[k].head, start);
      attach(&v);
      uint64_t often = 1 + next_random(&seed) % 40;
      for (int step = 0; step < 100 && !all_corrupt(&v); step++) {
        use(&v, &seed);
        if (next_random(&seed) % often == 0) scribble(&v, &seed);
      }
      corrupt += v.p.corrupt;
      for (int k = 0; k < CONSUMERS; k++) {
        corrupt += v.c[k].corrupt;
        served += v.c[k].got - start;
      }
    }
    victim_unmap(&v);
  }
  printf("%llu elements got; %llu ends said that their channel is corrupt\n",
         (unsigned long long)served, (unsigned long long)corrupt);
  CHECK(corrupt > 100 && served > 100);
}

/* A header is overwritten, then attached to: refused, or consistent with what is mapped. */
void test_hostile_attach(void) {
  uint64_t seed = 0x2545f4914f6cdd1du, taken = 0, refused = 0;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    victim v;
    victim_map(&v, shapes[i].elem_size, shapes[i].slots, shapes[i].mirrored);
    for (uint32_t round = 0; round < SCALED(40000); round++) {
      lay_out(&v, v.slots);
      uint32_t *word = (uint32_t *)(void *)v.ch;
      for (uint64_t n = next_random(&seed) % 4; n--;) {
        uint64_t r = next_random(&seed);
        const uint32_t values[] = {(uint32_t)(r >> 32), 0, UINT32_MAX, 1u << (r >> 32) % 32,
                                   (uint32_t)(r >> 32) % 64};
        word[r % 10] = r & 1024 ? values[(r >> 16) % COUNT(values)] : word[r % 10] * 2;
      }
      lvd_channel_layout s;
      if (lvd_channel_layout_read(v.ch, v.size, &s) != LVD_OK) {
        refused++;
        continue;
      }
      taken++;
      uint64_t ring = (uint64_t)s.slots * s.elem_size * (s.flags & LVD_CHANNEL_MIRRORED ? 2 : 1);
      CHECK((uint64_t)s.data + ring <= v.size && s.capacity <= s.slots);
      CHECK((uint64_t)s.data >= lvd_channel_header_size(s.consumers));
    }
    victim_unmap(&v);
  }
  printf("%llu headers taken, %llu refused\n", (unsigned long long)taken,
         (unsigned long long)refused);
  CHECK(taken > 100 && refused > 100);
}

typedef struct vandal {
  victim *v;
  lvd_a32 stop;
} vandal;

static void *rage(void *argument) {
  vandal *a = argument;
  uint64_t seed = 0xda942042e4dd58b5u;
  while (!lvd_load_relaxed_u32(&a->stop)) scribble(a->v, &seed);
  return NULL;
}

/* At the same time. */
void test_hostile_threads(void) {
#ifdef __SANITIZE_THREAD__
  SKIP("the other thread races on purpose");
#endif
  uint64_t seed = 0xbf58476d1ce4e5b9u, corrupt = 0;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    victim v;
    victim_map(&v, shapes[i].elem_size, shapes[i].slots, shapes[i].mirrored);
    for (uint32_t round = 0; round < 20; round++) {
      lay_out(&v, 1 + (uint32_t)(next_random(&seed) % v.slots));
      attach(&v);
      vandal a = {.v = &v};
      pthread_t t;
      CHECK_EQ(pthread_create(&t, NULL, rage, &a), 0);
      for (uint32_t step = 0; step < SCALED(20000); step++) {
        use(&v, &seed);
        /* An end that has reported corruption is attached again, at arbitrary cursors. */
        for (int k = 0; k < CONSUMERS; k++)
          if (v.c[k].corrupt) {
            corrupt++;
            lvd_channel_layout s = {
                v.ring - (unsigned char *)v.ch,       v.elem_size, v.slots, v.capacity, CONSUMERS,
                v.mirrored ? LVD_CHANNEL_MIRRORED : 0};
            lvd_consumer_make(&v.c[k], v.ch, &s, (uint32_t)k, NULL, true);
            v.c[k].self = &v.wait_point.waiter;
            if (k == 0) lvd_producer_make(&v.p, v.ch, &s, NULL, true);
            v.p.self = &v.wait_point.waiter;
          }
      }
      lvd_store_relaxed_u32(&a.stop, 1);
      pthread_join(t, NULL);
    }
    victim_unmap(&v);
  }
  CHECK(corrupt > 10);
}
