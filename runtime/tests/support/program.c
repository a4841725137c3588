/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program that the tests load next to other applications. Its first argument says what to do;
 * it returns 0 on success. */
#include <levada/call.h>
#include <levada/fork.h>
#include <levada/native.h>
#include <levada/program.h>
#include <levada/srpc.h>

#include <stdlib.h>
#include <string.h>

/* ---- forks ---------------------------------------------------------------------------------- */

static int fib(int n);
LVD_FORKABLE(int, fib, int)
static int fib(int n) {
  if (n < 2) return n;
  LVD_FORK(first, fib, n - 1);
  int second = fib(n - 2);
  return LVD_JOIN(first, fib) + second;
}

/* ---- remote procedures and streams: all programs have the same names and numbers ------------- */

enum { NUMBERS = 1, DOUBLED = 2 };

static int most;
static int constructed; /* of this copy */
__attribute__((constructor)) static void construct(void) { constructed++; }

static void twice(void) {
  stream_create(NUMBERS);
  stream_create(DOUBLED);
  for (int x; stream_get(NUMBERS, x) == LVD_OK;) {
    stream_pop(NUMBERS);
    stream_put(DOUBLED, 2 * x);
    stream_push(DOUBLED);
  }
}
PB_PROCEDURE(twice)

static void count(void) {
  stream_create(NUMBERS);
  for (int i = 1; i <= most; i++) {
    stream_put(NUMBERS, i);
    stream_push(NUMBERS);
  }
}
PB_PROCEDURE(count)

static int calls(void) {
  pb_set_diagnostics(false);
  if (pb_boot() != LVD_OK) return 1;
  TASKID all[] = {pb_create("twice", 0), pb_create("count", 0)};
  if (!all[0] || !all[1] || pb_create("unknown", 0)) return 2;
  if (stream_create(DOUBLED) != LVD_OK) return 3;
  for (int i = 0; i < 2; i++)
    if (pb_rpc(all[i]) != LVD_OK) return 4;
  int sum = 0;
  for (int x; stream_get(DOUBLED, x) == LVD_OK; sum += x) stream_pop(DOUBLED);
  for (int i = 0; i < 2; i++)
    if (pb_wait(all[i]) != LVD_OK || pb_release(all[i]) != LVD_OK) return 5;
  return sum == most * (most + 1) ? 0 : 6;
}

static void eat(void) {
  stream_create(NUMBERS);
  for (int x; stream_get(NUMBERS, x) == LVD_OK;) stream_pop(NUMBERS);
}
PB_PROCEDURE(eat)

static void forever(void) {
  while (lvd_fiber_sleep(1000000000) == LVD_OK) {
  }
}
PB_PROCEDURE(forever)

/* The fault is intended: no sanitizer may report it before the system does. */
__attribute__((no_sanitize("undefined"))) static void fault(void) {
  *(volatile int *)(uintptr_t)most = 1;
}

/* ---- successive versions --------------------------------------------------------------------- */

/* Counts its versions, and runs until it is asked to end. */
static int follows(void) {
  static const char KEY;
  int *came = lvd_app_persistent_data(lvd_current_app(), "came", &KEY, sizeof *came, NULL);
  if (!came) return 1;
  ++*came;
  lvd_app_progress(lvd_current_app(), "versions", (uint64_t)*came);
  while (!lvd_app_is_draining(lvd_current_app()))
    if (lvd_fiber_sleep(100000) != LVD_OK) return 2;
  return lvd_app_is_draining(lvd_current_app()) ? 0 : 3;
}

/* Waits for input that is already there when it is asked to end, which is left for the next
 * version. */
static int leaves_input(int fd) {
  while (!lvd_app_is_draining(lvd_current_app()))
    if (lvd_fiber_sleep(100000) != LVD_OK) return 2;
  return lvd_wait_input_restartable(fd) == LVD_E_EOF ? 0 : 1;
}

/* Waits for input that never comes. */
static int listens(int fd) {
  lvd_app_progress(lvd_current_app(), "versions", 1);
  return lvd_wait_input_restartable(fd) == LVD_E_EOF && lvd_wait_input_restartable(fd) == LVD_E_EOF
             ? 0
             : 1;
}

static void yields(void *unused) {
  (void)unused;
  for (;;) lvd_fiber_yield();
}

/* Called each time: the compiler assumes that the thread does not change. */
__attribute__((noinline)) static const void *this_thread(void) {
#if defined __x86_64__
  const void *thread;
  __asm__ volatile("mov %%fs:0, %0" : "=r"(thread));
  return thread;
#else
  __asm__ volatile("" ::: "memory");
  return __builtin_thread_pointer();
#endif
}

/* Until it is abandoned. */
static int computes(int forks) {
  static volatile unsigned rounds;
  if (forks) {
    LVD_FORK(f, fib, 3);
    LVD_FORK(g, fib, 4);
    LVD_FORK(h, fib, 5);
    lvd_app_progress(lvd_current_app(), "versions", 1);
    for (;;) rounds++;
    return LVD_JOIN(h, fib) + LVD_JOIN(g, fib) + LVD_JOIN(f, fib);
  }
  const void *thread = this_thread();
  lvd_app_progress(lvd_current_app(), "versions", 1);
  for (;;)
    if (this_thread() != thread) __builtin_trap();
}

static lvd_status registered(lvd_call_frame *f) {
  (void)f;
  return LVD_OK;
}

int main(int argc, char **argv) {
  static int runs;
  const char *what = argc > 1 ? argv[1] : "";
  most = argc > 2 ? atoi(argv[2]) : 0;
  if (runs++ || constructed != 1 || argv[argc]) return 100;
  if (!lvd_current_app() || !lvd_fiber_self()) return 101;
  if (strcmp(what, "forks") == 0) return fib(18) == 2584 ? 0 : 1;
  if (strcmp(what, "calls") == 0) {
    int result = calls();
    return result ? result : pb_finish() != LVD_OK;
  }
  /* Fibers that are not joined when main returns. */
  if (strcmp(what, "leaves") == 0) {
    TASKID all[] = {pb_create("eat", 0), pb_create("count", 0)};
    return pb_rpc(all[1]) != LVD_OK || pb_rpc(all[0]) != LVD_OK;
  }
  if (strcmp(what, "follows") == 0) return follows();
  if (strcmp(what, "leaves input") == 0) return leaves_input(most);
  if (strcmp(what, "listens") == 0) return listens(most);
  if (strcmp(what, "computes") == 0) return computes(0);
  if (strcmp(what, "computes amid forks") == 0) return computes(1);
  if (strcmp(what, "computes with another") == 0) {
    lvd_fiber_options o = {.place = LVD_WORKER(1)};
    for (int i = 0; i < 8; i++)
      if (lvd_fiber_start(lvd_current_app(), yields, NULL, &o, NULL) != LVD_OK) return 1;
    return computes(0);
  }
  if (strcmp(what, "registers") == 0) return lvd_procedure_register("registered", registered);
  if (strcmp(what, "fails") == 0) return 3;
  /* And ignores statuses. */
  if (strcmp(what, "misuses") == 0) return pb_create("Twise", 0) != NULL;
  if (strcmp(what, "faults") == 0) fault();
  if (strcmp(what, "waits") == 0) {
    TASKID t = pb_create("forever", 0);
    return pb_rpc(t) != LVD_OK || pb_wait(t) != LVD_OK;
  }
  return 102;
}
