/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the forms on Levada share: the runtime, its cores as units, the streams and the calls of one
 * decoding. Whatever fails is printed, once, and remembered. */
#ifndef MP3_MACHINE_H
#define MP3_MACHINE_H

#include "decoder.h"
#include <levada/call.h>
#include <levada/process.h>
#include <levada/stream.h>

enum { MP3_MOST_UNITS = 64, MP3_MOST_CALLS = MP3_MOST_UNITS + 8 };

typedef struct mp3_machine {
  lvd_runtime *runtime;
  lvd_app *app;
  unsigned units;
  lvd_unit *unit[MP3_MOST_UNITS];
  lvd_unit *far; /* the one named on the command line, or null */
  unsigned threshold;
  unsigned calls;
  lvd_call *call[MP3_MOST_CALLS];
  bool failed;
} mp3_machine;

bool mp3_machine_open(mp3_machine *machine, const mp3_tuning *tuning);

/* Ends all; false if anything failed. */
bool mp3_machine_close(mp3_machine *machine);

/* The unit that has the inverse MDCT of a half. */
static inline lvd_unit *mp3_machine_inverse(const mp3_machine *machine, unsigned half) {
  return machine->far ? machine->far : machine->unit[half % machine->units];
}

/* A stream of elements of `size` bytes; null if it cannot be had. */
lvd_stream *mp3_machine_stream(mp3_machine *machine, const char *name, size_t size,
                               unsigned capacity);

/* Calls a procedure on a unit; `argument` is copied. What is behind waits for more, so a procedure
 * nearer to the sink has the higher priority. */
void mp3_machine_call(mp3_machine *machine, unsigned unit, const char *procedure,
                      const void *argument, size_t size, int priority);

/* Waits until all that was called has returned. */
void mp3_machine_wait(mp3_machine *machine);

/* Asks for the cache lines of the next element that a procedure will get, or put, if it is (or has
 * room) there: they come from another core's cache while the procedure still does something else. */
static inline void mp3_machine_expect(const lvd_consumer *in) {
  const char *at = (const char *)lvd_get_span(in) - LVD_PREFETCH_DISTANCE;
  if (in->limit > in->got)
    for (unsigned i = 0; i < in->elem_size; i += 64) lvd_prefetch_read(at + i);
}
static inline void mp3_machine_claim(const lvd_producer *out) {
  const char *at = (const char *)lvd_put_span(out) - LVD_PREFETCH_DISTANCE;
  if (out->limit > out->put)
    for (unsigned i = 0; i < out->elem_size; i += 64) lvd_prefetch_write(at + i);
}

/* Tells what failed; gives whether the status is LVD_OK. */
bool mp3_machine_check(mp3_machine *machine, lvd_status status, const char *what);

#endif
