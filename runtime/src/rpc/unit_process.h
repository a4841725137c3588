/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The unit that is another process, for its own files: unit_process.c is the unit,
 * unit_process_load.c starts the other side, unit_process_call.c makes calls to it,
 * unit_process_serve.c serves calls from it, and unit_process_child.c is the child's view of its
 * parent. */
#ifndef LVD_RPC_UNIT_PROCESS_H
#define LVD_RPC_UNIT_PROCESS_H

#include <levada/process.h>

#include "../amp/window.h"
#include "../ipc/link.h"
#include "unit.h"

#define LVD_UNIT_VARIABLE "LEVADA_UNIT" /* environment of a child: memory, doorbell */
#define LVD_GRACE_NS      2000000000    /* from the request to end until the process is killed */
enum { LVD_PROCESS_BUCKETS = 256 };

_Static_assert(sizeof(((lvd_record *)0)->name) == LVD_PROCEDURE_NAME_BYTES, "as long");
_Static_assert((int)LVD_CALL_INLINE_BYTES == (int)LVD_RECORD_INLINE_BYTES, "as large");

typedef struct lvd_process {
  lvd_unit unit; /* first member */
  lvd_link link;
  lvd_a32 under_way; /* calls that have not returned */
  lvd_a32 held;      /* calls that the caller has not waited for */
  /* Under the link's lock. */
  lvd_call *call[LVD_PROCESS_BUCKETS];
  struct lvd_incoming_call *incoming; /* of unit_process_serve.c */
  uint32_t incoming_count;
  /* set after each answer for a thread that waits for the calls served; or null */
  lvd_event *answered;
  struct lvd_incoming_call *kept; /* answered meanwhile: that thread may still read them */
  char *may_call;      /* the parent's: prefix of the procedures that the child may call */
  lvd_aptr last_words; /* the parent's: the child's message when it failed; or null */
  /* The child's. */
  lvd_status why; /* why it is to end: LVD_OK, LVD_E_PEER_GONE, ... */
  lvd_os_thread *watch;
  lvd_remote_side *remote; /* the parent's: state of the window, if it is behind one; or null */
  /* The parent's: the other side has exited. The child's: it has finished with the link. */
  lvd_event over;
  lvd_a64 asked_ns; /* when it was asked to end, which its notifier reads; 0: not yet */
} lvd_process;

static inline lvd_process *lvd_process_of(lvd_link *link) {
  return (lvd_process *)(void *)((char *)link - offsetof(lvd_process, link));
}

/* What is larger than a record lies in the link's memory: the argument, then the result. */
static inline size_t lvd_process_aligned(size_t size) { return (size + 15) & ~(size_t)15; }
static inline unsigned char *lvd_process_at(const lvd_link *link, uint64_t offset) {
  return (unsigned char *)link->segment + offset;
}

/* Remaining part of a timeout that began at `start`, ns; negative: none. */
static inline int64_t lvd_process_left(int64_t timeout_ns, uint64_t start) {
  int64_t left = timeout_ns - (int64_t)(lvd_os_now_ns() - start);
  return timeout_ns < 0 ? -1 : left > 0 ? left : 0;
}

/* ---- unit_process.c -------------------------------------------------------------------------- */

extern const lvd_unit_kind lvd_process_kind;
/* Handles a record of the other side. */
void lvd_process_takes(lvd_link *link, const lvd_record *r);
/* The parent's: the child has exited. */
void lvd_process_parent_ended(lvd_link *link, lvd_status why);
void lvd_process_unlink(lvd_process *p);

/* ---- unit_process_load.c --------------------------------------------------------------------- */

void lvd_process_free_remote(lvd_process *p);

/* ---- unit_process_call.c --------------------------------------------------------------------- */

lvd_status lvd_process_start(lvd_call *c, const char *procedure, const lvd_call_options *o);
lvd_status lvd_process_finish(lvd_call *c);
void lvd_process_cancel(lvd_call *c);
bool lvd_process_awaited(const lvd_unit *unit);
void lvd_process_take_answer(lvd_process *p, const lvd_record *r);
/* The other side is gone: fails the calls to it. */
void lvd_process_fail_calls(lvd_process *p, lvd_status why);

/* ---- unit_process_serve.c -------------------------------------------------------------------- */

void lvd_process_take_call(lvd_process *p, const lvd_record *r);
void lvd_process_cancel_served(lvd_process *p, uint32_t number);
/* Cancels all calls that are served: their results are not needed. */
void lvd_process_cancel_all(lvd_process *p);
/* Under the link's lock: this fiber serves one of its calls. */
bool lvd_process_is_served_by(const lvd_process *p, const lvd_fiber *fiber);
/* Waits until each fiber that serves it has returned or failed. No more calls come. */
lvd_status lvd_process_await_served(lvd_process *p, int64_t timeout_ns);
/* All fibers have ended: answers the calls that failed or had not begun. */
void lvd_process_answer_the_rest(lvd_process *p, lvd_status outcome);

/* ---- unit_process_child.c -------------------------------------------------------------------- */

/* The unit that is the parent is about to be freed. */
void lvd_process_forget_parent(void);
/* This process is about to crash since `subject`, which runs in it, did `what`: stores that for the
 * parent. Also called in a signal handler. */
void lvd_process_record_crash(const char *subject, const char *what);

#endif
