/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by the kinds of simulated boards. */
#ifndef LVD_TEST_BOARD_INSIDE_H
#define LVD_TEST_BOARD_INSIDE_H

#include "board.h"

void board_path(const board *b, const char *file, char path[100]);
bool board_fork(board *b); /* true: in the board's process */
int board_listen(const board *b, const char *file);
int board_memory(const board *b, const char *file);
pid_t board_loader(int memory, int wire);
bool board_drain(int fd); /* true: something was received */
void board_ring(int wire);

#endif
