/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stream: a channel between two procedures, passed by pointer, or between processes found by name
 * (lvd_stream_open, process.h). Its waits suspend the caller. Below, a procedure is a fiber, or a
 * thread of the program.
 *
 *   put   write an element     push  publish all written elements
 *   get   read an element      pop   free the space of all read elements
 *
 * The procedure that first puts on a stream owns its sending end, and the one that first gets owns
 * its receiving end, until it closes the end, releases it (lvd_stream_release_end) or returns. When
 * a procedure returns, its streams end for the other side, after everything that was put. (A
 * thread's streams end when it has ended in any way, except where exit ends the whole process.) A
 * receiver that waits is suspended and woken only when as many elements as its threshold have been
 * pushed, or when the sender has flushed, waits itself, or has ended: so no threshold causes a
 * deadlock.
 *
 * If no procedure takes the other end, a wait does not end by itself. This is a deadlock once only
 * such waits are left and the application is closed (lvd_app_close): before, a new procedure may
 * still take the end. When the application has ended, the stream ends for a thread that owns the
 * other end. A timeout bounds the wait in every case.
 *
 * Deadlock: when each of a set of waiting procedures could only be resumed by another one of the
 * set, their waits for streams return LVD_E_DEADLOCK, and lvd_app_wait_report names the streams. A
 * thread is part of such a set only while it waits without a timeout (for a stream, a call, the end
 * of a fiber or of the application).
 *
 * Thread-safety: one procedure at a time per end; both ends may be used at the same time. Statuses
 * are those of wait.h, and LVD_E_ARGUMENT: an element of another size; LVD_E_STATE: another
 * procedure owns the end, or it is closed. The owner is only checked when a put or get has to wait:
 * until then, calls by a procedure that does not own the end are undetected errors. With
 * -DLVD_DEBUG every put and get checks the owner.
 *
 * Source: "Streaming RPC" (SiPS 2008), sections 2.2, 2.3 and 4. C17 and C++17. */
#ifndef LVD_STREAM_H
#define LVD_STREAM_H

#include <levada/fiber.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Created by lvd_stream_create only; longer in the library. The members are for the inline
 * functions below. */
typedef struct lvd_stream {
  lvd_producer producer;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_consumer consumer;
  /* of the waits in put and get, ns; negative: none */
  LVD_ALIGNED(LVD_CACHE_LINE) int64_t timeout_ns;
} lvd_stream;

typedef struct lvd_stream_options {
  const char *name;   /* for reports; copied, at most 31 bytes; null: "stream" */
  uint32_t elem_size; /* bytes: 1 ... LVD_STREAM_ELEMENT */
  /* elements, at most LVD_CHANNEL_CAPACITY; 0: 16 KiB, and at least 64 elements */
  uint32_t capacity;
  /* number of elements that wake the receiver, bounded by the capacity; 0: automatic, a number such that
   * they take eight times as long as the wake-up, at most half the capacity */
  uint32_t threshold;
  int64_t timeout_ns; /* of the waits in put and get, ns; 0 or negative: none */
} lvd_stream_options;

/* Maximum size of an element, and of a stream's ring, in bytes. Send a larger array in parts. */
#define LVD_STREAM_ELEMENT (1u << 24)
#define LVD_STREAM_BYTES   (1u << 30)

/* Creates a stream. `app` owns it and frees it at unload, if lvd_stream_destroy has not freed it
 * before. LVD_E_ARGUMENT: a value is out of range; LVD_E_LIMIT: the ring would exceed
 * LVD_STREAM_BYTES, or the system has no mappings left; LVD_E_MEMORY. */
LVD_API lvd_status lvd_stream_create(lvd_app *app, const lvd_stream_options *options,
                                     lvd_stream **out);
/* Closes the caller's ends and frees the stream, which must not be in use. LVD_E_STATE: another
 * procedure owns an end; the stream is kept. */
LVD_API lvd_status lvd_stream_destroy(lvd_stream *s);
/* The name of the stream. Owned by the stream. */
LVD_API const char *lvd_stream_name(const lvd_stream *s);

/* ---- waiting; timeouts in ns, negative: none ------------------------------------------------- */

/* A thread that waits here when its application is unloaded gets LVD_E_STOPPED. */

/* Wait for room for `n` elements (sender), or for `n` elements (receiver); n <= capacity. Timeout
 * 0: they check, and return LVD_E_TIMEOUT instead of waiting. */
LVD_API lvd_status lvd_stream_wait_room(lvd_stream *s, uint32_t n, int64_t timeout_ns);
LVD_API lvd_status lvd_stream_wait_elements(lvd_stream *s, uint32_t n, int64_t timeout_ns);

/* Waits until one of `count` streams (at most LVD_WAIT_ITEMS_MAX) has an element or has ended;
 * *which is its index. Among several the choice is round-robin, beginning after the one selected
 * last. For a stream that has ended, the status is as for lvd_stream_get. */
LVD_API lvd_status lvd_stream_select(lvd_stream *const *stream, uint32_t count, int64_t timeout_ns,
                                     uint32_t *which);

/* ---- ownership ------------------------------------------------------------------------------ */

/* Does the caller own the sending end (`sender`), or the receiving end? */
LVD_API bool lvd_stream_is_owner(const lvd_stream *s, bool sender);

/* The fast path of put and get: enough room or elements are known, so no wait is needed. */
#ifdef LVD_DEBUG
#define LVD_STREAM_KNOWN(s, sender, enough) ((enough) && lvd_stream_is_owner(s, sender))
#else
#define LVD_STREAM_KNOWN(s, sender, enough) (enough)
#endif

/* ---- elements ------------------------------------------------------------------------------ */

/* Copy one element in or out, and wait if there is no room or no element. `size` is sizeof *element
 * and must equal the stream's element size. */
static inline lvd_status lvd_stream_put(lvd_stream *s, const void *element, size_t size) {
  lvd_producer *p = &s->producer;
  if (LVD_UNLIKELY(size != p->elem_size)) return LVD_E_ARGUMENT;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, true, (int64_t)(p->limit - p->put) >= 1))) {
    lvd_status status = lvd_stream_wait_room(s, 1, s->timeout_ns);
    if (status != LVD_OK) return status;
  }
  memcpy(lvd_put_span(p), element, size);
  lvd_put_done(p, 1);
  return LVD_OK;
}
static inline lvd_status lvd_stream_get(lvd_stream *s, void *element, size_t size) {
  lvd_consumer *c = &s->consumer;
  if (LVD_UNLIKELY(size != c->elem_size)) return LVD_E_ARGUMENT;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, false, (int64_t)(c->limit - c->got) >= 1))) {
    lvd_status status = lvd_stream_wait_elements(s, 1, s->timeout_ns);
    if (status != LVD_OK) return status;
  }
  memcpy(element, lvd_get_span(c), size);
  lvd_get_done(c, 1);
  return LVD_OK;
}

static inline void lvd_stream_push(lvd_stream *s) { lvd_push(&s->producer); }
static inline void lvd_stream_pop(lvd_stream *s) { lvd_pop(&s->consumer); }
/* Pushes, and wakes the receiver even below its threshold. */
static inline void lvd_stream_flush(lvd_stream *s) { lvd_flush(&s->producer); }

/* ---- groups, without copying ---------------------------------------------------------------- */

/* Sets *span to contiguous space for the next `n` elements (n <= capacity); waits like
 * lvd_stream_put. After writing them call lvd_put_done(&s->producer, n), then push. */
static inline lvd_status lvd_stream_put_span(lvd_stream *s, uint32_t n, void **span) {
  bool room = (int64_t)(s->producer.limit - s->producer.put) >= (int64_t)n;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, true, room))) {
    lvd_status status = lvd_stream_wait_room(s, n, s->timeout_ns);
    if (status != LVD_OK) return status;
  }
  *span = lvd_put_span(&s->producer);
  return LVD_OK;
}
/* Sets *span to the next `n` elements, contiguous; waits like lvd_stream_get. After reading them
 * call lvd_get_done(&s->consumer, n), then pop. LVD_E_EOF: fewer than n are left,
 * lvd_elements(&s->consumer, 1) of them at *span. */
static inline lvd_status lvd_stream_get_span(lvd_stream *s, uint32_t n, const void **span) {
  lvd_status status = LVD_OK;
  bool there = (int64_t)(s->consumer.limit - s->consumer.got) >= (int64_t)n;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, false, there)))
    status = lvd_stream_wait_elements(s, n, s->timeout_ns);
  *span = lvd_get_span(&s->consumer);
  return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* The sender ends the stream with LVD_OK, or with an error that the receiver gets after the last
 * element (any but LVD_E_TIMEOUT). Elements written so far are published. */
LVD_API lvd_status lvd_stream_close_sender(lvd_stream *s, lvd_status why);
/* The receiver closes its end: the sender's waits return LVD_E_PEER_GONE. */
LVD_API lvd_status lvd_stream_close_receiver(lvd_stream *s);
/* Closes each end that the caller owns, the sending end with LVD_OK; false: it owns none. */
LVD_API bool lvd_stream_close(lvd_stream *s);
/* Releases the caller's ends without ending the stream: the next procedure that puts or gets owns
 * them. */
LVD_API lvd_status lvd_stream_release_end(lvd_stream *s);

/* ---- counters ------------------------------------------------------------------------------ */

typedef struct lvd_stream_counters {
  char name[32];
  /* owner of the end: a fiber's name, "a thread", "another process"; empty: none */
  char sender[32], receiver[32];
  uint32_t elem_size, capacity, fill; /* fill: elements pushed and not yet popped */
  uint32_t threshold;                 /* the one in force now */
  bool automatic;                     /* the threshold is chosen automatically */
  uint64_t put, got;                  /* elements pushed, popped since creation */
  /* times that end was woken by the other end, if the latter is in this process */
  uint64_t receiver_wakes, sender_wakes;
  uint64_t receiver_waits, sender_waits; /* times it was suspended, or slept if a thread */
} lvd_stream_counters;

/* Reads the counters of a stream in use; they are not one consistent snapshot. */
LVD_API lvd_status lvd_stream_counters_read(const lvd_stream *s, lvd_stream_counters *out);
/* Reads those of all streams of an application, running or ended: fills at most *count records,
 * and sets *count to the number of streams. */
LVD_API lvd_status lvd_app_streams(lvd_app *app, lvd_stream_counters *stream, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
