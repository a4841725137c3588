/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Port: queues of messages that the system keeps, by name, with priorities; whoever sends or receives
 * never waits. */
#ifndef LVD_PLATFORM_QUEUE_H
#define LVD_PLATFORM_QUEUE_H

#include "platform.h"

typedef struct lvd_os_queue {
  int id;            /* negative: none */
  uint32_t messages; /* it can hold */
  uint32_t size;     /* of the largest */
} lvd_os_queue;

/* Names are the user's: other users have others of the same name.
 *
 * Opens `name`. LVD_E_UNKNOWN: there is none of this user's alone. */
lvd_status lvd_os_queue_find(const char *name, lvd_os_queue *q);
/* The same, or makes it: for at most `messages` of `most` bytes, and for at least `least`, as the system's
 * limits allow. LVD_E_LIMIT: they do not. LVD_E_SYSTEM. */
lvd_status lvd_os_queue_create(const char *name, uint32_t messages, uint32_t least, uint32_t most,
                               lvd_os_queue *q);
void lvd_os_queue_close(lvd_os_queue *q);
void lvd_os_queue_remove(const char *name);
/* LVD_OK; LVD_E_TIME: it is full, or empty; LVD_E_SYSTEM. A higher priority is received first. */
lvd_status lvd_os_queue_send(const lvd_os_queue *q, const void *data, size_t size,
                             uint32_t priority);
/* `data` has room for q->size bytes. */
lvd_status lvd_os_queue_receive(const lvd_os_queue *q, void *data, size_t *size,
                                uint32_t *priority);
uint32_t lvd_os_queue_count(const lvd_os_queue *q);

#endif
