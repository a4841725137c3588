/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Joining a fiber: waiting for its end, in a fiber or a thread. */
#include "../sched/fiber.h"
#include "../sched/no_abandon.h"

lvd_status lvd_fiber_join(lvd_fiber *f, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  if (!f) return LVD_E_ARGUMENT;
  const lvd_worker *w = lvd_this_worker();
  if (w && w->current == &f->entity) return LVD_E_STATE;
  lvd_runtime *rt = f->entity.app->rt;
  uint32_t outcome;
  lvd_status status = lvd_event_wait(&f->done, &outcome, timeout_ns);
  if (status != LVD_OK) return status;
  lvd_fiber_put_back(rt, f);
  return (lvd_status)outcome;
}
