/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Unit: what there is to know of a kind of processor that takes calls. A core of this process
 * (call.c), another process, later a processor behind a window: a table of functions each. */
#ifndef LVD_UNIT_H
#define LVD_UNIT_H

#include <levada/call.h>
#include <levada/wait.h>

#include "core.h"

enum { LVD_CALL_INLINE = 256, LVD_PROCEDURE_NAME = 64 };

struct lvd_call {
  lvd_unit *unit;
  lvd_frame frame;
  lvd_procedure *procedure; /* of a core */
  lvd_fiber *fiber;         /* of a core */
  lvd_event *done;          /* set when it has returned */
  lvd_event returned;       /* what `done` points at where there is no fiber */
  lvd_status status;
  uint32_t number; /* of a process: what its answers are known by */
  lvd_a32 told; /* of a process: the question to which it said that this waits in vain (knot.c) */
  uint64_t offset; /* of a process: where what is too large for a record lies; 0: nowhere */
  lvd_call *next;
  LVD_ALIGNED(16) unsigned char argument[LVD_CALL_INLINE];
  LVD_ALIGNED(16) unsigned char result[LVD_CALL_INLINE];
};

typedef struct lvd_unit_kind {
  /* Sends the call on its way; `done` is set when it has returned. */
  lvd_status (*start)(lvd_call *call, const char *procedure, const lvd_call_options *options);
  /* After `done`: takes what came back. */
  lvd_status (*finish)(lvd_call *call);
  void (*cancel)(lvd_call *call);
  void (*free)(lvd_unit *unit); /* with its application */
  /* Are calls under way there? Then its application is not at rest. May be null. */
  bool (*awaited)(const lvd_unit *unit);
} lvd_unit_kind;

struct lvd_unit {
  const lvd_unit_kind *kind;
  lvd_app *app;
  uint32_t worker;
  lvd_unit *next; /* of the application */
  char name[48];
};

/* Enters a unit, whose fields are set, with its application, which frees it. */
void lvd_unit_enter(lvd_unit *unit);
void lvd_units_free(lvd_app *app);

/* The caller's side of the stream that both call `name` will never come: as if it had opened the
 * stream and ended it, with an end of it or the other. */
lvd_status lvd_unit_leave_stream(lvd_unit *unit, const char *name);

#endif
