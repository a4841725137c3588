/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Two fibers that wait, one of them deep in its stack, for a debugger to look at. */
#include <levada/levada.h>

static lvd_event never;

__attribute__((noinline)) void dig(int n) {
  if (n)
    dig(n - 1);
  else
    lvd_event_wait(&never, NULL, -1);
  __asm__ volatile("" ::: "memory"); /* no call in the tail */
}
static void digger(void *argument) {
  (void)argument;
  dig(3);
}
static void sleeper(void *argument) {
  (void)argument;
  lvd_fiber_sleep(INT64_MAX / 2);
}

/* The test's breakpoint. */
__attribute__((noinline)) void all_wait(void) { __asm__ volatile("" ::: "memory"); }

int main(void) {
  lvd_runtime *rt;
  lvd_app *app;
  lvd_event_init(&never);
  if (lvd_runtime_create(NULL, &rt) != LVD_OK || lvd_app_open(rt, NULL, &app) != LVD_OK) return 1;
  lvd_fiber_start(app, digger, NULL, &(lvd_fiber_options){.name = "digger"}, NULL);
  lvd_fiber_start(app, sleeper, NULL, &(lvd_fiber_options){.name = "sleeper"}, NULL);
  lvd_fiber_counters c[2];
  do {
    uint32_t n = 2;
    lvd_app_fibers(app, c, &n);
    lvd_fiber_sleep(1000000);
  } while (!c[0].waiting || !c[1].waiting);
  all_wait();
  lvd_runtime_destroy(rt);
  return 0;
}
