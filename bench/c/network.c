/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Runs a compiled network with a given placement.
 *
 *   network OBJECT WORKERS PLACEMENT ELEMENTS [NAME=VALUE]...
 *
 * PLACEMENT: the worker of each actor, in the network's order, separated by commas. */
#include "bench.h"

#include <dlfcn.h>
#include <levada/runtime.h>

enum { ACTORS_MAX = 256, CHANNELS_MAX = 256, OPTIONS_MAX = 256 };

static void need(lvd_status status, const char *what, const char *why) {
  if (status == LVD_OK) return;
  fprintf(stderr, "%s: %s%s%s\n", what, lvd_status_text(status), *why ? ": " : "", why);
  exit(1);
}

int main(int argc, char **argv) {
  static const char usage[] = "OBJECT WORKERS PLACEMENT ELEMENTS [NAME=VALUE]...";
  uint32_t placement[ACTORS_MAX] = {0}, actors = 0;
  lvd_option option[OPTIONS_MAX];
  lvd_app_options options = {.placement = placement, .option = option};
  lvd_runtime_options rt_options = {.workers = (uint32_t)bench_number(argc, argv, 2, usage)};
  uint64_t elements = bench_number(argc, argv, 4, usage);
  char why[512] = "";

  void *object = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!object) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const lvd_network *(*get)(void) = (const lvd_network *(*)(void))dlsym(object, "lvd_network_get");
  const lvd_network *network = get ? get() : dlsym(object, "levada_network");
  if (!network) {
    fprintf(stderr, "%s is no network\n", argv[1]);
    return 1;
  }
  for (char *s = strtok(argv[3], ","); s && actors < ACTORS_MAX; s = strtok(NULL, ","))
    placement[actors++] = (uint32_t)strtoul(s, NULL, 10);
  for (int i = 5; i < argc && options.option_count < OPTIONS_MAX; i++) {
    char *value = strchr(argv[i], '=');
    if (!value) continue;
    *value = 0;
    option[options.option_count++] = (lvd_option){argv[i], value + 1};
  }

  lvd_runtime *rt;
  lvd_app *app;
  need(lvd_runtime_create(&rt_options, &rt), "lvd_runtime_create", "");
  need(lvd_app_load(rt, network, &options, &app, why, sizeof why), "lvd_app_load", why);
  double cpu = bench_cpu(), start = bench_now();
  need(lvd_app_start(app), "lvd_app_start", "");
  lvd_status status = lvd_app_wait(app, 100000000000);
  double took = bench_now() - start;
  cpu = bench_cpu() - cpu;
  lvd_fault fault;
  if (lvd_app_fault(app, &fault)) snprintf(why, sizeof why, "%s: %s", fault.actor, fault.message);
  need(status, "lvd_app_wait", why);
  const char *unit;
  if (lvd_app_get_progress(app, &unit) == 0) {
    fprintf(stderr, "%s ended without a result\n", argv[1]);
    return 1;
  }

  static lvd_actor_counters actor[ACTORS_MAX];
  static lvd_channel_counters channel[CHANNELS_MAX];
  uint32_t channels = CHANNELS_MAX;
  actors = ACTORS_MAX;
  lvd_app_counters(app, actor, &actors, channel, &channels);
  uint64_t activations = 0;
  for (uint32_t i = 0; i < actors && i < ACTORS_MAX; i++) activations += actor[i].activations;
  bench_say("elements_per_s", (double)elements / took);
  bench_say("seconds", took);
  bench_say("cpu_seconds", cpu);
  bench_say("activations", (double)activations);
  if (getenv("BENCH_ACTORS"))
    for (uint32_t i = 0; i < actors && i < ACTORS_MAX; i++)
      fprintf(stderr, "%-12s worker %u, %llu firings, %llu activations, %.1f ms\n", actor[i].name,
              actor[i].worker, (unsigned long long)actor[i].firings,
              (unsigned long long)actor[i].activations, (double)actor[i].busy_ns * 1e-6);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  return 0;
}
