/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures the CPU time of an idle runtime with many loaded applications, each of which waits for input.
 * Afterwards each of them must still respond. */
#include "bench.h"

#include <levada/runtime.h>

static const lvd_port_class in_port[] = {{"In", 4}}, out_port[] = {{"Out", 4}};
static const lvd_action_class action[] = {{"pass", NULL, 1}};

static lvd_run_result pass(lvd_actor *self) {
  for (;;) {
    if (!lvd_elements(&self->in[0], 1)) {
      if (lvd_ended(&self->in[0]) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (!lvd_room(&self->out[0], 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(&self->out[0], uint32_t, LVD_GET(&self->in[0], uint32_t) + 1);
    self->fired[0]++;
  }
}
static const lvd_actor_class pass_class = {.name = "pass",
                                           .file = "idle.c",
                                           .inputs = 1,
                                           .outputs = 1,
                                           .actions = 1,
                                           .input = in_port,
                                           .output = out_port,
                                           .action = action,
                                           .run = pass};

int main(int argc, char **argv) {
  static const char usage[] = "APPLICATIONS MILLISECONDS";
  uint64_t count = bench_number(argc, argv, 1, usage), ms = bench_number(argc, argv, 2, usage);
  /* The channels: from the program to the first actor, between the two actors, back to the program. */
  static const lvd_actor_desc actor[] = {{"first", &pass_class, NULL, 0},
                                         {"second", &pass_class, NULL, 0}};
  static const lvd_port_ref to[] = {{0, 0}, {1, 0}, {LVD_EXTERNAL, 0}};
  static const lvd_channel_desc channel[] = {{{LVD_EXTERNAL, 0}, 1, &to[0], 4, 64, 1, 0},
                                             {{0, 0}, 1, &to[1], 4, 64, 1, 0},
                                             {{1, 0}, 1, &to[2], 4, 64, 1, 0}};
  static const lvd_network network = {LVD_ABI_VERSION, "idle", 2, 3, actor, channel};
  lvd_runtime *rt;
  lvd_app **app = (lvd_app **)calloc(count, sizeof *app);
  char why[256] = "";
  if (lvd_runtime_create(NULL, &rt) != LVD_OK) return 1;
  for (uint64_t i = 0; i < count; i++)
    if (lvd_app_load(rt, &network, NULL, &app[i], why, sizeof why) != LVD_OK ||
        lvd_app_start(app[i]) != LVD_OK) {
      fprintf(stderr, "application %llu cannot be loaded: %s\n", (unsigned long long)i, why);
      return 1;
    }
  struct timespec t = {0, 200000000};
  nanosleep(&t, NULL);
  double cpu = bench_cpu();
  t.tv_sec = (time_t)(ms / 1000);
  t.tv_nsec = (long)(ms % 1000) * 1000000;
  nanosleep(&t, NULL);
  cpu = bench_cpu() - cpu;
  for (uint64_t i = 0; i < count; i++) {
    lvd_producer *p = lvd_app_producer(app[i], 0);
    lvd_consumer *c = lvd_app_consumer(app[i], 2, 0);
    LVD_PUT(p, uint32_t, (uint32_t)i);
    lvd_flush(p);
    if (lvd_wait_elements(c, 1, 1000000000) != LVD_OK) {
      fprintf(stderr, "application %llu does not answer\n", (unsigned long long)i);
      return 1;
    }
    bench_expect("the answer", LVD_GET(c, uint32_t), i + 2);
    lvd_pop(c);
  }
  bench_say("cpu_us", cpu * 1e6);
  lvd_runtime_destroy(rt);
  return 0;
}
