/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unit: what there is to know of a kind of processor that takes calls. A core of this process
 * (call.c), another process, later a processor behind a window: a table of functions each. */
#ifndef LVD_UNIT_H
#define LVD_UNIT_H

#include <levada/call.h>
#include <levada/wait.h>

#include <stddef.h>

#include "../sched/sched.h"

enum { LVD_CALL_INLINE = 256, LVD_PROCEDURE_NAME = 64 };

/* A call to another core is the lines of its record that travel: those that the callee begins with,
 * and one back. A line is what travels at once: of 64 bytes on the processors that we know. */
enum { LVD_CALL_LINE = 64 };

/* In place of a result's size: the procedure has set one beyond the room that there was. */
#define LVD_RESULT_TOO_LARGE SIZE_MAX

struct lvd_call {
  /* To a core: written by the caller, read by the callee; but `fiber`. */
  LVD_ALIGNED(LVD_LINE) lvd_command arrival; /* first: what is posted, with a name */
  lvd_procedure *procedure;
  lvd_aptr fiber; /* the callee's: what runs it or has run it; null: it has not arrived */
  uint32_t level, stack;
  lvd_frame frame;
  LVD_ALIGNED(16) unsigned char argument[LVD_CALL_INLINE];
  lvd_a32 cancelled;
  /* The caller's own. */
  lvd_status status;
  lvd_unit *unit;
  lvd_call *next;
  uint32_t number; /* of a process: what its answers are known by */
  lvd_a32
      told; /* of a process: the question to which it said that this waits in vain (deadlock_detect.c) */
  lvd_a32 told_by; /* ... and who serves it there, by his number */
  uint64_t offset; /* of a process: where what is too large for a record lies; 0: nowhere */
  /* Written by the callee: that it has returned, with the status as data, and what. */
  LVD_ALIGNED(LVD_LINE) unsigned char apart[LVD_LINE - sizeof(lvd_sleeper)];
  lvd_event returned;
  size_t result_size;
  LVD_ALIGNED(16) unsigned char result[LVD_CALL_INLINE];
};
_Static_assert(offsetof(lvd_call, argument) + 16 <= 2 * LVD_CALL_LINE,
               "small arguments: two lines");
_Static_assert(offsetof(lvd_call, returned.word) % LVD_LINE == 0 &&
                   offsetof(lvd_call, result) + 32 <=
                       offsetof(lvd_call, returned.word) + LVD_CALL_LINE,
               "small results: one line");

typedef struct lvd_unit_kind {
  /* Sends the call on its way; `returned` is set when it has. */
  lvd_status (*start)(lvd_call *call, const char *procedure, const lvd_call_options *options);
  /* After `returned`: takes what came back. */
  lvd_status (*finish)(lvd_call *call);
  void (*cancel)(lvd_call *call);
  void (*free)(lvd_unit *unit); /* with its application */
  /* Are calls under way there? Then its application is not at rest. May be null. */
  bool (*awaited)(const lvd_unit *unit);
  /* What it said when it failed; null: nothing. May be null. */
  const char *(*last_words)(const lvd_unit *unit);
} lvd_unit_kind;

struct lvd_unit {
  const lvd_unit_kind *kind;
  lvd_app *app;
  uint32_t worker;
  lvd_unit *next; /* of the application */
  uint32_t held;  /* by who speaks with it, of a program's (srpc_program.h) */
  char name[48];
};

/* Enters a unit, whose fields are set, with its application, which frees it. */
void lvd_unit_enter(lvd_unit *unit);
void lvd_units_free(lvd_app *app);

/* The caller's side of the stream that both call `name` will never come: as if it had opened the
 * stream and ended it, with an end of it or the other. */
lvd_status lvd_unit_leave_stream(lvd_unit *unit, const char *name);

/* These will open the stream that both call `name`; 0: nobody, or it has been
 * opened. Whoever waits at it in the other process waits for them. */
void lvd_unit_expect_stream(lvd_unit *unit, const char *name, const lvd_user party[2],
                            uint32_t parties);

/* The process whose call the calling fiber serves; null: it serves none. */
lvd_unit *lvd_unit_caller(void);

void lvd_calls_free(lvd_runtime *rt);
void lvd_units_free(lvd_app *app);
size_t lvd_units_why(lvd_app *app, char *text, size_t size); /* of those that have failed */

#endif
