/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Channel: a bounded ring buffer with one producer and one or more consumers, each of which gets
 * every element.
 *
 *   put   write an element, not yet visible        push  publish all elements put
 *   get   read an element in place                 pop   free the space of all elements got
 *
 * A side that has to wait parks: it arms its wake mark (_arm), passes a barrier, and checks the
 * condition once more (_settled). Push and pop wake the other side when they reach its mark. The
 * waiting itself, of threads and fibers, is in wait.h.
 *
 * The shared part (lvd_channel) is position-independent: the same bytes work in private memory, in
 * memory shared by processes, and in a window shared with a processor that has plain loads and
 * stores only. Each word in it has ONE writer. Each side has a private handle (lvd_producer,
 * lvd_consumer) with its own cursor and a cached copy of the other's; it reads the other side's
 * cache line only when the copy says full or empty.
 *
 * The other side may be another process, or a faulty processor, and may write anything into the
 * shared part at any time. Therefore a handle copies the constants once and never reads them
 * again; it uses a cursor of the other side only after validating it; and all other shared words
 * (marks, states) only determine which side is woken, or with which status the stream ended.
 *
 * Guarantees
 *   C1  A pushed element is seen completely: data written before a push is visible to a
 *       consumer that sees the cursor of that push.
 *   C2  Space is reused only after every consumer has popped it.
 *   C3  A consumer that has armed and settled is woken by the push that reaches its mark; a
 *       producer that has armed and settled is woken by the pop that does. No lost wake-ups.
 *   C4  After the producer has closed (also with an error), a consumer first gets everything that
 *       was pushed before.
 *   C5  A side that waits below its threshold resumes as soon as the other side has flushed
 *       (released) as much as it needs to proceed; so no threshold causes a deadlock.
 *   C6  Whatever the shared part holds, no span reaches outside the ring or exceeds the
 *       capacity. A side that reads a value that the protocol cannot produce sees
 *       LVD_E_CORRUPT from then on, and transfers no more elements.
 *
 * Memory order pairs (each is proven necessary under the model checker, runtime/model)
 *   push: store_release tail          -> refresh: load_acquire tail                  C1
 *   pop:  store_release head          -> refresh: load_acquire head                  C2
 *   consumer_close: store_release state -> refresh: load_acquire the consumer's state  C2
 *   producer_close: store_release state -> lvd_ended: load_acquire state               C4
 *   push: tail, [light], load armed   <> consumer: armed, [heavy], load tail         C3
 *   pop:  head, [light], load armed   <> producer: armed, [heavy], load head         C3
 *   flush:   flushed, [light], load armed  <> consumer: armed, [heavy], load flushed   C5
 *   release: released, [light], load armed <> producer: armed, [heavy], load released  C5
 * [light] is a compiler barrier and [heavy] a membarrier on all cores of the process; where
 * membarrier is unavailable (lvd_producer.fenced), both are seq_cst fences. The words of a mark
 * need no order among themselves: a waker that sees `armed` with an older `at` came before the
 * barrier, and then the side that settles sees the waker's cursor.
 *
 * Where a processor's cache is not coherent with the memory, its side cleans the lines that it has
 * written and invalidates those that it will read, by the rules of caches.h; elsewhere these calls
 * compile to nothing.
 *
 * Thread-safety: one thread at a time per handle. The runtime passes a handle between threads only
 * through its inboxes, which order everything before against everything after.
 *
 * Freestanding: no libc, no operating system. C17 and C++17. */
#ifndef LVD_CHANNEL_H
#define LVD_CHANNEL_H

#include <levada/atomic.h>
#include <levada/caches.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ------------------------------------------------------------------------------------------ */
/* The shared part                                                                            */
/* ------------------------------------------------------------------------------------------ */

#define LVD_CHANNEL_MAGIC    0x4c564348u /* "LVCH" */
#define LVD_CHANNEL_MIRRORED 1u          /* the ring is mapped twice in a row: spans never wrap */

enum { LVD_OPEN = 0, LVD_CLOSED = 1 /* above: an lvd_status, as 1 + status */ };

/* The cursor values at which a waiting side is to be woken. Written by that side only; the waker
 * never clears it, so that a late waker cannot overwrite a newer request. */
typedef struct lvd_wake_mark {
  lvd_a32 armed; /* 1: waiting */
  lvd_a32 at;    /* wake when the other side's cursor reaches this (the threshold), */
  lvd_a32 need;  /* or this when the other side parks: the least that allows progress */
} lvd_wake_mark;

typedef struct lvd_consumer_shared {
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_a32 head;     /* all elements before it may be overwritten; written by the consumer */
  lvd_a32 state;    /* LVD_OPEN, or LVD_CLOSED: it reads no more */
  lvd_a32 released; /* head at the last release: further pops may take long */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_wake_mark elements; /* the consumer waits for elements */
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_wake_mark room; /* the producer waits for room from this consumer */
} lvd_consumer_shared;

typedef struct lvd_channel {
  /* Constant after creation. */
  LVD_ALIGNED(LVD_CACHE_LINE) uint32_t magic;
  uint32_t abi_version;
  uint32_t line;      /* LVD_CACHE_LINE, bytes */
  uint32_t elem_size; /* bytes */
  uint32_t slots;     /* elements in the ring: a power of two */
  uint32_t capacity;  /* elements that may be in flight: 1 ... slots */
  uint32_t consumers;
  uint32_t flags; /* set of LVD_CHANNEL_MIRRORED */
  int64_t data;   /* offset of the ring from this header, bytes */
  /* Written by the producer. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 tail; /* all elements before it may be read */
  lvd_a32 state;                            /* LVD_OPEN, LVD_CLOSED or 1 + an lvd_status */
  lvd_a32 flushed;                 /* tail at the last flush: further pushes may take long */
  lvd_consumer_shared consumer[1]; /* actually `consumers` of them */
} lvd_channel;

#define LVD_CHANNEL_CAPACITY  (1u << 30) /* maximum capacity in elements */
#define LVD_CHANNEL_CONSUMERS 4096u      /* maximum number of consumers */

/* Bytes of the header of a channel; the ring is not included. */
static inline size_t lvd_channel_header_size(uint32_t consumers) {
  return offsetof(lvd_channel, consumer) + consumers * sizeof(lvd_consumer_shared);
}

/* Initializes an empty channel at `ch` (lvd_channel_header_size bytes, aligned to LVD_CACHE_LINE)
 * with its ring of `slots` elements of `elem_size` bytes at `data`. The caller owns the memory, and
 * has checked: slots is a power of two, 1 <= capacity <= slots, elem_size >= 1, consumers >= 1. */
static inline void lvd_channel_init(lvd_channel *ch, void *data, uint32_t elem_size, uint32_t slots,
                                    uint32_t capacity, uint32_t consumers, uint32_t flags) {
  ch->magic = LVD_CHANNEL_MAGIC;
  ch->abi_version = LVD_ABI_VERSION;
  ch->line = LVD_CACHE_LINE;
  ch->elem_size = elem_size;
  ch->slots = slots;
  ch->capacity = capacity;
  ch->consumers = consumers;
  ch->flags = flags;
  ch->data = (int64_t)((intptr_t)data - (intptr_t)ch);
  lvd_store_relaxed_u32(&ch->tail, 0);
  lvd_store_relaxed_u32(&ch->state, LVD_OPEN);
  lvd_store_relaxed_u32(&ch->flushed, 0);
  for (uint32_t i = 0; i < consumers; i++) {
    lvd_consumer_shared *c = &ch->consumer[i];
    lvd_store_relaxed_u32(&c->head, 0);
    lvd_store_relaxed_u32(&c->state, LVD_OPEN);
    lvd_store_relaxed_u32(&c->released, 0);
    lvd_store_relaxed_u32(&c->elements.armed, 0);
    lvd_store_relaxed_u32(&c->elements.at, 0);
    lvd_store_relaxed_u32(&c->elements.need, 0);
    lvd_store_relaxed_u32(&c->room.armed, 0);
    lvd_store_relaxed_u32(&c->room.at, 0);
    lvd_store_relaxed_u32(&c->room.need, 0);
  }
}

/* A copy of the constants of the header. */
typedef struct lvd_channel_layout {
  int64_t data;
  uint32_t elem_size, slots, capacity, consumers, flags;
} lvd_channel_layout;

/* Reads each word of the header once, so that the values checked are the values used. Volatile, so
 * that the compiler cannot read a word again. */
static inline lvd_channel_layout lvd_channel_layout_of(const lvd_channel *ch) {
  const volatile lvd_channel *v = ch;
  lvd_channel_layout s;
  s.data = v->data;
  s.elem_size = v->elem_size;
  s.slots = v->slots;
  s.capacity = v->capacity;
  s.consumers = v->consumers;
  s.flags = v->flags;
  return s;
}

/* Validates a header in memory with untrusted writers. This side may access `size` bytes from
 * `ch`; header and ring must be within them (the ring twice, if mirrored). LVD_E_ABI: made by
 * another version, or for another cache line size; LVD_E_CORRUPT: not a channel, or one that
 * exceeds the memory; LVD_E_ARGUMENT: `ch` is null or misaligned, or `size` too small. */
static inline lvd_status lvd_channel_layout_read(const lvd_channel *ch, size_t size,
                                                 lvd_channel_layout *out) {
  const volatile lvd_channel *v = ch;
  if (!ch || (uintptr_t)ch % LVD_CACHE_LINE || size < sizeof(lvd_channel)) return LVD_E_ARGUMENT;
  if (v->magic != LVD_CHANNEL_MAGIC) return LVD_E_CORRUPT;
  if (v->abi_version != LVD_ABI_VERSION || v->line != LVD_CACHE_LINE) return LVD_E_ABI;
  lvd_channel_layout s = lvd_channel_layout_of(ch);
  if (s.elem_size == 0 || s.slots == 0 || (s.slots & (s.slots - 1)) != 0 || s.capacity == 0 ||
      s.capacity > s.slots || s.capacity > LVD_CHANNEL_CAPACITY || s.consumers == 0 ||
      s.consumers > LVD_CHANNEL_CONSUMERS || (s.flags & ~LVD_CHANNEL_MIRRORED) != 0)
    return LVD_E_CORRUPT;
  uint64_t header = lvd_channel_header_size(s.consumers), ring = (uint64_t)s.slots * s.elem_size;
  if (s.flags & LVD_CHANNEL_MIRRORED) ring *= 2; /* below 2^64: slots are at most 2^31 */
  if (s.data < 0 || (uint64_t)s.data < header || (uint64_t)s.data % LVD_CACHE_LINE != 0 ||
      (uint64_t)s.data > size || ring > size - (uint64_t)s.data)
    return LVD_E_CORRUPT;
  *out = s;
  return LVD_OK;
}

/* ------------------------------------------------------------------------------------------ */
/* The handles                                                                                */
/* ------------------------------------------------------------------------------------------ */

/* An object that can be woken: an entity, a thread, a doorbell. wait.h provides one for threads and
 * fibers (lvd_wait_point). */
typedef struct lvd_waiter {
  bool (*wake)(struct lvd_waiter *self); /* true: it was waiting, and this call woke it */
} lvd_waiter;

/* Private cursors are 64 bits wide and count all elements since creation; the shared ones are
 * their low halves. A loop over single elements is fastest on a copy of the handle in a local
 * variable, which stays in registers; copy it back before the handle is used elsewhere. */
typedef struct lvd_producer {
  unsigned char *data; /* the ring */
  uint64_t put;        /* the next element to put */
  uint64_t limit;      /* put may advance to here, as far as is known */
  uint64_t pushed;     /* all elements before it are published */
  lvd_a32 *tail;
  lvd_channel *channel;
  lvd_waiter **peers;    /* one per consumer; null: none to wake */
  lvd_waiter *self;      /* what to wake when this side waits; null: it cannot wait */
  uint32_t mask;         /* slots - 1 */
  uint32_t elem_size;    /* bytes */
  uint32_t capacity;     /* elements */
  uint32_t consumers;    /* number of consumers */
  uint32_t fenced;       /* [light] must be a seq_cst fence */
  uint32_t threshold;    /* >= 1: room at which a parked producer is woken */
  uint32_t await;        /* room awaited by an actor; 0: none (lvd_await_room) */
  bool mirrored;         /* the ring is mapped twice in a row */
  bool corrupt;          /* the other side violated the protocol: no more transfers, */
  bool corrupt_reported; /* and this has been reported, once */
  uint64_t wakes;        /* counters: consumers woken; times found full */
  uint64_t full;
} lvd_producer;

typedef struct lvd_consumer {
  const unsigned char *data; /* the ring */
  uint64_t got;              /* the next element to get */
  uint64_t limit;            /* got may advance to here, as far as is known */
  uint64_t popped;           /* the space of all elements before it is free */
  lvd_consumer_shared *shared;
  lvd_channel *channel;
  lvd_waiter *peer;   /* the producer; null: none to wake */
  lvd_waiter *self;   /* what to wake when this side waits; null: it cannot wait */
  uint32_t mask;      /* slots - 1 */
  uint32_t elem_size; /* bytes */
  uint32_t capacity;  /* elements */
  uint32_t threshold; /* >= 1: elements at which a parked consumer is woken */
  uint32_t fenced;    /* [light] must be a seq_cst fence */
  uint32_t await;     /* elements awaited by an actor; 0: none (lvd_await_elements) */
  bool end_seen;      /* the end of the stream has been reported */
  bool mirrored;      /* the ring is mapped twice in a row */
  bool corrupt;       /* the other side violated the protocol: no more transfers */
  uint64_t wakes;     /* counters: producer woken; times found empty */
  uint64_t empty;
} lvd_consumer;

/* Fill in a handle from a layout that was read from `ch`. Programs use the attach functions. */
static inline void lvd_producer_make(lvd_producer *p, lvd_channel *ch, const lvd_channel_layout *s,
                                     lvd_waiter **peers, bool fenced) {
  p->data = (unsigned char *)ch + s->data;
  p->tail = &ch->tail;
  p->put = p->limit = p->pushed = lvd_load_relaxed_u32(&ch->tail);
  p->channel = ch;
  p->peers = peers;
  p->self = (lvd_waiter *)0;
  p->mask = s->slots - 1;
  p->elem_size = s->elem_size;
  p->capacity = s->capacity;
  p->consumers = s->consumers;
  p->fenced = fenced;
  p->threshold = 1;
  p->await = 0;
  p->mirrored = (s->flags & LVD_CHANNEL_MIRRORED) != 0;
  p->corrupt = p->corrupt_reported = false;
  p->wakes = p->full = 0;
}

static inline void lvd_consumer_make(lvd_consumer *c, lvd_channel *ch, const lvd_channel_layout *s,
                                     uint32_t index, lvd_waiter *peer, bool fenced) {
  c->data = (const unsigned char *)ch + s->data;
  c->shared = &ch->consumer[index];
  c->got = c->limit = c->popped = lvd_load_relaxed_u32(&c->shared->head);
  c->channel = ch;
  c->peer = peer;
  c->self = (lvd_waiter *)0;
  c->mask = s->slots - 1;
  c->elem_size = s->elem_size;
  c->capacity = s->capacity;
  c->threshold = 1;
  c->fenced = fenced;
  c->await = 0;
  c->end_seen = c->corrupt = false;
  c->mirrored = (s->flags & LVD_CHANNEL_MIRRORED) != 0;
  c->wakes = c->empty = 0;
}

/* Create private handles of a channel that this program has initialized in its private memory.
 * `peers` points to one waiter per consumer, `peer` is that of the producer: push and pop wake
 * them. They must outlive the handle; null: nothing is woken. To wait, the caller also sets `self`.
 * `fenced`: lvd_channel_fenced (wait.h). Both handles start at the shared cursors, so that a handle
 * can be recreated after a move or a restart. */
static inline void lvd_producer_attach(lvd_producer *p, lvd_channel *ch, lvd_waiter **peers,
                                       bool fenced) {
  lvd_channel_layout s = lvd_channel_layout_of(ch);
  lvd_producer_make(p, ch, &s, peers, fenced);
}
static inline void lvd_consumer_attach(lvd_consumer *c, lvd_channel *ch, uint32_t index,
                                       lvd_waiter *peer, bool fenced) {
  lvd_channel_layout s = lvd_channel_layout_of(ch);
  lvd_consumer_make(c, ch, &s, index, peer, fenced);
}

/* The same in memory with untrusted writers, of which this side may access `size` bytes from `ch`.
 * LVD_E_ABI, LVD_E_CORRUPT: as for lvd_channel_layout_read; LVD_E_ARGUMENT: the elements do not
 * have `elem_size` bytes, or there is no consumer `index`. [light] is a fence here, since
 * membarrier does not reach the cores of another process. */
static inline lvd_status lvd_producer_attach_shared(lvd_producer *p, lvd_channel *ch, size_t size,
                                                    uint32_t elem_size, lvd_waiter **peers) {
  lvd_channel_layout s;
  lvd_status status = lvd_channel_layout_read(ch, size, &s);
  if (status != LVD_OK) return status;
  if (s.elem_size != elem_size) return LVD_E_ARGUMENT;
  lvd_producer_make(p, ch, &s, peers, true);
  return LVD_OK;
}
static inline lvd_status lvd_consumer_attach_shared(lvd_consumer *c, lvd_channel *ch, size_t size,
                                                    uint32_t elem_size, uint32_t index,
                                                    lvd_waiter *peer) {
  lvd_channel_layout s;
  lvd_status status = lvd_channel_layout_read(ch, size, &s);
  if (status != LVD_OK) return status;
  if (s.elem_size != elem_size || index >= s.consumers) return LVD_E_ARGUMENT;
  lvd_consumer_make(c, ch, &s, index, peer, true);
  return LVD_OK;
}

/* The cheap half of the barrier pair of guarantee C3. */
static inline void lvd_membarrier_light(uint32_t fenced) {
  if (LVD_UNLIKELY(fenced))
    lvd_fence_seq_cst();
  else
    lvd_fence_compiler();
}

/* Has `cursor` reached `mark`? Valid while they are less than 2^31 apart. */
static inline bool lvd_reached(uint32_t cursor, uint32_t mark) {
  return (int32_t)(cursor - mark) >= 0;
}

/* Cache maintenance of `n` elements from cursor `from`, possibly wrapping around the ring's end. */
static inline void lvd_elements_clean(const lvd_producer *p, uint64_t from, uint64_t n) {
#if LVD_CACHES
  uint32_t at = (uint32_t)from & p->mask, slots = p->mask + 1;
  uint32_t first = n < slots - at ? (uint32_t)n : slots - at;
  if (!lvd_remote_caches) return;
  lvd_cache_clean(p->data + (size_t)at * p->elem_size, (size_t)first * p->elem_size);
  if (n > first) lvd_cache_clean(p->data, (size_t)(n - first) * p->elem_size);
#else
  (void)p, (void)from, (void)n;
#endif
}
static inline void lvd_elements_invalidate(const lvd_consumer *c, uint64_t from, uint64_t n) {
#if LVD_CACHES
  uint32_t at = (uint32_t)from & c->mask, slots = c->mask + 1;
  uint32_t first = n < slots - at ? (uint32_t)n : slots - at;
  if (!lvd_remote_caches) return;
  lvd_cache_invalidate(c->data + (size_t)at * c->elem_size, (size_t)first * c->elem_size);
  if (n > first) lvd_cache_invalidate(c->data, (size_t)(n - first) * c->elem_size);
#else
  (void)c, (void)from, (void)n;
#endif
}

/* ------------------------------------------------------------------------------------------ */
/* Producer                                                                                   */
/* ------------------------------------------------------------------------------------------ */

/* A consumer wrote a value that the protocol cannot produce: there is no room from now on. Returns
 * 0, the room. */
static inline uint32_t lvd_producer_refuse(lvd_producer *p) {
  p->corrupt = true;
  p->limit = p->put;
  return 0;
}

/* Reads the consumers' cursors; returns the current room in elements. */
LVD_NOINLINE uint32_t lvd_room_refresh(lvd_producer *p) {
  lvd_channel *ch = p->channel;
  uint32_t tail = (uint32_t)p->put, used = 0;
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_consumer_shared *c = &ch->consumer[i];
    lvd_cache_invalidate(&c->head, LVD_CACHE_LINE);
    uint32_t u = tail - lvd_load_acquire_u32(&c->head);
    if (u > used && lvd_load_acquire_u32(&c->state) == LVD_OPEN) used = u;
  }
  uint64_t limit = p->put + p->capacity - used;
  /* No consumer holds more than the capacity, and no cursor moves back. */
  if (LVD_UNLIKELY(used > p->capacity || (int64_t)(limit - p->limit) < 0 || p->corrupt))
    return lvd_producer_refuse(p);
  p->limit = limit;
  return p->capacity - used;
}

/* Elements that can be put now; at least `want` if there is that much room. 0 if p->corrupt. */
static inline uint32_t lvd_room(lvd_producer *p, uint32_t want) {
  int64_t room = (int64_t)(p->limit - p->put); /* negative: put without checking for room */
  if (LVD_LIKELY(room >= (int64_t)want)) return (uint32_t)room;
  lvd_producer copy = *p; /* the slow path uses a copy, so that *p can stay in registers */
  room = lvd_room_refresh(&copy);
  p->limit = copy.limit;
  p->corrupt = copy.corrupt;
  return (uint32_t)room;
}

/* Memory for the next elements: contiguous for all the room if the ring is mirrored, else for
 * lvd_put_contiguous elements. Valid until the next push. */
static inline void *lvd_put_span(const lvd_producer *p) {
  return p->data + (size_t)((uint32_t)p->put & p->mask) * p->elem_size;
}
/* Contiguous elements from lvd_put_span to the end of the ring. */
static inline uint32_t lvd_put_contiguous(const lvd_producer *p) {
  if (p->mirrored) return p->mask + 1;
  return p->mask + 1 - ((uint32_t)p->put & p->mask);
}

/* Declares `n` elements of the span as written. They become visible at the push. */
static inline void lvd_put_done(lvd_producer *p, uint32_t n) { p->put += n; }

/* Prefetch the cache line LVD_PREFETCH_DISTANCE bytes after `at` for writing or reading: with
 * producer and consumer on different cores, a miss costs ten times as much as the work on a line.
 * These are hints: any address is allowed. */
#define LVD_PREFETCH_DISTANCE 512 /* bytes */
static inline void lvd_prefetch_write(const void *at) {
#if defined(__x86_64__)
  /* For the oldest processors the builtin would prefetch for reading only. */
  __asm__ volatile("prefetchw %0" : : "m"(*((const char *)at + LVD_PREFETCH_DISTANCE)));
#else
  __builtin_prefetch((const char *)at + LVD_PREFETCH_DISTANCE, 1);
#endif
}
static inline void lvd_prefetch_read(const void *at) {
  __builtin_prefetch((const char *)at + LVD_PREFETCH_DISTANCE, 0);
}

/* Puts one element of type T, given as an expression; there must be room (lvd_room). `p` is
 * evaluated once. */
#define LVD_PUT(p, T, ...)                                                                         \
  do {                                                                                             \
    lvd_producer *lvd_p_ = (p);                                                                    \
    T *lvd_to_ = (T *)(void *)lvd_p_->data + ((uint32_t)lvd_p_->put & lvd_p_->mask);               \
    lvd_prefetch_write(lvd_to_);                                                                   \
    *lvd_to_ = (__VA_ARGS__);                                                                      \
    lvd_p_->put++;                                                                                 \
  } while (0)

/* Wakes the consumers with a mark that is reached; with `parking`, all that can make progress. */
static inline void lvd_wake_consumers(lvd_producer *p, bool parking) {
  uint32_t tail = (uint32_t)p->pushed;
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_wake_mark *m = &p->channel->consumer[i].elements;
    lvd_cache_invalidate(m, sizeof *m);
    if (LVD_LIKELY(!lvd_load_relaxed_u32(&m->armed))) continue;
    if (!lvd_reached(tail, lvd_load_relaxed_u32(parking ? &m->need : &m->at))) continue;
    if (p->peers && p->peers[i]) p->wakes += p->peers[i]->wake(p->peers[i]);
  }
}

/* Publishes all elements put: one release store, and a check for waiting consumers. */
static inline void lvd_push(lvd_producer *p) {
  lvd_elements_clean(p, p->pushed, p->put - p->pushed);
  p->pushed = p->put;
  lvd_store_release_u32(p->tail, (uint32_t)p->put);
  lvd_cache_clean(p->tail, LVD_CACHE_LINE);
  lvd_membarrier_light(p->fenced);
  if (LVD_LIKELY(p->consumers == 1)) {
    lvd_cache_invalidate(&p->channel->consumer[0].elements, sizeof(lvd_wake_mark));
    if (LVD_UNLIKELY(lvd_load_relaxed_u32(&p->channel->consumer[0].elements.armed))) {
      lvd_producer copy = *p;
      lvd_wake_consumers(&copy, false);
      p->wakes = copy.wakes;
    }
  } else {
    lvd_wake_consumers(p, false);
  }
}

/* Pushes, and also wakes consumers that wait below their threshold. Call it before the producer
 * parks or goes idle, or to make elements available at once. */
static inline void lvd_flush(lvd_producer *p) {
  if (p->pushed != p->put) {
    lvd_elements_clean(p, p->pushed, p->put - p->pushed);
    p->pushed = p->put;
    lvd_store_release_u32(p->tail, (uint32_t)p->put);
  }
  if (lvd_load_relaxed_u32(&p->channel->flushed) != (uint32_t)p->put)
    lvd_store_relaxed_u32(&p->channel->flushed, (uint32_t)p->put);
  lvd_cache_clean(p->tail, LVD_CACHE_LINE);
  lvd_membarrier_light(p->fenced);
  lvd_wake_consumers(p, true);
}

/* Ends the stream, with LVD_OK or an error (any except LVD_E_TIMEOUT). Publishes all elements put,
 * and wakes all consumers unconditionally. */
static inline void lvd_producer_close(lvd_producer *p, lvd_status why) {
  lvd_elements_clean(p, p->pushed, p->put - p->pushed);
  p->pushed = p->put;
  lvd_store_release_u32(p->tail, (uint32_t)p->put);
  lvd_store_relaxed_u32(&p->channel->flushed, (uint32_t)p->put);
  lvd_store_release_u32(&p->channel->state, LVD_CLOSED + (uint32_t)why);
  lvd_cache_clean(p->tail, LVD_CACHE_LINE);
  lvd_membarrier_light(p->fenced);
  for (uint32_t i = 0; i < p->consumers; i++)
    if (p->peers && p->peers[i]) p->peers[i]->wake(p->peers[i]);
}

/* Room at which a producer that needs `want` resumes: its threshold, bounded by the capacity. One
 * that needs more than the capacity does not resume. */
static inline uint32_t lvd_room_mark(const lvd_producer *p, uint32_t want) {
  uint32_t mark = p->threshold < p->capacity ? p->threshold : p->capacity;
  return mark > want ? mark : want;
}

/* May a producer that waits for `want` proceed? Yes if the room has reached its mark, or is at
 * least `want` and no consumer that limits the room is about to free more. */
static inline bool lvd_producer_ready(lvd_producer *p, uint32_t want) {
  uint32_t room = lvd_room_refresh(p), mark = lvd_room_mark(p, want);
  if (room >= mark) return true;
  if (LVD_UNLIKELY(p->corrupt)) return !p->corrupt_reported && (p->corrupt_reported = true);
  if (room < want) return false;
  /* a consumer at this cursor leaves no room */
  uint32_t empty = (uint32_t)p->put - p->capacity;
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_consumer_shared *c = &p->channel->consumer[i];
    if (lvd_load_relaxed_u32(&c->state) != LVD_OPEN) continue;
    if (lvd_load_relaxed_u32(&c->head) - empty >= mark) continue;
    if (!lvd_reached(lvd_load_relaxed_u32(&c->released), empty + want)) return false;
  }
  return true;
}

/* Sets the room at which the producer is woken (`want` <= capacity, elements). True: it can
 * proceed and must not sleep. Before sleeping the caller must settle: the barrier lvd_os_barrier of
 * the library (or a seq_cst fence if p->fenced), then lvd_producer_settled, which returns true
 * likewise. Disarm after the wait. */
static inline bool lvd_producer_arm(lvd_producer *p, uint32_t want) {
  uint32_t empty = (uint32_t)p->put - p->capacity, mark = lvd_room_mark(p, want);
  p->full++;
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_wake_mark *m = &p->channel->consumer[i].room;
    lvd_store_relaxed_u32(&m->at, empty + mark);
    lvd_store_relaxed_u32(&m->need, empty + want);
    lvd_store_relaxed_u32(&m->armed, 1);
    lvd_cache_clean(m, sizeof *m);
  }
  return lvd_producer_ready(p, want);
}
static inline bool lvd_producer_settled(lvd_producer *p, uint32_t want) {
  return lvd_producer_ready(p, want);
}
/* Ends the wake-up request, after the wait. */
static inline void lvd_producer_disarm(lvd_producer *p) {
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_wake_mark *m = &p->channel->consumer[i].room;
    lvd_store_relaxed_u32(&m->armed, 0);
    lvd_cache_clean(m, sizeof *m);
  }
}

/* ------------------------------------------------------------------------------------------ */
/* Consumer                                                                                   */
/* ------------------------------------------------------------------------------------------ */

/* The producer wrote a value that the protocol cannot produce: there are no elements from now on.
 * Returns 0, the number of elements. */
static inline uint32_t lvd_consumer_refuse(lvd_consumer *c) {
  c->corrupt = true;
  c->limit = c->got;
  return 0;
}

/* Reads the producer's cursor; returns the number of elements available. */
LVD_NOINLINE uint32_t lvd_elements_refresh(lvd_consumer *c) {
  lvd_cache_invalidate(&c->channel->tail, LVD_CACHE_LINE);
  uint32_t n = lvd_load_acquire_u32(&c->channel->tail) - (uint32_t)c->got;
  uint64_t limit = c->got + n;
  /* There are never more than the capacity, and the cursor does not move back. */
  if (LVD_UNLIKELY(n > c->capacity || (int64_t)(limit - c->limit) < 0 || c->corrupt))
    return lvd_consumer_refuse(c);
  lvd_elements_invalidate(c, c->limit, limit - c->limit);
  c->limit = limit;
  return n;
}

/* Elements that can be got now; at least `want` if that many are available. */
static inline uint32_t lvd_elements(lvd_consumer *c, uint32_t want) {
  int64_t n = (int64_t)(c->limit - c->got);
  if (LVD_LIKELY(n >= (int64_t)want)) return (uint32_t)n;
  lvd_consumer copy = *c; /* a copy, as in lvd_room */
  n = lvd_elements_refresh(&copy);
  c->limit = copy.limit;
  c->corrupt = copy.corrupt;
  return (uint32_t)n;
}

/* The next elements: contiguous as for lvd_put_span. Valid until they are popped. */
static inline const void *lvd_get_span(const lvd_consumer *c) {
  return c->data + (size_t)((uint32_t)c->got & c->mask) * c->elem_size;
}
/* Contiguous elements from lvd_get_span to the end of the ring. */
static inline uint32_t lvd_get_edge(const lvd_consumer *c) {
  if (c->mirrored) return c->mask + 1;
  return c->mask + 1 - ((uint32_t)c->got & c->mask);
}

/* Declares `n` elements of the span as read. Their space is freed at the pop. */
static inline void lvd_get_done(lvd_consumer *c, uint32_t n) { c->got += n; }

/* The next element, of type T; it must be available (lvd_elements). `c` is evaluated three times:
 * no side effects. */
#define LVD_GET(c, T) (((const T *)(const void *)(c)->data)[(uint32_t)((c)->got++) & (c)->mask])

/* Wakes the producer if its mark is reached; with `parking`, also if it can make progress. */
static inline void lvd_wake_producer(lvd_consumer *c, bool parking) {
  lvd_wake_mark *m = &c->shared->room;
  if (!lvd_load_relaxed_u32(&m->armed)) return;
  if (!lvd_reached((uint32_t)c->popped, lvd_load_relaxed_u32(parking ? &m->need : &m->at))) return;
  if (c->peer) c->wakes += c->peer->wake(c->peer);
}

/* Frees the space of all elements got. */
static inline void lvd_pop(lvd_consumer *c) {
  c->popped = c->got;
  lvd_store_release_u32(&c->shared->head, (uint32_t)c->got);
  lvd_cache_clean(&c->shared->head, LVD_CACHE_LINE);
  lvd_membarrier_light(c->fenced);
  lvd_cache_invalidate(&c->shared->room, sizeof(lvd_wake_mark));
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&c->shared->room.armed))) {
    lvd_consumer copy = *c;
    lvd_wake_producer(&copy, false);
    c->wakes = copy.wakes;
  }
}

/* Pops, and also wakes a producer that waits below its threshold. Call it before the consumer
 * parks or goes idle. */
static inline void lvd_release(lvd_consumer *c) {
  if (c->popped != c->got) {
    c->popped = c->got;
    lvd_store_release_u32(&c->shared->head, (uint32_t)c->got);
  }
  if (lvd_load_relaxed_u32(&c->shared->released) != (uint32_t)c->got)
    lvd_store_relaxed_u32(&c->shared->released, (uint32_t)c->got);
  lvd_cache_clean(&c->shared->head, LVD_CACHE_LINE);
  lvd_membarrier_light(c->fenced);
  lvd_cache_invalidate(&c->shared->room, sizeof(lvd_wake_mark));
  if (LVD_UNLIKELY(lvd_load_relaxed_u32(&c->shared->room.armed))) lvd_wake_producer(c, true);
}

/* The status with which the stream ended, for a producer in `state` other than LVD_OPEN. */
static inline lvd_status lvd_end_status(lvd_consumer *c, uint32_t state) {
  uint32_t why = state - LVD_CLOSED;
  if (why >= LVD_STATUS_COUNT || why == LVD_E_TIMEOUT) lvd_consumer_refuse(c);
  if (c->corrupt) return LVD_E_CORRUPT;
  return why == LVD_OK ? LVD_E_EOF : (lvd_status)why;
}

/* Has the stream ended? LVD_OK: elements are available or may come. LVD_E_EOF: the producer has
 * closed, and all elements were got; or the error with which it closed; or LVD_E_CORRUPT. */
static inline lvd_status lvd_ended(lvd_consumer *c) {
  lvd_cache_invalidate(&c->channel->tail, LVD_CACHE_LINE);
  uint32_t state = lvd_load_acquire_u32(&c->channel->state);
  if (LVD_LIKELY(state == LVD_OPEN && !c->corrupt)) return LVD_OK;
  if (lvd_elements_refresh(c) != 0) return LVD_OK;
  return lvd_end_status(c, state);
}

/* The consumer leaves: the producer no longer waits for it, and may overwrite elements not got.
 * The handle must not be used afterwards. */
static inline void lvd_consumer_close(lvd_consumer *c) {
  lvd_store_release_u32(&c->shared->state, LVD_CLOSED);
  lvd_cache_clean(&c->shared->head, LVD_CACHE_LINE);
  lvd_membarrier_light(c->fenced);
  if (c->peer) c->peer->wake(c->peer);
}
/* Has every consumer left? Then there is always room, and the elements are discarded. */
static inline bool lvd_consumers_closed(const lvd_producer *p) {
  for (uint32_t i = 0; i < p->consumers; i++) {
    lvd_cache_invalidate(&p->channel->consumer[i].head, LVD_CACHE_LINE);
    if (lvd_load_relaxed_u32(&p->channel->consumer[i].state) == LVD_OPEN) return false;
  }
  return true;
}

/* Number of elements at which a consumer that needs `need` resumes: its threshold, bounded by the
 * capacity. One that needs more than the capacity does not resume. */
static inline uint32_t lvd_elements_mark(const lvd_consumer *c, uint32_t need) {
  uint32_t mark = c->threshold < c->capacity ? c->threshold : c->capacity;
  return mark > need ? mark : need;
}

/* May a consumer that waits for `need` proceed? Yes if its mark is reached, or at least `need` are
 * available and the producer has flushed them. */
static inline bool lvd_consumer_ready(lvd_consumer *c, uint32_t need) {
  uint32_t n = lvd_elements_refresh(c);
  if (n >= lvd_elements_mark(c, need)) return true;
  if (LVD_UNLIKELY(c->corrupt)) return !c->end_seen && (c->end_seen = true);
  return n >= need &&
         lvd_reached(lvd_load_relaxed_u32(&c->channel->flushed), (uint32_t)c->got + need);
}

/* Sets the number of elements at which the consumer is woken: its threshold, bounded by the
 * capacity, or `need` when the producer parks. True: it can proceed. Before sleeping the caller
 * must settle, as for the producer. */
static inline bool lvd_consumer_arm(lvd_consumer *c, uint32_t need) {
  uint32_t mark = lvd_elements_mark(c, need);
  c->empty++;
  lvd_wake_mark *m = &c->shared->elements;
  lvd_store_relaxed_u32(&m->at, (uint32_t)c->got + mark);
  lvd_store_relaxed_u32(&m->need, (uint32_t)c->got + need);
  lvd_store_relaxed_u32(&m->armed, 1);
  lvd_cache_clean(m, sizeof *m);
  return lvd_consumer_ready(c, need);
}
/* To call after the barrier. True: the consumer can proceed and must not sleep, or the stream has
 * ended (which is reported once). */
static inline bool lvd_consumer_settled(lvd_consumer *c, uint32_t need) {
  lvd_cache_invalidate(&c->channel->tail, LVD_CACHE_LINE);
  bool ended = lvd_load_relaxed_u32(&c->channel->state) != LVD_OPEN;
  if (lvd_consumer_ready(c, need)) return true;
  if (!ended || c->end_seen) return false;
  c->end_seen = true;
  return true;
}
/* Ends the wake-up request, after the wait. */
static inline void lvd_consumer_disarm(lvd_consumer *c) {
  lvd_store_relaxed_u32(&c->shared->elements.armed, 0);
  lvd_cache_clean(&c->shared->elements, sizeof(lvd_wake_mark));
}

#ifdef __cplusplus
}
#endif
#endif
