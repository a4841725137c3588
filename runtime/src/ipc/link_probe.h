/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A link's state of deadlock detection (deadlock/deadlock_detect.h): the last probe and its reply,
 * and the wait information of the other side. */
#ifndef LVD_IPC_LINK_PROBE_H
#define LVD_IPC_LINK_PROBE_H

#include "../sched/sched.h"

/* The announced users of a stream that both sides have a name for and this side has not opened. */
typedef struct lvd_expected_users {
  char name[32];
  lvd_user party[2];
  uint32_t parties;
  struct lvd_expected_users *next;
} lvd_expected_users;

/* Protected by the application's gate, except `pending` (atomic) and `expected` (the link's lock).
 */
typedef struct lvd_deadlock_probe {
  lvd_a32 pending;             /* what the notifier is to send: LVD_PROBE_SEND, LVD_PROBE_REPLY */
  uint32_t asked;              /* number of the last probe */
  uint32_t answered;           /* number of the last one that was replied to; 0: none is valid */
  uint64_t asked_for;          /* fingerprint of the deadlocked waiters at the last probe */
  bool concerned;              /* a waiter of this process waits for the other side */
  struct lvd_wait_info *entry; /* wait information of the other side (deadlock_report.h) */
  uint32_t entries, entries_capacity;
  bool applied; /* the child: the parent's deadlock has been applied; only the notifier uses it */
  lvd_expected_users *expected;
} lvd_deadlock_probe;

enum { LVD_PROBE_SEND = 1, LVD_PROBE_REPLY = 2 };

#endif
