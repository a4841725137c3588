/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Deadlock detection: fibers and program threads of an application of which each can only be
 * resumed by another one of them; in one process, or across the processes that the application has
 * loaded.
 *
 * Across a link the parent sends a probe: those of its calls and stream ends that are blocked if
 * the child is. The child replies with those of its own that are then blocked. The parent repeats
 * with the smaller set until it stops shrinking. If no listed wait has changed since the last
 * probe, all of them were blocked at the time of the reply: the application is deadlocked. The
 * parent then ends it with LVD_E_DEADLOCK, and sets `deadlocked` in the shared segment before it
 * closes any stream. */
#ifndef LVD_DEADLOCK_DEADLOCK_DETECT_H
#define LVD_DEADLOCK_DEADLOCK_DETECT_H

#include "../ipc/link.h"

/* Called by the link's notifier thread. */
void lvd_deadlock_probe_run(struct lvd_link *link);
/* Returns false if the record has another subject. */
bool lvd_deadlock_take_record(struct lvd_link *link, const struct lvd_record *record);
void lvd_deadlock_probe_free(struct lvd_link *link);

/* The parent has set `deadlocked`, and this process has not applied it yet. Its waiters on that
 * parent must be cancelled before they see the streams closed. */
bool lvd_deadlock_is_parents(const struct lvd_link *link);

/* Announces that these users will open the stream `name`; parties = 0: the stream has been opened,
 * or its users are unknown. */
void lvd_deadlock_expect_users(struct lvd_link *link, const char *name, const lvd_user party[2],
                               uint32_t parties);

#endif
