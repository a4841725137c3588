/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reports of what waits for what, and the test for deadlock. */
#ifndef LVD_DEADLOCK_WAIT_REPORT_H
#define LVD_DEADLOCK_WAIT_REPORT_H

#include "../sched/sched.h"

size_t lvd_fibers_wait_report(lvd_app *app, char *text, size_t size);
size_t lvd_fibers_running_report(lvd_app *app, char *text,
                                 size_t size); /* only fibers that have a worker */
void lvd_app_save_wait_report(lvd_app *app);   /* saves the report before its waiters have gone */
/* Program threads or other processes have ends of its streams, or calls of it. */
bool lvd_app_awaits_outside(lvd_app *app);

/* Returns true if fibers or threads are deadlocked. Called at quiescence with the gate closed. A
 * deadlock across processes is found later (deadlock_detect.h). */
bool lvd_app_is_deadlocked(lvd_app *app);

#endif
