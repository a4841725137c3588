/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Message queues on Linux: POSIX message queues. Their capacity counts against a limit of the user
 * (RLIMIT_MSGQUEUE) that all programs of the user share, so one queue takes at most a part of
 * it. */
#include "../queue.h"
#include "syscall.h"

#include <stdio.h>

enum {
  LIMIT_PART = 8,
  DEFAULT_MESSAGES = 10 /* the system's default maximum */,
  HEADER_BYTES = 64
};

static const char *full_name(char out[128], const char *name) {
  snprintf(out, 128, "/levada-%u-%s", (unsigned)lvd_sys_geteuid(), name);
  return out;
}

static bool is_ours(int id) {
  struct lvd_sys_statx s;
  return lvd_sys_stat(id, "", &s) == 0 && s.stx_uid == lvd_sys_geteuid() && (s.stx_mode & 077) == 0;
}

static lvd_status use(int id, lvd_os_queue *q) {
  struct mq_attr a;
  if (!is_ours(id) || lvd_sys_mq_getattr(id, &a) != 0) {
    lvd_sys_close(id);
    return LVD_E_NOT_FOUND;
  }
  *q = (lvd_os_queue){(int)id, (uint32_t)a.mq_maxmsg, (uint32_t)a.mq_msgsize};
  return LVD_OK;
}

lvd_status lvd_os_queue_find(const char *name, lvd_os_queue *q) {
  char path[128];
  int id = lvd_sys_mq_open(full_name(path, name), O_RDWR | O_NONBLOCK, 0, NULL);
  return id < 0 ? LVD_E_NOT_FOUND : use(id, q);
}

/* Maximum bytes of one queue. Raises the soft limit to the hard limit. */
static rlim_t queue_limit(void) {
  struct rlimit limit;
  if (lvd_sys_getrlimit(RLIMIT_MSGQUEUE, &limit) != 0) return 0;
  if (limit.rlim_cur != limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    lvd_sys_setrlimit(RLIMIT_MSGQUEUE, &limit);
  }
  return limit.rlim_cur == RLIM_INFINITY ? RLIM_INFINITY : limit.rlim_cur / LIMIT_PART;
}

lvd_status lvd_os_queue_create(const char *name, uint32_t messages, uint32_t least, uint32_t most,
                               lvd_os_queue *q) {
  rlim_t part = queue_limit();
  char path[128];
  /* The largest size; 8 KiB plus a header, so that 8 KiB of data are one message; the largest size
   * that is always allowed; and
   *      a small one for when the user's other queues take nearly all of the limit. */
  const uint32_t sizes[] = {most, 8192 + HEADER_BYTES, 8192, least};
  for (int i = 0; i < 4; i++) {
    uint32_t size = sizes[i];
    if (size > most || size < least) continue;
    for (uint32_t n = messages;; n = DEFAULT_MESSAGES) {
      struct mq_attr a = {.mq_maxmsg = n, .mq_msgsize = size};
      bool fits = part == RLIM_INFINITY || (rlim_t)n * size <= part ||
                  (n <= DEFAULT_MESSAGES && size == least);
      int id = fits
                   ? lvd_sys_mq_open(full_name(path, name), O_RDWR | O_CREAT | O_NONBLOCK, 0600, &a)
                   : -1;
      if (id >= 0) return use(id, q) == LVD_OK ? LVD_OK : LVD_E_SYSTEM;
      if (fits && errno != EINVAL && errno != EMFILE && errno != ENOMEM && errno != ENOSPC)
        return LVD_E_SYSTEM;
      if (n <= DEFAULT_MESSAGES) break;
    }
  }
  return LVD_E_LIMIT;
}

void lvd_os_queue_close(lvd_os_queue *q) {
  if (q->id >= 0) lvd_sys_close(q->id);
  q->id = -1;
}

void lvd_os_queue_remove(const char *name) {
  char path[128];
  lvd_sys_mq_unlink(full_name(path, name));
}

lvd_status lvd_os_queue_send(const lvd_os_queue *q, const void *data, size_t size,
                             uint32_t priority) {
  int result;
  do result = lvd_sys_mq_send(q->id, data, size, priority);
  while (result != 0 && errno == EINTR);
  return result == 0 ? LVD_OK : errno == EAGAIN ? LVD_E_TIMEOUT : LVD_E_SYSTEM;
}

lvd_status lvd_os_queue_receive(const lvd_os_queue *q, void *data, size_t *size,
                                uint32_t *priority) {
  ssize_t n;
  unsigned level = 0;
  do n = lvd_sys_mq_receive(q->id, data, q->size, &level);
  while (n < 0 && errno == EINTR);
  if (n < 0) return errno == EAGAIN ? LVD_E_TIMEOUT : LVD_E_SYSTEM;
  *size = (size_t)n;
  *priority = level;
  return LVD_OK;
}

uint32_t lvd_os_queue_count(const lvd_os_queue *q) {
  struct mq_attr a;
  return lvd_sys_mq_getattr(q->id, &a) == 0 ? (uint32_t)a.mq_curmsgs : 0;
}
