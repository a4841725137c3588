/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The resident loader on the far processor. The bridge detects the errors of a program and reports them to
 * the near side, which resets the processor, so that the loader starts again. */
#include "../../../runtime/remote/loader.h"

#include "../bridge.h"

LVD_NORETURN void loader_begin(void);

static lvd_loader loader;

static void ring(void) { bridge_write(BRIDGE_BELL, 1); }

/* May return early, since the bridge limits the length of a sleep; the caller checks the time. */
static void sleep_until(uint64_t until_ns) {
  (void)until_ns;
  bridge_sleep();
}

static uint64_t now_ns(void) {
  uint32_t high, low;
  do {
    high = bridge_read(BRIDGE_CYCLES_HIGH);
    low = bridge_read(BRIDGE_CYCLES);
  } while (high != bridge_read(BRIDGE_CYCLES_HIGH));
  return ((uint64_t)high << 32 | low) * (1000000u / BRIDGE_CYCLES_A_MS);
}

static void watch(const char *procedure) {
  bridge_write(BRIDGE_WATCH, procedure ? loader.shape.watch_ms * BRIDGE_CYCLES_A_MS : 0);
}

static const lvd_remote_hal board = {.version = LVD_REMOTE_VERSION,
                                     .window = (lvd_window *)(uintptr_t)BRIDGE_WINDOW,
                                     .size = BRIDGE_WINDOW_SIZE,
                                     .ring = ring,
                                     .sleep = sleep_until,
                                     .now_ns = now_ns,
                                     .watch = watch};

void loader_begin(void) {
  loader.board = &board;
  loader.low = BRIDGE_PROGRAM;
  loader.high = BRIDGE_RAM_END;
  lvd_loader_serve(&loader); /* there is no instruction cache to invalidate */
}
