/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a link keeps for deadlock detection (deadlock/deadlock_detect.h): the last question and its answer, and what the other
 * side has said. */
#ifndef LVD_IPC_LINK_PROBE_H
#define LVD_IPC_LINK_PROBE_H

#include "../sched/sched.h"

/* A stream that the two have a name for, and that this side has not opened yet: who will. */
typedef struct lvd_expected_users {
  char name[32];
  lvd_user party[2];
  uint32_t parties;
  struct lvd_expected_users *next;
} lvd_expected_users;

/* A link's part of it. With its application's gate, but for `look`, and for `expected`, which has
 * the link's lock. */
typedef struct lvd_deadlock_probe {
  lvd_a32 look; /* what its notifier is to do: LVD_PROBE_SEND, LVD_PROBE_REPLY */
  uint32_t asked,
      answered;       /* questions, by number; the last that was answered: 0: none that counts */
  uint64_t asked_for; /* who waited in vain here when it was asked */
  bool concerned;     /* somebody here waits for the other side */
  struct lvd_wait_info *line; /* what the other side has said of itself (deadlock_report.h) */
  uint32_t lines, lines_room;
  bool heeded; /* the child: it has told its own of the parent's knot; the notifier's */
  lvd_expected_users *expected;
} lvd_deadlock_probe;

enum { LVD_PROBE_SEND = 1, LVD_PROBE_REPLY = 2 };

#endif
