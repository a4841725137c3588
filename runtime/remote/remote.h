/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Far: the side of a link that runs behind a window. One thread runs tasks, each on a stack of its
 * own, which give way only where they wait; when none can go on, the processor sleeps until the
 * doorbell is rung.
 *
 * Pairs of orders: those of channels, and
 *   far: rung = 0, fence, look at all there is  <>  host: push, fence, rung = 1 (link.c)
 * The far side rings whenever a push finds the host waiting, and the ring itself comes after what was
 * pushed. */
#ifndef LVD_FAR_H
#define LVD_FAR_H

#include <levada/process.h>
#include <levada/srpc.h>
#include <levada/window.h>

#include "../platform/context.h"
#include "../src/ipc/shm_layout.h"

enum {
  LVD_FAR_TASKS = 16,
  LVD_FAR_STACK = 32 << 10,
  LVD_FAR_PROCEDURES = 64,
  LVD_FAR_NAME = 64,
  LVD_FAR_STREAM_NAME = 32
};

typedef struct far_task {
  lvd_os_context context;
  bool used, started, cancelled;
  bool (*ready)(void *of); /* what it waits for; null: it may go on */
  void *of;
  uint64_t until_ns; /* 0: no limit */
  lvd_procedure *procedure;
  lvd_record record;
  lvd_frame frame;
  LVD_ALIGNED(16) unsigned char result[LVD_RECORD_INLINE];
  LVD_ALIGNED(16) unsigned char stack[LVD_FAR_STACK];
} far_task;

extern const lvd_far_board *lvd_far;
extern far_task *lvd_far_self; /* the task that runs; null: the loop */

unsigned char *lvd_far_at(uint64_t offset); /* of the segment */
uint64_t lvd_far_room(uint64_t offset);     /* bytes there are from there on */
lvd_waiter *lvd_far_bell(void);
/* The processor is about to sleep: whoever looks for what he waits for arms his mark, to be rung for. */
extern bool lvd_far_arms;
/* The task waits until ready(of). LVD_E_TIME, LVD_E_CANCELLED. */
lvd_status lvd_far_wait(bool (*ready)(void *of), void *of, int64_t timeout_ns);
lvd_status lvd_far_send(const lvd_record *r);                  /* of a task: waits for room */
LVD_NORETURN void lvd_far_end(far_task *t, lvd_status status); /* of the task that runs: answers */
void lvd_far_opened(const lvd_record *r); /* streams.c: an answer to LVD_RECORD_OPEN */
void lvd_far_task_ends(far_task *t,
                       lvd_status status); /* its streams end: those that it sends, so */
void lvd_far_end_streams(far_task *t, lvd_status status);
void lvd_far_leave_streams(far_task *t);
/* A program, until the host lets it go. */
lvd_status lvd_far_serve(const lvd_far_board *board);

#endif
