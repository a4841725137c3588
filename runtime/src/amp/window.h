/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Window: the host's side of it, and the seam to what is at the other side. A window's segment is a
 * link's like any other; what is here is the way to there (a board that is started, an image that its
 * loader takes) and back (what the loader says when the program has failed, hangs, or has ended). */
#ifndef LVD_SRC_WINDOW_H
#define LVD_SRC_WINDOW_H

#include <levada/window.h>

#include "../ipc/link.h"

/* A back-end. */
typedef struct lvd_board {
  const char *prefix; /* of a unit's name: "qemu:", and behind it the image's file */
  uint32_t machine;   /* whose ELF files it takes; 0: any's */
  uint32_t bits;      /* of these, 64 or 32; 0: both */
  const char *takes;  /* the same, in words */
  size_t own;         /* bytes of the memory before the window, which are the board's own */
  /* Which programs it is made of, in words; null: it is the user's own. */
  void (*describe)(char *text, size_t size);
  /* Starts it with `size` bytes of memory, and one end of a wire. */
  lvd_status (*start)(int memory, size_t size, int bell, lvd_os_process *peer);
  /* Instead of it: opens a device that has the memory, and whose name stands before the image's with a
   * colon between (board_device.c). */
  lvd_os_device *(*open)(const char *name, char *text, size_t size, int64_t limit_ns,
                         lvd_status *status);
} lvd_board;

extern const lvd_board lvd_board_qemu, lvd_board_qemu32, lvd_board_native, lvd_board_uio,
    lvd_board_remoteproc;

/* Opens the device; or the one that stands before a file, and sets *file to what follows it. */
lvd_status lvd_board_open(const lvd_board *board, const char *device, int64_t limit_ns,
                          lvd_os_device **out);
lvd_status lvd_board_open_before(const lvd_board *board, const char **file, int64_t limit_ns,
                                 lvd_os_device **out);
lvd_status lvd_board_keep(lvd_os_device *device, int bell, lvd_os_process *peer);
const char *lvd_board_keeper(void);
lvd_status lvd_board_no_keeper(const char *keeper); /* says so */
/* The file that the variable names, that is installed, or that was built with this library. */
const char *lvd_board_file(const char *variable, const char *installed, const char *built);
bool lvd_board_has(const char *file); /* it is there */

/* The back-end that a unit's name begins with; *image is the rest. Null: it is a program's. */
const lvd_board *lvd_board_of(const char *name, const char **image);

/* An image, flat, as it goes into a window. */
typedef struct lvd_image {
  unsigned char *bytes;
  size_t size;
  uint64_t address, entry; /* with no ELF header: 0, wherever images begin */
} lvd_image;

/* LVD_E_UNKNOWN, LVD_E_ARGUMENT, LVD_E_LAYOUT, LVD_E_MEMORY, and why (lvd_window_refuse). */
lvd_status lvd_image_read(const char *file, const lvd_board *board, lvd_image *out);
lvd_status lvd_image_parse(const unsigned char *file, size_t size, const lvd_board *board,
                           lvd_image *out);
void lvd_image_free(lvd_image *image);

typedef struct lvd_far_side {
  lvd_window *window; /* header and image, mapped */
  size_t mapped;
  const lvd_board *board;
  lvd_os_device *device; /* that has the memory; or null */
  lvd_window_shape shape;
  bool over; /* the loader has said so, and what came before it has been taken */
  uint64_t asked_ns, heard_ns;
} lvd_far_side;

/* How many bytes lie before the segment, for an image of that size. */
size_t lvd_far_base(const lvd_board *board, size_t image);
/* The same of a device, where it depends on the memory alone: its loader may be there from before. 0: the
 * memory is too small, and the calling thread's lvd_window_why says so. */
size_t lvd_far_base_of(const lvd_os_device *device, const lvd_link *link, size_t image);
/* Makes the window in the link's memory, starts the board, and has its loader run the image. */
lvd_status lvd_far_start(lvd_far_side *far, lvd_link *link, const lvd_board *board,
                         const lvd_image *image, int child_bell, int64_t limit_ns);
/* The first half of that, for images that come later ... */
lvd_status lvd_far_boot(lvd_far_side *far, lvd_link *link, const lvd_board *board, int child_bell,
                        int64_t limit_ns);
/* ... each of them: is there room for it where it is to lie? LVD_E_ARGUMENT. ... */
lvd_status lvd_far_fits(const lvd_far_side *far, const lvd_image *image);
/* ... has it run, while none does; and ends the one that runs. LVD_E_TIME, LVD_E_PEER. */
lvd_status lvd_far_run(lvd_far_side *far, lvd_link *link, const lvd_image *image, int64_t limit_ns);
lvd_status lvd_far_stop(lvd_far_side *far, lvd_link *link, int64_t limit_ns);
/* Looks for a short while, as who waits for what comes soon. */
bool lvd_far_look_around(const lvd_window *w, bool (*done)(const lvd_window *));
/* What the loader has said: LVD_OK: it runs; LVD_E_FAULT, LVD_E_PEER: and `text` says why. */
lvd_status lvd_far_outcome(const lvd_far_side *far, char *text, size_t size);
/* By the notifier: does it answer? LVD_E_PEER: not in time. */
lvd_status lvd_far_ask(lvd_far_side *far, lvd_link *link, char *text, size_t size);
void lvd_far_end(lvd_far_side *far);

/* The calling thread's lvd_window_why says so; returns the status. */
lvd_status lvd_window_refuse(lvd_status status, const char *format, ...) LVD_PRINTF(2, 3);

#endif
