/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Messages of a host and the firmware of a processor that Linux starts, sent by rpmsg: the address
 * of the window, and rings. Everything else is in the window (levada/window.h). Each message is
 * one lvd_rpmsg, in the byte order of both.
 *
 * The firmware accesses no shared memory before it gets LVD_RPMSG_WINDOW. Then it runs the loader
 * there (remote/loader.h): its `ring` sends LVD_RPMSG_RING to the sender of that message, and each
 * message wakes it. It gets LVD_RPMSG_WINDOW again when another host has started; the window is
 * then the same.
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
  LVD_RPMSG_WINDOW = 1, /* from the host: the window is at `address` and has `size` bytes */
  LVD_RPMSG_RING,       /* from both: doorbell */
  LVD_RPMSG_REFUSED     /* from the firmware: that window is unusable; `text` says why */
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
