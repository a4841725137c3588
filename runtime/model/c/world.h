/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* World: one or two workers with the runtime's own loop, an application of fibers on real stacks,
 * and the threads of the check. What a fiber does is a ROLE; each suite has its own (model_role).
 */
#ifndef LVD_MODEL_WORLD_H
#define LVD_MODEL_WORLD_H

#include "arena.h"
#include "src/stream/stream.h"

enum { WORKERS = 2, FIBERS = 4, EVENTS = 2, STACK_LOG2 = LVD_STACK_MOST };

typedef struct model_world {
  lvd_runtime rt;
  lvd_worker worker[2 * WORKERS];
  lvd_command command[2 * WORKERS];
  lvd_entity *pending_parks[WORKERS][FIBERS];
  lvd_slot slot[FIBERS];
  lvd_entity *entities[FIBERS];
  lvd_app app;
  lvd_app_worker_state share[2 * WORKERS];
  lvd_event event[EVENTS];
  lvd_stream *stream;
  lvd_fiber *fiber[FIBERS]; /* in the order of their start */
  uint32_t fibers;
  /* What the fibers do. */
  uint32_t count;         /* elements in all */
  uint32_t left[WORKERS]; /* fibers there, until the worker ends; the worker's */
  uint32_t told;          /* written without any order, before something is said */
  uint32_t judged;        /* 1 + told, when it was found at rest */
  uint32_t got, wrong, data;
  uint32_t status[FIBERS]; /* what the last wait of each said; the fiber's */
  bool ends_by_command;
  lvd_command bye[2 * WORKERS];
} model_world;

extern model_world *model_the_world;

/* What a fiber does, by number. */
extern uint32_t (*const model_role[])(model_world *m);

/* The suite's own part of an execution's beginning. */
void model_begin(model_world *m);

#endif
