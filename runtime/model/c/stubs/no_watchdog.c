/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The watchdog, for checks without one: no thread blocks in the system. */
#include "src/sched/sched.h"

void lvd_watchdog_begin(lvd_worker *w) { (void)w; }
void lvd_watchdog_awake(lvd_worker *w) { (void)w; }
void lvd_watchdog_asleep(lvd_worker *w) { (void)w; }
void lvd_watchdog_expect_exit(lvd_app *app) { (void)app; }
void lvd_watchdog_expect_pause(lvd_worker *w, lvd_app *app) { (void)w, (void)app; }
lvd_status lvd_watchdog_start(lvd_runtime *rt) { return rt ? LVD_OK : LVD_E_ARGUMENT; }
void lvd_watchdog_end(lvd_runtime *rt) { (void)rt; }
