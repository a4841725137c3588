/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Knot: fibers and threads that wait in vain, since all who could let them go on wait in vain
 * themselves; in one application, or together with those of the processes that it has loaded.
 *
 * Across a link the parent asks: "these of your calls and of the ends of streams that are mine wait
 * in vain, if all of yours do". The child answers with those of its own that do, if that is so. If
 * that leaves fewer of the parent's, it asks again; if not, and nothing of the parent's that counts
 * has moved since the question, then there was a moment, that of the answer, when all of them waited
 * at once, and for each other alone. Then the parent's application ends, and its children are told
 * so by a word in the shared memory (`knotted`), before any of their streams ends by it. */
#ifndef LVD_SRC_KNOT_H
#define LVD_SRC_KNOT_H

#include "../ipc/link.h"

/* The notifier's. */
void lvd_deadlock_probe_run(struct lvd_link *link);
bool lvd_deadlock_take_record(struct lvd_link *link,
                              const struct lvd_record *record); /* false: not about it */
void lvd_deadlock_probe_free(struct lvd_link *link);

/* The parent has said that its application ends in a knot, and those who wait for it here are to be
 * told before they see what ends by that. */
bool lvd_deadlock_is_parents(const struct lvd_link *link);

/* These will open the stream of that name; 0: nobody, or it has been opened. */
void lvd_deadlock_expect_users(struct lvd_link *link, const char *name, const lvd_user party[2],
                               uint32_t parties);

#endif
