/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Misuse: calls of the paper's API (levada/srpc.h) that can only be mistakes. In the paper these
 * functions return nothing, so each misuse is also reported in one line on the error output, and
 * the program's exit status is a failure. */
#ifndef LVD_SRPC_SRPC_MISUSE_H
#define LVD_SRPC_SRPC_MISUSE_H

#include "../ipc/shm_layout.h"
#include "../rpc/unit.h"

enum { LVD_MISUSE_LINES_MAX = 32 /* lines reported; further ones are dropped */ };

/* State of one program. Its lock is a leaf: no other lock is taken under it. */
typedef struct lvd_misuses {
  lvd_a32 off; /* pb_set_diagnostics: the program checks the statuses itself */
  lvd_os_mutex lock;
  uint32_t lines;
  uint64_t line[LVD_MISUSE_LINES_MAX]; /* hashes of the reported lines: each is reported once */
  lvd_status first;                    /* LVD_OK: none */
  char text[LVD_RECORD_INLINE_BYTES];  /* the first line */
} lvd_misuses;

/* Reports it in one line, and has pb_status return `status`. Returns `status`. */
lvd_status lvd_misuse(lvd_status status, const char *format, ...) LVD_PRINTF(2, 3);
/* Reports a line that may turn out to be no misuse: the program's exit status is not changed. */
void lvd_misuse_hint(struct lvd_program_state *p, char text[LVD_RECORD_INLINE_BYTES]);
/* A misuse has been reported, so its consequences need not be. */
bool lvd_misused(void);
/* " in NAME" of the calling procedure; empty for a thread that is none. At most LVD_MISUSE_IN_BYTES
 * bytes. */
enum { LVD_MISUSE_IN_BYTES = 40 };
const char *lvd_misuse_in(char in[LVD_MISUSE_IN_BYTES]);
/* Returns LVD_OK or the status of the first misuse, and forgets all. `text` (may be null) gets the
 * first line. */
lvd_status lvd_misuses_take(struct lvd_program_state *p, char text[LVD_RECORD_INLINE_BYTES]);
/* A line from the loaded process or processor of `unit`. */
void lvd_misuse_told(lvd_unit *unit, const lvd_record *r);

#endif
