/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Own: the runtime of a program that only forks. The first fork makes it.
 *
 * It ends with the program. At exit it is destroyed if nobody forks any more but the thread that
 * exits; else the program ends without ceremony, as exit ends threads that are in the middle of
 * something. And where the first thread ends by itself (pthread_exit), so that the program goes on
 * until its last one does, somebody watches: since the workers are threads, too, the system would
 * wait for them. */
#include "fork.h"

#include <stdlib.h>

enum { WATCH_NS = 10000000 };

static struct {
  lvd_os_mutex lock;
  lvd_runtime *runtime; /* null: there is none */
  uint32_t workers;     /* lvd_fork_workers */
  bool at_exit;         /* somebody has been told */
  bool main_over;       /* the first thread has ended */
  bool watched;
} own;

/* False: others fork still. */
static bool destroy(void) {
  lvd_os_lock(&own.lock);
  lvd_runtime *rt = own.runtime;
  bool ends = !rt || lvd_forks_close(rt);
  if (ends) own.runtime = NULL;
  own.at_exit = false; /* what is made from here on ends then, too */
  lvd_os_unlock(&own.lock);
  if (ends) lvd_runtime_destroy(rt);
  return ends;
}

static void at_exit(void) {
  if (!lvd_this_worker() && !lvd_forks_open_here()) destroy();
}

/* ---- a program whose first thread has ended ------------------------------------------------ */

/* Has the program no thread any more, and no runtime but this one? */
static bool is_over(void) {
  for (int i = 0; i < 2; i++) { /* threads come and go while they are counted: so twice */
    lvd_os_sleep(WATCH_NS);
    if (lvd_os_other_thread_count() || !lvd_forks_alone()) return false;
  }
  return true;
}

/* Ends as the last thread of the process, and that with it. */
static void watch(void *unused) {
  (void)unused;
  while (!is_over() || !destroy()) {
  }
}

/* Under the lock. */
static void watch_from_now(void) {
  lvd_os_thread *thread;
  if (!own.main_over || !own.runtime || own.watched) return;
  own.watched = lvd_os_thread_start(&thread, -1, "levada/end", watch, NULL) == LVD_OK;
}

static void main_ends(void) {
  lvd_os_lock(&own.lock);
  own.main_over = true;
  watch_from_now();
  lvd_os_unlock(&own.lock);
}

__attribute__((constructor)) static void begin(void) {
  lvd_os_pin_library();
  lvd_os_at_main_thread_exit(main_ends);
}

/* ---- making it ------------------------------------------------------------------------------ */

static uint32_t workers_wanted(void) {
  const char *from_outside = getenv("LEVADA_WORKERS");
  if (own.workers || !from_outside) return own.workers;
  long n = strtol(from_outside, NULL, 10);
  return n > 0 && n <= 4096 ? (uint32_t)n : 0;
}

void lvd_fork_runtime_start(void) {
  lvd_os_lock(&own.lock);
  lvd_runtime_options options = {.workers = workers_wanted()};
  lvd_runtime *rt;
  if (!own.runtime && lvd_runtime_create(&options, &rt) == LVD_OK) {
    own.runtime = rt;
    if (!own.at_exit) own.at_exit = atexit(at_exit) == 0;
    watch_from_now();
  }
  lvd_os_unlock(&own.lock);
}

lvd_status lvd_fork_workers(uint32_t workers) {
  if (workers > 4096) return LVD_E_ARGUMENT;
  lvd_os_lock(&own.lock);
  bool late = own.runtime != NULL;
  if (!late) own.workers = workers;
  lvd_os_unlock(&own.lock);
  return late ? LVD_E_STATE : LVD_OK;
}

/* ---- a second process ----------------------------------------------------------------------- */

void lvd_fork_runtime_before_fork(void) { lvd_os_lock(&own.lock); }
void lvd_fork_runtime_after_fork(void) { lvd_os_unlock(&own.lock); }

/* The workers are the other's. The thread that has forked is the first one here. */
void lvd_fork_runtime_child_begins(void) {
  own.runtime = NULL;
  own.main_over = own.watched = false;
  lvd_os_at_main_thread_exit(main_ends);
  lvd_os_unlock(&own.lock);
}
