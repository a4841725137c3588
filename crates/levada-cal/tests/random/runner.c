/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs networks of a shared object one after the other:
 *   runner WORKERS TIMEOUT_MS OBJECT SYMBOL...
 * With FIXED_BUFFERS in the environment no channel grows. For each, prints a row "== SYMBOL", the
 * network's output, and a row "-- STATUS [FAULT]". */
#include <levada/runtime.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  lvd_runtime_options options = {.workers = (uint32_t)atoi(argv[1]), .spin_us = 5};
  lvd_runtime *rt;
  if (lvd_runtime_create(&options, &rt) != LVD_OK) return 2;
  void *object = dlopen(argv[3], RTLD_NOW);
  if (!object) {
    fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  for (int i = 4; i < argc; i++) {
    printf("== %s\n", argv[i]);
    fflush(stdout);
    const lvd_network *net = dlsym(object, argv[i]);
    lvd_app *app;
    char why[512];
    lvd_app_options load = {.fixed_buffers = getenv("FIXED_BUFFERS") != NULL};
    lvd_status status = lvd_app_load(rt, net, &load, &app, why, sizeof why);
    if (status != LVD_OK) {
      printf("-- cannot load: %s\n", why);
      continue;
    }
    lvd_app_start(app);
    status = lvd_app_wait(app, atoll(argv[2]) * 1000000);
    lvd_fault fault = {0};
    bool failed = lvd_app_fault(app, &fault);
    if (status == LVD_E_TIMEOUT) {
      static char text[4096];
      lvd_app_wait_report(app, text, sizeof text);
      fprintf(stderr, "%s\n", text);
    }
    lvd_app_unload(app);
    printf("-- %s", lvd_status_name(status));
    if (failed) printf(" %d %u", (int)fault.kind, fault.line);
    printf("\n");
    fflush(stdout);
  }
  lvd_runtime_destroy(rt);
  return 0;
}
