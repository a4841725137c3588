/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fork proxy: a thread of the program that forks takes the place of the worker of its core.
 *
 * That worker does not steal while the thread computes, or there would be more running threads
 * than cores. While the thread waits, the worker has its core back.
 *
 * Pairs of orders
 *   lend: fork_sleeps, [fence], look at the thread <> leave, wait: proxy or sleeps, [fence],
 *                                                          load fork_sleeps
 *   take: a forker, cas_release proxy -> lend: load_acquire */
#include "fork.h"

enum { CHECK_NS = 1000000 };

/* ---- the thread's side ----------------------------------------------------------------------- */

/* Wakes a worker in LVD_LENT, to check whether it may steal again. */
bool lvd_fork_proxy_wake(lvd_worker *w) {
  uint32_t lent = LVD_LENT;
  lvd_fence_seq_cst();
  if (lvd_load_relaxed_u32(&w->fork_sleeps) != LVD_LENT ||
      !lvd_cas_relaxed_u32(&w->fork_sleeps, &lent, LVD_AWAKE))
    return false;
  lvd_forks_notify(w);
  return true;
}

void lvd_fork_proxy_leave(lvd_fork_state *f) {
  if (f->place == LVD_NOWHERE) return;
  lvd_worker *w = &f->forks->rt->worker[f->place];
  lvd_lease_leave(&f->leased);
  lvd_store_relaxed_ptr(&w->proxy, NULL);
  f->place = LVD_NOWHERE;
  lvd_fork_proxy_wake(w);
}

static bool take_place(lvd_fork_state *f, lvd_worker *w) {
  void *none = NULL;
  if (!lvd_load_relaxed_u32(&w->available) || !lvd_cas_release_ptr(&w->proxy, &none, f))
    return false;
  lvd_fork_proxy_leave(f);
  f->place = w->index;
  lvd_sleeps_set(f->forks, w, LVD_LENT);
  lvd_lease_enter(&f->leased, w->cpu);
  return true;
}

/* A thread of the program may have moved to another core. */
void lvd_fork_proxy_poll(lvd_fork_state *f) {
  lvd_runtime *rt = f->forks->rt;
  if (f->place != LVD_NOWHERE && f->leased.counted) return; /* it holds the lease of that core */
  int32_t cpu = lvd_os_current_cpu();
  if (f->place != LVD_NOWHERE && (rt->worker[f->place].cpu < 0 || rt->worker[f->place].cpu == cpu))
    return;
  for (uint32_t i = 0; i < rt->workers; i++)
    if (rt->worker[i].cpu == cpu && take_place(f, &rt->worker[i])) return;
  for (uint32_t i = 0; f->place == LVD_NOWHERE && i < rt->workers; i++)
    take_place(f, &rt->worker[i]);
}

/* ---- the worker's side ----------------------------------------------------------------------- */

/* A thread that has just forked computes, however long it slept before. */
static bool has_forked(const lvd_fork_state *f) {
  return lvd_os_ticks_to_ns(lvd_os_ticks() - lvd_load_relaxed_u64(&f->shares)) < CHECK_NS;
}

/* Does a thread of the program compute in the place of `w`? Measured each CHECK_NS. */
bool lvd_fork_proxy_is_taken(lvd_worker *w) {
  lvd_fork_state *proxy = lvd_load_acquire_ptr(&w->proxy);
  if (!proxy || lvd_load_relaxed_u32(&proxy->sleeps)) {
    w->proxy_seen = NULL;
    return false;
  }
  uint64_t now = lvd_os_now_ns();
  if (proxy != w->proxy_seen || has_forked(proxy)) {
    w->proxy_seen = proxy;
    w->proxy_computes = true;
  } else if (now - w->proxy_checked_ns < CHECK_NS) {
    return w->proxy_computes;
  } else {
    uint64_t cpu = lvd_os_cpu_clock_ns((int)lvd_load_relaxed_u32(&proxy->clock));
    w->proxy_computes = (cpu - w->proxy_cpu_ns) * 2 > now - w->proxy_checked_ns;
  }
  w->proxy_checked_ns = now;
  w->proxy_cpu_ns = lvd_os_cpu_clock_ns((int)lvd_load_relaxed_u32(&proxy->clock));
  return w->proxy_computes;
}
