/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Sine and cosine for programs that compute tables, since there is no libm without an operating
 * system. Accurate to two ulps for angles below 30000; a larger angle or a NaN yields NaN. */
double sin(double x);
double cos(double x);

/* For -pi/4 to pi/4, plus a small remainder: terms of the Taylor series until the next one is below
 * half an ulp. */
static double near_sin(double x, double rest) {
  double xx = x * x, sum = 0;
  for (int n = 19; n >= 3; n -= 2) sum = (1 + sum) * -xx / (n * (n - 1));
  return x + (x * sum + rest);
}

static double near_cos(double x, double rest) {
  double xx = x * x, sum = 0;
  for (int n = 20; n >= 2; n -= 2) sum = (1 + sum) * -xx / (n * (n - 1));
  return 1 + (sum - x * rest);
}

/* The sine of x plus `quarters` quarter turns. pi/2 is split into three parts (Cody and Waite):
 * integer multiples of the first two are exact, and the rounding error of the second subtraction is
 * carried as the remainder. */
static double turned(double x, int quarters) {
  if (!(x > -30000 && x < 30000)) return __builtin_nan("");
  double of = x * 0x1.45f306dc9c883p-1;
  int whole = (int)(of < 0 ? of - 0.5 : of + 0.5);
  double most = x - whole * 0x1.921fb544p+0, less = whole * 0x1.0b4611a6p-34, near = most - less;
  double rest = ((most - near) - less) - whole * 0x1.3198a2e037073p-69;
  unsigned which = (unsigned)(whole + quarters);
  double y = which & 1 ? near_cos(near, rest) : near_sin(near, rest);
  return which & 2 ? -y : y;
}

double sin(double x) { return turned(x, 0); }
double cos(double x) { return turned(x, 1); }
