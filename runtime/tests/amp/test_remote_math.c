/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sine and cosine of the remote library, compared with this system's in long double. */
#include "../support/test.h"

#include <float.h>
#include <math.h>

/* Renamed, since this system's functions are needed, too. */
#define sin far_sin
#define cos far_cos
#include "remote/math.c"
#undef sin
#undef cos

/* The error in units of the last place of a double. */
static double ulps(double got, long double want) {
  int e;
  frexpl(want, &e);
  return (double)(fabsl(got - want) / ldexpl(1, e - DBL_MANT_DIG));
}

static void both(double x) {
  double s = ulps(far_sin(x), sinl(x)), c = ulps(far_cos(x), cosl(x));
  if (!(s <= 2) || !(c <= 2)) fprintf(stderr, "of %a: %g and %g ulps\n", x, s, c);
  CHECK(s <= 2);
  CHECK(c <= 2);
}

void test_far_math(void) {
  /* Tables of a decoder: fractions of a turn. */
  for (int n = 1; n <= 72; n++)
    for (int k = 0; k < 4 * n; k++) both(M_PI / n * (k + 0.5));
  /* Near multiples of a quarter turn, where cancellation is largest. */
  for (int k = -19000; k <= 19000; k += 7) {
    double at = k * M_PI_2;
    if (k) both(at);
    both(nextafter(at, 1e9));
    both(nextafter(at, -1e9));
    both(at + 1e-7);
  }
  uint64_t seed = 1;
  for (int i = 0; i < 200000; i++) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    both(((double)(seed >> 11) * 0x1p-53 * 2 - 1) * (i % 2 ? 29999 : 4));
  }
  CHECK(far_sin(0) == 0 && far_cos(0) == 1);
  CHECK(isnan(far_sin(30000)) && isnan(far_cos(-30000)));
  CHECK(isnan(far_sin(INFINITY)) && isnan(far_cos(NAN)));
}
