/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Layout of the memory that the two sides of a link share, byte for byte: the header, a ring of
 * records each way, and the streams' channels. It is the same for a process and for a processor
 * behind a memory window. All positions are offsets from the start of the segment.
 *
 * Freestanding. */
#ifndef LVD_IPC_SHM_LAYOUT_H
#define LVD_IPC_SHM_LAYOUT_H

#include <levada/channel.h>

enum lvd_side { LVD_PARENT, LVD_CHILD };
enum lvd_stream_side { LVD_SENDER, LVD_RECEIVER };

#define LVD_SEGMENT_MAGIC 0x4c56534du
enum { LVD_CRASH_TEXT_BYTES = 200 /* bytes, with the null */ };

typedef struct lvd_segment {
  uint32_t magic, abi_version, line, unit;
  uint64_t size;
  int32_t parent;
  LVD_ALIGNED(LVD_CACHE_LINE)
  lvd_a32 serves; /* the child's: 1 + its LVD_ABI_VERSION, once it serves */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 closing; /* the parent's: the child has to end */
  lvd_a32 deadlocked; /* the parent's: its application ends by a deadlock (deadlock_detect.h) */
  struct {
    LVD_ALIGNED(LVD_CACHE_LINE)
    lvd_a32 rung; /* doorbell of that side; 1: rung, and not looked since */
  } bell[2];
  /* The child's, when its process is about to crash: what it was running, and why it fails. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 crash;
  char last_words[LVD_CRASH_TEXT_BYTES];
} lvd_segment;

/* Values of `crash`: being written, complete. */
enum { LVD_CRASH_WRITING = 1, LVD_CRASH_WRITTEN };

/* A channel in memory: this, padded to a whole unit, then its ring. */
typedef struct lvd_slot_head {
  lvd_channel channel;
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_a32 taken[2]; /* for a stream: 1 + the side that owns the end */
} lvd_slot_head;

enum lvd_record_kind {
  LVD_RECORD_CALL = 1, /* either way */
  LVD_RECORD_CANCEL,
  LVD_RECORD_ANSWER,
  LVD_RECORD_OPEN,      /* child to parent: open a stream by name */
  LVD_RECORD_OPENED,    /* parent to child: the answer */
  LVD_RECORD_CLOSE,     /* child to parent: it has unmapped a stream */
  LVD_RECORD_LEAVE,     /* child to parent: its side of a stream, by name, will not come */
  LVD_RECORD_PROBE,     /* a probe of the parent, and the child's reply (deadlock_detect.h) */
  LVD_RECORD_WAIT_INFO, /* child to parent, before the reply: what waits for what, one entry each */
  LVD_RECORD_QUIESCENT, /* child to parent: it is quiescent, so a probe may succeed */
  LVD_RECORD_FAULT,     /* child to parent, before the answers: what failed there, as text */
  /* child to parent: a misuse of the paper's API there, as text (srpc_misuse.h) */
  LVD_RECORD_MISUSE
};

enum { LVD_RECORD_INLINE_BYTES = 256, LVD_RECORDS_PER_RING = 64 };

typedef struct lvd_record {
  uint32_t kind, number;
  uint32_t status;
  uint32_t size;    /* bytes of an argument, a result, an element */
  uint32_t room;    /* bytes for a result; elements of a stream */
  int32_t priority; /* of a call; of LVD_RECORD_OPEN: 1 + the end that it takes at once, or 0 */
  uint32_t urgent;
  uint32_t pad;
  uint64_t offset; /* of what is not inline, or of a stream; 0: none */
  uint64_t extent; /* bytes of a stream's ring; of a stack; of a result that has no room, else 0 */
  char name[64];
  LVD_ALIGNED(16) unsigned char data[LVD_RECORD_INLINE_BYTES];
} lvd_record;

#endif
