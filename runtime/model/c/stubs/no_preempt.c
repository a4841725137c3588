/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Interrupting a fiber, for checks in which none computes for long. */
#include "src/sched/sched.h"

void lvd_send_preempt(lvd_worker *w) { (void)w; }
