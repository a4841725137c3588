/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the runtime calls for fibers, for checks that have none. */
#include <stdlib.h>

#include "src/app/app.h"
#include "src/blocking/blocking.h"
#include "src/deadlock/wait_report.h"
#include "src/rpc/unit.h"
#include "src/sched/sched.h"
#include "src/stream/stream.h"

uint64_t lvd_fibers_run(lvd_worker *w, lvd_entity *e, uint64_t now) {
  (void)w, (void)e;
  return now;
}
bool lvd_fiber_can_resume(lvd_entity *e) { return e == NULL; }
lvd_fiber *lvd_fiber_self(void) { return NULL; }
lvd_status lvd_fiber_wait(lvd_fiber *f, const lvd_wait_item *want, uint32_t count,
                          int64_t timeout_ns, uint32_t *which) {
  (void)f, (void)want, (void)count, (void)timeout_ns, (void)which;
  abort();
}
void lvd_fiber_preempted(void) {}
void lvd_fiber_remove_timer(lvd_worker *w, lvd_entity *e) { (void)w, (void)e; }
uint64_t lvd_actor_timers_next(const lvd_worker *w) {
  (void)w;
  return 0;
}
void lvd_actor_timers_expire(lvd_worker *w, uint64_t now) { (void)w, (void)now; }
void lvd_actor_timers_request_yield(lvd_worker *w, const lvd_entity *e, uint64_t now) {
  (void)w, (void)e, (void)now;
}
void lvd_fibers_cancel_and_wait(lvd_app *app) { (void)app; }
bool lvd_app_is_deadlocked(lvd_app *app) {
  (void)app;
  return false;
}
void lvd_app_save_wait_report(lvd_app *app) { (void)app; }
bool lvd_app_awaits_outside(lvd_app *app) {
  (void)app;
  return false;
}
void lvd_streams_free(lvd_app *app) { (void)app; }
void lvd_stream_thread_flush(void) {}
void lvd_streams_end(lvd_app *app, lvd_status outcome) { (void)app, (void)outcome; }
void lvd_units_free(lvd_app *app) { (void)app; }
void lvd_calls_free(lvd_runtime *rt) { (void)rt; }
void lvd_blocking_end(lvd_runtime *rt) { (void)rt; }
void lvd_call_returned(lvd_entity *e) { (void)e; }
void lvd_call_follow_actor(lvd_worker *w, lvd_entity *e) { (void)w, (void)e; }
void lvd_calls_recall(lvd_app *app) { (void)app; }
void lvd_inputs_end(lvd_app *app) { (void)app; }
void lvd_fd_watches_withdraw(lvd_entity *e) { (void)e; }
void lvd_fd_watches_keep_last(lvd_entity *e) { (void)e; }
bool lvd_stack_borrow(lvd_worker *w, lvd_entity *e) {
  (void)w, (void)e;
  return false;
}
void lvd_stack_enter(void *worker) { (void)worker; }
void lvd_stack_return(lvd_worker *w, lvd_entity *e, bool whole) { (void)w, (void)e, (void)whole; }
void lvd_stacks_free(lvd_app *app) { (void)app; }
void lvd_fiber_pool_init(lvd_runtime *rt) { (void)rt; }
void lvd_fiber_pool_free(lvd_runtime *rt) { (void)rt; }
void lvd_os_context_of_thread(lvd_os_context *c) { (void)c; }
bool lvd_os_thread_raise_priority(void) { return true; }
bool lvd_os_thread_set_realtime(uint32_t priority) {
  (void)priority;
  return true;
}
bool lvd_os_realtime_allowed(uint32_t priority) { return lvd_os_thread_set_realtime(priority); }
