/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The functions of fork_run.h with external linkage, for contenders in languages other than C. */
#include "fork_run.h"

void fork_run(const forked *k, const char *program, size_t size);
void fork_helped_begin(helped *h);
void fork_helped_wait(helped *h);

void fork_run(const forked *k, const char *program, size_t size) {
  run_forked(k, program, size);
  fflush(stdout);
}
void fork_helped_begin(helped *h) { helped_begin(h); }
void fork_helped_wait(helped *h) { helped_wait(h); }
