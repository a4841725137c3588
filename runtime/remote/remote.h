/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Program behind a memory window, on a processor without an operating system. One thread runs tasks
 * cooperatively, each on a stack of its own; a task yields only where it waits. If none can
 * proceed, the processor sleeps until the doorbell.
 *
 * Pairs of orders: those of channels, and
 *   remote: rung = 0, fence, poll everything  <>  host: push, fence, rung = 1 (link.c)
 * This side signals the host whenever a push finds the host waiting; the signal comes after the
 * pushed data. */
#ifndef LVD_REMOTE_H
#define LVD_REMOTE_H

#include <levada/process.h>
#include <levada/srpc.h>
#include <levada/window.h>

#include "../platform/context.h"
#include "../src/ipc/shm_layout.h"

enum {
  LVD_REMOTE_TASKS = 16,
  LVD_REMOTE_STACK_BYTES = 32 << 10,
  LVD_REMOTE_PROCEDURES = 64,
  LVD_REMOTE_NAME_BYTES = 64,
  LVD_REMOTE_STREAM_NAME_BYTES = 32
};

typedef struct remote_task {
  lvd_os_context context;
  bool used, started, cancelled;
  bool (*ready)(void *of); /* condition that it waits for; null: it can proceed */
  void *of;
  uint64_t until_ns; /* 0: no timeout */
  lvd_procedure *procedure;
  lvd_record record;
  lvd_call_frame frame;
  LVD_ALIGNED(16) unsigned char result[LVD_RECORD_INLINE_BYTES];
  LVD_ALIGNED(16) unsigned char stack[LVD_REMOTE_STACK_BYTES];
} remote_task;

extern const lvd_remote_hal *lvd_remote_board;
extern remote_task *lvd_remote_self; /* the running task; null: the scheduling loop */

unsigned char *lvd_remote_at(uint64_t offset); /* address of an offset in the segment */
uint64_t lvd_remote_room(uint64_t offset); /* bytes from that offset to the end of the segment */
lvd_waiter *lvd_remote_doorbell(void);
/* Set before the processor sleeps: conditions that are polled now arm their wake marks, so that the
 * host signals. */
extern bool lvd_remote_arming;
/* Suspends the task until ready(of). LVD_OK, LVD_E_TIMEOUT, LVD_E_CANCELLED. */
lvd_status lvd_remote_wait(bool (*ready)(void *of), void *of, int64_t timeout_ns);
lvd_status lvd_remote_send(const lvd_record *r); /* called by a task; waits for room */
/* ends the running task and sends its reply */
LVD_NORETURN void lvd_remote_task_end(remote_task *t, lvd_status status);
void lvd_remote_stream_opened(const lvd_record *r); /* streams.c: the reply to LVD_RECORD_OPEN */
/* closes the streams of a task, the sending ends with `status` */
void lvd_remote_task_cleanup(remote_task *t, lvd_status status);
void lvd_remote_end_streams(remote_task *t, lvd_status status);
void lvd_remote_close_streams(remote_task *t);
/* Runs the program until the host ends it. */
lvd_status lvd_remote_serve(const lvd_remote_hal *board);

#endif
