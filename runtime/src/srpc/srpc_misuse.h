/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Misuse: calls of the paper's names (levada/srpc.h) that cannot have been meant. In the paper these
 * functions return nothing, so each misuse is also told in one line on the error output, and the
 * status that ends the program is not success. */
#ifndef LVD_SRC_MISUSE_H
#define LVD_SRC_MISUSE_H

#include "../ipc/shm_layout.h"
#include "../rpc/unit.h"

enum { LVD_MISUSE_LINES = 32 /* that are told; what follows is left out */ };

/* Of one program. A lock of its own, under which no other is taken. */
typedef struct lvd_misuses {
  lvd_a32 off; /* pb_set_diagnostics: the program looks at the statuses itself */
  lvd_os_mutex lock;
  uint32_t lines;
  uint64_t line[LVD_MISUSE_LINES]; /* hashes of those that were told: each is told once */
  lvd_status first;                /* LVD_OK: there was none */
  char text[LVD_RECORD_INLINE];    /* the first */
} lvd_misuses;

/* Tells it in one line, and has pb_status return `status`. Returns `status`. */
lvd_status lvd_misuse(lvd_status status, const char *format, ...) LVD_PRINTF(2, 3);
/* A line that may yet turn out to be no misuse: it does not count for the program's status. */
void lvd_misuse_hint(struct lvd_program_state *p, char text[LVD_RECORD_INLINE]);
/* Has a misuse been told? What follows from it need not be. */
bool lvd_misused(void);
/* " in NAME" of the procedure that calls; of a thread that is none, nothing. At most LVD_MISUSE_IN bytes. */
enum { LVD_MISUSE_IN = 40 };
const char *lvd_misuse_in(char in[LVD_MISUSE_IN]);
/* LVD_OK, or the status of the first misuse; forgets all. `text` (may be null) gets the first line. */
lvd_status lvd_misuses_take(struct lvd_program_state *p, char text[LVD_RECORD_INLINE]);
/* Told by the process or the processor of `unit`, which is loaded. */
void lvd_misuse_told(lvd_unit *unit, const lvd_record *r);

#endif
