/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Who waits for whom, as text; and whether any of it waits in vain. */
#ifndef LVD_WAIT_REPORT_H
#define LVD_WAIT_REPORT_H

#include "../sched/sched.h"

size_t lvd_fibers_wait_report(lvd_app *app, char *text, size_t size);
size_t lvd_fibers_running_report(lvd_app *app, char *text,
                                 size_t size); /* only those that have a worker */
void lvd_app_save_wait_report(lvd_app *app);   /* keeps it, for when they have gone */
bool lvd_app_awaits_outside(lvd_app *app); /* threads or other processes have ends of its streams,
                                                 or calls */

/* Do fibers, or threads, wait in vain? At rest, the gate closed. It may be found out later (deadlock_detect.h). */
bool lvd_app_is_deadlocked(lvd_app *app);

#endif
