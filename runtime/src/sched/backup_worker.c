/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Relief: a third worker of a core, for what waits behind an action that does not end. Such is given to other workers
 * (overrun.c); where each of them is held up so, to this one. Its thread has the core in turn with the one that is
 * stuck, as the system sees fit: no action is ever interrupted for another one on the same thread, in the middle
 * of whatever locks it holds. When that one has come back, what is here goes home, each as its turn comes.
 *
 * It is a worker like the others, but nothing is placed on it, it forks no work off, and it has no lease of its own.
 * It is started when it is first needed, by the watchdog, since who is stuck is in a signal's handler. What does not
 * end here holds up this one; then the reliefs of other cores are left. Where all are held up, it waits.
 *
 * Pair of orders: begun (priority_worker.c): store_release runs -> lvd_backup_worker: load_acquire runs. What is handed over is handed
 * over as always (entity.c). Who is stuck is advice. */
#include "sched.h"

static lvd_worker *of_core(const lvd_runtime *rt, uint32_t core) {
  return &rt->worker[2 * rt->workers + core % rt->workers];
}
static lvd_worker *home_of(const lvd_worker *w) {
  return &w->rt->worker[w->index % w->rt->workers];
}

lvd_worker *lvd_backup_worker(const lvd_worker *w) {
  const lvd_runtime *rt = w->rt;
  for (uint32_t i = 0; rt->relieved && i < rt->workers; i++) {
    lvd_worker *relief = of_core(rt, w->index + i); /* the own core's first */
    if (relief != w && lvd_load_acquire_u32(&relief->runs) && !lvd_worker_is_overrun(relief) &&
        lvd_load_relaxed_u32(&home_of(relief)->given))
      return relief;
  }
  return NULL;
}

void lvd_backup_worker_request(const lvd_worker *w) {
  lvd_runtime *rt = w->rt;
  uint32_t core = w->index % rt->workers;
  if (!rt->relieved || lvd_load_relaxed_u32(&of_core(rt, core)->runs)) return;
  for (uint32_t i = 0; i < rt->workers; i++) {
    const lvd_worker *other = &rt->worker[i];
    if (i != core && lvd_load_relaxed_u32(&other->given) && !lvd_worker_is_overrun(other)) return;
  }
  lvd_worker_begin(rt, 2 * rt->workers + core, '+'); /* without memory for it, it waits */
}

void lvd_backup_worker_goes_home(const lvd_worker *w, lvd_entity *e) {
  lvd_runtime *rt = w->rt;
  const lvd_worker *home = home_of(w);
  if (lvd_load_relaxed_u32(&e->target) != w->index || lvd_worker_is_overrun(home)) return;
  if (!lvd_os_try_lock(&rt->lock)) return; /* its next turn is soon */
  uint32_t to = home->index;
  while (!lvd_core_is_for(&rt->worker[to], e->app)) to = (to + 1) % rt->workers;
  if (lvd_load_relaxed_u32(&e->target) == w->index) lvd_store_relaxed_u32(&e->target, to);
  lvd_os_unlock(&rt->lock);
}
