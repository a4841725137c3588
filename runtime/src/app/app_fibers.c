/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The fibers of an application: how they are cancelled, waited for, and counted.
 *
 * Pairs of orders
 *   announce: fibers + 1, [fence], load phase
 *                                        <> cancel_and_wait: phase ENDING, [fence], load fibers
 *   put_away: fibers - 1 (release, app_liveness.c) -> cancel_and_wait: fibers (acquire)
 *                                      none of the application's fibers runs any more */
#include "../stream/stream.h"
#include "app.h"

void lvd_fibers_cancel_and_wait(lvd_app *app) {
  lvd_fence_seq_cst();
  uint32_t left;
  while ((left = lvd_load_acquire_u32(&app->fibers)) != 0) {
    lvd_fibers_wake(app);
    /* again after 10 ms: a fiber may have been in transit at the first look */
    lvd_os_wait(&app->fibers, left, 10 * 1000000);
    if (lvd_load_relaxed_u32(&app->fibers) != left) continue;
    /* A long activation may have begun after lvd_app_wait_inactive looked at the workers. */
    lvd_watchdog_expect_exit(app);
    lvd_reaper_spawn_backup(app->rt);
  }
}

typedef struct fiber_list {
  lvd_fiber_counters *out;
  uint32_t n, max;
} fiber_list;

LVD_RACY_READ static void read_fiber(lvd_entity *e, void *argument) {
  fiber_list *r = argument;
  if (r->n++ >= r->max) return;
  lvd_fiber_counters *c = &r->out[r->n - 1];
  copy_name(c->name, e->name);
  c->worker = lvd_load_relaxed_u32(&e->worker);
  c->activations = lvd_load_relaxed_u64(&e->activations);
  c->busy_ns = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->busy_ticks));
  c->longest_ns = lvd_os_ticks_to_ns(lvd_load_relaxed_u64(&e->longest_ticks));
  c->waiting = lvd_load_relaxed_u32(&e->state) == LVD_IDLE;
}

lvd_status lvd_app_fibers(lvd_app *app, lvd_fiber_counters *out, uint32_t *count) {
  if (!app || !count || (*count && !out)) return LVD_E_ARGUMENT;
  fiber_list r = {out, 0, *count};
  lvd_fibers_each(app, read_fiber, &r);
  *count = r.n;
  return LVD_OK;
}
