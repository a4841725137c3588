/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Near: what the processor on this side does with the one behind the window: boots it, puts an image
 * into the window, waits for how it went, stops it. */
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

/* How a program ended, or the loader's answer. */
typedef struct outcome {
  enum lvd_remote_state state;
  uint32_t status;
  enum bridge_trouble trouble; /* LVD_REMOTE_FAILED, LVD_REMOTE_HUNG */
  uint32_t pc, value;
} outcome;

extern lvd_window *const near_window;

image near_image(const uint32_t *begin, const uint32_t *end);
/* Resets the far processor, lays out the window anew, and lets the loader come. False: it does not,
 * in so many cycles. `spoil`: a word of the header is wrong. */
bool near_boot(uint32_t watch_ms, bool spoil);
void near_put(const image *i); /* into the window */
/* Lays out the link anew, and tells the loader to run what was put: this long, with this sum. */
lvd_status near_start(link *l, uint32_t length, uint32_t sum, uint32_t address);
lvd_status near_run(link *l, const image *i); /* put and start */
outcome near_wait(void);                      /* for an end, of whatever kind */
outcome near_stop(void);                      /* asks the loader, which waits */

#endif
