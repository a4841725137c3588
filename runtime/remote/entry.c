/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where a program behind a window begins: zeros where the image has none, what is to be done before
 * main (procedures that register themselves), then the loop that serves the host. */
#include <string.h>

#include "remote.h"

extern unsigned char lvd_bss[], lvd_bss_end[];
extern void (*lvd_init_begin[])(void), (*lvd_init_end[])(void);

/* One more stack than the tasks': the loop runs on the loader's. */
__attribute__((section(".text.start"))) int lvd_program_start(const lvd_far_board *board) {
  memset(lvd_bss, 0, (size_t)(lvd_bss_end - lvd_bss));
  for (void (**f)(void) = lvd_init_begin; f != lvd_init_end; f++) (*f)();
  return (int)lvd_far_serve(board);
}
