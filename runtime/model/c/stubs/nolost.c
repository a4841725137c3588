/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Lost time, for checks in which nobody else has the cores. */
#include "src/sched/sched.h"

void lvd_lost_begin(lvd_worker *w) { w->lost.least = w->lost.lasts = UINT64_MAX; }
void lvd_lost_look(lvd_worker *w, uint64_t now) { (void)w, (void)now; }
void lvd_lost_forget(lvd_worker *w, uint64_t now) { (void)w, (void)now; }
uint64_t lvd_lost_before(const lvd_worker *w, uint64_t activation) {
  return (void)w, (void)activation, 0;
}
uint64_t lvd_lost_meanwhile(const lvd_worker *w, uint64_t now) { return (void)w, (void)now, 0; }
