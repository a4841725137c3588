/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The list of waiting threads, for checks without deadlock detection. */
#include "src/wait/thread_waiters.h"

void lvd_thread_waiter_enter(lvd_thread_waiter *w, const lvd_wait_item *want, uint32_t wants,
                             lvd_wait_point *wait_point, bool timed) {
  (void)w, (void)want, (void)wants, (void)wait_point, (void)timed;
}
void lvd_thread_waiters_inside(lvd_app *app) { (void)app; }
void lvd_thread_waiters_outside(lvd_app *app) { (void)app; }
void lvd_thread_waiter_enter_for_end(lvd_thread_waiter *w, lvd_app *app) { (void)w, (void)app; }
void lvd_thread_waiter_sleeps(const lvd_thread_waiter *w) { (void)w; }
void lvd_thread_waiter_leave(lvd_thread_waiter *w) { (void)w; }
lvd_status lvd_thread_waiter_status(const lvd_thread_waiter *w) {
  (void)w;
  return LVD_E_TIMEOUT;
}
bool lvd_thread_waiters_any(void) { return false; }
void lvd_thread_waiters_tell(const lvd_app *app, lvd_status status) { (void)app, (void)status; }
void lvd_thread_waiters_release(lvd_app *app) { (void)app; }
