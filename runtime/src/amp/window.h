/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Window: the host's side, and the interface of boards. A window's segment is a link's like any
 * other; here is how a board is started and its loader runs an image, and how the loader reports
 * that the program has failed, hangs, or has ended. */
#ifndef LVD_AMP_WINDOW_H
#define LVD_AMP_WINDOW_H

#include <levada/window.h>

#include "../ipc/link.h"

/* A kind of board. */
typedef struct lvd_board {
  const char *prefix; /* of a unit's name: "qemu:", followed by the image's file */
  uint32_t machine;   /* e_machine of the ELF files that it takes; 0: any */
  uint32_t bits;      /* their word size, 64 or 32; 0: both */
  const char *takes;  /* the same, as text */
  size_t own;         /* bytes of memory before the window that belong to the board */
  /* The programs that it consists of, as text; null: the user's own. */
  void (*describe)(char *text, size_t size);
  /* Starts it with `size` bytes of memory and one end of a wire. */
  lvd_status (*start)(int memory, size_t size, int bell, lvd_os_process *peer);
  /* Instead of `start`: opens a device that has the memory. Its name precedes the image's,
   * separated by a colon (board_device.c). */
  lvd_os_device *(*open)(const char *name, char *text, size_t size, int64_t timeout_ns,
                         lvd_status *status);
} lvd_board;

extern const lvd_board lvd_board_qemu, lvd_board_qemu32, lvd_board_native, lvd_board_uio,
    lvd_board_remoteproc;

/* Opens the device `device`; or the one named before the colon in *file, and advances *file. */
lvd_status lvd_board_open(const lvd_board *board, const char *device, int64_t timeout_ns,
                          lvd_os_device **out);
lvd_status lvd_board_open_before(const lvd_board *board, const char **file, int64_t timeout_ns,
                                 lvd_os_device **out);
lvd_status lvd_board_start_agent(lvd_os_device *device, int bell, lvd_os_process *peer);
const char *lvd_board_agent(void);
lvd_status lvd_board_no_agent(const char *agent); /* sets the error text: it is missing */
/* The file that the environment variable names, else the installed one, else the one built with the
 * library. */
const char *lvd_board_file(const char *variable, const char *installed, const char *built);
bool lvd_board_has(const char *file); /* it can be read */

/* The board that a unit's name begins with; *image is the rest. Returns null if the name is a
 * program's. */
const lvd_board *lvd_board_of(const char *name, const char **image);

/* A flat image, as it is put into a window. */
typedef struct lvd_image {
  unsigned char *bytes;
  size_t size;
  uint64_t address, entry; /* without ELF header 0: the start of the board's memory for programs */
} lvd_image;

/* LVD_E_NOT_FOUND, LVD_E_ARGUMENT, LVD_E_ABI, LVD_E_MEMORY, with an error text
 * (lvd_window_refuse). */
lvd_status lvd_image_read(const char *file, const lvd_board *board, lvd_image *out);
lvd_status lvd_image_parse(const unsigned char *file, size_t size, const lvd_board *board,
                           lvd_image *out);
void lvd_image_free(lvd_image *image);

typedef struct lvd_remote_side {
  lvd_window *window; /* header and image, mapped */
  size_t mapped;
  const lvd_board *board;
  lvd_os_device *device; /* owner of the memory; or null */
  lvd_window_shape shape;
  bool over; /* the loader has reported the end, and all sent before it has been taken */
  uint64_t asked_ns, heard_ns;
} lvd_remote_side;

/* Bytes before the segment, for an image of that size. */
size_t lvd_remote_base(const lvd_board *board, size_t image);
/* The same for a device, where it depends on the size of the memory alone, since its loader may
 * have been there before. Returns 0 if the memory is too small, with an error text
 * (lvd_window_error_text). */
size_t lvd_remote_base_of(const lvd_os_device *device, const lvd_link *link, size_t image);
/* Makes the window in the link's memory, starts the board, and has its loader run the image. */
lvd_status lvd_remote_start(lvd_remote_side *remote, lvd_link *link, const lvd_board *board,
                            const lvd_image *image, int child_bell, int64_t timeout_ns);
/* Only the first half of that, for images that come later. */
lvd_status lvd_remote_boot(lvd_remote_side *remote, lvd_link *link, const lvd_board *board,
                           int child_bell, int64_t timeout_ns);
/* The image fits where it is to be loaded; else LVD_E_ARGUMENT. */
lvd_status lvd_remote_fits(const lvd_remote_side *remote, const lvd_image *image);
/* Runs an image while none runs; stops the running one. LVD_E_TIMEOUT, LVD_E_PEER_GONE. */
lvd_status lvd_remote_run(lvd_remote_side *remote, lvd_link *link, const lvd_image *image,
                          int64_t timeout_ns);
lvd_status lvd_remote_stop(lvd_remote_side *remote, lvd_link *link, int64_t timeout_ns);
/* Spins for a short time, for an answer that is expected soon. */
bool lvd_remote_look_around(const lvd_window *w, bool (*done)(const lvd_window *));
/* The loader's report. LVD_OK: it runs; LVD_E_FAULT, LVD_E_PEER_GONE: `text` says why. */
lvd_status lvd_remote_outcome(const lvd_remote_side *remote, char *text, size_t size);
/* Called by the notifier: pings the processor. LVD_E_PEER_GONE: it did not answer in time. */
lvd_status lvd_remote_ask(lvd_remote_side *remote, lvd_link *link, char *text, size_t size);
void lvd_remote_end(lvd_remote_side *remote);

/* Sets the calling thread's error text (lvd_window_error_text), and returns the status. */
lvd_status lvd_window_refuse(lvd_status status, const char *format, ...) LVD_PRINTF(2, 3);

#endif
