/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Renders the demo's scene: a levada, a water channel along a hillside, under a moving sky.
 *
 *   render WIDTH HEIGHT FRAMES [FIRST] > frames.ppm
 *
 * writes that many frames, one after the other, as PPM. Everything is computed from the position
 * and the time; nothing is random, so every run gives the same pictures. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct colour {
  float r, g, b;
} colour;

static colour mix(colour a, colour b, float t) {
  t = t < 0 ? 0 : t > 1 ? 1 : t;
  return (colour){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static colour shade(colour c, float f) { return (colour){c.r * f, c.g * f, c.b * f}; }

static float smooth(float from, float to, float x) {
  x = (x - from) / (to - from);
  x = x < 0 ? 0 : x > 1 ? 1 : x;
  return x * x * (3 - 2 * x);
}

/* A number from 0 to 1 for each point of a grid. */
static float grain(int32_t x, int32_t y) {
  uint32_t h = (uint32_t)x * 0x8da6b343u ^ (uint32_t)y * 0xd8163841u;
  h = (h ^ h >> 13) * 0x5bd1e995u;
  return (float)((h ^ h >> 15) & 0xffffff) / 16777215.0f;
}

/* Smooth noise: the grid's numbers, blended. */
static float noise(float x, float y) {
  float fx = floorf(x), fy = floorf(y);
  int32_t ix = (int32_t)fx, iy = (int32_t)fy;
  x -= fx;
  y -= fy;
  x = x * x * (3 - 2 * x);
  y = y * y * (3 - 2 * y);
  float a = grain(ix, iy), b = grain(ix + 1, iy), c = grain(ix, iy + 1), d = grain(ix + 1, iy + 1);
  return a + (b - a) * x + (c - a) * y + (a - b - c + d) * x * y;
}

/* Noise of many sizes at once, as in clouds and ridges. */
static float clouds(float x, float y, int octaves) {
  float sum = 0, weight = 0.5f;
  for (int i = 0; i < octaves; i++, weight *= 0.5f) {
    sum += weight * noise(x, y);
    x = 2.03f * x + 17;
    y = 2.03f * y + 31;
  }
  return sum;
}

static colour sky(float x, float y, float time) {
  colour c = mix((colour){0.98f, 0.83f, 0.62f}, (colour){0.22f, 0.46f, 0.78f}, 1.9f * y);
  float dx = x - 0.55f, dy = y - 0.30f, sun = sqrtf(dx * dx + dy * dy);
  c = mix(c, (colour){1, 0.93f, 0.75f}, 0.7f * expf(-6 * sun));
  c = mix((colour){1, 0.98f, 0.9f}, c, smooth(0.040f, 0.046f, sun));
  float cloud = clouds(2.2f * x + 0.10f * time, 5 * y + 0.02f * time, 5);
  return mix(c, (colour){1, 0.97f, 0.94f}, 0.85f * smooth(0.46f, 0.72f, cloud));
}

/* A range of hills: how high it stands at x. */
static float ridge(float x, float height, float rough, float seed) {
  return height + rough * (clouds(3 * x + seed, seed, 5) - 0.5f);
}

/* The hillside below the horizon, y from 0 (far) to 1 (near): terraces, and the channel in it. */
static colour ground(float x, float y, float time) {
  float depth = 1 / (0.08f + y); /* how far away this line lies */
  float along = 2.4f * depth;    /* the place along the channel */
  float bend = 0.55f * sinf(0.32f * along + 0.4f) * (1 - y);
  float side = (x - bend * 0.8f) * depth; /* the place across it */

  /* Terraces: walls of stone and beds of green, in turn. */
  float bed = side * 0.9f + 0.35f * sinf(0.5f * along);
  float within = bed - floorf(bed);
  colour green = mix((colour){0.16f, 0.40f, 0.13f}, (colour){0.47f, 0.60f, 0.20f},
                     clouds(9 * side, 4 * along, 4) + 0.2f * sinf(14 * within));
  colour stone = mix((colour){0.34f, 0.31f, 0.29f}, (colour){0.60f, 0.55f, 0.49f},
                     clouds(20 * side, 12 * along, 3) + 0.15f);
  colour c = mix(green, stone, smooth(0.86f, 0.90f, within) - smooth(0.97f, 1.0f, within));

  /* The channel: two walls, the shadow of one, and water between them. */
  float across = fabsf(side);
  c = mix(stone, c, smooth(0.46f, 0.50f, across));
  c = mix(shade(stone, 0.55f), c, smooth(0.34f, 0.36f, across));
  if (across < 0.345f) {
    float ripple = sinf(9 * along - 5.0f * time + 3 * sinf(4 * side + 0.7f * along)) +
                   0.6f * sinf(21 * along - 8.2f * time + 17 * side) +
                   0.8f * (clouds(6 * side + 2, 3 * along - 2.2f * time, 4) - 0.5f);
    colour mirror = sky(0.5f + 0.25f * side + 0.02f * ripple, 0.22f + 0.03f * ripple, time);
    colour deep = {0.05f, 0.26f, 0.33f};
    c = mix(deep, mirror, 0.42f + 0.14f * ripple + 0.25f * (1 - y));
    c = mix(c, (colour){1, 1, 0.96f}, 0.8f * smooth(1.35f, 1.75f, ripple));
    c = mix(shade(c, 0.55f), c, smooth(0.345f, 0.24f, across));
  }
  return mix(c, (colour){0.72f, 0.74f, 0.72f}, 0.55f * smooth(3, 12, depth));
}

static colour scene(float x, float y, float time) {
  float up = 0.56f - y; /* above the horizon */
  if (up < 0) return ground(x, -up / 0.44f, time);
  float aside = x + 0.004f * time;
  if (up < ridge(aside, 0.05f, 0.10f, 3))
    return mix((colour){0.20f, 0.37f, 0.22f}, (colour){0.36f, 0.48f, 0.26f},
               clouds(24 * aside, 30 * y, 4) + 2 * up);
  if (up < ridge(aside, 0.13f, 0.22f, 40))
    return mix((colour){0.33f, 0.46f, 0.42f}, (colour){0.45f, 0.55f, 0.50f},
               clouds(14 * aside, 18 * y, 4) + up);
  if (up < ridge(aside, 0.19f, 0.34f, 91))
    return mix((colour){0.50f, 0.60f, 0.66f}, (colour){0.62f, 0.68f, 0.72f}, 3 * up);
  return sky(x, up, time);
}

static uint8_t level(float v) {
  v = v * 255 + 0.5f;
  return v < 0 ? 0 : v > 255 ? 255 : (uint8_t)v;
}

int main(int argc, char **argv) {
  int width = argc > 3 ? atoi(argv[1]) : 0, height = argc > 3 ? atoi(argv[2]) : 0;
  int frames = argc > 3 ? atoi(argv[3]) : 0, first = argc > 4 ? atoi(argv[4]) : 0;
  if (width < 1 || height < 1 || frames < 1 || width > 16384 || height > 16384) {
    fprintf(stderr, "usage: render WIDTH HEIGHT FRAMES [FIRST] > frames.ppm\n");
    return 2;
  }
  uint8_t *line = malloc(3 * (size_t)width);
  if (!line) return 1;
  for (int frame = first; frame < first + frames; frame++) {
    float time = (float)frame / 25;
    printf("P6\n%d %d\n255\n", width, height);
    for (int y = 0; y < height; y++) {
      for (int x = 0; x < width; x++) {
        /* Across, the scene is as wide as the picture's shape makes it; down, it is 1. */
        float sx = ((float)x + 0.5f - 0.5f * (float)width) / (float)height;
        colour c = scene(sx, ((float)y + 0.5f) / (float)height, time);
        line[3 * x] = level(c.r);
        line[3 * x + 1] = level(c.g);
        line[3 * x + 2] = level(c.b);
      }
      if (fwrite(line, 3, (size_t)width, stdout) != (size_t)width) {
        perror("render");
        return 1;
      }
    }
  }
  free(line);
  return fflush(stdout) ? 1 : 0;
}
