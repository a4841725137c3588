/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Platform layer: named message queues of the system, with priorities. Sending and receiving never
 * block. */
#ifndef LVD_PLATFORM_QUEUE_H
#define LVD_PLATFORM_QUEUE_H

#include "platform.h"

typedef struct lvd_os_queue {
  int id;            /* negative: none */
  uint32_t messages; /* capacity, in messages */
  uint32_t size;     /* of the largest message, in bytes */
} lvd_os_queue;

/* Names are per user: other users' queues of the same name are different ones.
 *
 * Opens `name`. LVD_E_NOT_FOUND: there is none that belongs to this user alone. */
lvd_status lvd_os_queue_find(const char *name, lvd_os_queue *q);
/* Opens or creates it, for `messages` messages of up to `most` bytes; fewer messages and a smaller
 * size, but at least `least` bytes, if the system's limits require it. LVD_E_LIMIT: the limits do
 * not allow that. LVD_E_SYSTEM. */
lvd_status lvd_os_queue_create(const char *name, uint32_t messages, uint32_t least, uint32_t most,
                               lvd_os_queue *q);
void lvd_os_queue_close(lvd_os_queue *q);
void lvd_os_queue_remove(const char *name);
/* LVD_OK; LVD_E_TIMEOUT: the queue is full, or empty; LVD_E_SYSTEM. A higher priority is received
 * first. */
lvd_status lvd_os_queue_send(const lvd_os_queue *q, const void *data, size_t size,
                             uint32_t priority);
/* `data` has room for q->size bytes. */
lvd_status lvd_os_queue_receive(const lvd_os_queue *q, void *data, size_t *size,
                                uint32_t *priority);
uint32_t lvd_os_queue_count(const lvd_os_queue *q);

#endif
