/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of a network that follows an object through pictures: it reads pictures of 352x200
 * (the samples red, green, blue of each pixel in turn) from "in", and writes to "out", a line each,
 * where the object is. */
#include "numbers.h"
#include <limits.h>
#include <stdlib.h>

enum { WIDTH = 352, HEIGHT = 200, PIXELS = WIDTH * HEIGHT, REACH = 12 };

/* The object as it was first. */
typedef struct tracked {
  uint8_t plane[3][PIXELS];
  int32_t width, height;
} tracked;

static const char tracked_key;

static tracked *tracked_of_app(void) {
  tracked *t = lvd_app_data(lvd_current_app(), &tracked_key, sizeof *t, NULL);
  if (!t) lvd_native_fail("out of memory");
  return t;
}

void readRGBpicture(uint8_t *red, uint8_t *green, uint8_t *blue) {
  FILE *file = numbers_file(&numbers_of_app()->in[0], "in", 0, "r");
  for (int i = 0; i < PIXELS; i++) {
    uint8_t pixel[3];
    if (fread(pixel, 1, 3, file) != 3) lvd_native_end();
    red[i] = pixel[0];
    green[i] = pixel[1];
    blue[i] = pixel[2];
  }
}

int32_t get_pict_width(void) { return WIDTH; }

int32_t get_pict_height(void) { return HEIGHT; }

void initTracking(const uint8_t *red, const uint8_t *green, const uint8_t *blue,
                  const int32_t *size, const int32_t *at) {
  const uint8_t *const plane[3] = {red, green, blue};
  tracked *t = tracked_of_app();
  t->width = at[2] - at[0] + 1;
  t->height = at[3] - at[1] + 1;
  for (int c = 0; c < 3; c++)
    for (int y = 0; y < t->height; y++)
      for (int x = 0; x < t->width; x++)
        t->plane[c][y * t->width + x] = plane[c][(at[1] + y) * size[0] + at[0] + x];
}

/* How far the object is from what is at x, y; no more than `limit` is of interest. */
static int distance(const tracked *t, const uint8_t *const *plane, int32_t width, int x, int y,
                    int limit) {
  int sum = 0;
  for (int c = 0; c < 3 && sum < limit; c++)
    for (int i = 0; i < t->height; i++)
      for (int j = 0; j < t->width; j++)
        sum += abs(t->plane[c][i * t->width + j] - plane[c][(y + i) * width + x + j]);
  return sum;
}

void startTracking(const uint8_t *red, const uint8_t *green, const uint8_t *blue,
                   const int32_t *size, int32_t *at) {
  const uint8_t *const plane[3] = {red, green, blue};
  const tracked *t = tracked_of_app();
  int best = INT_MAX, left = at[0], top = at[1];
  for (int y = at[1] - REACH; y <= at[1] + REACH; y++)
    for (int x = at[0] - REACH; x <= at[0] + REACH; x++) {
      if (x < 0 || y < 0 || x + t->width > size[0] || y + t->height > size[1]) continue;
      int d = distance(t, plane, size[0], x, y, best);
      if (d < best) {
        best = d;
        left = x;
        top = y;
      }
    }
  at[0] = left;
  at[1] = top;
  at[2] = left + t->width - 1;
  at[3] = top + t->height - 1;
}

void displayRGB_init(int32_t width, int32_t height, int32_t shown_width, int32_t shown_height) {
  (void)width, (void)height, (void)shown_width, (void)shown_height;
}

void displayRGB_displayPicture(const uint8_t *red, const uint8_t *green, const uint8_t *blue,
                               int16_t width, int16_t height) {
  (void)red, (void)green, (void)blue, (void)width, (void)height;
}

void displayRGB_displayRect(const uint8_t *red, const uint8_t *green, const uint8_t *blue,
                            int16_t width, int16_t height) {
  (void)red, (void)green, (void)blue, (void)width, (void)height;
}

void displayTrackRect(int32_t left, int32_t top, int32_t right, int32_t bottom) {
  fprintf(output(0), "%d %d %d %d\n", (int)left, (int)top, (int)right, (int)bottom);
}

/* There is no mouse: the position is not set. */
void get_mouse_position(int32_t *position) { (void)position; }
