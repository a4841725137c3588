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

#include "../sched/sched.h"

struct lvd_link;
struct lvd_record;

/* A stream that the two have a name for, and that this side has not opened yet: who will. */
typedef struct lvd_expected {
  char name[32];
  lvd_user party[2];
  uint32_t parties;
  struct lvd_expected *next;
} lvd_expected;

/* A link's part of it. With its application's gate, but for `look`, and for `expected`, which has
 * the link's lock. */
typedef struct lvd_knot {
  lvd_a32 look; /* what its bellman is to do: LVD_KNOT_ASK, LVD_KNOT_SAY */
  uint32_t asked,
      answered;          /* questions, by number; the last that was answered: 0: none that counts */
  uint64_t asked_for;    /* who waited in vain here when it was asked */
  bool concerned;        /* somebody here waits for the other side */
  struct lvd_line *line; /* what the other side has said of itself (deadlock_report.h) */
  uint32_t lines, lines_room;
  bool heeded; /* the child: it has told its own of the parent's knot; the bellman's */
  lvd_expected *expected;
} lvd_knot;

enum { LVD_KNOT_ASK = 1, LVD_KNOT_SAY = 2 };

/* The bellman's. */
void lvd_knot_look(struct lvd_link *link);
bool lvd_knot_take(struct lvd_link *link,
                   const struct lvd_record *record); /* false: not about it */
void lvd_knot_free(struct lvd_link *link);

/* The parent has said that its application ends in a knot, and those who wait for it here are to be
 * told before they see what ends by that. */
bool lvd_knot_comes_first(const struct lvd_link *link);

/* These will open the stream of that name; 0: nobody, or it has been opened. */
void lvd_knot_expect(struct lvd_link *link, const char *name, const lvd_user party[2],
                     uint32_t parties);

#endif
