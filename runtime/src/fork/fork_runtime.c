/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Default runtime: the runtime of a program that only forks, created by the first fork.
 *
 * It ends with the program. At exit it is destroyed if no other thread forks; else it is left as
 * it is, as exit(3) ends threads in the middle of their work. If the first thread ends by
 * pthread_exit, the program continues until its last thread ends; since the kernel would count
 * the workers too, a watcher thread then detects the end. */
#include "fork.h"

#include <stdlib.h>

enum { WATCH_NS = 10000000 };

static struct {
  lvd_os_mutex lock;
  lvd_runtime *runtime; /* null: none */
  uint32_t workers;     /* set by lvd_fork_workers */
  bool at_exit;         /* the exit handler is registered */
  bool main_over;       /* the first thread has ended */
  bool watched;
} own;

/* False: other threads still fork. */
static bool destroy(void) {
  lvd_os_lock(&own.lock);
  lvd_runtime *rt = own.runtime;
  bool ends = !rt || lvd_forks_close(rt);
  if (ends) own.runtime = NULL;
  own.at_exit = false; /* a runtime created from here on needs a handler of its own */
  lvd_os_unlock(&own.lock);
  if (ends) lvd_runtime_destroy(rt);
  return ends;
}

static void at_exit(void) {
  if (!lvd_this_worker() && !lvd_forks_open_here()) destroy();
}

/* ---- a program without its first thread ------------------------------------------------ */

/* Has the program no thread left, and no runtime but this one? */
static bool is_over(void) {
  /* Counted twice, since threads may start and end while they are counted. */
  for (int i = 0; i < 2; i++) {
    lvd_os_sleep(WATCH_NS);
    if (lvd_os_other_thread_count() || !lvd_forks_alone()) return false;
  }
  return true;
}

/* Ends the process when it is the last thread. */
static void watch(void *unused) {
  (void)unused;
  while (!is_over() || !destroy()) {
  }
}

/* With the lock held. */
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

/* ---- creating ------------------------------------------------------------------------------- */

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

/* ---- after fork(2) -------------------------------------------------------------------------- */

void lvd_fork_runtime_before_fork(void) { lvd_os_lock(&own.lock); }
void lvd_fork_runtime_after_fork(void) { lvd_os_unlock(&own.lock); }

/* The workers belong to the parent. The forking thread is the child's first. */
void lvd_fork_runtime_child_begins(void) {
  own.runtime = NULL;
  own.main_over = own.watched = false;
  lvd_os_at_main_thread_exit(main_ends);
  lvd_os_unlock(&own.lock);
}
