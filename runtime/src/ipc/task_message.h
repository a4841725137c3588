/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Message: what a call about a task says, between two sides of a link. Freestanding. */
#ifndef LVD_MESSAGE_H
#define LVD_MESSAGE_H

#include <stdint.h>

enum { LVD_TASK_NAME = 64 };

typedef struct lvd_task_message {
  uint32_t number, data; /* how its maker, who sends this, calls it */
  char name[LVD_TASK_NAME];
} lvd_task_message;

#endif
