/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The bridge between the two processors: address map and registers, for the software of both sides. */
#ifndef LVD_BACKDOOR_BRIDGE_H
#define LVD_BACKDOOR_BRIDGE_H

#include <levada/window.h>

enum {
  BRIDGE_RAM =
      0x10000000, /* private memory; on the far side 8 KiB for the loader, then the program */
  BRIDGE_PROGRAM = 0x10002000,
  BRIDGE_RAM_END =
      0x1001c000, /* end of the program's memory; the stack of loader and program follows */
  BRIDGE_WINDOW = 0x20000000,
  BRIDGE_WINDOW_SIZE = 0x10000,
  BRIDGE_REGISTERS = 0x30000000
};

enum bridge_register {
  BRIDGE_BELL = 0x00,   /* write: rings the other side */
  BRIDGE_RUNG = 0x04,   /* read: 1 if this side has been rung; write: clears it */
  BRIDGE_AWAIT = 0x08,  /* read: like BRIDGE_RUNG, but stalls until rung, at most 1023 cycles */
  BRIDGE_CYCLES = 0x0c, /* read: cycles since reset of the whole machine, lower 32 bits */
  BRIDGE_CYCLES_HIGH = 0x10, /* read: upper 32 bits */
  /* Only on the near side. */
  BRIDGE_RUN = 0x14,     /* 0: holds the far processor in reset; 1: lets it run */
  BRIDGE_TROUBLE = 0x18, /* read: enum bridge_trouble; a reset of the far processor clears it */
  BRIDGE_PC =
      0x1c, /* read: address of the last fetch before the trouble: the instruction or the next */
  BRIDGE_VALUE = 0x20,  /* read: the address of the access, for BRIDGE_WILD */
  BRIDGE_PRINT = 0x28,  /* write: prints a character (simulation only) */
  BRIDGE_FINISH = 0x2c, /* write: ends the simulation with this status */
  /* Only on the far side. */
  BRIDGE_WATCH = 0x24 /* write: limit in cycles without BRIDGE_AWAIT, then BRIDGE_HUNG; 0: none */
};

/* Trap: illegal instruction or unaligned access; wild: access to an unmapped address, or write to the store. */
enum bridge_trouble { BRIDGE_NONE, BRIDGE_TRAP, BRIDGE_WILD, BRIDGE_HUNG };

#define BRIDGE_CYCLES_A_MS 100000u /* for an assumed clock of 100 MHz */

static inline uint32_t bridge_read(enum bridge_register r) {
  return *(volatile uint32_t *)(uintptr_t)(BRIDGE_REGISTERS + r);
}
static inline void bridge_write(enum bridge_register r, uint32_t value) {
  *(volatile uint32_t *)(uintptr_t)(BRIDGE_REGISTERS + r) = value;
}

/* The processors have no atomic instructions, and the protocols of window and channels need none: each
 * word has one writer. The processors complete one access before the next, and the window is not cached,
 * so accesses are visible in program order and a fence is a no-operation. Only the compiler must not
 * reorder them, which the functions of levada/atomic.h ensure. */

/* Waits until this side is rung, at most 1023 cycles. */
static inline void bridge_sleep(void) {
  (void)bridge_read(BRIDGE_AWAIT);
  bridge_write(BRIDGE_RUNG, 0);
  lvd_fence_seq_cst();
}

#endif
