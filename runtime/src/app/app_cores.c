/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The running set: returns cores that were reserved for one application to all. */
#include "../sched/sched.h"
#include "../stream/stream.h"
#include "app.h"

void lvd_core_put_back(lvd_worker *w) {
  lvd_store_relaxed_ptr(&w->alone, NULL);
  lvd_store_relaxed_u32(&w->available, 1);
  w->rt->available_count++;
}

void lvd_cores_back(lvd_app *app) {
  lvd_runtime *rt = app->rt;
  for (uint32_t i = 0; i < rt->workers; i++)
    if (lvd_load_relaxed_ptr(&rt->worker[i].alone) == app) lvd_core_put_back(&rt->worker[i]);
}
