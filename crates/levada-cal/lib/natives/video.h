/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Video output for natives, to the file that the option "out" names: .y4m, or .yuv with only the
 * samples. After a failure, complete frames are kept. */
#ifndef LEVADA_VIDEO_H
#define LEVADA_VIDEO_H

#include "files.h"

typedef struct video {
  lvd_app *app;
  char *given; /* the value of --out */
  output out;
  uint64_t complete;
  uint64_t good; /* length of the file with all complete frames */
  bool raw;      /* only the samples */
  int32_t width[3], height[3];
  uint8_t *plane[3]; /* of the current frame */
  size_t size;
} video;

SHARED const char video_key = 0;

/* After a failure the video consists of the complete frames, without a partial one. If the application
 * was stopped, the video is removed. */
static void video_end(void *data, lvd_status outcome) {
  video *v = data;
  bool keep = v->complete > 0 && (outcome == LVD_OK || outcome == LVD_E_FAULT);
  if (v->out.open && v->out.name && keep && outcome != LVD_OK) {
    keep = output_flush(&v->out) && lvd_sys_ftruncate(v->out.fd, (off_t)v->good) == 0;
  }
  output_end(&v->out, keep, v->app);
  free(v->plane[0]);
  free(v->given);
}

static video *video_of_app(void) {
  video *v = persistent_block("levada.video", &video_key, sizeof *v, video_end);
  v->app = lvd_current_app();
  return v;
}

/* The same for a new frame: a new version of the application may write its frames elsewhere. A frame that the old
 * version has begun is completed in its file. */
static video *video_for_frame(void) {
  video *v = video_of_app();
  if (v->out.open && is_another(v->given, "out")) {
    video_end(v, LVD_OK);
    *v = (video){.app = v->app};
  }
  return v;
}

/* The .y4m colour space of a picture with planes of these sizes. */
static const char *video_format(const int32_t *w, const int32_t *h) {
  if (!w[1] && !w[2]) return "mono";
  if (w[1] != w[2] || h[1] != h[2]) return NULL;
  if (w[1] == w[0] && h[1] == h[0]) return "444";
  if (w[1] == (w[0] + 1) / 2 && h[1] == (h[0] + 1) / 2) return "420jpeg";
  if (w[1] == (w[0] + 1) / 2 && h[1] == h[0]) return "422";
  if (w[1] == (w[0] + 3) / 4 && h[1] == h[0]) return "411";
  return NULL;
}

/* "25" or "30000:1001" and nothing else; both from 1 to a million. */
static bool read_rate(const char *text, unsigned long *frames, unsigned long *seconds) {
  unsigned long *const part[2] = {frames, seconds};
  *seconds = 1;
  for (int i = 0; i < 2; i++) {
    char *end;
    if (*text < '0' || *text > '9') return false;
    *part[i] = strtoul(text, &end, 10);
    if (*part[i] < 1 || *part[i] > 1000000) return false;
    if (!*end) return true;
    if (*end != ':') return false;
    text = end + 1;
  }
  return false;
}

/* `marks` are what a .y4m header says besides. */
static void video_open(video *v, const int32_t *w, const int32_t *h, const char *marks) {
  const char *name = option("out"), *rate = option("rate"), *format = video_format(w, h);
  char header[128];
  unsigned long frames = 25, seconds = 1;
  if (!name || !*name) refuse("no output: name a .y4m file with --out (- is standard output)");
  v->raw = ends_with(name, ".yuv");
  if (strcmp(name, "-") && !is_special(name) && !ends_with(name, ".y4m") && !v->raw)
    refuse("video is written as .y4m or .yuv, and %s is not named so", name);
  if (!format && !v->raw)
    refuse("a .y4m video cannot hold pictures with planes of these sizes (%dx%d, %dx%d, "
           "%dx%d): write pictures instead",
           w[0], h[0], w[1], h[1], w[2], h[2]);
  if (rate && !read_rate(rate, &frames, &seconds))
    refuse("the rate \"%s\" is neither frames a second, such as 25, nor frames:seconds, such as "
           "30000:1001 (each from 1 to 1000000)",
           rate);
  size_t sizes[3];
  v->size = 0;
  for (int i = 0; i < 3; i++) {
    v->width[i] = w[i];
    v->height[i] = h[i];
    sizes[i] = (size_t)w[i] * (size_t)h[i];
    v->size += sizes[i];
  }
  v->plane[0] = malloc(v->size);
  if (!v->plane[0]) refuse("out of memory for a frame of %dx%d", w[0], h[0]);
  v->plane[1] = v->plane[0] + sizes[0];
  v->plane[2] = v->plane[1] + sizes[1];
  output_open(&v->out, name);
  v->given = copy_option("out");
  if (v->raw) return;
  int length = snprintf(header, sizeof header, "YUV4MPEG2 W%d H%d F%lu:%lu Ip A1:1 C%s%s\n", w[0],
                        h[0], frames, seconds, format, marks);
  output_put(&v->out, header, (size_t)length);
}

/* The chroma subsampling of a picture, for a message. */
static void sampling(char *text, size_t room, const int32_t *w, const int32_t *h) {
  const char *format = video_format(w, h);
  const char *names[][2] = {
      {"mono", "grey"}, {"444", "4:4:4"}, {"420jpeg", "4:2:0"}, {"422", "4:2:2"}, {"411", "4:1:1"}};
  for (size_t i = 0; format && i < sizeof names / sizeof *names; i++)
    if (!strcmp(format, names[i][0])) {
      snprintf(text, room, "%s", names[i][1]);
      return;
    }
  snprintf(text, room, "colours of %dx%d and %dx%d", w[1], h[1], w[2], h[2]);
}

/* Begins a frame with planes of these sizes; the first one opens the file. */
static void video_begin(video *v, const int32_t *w, const int32_t *h, const char *marks) {
  if (!v->out.open) {
    video_open(v, w, h, marks);
  } else if (w[0] != v->width[0] || h[0] != v->height[0]) {
    refuse("picture %" PRIu64 " is of another size (%dx%d) than those before it (%dx%d): a video "
           "cannot hold both",
           v->complete + 1, w[0], h[0], v->width[0], v->height[0]);
  } else if (memcmp(w, v->width, sizeof v->width) || memcmp(h, v->height, sizeof v->height)) {
    char now[48], before[48];
    sampling(now, sizeof now, w, h);
    sampling(before, sizeof before, v->width, v->height);
    refuse("picture %" PRIu64 " is of another sampling (%s) than those before it (%s): a video "
           "cannot hold both",
           v->complete + 1, now, before);
  }
}

/* The frame is complete: it consists of these planes. */
static void video_end_frame(video *v, const uint8_t *const *plane) {
  if (!v->raw) output_put(&v->out, "FRAME\n", 6);
  for (int i = 0; i < 3; i++)
    output_put(&v->out, plane[i], (size_t)v->width[i] * (size_t)v->height[i]);
  if (!output_flush(&v->out)) refuse("cannot write %s: %s", output_name(&v->out), strerror(errno));
  v->good = v->out.length;
  v->complete++;
}

#endif
