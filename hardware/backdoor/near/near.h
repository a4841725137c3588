/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Near: controls the far processor from this side of the window: boots it, writes an image into the
 * window, runs and stops it, and waits for the outcome. */
#ifndef LVD_BACKDOOR_NEAR_H
#define LVD_BACKDOOR_NEAR_H

#include "../link.h"

typedef struct image {
  const uint32_t *words;
  uint32_t length, sum;
} image;

#define NEAR_IMAGE(name) extern const uint32_t image_##name[], image_##name##_end[]
NEAR_IMAGE(empty);
NEAR_IMAGE(echo);
NEAR_IMAGE(wrong);
NEAR_IMAGE(sort);
NEAR_IMAGE(integer);
NEAR_IMAGE(fft);
NEAR_IMAGE(wavelet);
#define NEAR_TAKE(name) near_image(image_##name, image_##name##_end)

/* The end of a program, or the loader's refusal. */
typedef struct outcome {
  enum lvd_remote_state state;
  uint32_t status;
  enum bridge_trouble trouble; /* with LVD_REMOTE_FAILED and LVD_REMOTE_HUNG */
  uint32_t pc, value;
} outcome;

extern lvd_window *const near_window;

image near_image(const uint32_t *begin, const uint32_t *end);
/* Resets the far processor, initialises the window, and waits for the loader. False: it did not start in
 * time. `watch_ms`: the watchdog's limit; `spoil`: makes the window's header invalid, for a test. */
bool near_boot(uint32_t watch_ms, bool spoil);
void near_put(const image *i); /* copies an image into the window */
/* Initialises the link, and tells the loader to run the image: its length in bytes and checksum. */
lvd_status near_start(link *l, uint32_t length, uint32_t sum, uint32_t address);
lvd_status near_run(link *l, const image *i); /* near_put and near_start */
outcome near_wait(void);                      /* waits until the program has ended or failed */
outcome near_stop(void);                      /* tells the loader to stop the program */

#endif
