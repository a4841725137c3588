/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The unit that is another process, for the files that know: unit_process.c is the unit, unit_process_load.c how
 * the other side is started, unit_process_call.c the calls to it, unit_process_serve.c the calls from it, and
 * unit_process_child.c what it is where this process is the one that was loaded. */
#ifndef LVD_SRC_PROCESS_H
#define LVD_SRC_PROCESS_H

#include <levada/process.h>

#include "../amp/window.h"
#include "../ipc/link.h"
#include "unit.h"

#define LVD_UNIT_VARIABLE "LEVADA_UNIT" /* tells a child: memory, bell */
#define LVD_GRACE_NS      2000000000    /* from being asked to end to being ended */
enum { LVD_PROCESS_BUCKETS = 256 };

_Static_assert(sizeof(((lvd_record *)0)->name) == LVD_PROCEDURE_NAME, "as long");
_Static_assert((int)LVD_CALL_INLINE == (int)LVD_RECORD_INLINE, "as large");

typedef struct lvd_process {
  lvd_unit unit; /* first */
  lvd_link link;
  lvd_a32 under_way; /* calls that have not come back */
  lvd_a32 held;      /* calls that have not been waited for */
  /* With the link's lock. */
  lvd_call *call[LVD_PROCESS_BUCKETS];
  struct lvd_served *served; /* unit_process_serve.c's */
  uint32_t served_count;
  lvd_event *answered;     /* of whoever waits for those that are served; or null */
  struct lvd_served *kept; /* answered meanwhile: he may still look at them */
  char *may_call;          /* the parent's: how names of procedures begin that the child may call */
  lvd_aptr last_words;     /* the parent's: what the child said when it failed; or null */
  /* The child's. */
  lvd_status why; /* it is to end: LVD_OK, LVD_E_PEER, ... */
  lvd_os_thread *watch;
  lvd_far_side *far; /* the parent's: it is behind a window; or null */
  /* The parent's: that the other side is no more; the child's: that it has done with this. */
  lvd_event over;
  uint64_t asked_ns; /* when it was asked to end; 0: it has not been */
} lvd_process;

static inline lvd_process *lvd_process_of(lvd_link *link) {
  return (lvd_process *)(void *)((char *)link - offsetof(lvd_process, link));
}

/* What is larger than a record lies in the link's memory, the argument first, then the result. */
static inline size_t lvd_process_aligned(size_t size) { return (size + 15) & ~(size_t)15; }
static inline unsigned char *lvd_process_at(const lvd_link *link, uint64_t offset) {
  return (unsigned char *)link->segment + offset;
}

/* Of a time limit that began then; negative: there is none. */
static inline int64_t lvd_process_left(int64_t timeout_ns, uint64_t start) {
  int64_t left = timeout_ns - (int64_t)(lvd_os_now_ns() - start);
  return timeout_ns < 0 ? -1 : left > 0 ? left : 0;
}

/* ---- unit_process.c ------------------------------------------------------------------------------ */

extern const lvd_unit_kind lvd_process_kind;
/* What the other side sends. */
void lvd_process_takes(lvd_link *link, const lvd_record *r);
/* The parent's: the child is no more. */
void lvd_process_parent_ended(lvd_link *link, lvd_status why);
void lvd_process_unlink(lvd_process *p);

/* ---- unit_process_load.c ------------------------------------------------------------------------- */

void lvd_process_free_far(lvd_process *p);

/* ---- unit_process_call.c ------------------------------------------------------------------------- */

lvd_status lvd_process_start(lvd_call *c, const char *procedure, const lvd_call_options *o);
lvd_status lvd_process_finish(lvd_call *c);
void lvd_process_cancel(lvd_call *c);
bool lvd_process_awaited(const lvd_unit *unit);
void lvd_process_take_answer(lvd_process *p, const lvd_record *r);
/* The other side is gone: so are the calls to it, and nobody waits for its own. */
void lvd_process_fail_calls(lvd_process *p, lvd_status why);

/* ---- unit_process_serve.c ------------------------------------------------------------------------ */

void lvd_process_take_call(lvd_process *p, const lvd_record *r);
void lvd_process_cancel_served(lvd_process *p, uint32_t number);
/* Nobody waits for them any more. */
void lvd_process_cancel_all(lvd_process *p);
/* With the link's lock: does this fiber serve one of its calls? */
bool lvd_process_is_served_by(const lvd_process *p, const lvd_fiber *fiber);
/* Waits until all who serve it here have returned, or failed. No more will come. */
lvd_status lvd_process_await_served(lvd_process *p, int64_t timeout_ns);
/* All fibers have ended. What was not answered failed, or had not begun. */
void lvd_process_answer_the_rest(lvd_process *p, lvd_status outcome);

/* ---- unit_process_child.c ------------------------------------------------------------------------ */

/* The unit that is the parent is about to be freed. */
void lvd_process_forget_parent(void);
/* This process is about to end since `who`, which runs in it, did that: what its parent learns of it. In
 * signal context, too. */
void lvd_process_falls(const char *who, const char *what);

#endif
