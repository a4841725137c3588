/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shield: cores of this machine that the calling process, another one, or one thread has to itself.
 *
 *   lvd_shield *s;
 *   if (lvd_shield_begin(&(lvd_shield_options){.cores = "3"}, &s) != LVD_OK)
 *     fprintf(stderr, "no shield: %s\n", lvd_shield_why());
 *
 * The work is done by the command `levada shield`, which is started as a child of the process and
 * ends with the shield: what it does, and what it needs, is in its guide. All is as before when the
 * shield is ended, when the process for which it is has ended, and when the process that began it
 * has, in whatever way.
 *
 * Source: Golden-Finger (Chu and Hsiao, 2011). C17 and C++17. */
#ifndef LVD_SHIELD_H
#define LVD_SHIELD_H

#include <levada/base.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct lvd_shield lvd_shield;

typedef struct lvd_shield_options {
  const char *cores;     /* "3", "2,3", "4-7"; null: `count` of them that are cheapest to empty */
  uint32_t count;        /* where `cores` is null; 0: 1 */
  int32_t process;       /* whom they are for; 0: the calling process */
  int32_t thread;        /* one thread of it, by the system's number (gettid); 0: all of them */
  const char *by;        /* "partition", "cpusets", "affinity", "own": in this way only; null: the
                            first that works */
  const char *protect;   /* processes that stay where they are: names or numbers with commas
                            between; null: none */
  bool pin_lightest;     /* what was on the cores goes to the most lightly loaded other one */
  const char *command;   /* the command; null: "levada", in PATH */
  int64_t time_limit_ns; /* until the shield is up, and for each answer; 0: 10 s */
} lvd_shield_options;

typedef struct lvd_shield_report {
  char cores[64];          /* that are shielded, as "2-3"; cut off if it is longer */
  char by[16];             /* the way, as in the options */
  uint64_t took_ns;        /* from the beginning until the cores were empty */
  uint64_t threads;        /* that were moved away; 0 in a partition, where the kernel does it */
  uint64_t kernel_threads; /* those of the kernel that were */
  uint64_t interrupts;     /* that were steered away */
  uint64_t evicted;        /* threads that came since, and were sent away */
  bool full;               /* no more can be recorded: who comes from now on stays */
} lvd_shield_report;

/* Empties the cores and puts the process, or the thread, onto them. `options` may be null; what it
 * points to is needed during the call only. On success *out is the caller's, to be ended with
 * lvd_shield_end. Not in a fiber or an actor, whose core the command would be bound to (LVD_E_STATE).
 * Errors: LVD_E_ARGUMENT: a text is not of the form above, a number is negative; LVD_E_UNKNOWN: there is no
 * command of that name; LVD_E_SYSTEM: it refuses (no such core, the last core, one that is shielded
 * already, no such process, no privileges), lvd_shield_why has the sentence; LVD_E_PEER: it has ended
 * without a word; LVD_E_TIME; LVD_E_MEMORY. Nothing is left changed then. */
LVD_API lvd_status lvd_shield_begin(const lvd_shield_options *options, lvd_shield **out);

/* What it did, and how many came since. LVD_E_ENDED: it is over: somebody has released it, or its
 * process has ended; LVD_E_PEER: the command was killed, and its guard restores within 100 ms;
 * LVD_E_TIME. *out is what was known last then. */
LVD_API lvd_status lvd_shield_ask(lvd_shield *s, lvd_shield_report *out);

/* Ends it: returns when all is as before. `s` is freed in every case; null is allowed. LVD_E_SYSTEM: not
 * all could be restored, lvd_shield_why names the first; LVD_E_PEER: the command was killed before, and its
 * guard restores; LVD_E_TIME: it does not answer; it ends when it can. */
LVD_API lvd_status lvd_shield_end(lvd_shield *s);

/* A sentence on the calling thread's last error in these functions, in the command's words; "" if there
 * was none. It lives until the thread's next call of them. */
LVD_API const char *lvd_shield_why(void);

/* The functions may be called by any thread, but for one shield by one at a time. The command is a child of the
 * process until lvd_shield_end: a wait for any child may meet it, and does no harm. */

#ifdef __cplusplus
}
#endif
#endif
