/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Steal-time accounting, for checks in which no other process has the cores. */
#include "src/sched/sched.h"

void lvd_steal_time_init(lvd_worker *w) {
  w->steal.min_activation_ticks = w->steal.sample_valid_ticks = UINT64_MAX;
}
void lvd_steal_time_update(lvd_worker *w, uint64_t now) { (void)w, (void)now; }
void lvd_steal_time_reset(lvd_worker *w, uint64_t now) { (void)w, (void)now; }
uint64_t lvd_steal_time_before(const lvd_worker *w, uint64_t activation) {
  return (void)w, (void)activation, 0;
}
uint64_t lvd_steal_time_pending(const lvd_worker *w, uint64_t now) { return (void)w, (void)now, 0; }
