/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Where the measured networks hand in what they have computed. */
#include <levada/native.h>
#include <stdint.h>
#include <stdlib.h>

void bench_result(uint32_t sum) {
  lvd_app *app = lvd_current_app();
  const char *expected = lvd_app_option(app, "expected");
  if (!expected || strtoul(expected, NULL, 10) != sum)
    lvd_native_fail("wrong result: the sum is %u, not %s", sum, expected ? expected : "given");
  lvd_app_progress(app, "results", 1);
}
