/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait: the primitive that all blocking calls of the library use; events; channels between
 * threads.
 *
 * A fiber or thread waits through a wait point (lvd_wait_point): that of the channel end, which the
 * program provides in `self` of the handle, or the one in an event. A fiber is suspended and its
 * worker runs other work; a thread that is no worker polls briefly, then sleeps in the kernel.
 *
 * Every wait may be called by fibers and by threads of the program; actors use lvd_await_* instead
 * (actor.h). */
#ifndef LVD_WAIT_H
#define LVD_WAIT_H

#include <levada/channel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Wait point of one end of a channel, or of an event. One fiber or thread waits at a time. Give
 * `&waiter` to this end's handle as `self`, and to the other end's handle as its peer. */
typedef struct lvd_wait_point {
  lvd_waiter waiter;
  lvd_aptr parked;  /* an lvd_waiter: the fiber that waits here; null: a thread, on `asleep` */
  lvd_a32 asleep;   /* the word on which a thread sleeps */
  uint32_t kind;    /* kind of the containing object; internal */
  uint32_t spin_us; /* microseconds that a thread polls before it sleeps */
  uint64_t sleeps;  /* counter: times a fiber was suspended or a thread slept */
} lvd_wait_point;

/* Initializes a wait point in the caller's memory, which must outlive both ends. */
LVD_API void lvd_wait_point_init(lvd_wait_point *s, uint32_t spin_us);

/* Wait until there is room for `n` elements, or until there are `n` elements (1 <= n <= capacity).
 * `timeout_ns` is in ns; negative: no limit. Before waiting, a producer flushes and a consumer
 * releases. Return
 *   LVD_OK           the condition holds;
 *   LVD_E_EOF        the stream has ended with fewer than n elements left, which can still be read
 *                    (or, in its place, the error with which the producer closed);
 *   LVD_E_PEER_GONE  all consumers have closed;
 *   LVD_E_CORRUPT    the other side has written a value that the protocol cannot produce;
 *   LVD_E_TIMEOUT    the timeout has passed;
 *   LVD_E_CANCELLED  the waiting fiber was cancelled;
 *   LVD_E_STOPPED    its application is being stopped;
 *   LVD_E_DEADLOCK   the caller is part of a deadlock (stream.h);
 *   LVD_E_STATE      the handle has no `self`, or is an actor's;
 *   LVD_E_ARGUMENT   n is 0 or exceeds the capacity. */
LVD_API lvd_status lvd_wait_room(lvd_producer *p, uint32_t n, int64_t timeout_ns);
LVD_API lvd_status lvd_wait_elements(lvd_consumer *c, uint32_t n, int64_t timeout_ns);

/* ------------------------------------------------------------------------------------------ */
/* Events: one-shot signals that carry 32 bits of data                                        */
/* ------------------------------------------------------------------------------------------ */

/* An event. Any thread or fiber may set it; one at a time may wait. The caller owns the memory,
 * which must outlive the last lvd_event_set by another thread. */
typedef struct lvd_event {
  lvd_wait_point wait_point;
  /* 0: not set; else 2^32 + data. Near the end of the struct, so that the data that it announces
   * can share its cache line. */
  lvd_a64 word;
  lvd_a32 armed;   /* 1: a thread or fiber waits */
  uint32_t fenced; /* lvd_channel_fenced */
} lvd_event;

/* Initializes an event that is not set. */
LVD_API void lvd_event_init(lvd_event *e);
/* Sets the event and wakes its waiter. LVD_E_STATE: it is already set and not yet taken; its data
 * is not overwritten. */
LVD_API lvd_status lvd_event_set(lvd_event *e, uint32_t data);
/* Waits at most `timeout_ns` ns (negative: no limit) until it is set, and takes it: resets it and
 * stores its data in *data (`data` may be null). Statuses as for lvd_wait_elements. */
LVD_API lvd_status lvd_event_wait(lvd_event *e, uint32_t *data, int64_t timeout_ns);
/* Is it set and not yet taken? Does not take it. */
static inline bool lvd_event_is_set(const lvd_event *e) {
  return lvd_load_acquire_u64(&e->word) != 0;
}

/* ------------------------------------------------------------------------------------------ */
/* Waiting for the first of several                                                           */
/* ------------------------------------------------------------------------------------------ */

/* A condition other than those of channels and events, announced by a bell: a word that another
 * thread or process changes (a doorbell). A thread that waits sleeps on this word; for a fiber, the
 * thread that listens to the bell wakes `wait_point`. Used by liblevada-mcapi. */
typedef struct lvd_wait_source {
  bool (*look)(struct lvd_wait_source *w); /* does the condition hold? called often */
  /* Tells the other side to ring from now on (`armed`), or no longer; ends with a seq_cst fence. */
  void (*arm)(struct lvd_wait_source *w, bool armed);
  lvd_a32 *rung;             /* changes at each ring; may be in shared memory */
  lvd_wait_point wait_point; /* wait point of a fiber */
} lvd_wait_source;

/* One of: room for n elements, n elements, an event (checked, not taken), a wait source (which
 * cannot be combined with other items). Exactly one of the four pointers is not null. */
typedef struct lvd_wait_item {
  lvd_producer *room;
  lvd_consumer *elements;
  lvd_event *event;
  lvd_wait_source *source;
  uint32_t n;
} lvd_wait_item;

/* Waits until one of `count` items (at most LVD_WAIT_ITEMS_MAX) is ready, or has ended: *which is
 * its index, and the status that of lvd_wait_room, lvd_wait_elements or the event. `timeout_ns` is
 * in ns; negative: no limit. LVD_E_TIMEOUT, LVD_E_CANCELLED, LVD_E_STOPPED: no item was ready. */
#define LVD_WAIT_ITEMS_MAX 64u
LVD_API lvd_status lvd_wait_any(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                                uint32_t *which);

/* ------------------------------------------------------------------------------------------ */
/* Channels of a program                                                                      */
/* ------------------------------------------------------------------------------------------ */

/* Creates a channel in private memory; its ring is mapped twice in a row, so that spans never
 * wrap. Create handles with lvd_producer_attach and lvd_consumer_attach, with lvd_channel_fenced()
 * for `fenced`. `elem_size` is in bytes, `capacity` in elements. The caller owns *out, and frees
 * it with lvd_channel_destroy when no handle is in use any more. LVD_E_ARGUMENT: a value is 0 or
 * above its maximum; LVD_E_LIMIT: the ring would exceed 2^31 slots or 1 TiB; LVD_E_MEMORY. */
LVD_API lvd_status lvd_channel_create(uint32_t elem_size, uint32_t capacity, uint32_t consumers,
                                      lvd_channel **out);
LVD_API void lvd_channel_destroy(lvd_channel *ch);
/* True where membarrier is unavailable: handles must use seq_cst fences instead. */
LVD_API bool lvd_channel_fenced(void);

#ifdef __cplusplus
}
#endif
#endif
