/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What a host and the firmware of a processor that Linux starts say to each other by rpmsg: where the window
 * is, and rings. All else is in the window (levada/window.h). Each message is one of these, in the byte
 * order of both.
 *
 * The firmware waits for LVD_RPMSG_WINDOW before it looks at any memory, then runs the loader there
 * (remote/loader.h), whose `ring` sends LVD_RPMSG_RING to where that came from, and which wakes at each
 * message. It gets LVD_RPMSG_WINDOW again when another host has come; the window is then the same.
 *
 * Freestanding. C17 and C++17. */
#ifndef LVD_RPMSG_H
#define LVD_RPMSG_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LVD_RPMSG_MAGIC 0x4d52564cu /* "LVRM" */

enum lvd_rpmsg_kind {
  LVD_RPMSG_WINDOW = 1, /* the host: it is at `address`, and has `size` bytes */
  LVD_RPMSG_RING,       /* both */
  LVD_RPMSG_REFUSED     /* the firmware: it cannot use that window; `text` says why */
};

typedef struct lvd_rpmsg {
  uint32_t magic, kind;
  uint64_t address, size;
  char text[96];
} lvd_rpmsg;

#ifdef __cplusplus
static_assert(sizeof(lvd_rpmsg) <= 496, "a message of rpmsg");
}
#else
_Static_assert(sizeof(lvd_rpmsg) <= 496, "a message of rpmsg");
#endif
#endif
