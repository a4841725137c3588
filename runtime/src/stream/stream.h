/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a stream is made of, for the files that know. */
#ifndef LVD_SRC_STREAM_H
#define LVD_SRC_STREAM_H

#include <levada/stream.h>

#include "../sched/fiber.h"

typedef struct lvd_stream_end {
  lvd_sleeper sleeper;
  lvd_aptr owner;   /* the fiber, or a thread's mark; null: nobody's */
  lvd_fiber *fiber; /* whose list it is on; null: a thread's, if it is somebody's */
  struct lvd_stream_end *next, *previous;
  struct stream *stream;
  bool is_sender;
  bool closed;
} stream_end;

typedef struct lvd_shared_stream lvd_shared_stream;

/* An average, and over how many it is so far. */
typedef struct lvd_average {
  uint64_t mean;
  uint32_t samples;
} lvd_average;

/* A threshold that is chosen as it turns out (wake_threshold.c); times in ticks. */
typedef struct lvd_automatic {
  bool on;
  lvd_waiter waker;         /* who is to be woken in the receiver's place, to measure it */
  lvd_a64 woken_at, waking; /* the last wake-up, by who made it: when, and how long its call took */
  /* The receiver's: of the last sleep, when it was wanted and when it was over; whether its core,
   * too, went to rest, and what that took; whether what all that cost is in the average. */
  uint64_t waited_at, ran_at, retired;
  bool rested, counted;
  uint64_t took;    /* the sender's call, of the last wake-up that is in the average */
  uint64_t got;     /* how many elements by `ran_at` */
  lvd_average cost; /* of a wake-up */
  lvd_average each; /* element, in FRACTIONs of a tick */
  uint64_t patience;
} lvd_automatic;

typedef struct stream {
  lvd_stream face; /* first */
  lvd_app *app;
  lvd_channel *channel;
  lvd_shared_stream *shared; /* with another process; null: its channel is our own */
  lvd_waiter *peer;
  stream_end sender, receiver;
  uint64_t selected; /* the receiver's: the more, the later it was selected; 0: never */
  uint32_t serial;   /* no other stream has had it */
  lvd_user party[2]; /* who will take its ends, as far as that is said */
  uint32_t parties;
  bool over; /* its application has ended, and how; under the lock of the streams */
  lvd_status outcome;
  struct stream *next, *previous; /* of the application */
  lvd_automatic automatic;
  char name[LVD_FIBER_NAME];
} stream;

/* The ends of threads, by who they are. Whoever unloads an application takes its ends from them. */
enum { LVD_THREAD_LISTS_LOG2 = 6 };
typedef struct lvd_thread_list {
  lvd_os_mutex lock;
  lvd_aptr first; /* stream_end */
} lvd_thread_list;
extern lvd_thread_list lvd_threads[1 << LVD_THREAD_LISTS_LOG2];

void lvd_streams_free(lvd_app *app);
/* The ends of streams that a fiber uses: before it waits, and when it has ended. */
void lvd_stream_ends_flush(lvd_fiber *f);
void lvd_stream_ends_close(lvd_fiber *f, lvd_status outcome);
/* What the calling thread, which is no fiber, has pushed and popped becomes visible before it waits. */
void lvd_stream_thread_flush(void);
/* Who will use it; until they have taken its ends it is they whom others wait for. */
void lvd_stream_say_parties(lvd_stream *s, const lvd_user party[2], uint32_t parties);
uint32_t lvd_stream_capacity(const lvd_stream_options *o);
/* LVD_E_ARGUMENT: no stream can be so. */
lvd_status lvd_stream_check(const lvd_stream_options *o);
/* The caller has this end from now on. LVD_E_STATE: it is somebody else's, or closed. */
lvd_status lvd_stream_take(lvd_stream *s, bool sender);
/* A stream on a channel in memory that another process writes too: `size` bytes from `ch` on. */
lvd_status lvd_stream_over(lvd_app *app, lvd_shared_stream *shared, lvd_channel *ch, size_t size,
                           const lvd_stream_options *o, lvd_stream **out);

/* Who is to be woken when an end of this process can go on. */
static inline lvd_waiter *lvd_stream_waiter(stream *s, bool sender) {
  if (sender) return &s->sender.sleeper.waiter;
  return s->automatic.on ? &s->automatic.waker : &s->receiver.sleeper.waiter;
}

/* Whether that end is this one's (lvd_caller). */
static inline bool lvd_stream_has(const lvd_stream *face, const void *who, bool sender) {
  const stream *s = (const stream *)face;
  return lvd_load_relaxed_ptr(sender ? &s->sender.owner : &s->receiver.owner) == who;
}

/* ---- wake_threshold.c: one that is chosen as it turns out ------------------------------------------ */

void lvd_threshold_begin(stream *s);
/* lvd_wait_any, for elements of streams. */
lvd_status lvd_threshold_wait(const lvd_want *want, uint32_t count, int64_t timeout_ns,
                              uint32_t *which);

/* ---- shared_stream.c: streams with another process ------------------------------------------- */

bool lvd_shared_claim(lvd_shared_stream *ss,
                      bool is_sender); /* false: the other side has that end */
bool lvd_shared_is_theirs(const lvd_shared_stream *ss, bool is_sender);
bool lvd_shared_is_taken(const lvd_shared_stream *ss); /* both ends are somebody's, or were */
bool lvd_shared_is_alive(const lvd_shared_stream *ss); /* the other process is there */
/* Who is to be woken at an end, on whatever side. */
lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender);
void lvd_shared_free(lvd_shared_stream *ss);

/* Its application is over: who waits at a stream whose other end nobody has is told so. */
void lvd_streams_end(lvd_app *app, lvd_status outcome);

#endif
