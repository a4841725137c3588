/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a stream is made of, for the files that know. */
#ifndef LVD_SRC_STREAM_H
#define LVD_SRC_STREAM_H

#include <levada/stream.h>

#include "fiber.h"

typedef struct lvd_stream_end {
  lvd_sleeper sleeper;
  lvd_aptr owner;   /* the fiber, or a thread's mark; null: nobody's */
  lvd_fiber *fiber; /* whose list it is on */
  struct lvd_stream_end *next, *previous;
  struct stream *stream;
  bool is_sender;
  bool closed;
} stream_end;

typedef struct lvd_shared_stream lvd_shared_stream;

typedef struct stream {
  lvd_stream face; /* first */
  lvd_app *app;
  lvd_channel *channel;
  lvd_shared_stream *shared; /* with another process; null: its channel is our own */
  lvd_waiter *peer;
  stream_end sender, receiver;
  struct stream *next, *previous; /* of the application */
  /* The automatic threshold, in ticks; the receiver's. */
  bool automatic;
  uint64_t got_before, waited_before, latency, each;
  char name[LVD_FIBER_NAME];
} stream;

void lvd_streams_free(lvd_app *app);
uint32_t lvd_stream_capacity(const lvd_stream_options *o);
/* A stream on a channel in memory that another process writes too: `size` bytes from `ch` on. */
lvd_status lvd_stream_over(lvd_app *app, lvd_shared_stream *shared, lvd_channel *ch, size_t size,
                           const lvd_stream_options *o, lvd_stream **out);

/* ---- shared_stream.c: streams with another process ------------------------------------------- */

bool lvd_shared_claim(lvd_shared_stream *ss,
                      bool is_sender);                 /* false: the other side has that end */
bool lvd_shared_is_taken(const lvd_shared_stream *ss); /* both ends are somebody's, or were */
bool lvd_shared_is_alive(const lvd_shared_stream *ss); /* the other process is there */
/* Who is to be woken at an end, on whatever side. */
lvd_waiter *lvd_shared_waiter(lvd_shared_stream *ss, bool sender);
void lvd_shared_free(lvd_shared_stream *ss);

static inline void copy_name(char *to, const char *from) {
  size_t n = strnlen(from, LVD_FIBER_NAME - 1);
  memcpy(to, from, n);
  to[n] = 0;
}

#endif
