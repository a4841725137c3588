/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "near.h"

enum { IMAGE = LVD_WINDOW_UNIT, IMAGE_SIZE = 3 * LVD_WINDOW_UNIT, SEGMENT = IMAGE + IMAGE_SIZE };
enum { BOOT_CYCLES_MAX = 50000 }; /* the loader does little more than check the header */

void *memset(void *to, int c, size_t n);

lvd_window *const near_window = (lvd_window *)(uintptr_t)BRIDGE_WINDOW;

image near_image(const uint32_t *begin, const uint32_t *end) {
  uint32_t length = (uint32_t)((uintptr_t)end - (uintptr_t)begin);
  return (image){begin, length, lvd_window_sum(begin, length)};
}

static unsigned char *segment(void) { return (unsigned char *)near_window + SEGMENT; }

/* After trouble no program runs that could report it in the window; the bridge does. */
static bool in_trouble(void) { return bridge_read(BRIDGE_TROUBLE) != BRIDGE_NONE; }

/* Until the loader has answered the command, the state is that of the last program. */
static bool over(void) {
  if (in_trouble()) return true;
  uint32_t command = lvd_load_relaxed_u32(&near_window->command);
  return lvd_load_acquire_u32(&near_window->answered) == command &&
         lvd_load_acquire_u32(&near_window->state) != LVD_REMOTE_RUNNING;
}

bool near_boot(uint32_t watch_ms, bool spoil) {
  bridge_write(BRIDGE_RUN, 0);
  bridge_write(BRIDGE_RUNG, 0);
  memset(near_window, 0, sizeof *near_window);
  lvd_window_shape shape = {.size = BRIDGE_WINDOW_SIZE,
                            .image = IMAGE,
                            .image_size = IMAGE_SIZE,
                            .segment = SEGMENT,
                            .segment_size = BRIDGE_WINDOW_SIZE - SEGMENT,
                            .watch_ms = watch_ms};
  lvd_window_make(near_window, &shape);
  if (spoil) near_window->watch_ms++;
  lvd_fence_seq_cst();
  bridge_write(BRIDGE_RUN, 1);
  uint32_t since = bridge_read(BRIDGE_CYCLES);
  while (lvd_load_acquire_u32(&near_window->state) != LVD_REMOTE_READY) {
    if (bridge_read(BRIDGE_CYCLES) - since > BOOT_CYCLES_MAX) return false;
    bridge_sleep();
  }
  return true;
}

void near_put(const image *i) {
  uint32_t *to = (uint32_t *)(void *)((unsigned char *)near_window + IMAGE);
  copy_words(to, i->words, i->length / 4);
}

static uint32_t command(enum lvd_window_verb verb) {
  uint32_t number = lvd_load_relaxed_u32(&near_window->command) + 1;
  near_window->verb = verb;
  lvd_store_release_u32(&near_window->command, number);
  lvd_fence_seq_cst();
  bridge_write(BRIDGE_BELL, 1);
  return number;
}

static void await_answer(uint32_t number) {
  while (lvd_load_acquire_u32(&near_window->answered) != number && !in_trouble()) bridge_sleep();
}

/* Returns before the loader has checked the image, so that the caller can put data meanwhile. */
lvd_status near_start(link *l, uint32_t length, uint32_t sum, uint32_t address) {
  link_lay(segment());
  lvd_status status = link_attach(l, segment(), true);
  if (status != LVD_OK) return status;
  l->over = over;
  near_window->length = length;
  near_window->sum = sum;
  near_window->address = near_window->entry = address;
  command(LVD_WINDOW_RUN);
  return LVD_OK;
}

lvd_status near_run(link *l, const image *i) {
  near_put(i);
  return near_start(l, i->length, i->sum, BRIDGE_PROGRAM);
}

static outcome said(void) {
  enum bridge_trouble trouble = (enum bridge_trouble)bridge_read(BRIDGE_TROUBLE);
  if (trouble == BRIDGE_NONE)
    return (outcome){(enum lvd_remote_state)lvd_load_acquire_u32(&near_window->state),
                     near_window->status, trouble, 0, 0};
  return (outcome){trouble == BRIDGE_HUNG ? LVD_REMOTE_HUNG : LVD_REMOTE_FAILED, LVD_E_FAULT,
                   trouble, bridge_read(BRIDGE_PC), bridge_read(BRIDGE_VALUE)};
}

outcome near_wait(void) {
  await_answer(lvd_load_relaxed_u32(&near_window->command));
  while (!in_trouble() && lvd_load_acquire_u32(&near_window->state) == LVD_REMOTE_RUNNING)
    bridge_sleep();
  return said();
}

outcome near_stop(void) {
  await_answer(command(LVD_WINDOW_STOP));
  return said();
}
