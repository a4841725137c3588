/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The scheduling class of a thread of this process, found by its name. */
#ifndef LVD_TEST_RANKS_H
#define LVD_TEST_RANKS_H

#include "test.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Its priority in SCHED_RR; 0: in another class; -1: no such thread. */
static inline int rank_of_thread(const char *name) {
  DIR *all = opendir("/proc/self/task");
  int rank = -1;
  CHECK(all);
  for (struct dirent *d; rank < 0 && (d = readdir(all));) {
    char path[300], comm[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
    FILE *f = fopen(path, "r");
    if (!f) continue;
    if (!fgets(comm, sizeof comm, f)) *comm = 0;
    fclose(f);
    comm[strcspn(comm, "\n")] = 0;
    struct sched_param p;
    int id = atoi(d->d_name);
    if (strcmp(comm, name) != 0 || sched_getparam(id, &p) != 0) continue;
    rank = (sched_getscheduler(id) & ~SCHED_RESET_ON_FORK) == SCHED_RR ? p.sched_priority : 0;
  }
  closedir(all);
  return rank;
}

/* A runtime of priority 3; service threads are two above it. If that is not permitted the test is
 * skipped. */
static inline lvd_runtime *realtime_runtime(void) {
  lvd_runtime *rt;
  if (!lvd_realtime_allowed(3))
    SKIP("the system permits no real-time priority (RLIMIT_RTPRIO, CAP_SYS_NICE)");
  CHECK_EQ(lvd_runtime_create(&(lvd_runtime_options){.workers = 1, .realtime = 3}, &rt), LVD_OK);
  return rt;
}

/* It has that priority, or will soon. */
static inline void has_rank(const char *name, int rank) {
  while (rank_of_thread(name) != rank) sleep_ms(1);
}

#endif
