/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The standard's matrix of 64 × 32 cosines has 32 different rows but for signs: those of a DCT-II
 * C of the 32 samples. Written with C, the window's sum of 16 products for output j is
 *
 *   out[j]      = Σ C₂ᵢ[16+j] D[64i+j]      - C₂ᵢ₊₁[16-j] D[64i+32+j]
 *   out[32 - j] = Σ -C₂ᵢ[16+j] D[64i+32-j]  - C₂ᵢ₊₁[16-j] D[64i+64-j]     i = 0 ... 7
 *
 * where Cₙ is the transform n slots ago. So j and 32 - j look at the same values, and four
 * neighbouring j fill a vector. */
#include "synthesis.h"
#include "vector.h"
#include <math.h>

enum { TAPS = 8 };

/* The first half of the standard's window D, and its middle, in 1/65536. */
static const int32_t half_window[257] = {
    0,      -1,     -1,     -1,     -1,     -1,     -1,     -2,     -2,     -2,     -2,     -3,
    -3,     -4,     -4,     -5,     -5,     -6,     -7,     -7,     -8,     -9,     -10,    -11,
    -13,    -14,    -16,    -17,    -19,    -21,    -24,    -26,    -29,    -31,    -35,    -38,
    -41,    -45,    -49,    -53,    -58,    -63,    -68,    -73,    -79,    -85,    -91,    -97,
    -104,   -111,   -117,   -125,   -132,   -139,   -147,   -154,   -161,   -169,   -176,   -183,
    -190,   -196,   -202,   -208,   213,    218,    222,    225,    227,    228,    228,    227,
    224,    221,    215,    208,    200,    189,    177,    163,    146,    127,    106,    83,
    57,     29,     -2,     -36,    -72,    -111,   -153,   -197,   -244,   -294,   -347,   -401,
    -459,   -519,   -581,   -645,   -711,   -779,   -848,   -919,   -991,   -1064,  -1137,  -1210,
    -1283,  -1356,  -1428,  -1498,  -1567,  -1634,  -1698,  -1759,  -1817,  -1870,  -1919,  -1962,
    -2001,  -2032,  -2057,  -2075,  -2085,  -2087,  -2080,  -2063,  2037,   2000,   1952,   1893,
    1822,   1739,   1644,   1535,   1414,   1280,   1131,   970,    794,    605,    402,    185,
    -45,    -288,   -545,   -814,   -1095,  -1388,  -1692,  -2006,  -2330,  -2663,  -3004,  -3351,
    -3705,  -4063,  -4425,  -4788,  -5153,  -5517,  -5879,  -6237,  -6589,  -6935,  -7271,  -7597,
    -7910,  -8209,  -8491,  -8755,  -8998,  -9219,  -9416,  -9585,  -9727,  -9838,  -9916,  -9959,
    -9966,  -9935,  -9863,  -9750,  -9592,  -9389,  -9139,  -8840,  -8492,  -8092,  -7640,  -7134,
    6574,   5959,   5288,   4561,   3776,   2935,   2037,   1082,   70,     -998,   -2122,  -3300,
    -4533,  -5818,  -7154,  -8540,  -9975,  -11455, -12980, -14548, -16155, -17799, -19478, -21189,
    -22929, -24694, -26482, -28289, -30112, -31947, -33791, -35640, -37489, -39336, -41176, -43006,
    -44821, -46617, -48390, -50137, -51853, -53534, -55178, -56778, -58333, -59838, -61289, -62684,
    -64019, -65290, -66494, -67629, -68692, -69679, -70590, -71420, -72169, -72835, -73415, -73908,
    -74313, -74630, -74856, -74992, 75038};

/* The window's factors in the order of use: for four outputs from 4 × the first index, for each
 * tap i: of out[j] even and odd slots, of out[32 - j] even and odd slots. */
static _Alignas(16) float taps[4][TAPS][4][4];
static float middle_taps[TAPS]; /* of out[16] */

static float fold32[16], fold16[8], fold8[4]; /* 1 / 2 cos π(2k+1)/2N */

/* D[i] for i from 0 to 511. The prototype is even about 256, and D changes its sign every 64. */
static float window(unsigned i) {
  int32_t value = half_window[i <= 256 ? i : 512 - i];
  if (i > 256 && i % 64 != 0) value = -value;
  return (float)value / 65536.0f;
}

void mp3_synthesis_prepare(void) {
  for (unsigned i = 0; i < TAPS; i++) {
    for (unsigned j = 0; j < 16; j++) {
      float(*four)[4] = taps[j / 4][i];
      four[0][j % 4] = window(64 * i + j);
      four[1][j % 4] = -window(64 * i + 32 + j);
      four[2][j % 4] = -window(64 * i + 32 - j);
      four[3][j % 4] = j ? -window(64 * i + 64 - j) : 0;
    }
    middle_taps[i] = -window(64 * i + 48);
  }
  for (unsigned k = 0; k < 16; k++) fold32[k] = (float)(0.5 / cos(M_PI * (2 * k + 1) / 64));
  for (unsigned k = 0; k < 8; k++) fold16[k] = (float)(0.5 / cos(M_PI * (2 * k + 1) / 32));
  for (unsigned k = 0; k < 4; k++) fold8[k] = (float)(0.5 / cos(M_PI * (2 * k + 1) / 16));
}

/* DCT-II by Lee's way: the even values are a DCT-II of half the length of x[k] + x[n-1-k]; the odd
 * ones sums of neighbours of one of (x[k] - x[n-1-k]) / 2 cos π(2k+1)/2n. */
static inline void dct4(mp3_v4 x[4]) {
  const float fold0 = 0.54119610f, fold1 = 1.30656296f, root = 0.70710678f;
  mp3_v4 sum0 = x[0] + x[3], sum1 = x[1] + x[2];
  mp3_v4 odd0 = (x[0] - x[3]) * fold0, odd1 = (x[1] - x[2]) * fold1;
  x[0] = sum0 + sum1;
  x[2] = (sum0 - sum1) * root;
  x[3] = (odd0 - odd1) * root;
  x[1] = odd0 + odd1 + x[3];
}

static inline void dct8(mp3_v4 x[8]) {
  mp3_v4 even[4], odd[4];
  MP3_UNROLL
  for (unsigned k = 0; k < 4; k++) {
    even[k] = x[k] + x[7 - k];
    odd[k] = (x[k] - x[7 - k]) * fold8[k];
  }
  dct4(even);
  dct4(odd);
  MP3_UNROLL
  for (unsigned k = 0; k < 4; k++) {
    x[2 * k] = even[k];
    x[2 * k + 1] = k < 3 ? odd[k] + odd[k + 1] : odd[k];
  }
}

static inline void dct16(mp3_v4 x[16]) {
  mp3_v4 even[8], odd[8];
  MP3_UNROLL
  for (unsigned k = 0; k < 8; k++) {
    even[k] = x[k] + x[15 - k];
    odd[k] = (x[k] - x[15 - k]) * fold16[k];
  }
  dct8(even);
  dct8(odd);
  MP3_UNROLL
  for (unsigned k = 0; k < 8; k++) {
    x[2 * k] = even[k];
    x[2 * k + 1] = k < 7 ? odd[k] + odd[k + 1] : odd[k];
  }
}

/* The transforms of four slots, one slot a lane. */
static void dct32(mp3_v4 x[32]) {
  mp3_v4 even[16], odd[16];
  MP3_UNROLL
  for (unsigned k = 0; k < 16; k++) {
    even[k] = x[k] + x[31 - k];
    odd[k] = (x[k] - x[31 - k]) * fold32[k];
  }
  dct16(even);
  dct16(odd);
  MP3_UNROLL
  for (unsigned k = 0; k < 16; k++) {
    x[2 * k] = even[k];
    x[2 * k + 1] = k < 15 ? odd[k] + odd[k + 1] : odd[k];
  }
}

/* Transforms four slots into four rows. */
static void transform(const float (*slot)[MP3_SUBBANDS], float (*row)[MP3_SUBBANDS],
                      float *zeroth) {
  mp3_v4 x[32];
  for (unsigned i = 0; i < 32; i += 4) {
    for (unsigned k = 0; k < 4; k++) x[i + k] = mp3_load(slot[k] + i);
    mp3_transpose(&x[i], &x[i + 1], &x[i + 2], &x[i + 3]);
  }
  dct32(x);
  mp3_store(zeroth, x[0]);
  for (unsigned j = 0; j < 16; j += 4) {
    mp3_v4 up[4] = {x[16 + j], x[17 + j], x[18 + j], x[19 + j]};
    mp3_v4 down[4] = {x[16 - j], x[15 - j], x[14 - j], x[13 - j]};
    mp3_transpose(&up[0], &up[1], &up[2], &up[3]);
    mp3_transpose(&down[0], &down[1], &down[2], &down[3]);
    for (unsigned k = 0; k < 4; k++) {
      mp3_store(row[k] + j, up[k]);
      mp3_store(row[k] + 16 + j, down[k]);
    }
  }
}

/* The outputs of two slots, of which `row` is the first one's; the rows before it are the past. */
static void filter(const float (*row)[MP3_SUBBANDS], const float *zeroth, float *out) {
  for (unsigned block = 0; block < 4; block++) {
    mp3_v4 low0 = {0, 0, 0, 0}, low1 = low0, high0 = low0, high1 = low0;
    const float *at = row[0] + 4 * block;
    for (unsigned i = 0; i < TAPS; i++, at -= 2 * MP3_SUBBANDS) {
      const float(*four)[4] = taps[block][i];
      mp3_v4 low_even = mp3_load(four[0]), low_odd = mp3_load(four[1]);
      mp3_v4 high_even = mp3_load(four[2]), high_odd = mp3_load(four[3]);
      mp3_v4 even = mp3_load(at), odd = mp3_load(at - MP3_SUBBANDS + 16);
      low0 += even * low_even + odd * low_odd;
      high0 += even * high_even + odd * high_odd;
      even = mp3_load(at + MP3_SUBBANDS), odd = mp3_load(at + 16);
      low1 += even * low_even + odd * low_odd;
      high1 += even * high_even + odd * high_odd;
    }
    /* Of the first block, out[32] is none. */
    if (block) {
      mp3_store(out + 29 - 4 * block, mp3_reverse(high0));
      mp3_store(out + 61 - 4 * block, mp3_reverse(high1));
    } else {
      for (unsigned j = 1; j < 4; j++) out[32 - j] = high0[j], out[64 - j] = high1[j];
    }
    mp3_store(out + 4 * block, low0);
    mp3_store(out + 32 + 4 * block, low1);
  }
  float middle0 = 0, middle1 = 0;
  for (int i = 0; i < TAPS; i++) {
    middle0 += zeroth[-2 * i - 1] * middle_taps[i];
    middle1 += zeroth[-2 * i] * middle_taps[i];
  }
  out[16] = middle0;
  out[48] = middle1;
}

void mp3_synthesis_run(mp3_synthesis *synthesis, const mp3_subbands *subbands, mp3_sound *sound) {
  if (MP3_PAST + synthesis->used + MP3_SLOTS > MP3_ROWS) {
    memmove(synthesis->row[0], synthesis->row[synthesis->used], MP3_PAST * sizeof *synthesis->row);
    memmove(synthesis->zeroth, synthesis->zeroth + synthesis->used,
            MP3_PAST * sizeof *synthesis->zeroth);
    synthesis->used = 0;
  }
  unsigned at = MP3_PAST + synthesis->used;
  /* Eighteen slots are four and a half times four: the last four begin two back. */
  for (unsigned slot = 0; slot < MP3_SLOTS; slot += 4) {
    unsigned from = slot + 4 <= MP3_SLOTS ? slot : MP3_SLOTS - 4;
    transform(&subbands->slot[from], &synthesis->row[at + from], &synthesis->zeroth[at + from]);
  }
  for (unsigned slot = 0; slot < MP3_SLOTS; slot += 2)
    filter((const float(*)[MP3_SUBBANDS]) & synthesis->row[at + slot],
           &synthesis->zeroth[at + slot], sound->sample + 32 * slot);
  synthesis->used += MP3_SLOTS;
}
