/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The loader on a processor with a non-coherent cache: it sees what the host writes, and the host
 * sees what it reports when it is signalled. One thread acts for both: the host acts where the
 * loader sleeps. */
#include "sides.h"

#include <setjmp.h>

#include "../../../remote/loader.h"

enum { IMAGE = 4096, SEGMENT = 64 << 10, ANSWER = 7, PATIENCE = 100 };

static lvd_window *here; /* as the host sees it */
static lvd_loader loader;
static unsigned char *own; /* memory for programs */
static jmp_buf over;
static int step, slept, rings;

static unsigned char *segment(unsigned char *seen) { return seen + SEGMENT; }

/* mov $value, (the remote segment); mov $ANSWER, eax; ret */
static void put_image(uint32_t value) {
  uint64_t at = (uint64_t)(uintptr_t)segment(far_sees);
  uint32_t answer = ANSWER;
  unsigned char code[] = {0x48, 0xb8, 0, 0, 0, 0,    0, 0, 0, 0, 0xc7,
                          0x00, 0,    0, 0, 0, 0xb8, 0, 0, 0, 0, 0xc3};
  memcpy(code + 2, &at, 8);
  memcpy(code + 12, &value, 4);
  memcpy(code + 17, &answer, 4);
  memcpy(host_sees + IMAGE, code, sizeof code);
  here->verb = LVD_WINDOW_RUN;
  here->length = sizeof code;
  here->sum = lvd_window_sum(code, sizeof code);
  here->address = here->entry = (uint64_t)(uintptr_t)own;
}

static void command(void) {
  lvd_store_relaxed_u32(&here->command, lvd_load_relaxed_u32(&here->command) + 1);
}
static uint32_t state(void) { return lvd_load_relaxed_u32(&here->state); }
static bool answered(void) {
  return lvd_load_relaxed_u32(&here->answered) == lvd_load_relaxed_u32(&here->command);
}

/* No dirty line of a program is left that could be written over the host's data. */
static bool nothing_is_left(void) {
  return memcmp(segment(far_sees), segment(host_sees), 4096) == 0;
}

static void ring(void) {
  rings++;
  if (loader.running && step > 1) CHECK(answered() && state() == LVD_REMOTE_RUNNING);
}
static void watch(const char *procedure) { (void)procedure; }

/* Each step follows when the result of the previous one is visible in memory. */
static void act(uint64_t until_ns) {
  static const lvd_window_shape shape = {.size = SIDES_SIZE,
                                         .image = IMAGE,
                                         .image_size = SEGMENT - IMAGE,
                                         .segment = SEGMENT,
                                         .segment_size = SIDES_SIZE - SEGMENT};
  (void)until_ns;
  CHECK(slept++ < PATIENCE);
  switch (step) {
  case 0:
    lvd_window_make(here, &shape);
    step++;
    break;
  case 1:
    CHECK(state() == LVD_REMOTE_READY && here->low == (uint64_t)(uintptr_t)own && rings == 1);
    put_image(0x77777777);
    command();
    step++;
    break;
  case 2: /* it has run */
  case 3: /* and another one, at the same address */
    CHECK(answered() && state() == LVD_REMOTE_EXITED && here->status == ANSWER &&
          nothing_is_left());
    if (step++ == 2)
      put_image(0x66666666);
    else
      here->verb = LVD_WINDOW_STOP;
    command();
    break;
  default:
    CHECK(answered() && state() == LVD_REMOTE_STOPPED);
    longjmp(over, 1);
  }
}

static const lvd_remote_hal board = {.version = LVD_REMOTE_VERSION,
                                     .size = SIDES_SIZE,
                                     .ring = ring,
                                     .sleep = act,
                                     .watch = watch,
                                     .caches = &lvd_native_caches};

/* A running program is asked for liveness: the reply, and what it has done by then, are visible at
 * once. */
static void is_rung_for(void) {
  int before = rings;
  lvd_store_relaxed_u32(&here->asked, 1);
  CHECK(!lvd_loader_rung(&loader));
  CHECK(lvd_load_relaxed_u32(&here->alive) == 1 && rings == before + 1);
  loader.running = true;
  memset(segment(far_sees), 0x55, 256);
  here->verb = LVD_WINDOW_STOP;
  command();
  CHECK(lvd_loader_rung(&loader) && !answered());
  const lvd_remote_trap trap = {1, 2, 3, "procedure"};
  lvd_loader_give_up(&loader, LVD_REMOTE_STOPPED, &trap);
  CHECK(answered() && state() == LVD_REMOTE_STOPPED && here->pc == 2 && nothing_is_left());
  CHECK(strcmp(here->procedure, "procedure") == 0);
}

int main(void) {
  sides_begin();
  here = (lvd_window *)(void *)host_sees;
  own = zeros(PROT_EXEC);
  static lvd_remote_hal with;
  with = board;
  with.window = (lvd_window *)(void *)far_sees;
  loader.board = &with;
  loader.low = (uint64_t)(uintptr_t)own;
  loader.high = loader.low + SIDES_SIZE;
  if (!setjmp(over)) lvd_loader_serve(&loader);
  is_rung_for();
  return 0;
}
