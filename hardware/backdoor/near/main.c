/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Main program of the near processor: runs all checks and measurements. */
#include "check.h"
#include "near.h"

LVD_NORETURN void run_all(void);

void run_all(void) {
  check_faults();
  measure_bridge();
  measure_benchmarks();
  bridge_write(BRIDGE_FINISH, check_all() ? 0 : 1);
  for (;;) continue;
}
