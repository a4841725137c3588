/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The structure of a stream, for the files that need it. */
#ifndef LVD_SRC_STREAM_H
#define LVD_SRC_STREAM_H

#include <levada/stream.h>

#include "../sched/fiber.h"

typedef struct lvd_stream_close_sender {
  lvd_wait_point wait_point;
  lvd_aptr owner;   /* a fiber, or the address that identifies a thread; null: no owner */
  lvd_fiber *fiber; /* the fiber that has it on its list; null: a thread's, if it has an owner */
  struct lvd_stream_close_sender *next, *previous;
  struct stream *stream;
  bool is_sender;
  bool closed;
} stream_end;

typedef struct lvd_shared_stream lvd_shared_stream;

/* A moving average, and the number of samples so far. */
typedef struct lvd_average {
  uint64_t mean;
  uint32_t samples;
} lvd_average;

/* State of an automatic threshold (wake_threshold.c); times in ticks. */
typedef struct lvd_auto_threshold {
  bool on;
  /* The waiter that is woken in the receiver's place, to measure the wake-up. */
  lvd_waiter waker;
  /* The last wake-up, stored by its waker: time, and duration of its call. */
  lvd_a64 woken_at, waking;
  /* Of the receiver's last sleep: when it began and ended; whether its core slept too, and the
   * time of that core's park barrier; whether its cost is in the average. */
  uint64_t waited_at, ran_at, retired;
  bool rested, counted;
  uint64_t took;    /* duration of the sender's call in the last wake-up of the average */
  uint64_t got;     /* elements got by `ran_at` */
  lvd_average cost; /* ticks per wake-up */
  lvd_average each; /* per element, in 1/FRACTION ticks */
  uint64_t patience;
} lvd_auto_threshold;

typedef struct stream {
  lvd_stream base; /* first */
  lvd_app *app;
  lvd_channel *channel;
  /* Shared with another process; null: the channel belongs to this process. */
  lvd_shared_stream *shared;
  lvd_waiter *peer;
  stream_end sender, receiver;
  lvd_a32 unpushed;  /* elements put and not pushed when the sender last waited */
  uint64_t selected; /* order of the receiver's last select; 0: never selected */
  uint32_t serial;   /* unique among streams */
  lvd_user party[2]; /* the announced users of its ends */
  uint32_t parties;
  bool over; /* its application has ended, with this outcome; under the lock of the streams */
  lvd_status outcome;
  struct stream *next, *previous; /* in the application's list */
  lvd_auto_threshold automatic;
  char name[LVD_FIBER_NAME];
} stream;

/* Hash table of the ends of threads, by thread. A thread that unloads an application removes that
 * application's ends. */
enum { LVD_THREAD_LISTS_LOG2 = 6 };
typedef struct lvd_thread_list {
  lvd_os_mutex lock;
  lvd_aptr first; /* list of stream_end */
} lvd_thread_list;
extern lvd_thread_list lvd_threads[1 << LVD_THREAD_LISTS_LOG2];

void lvd_streams_free(lvd_app *app);
/* The stream ends of a fiber: before it waits, and when it has ended. */
void lvd_stream_ends_flush(lvd_fiber *f);
void lvd_stream_ends_close(lvd_fiber *f, lvd_status outcome);
/* Publishes what the calling thread, which runs no fiber, has pushed and popped, before it
 * waits. */
void lvd_stream_thread_flush(void);
/* Announces its users; until they have claimed its ends, others are taken to wait for them. */
void lvd_stream_say_parties(lvd_stream *s, const lvd_user party[2], uint32_t parties);
uint32_t lvd_stream_capacity(const lvd_stream_options *o);
/* LVD_E_ARGUMENT: invalid options. */
lvd_status lvd_stream_check(const lvd_stream_options *o);
/* Claims this end for the caller. LVD_E_STATE: it has another owner, or is closed. */
lvd_status lvd_stream_take(lvd_stream *s, bool sender);
/* Opens a stream over a channel in memory that another process writes too: `size` bytes from
 * `ch`. */
lvd_status lvd_stream_over(lvd_app *app, lvd_shared_stream *shared, lvd_channel *ch, size_t size,
                           const lvd_stream_options *o, lvd_stream **out);

/* The waiter that is woken when this process can continue at an end. */
static inline lvd_waiter *lvd_stream_waiter(stream *s, bool sender) {
  if (sender) return &s->sender.wait_point.waiter;
  return s->automatic.on ? &s->automatic.waker : &s->receiver.wait_point.waiter;
}

/* How many elements the sender has put and not pushed, and has gone to wait then, in this
 * process. */
static inline uint32_t lvd_stream_unpushed(const lvd_stream *s) {
  return lvd_load_relaxed_u32(&((const stream *)s)->unpushed);
}

/* Whether `user` (lvd_caller) owns that end. */
static inline bool lvd_stream_has(const lvd_stream *handle, const void *user, bool sender) {
  const stream *s = (const stream *)handle;
  return lvd_load_relaxed_ptr(sender ? &s->sender.owner : &s->receiver.owner) == user;
}

/* ---- wake_threshold.c: automatic thresholds -------------------------------------------------- */

void lvd_threshold_begin(stream *s);
/* lvd_wait_any for elements of streams, with automatic thresholds. */
lvd_status lvd_threshold_wait(const lvd_wait_item *want, uint32_t count, int64_t timeout_ns,
                              uint32_t *which);

/* ---- shared_stream.c: streams with another process ------------------------------------------- */

bool lvd_shared_claim(lvd_shared_stream *ss,
                      bool is_sender); /* false: the other process has that end */
bool lvd_shared_is_theirs(const lvd_shared_stream *ss, bool is_sender);
bool lvd_shared_is_taken(const lvd_shared_stream *ss); /* both ends have or had an owner */
bool lvd_shared_is_alive(const lvd_shared_stream *ss); /* the other process lives */
/* The waiter at an end, on either side. */
lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender);
void lvd_shared_free(lvd_shared_stream *ss);

/* The application has ended: waits at a stream return if its other end has no owner. */
void lvd_streams_end(lvd_app *app, lvd_status outcome);

#endif
