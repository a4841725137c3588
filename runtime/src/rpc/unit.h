/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unit: a kind of processor that takes calls, as a table of functions: a core of this process
 * (call.c), another process, or a processor behind a window (unit_process.c). */
#ifndef LVD_RPC_UNIT_H
#define LVD_RPC_UNIT_H

#include <levada/call.h>
#include <levada/wait.h>

#include <stddef.h>

#include "../sched/sched.h"

enum { LVD_CALL_INLINE_BYTES = 256, LVD_PROCEDURE_NAME_BYTES = 64 };

/* Bytes per cache line, for calls to another core: the callee starts with the first lines of the
 * record, and answers with one. */
enum { LVD_CALL_LINE_BYTES = 64 };

/* Size of a result for which the procedure has set more than its room. */
#define LVD_RESULT_TOO_LARGE SIZE_MAX

struct lvd_call {
  /* To a core: written by the caller and read by the callee, except `fiber`. */
  LVD_ALIGNED(LVD_CACHE_LINE) lvd_command arrival; /* first: what is posted, with a name */
  lvd_procedure *procedure;
  lvd_aptr fiber; /* the callee's: the fiber that runs it or has run it; null: it has not arrived */
  uint32_t level, stack;
  lvd_call_frame frame;
  LVD_ALIGNED(16) unsigned char argument[LVD_CALL_INLINE_BYTES];
  lvd_a32 cancelled;
  /* The caller's own. */
  lvd_status status;
  lvd_unit *unit;
  lvd_call *next;
  uint32_t number; /* of a process: identifies the answer */
  /* of a process: number of the probe for which it has listed this call as blocked
   * (deadlock_detect.c) */
  lvd_a32 listed_in;
  lvd_a32 listed_by; /* and the index there of the fiber that serves it */
  uint64_t offset;   /* of a process: position of what is too large for a record; 0: none */
  /* Written by the callee: that it has returned, with the status as data, and the result. */
  LVD_ALIGNED(LVD_CACHE_LINE) unsigned char padding[LVD_CACHE_LINE - sizeof(lvd_wait_point)];
  lvd_event returned;
  size_t result_size;
  LVD_ALIGNED(16) unsigned char result[LVD_CALL_INLINE_BYTES];
};
_Static_assert(offsetof(lvd_call, argument) + 16 <= 2 * LVD_CALL_LINE_BYTES,
               "small arguments: two lines");
_Static_assert(offsetof(lvd_call, returned.word) % LVD_CACHE_LINE == 0 &&
                   offsetof(lvd_call, result) + 32 <=
                       offsetof(lvd_call, returned.word) + LVD_CALL_LINE_BYTES,
               "small results: one line");

typedef struct lvd_unit_kind {
  /* Sends the call; `returned` is set when it has returned. */
  lvd_status (*start)(lvd_call *call, const char *procedure, const lvd_call_options *options);
  /* After `returned`: takes the result. */
  lvd_status (*finish)(lvd_call *call);
  void (*cancel)(lvd_call *call);
  void (*free)(lvd_unit *unit); /* with its application */
  /* Calls to it are under way: its application is not quiescent. May be null. */
  bool (*awaited)(const lvd_unit *unit);
  /* Its last message when it failed; null: none. May be null. */
  const char *(*last_words)(const lvd_unit *unit);
} lvd_unit_kind;

struct lvd_unit {
  const lvd_unit_kind *kind;
  lvd_app *app;
  uint32_t worker;
  lvd_unit *next; /* of the application */
  uint32_t held;  /* number of streams open with it, for the paper's API (srpc_program.h) */
  char name[48];
};

/* Adds a unit with its fields set to its application, which frees it. */
void lvd_unit_enter(lvd_unit *unit);
void lvd_units_free(lvd_app *app);

/* The caller's side of the stream `name` will never come: as if it had opened the stream and closed
 * an end of it, one or the other. */
lvd_status lvd_unit_leave_stream(lvd_unit *unit, const char *name);

/* Announces the users that will open the stream `name`; parties = 0: the stream has been opened, or
 * they are unknown. A waiter at it in the other process depends on them. */
void lvd_unit_expect_stream(lvd_unit *unit, const char *name, const lvd_user party[2],
                            uint32_t parties);

/* The process that has made the call that the calling fiber serves; null: none. */
lvd_unit *lvd_unit_caller(void);

void lvd_calls_free(lvd_runtime *rt);
void lvd_units_free(lvd_app *app);
size_t lvd_units_why(lvd_app *app, char *text, size_t size); /* of units that have failed */

#endif
