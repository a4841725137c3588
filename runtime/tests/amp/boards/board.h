/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A board that is not there: folders for /sys and /dev, and a process that does what the kernel and the
 * chip do. The processor is the native machine's loader, which stays when hosts come and go. */
#ifndef LVD_TEST_BOARD_H
#define LVD_TEST_BOARD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { BOARD_WINDOW = 8 << 20, BOARD_REGISTER = 0x40, BOARD_VALUE = 5 };

typedef struct board {
  char folder[40], sys[48], dev[48];
  pid_t process;
} board;

/* With folders, the environment that names them, and nothing in them. */
void board_make(board *b);
/* A UIO device uio0: map 0 is the window, map 1 has a register that rings the processor. */
void board_uio(board *b, size_t window);
/* /dev/mem with the window at its beginning and the register behind it; nothing rings the host. */
void board_mem(board *b);
/* A processor remoteproc0 in `state`, its window in /dev/mem (board_mem). `control`: endpoints are made at
 * rpmsg_ctrl0, to 0x400; else there is one, rpmsg2. The processor begins when Linux starts it. Firmware
 * with the name "refuses.elf" refuses each window, and one named "nothing.elf" is not there. */
void board_remote(board *b, const char *state, bool control);
void board_remote_start(board *b, bool control);
/* Reads a file below its folder until it has that text. */
void board_await(const board *b, const char *file, const char *text);
/* Its processor begins. `bell`: it sleeps until the register is written; else it looks often. */
void board_start(board *b, bool bell);
void board_free(board *b);
void board_write(const board *b, const char *file, const char *text); /* below its folder */

#endif
