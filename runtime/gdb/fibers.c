/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Fibers that wait, each for something else, one of them deep in its stack, for a debugger to look
 * at. */
#include <levada/levada.h>
#include <stdio.h>

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

static void reader(void *stream) {
  uint32_t x;
  lvd_stream_get(stream, &x, sizeof x);
}
static void writer(void *stream) {
  uint32_t x = 0;
  while (lvd_stream_put(stream, &x, sizeof x) == LVD_OK) lvd_stream_push(stream);
}
static void joiner(void *fiber) { lvd_fiber_join(fiber, -1); }

/* The test's breakpoint. */
__attribute__((noinline)) void all_wait(void) { __asm__ volatile("" ::: "memory"); }

int main(int argc, char **argv) {
  (void)argv;
  lvd_runtime *rt;
  lvd_app *app;
  lvd_event_init(&never);
  if (lvd_runtime_create(NULL, &rt) != LVD_OK || lvd_app_open(rt, NULL, &app) != LVD_OK) return 1;
  lvd_fiber *f;
  lvd_stream *s, *full;
  lvd_stream_options o = {.name = "numbers", .elem_size = 4, .capacity = 64, .threshold = 1};
  lvd_stream_create(app, &o, &s);
  o.name = "full";
  o.capacity = 8;
  lvd_stream_create(app, &o, &full);
  lvd_fiber_start(app, digger, NULL, &(lvd_fiber_options){.name = "digger"}, &f);
  lvd_fiber_start(app, sleeper, NULL, &(lvd_fiber_options){.name = "sleeper"}, NULL);
  lvd_fiber_start(app, reader, s, &(lvd_fiber_options){.name = "reader"}, NULL);
  lvd_fiber_start(app, writer, full, &(lvd_fiber_options){.name = "writer"}, NULL);
  lvd_fiber_start(app, joiner, f, &(lvd_fiber_options){.name = "joiner"}, NULL);
  lvd_fiber_counters c[5];
  uint32_t waiting;
  do {
    uint32_t n = 5;
    waiting = 0;
    lvd_app_fibers(app, c, &n);
    for (uint32_t i = 0; i < n; i++) waiting += c[i].waiting;
    lvd_fiber_sleep(1000000);
  } while (waiting < 5);
  all_wait();
  if (argc > 1) { /* for a debugger that attaches; until the input ends */
    printf("all wait\n");
    fflush(stdout);
    while (getchar() != EOF) {
    }
  }
  lvd_runtime_destroy(rt);
  return 0;
}
