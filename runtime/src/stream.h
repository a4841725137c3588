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

typedef struct stream {
  lvd_stream face; /* first */
  lvd_app *app;
  lvd_channel *channel;
  lvd_waiter *peer;
  stream_end sender, receiver;
  struct stream *next, *previous; /* of the application */
  /* The automatic threshold, in ticks; the receiver's. */
  bool automatic;
  uint64_t got_before, waited_before, latency, each;
  char name[LVD_FIBER_NAME];
} stream;

void lvd_streams_free(lvd_app *app);

static inline void copy_name(char *to, const char *from) {
  size_t n = strnlen(from, LVD_FIBER_NAME - 1);
  memcpy(to, from, n);
  to[n] = 0;
}

#endif
