/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures the costs of the bridge, and the benchmarks on one processor and on both, in simulated cycles.
 * The cycles are the same in each run, so a minimum ratio is checked. The time on both processors includes
 * loading: from the first word of the image in the window to the last result on this side. */
#include "../kernels/kernels.h"
#include "check.h"
#include "near.h"

static uint32_t cycles(void) { return bridge_read(BRIDGE_CYCLES); }

static uint32_t state;
static uint32_t some(void) { return state = state * 1664525u + 1013904223u; }

static void cost(const char *what, uint32_t n) {
  print(what);
  print_number(n, 9);
  print(" simulated cycles\n");
}

void measure_bridge(void) {
  enum { RINGS = 16 };
  bool good = near_boot(20, false);
  link l;
  image i = NEAR_TAKE(empty);
  uint32_t since = cycles();
  good = good && near_run(&l, &i) == LVD_OK && near_wait().state == LVD_REMOTE_EXITED;
  uint32_t load = cycles() - since;

  i = NEAR_TAKE(echo);
  good = good && near_run(&l, &i) == LVD_OK;
  *link_put(&l, 1) = RINGS;
  link_push(&l, 1);
  good = good && link_get(&l, 1);
  uint32_t ring = 0;
  for (int n = 0; good && n < RINGS; n++) {
    bridge_write(BRIDGE_RUNG, 0);
    since = cycles();
    bridge_write(BRIDGE_BELL, 1);
    while (!bridge_read(BRIDGE_AWAIT)) continue;
    uint32_t took = cycles() - since;
    if (n == 0 || took > ring) ring = took;
  }
  good = good && near_wait().state == LVD_REMOTE_EXITED;
  check("a program that does nothing, and a doorbell each way", good);
  cost("a doorbell there and back:           ", ring);
  cost("loading and running an empty program:", load);
}

/* ---- the benchmarks: alone(), and both(), which fill one and the other result ---------------- */

static uint32_t input[WAVELET_WORDS * 2 * WAVELET_HALF];
static uint32_t one[WAVELET_WORDS * 2 * WAVELET_HALF], two[WAVELET_WORDS * 2 * WAVELET_HALF];

static uint32_t sort_alone(uint32_t *out) {
  static int32_t a[SORT_HALF], b[SORT_HALF];
  copy_words((uint32_t *)a, input, SORT_HALF);
  copy_words((uint32_t *)b, input + SORT_HALF, SORT_HALF);
  sort_words(a, SORT_HALF);
  sort_words(b, SORT_HALF);
  sort_merge((int32_t *)out, a, SORT_HALF, b, SORT_HALF);
  return 2 * SORT_HALF;
}
static bool sort_both(link *l, uint32_t *out) {
  static int32_t a[SORT_HALF];
  copy_words(link_put(l, SORT_HALF), input + SORT_HALF, SORT_HALF);
  link_push(l, SORT_HALF);
  copy_words((uint32_t *)a, input, SORT_HALF);
  sort_words(a, SORT_HALF);
  const uint32_t *b = link_get(l, SORT_HALF);
  if (b) sort_merge((int32_t *)out, a, SORT_HALF, (const int32_t *)b, SORT_HALF);
  return b != 0;
}

static uint32_t integer_alone(uint32_t *out) {
  out[0] = integer_rounds(0, INTEGER_HALF) + integer_rounds(INTEGER_HALF, INTEGER_HALF);
  return 1;
}
static bool integer_both(link *l, uint32_t *out) {
  *link_put(l, 1) = INTEGER_HALF;
  link_push(l, 1);
  uint32_t own = integer_rounds(0, INTEGER_HALF);
  const uint32_t *other = link_get(l, 1);
  if (other) out[0] = own + *other;
  return other != 0;
}

static uint32_t even[FFT_HALF], odd[FFT_HALF];
static void fft_gather_all(uint32_t *to, const uint32_t *from) {
  fft_gather(to, from, 2);
  fft_gather(to + 1, from + 2 * FFT_PART, 2);
}
static uint32_t fft_alone(uint32_t *out) {
  for (uint32_t frame = 0; frame < FFT_FRAMES; frame++, out += FFT_SIZE) {
    fft_gather_all(even, input + frame * FFT_SIZE);
    fft_gather_all(odd, input + frame * FFT_SIZE + 1);
    fft_half(even);
    fft_half(odd);
    fft_last(out, out + FFT_HALF, even, odd, 0, FFT_HALF);
  }
  return FFT_FRAMES * FFT_SIZE;
}
static bool fft_send_odd(link *l, uint32_t frame) {
  const uint32_t *from = input + frame * FFT_SIZE;
  for (uint32_t part = 0; part < 2; part++, from += 2 * FFT_PART) {
    uint32_t *to = link_put(l, FFT_PART);
    if (!to) return false;
    const uint32_t *odd_one = from + 1;
    for (uint32_t *last = to + FFT_PART; to != last; to += 4, odd_one += 8) /* as copy_words */
      to[0] = odd_one[0], to[1] = odd_one[2], to[2] = odd_one[4], to[3] = odd_one[6];
    link_push(l, FFT_PART);
  }
  return true;
}
static bool fft_send_even(link *l, const uint32_t *transformed) {
  uint32_t *to = link_put(l, FFT_PART);
  if (!to) return false;
  copy_words(to, transformed + FFT_NEAR, FFT_FAR);
  link_push(l, FFT_PART);
  return true;
}
static bool fft_finish(link *l, const uint32_t *transformed, uint32_t *out) {
  for (uint32_t at = 0; at < FFT_NEAR; at += FFT_PART) {
    uint32_t n = FFT_NEAR - at < FFT_PART ? FFT_NEAR - at : FFT_PART;
    const uint32_t *odds = link_get(l, FFT_PART);
    if (!odds) return false;
    fft_last(out + at, out + FFT_HALF + at, transformed + at, odds, at, n);
    link_got(l, FFT_PART);
  }
  const uint32_t *done = link_get(l, FFT_PART);
  if (!done) return false;
  copy_words(out + FFT_NEAR, done, FFT_FAR);
  copy_words(out + FFT_HALF + FFT_NEAR, done + FFT_FAR, FFT_FAR);
  link_got(l, FFT_PART);
  return true;
}
/* The near side works AHEAD frames ahead of the far side, so that the far side's next input is in its ring. */
static bool fft_both(link *l, uint32_t *out) {
  enum { AHEAD = 2 };
  static uint32_t transformed[AHEAD + 1][FFT_HALF];
  bool good = fft_send_odd(l, 0);
  for (uint32_t frame = 0; good && frame < FFT_FRAMES + AHEAD; frame++) {
    if (frame < FFT_FRAMES) {
      uint32_t *to = transformed[frame % (AHEAD + 1)];
      fft_gather_all(to, input + frame * FFT_SIZE);
      fft_half(to);
      good = fft_send_even(l, to);
    }
    if (good && frame + 1 < FFT_FRAMES) good = fft_send_odd(l, frame + 1);
    uint32_t before = frame - AHEAD;
    if (good && frame >= AHEAD)
      good = fft_finish(l, transformed[before % (AHEAD + 1)], out + before * FFT_SIZE);
  }
  return good;
}

static uint32_t wavelet_alone(uint32_t *out) {
  copy_words(out, input, 2 * WAVELET_HALF * WAVELET_WORDS);
  for (uint32_t i = 0; i < 2 * WAVELET_HALF; i++)
    wavelet_tile((int16_t *)(void *)(out + i * WAVELET_WORDS));
  return 2 * WAVELET_HALF * WAVELET_WORDS;
}
/* The far side's tiles are sent as early as the ring has room, and come back one by one. */
static bool wavelet_both(link *l, uint32_t *out) {
  uint32_t there = WAVELET_HALF * WAVELET_WORDS, sent = 0, back = 0;
  for (uint32_t own = 0; own < WAVELET_HALF || back < WAVELET_HALF; own++) {
    while (sent < WAVELET_HALF && sent < back + LINK_WORDS / WAVELET_WORDS) {
      uint32_t *to = link_put(l, WAVELET_WORDS);
      if (!to) return false;
      copy_words(to, input + there + sent++ * WAVELET_WORDS, WAVELET_WORDS);
      link_push(l, WAVELET_WORDS);
    }
    if (own < WAVELET_HALF) {
      copy_words(out + own * WAVELET_WORDS, input + own * WAVELET_WORDS, WAVELET_WORDS);
      wavelet_tile((int16_t *)(void *)(out + own * WAVELET_WORDS));
    }
    while (back < WAVELET_HALF &&
           (own + 1 >= WAVELET_HALF || lvd_elements_refresh(&l->from) >= WAVELET_WORDS)) {
      const uint32_t *got = link_get(l, WAVELET_WORDS);
      if (!got) return false;
      copy_words(out + there + back++ * WAVELET_WORDS, got, WAVELET_WORDS);
      link_got(l, WAVELET_WORDS);
      if (sent < WAVELET_HALF) break;
    }
  }
  return true;
}

static bool same(uint32_t words) {
  for (uint32_t i = 0; i < words; i++)
    if (one[i] != two[i]) return false;
  return true;
}

/* Measures a benchmark and checks that both results are equal, and that the ratio is at least `ratio_min`, in
 * hundredths. */
static void measure(const char *name, uint32_t ratio_min, image i, uint32_t (*alone)(uint32_t *),
                    bool (*both)(link *, uint32_t *)) {
  for (uint32_t n = 0; n < sizeof input / 4; n++) one[n] = 0, two[n] = ~0u;
  uint32_t since = cycles();
  uint32_t words = alone(one);
  uint32_t single = cycles() - since;
  link l;
  bool good = near_boot(100, false);
  since = cycles();
  good = good && near_run(&l, &i) == LVD_OK && both(&l, two);
  uint32_t split = cycles() - since;
  good = good && near_wait().state == LVD_REMOTE_EXITED && same(words);
  uint32_t ratio = good ? (uint32_t)(single / (split / 100)) : 0;
  print("| ");
  print(name);
  print(" |");
  print_number(single, 10);
  print(" |");
  print_number(split, 10);
  print(" | ");
  print_ratio(ratio);
  print(" |\n");
  check(name, good && ratio >= ratio_min);
}

void measure_benchmarks(void) {
  for (uint32_t i = 0; i < sizeof input / 4; i++) input[i] = some();
  print("\nsimulated cycles\n| benchmark | one processor | both | ratio |\n| --- | --- | --- | --- "
        "|\n");
  measure("selection sort", 175, NEAR_TAKE(sort), sort_alone, sort_both);
  measure("integer work", 175, NEAR_TAKE(integer), integer_alone, integer_both);
  measure("FFT", 175, NEAR_TAKE(fft), fft_alone, fft_both);
  /* A picture with 9 bits per sample. */
  for (uint32_t i = 0; i < sizeof input / 4; i++) input[i] = some() >> 7 & 0x01ff01ff;
  measure("wavelet", 175, NEAR_TAKE(wavelet), wavelet_alone, wavelet_both);
}
