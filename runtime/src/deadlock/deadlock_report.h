/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Knot story: what a process that is asked whether it waits in vain (deadlock_detect.h) says of itself, a line for
 * each thing that somebody there waits for; and whom he waits for, so that a ring can be told in one
 * piece which leads through several processes. */
#ifndef LVD_SRC_KNOT_STORY_H
#define LVD_SRC_KNOT_STORY_H

#include "../core/text_buffer.h"
#include "../ipc/link.h"
#include "wait_graph.h"

/* What one side may wait for that is the other's: an end of a stream (LVD_SENDER, LVD_RECEIVER) or a
 * call, and its number. */
enum { LVD_ITEM_CALL = LVD_RECEIVER + 1 };
static inline uint64_t lvd_deadlock_item(uint32_t number, uint32_t what) {
  return (uint64_t)number << 2 | what;
}

/* A line, as it was said. */
typedef struct lvd_wait_info_wire {
  uint32_t who;   /* his number there */
  uint32_t alone; /* he waits for this alone, for ever */
  uint32_t other; /* 1 + the number of whom he waits for there; 0: nobody there ... */
  uint32_t turn;  /* what the other one has to do: lvd_wait_action */
  uint64_t item;  /* ... but for this of ours, + 1; 0: for nothing of ours */
  char text[LVD_RECORD_INLINE - 24]; /* what he waits for */
} lvd_wait_info_wire;

typedef enum lvd_wait_action { LVD_AWAITS_END, LVD_AWAITS_FILL, LVD_AWAITS_DRAIN } lvd_wait_action;

/* The same, as the parent keeps it. */
typedef struct lvd_wait_info {
  lvd_wait_info_wire said;
  lvd_user user; /* who has that of ours; or nobody */
  uint32_t mark; /* the teller's */
  char name[64]; /* who waits */
} lvd_wait_info;

/* The child, with the link's lock and the list of streams: its lines, those first who wait in vain, as
 * records that answer question `number`. Returns how many; the caller frees them. */
uint32_t lvd_wait_info_records(const lvd_wait_graph *c, lvd_link *link, uint32_t number,
                               lvd_record **out);
/* The parent: takes one; forgets all, with the gate closed. */
void lvd_wait_info_take(lvd_link *link, const lvd_record *r);
void lvd_wait_info_forget(lvd_link *link);

/* ---- wait_report_fibers.c: in words --------------------------------------------------------------------- */

void lvd_report_wait_node(text_buffer *s, const lvd_wait_graph *c, uint32_t i);
/* What it waits for, without whose turn it is. */
void lvd_report_wait_edge(text_buffer *s, const lvd_wait_graph *c, const lvd_wait_edge *h);

#endif
