/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The nodes of the conformance program as fibers: on separate workers, or, with
 * LEVADA_CONFORM_WORKERS=1, on one, where a blocked call of one node must not block the other. */
#include <levada/levada.h>
#include <stdlib.h>

typedef struct node {
  void (*body)(void);
} node;

static void run(void *argument) { ((const node *)argument)->body(); }

void conform_fibers(void (*one)(void), void (*two)(void));
void conform_fibers(void (*one)(void), void (*two)(void)) {
  const char *said = getenv("LEVADA_CONFORM_WORKERS");
  lvd_runtime_options ro = {.workers = said ? (uint32_t)atoi(said) : 2};
  node nodes[2] = {{one}, {two}};
  lvd_fiber *fiber[2];
  lvd_runtime *rt;
  lvd_app *app;
  bool good = lvd_runtime_create(&ro, &rt) == LVD_OK && lvd_app_open(rt, NULL, &app) == LVD_OK;
  uint32_t count = two ? 2 : 1;
  for (uint32_t i = 0; good && i < count; i++) {
    lvd_fiber_options o = {.place = LVD_WORKER(i % ro.workers), .stack = 256 * 1024};
    good = lvd_fiber_start(app, run, &nodes[i], &o, &fiber[i]) == LVD_OK;
  }
  for (uint32_t i = 0; good && i < count; i++) good = lvd_fiber_join(fiber[i], -1) == LVD_OK;
  if (!good) abort();
}

int conform_nap(int ms);
int conform_nap(int ms) {
  if (!lvd_fiber_self()) return 0;
  lvd_fiber_sleep((int64_t)ms * 1000000);
  return 1;
}
