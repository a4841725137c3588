/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The list of the threads that wait, for checks where nobody judges whether they wait in vain. */
#include "src/wait/thread_waiters.h"

void lvd_waiting_enter(lvd_waiting *w, const lvd_want *want, uint32_t wants, lvd_sleeper *sleeper,
                       bool timed) {
  (void)w, (void)want, (void)wants, (void)sleeper, (void)timed;
}
void lvd_waiting_inside(lvd_app *app) { (void)app; }
void lvd_waiting_outside(lvd_app *app) { (void)app; }
void lvd_waiting_enter_for_end(lvd_waiting *w, lvd_app *app) { (void)w, (void)app; }
void lvd_waiting_sleeps(const lvd_waiting *w) { (void)w; }
void lvd_waiting_leave(lvd_waiting *w) { (void)w; }
lvd_status lvd_waiting_told(const lvd_waiting *w) {
  (void)w;
  return LVD_E_TIME;
}
bool lvd_waiting_any(void) { return false; }
void lvd_waiting_tell(const lvd_app *app, lvd_status status) { (void)app, (void)status; }
void lvd_waiting_let_out(lvd_app *app) { (void)app; }
