/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Applications: what the files of this folder call of each other, and other folders of them. */
#ifndef LVD_APP_APP_H
#define LVD_APP_APP_H

#include "../sched/sched.h"

/* ---- app.c -------------------- */

void lvd_apps_free(lvd_runtime *rt);

/* ---- app_cores.c -------------------- */

/* The cores that were taken for `app` are all's again. Under the runtime's lock. */
void lvd_cores_back(lvd_app *app);
void lvd_core_put_back(lvd_worker *w); /* one of them */

/* ---- app_control.c -------------------- */

void lvd_app_retarget(lvd_app *app, lvd_entity *e, uint32_t worker);
/* What is held of it is ready again, where something of it is known. Nobody waits for that. */
void lvd_app_requeue_held(lvd_app *app);
/* Waits until no activation of `app` goes on that has begun before its phase or pause was set. */
void lvd_app_wait_inactive(lvd_app *app);

/* ---- app_fibers.c -------------------- */

void lvd_fibers_end(lvd_app *app); /* tells all of it, and waits until they have returned */

/* ---- quiescence.c -------------------- */

void lvd_app_check_quiescent(
    lvd_app *app); /* live has come to 0, or what is outside has changed since */
/* Judges who came to rest where nobody could be judged. True: there are suspects, or, where they are to be looked at since rest has lasted, there were some until now. */
bool lvd_deferred_checks_run(lvd_runtime *rt, bool look);

/* ---- app_reaper.c -------------------- */

lvd_status lvd_reaper_start(lvd_runtime *rt);
void lvd_reapers_end(lvd_runtime *rt);
void lvd_reaper_main(void *rt);
/* The keeper that calls this has waited for so long: another one does its work meanwhile. */
enum { LVD_REAPER_PATIENCE_NS = 1000000 };
void lvd_reaper_spawn_backup(lvd_runtime *rt);

#endif
