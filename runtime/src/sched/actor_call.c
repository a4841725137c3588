/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* An actor with a pending call: in the middle of a firing it waits for something that is no
 * wake mark of a channel, namely a blocking call (blocking/) or a time (actor_timer.c). It
 * stays RUNNING and is in no queue. The call returns as a wake-up does, through the inbox of
 * its worker, or of the worker to which the actor has been moved meanwhile.
 *
 * Pairs of orders
 *   follow: store_release worker    -> back, follow: load_acquire worker  all the old owner did
 *   back:  add_release calls_out    -> recall: load_acquire calls_out   nothing is posted any more
 */
#include "fiber.h"

void lvd_actor_begin_call(lvd_entity *e) {
  lvd_app *app = e->app;
  lvd_actor_publish(&e->actor);
  lvd_store_relaxed_u32(&e->call_pending, 1);
  lvd_add_relaxed_u32(&app->calls_out, 1);
  /* It counts as in transit until it is drained from the inbox. */
  lvd_add_relaxed_u32(&app->live, 1);
}

void lvd_actor_suspend_for_call(lvd_worker *w, lvd_entity *e) {
  w->abandonable = 0;
  lvd_fence_compiler();
  lvd_actor_begin_call(
      e); /* the call may already have returned to this worker, which still runs the actor */
  lvd_stack_suspend(w, e);
  lvd_fence_compiler();
}

void lvd_call_complete(lvd_entity *e) {
  lvd_runtime *rt = e->app->rt;
  lvd_worker *owner = &rt->worker[lvd_load_acquire_u32(&e->worker)];
  uint32_t sleep;
  if (lvd_inbox_post(&owner->inbox, rt->slot, e->slot, e->level, &sleep)) {
    lvd_os_wake(&owner->inbox.waiting);
    lvd_inbox_ack_wake(&owner->inbox, sleep);
  }
}

void lvd_call_follow_actor(lvd_worker *w, lvd_entity *e) {
  uint32_t target = lvd_load_relaxed_u32(&e->target);
  if (lvd_load_acquire_u32(&e->worker) != w->index || !lvd_load_relaxed_u32(&e->call_pending) ||
      target == w->index || lvd_entity_is_pinned(e))
    return;
  lvd_pending_park_remove(w, e);
  e->actor.yield = &w->rt->worker[target].yield;
  lvd_store_release_u32(&e->worker, target);
  lvd_actor_timer_follow(w, e);
}

void lvd_call_uncount(lvd_app *app) {
  if (lvd_add_release_u32(&app->calls_out, UINT32_MAX) == 1) lvd_os_wake(&app->calls_out);
}

void lvd_call_returned(lvd_entity *e) {
  lvd_store_relaxed_u32(&e->call_pending, 0);
  lvd_call_uncount(e->app);
}
