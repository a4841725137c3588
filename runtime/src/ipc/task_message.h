/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Message about a task between two sides of a link. Freestanding. */
#ifndef LVD_IPC_TASK_MESSAGE_H
#define LVD_IPC_TASK_MESSAGE_H

#include <stdint.h>

enum { LVD_TASK_NAME_BYTES = 64 };

typedef struct lvd_task_message {
  uint32_t number, data; /* the sender's number and data of the task */
  char name[LVD_TASK_NAME_BYTES];
} lvd_task_message;

#endif
