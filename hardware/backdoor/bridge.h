/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The bridge as both processors see it: addresses, and registers. */
#ifndef LVD_BACKDOOR_BRIDGE_H
#define LVD_BACKDOOR_BRIDGE_H

#include <levada/window.h>

enum {
  BRIDGE_RAM = 0x10000000, /* private; the far side's: 8 KiB for the loader, then programs */
  BRIDGE_PROGRAM = 0x10002000,
  BRIDGE_RAM_END = 0x1001c000, /* above it: the loader's stack, on which programs run */
  BRIDGE_WINDOW = 0x20000000,
  BRIDGE_WINDOW_SIZE = 0x10000,
  BRIDGE_REGISTERS = 0x30000000
};

enum bridge_register {
  BRIDGE_BELL = 0x00,        /* write: rings the other side */
  BRIDGE_RUNG = 0x04,        /* read: is it rung here? write: no more */
  BRIDGE_AWAIT = 0x08,       /* read: the same, but not before it is rung or 1023 cycles are over */
  BRIDGE_CYCLES = 0x0c,      /* read: cycles since the reset of all; the far side's clock, too */
  BRIDGE_CYCLES_HIGH = 0x10, /* ... above 32 bits */
  /* The near side alone. */
  BRIDGE_RUN = 0x14,     /* 0: the far processor is held in reset; 1: it runs */
  BRIDGE_TROUBLE = 0x18, /* read: enum bridge_trouble; a reset of the far processor clears it */
  BRIDGE_PC = 0x1c,      /* read: in trouble, what was fetched last: the instruction or the next */
  BRIDGE_VALUE = 0x20,   /* read: the address, for BRIDGE_WILD */
  BRIDGE_PRINT = 0x28,   /* write: a letter (of the simulation) */
  BRIDGE_FINISH = 0x2c,  /* write: ends the simulation with this status */
  /* The far side alone. */
  BRIDGE_WATCH = 0x24 /* write: cycles without BRIDGE_AWAIT after which it hangs; 0: none */
};

enum bridge_trouble { BRIDGE_NONE, BRIDGE_TRAP, BRIDGE_WILD, BRIDGE_HUNG };

#define BRIDGE_CYCLES_A_MS 100000u /* of the clock that is said to be 100 MHz */

static inline uint32_t bridge_read(enum bridge_register r) {
  return *(volatile uint32_t *)(uintptr_t)(BRIDGE_REGISTERS + r);
}
static inline void bridge_write(enum bridge_register r, uint32_t value) {
  *(volatile uint32_t *)(uintptr_t)(BRIDGE_REGISTERS + r) = value;
}

/* The processors have no atomic instructions, and the protocols of window and channels ask for none:
 * each word has one writer. They finish one access before they begin the next, and the window has no
 * cache: so loads and stores are seen in the order of the program, a fence has nothing left to do
 * (the processor takes it for an instruction that does nothing), and it is the compiler alone that
 * must be kept from reordering, which the functions of levada/atomic.h do. */

/* Waits to be rung, or not for long. */
static inline void bridge_sleep(void) {
  (void)bridge_read(BRIDGE_AWAIT);
  bridge_write(BRIDGE_RUNG, 0);
  lvd_fence_seq_cst();
}

#endif
