/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What the runtime calls for forks, for checks that have none. */
#include "src/fork/fork.h"
#include "src/sched/sched.h"

static lvd_fork_thread none;
lvd_fork_thread *model_fork_thread(void) { return &none; }

void lvd_forks_runtime_begins(lvd_runtime *rt) { (void)rt; }
void lvd_forks_runtime_ends(lvd_runtime *rt) { (void)rt; }
void lvd_forks_free(lvd_runtime *rt) { (void)rt; }
void lvd_forks_worker_ends(void) {}
bool lvd_forks_poll(lvd_worker *w) { return w == NULL; }
bool lvd_forks_before_sleep(lvd_worker *w, int64_t *most) {
  (void)most;
  return w == NULL;
}
bool lvd_forks_may_sleep(const lvd_worker *w) { return w != NULL; }
void lvd_forks_after_sleep(lvd_worker *w) { (void)w; }
void lvd_forks_suspend(lvd_worker *w, lvd_fiber *f) { (void)w, (void)f; }
bool lvd_forks_set_aside(lvd_worker *w, lvd_fiber *f) { return w != NULL && f != NULL; }
void lvd_forks_set_back_without(void) {}
void lvd_forks_resume(lvd_worker *w, lvd_fiber *f) { (void)w, (void)f; }
void lvd_forks_abandon(lvd_worker *w, lvd_fiber *f) { (void)w, (void)f; }
void lvd_forks_drop(lvd_fiber *f) { (void)f; }
void lvd_forks_abandon_suspended(lvd_app *app, lvd_fiber *f) { (void)app, (void)f; }
__attribute__((weak)) bool lvd_entity_is_pinned(const lvd_entity *e) { return e == NULL; }
__attribute__((weak)) bool lvd_fiber_is_of_thread(const lvd_entity *e) { return e == NULL; }
__attribute__((weak)) void lvd_forced_exit_check(lvd_worker *w) { (void)w; }
__attribute__((weak)) void lvd_stacks_abandon_forks(lvd_app *app) { (void)app; }
