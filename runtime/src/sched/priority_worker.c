/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Priority worker: a second worker of a core, on a thread of a higher scheduling class. It sleeps
 * until an urgent fiber is ready and then preempts whatever runs on the core. It is a worker like
 * the others, but does not poll before it sleeps. It is started with the first urgent fiber.
 *
 * Source: "Streaming RPC" (SiPS 2008), section 2.1: pCore is priority-based and preemptive. */
#include "sched.h"

#include <stdio.h>

lvd_status lvd_worker_begin(lvd_runtime *rt, uint32_t index, char mark) {
  lvd_worker *w = &rt->worker[index];
  uint32_t core = index % rt->workers;
  lvd_status status = LVD_OK;
  if (lvd_load_acquire_u32(&w->runs)) return LVD_OK;
  lvd_os_lock(&rt->pool_lock);
  if (!lvd_load_relaxed_u32(&w->runs)) {
    char name[24];
    snprintf(name, sizeof name, "levada/%u%c", core, mark);
    if (!w->rt) status = lvd_worker_prepare(rt, index, rt->worker[core].cpu);
    if (status == LVD_OK) status = lvd_worker_start(w, name);
  }
  lvd_os_unlock(&rt->pool_lock);
  return status;
}

lvd_status lvd_priority_worker(lvd_runtime *rt, uint32_t worker, uint32_t *urgent) {
  *urgent = rt->workers + worker;
  return lvd_worker_begin(rt, *urgent, '!');
}
