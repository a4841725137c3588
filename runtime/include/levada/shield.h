/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shield: reserves cores of this machine for the calling process, another process, or one thread.
 *
 *   lvd_shield *s;
 *   if (lvd_shield_raise(&(lvd_shield_options){.cores = "3"}, &s) != LVD_OK)
 *     fprintf(stderr, "no shield: %s\n", lvd_shield_error_text());
 *
 * The command `levada shield` does the work, as a child process that ends with the shield; its
 * guide says what it does and needs. The previous state is restored when the shield is ended, when
 * the process that it is for has ended, and when the process that created it has ended in any way.
 *
 * Thread-safety: any thread may call these functions, but only one at a time for the same shield.
 * The command is a child of the process until lvd_shield_lower: a wait for any child may reap it,
 * which does no harm.
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
  /* "3", "2,3", "4-7"; null: the `count` cores that are cheapest to vacate */
  const char *cores;
  uint32_t count;  /* if `cores` is null; 0: 1 */
  int32_t process; /* process id that gets the cores; 0: the calling process */
  int32_t thread;  /* one thread of it, by thread id (gettid); 0: all of them */
  /* only this mechanism: "cgroup-v2-partition", "cpuset-v1", "affinity", "self"; null: the first that works */
  const char *method;
  /* processes that are not moved: comma-separated names or ids; null: none */
  const char *exclude;
  bool single_target;  /* move what was on the cores to the least loaded other core */
  const char *command; /* the command; null: "levada", in PATH */
  int64_t timeout_ns;  /* ns until the shield is up, and per reply; 0: 10 s */
} lvd_shield_options;

typedef struct lvd_shield_report {
  char cores[64];          /* the shielded cores, as "2-3"; truncated if longer */
  char method[24];         /* the mechanism, as in the options */
  uint64_t took_ns;        /* ns from the start until the cores were vacated */
  uint64_t threads;        /* threads moved away; 0 in a partition, where the kernel moves them */
  uint64_t kernel_threads; /* kernel threads moved away */
  uint64_t interrupts;     /* interrupts moved away */
  uint64_t evicted;        /* threads that arrived since, and were moved away */
  bool full;               /* the record is full: threads that arrive from now on stay */
} lvd_shield_report;

/* Vacates the cores and moves the process or the thread onto them. `options` may be null; its
 * pointers are used during the call only. On success the caller owns *out (lvd_shield_lower).
 * LVD_E_STATE in a fiber or an actor, since the command would be pinned to its core. Errors, all
 * without effect: LVD_E_ARGUMENT: malformed text or negative number; LVD_E_NOT_FOUND: no such
 * command; LVD_E_SYSTEM: the command refuses (no such core, the last core, a core already shielded,
 * no such process, no privileges), see lvd_shield_error_text; LVD_E_PEER_GONE: it ended without a
 * reply; LVD_E_TIMEOUT; LVD_E_MEMORY. */
LVD_API lvd_status lvd_shield_raise(const lvd_shield_options *options, lvd_shield **out);

/* Reports what the shield did, and how many threads arrived since. LVD_E_EOF: it has ended: it was
 * released elsewhere, or its process has ended; LVD_E_PEER_GONE: the command was killed, and its
 * guard process restores within 100 ms; LVD_E_TIMEOUT. *out is then the last known report. */
LVD_API lvd_status lvd_shield_status(lvd_shield *s, lvd_shield_report *out);

/* Ends the shield and returns when the previous state is restored. Frees `s` in every case; null is
 * allowed. LVD_E_SYSTEM: part of the state could not be restored, lvd_shield_error_text names the
 * first; LVD_E_PEER_GONE: the command was killed before, and its guard process restores;
 * LVD_E_TIMEOUT: no reply yet; it ends when it can. */
LVD_API lvd_status lvd_shield_lower(lvd_shield *s);

/* Describes the calling thread's last error in these functions, in the command's words; "" if
 * none. Valid until the thread's next call of them. */
LVD_API const char *lvd_shield_error_text(void);

#ifdef __cplusplus
}
#endif
#endif
