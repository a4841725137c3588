/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Four subbands are worked on at once, one in each lane of a vector.
 *
 * The inverse MDCT of N lines X gives 2N samples, which are those of a DCT-IV of X, mirrored and
 * with signs. With S[k] = X[k] + X[k-1] and 2 cos a cos (2k+1)a = cos 2(k+1)a + cos 2ka, the DCT-IV
 * becomes a DCT-III of S, divided by 2 cos a, where a = π(2n+1) / 4N. Its even terms are a DCT-III
 * of half the length; its odd ones a DCT-IV of half the length, to which the same applies. So a
 * long block (18 lines) is two DCT-III of 9, and each window of a short one (6 lines) two of 3. The
 * last division goes together with the window. */
#include "hybrid.h"
#include "vector.h"
#include <math.h>

#ifndef M_PI
#define M_PI 3.14159265358979323846 /* strict C has none */
#endif

enum { LONG_LINES = 18, SHORT_LINES = 6 }; /* frequency lines of a block */

static float long_window[4][2 * LONG_LINES]; /* by block type: window, sign and division */
static float short_window[2 * SHORT_LINES];
static float long_odd[LONG_LINES / 2]; /* 1 / 2 cos a for the odd terms */
static float short_odd[SHORT_LINES / 2];

/* Which value of the DCT-IV of n lines makes sample i of the inverse MDCT, and with which sign. */
static unsigned mirrored(unsigned n, unsigned i, double *sign) {
  unsigned at = i + n / 2;
  *sign = at < n ? 1 : -1;
  return at < n ? at : at < 2 * n ? 2 * n - 1 - at : at - 2 * n;
}

static double window_of(unsigned type, unsigned i) {
  double slow = sin(M_PI / 36 * (i + 0.5));
  if (type == MP3_START && i >= 18) return i < 24 ? 1 : i < 30 ? sin(M_PI / 12 * (i - 17.5)) : 0;
  if (type == MP3_STOP && i < 18) return i < 6 ? 0 : i < 12 ? sin(M_PI / 12 * (i - 5.5)) : 1;
  return slow;
}

void mp3_hybrid_prepare(void) {
  double sign;
  for (unsigned i = 0; i < 2 * LONG_LINES; i++) {
    unsigned n = mirrored(LONG_LINES, i, &sign);
    for (unsigned type = 0; type < 4; type++)
      long_window[type][i] =
          (float)(window_of(type, i) * sign / (2 * cos(M_PI * (2 * n + 1) / (4 * LONG_LINES))));
  }
  for (unsigned i = 0; i < 2 * SHORT_LINES; i++) {
    unsigned n = mirrored(SHORT_LINES, i, &sign);
    short_window[i] = (float)(sin(M_PI / (2 * SHORT_LINES) * (i + 0.5)) * sign /
                              (2 * cos(M_PI * (2 * n + 1) / (4 * SHORT_LINES))));
  }
  for (unsigned n = 0; n < LONG_LINES / 2; n++)
    long_odd[n] = (float)(1 / (2 * cos(M_PI * (2 * n + 1) / (2 * LONG_LINES))));
  for (unsigned n = 0; n < SHORT_LINES / 2; n++)
    short_odd[n] = (float)(1 / (2 * cos(M_PI * (2 * n + 1) / (2 * SHORT_LINES))));
}

/* DCT-III of 9: y[n] = Σ a[m] cos π(2n+1)m/18. Values n and 8-n differ in the odd terms' sign; the
 * rest follows from cos 20° = cos 40° + cos 80° and cos 10° = cos 50° + cos 70°. */
static inline void dct9(const mp3_v4 a[9], mp3_v4 y[9]) {
  const float cos10 = 0.98480775f, cos20 = 0.93969262f, cos30 = 0.86602540f, cos40 = 0.76604444f,
              cos50 = 0.64278761f, cos70 = 0.34202014f, cos80 = 0.17364818f;
  mp3_v4 base = a[0] + 0.5f * a[6], p = a[2] + a[4], q = a[2] + a[8];
  mp3_v4 r0 = p * cos40 + q * cos80, r2 = q * cos40 - p * cos20, r3 = -(r0 + r2);
  mp3_v4 apart = a[0] - a[6], even = a[2] - a[4] - a[8];
  mp3_v4 third = a[3] * cos30, s = a[1] + a[5], t = a[1] + a[7];
  mp3_v4 u0 = s * cos50 + t * cos70, u3 = s * cos10 - t * cos50, u2 = u0 - u3;
  mp3_v4 odd0 = u0 + third, odd1 = (a[1] - a[5] - a[7]) * cos30, odd2 = u2 - third,
         odd3 = u3 - third;
  mp3_v4 even0 = base + r0, even1 = apart + 0.5f * even, even2 = base + r2, even3 = base + r3;
  y[0] = even0 + odd0, y[8] = even0 - odd0;
  y[1] = even1 + odd1, y[7] = even1 - odd1;
  y[2] = even2 + odd2, y[6] = even2 - odd2;
  y[3] = even3 + odd3, y[5] = even3 - odd3;
  y[4] = apart - even;
}

/* DCT-III of 3. */
static inline void dct3(const mp3_v4 a[3], mp3_v4 y[3]) {
  mp3_v4 base = a[0] + 0.5f * a[2], odd = a[1] * 0.86602540f;
  y[0] = base + odd;
  y[1] = a[0] - a[2];
  y[2] = base - odd;
}

/* Lines to 36 windowed samples. */
static void long_block(const mp3_v4 line[LONG_LINES], const float window[2 * LONG_LINES],
                       mp3_v4 out[2 * LONG_LINES]) {
  mp3_v4 even[9], odd[9], e[9], o[9], d[LONG_LINES], before = {0, 0, 0, 0}, odd_before = before;
  MP3_UNROLL
  for (unsigned m = 0; m < 9; m++) {
    even[m] = line[2 * m] + before;
    mp3_v4 sum = line[2 * m + 1] + line[2 * m];
    odd[m] = sum + odd_before;
    before = line[2 * m + 1];
    odd_before = sum;
  }
  dct9(even, e);
  dct9(odd, o);
  MP3_UNROLL
  for (unsigned n = 0; n < 9; n++) {
    mp3_v4 scaled = o[n] * long_odd[n];
    d[n] = e[n] + scaled;
    d[17 - n] = e[n] - scaled;
  }
  MP3_UNROLL
  for (unsigned i = 0; i < 9; i++) {
    out[i] = d[9 + i] * window[i];
    out[9 + i] = d[17 - i] * window[9 + i];
    out[18 + i] = d[8 - i] * window[18 + i];
    out[27 + i] = d[i] * window[27 + i];
  }
}

/* One window of a short block: every third line from `line`, to 12 windowed samples. */
static inline void short_window_block(const mp3_v4 *line, mp3_v4 out[2 * SHORT_LINES]) {
  mp3_v4 even[3], odd[3], e[3], o[3], d[SHORT_LINES];
  even[0] = line[0];
  even[1] = line[6] + line[3];
  even[2] = line[12] + line[9];
  odd[0] = line[3] + line[0];
  odd[1] = (line[9] + line[6]) + odd[0];
  odd[2] = (line[15] + line[12]) + (line[9] + line[6]);
  dct3(even, e);
  dct3(odd, o);
  MP3_UNROLL
  for (unsigned n = 0; n < 3; n++) {
    mp3_v4 scaled = o[n] * short_odd[n];
    d[n] = e[n] + scaled;
    d[5 - n] = e[n] - scaled;
  }
  MP3_UNROLL
  for (unsigned i = 0; i < 3; i++) {
    out[i] = d[3 + i] * short_window[i];
    out[3 + i] = d[5 - i] * short_window[3 + i];
    out[6 + i] = d[2 - i] * short_window[6 + i];
    out[9 + i] = d[i] * short_window[9 + i];
  }
}

static void short_block(const mp3_v4 line[LONG_LINES], mp3_v4 out[2 * LONG_LINES]) {
  mp3_v4 first[12], second[12], third[12];
  short_window_block(line, first);
  short_window_block(line + 1, second);
  short_window_block(line + 2, third);
  MP3_UNROLL
  for (unsigned i = 0; i < 6; i++) {
    out[i] = out[30 + i] = (mp3_v4){0, 0, 0, 0};
    out[6 + i] = first[i];
    out[12 + i] = first[6 + i] + second[i];
    out[18 + i] = second[6 + i] + third[i];
    out[24 + i] = third[6 + i];
  }
}

/* The lines of four subbands, one subband a lane. */
static void gather(const float *line, mp3_v4 out[LONG_LINES]) {
  for (unsigned i = 0;; i = i + 4 <= LONG_LINES - 4 ? i + 4 : LONG_LINES - 4) {
    mp3_v4 a = mp3_load(line + i), b = mp3_load(line + LONG_LINES + i),
           c = mp3_load(line + 2 * LONG_LINES + i), d = mp3_load(line + 3 * LONG_LINES + i);
    mp3_transpose(&a, &b, &c, &d);
    out[i] = a, out[i + 1] = b, out[i + 2] = c, out[i + 3] = d;
    if (i == LONG_LINES - 4) break;
  }
}

void mp3_hybrid_run(mp3_hybrid *hybrid, const mp3_shape *shape, unsigned first, unsigned end,
                    const float *line, float *slot, unsigned stride) {
  const mp3_v4 inverted = {1, -1, 1, -1};
  for (unsigned subband = first; subband < end; subband += 4, line += 4 * LONG_LINES, slot += 4) {
    float *overlap = &hybrid->overlap[0][subband];
    mp3_v4 in[LONG_LINES], out[2 * LONG_LINES];
    if (subband * LONG_LINES >= shape->lines) {
      /* Nothing new here. What overlaps is mostly zero, too, but to look would cost as much. */
      for (unsigned i = 0; i < LONG_LINES; i++) {
        mp3_v4 old = mp3_load(overlap + i * MP3_SUBBANDS);
        mp3_store(slot + i * stride, i & 1 ? old * inverted : old);
        mp3_store(overlap + i * MP3_SUBBANDS, (mp3_v4){0, 0, 0, 0});
      }
      continue;
    }
    gather(line, in);
    if (shape->block_type == MP3_SHORT)
      short_block(in, out);
    else
      long_block(in, long_window[shape->block_type], out);
    if (shape->mixed && subband == 0) {
      mp3_v4 both[2 * LONG_LINES];
      long_block(in, long_window[MP3_LONG], both);
      for (unsigned i = 0; i < 2 * LONG_LINES; i++)
        out[i] = MP3_SHUFFLE(both[i], out[i], 0, 1, 6, 7);
    }
    for (unsigned i = 0; i < LONG_LINES; i++) {
      mp3_v4 sample = out[i] + mp3_load(overlap + i * MP3_SUBBANDS);
      mp3_store(slot + i * stride, i & 1 ? sample * inverted : sample);
      mp3_store(overlap + i * MP3_SUBBANDS, out[LONG_LINES + i]);
    }
  }
}
