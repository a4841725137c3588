/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Shared by the tests of process units: a runtime, an application, a page shared with the child,
 * and loading the child. LEVADA_CHILD is child.c. */
#ifndef LVD_TEST_BENCH_H
#define LVD_TEST_BENCH_H

#include "calling.h"
#include "child.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* Under an emulator the kernel may not be able to start programs of this architecture. */
static inline void can_start(void) {
  char *const argv[] = {(char *)LEVADA_CHILD, (char *)"exit", NULL};
  pid_t id = -1;
  int how = -1;
  bool started = posix_spawn(&id, LEVADA_CHILD, NULL, NULL, argv, environ) == 0 &&
                 waitpid(id, &how, 0) == id && how == 0;
#if defined(__x86_64__)
  CHECK(started);
#endif
  if (!started) SKIP("a program of this architecture cannot be started from another one");
}

/* A signal is sent but not yet delivered: this returns when the process has stopped. */
static inline void stop_process(pid_t id) {
  char path[32], state = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)id);
  CHECK_EQ(kill(id, SIGSTOP), 0);
  while (state != 'T') {
    FILE *f = fopen(path, "r");
    CHECK(f && fscanf(f, "%*d (%*[^)]) %c", &state) == 1);
    fclose(f);
  }
}

typedef struct bench {
  lvd_runtime *rt;
  lvd_app *app;
  page *page;
  char path[32];
} bench;

/* Makes a page in a file of its own, and stores the path. */
static inline page *make_page(char path[32]) {
  strcpy(path, "/tmp/levada-test-XXXXXX");
  int fd = mkstemp(path);
  CHECK(fd >= 0 && ftruncate(fd, sizeof(page)) == 0);
  page *p = mmap(NULL, sizeof(page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  CHECK(p != MAP_FAILED);
  close(fd);
  return p;
}

static inline bench bench_of(uint32_t workers) {
  bench b;
  can_start();
  b.rt = runtime_of(workers);
  CHECK_EQ(lvd_app_open(b.rt, NULL, &b.app), LVD_OK);
  b.page = make_page(b.path);
  return b;
}

static inline void bench_free(bench *b) {
  lvd_app_unload(b->app);
  lvd_runtime_destroy(b->rt);
  unlink(b->path);
  munmap(b->page, sizeof(page));
}

static inline lvd_unit *load(bench *b, const char *what) {
  const char *const argument[] = {what, b->path, NULL};
  const lvd_unit_options o = {.argument = argument, .may_call = "parent_"};
  lvd_unit *u;
  CHECK_EQ(lvd_unit_load(b->app, LEVADA_CHILD, &o, &u), LVD_OK);
  return u;
}

static inline lvd_call *call(lvd_unit *u, const char *procedure, const order *o) {
  lvd_call *c;
  CHECK_EQ(lvd_call_start(u, procedure, o, sizeof *o, NULL, &c), LVD_OK);
  return c;
}

static inline lvd_status result(lvd_call *c) { return lvd_call_wait(c, NULL, NULL, -1, NULL); }

#endif
