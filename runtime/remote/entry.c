/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Entry point of a program behind a window: clears its zero-initialized data, runs constructors
 * (which register procedures), and serves the host. */
#include <string.h>

#include "remote.h"

extern unsigned char lvd_bss[], lvd_bss_end[];
extern void (*lvd_init_begin[])(void), (*lvd_init_end[])(void);

/* The scheduling loop runs on the loader's stack. */
__attribute__((section(".text.start"))) int lvd_program_start(const lvd_remote_hal *board) {
  memset(lvd_bss, 0, (size_t)(lvd_bss_end - lvd_bss));
  for (void (**f)(void) = lvd_init_begin; f != lvd_init_end; f++) (*f)();
  return (int)lvd_remote_serve(board);
}
