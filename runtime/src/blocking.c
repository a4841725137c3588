/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Blocking: a call that may block in the system runs on a helper, a thread that does nothing else,
 * while the fiber that made it waits. Helpers compute nothing: they are not pinned, sleep when
 * there is no call, and there are at most HELPERS of them; further calls wait for one. */
#include "fiber.h"

#include <stdlib.h>

enum { HELPERS = 64 };

typedef struct lvd_call_out {
  void (*call)(void *);
  void *argument;
  lvd_event *back;
} lvd_call_out;

typedef struct lvd_helper {
  lvd_runtime *rt;
  lvd_port_thread *thread;
  struct lvd_helper *next;
  lvd_a32 work; /* 1: `out` is to be made; 2: end */
  lvd_call_out out;
  bool idle; /* under pool_lock */
} lvd_helper;

static void helper_main(void *argument) {
  lvd_helper *h = argument;
  for (;;) {
    uint32_t work;
    while ((work = lvd_load_acquire_u32(&h->work)) == 0) lvd_port_wait(&h->work, 0, -1);
    if (work == 2) return;
    h->out.call(h->out.argument);
    lvd_event *back = h->out.back;
    lvd_store_relaxed_u32(&h->work, 0);
    lvd_port_lock(&h->rt->pool_lock);
    h->idle = true;
    lvd_port_unlock(&h->rt->pool_lock);
    lvd_event_set(back, 1);
  }
}

/* Null: there are as many as there may be, and all have work. */
static lvd_helper *take_helper(lvd_runtime *rt, lvd_status *status) {
  lvd_port_lock(&rt->pool_lock);
  lvd_helper *h = rt->helpers;
  while (h && !h->idle) h = h->next;
  if (!h && rt->helper_count < HELPERS && (h = calloc(1, sizeof *h))) {
    h->rt = rt;
    *status = lvd_port_thread_start(&h->thread, -1, "levada/blocking", helper_main, h);
    if (*status == LVD_OK) {
      h->next = rt->helpers;
      rt->helpers = h;
      rt->helper_count++;
    } else {
      free(h);
      h = NULL;
    }
  }
  if (h) h->idle = false;
  lvd_port_unlock(&rt->pool_lock);
  return h;
}

lvd_status lvd_blocking(void (*call)(void *), void *argument) {
  lvd_fiber *f = lvd_fiber_self();
  if (!call) return LVD_E_ARGUMENT;
  if (!f) {
    call(argument);
    return LVD_OK;
  }
  lvd_runtime *rt = f->entity.app->rt;
  lvd_status status = LVD_OK;
  lvd_helper *h;
  while (!(h = take_helper(rt, &status))) {
    if (status != LVD_OK) return status == LVD_E_SYSTEM ? LVD_E_LIMIT : status;
    if ((status = lvd_fiber_sleep(200000)) != LVD_OK) return status; /* all are busy */
  }
  h->out = (lvd_call_out){call, argument, &f->unblocked};
  /* The call must come back before anything of ours may go: no cancelling, and it counts as
   * alive. */
  lvd_add_relaxed_u32(&f->entity.app->live, 1);
  lvd_store_release_u32(&h->work, 1);
  lvd_port_wake(&h->work);
  lvd_fiber_wait_through(f, &f->unblocked);
  lvd_add_relaxed_u32(&f->entity.app->live, UINT32_MAX);
  return LVD_OK;
}

void lvd_blocking_end(lvd_runtime *rt) {
  for (lvd_helper *h = rt->helpers, *next; h; h = next) {
    next = h->next;
    lvd_store_release_u32(&h->work, 2);
    lvd_port_wake(&h->work);
    lvd_port_thread_join(h->thread);
    free(h);
  }
}
