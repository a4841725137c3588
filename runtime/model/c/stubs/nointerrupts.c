/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Interrupting a fiber, for checks in which none computes for long. */
#include "src/sched/sched.h"

void lvd_interrupt_knock(lvd_worker *w) { (void)w; }
