/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that commits the error that it is told to (wrong.h), for tests. */
#include "wrong.h"

#include "job.h"

int job(const lvd_remote_hal *board, link *l) {
  (void)board;
  enum wrong what = (enum wrong) * link_get(l, 1);
  link_got(l, 1);
  switch (what) {
  case WRONG_ILLEGAL:
    __asm__ volatile(".word 0" : : : "memory");
    break;
  case WRONG_LOAD:
    (void)*(volatile uint32_t *)(uintptr_t)WRONG_ADDRESS;
    break;
  case WRONG_STORE: /* into the read-only store, which holds the loader */
    __asm__ volatile("sw zero, 16(zero)" : : : "memory");
    break;
  case WRONG_JUMP:
    ((void (*)(void))(uintptr_t)WRONG_ADDRESS)();
    break;
  case WRONG_ALIGNED:
    __asm__ volatile("lw t0, 2(zero)" : : : "t0", "memory");
    break;
  case WRONG_HANG:
    for (;;) __asm__ volatile("" : : : "memory");
  case WRONG_NOT:
    break;
  }
  return 42;
}
