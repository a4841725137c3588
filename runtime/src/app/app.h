/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Functions of this folder that its files and other folders call. */
#ifndef LVD_APP_APP_H
#define LVD_APP_APP_H

#include "../sched/sched.h"

/* ---- app.c ----------------------------------------------------------------------------------- */

void lvd_apps_free(lvd_runtime *rt);

/* ---- app_cores.c ----------------------------------------------------------------------------- */

/* Returns the cores that were reserved for `app` to all applications. Under the runtime's lock. */
void lvd_cores_back(lvd_app *app);
void lvd_core_put_back(lvd_worker *w); /* one core */

/* ---- app_control.c --------------------------------------------------------------------------- */

void lvd_app_retarget(lvd_app *app, lvd_entity *e, uint32_t worker);
/* Makes its held entities ready again, on each worker that knows the application. Does not wait. */
void lvd_app_requeue_held(lvd_app *app);
/* Waits until each activation of `app` that began before its phase or pause was set has ended. */
void lvd_app_wait_inactive(lvd_app *app);

/* ---- app_fibers.c ---------------------------------------------------------------------------- */

/* Cancels all of its fibers, and waits until they have returned. */
void lvd_fibers_cancel_and_wait(lvd_app *app);

/* ---- channel_growth.c ------------------------------------------------------------------------ */

/* Room or elements at which a parked side of a channel is woken, unless its network says so: a
 * quarter of the capacity, so that both sides overlap, and at most LVD_WAKE_BYTES, so that a large
 * channel lets one side run ahead without delaying the other. When the other side parks, it is
 * woken with what there is. */
enum { LVD_WAKE_BYTES = 4096 };
static inline uint32_t lvd_default_threshold(uint32_t capacity, uint32_t elem_size) {
  uint32_t quarter = (capacity + 3) / 4, most = LVD_WAKE_BYTES / elem_size;
  if (quarter <= most) return quarter;
  return most ? most : 1;
}
/* At quiescence with the gate closed: if the application is deadlocked only because a channel is
 * full, enlarges that channel and wakes its producer. False: it was not, or the channel may not
 * grow (app->refused). */
bool lvd_channels_grow(lvd_app *app);
/* Enlarges a channel to `capacity` elements, with its contents. The caller knows that nothing else
 * uses it. LVD_E_STATE: this channel does not grow; LVD_E_LIMIT: the application's memory limit, or
 * that of a channel. */
lvd_status lvd_channel_grow(lvd_app *app, uint32_t channel, uint32_t capacity);

/* ---- quiescence.c ---------------------------------------------------------------------------- */

/* To be called when `live` has become 0, or an external end has changed since. */
void lvd_app_check_quiescent(lvd_app *app);
/* Re-runs quiescence checks that were deferred from a signal handler. If `detect` is set, also runs
 * deadlock detection on suspects. Returns true if there was any suspect. */
bool lvd_deferred_checks_run(lvd_runtime *rt, bool detect);

/* ---- app_reaper.c ---------------------------------------------------------------------------- */

lvd_status lvd_reaper_start(lvd_runtime *rt);
void lvd_reapers_end(lvd_runtime *rt);
void lvd_reaper_main(void *rt);
/* After this time of waiting a reaper starts another one, which does its work meanwhile. */
enum { LVD_REAPER_PATIENCE_NS = 1000000 };
void lvd_reaper_spawn_backup(lvd_runtime *rt);

#endif
