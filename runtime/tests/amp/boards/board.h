/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A simulated board: folders in place of /sys and /dev, and a process that acts as kernel and
 * hardware. The processor is the native machine's loader, which remains when hosts start and
 * exit. */
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

/* Creates the folders and the environment that names them. */
void board_make(board *b);
/* A UIO device uio0: map 0 is the window, map 1 has a doorbell register. */
void board_uio(board *b, size_t window);
/* /dev/mem with the window at its start and the doorbell register behind it; the host gets no
 * interrupt. */
void board_mem(board *b);
/* A processor remoteproc0 in `state`, its window in /dev/mem (board_mem). `control`: endpoints are
 * created at rpmsg_ctrl0, to 0x400; else there is one, rpmsg2. The processor runs when Linux starts
 * it. Firmware named "refuses.elf" refuses each window; "nothing.elf" does not exist. */
void board_remote(board *b, const char *state, bool control);
void board_remote_start(board *b, bool control);
/* Reads a file below its folder until it has that text. */
void board_await(const board *b, const char *file, const char *text);
/* Starts its processor. `bell`: it sleeps until the register is written; else it polls. */
void board_start(board *b, bool bell);
void board_free(board *b);
void board_write(const board *b, const char *file, const char *text); /* path below its folder */

#endif
