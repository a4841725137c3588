/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Link: what two processes share: one piece of memory, in it a channel of records each way and the
 * streams; and a bell each way.
 *
 * The PARENT has made the memory, and it alone says what lies where. Each process has one thread
 * for the link, the BELLMAN. It sleeps until the bell is rung or the other process is gone; then it
 * takes the records that have come, sends those that found no room, and wakes whoever waits here at
 * an end of a stream.
 *
 * Guarantees
 *   L1  Whoever waits at this side's end of a stream is woken when the other side's cursor reaches
 *       its mark, or when that side has ended, left or died.
 *   L2  Of a process that died all that it pushed is there to get, and after it the end.
 *   L3  Whatever is written into the shared memory, nothing outside of it is read or written.
 *
 * Pairs of orders
 *   ring: exchange_release rung = 1 -> notifier: exchange_acquire rung = 0 what was pushed is seen
 *   push, fence, load armed         <> arm, fence, load tail               as for all channels
 *   conclude: store_release state  -> lvd_ended: load_acquire state    all that was pushed is seen
 * A bell that is rung already is not rung again: the notifier takes the word back before it looks.
 * What a process says in one word (serves, closing, gone, stop, whose an end is) needs no order:
 * nothing is left with it, and a bell follows, or the link's lock is held.
 *
 * Locks: the link's before an application's gate, before its list of streams. */
#ifndef LVD_SRC_LINK_H
#define LVD_SRC_LINK_H

#include "../../platform/device.h"
#include "../stream/stream.h"
#include "link_probe.h"
#include "shm_layout.h"

/* ---- a side of it --------------------------------------------------------------------------- */

typedef struct lvd_link lvd_link;

/* A stream's channel, as this side has mapped it. */
struct lvd_shared_stream {
  lvd_waiter at[2]; /* who is woken at an end: whoever waits there here, else the other process */
  lvd_link *link;
  stream *stream;
  lvd_slot_head *slot;
  size_t ring;
  uint32_t number;
  lvd_a32 mine[2];    /* this side has it */
  lvd_a32 told[2];    /* the question to which the other side said that its end waits in vain ... */
  lvd_a32 told_by[2]; /* ... and who has that end there, by his number in its answer */
  lvd_shared_stream *next, *previous;
};

/* What the parent knows of a stream: by name until both sides have opened it, then by number. */
typedef struct lvd_name {
  char name[LVD_FIBER_NAME];
  uint32_t number, elem_size;
  uint64_t offset, ring; /* 0: one side has left before the other came */
  bool opened[2], closed[2];
  bool refused;      /* to the side that came second, for elements of another size */
  uint64_t since_ns; /* the child has opened it, and waits for this side; 0: that was told */
  struct lvd_name *next;
} lvd_name;

/* A part of the memory that is in use; in order. */
typedef struct lvd_range {
  uint64_t offset, size;
  struct lvd_range *next;
} lvd_range;

/* The child waits for an answer to LVD_RECORD_OPEN. */
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
  lvd_waiter bell; /* rings the other side's; first */
  enum lvd_side side;
  lvd_app *app;
  void (*take)(lvd_link *link, const lvd_record *record); /* calls, unit_process.c */
  void (*ended)(lvd_link *link,
                lvd_status why); /* called by the notifier: the other side is gone, or
                                                    (LVD_OK) lets this one go */
  void (*look)(lvd_link *link);  /* each time that the notifier is rung; may be null */
  int64_t look_ns;               /* ... and at least so often; negative: only then */
  /* The child has opened a stream that is not open here; may be null. */
  void (*half_open)(lvd_link *link);
  /* The memory. */
  int memory;
  const lvd_os_device *device; /* whose memory it is; null: ours */
  size_t base;                 /* bytes of it before the segment */
  size_t size, unit;
  lvd_segment *segment;   /* all of it, mapped in a row */
  lvd_slot_head *slot[2]; /* the records to and from the child, as rings */
  size_t records_ring;
  /* The other side. */
  int bell_end, own_bell;
  lvd_os_process peer;
  lvd_os_thread *notifier;
  lvd_a32 stop;      /* the notifier shall return */
  lvd_a32 gone;      /* 1 + why the other side is no more; 0: it is there */
  lvd_os_mutex lock; /* of all that follows */
  bool reaped, let_go;
  bool behind; /* the peer only stands for the other side, which is behind a window */
  lvd_producer out;
  lvd_waiter *out_peer;
  lvd_consumer in; /* the notifier's */
  lvd_unsent *unsent, *last_unsent;
  uint32_t unsents;
  lvd_event *all_sent; /* of whoever waits until there are none; or null */
  lvd_shared_stream *streams;
  lvd_range *ranges;
  lvd_name *names;
  uint32_t name_count;
  lvd_opening *openings;
  uint32_t next_number;
  lvd_deadlock_probe knot;
};

/* ---- link.c --------------------------------------------------------------------------------- */

/* One that nothing was made of yet, to be freed like others. */
void lvd_link_prepare(lvd_link *link, lvd_app *app);
/* The parent's side, to the point where the other can be started with the memory and its bell. Of
 * the memory the first `base` bytes are not the link's. `wire`: the other side's bell is a wire
 * (platform/process.h). */
lvd_status lvd_link_make(lvd_link *link, lvd_app *app, size_t base, size_t memory, bool wire,
                         int *child_bell);
/* The same in memory that is there already (`device`): it takes what there is, and leaves it as it is until
 * lvd_link_fill, since a program of before may still be about it. */
lvd_status lvd_link_fill(lvd_link *link);
/* The bytes that a device has to have for a link, behind what is not the link's. */
size_t lvd_link_least(const lvd_link *link);
/* A part of the memory, from its offset on; as lvd_os_shared_map. */
void *lvd_link_map(const lvd_link *link, size_t offset, size_t head, size_t ring);
void lvd_link_clear(void *at, size_t size);
/* The child's side. LVD_E_LAYOUT, LVD_E_CORRUPT, LVD_E_PEER. */
lvd_status lvd_link_join(lvd_link *link, lvd_app *app, int memory, int bell);
lvd_status lvd_link_begin(lvd_link *link, const char *name); /* starts the notifier */
void lvd_link_end(lvd_link *link);                           /* and ends him */
void lvd_link_free(lvd_link *link);

/* Sends a record, now or when there is room. LVD_E_PEER, LVD_E_MEMORY. */
lvd_status lvd_link_send(lvd_link *link, const lvd_record *record);
/* Waits until all has been sent, the other side is gone, or the time has passed. */
void lvd_link_await_sent(lvd_link *link, int64_t timeout_ns);
void lvd_link_kill(lvd_link *link); /* unless it is gone */
/* It has written what it cannot have meant. */
void lvd_link_report_corrupt(lvd_link *link);
/* It is of no use any more, and why. */
void lvd_link_give_up(lvd_link *link, lvd_status why);

/* The parent: a part of the memory; 0: there is none. With the lock. */
uint64_t lvd_link_claim(lvd_link *link, uint64_t size);
void lvd_link_release(lvd_link *link, uint64_t offset);

static inline lvd_status lvd_link_state(const lvd_link *link) {
  uint32_t gone = lvd_load_relaxed_u32(&link->gone);
  return gone ? (lvd_status)(gone - 1) : LVD_OK;
}

/* Appends what the other side says, `n` bytes, to the text of `length` bytes at `to`, which has room
 * for `most` with the null; what could spoil a terminal is left out. Returns the length. */
static inline size_t lvd_link_sanitize(char *to, size_t length, size_t most,
                                       const unsigned char *from, size_t n) {
  for (size_t i = 0; i < n && length < most - 1; i++)
    if ((from[i] >= ' ' || from[i] == '\n') && from[i] != 127) to[length++] = (char)from[i];
  to[length] = 0;
  return length;
}

/* ---- unit_process.c ------------------------------------------------------------------------------ */

lvd_link *lvd_unit_link(const struct lvd_unit *unit); /* null: it is a core */
const char *lvd_link_name(lvd_link *link);            /* in words, the other side */

/* ---- unit_process_call.c, unit_process_serve.c -------------------------------------------------------- */

/* With the link's lock: this side's call of that number, or null; and the calls that it serves,
 * each by its fiber. */
struct lvd_call *lvd_link_call(lvd_link *link, uint32_t number);
void lvd_link_served(lvd_link *link, void (*visit)(uint32_t number, const lvd_fiber *fiber, void *),
                     void *argument);

/* ---- shared_stream.c ------------------------------------------------------------------------ */

/* Is whoever waits there due to be woken? */
bool lvd_mark_due(const lvd_mark *m, uint32_t cursor, uint32_t published, bool over);
/* The parent, with the lock: the stream of that name that one side has opened and the other has not;
 * 0: there is none. */
uint32_t lvd_shared_half_open(const lvd_link *link, enum lvd_side opened, const char *name);
/* The parent: calls `visit` with each stream that the child has opened and that is not open here, with
 * when that was, for it to change. With the lock. */
void lvd_shared_half_opens(lvd_link *link,
                           void (*visit)(const char *name, uint64_t *since_ns, void *),
                           void *argument);
/* Records about streams; false: it is about something else. */
bool lvd_shared_take(lvd_link *link, const lvd_record *record);
void lvd_shared_wake(lvd_link *link);                /* whoever can go on; the lock in hand */
void lvd_shared_end(lvd_link *link, lvd_status why); /* the other side is gone; the lock in hand */
void lvd_shared_forget(lvd_link *link);              /* the parent's names */
lvd_status lvd_shared_leave(lvd_link *link, const char *name);
/* The parent's: the child will not come for the stream of that name that is open here, since whoever
 * was to has ended. So the next one of that name finds no old one. True: it has not come, neither to
 * use the stream nor to leave it, or it was refused for elements of another size. */
bool lvd_shared_give_up(lvd_link *link, const char *name);
lvd_status lvd_shared_open(lvd_link *link, const lvd_stream_options *options, lvd_stream **out);

#endif
