/* SPDX-License-Identifier: Apache-2.0 OR MIT */
#include "check.h"

#include "../bridge.h"

static uint32_t passed, failed;

void print(const char *text) {
  while (*text) bridge_write(BRIDGE_PRINT, (uint8_t)*text++);
}

void print_number(uint32_t value, uint32_t width) {
  char digits[32];
  uint32_t n = 0;
  do digits[n++] = (char)('0' + value % 10);
  while (value /= 10);
  while (n < width && n < sizeof digits) digits[n++] = ' ';
  while (n) bridge_write(BRIDGE_PRINT, (uint8_t)digits[--n]);
}

void print_ratio(uint32_t hundredths) {
  print_number(hundredths / 100, 0);
  print(hundredths % 100 < 10 ? ".0" : ".");
  print_number(hundredths % 100, 0);
}

void check(const char *what, bool good) {
  print(good ? "ok   " : "FAIL ");
  print(what);
  print("\n");
  if (good)
    passed++;
  else
    failed++;
}

bool check_all(void) {
  print_number(passed, 0);
  print(" passed, ");
  print_number(failed, 0);
  print(" failed\n");
  return failed == 0;
}
