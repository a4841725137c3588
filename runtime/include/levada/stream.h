/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Stream: a channel between two procedures, made by name or handed over, whose waits suspend.
 *
 *   put   gather an element    push  transmit all that was gathered
 *   get   retrieve an element  pop   free all that was retrieved
 *
 * A procedure (fiber) or thread that first puts or gets on a stream has that end until it closes
 * it, gives it up or returns: then its streams end for the other side, in order. (A thread's do when
 * it has ended, however it came to that; not those of one that exit ends with the process.) A
 * receiver that waits is suspended, and woken only when as many elements as its threshold have been
 * pushed, or when the sender has flushed, waits itself, or has ended: no threshold deadlocks.
 *
 * An end belongs to who uses it first. One that nobody takes lets the other side wait for ever; that
 * is told when it can be known: as a deadlock, when only such waits are left and the application is
 * closed (lvd_app_close; lvd_app_why names the stream), and to a thread that has the other end when
 * the application has ended, by the stream's end. Until then somebody may still come, and a time
 * limit bounds the wait.
 *
 * A thread that waits without a time limit, here, for a call, for a fiber's end or for the
 * application's, is judged as a fiber is: when all who could let each other go on wait so, whoever
 * waits for a stream gets LVD_E_DEADLOCK, a thread too, and lvd_app_why names it.
 *
 * Each end for one procedure at a time; the two ends at the same time. Statuses are those of
 * wait.h, and LVD_E_ARGUMENT: an element of another size; LVD_E_STATE: the end is somebody else's,
 * or closed. Whose it is only waits look at: putting and getting without being the owner is refused
 * from anybody else's first wait on, and is a mistake before. A program that is compiled with
 * -DLVD_DEBUG finds it at once: there every put and get looks, and is refused.
 *
 * Source: "Streaming RPC" (SiPS 2008), sections 2.2, 2.3 and 4. C17 and C++17. */
#ifndef LVD_STREAM_H
#define LVD_STREAM_H

#include <levada/fiber.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_stream {
  lvd_producer put;
  LVD_ALIGNED(LVD_LINE) lvd_consumer get;
  LVD_ALIGNED(LVD_LINE) int64_t time_limit_ns; /* of the waits in put and get; negative: none */
} lvd_stream;

typedef struct lvd_stream_options {
  const char *name;   /* for reports; copied, at most 31 bytes; null: "stream" */
  uint32_t elem_size; /* bytes: 1 ... LVD_STREAM_ELEMENT */
  uint32_t capacity;  /* elements, at most LVD_CHANNEL_CAPACITY; 0: 16 KiB, and at least 64 */
  uint32_t threshold; /* elements that wake the receiver; more than the capacity: as many as that.
                            0: it chooses so many that they take eight times as long as the
                            wake-up that brings them, at most half the capacity */
  int64_t time_limit_ns; /* of the waits in put and get; 0: none */
} lvd_stream_options;

/* The most that an element may have, and a stream's ring; an array that is larger goes in parts. */
#define LVD_STREAM_ELEMENT (1u << 24)
#define LVD_STREAM_BYTES   (1u << 30)

/* Makes a stream of `app`, which frees it when it is unloaded, if nobody has before. LVD_E_ARGUMENT: no
 * stream can be so; LVD_E_LIMIT: its ring would take more than LVD_STREAM_BYTES, or the system has
 * no mappings left for it; LVD_E_MEMORY. */
LVD_API lvd_status lvd_stream_create(lvd_app *app, const lvd_stream_options *options,
                                     lvd_stream **out);
/* When nobody uses it any more; the caller's own ends are closed. LVD_E_STATE: somebody else has an
 * end, and it stays. */
LVD_API lvd_status lvd_stream_destroy(lvd_stream *s);
LVD_API const char *lvd_stream_name(const lvd_stream *s);

/* ---- waiting, with a time limit (negative: none) -------------------------------------------- */

/* A thread in one of these when its application is unloaded gets LVD_E_STOPPED. */

/* Room for `n` elements; `n` elements. With 0 as the limit they only look. */
LVD_API lvd_status lvd_stream_wait_room(lvd_stream *s, uint32_t n, int64_t timeout_ns);
LVD_API lvd_status lvd_stream_wait_elements(lvd_stream *s, uint32_t n, int64_t timeout_ns);

/* One of `count` streams (at most LVD_WANTS) that has an element or has ended; *which is its index. Where
 * several have, they take turns: the first behind the one that was selected last. For an ended one the
 * status is as for lvd_stream_get. */
LVD_API lvd_status lvd_stream_select(lvd_stream *const *stream, uint32_t count, int64_t timeout_ns,
                                     uint32_t *which);

/* ---- whose end it is ------------------------------------------------------------------------ */

/* Has the caller the sending end, the other one? */
LVD_API bool lvd_stream_is_mine(const lvd_stream *s, bool sender);

/* What put and get need not ask for: the caller has the end, and there is so much. */
#ifdef LVD_DEBUG
#define LVD_STREAM_KNOWN(s, sender, enough) ((enough) && lvd_stream_is_mine(s, sender))
#else
#define LVD_STREAM_KNOWN(s, sender, enough) (enough)
#endif

/* ---- elements ------------------------------------------------------------------------------ */

/* `size` is sizeof *element, which must be the stream's. */
static inline lvd_status lvd_stream_put(lvd_stream *s, const void *element, size_t size) {
  lvd_producer *p = &s->put;
  if (LVD_UNLIKELY(size != p->elem_size)) return LVD_E_ARGUMENT;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, true, (int64_t)(p->limit - p->put) >= 1))) {
    lvd_status status = lvd_stream_wait_room(s, 1, s->time_limit_ns);
    if (status != LVD_OK) return status;
  }
  memcpy(lvd_put_span(p), element, size);
  lvd_put_done(p, 1);
  return LVD_OK;
}
static inline lvd_status lvd_stream_get(lvd_stream *s, void *element, size_t size) {
  lvd_consumer *c = &s->get;
  if (LVD_UNLIKELY(size != c->elem_size)) return LVD_E_ARGUMENT;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, false, (int64_t)(c->limit - c->got) >= 1))) {
    lvd_status status = lvd_stream_wait_elements(s, 1, s->time_limit_ns);
    if (status != LVD_OK) return status;
  }
  memcpy(element, lvd_get_span(c), size);
  lvd_get_done(c, 1);
  return LVD_OK;
}

static inline void lvd_stream_push(lvd_stream *s) { lvd_push(&s->put); }
static inline void lvd_stream_pop(lvd_stream *s) { lvd_pop(&s->get); }
/* Push, and let the receiver have it even below its threshold. */
static inline void lvd_stream_flush(lvd_stream *s) { lvd_flush(&s->put); }

/* ---- groups, without copying ----------------------------------------------------------------- */

/* Where the next `n` elements are to be written (n <= the capacity), all in a row; then
 * lvd_put_done(&s->put, n), and push. */
static inline lvd_status lvd_stream_put_span(lvd_stream *s, uint32_t n, void **span) {
  bool room = (int64_t)(s->put.limit - s->put.put) >= (int64_t)n;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, true, room))) {
    lvd_status status = lvd_stream_wait_room(s, n, s->time_limit_ns);
    if (status != LVD_OK) return status;
  }
  *span = lvd_put_span(&s->put);
  return LVD_OK;
}
/* Where the next `n` elements lie, in a row; then lvd_get_done(&s->get, n), and pop. LVD_E_ENDED:
 * there are fewer, lvd_elements(&s->get, 1) of them, and no more will come. */
static inline lvd_status lvd_stream_get_span(lvd_stream *s, uint32_t n, const void **span) {
  lvd_status status = LVD_OK;
  bool there = (int64_t)(s->get.limit - s->get.got) >= (int64_t)n;
  if (LVD_UNLIKELY(!LVD_STREAM_KNOWN(s, false, there)))
    status = lvd_stream_wait_elements(s, n, s->time_limit_ns);
  *span = lvd_get_span(&s->get);
  return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* The sender says that no more will come: LVD_OK, or an error that the receiver gets after the last
 * element. What was put is transmitted. */
LVD_API lvd_status lvd_stream_end(lvd_stream *s, lvd_status why);
/* The receiver says that it takes no more: the sender's waits return LVD_E_PEER. */
LVD_API lvd_status lvd_stream_leave(lvd_stream *s);
/* The caller ends whatever end of it is its own, in order; false: neither is. */
LVD_API bool lvd_stream_close(lvd_stream *s);
/* The caller gives up its end or ends, which stay open: another procedure may go on with them. */
LVD_API lvd_status lvd_stream_give_up(lvd_stream *s);

/* ---- counters ------------------------------------------------------------------------------ */

typedef struct lvd_stream_counters {
  char name[32];
  char sender[32], receiver[32]; /* who has that end: a fiber's name, "a thread", "another process";
                                     empty: nobody has */
  uint32_t elem_size, capacity, fill; /* fill: pushed, and not popped yet */
  uint32_t threshold;                 /* that is in force now ... */
  bool automatic;                     /* ... and is chosen as it turns out */
  uint64_t put, got;                  /* elements ever pushed, popped */
  uint64_t receiver_wakes,
      sender_wakes; /* times that end was woken by the other, if that is of this
                                             process */
  uint64_t receiver_waits, sender_waits; /* times it was suspended, or, a thread, went to sleep */
} lvd_stream_counters;

/* Reads them while it is used; each may be a moment older than another. */
LVD_API lvd_status lvd_stream_counters_read(const lvd_stream *s, lvd_stream_counters *out);
/* Those of all streams of an application, while it runs or after: fills at most *count records, and
 * sets it to the number of streams that it has. */
LVD_API lvd_status lvd_app_streams(lvd_app *app, lvd_stream_counters *stream, uint32_t *count);

#ifdef __cplusplus
}
#endif
#endif
