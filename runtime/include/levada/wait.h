/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait: what every blocking call of every face goes through; events; channels between threads.
 *
 * Whoever waits, a fiber or a thread, waits through the sleeper of what it waits for: the `self` of
 * an end of a channel, or an event's own. A fiber is suspended and its worker goes on with other
 * work; a thread that is no worker spins briefly, then sleeps in the kernel. */
#ifndef LVD_WAIT_H
#define LVD_WAIT_H

#include <levada/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The place of whoever waits at one end. One waits at a time. */
typedef struct lvd_sleeper {
  lvd_waiter waiter;
  lvd_aptr who;   /* an lvd_waiter: the fiber that waits here; null: a thread sleeps on `asleep` */
  lvd_a32 asleep; /* what it sleeps on */
  uint32_t kind;  /* what it lies in; the library's */
  uint32_t spin_us; /* a thread looks around for so long before it sleeps */
  uint64_t sleeps;  /* counter: times it was suspended, or went to the kernel */
} lvd_sleeper;

LVD_API void lvd_sleeper_init(lvd_sleeper *s, uint32_t spin_us);

/* Waits until there is room for `n`, or until there are `n` elements (n <= capacity). Before it
 * waits, it publishes: a producer flushes, a consumer releases. Returns
 *   LVD_OK       there are;
 *   LVD_E_ENDED  the stream has ended with fewer than n left, which can still be got; or the error
 *                that the producer ended with;
 *   LVD_E_PEER   every consumer has left;
 *   LVD_E_CORRUPT  the other side has written what the protocol cannot write;
 *   LVD_E_TIME   `timeout_ns` passed (negative: for ever);
 *   LVD_E_CANCELLED, LVD_E_STOPPED  the fiber that waits was cancelled, its application ends;
 *   LVD_E_DEADLOCK  all who could let each other go on wait for each other (stream.h);
 *   LVD_E_STATE  the handle has no `self`, or is an actor's (actors await, they do not wait). */
LVD_API lvd_status lvd_wait_room(lvd_producer *p, uint32_t n, int64_t timeout_ns);
LVD_API lvd_status lvd_wait_elements(lvd_consumer *c, uint32_t n, int64_t timeout_ns);

/* ------------------------------------------------------------------------------------------ */
/* Events: somebody says, once, that something is so, with 32 bits of data                      */
/* ------------------------------------------------------------------------------------------ */

/* Any thread or fiber may set it; one at a time waits. In memory that outlives the last
 * lvd_event_set by others. */
typedef struct lvd_event {
  lvd_sleeper sleeper;
  lvd_a64
      word; /* 0, or 2^32 + data; near the end: what it tells of may lie behind it in one line */
  lvd_a32 armed; /* somebody waits */
  uint32_t fenced;
} lvd_event;

LVD_API void lvd_event_init(lvd_event *e);
/* LVD_E_STATE: it is set, and nobody has taken it yet; the data are not overwritten. */
LVD_API lvd_status lvd_event_set(lvd_event *e, uint32_t data);
/* Waits until it is set, and takes it: it can be set again. `data` may be null. */
LVD_API lvd_status lvd_event_wait(lvd_event *e, uint32_t *data, int64_t timeout_ns);
static inline bool lvd_event_is_set(const lvd_event *e) {
  return lvd_load_acquire_u64(&e->word) != 0;
}

/* ------------------------------------------------------------------------------------------ */
/* Waiting for the first of several                                                            */
/* ------------------------------------------------------------------------------------------ */

/* Something that only a face can tell, and that comes with a bell, rung perhaps in another process. A
 * thread sleeps on the bell itself; a fiber's sleeper is woken by whoever listens to the bell. */
typedef struct lvd_watch {
  bool (*look)(struct lvd_watch *w); /* has it come? Called often. */
  /* Whoever makes it come shall ring from now on, or need not any more; ends with a seq_cst fence. */
  void (*arm)(struct lvd_watch *w, bool armed);
  lvd_a32 *rung;       /* changes with each ring; may lie in shared memory */
  lvd_sleeper sleeper; /* where a fiber waits */
} lvd_watch;

/* One of: room for n, n elements, an event (which is looked at, not taken), a watch (which is waited
 * for alone). */
typedef struct lvd_want {
  lvd_producer *room;
  lvd_consumer *elements;
  lvd_event *event;
  lvd_watch *watch;
  uint32_t n;
} lvd_want;

/* Waits until one of `count` wants (at most LVD_WANTS) is met, or ends with a status of its own;
 * its index is in *which. LVD_E_TIME, LVD_E_CANCELLED, LVD_E_STOPPED: none was. */
#define LVD_WANTS 64u
LVD_API lvd_status lvd_wait_any(const lvd_want *want, uint32_t count, int64_t timeout_ns,
                                uint32_t *which);

/* ------------------------------------------------------------------------------------------ */
/* Channels of a program                                                                       */
/* ------------------------------------------------------------------------------------------ */

/* A channel in private memory, its ring mapped twice so that spans never wrap. Attach handles with
 * lvd_producer_attach and lvd_consumer_attach, `fenced` as lvd_channel_fenced says. Destroy it when
 * nobody uses a handle any more. */
LVD_API lvd_status lvd_channel_create(uint32_t elem_size, uint32_t capacity, uint32_t consumers,
                                      lvd_channel **out);
LVD_API void lvd_channel_destroy(lvd_channel *ch);
LVD_API bool lvd_channel_fenced(void);

#ifdef __cplusplus
}
#endif
#endif
