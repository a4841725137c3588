/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Backup worker: a third worker of a core, for what is queued behind an overrun. Such entities
 * are migrated to other workers (overrun.c), and if all of those are in an overrun, to this one.
 * Its thread shares the core with the one in the overrun, as the kernel schedules them: an action
 * is never interrupted to run another one on the same thread, since it may hold any lock. When
 * the core's own worker is available again, each entity returns to it at its next activation.
 *
 * It is a worker like the others, but no entity is placed on it, it runs no stolen calls, and it
 * has no core lease. The watchdog starts it when it is first needed, since the worker in the
 * overrun is in a signal handler. If an action does not end here, the backup workers of other
 * cores are used. If all are in an overrun, the entity waits.
 *
 * Pair of orders: begun (priority_worker.c): store_release runs -> lvd_backup_worker:
 * load_acquire runs. Entities are handed over as always (entity.c). The state of an overrun is
 * advisory. */
#include "sched.h"

static lvd_worker *of_core(const lvd_runtime *rt, uint32_t core) {
  return &rt->worker[2 * rt->workers + core % rt->workers];
}
static lvd_worker *home_of(const lvd_worker *w) {
  return &w->rt->worker[w->index % w->rt->workers];
}

lvd_worker *lvd_backup_worker(const lvd_worker *w) {
  const lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; rt->has_backup_workers && i < rt->workers; i++) {
    lvd_worker *backup = of_core(rt, w->index + i); /* that of the same core first */
    if (backup != w && lvd_load_acquire_u32(&backup->runs) && !lvd_worker_is_overrun(backup) &&
        lvd_load_relaxed_u32(&home_of(backup)->available))
      return backup;
  }
  return NULL;
}

void lvd_backup_worker_request(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  uint32_t core = w->index % rt->workers;
  if (!rt->has_backup_workers || lvd_load_relaxed_u32(&of_core(rt, core)->runs)) return;
  for (uint32_t i = 0; i < rt->workers; i++) {
    const lvd_worker *other = &rt->worker[i];
    if (i != core && lvd_load_relaxed_u32(&other->available) && !lvd_worker_is_overrun(other))
      return;
  }
  lvd_worker_begin(rt, 2 * rt->workers + core, '+'); /* on failure the entities wait */
}

void lvd_backup_worker_goes_home(const lvd_worker *w, lvd_entity *e) {
  lvd_runtime *rt = w->rt;
  const lvd_worker *home = home_of(w);
  if (lvd_load_relaxed_u32(&e->target) != w->index || lvd_worker_is_overrun(home)) return;
  if (!lvd_os_try_lock(&rt->lock)) return; /* tried again at its next activation */
  uint32_t to = home->index;
  while (!lvd_core_is_for(&rt->worker[to], e->app)) to = (to + 1) % rt->workers;
  if (lvd_load_relaxed_u32(&e->target) == w->index) lvd_store_relaxed_u32(&e->target, to);
  lvd_os_unlock(&rt->lock);
}
