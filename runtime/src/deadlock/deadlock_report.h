/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Wait information across processes: what a child sends of its waiters with the reply to a deadlock
 * probe (deadlock_detect.h), one entry per awaited item, so that the parent can report a cycle that
 * leads through several processes. */
#ifndef LVD_DEADLOCK_DEADLOCK_REPORT_H
#define LVD_DEADLOCK_DEADLOCK_REPORT_H

#include "../core/text_buffer.h"
#include "../ipc/link.h"
#include "wait_graph.h"

/* Names an item of the other side: the number of a stream with its end (LVD_SENDER, LVD_RECEIVER),
 * or of a call. */
enum { LVD_ITEM_CALL = LVD_RECEIVER + 1 };
static inline uint64_t lvd_deadlock_item(uint32_t number, uint32_t what) {
  return (uint64_t)number << 2 | what;
}

/* One entry, as sent. */
typedef struct lvd_wait_info_wire {
  uint32_t waiter; /* its index in the child */
  uint32_t alone;  /* it waits for nothing else, without a timeout */
  uint32_t other;  /* 1 + index of the waiter there that has to act; 0: none */
  uint32_t action; /* what has to be done: lvd_wait_action */
  uint64_t item;   /* 1 + the awaited item of the receiver; 0: none */
  char text[LVD_RECORD_INLINE_BYTES - 24]; /* what it waits for */
} lvd_wait_info_wire;

typedef enum lvd_wait_action { LVD_AWAITS_END, LVD_AWAITS_FILL, LVD_AWAITS_DRAIN } lvd_wait_action;

/* One entry, as the parent keeps it. */
typedef struct lvd_wait_info {
  lvd_wait_info_wire wire;
  lvd_user user; /* owner of that item in the parent, if any */
  uint32_t mark; /* scratch of the report */
  char name[64]; /* the waiter's name */
} lvd_wait_info;

/* The child, which holds the link's lock and the list of streams: its entries as records of the
 * reply to probe `number`, deadlocked waiters first. Returns how many; the caller frees `*out`. */
uint32_t lvd_wait_info_records(const lvd_wait_graph *c, lvd_link *link, uint32_t number,
                               lvd_record **out);
/* The parent: stores one entry; drops all, with the gate closed. */
void lvd_wait_info_take(lvd_link *link, const lvd_record *r);
void lvd_wait_info_forget(lvd_link *link);

/* ---- wait_report_fibers.c: as text ----------------------------------------------------------- */

void lvd_report_wait_node(text_buffer *s, const lvd_wait_graph *c, uint32_t i);
/* What it waits for, without what has to act. */
void lvd_report_wait_edge(text_buffer *s, const lvd_wait_graph *c, const lvd_wait_edge *h);

#endif
