/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Link: what two processes share, or a process and a remote processor: one shared memory segment
 * with a ring of records each way and the streams' channels, and a doorbell each way.
 *
 * The PARENT has created the segment, and alone decides what lies where. Each process has one
 * thread for the link, the NOTIFIER. It sleeps until its doorbell is rung or the other process has
 * exited. Then it takes the records that have come, sends those that found no room, and wakes the
 * waiters at stream ends of this side.
 *
 * Guarantees
 *   L1  A waiter at this side's end of a stream is woken when the other side's cursor reaches its
 *       mark, or when that side has closed its end or died.
 *   L2  After a process has died, all that it pushed can be read; then the stream is at its end.
 *   L3  Whatever is written into the shared memory, nothing outside of it is read or written.
 *
 * Pairs of orders
 *   ring: exchange_release rung = 1 -> notifier: exchange_acquire rung = 0 what was pushed is seen
 *   push, fence, load armed         <> arm, fence, load tail               as for all channels
 *   conclude: store_release state  -> lvd_ended: load_acquire state    all that was pushed is seen
 *
 * A doorbell that is rung already is not rung again: the notifier clears `rung` before it looks.
 * Single words (serves, closing, gone, stop, taken) are relaxed: they publish no other data, and a
 * doorbell follows or the link's lock is held. `crash` is acquired only by the reader of the
 * text that it publishes.
 *
 * Lock order: the link's lock, an application's gate, its list of streams. */
#ifndef LVD_IPC_LINK_H
#define LVD_IPC_LINK_H

#include "../../platform/device.h"
#include "../stream/stream.h"
#include "link_probe.h"
#include "shm_layout.h"

/* ---- one side of it -------------------------------------------------------------------------- */

typedef struct lvd_link lvd_link;

/* A stream's channel, as this side has mapped it. */
struct lvd_shared_stream {
  lvd_waiter at[2]; /* called to wake an end: a waiter of this process, else the other process */
  lvd_link *link;
  stream *stream;
  lvd_slot_head *slot;
  size_t ring;
  uint32_t number;
  lvd_a32 mine[2]; /* this side owns the end */
  lvd_a32 listed_in
      [2]; /* number of the probe for which the other side has listed its end as blocked, */
  lvd_a32 listed_by[2]; /* and the index there of the end's owner */
  lvd_shared_stream *next, *previous;
};

/* A stream as the parent knows it: by name until both sides have opened it, then by number. */
typedef struct lvd_name {
  char name[LVD_FIBER_NAME];
  uint32_t number, elem_size;
  uint64_t offset, ring; /* 0: one side has left before the other came */
  bool opened[2], closed[2];
  bool refused;      /* the second side has opened it with another element size */
  uint64_t since_ns; /* when the child opened it, while the parent has not; 0: reported */
  struct lvd_name *next;
} lvd_name;

/* A part of the memory in use; sorted by offset. */
typedef struct lvd_range {
  uint64_t offset, size;
  struct lvd_range *next;
} lvd_range;

/* A request of the child (LVD_RECORD_OPEN) that awaits its answer. */
typedef struct lvd_opening {
  uint32_t number;
  lvd_event done;
  lvd_record answer;
  bool abandoned;
  struct lvd_opening *next;
} lvd_opening;

typedef struct lvd_unsent {
  lvd_record record;
  struct lvd_unsent *next;
} lvd_unsent;

struct lvd_link {
  lvd_waiter bell; /* rings the other side's doorbell; first member */
  enum lvd_side side;
  lvd_app *app;
  /* handles records about calls; unit_process.c */
  void (*take)(lvd_link *link, const lvd_record *record);
  /* Called by the notifier: the other side is gone, or (LVD_OK) it asks this side to end. */
  void (*ended)(lvd_link *link, lvd_status status);
  void (*look)(lvd_link *link); /* called in each round of the notifier; may be null */
  int64_t look_ns;              /* longest time between two rounds, ns; negative: no limit */
  /* The child has opened a stream that is not open here; may be null. */
  void (*half_open)(lvd_link *link);
  /* Memory. */
  int memory;
  const lvd_os_device *device; /* owner of the memory; null: this process */
  size_t base;                 /* bytes before the segment */
  size_t size, unit;
  lvd_segment *segment;   /* the whole segment, contiguous */
  lvd_slot_head *slot[2]; /* rings of records to and from the child */
  size_t records_ring;
  /* The other side. */
  int bell_end, own_bell;
  lvd_os_process peer;
  lvd_os_thread *notifier;
  lvd_a32 stop;      /* tells the notifier to return */
  lvd_a32 gone;      /* 1 + the status with which the other side has gone; 0: it is there */
  lvd_os_mutex lock; /* protects all that follows */
  bool reaped, let_go;
  bool behind; /* the peer is an agent of the other side, which is behind a memory window */
  lvd_producer out;
  lvd_waiter *out_peer;
  lvd_consumer in; /* the notifier's */
  lvd_unsent *unsent, *last_unsent;
  uint32_t unsents;
  lvd_event *all_sent; /* set when no record is unsent; or null */
  lvd_shared_stream *streams;
  lvd_range *ranges;
  lvd_name *names;
  uint32_t name_count;
  lvd_opening *openings;
  uint32_t next_number;
  lvd_deadlock_probe probe;
};

/* ---- link.c ---------------------------------------------------------------------------------- */

/* Initialises a link that owns nothing yet, and can be freed. */
void lvd_link_prepare(lvd_link *link, lvd_app *app);
/* The parent: creates the link up to the point where the other side can be started with the memory
 * and its doorbell. The first `base` bytes of the memory do not belong to the link. `wire`: the
 * other side's doorbell is a wire (platform/process.h). */
lvd_status lvd_link_make(lvd_link *link, lvd_app *app, size_t base, size_t memory, bool wire,
                         int *child_bell);
/* Initialises the segment. For memory of a `device` this is separate from lvd_link_make, which
 * leaves the memory as it is, since an earlier program may still be using it. */
lvd_status lvd_link_fill(lvd_link *link);
/* Least size of a device's memory for a link, in bytes after `base`. */
size_t lvd_link_least(const lvd_link *link);
/* Maps a part of the memory, from its offset on; as lvd_os_shared_map. */
void *lvd_link_map(const lvd_link *link, size_t offset, size_t head, size_t ring);
void lvd_link_clear(void *at, size_t size);
/* The child: joins. LVD_E_ABI, LVD_E_CORRUPT, LVD_E_PEER_GONE. */
lvd_status lvd_link_join(lvd_link *link, lvd_app *app, int memory, int bell);
lvd_status lvd_link_begin(lvd_link *link, const char *name); /* starts the notifier */
void lvd_link_end(lvd_link *link);                           /* stops and joins it */
void lvd_link_free(lvd_link *link);

/* Sends a record, now or once there is room. LVD_E_PEER_GONE, LVD_E_MEMORY. */
lvd_status lvd_link_send(lvd_link *link, const lvd_record *record);
/* Waits until all records are sent, the other side is gone, or the timeout has passed. */
void lvd_link_await_sent(lvd_link *link, int64_t timeout_ns);
void lvd_link_kill(lvd_link *link); /* no effect once it has exited */
/* The other side has violated the protocol. */
void lvd_link_report_corrupt(lvd_link *link);
/* Ends the use of the other side, with this status. */
void lvd_link_give_up(lvd_link *link, lvd_status status);

/* The parent, under the lock: allocates a part of the memory. Returns 0 if there is none. */
uint64_t lvd_link_claim(lvd_link *link, uint64_t size);
void lvd_link_release(lvd_link *link, uint64_t offset);

static inline lvd_status lvd_link_state(const lvd_link *link) {
  uint32_t gone = lvd_load_relaxed_u32(&link->gone);
  return gone ? (lvd_status)(gone - 1) : LVD_OK;
}

/* Appends `n` bytes from the other side to the text of `length` bytes at `to`, which has room for
 * `most` bytes with the null; drops control characters. Returns the new length. */
static inline size_t lvd_link_sanitize(char *to, size_t length, size_t most,
                                       const unsigned char *from, size_t n) {
  for (size_t i = 0; i < n && length < most - 1; i++)
    if ((from[i] >= ' ' || from[i] == '\n') && from[i] != 127) to[length++] = (char)from[i];
  to[length] = 0;
  return length;
}

/* ---- unit_process.c -------------------------------------------------------------------------- */

lvd_link *lvd_unit_link(const struct lvd_unit *unit); /* null: it is a core */
const char *lvd_link_name(lvd_link *link);            /* the other side, as text */

/* ---- unit_process_call.c, unit_process_serve.c ----------------------------------------------- */

/* Under the link's lock: this side's call of that number, or null; and each call that this side
 * serves, with its fiber. */
struct lvd_call *lvd_link_call(lvd_link *link, uint32_t number);
void lvd_link_served(lvd_link *link, void (*visit)(uint32_t number, const lvd_fiber *fiber, void *),
                     void *argument);

/* ---- shared_stream.c ------------------------------------------------------------------------- */

/* The waiter of this mark is to be woken. */
bool lvd_mark_due(const lvd_wake_mark *m, uint32_t cursor, uint32_t published, bool over);
/* The parent, under the lock: number of the stream of that name that only the side `opened` has
 * opened; 0: there is none. */
uint32_t lvd_shared_half_open(const lvd_link *link, enum lvd_side opened, const char *name);
/* The parent, under the lock: calls `visit` with each stream that the child has opened and the
 * parent has not, and with the time of that, which `visit` may change. */
void lvd_shared_half_opens(lvd_link *link,
                           void (*visit)(const char *name, uint64_t *since_ns, void *),
                           void *argument);
/* Handles records about streams. Returns false if it is about something else. */
bool lvd_shared_take(lvd_link *link, const lvd_record *record);
void lvd_shared_wake(lvd_link *link); /* wakes the waiters that can proceed; under the lock */
void lvd_shared_end(lvd_link *link, lvd_status status); /* the other side is gone; under the lock */
void lvd_shared_forget(lvd_link *link);                 /* frees the parent's names */
lvd_status lvd_shared_leave(lvd_link *link, const char *name);
/* The parent: the task in the child that would use the open stream of that name has ended. The name
 * is given up, so that the next stream of that name does not find this one. Returns true if the
 * child had neither opened nor left the stream, or was refused for its element size. */
bool lvd_shared_give_up(lvd_link *link, const char *name);
lvd_status lvd_shared_open(lvd_link *link, const lvd_stream_options *options, lvd_stream **out);

#endif
