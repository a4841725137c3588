/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The natives of std.stdio.SourceCamera and of the displays in std.image, for CAL applications for
 * Orcc. No camera is opened: the option "in" names the input with its pictures, as packed RGB samples
 * (red, green, blue for each pixel), the format that programs which read cameras write:
 *
 *   ffmpeg -f v4l2 -s 640x480 -i /dev/video0 -f rawvideo -pix_fmt rgb24 - | levada run ... --in -
 *
 * Displayed pictures are written to the file of the option "out" as video (BT.601). There are no
 * mouse clicks.
 *
 * All of them are weak, so that the user's own functions override them. */
#include "video.h"

#define STD __attribute__((weak))

/* ---- The camera -------------------------------------------------------------------------------- */

typedef struct camera {
  size_t pixels;
  /* The part of the next picture that has arrived. It is kept here while the rest is awaited, so that a waiting
   * call owns nothing, and a new version continues with it. */
  uint8_t *bytes;
  size_t has, room;
} camera;

static const char camera_key;

static void camera_end(void *data, lvd_status outcome) {
  (void)outcome;
  free(((camera *)data)->bytes);
}

static camera *camera_of_app(void) {
  return persistent_block("levada.camera", &camera_key, sizeof(camera), camera_end);
}

STD void source_camera_init(int32_t width, int32_t height) {
  camera *c = camera_of_app();
  if (width < 1 || height < 1) lvd_native_fail("a camera has no pictures of %dx%d", width, height);
  c->pixels = (size_t)width * (size_t)height;
}

/* False at the end of the last file. */
static bool more_bytes(input *in) {
  while (!input_ahead(in, 0, lvd_wait_input_restartable)) {
    if (in->at + 1 >= in->count) return false;
    lvd_sys_close(in->fd);
    in->at++;
    input_open_file(in);
  }
  return true;
}

/* The next complete picture; an incomplete one at the end of the input is dropped. */
STD void readCameraFrame(uint8_t *red, uint8_t *green, uint8_t *blue) {
  camera *c = camera_of_app();
  input *in = input_of_app();
  const size_t size = 3 * c->pixels;
  if (!size) lvd_native_fail("readCameraFrame comes before source_camera_init");
  if (c->room < size) {
    uint8_t *grown = realloc(c->bytes, size);
    if (!grown) refuse("out of memory");
    c->bytes = grown;
    c->room = size;
  }
  while (c->has < size) {
    if (!more_bytes(in)) {
      if (c->has)
        refuse("the input ends within a picture: each has %zu bytes, and the last %zu", size,
               c->has);
      lvd_native_end();
    }
    size_t count = in->limit - in->next;
    if (count > size - c->has) count = size - c->has;
    memcpy(c->bytes + c->has, in->buffer + in->next, count);
    in->next += count;
    c->has += count;
  }
  for (size_t i = 0; i < c->pixels; i++) {
    red[i] = c->bytes[3 * i];
    green[i] = c->bytes[3 * i + 1];
    blue[i] = c->bytes[3 * i + 2];
  }
  c->has -= size; /* more, if its pictures were larger before */
  memmove(c->bytes, c->bytes + size, c->has);
}

/* ---- The displays ------------------------------------------------------------------------------ */

/* Begins a picture with three planes, or only the first, of this size; null: it is dropped. */
static video *display(uint32_t width, uint32_t height, int planes, int32_t *clicked) {
  const char *name = option("out");
  int32_t w[3] = {0}, h[3] = {0};
  clicked[0] = clicked[1] = -1;
  if (width - 1 >= INT16_MAX || height - 1 >= INT16_MAX)
    lvd_native_fail("a picture of %" PRIu32 "x%" PRIu32 " pixels cannot be shown", width, height);
  if (!name || !*name) return NULL;
  for (int i = 0; i < planes; i++) {
    w[i] = (int32_t)width;
    h[i] = (int32_t)height;
  }
  video *v = video_for_frame();
  video_begin(v, w, h, "");
  return v;
}

static void displayed(video *v, const uint8_t *const *plane) {
  video_end_frame(v, plane);
  lvd_app_progress(lvd_current_app(), "frames", v->complete);
}

STD void initDisplayGray(uint32_t width, uint32_t height) { (void)width, (void)height; }

STD void displayGray(uint32_t width, uint32_t height, uint8_t *gray, int32_t *clicked) {
  video *v = display(width, height, 1, clicked);
  if (v) displayed(v, (const uint8_t *const[]){gray, gray, gray});
}

STD void initDisplayRGB(uint32_t width, uint32_t height) { (void)width, (void)height; }

STD void displayRGB(uint32_t width, uint32_t height, uint8_t *red, uint8_t *green, uint8_t *blue,
                    int32_t *clicked) {
  video *v = display(width, height, 3, clicked);
  if (!v) return;
  for (size_t i = 0; i < (size_t)width * height; i++) {
    const int r = red[i], g = green[i], b = blue[i];
    v->plane[0][i] = (uint8_t)((66 * r + 129 * g + 25 * b + (16 << 8) + 128) / 256);
    v->plane[1][i] = (uint8_t)((-38 * r - 74 * g + 112 * b + (128 << 8) + 128) / 256);
    v->plane[2][i] = (uint8_t)((112 * r - 94 * g - 18 * b + (128 << 8) + 128) / 256);
  }
  displayed(v, (const uint8_t *const *)v->plane);
}
