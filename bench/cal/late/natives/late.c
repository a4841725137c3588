/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* When elements are due, and how late they come. */
#include <levada/native.h>
#include <time.h>

enum { EVERY_NS = 1000000 };

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t late_due(int32_t given) {
  static const char key;
  int64_t *first = lvd_app_data(lvd_current_app(), &key, sizeof *first, NULL);
  if (!*first) *first = now() + EVERY_NS;
  int64_t due = *first + (int64_t)given * EVERY_NS;
  lvd_wait_until(due);
  return due;
}

int64_t late_by(int64_t due) { return now() - due; }
