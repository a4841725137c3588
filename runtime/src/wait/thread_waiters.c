/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The list of the threads that wait, and of what they wait for. */
#include "thread_waiters.h"

#include "../sched/fiber.h"

static struct {
  lvd_os_mutex lock;
  lvd_thread_waiter *first;
  lvd_a32 count;
  uint64_t serial;
} list;

static void enter(lvd_thread_waiter *w, lvd_app *app, bool timed) {
  w->app = app;
  w->timed = timed;
  w->user = lvd_caller();
  w->thread = lvd_os_thread_id();
  w->is_deadlocked = false;
  lvd_store_relaxed_u32(&w->forced_status, LVD_E_TIMEOUT);
  lvd_os_lock(&list.lock);
  w->serial = ++list.serial;
  w->previous = NULL;
  w->next = list.first;
  if (w->next) w->next->previous = w;
  list.first = w;
  if (!timed) lvd_store_relaxed_u32(&list.count, lvd_load_relaxed_u32(&list.count) + 1);
  lvd_os_unlock(&list.lock);
}

/* A thread that waits for items of several applications, or for an item that only the program can
 * meet, cannot be found deadlocked by one of them: it is not listed. */
void lvd_thread_waiter_enter(lvd_thread_waiter *w, const lvd_wait_item *want, uint32_t wants,
                             lvd_wait_point *wait_point, bool timed) {
  lvd_app *app = lvd_hooks.deadlock.app_awaited(&want[0]);
  for (uint32_t i = 1; i < wants; i++)
    if (lvd_hooks.deadlock.app_awaited(&want[i]) != app) app = NULL;
  w->app = NULL;
  if (!app) return;
  w->want = want;
  w->wants = wants;
  w->wait_point = wait_point;
  enter(w, app, timed);
}

void lvd_thread_waiter_enter_for_end(lvd_thread_waiter *w, lvd_app *app) {
  w->want = NULL;
  w->wants = 0;
  w->wait_point = NULL;
  enter(w, app, false);
}

void lvd_thread_waiter_sleeps(const lvd_thread_waiter *w) {
  lvd_app *app = w->app;
  if (!app || w->timed || lvd_load_acquire_u32(&app->live) ||
      lvd_load_relaxed_u32(&app->phase) != LVD_PHASE_RUNNING)
    return;
  if (!lvd_load_relaxed_u32(&app->suspect) && !lvd_exchange_relaxed_u32(&app->suspect, 1))
    lvd_reaper_wake(app->rt);
}

void lvd_thread_waiter_leave(lvd_thread_waiter *w) {
  if (!w->app) return;
  lvd_os_lock(&list.lock);
  if (w->previous)
    w->previous->next = w->next;
  else
    list.first = w->next;
  if (w->next) w->next->previous = w->previous;
  if (!w->timed) lvd_store_relaxed_u32(&list.count, lvd_load_relaxed_u32(&list.count) - 1);
  lvd_os_unlock(&list.lock);
}

lvd_status lvd_thread_waiter_status(const lvd_thread_waiter *w) {
  return w->app ? (lvd_status)lvd_load_relaxed_u32(&w->forced_status) : LVD_E_TIMEOUT;
}

/* ---- deadlock detection --------------------------------------------------------------------- */

void lvd_thread_waiters_lock(void) {
  lvd_os_lock(&list.lock);
  lvd_fence_seq_cst();
}
void lvd_thread_waiters_unlock(void) { lvd_os_unlock(&list.lock); }
lvd_thread_waiter *lvd_thread_waiters_first(void) { return list.first; }
bool lvd_thread_waiters_any(void) { return lvd_load_relaxed_u32(&list.count) != 0; }

static void wake(lvd_thread_waiter *w) {
  if (lvd_exchange_relaxed_u32(&w->wait_point->asleep, 0)) lvd_os_wake(&w->wait_point->asleep);
}

void lvd_thread_waiters_tell(const lvd_app *app, lvd_status status) {
  if (lvd_load_relaxed_u32(&app->outcome) && lvd_app_exit_status(app) != status) return;
  /* All are told before the first one wakes and ends what the next one waits for. */
  lvd_thread_waiters_lock();
  for (lvd_thread_waiter *w = list.first; w; w = w->next)
    if (w->app == app && w->is_deadlocked) lvd_store_relaxed_u32(&w->forced_status, status);
  lvd_fence_seq_cst();
  /* Each sleeps on this, or checks before it does. */
  for (lvd_thread_waiter *w = list.first; w; w = w->next)
    if (w->app == app && w->is_deadlocked) wake(w);
  lvd_thread_waiters_unlock();
}

/* ---- before the streams of an application are freed ----------------------------------------- */

void lvd_thread_waiters_inside(lvd_app *app) {
  if (!lvd_fiber_self()) lvd_add_acq_rel_u32(&app->inside, 1);
}

void lvd_thread_waiters_outside(lvd_app *app) {
  if (!lvd_fiber_self()) lvd_add_acq_rel_u32(&app->inside, UINT32_MAX);
}

void lvd_thread_waiters_release(lvd_app *app) {
  for (;; lvd_os_sleep(100000)) {
    lvd_thread_waiters_lock();
    bool any = lvd_load_acquire_u32(&app->inside);
    for (lvd_thread_waiter *w = list.first; w; w = w->next) {
      if (w->app != app) continue;
      any = true;
      if (lvd_load_relaxed_u32(&w->forced_status) == LVD_E_TIMEOUT)
        lvd_store_relaxed_u32(&w->forced_status, LVD_E_STOPPED);
    }
    lvd_fence_seq_cst();
    for (lvd_thread_waiter *w = list.first; w; w = w->next)
      if (w->app == app && w->wait_point) wake(w);
    lvd_thread_waiters_unlock();
    if (!any) return;
  }
}
