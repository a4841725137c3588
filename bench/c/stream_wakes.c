/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Measures wake-ups as a function of the threshold, between two procedures on two cores: the sender computes
 * and pushes each element, the receiver computes with each, and a side that has to wait is suspended at once.
 * A threshold of 0 is the automatic one. */
#include "bench.h"

#include <levada/stream.h>

static uint64_t threshold, produce, consume, capacity, count, sum;
static lvd_stream *stream;
static uint32_t in_force;

/* `n` iterations of a loop that takes one cycle each. */
static void work(uint64_t n) {
  while (n--) __asm__ volatile("");
}

static void must(lvd_status status, const char *what) {
  if (status == LVD_OK) return;
  fprintf(stderr, "%s: %s\n", what, lvd_status_text(status));
  exit(1);
}

static void sender(void *unused) {
  (void)unused;
  for (uint64_t i = 0; i < count; i++) {
    work(produce);
    uint32_t x = (uint32_t)i;
    must(lvd_stream_put(stream, &x, sizeof x), "lvd_stream_put");
    lvd_stream_push(stream);
  }
}

static void receiver(void *unused) {
  (void)unused;
  uint32_t x;
  lvd_status status;
  while ((status = lvd_stream_get(stream, &x, sizeof x)) == LVD_OK) {
    lvd_stream_pop(stream);
    sum += x;
    work(consume);
  }
  if (status != LVD_E_EOF) must(status, "lvd_stream_get");
  in_force = stream->consumer.threshold;
}

int main(int argc, char **argv) {
  static const char usage[] = "THRESHOLD SPIN PRODUCE CONSUME CAPACITY COUNT";
  threshold = bench_number(argc, argv, 1, usage);
  uint64_t spin = bench_number(argc, argv, 2, usage);
  produce = bench_number(argc, argv, 3, usage);
  consume = bench_number(argc, argv, 4, usage);
  capacity = bench_number(argc, argv, 5, usage);
  count = bench_number(argc, argv, 6, usage);
  lvd_runtime_options ro = {.workers = 2, .no_spin = !spin};
  lvd_runtime *rt;
  lvd_app *app;
  must(lvd_runtime_create(&ro, &rt), "lvd_runtime_create");
  if (lvd_worker_count(rt) < 2) {
    fprintf(stderr, "two cores are needed\n");
    return 1;
  }
  must(lvd_app_open(rt, NULL, &app), "lvd_app_open");
  lvd_stream_options so = {
      .elem_size = 4, .capacity = (uint32_t)capacity, .threshold = (uint32_t)threshold};
  must(lvd_stream_create(app, &so, &stream), "lvd_stream_create");
  lvd_fiber *f[2];
  double from = bench_now(), cpu = bench_cpu();
  for (uint32_t i = 0; i < 2; i++) {
    lvd_fiber_options fo = {.place = LVD_WORKER(i)};
    must(lvd_fiber_start(app, i ? sender : receiver, NULL, &fo, &f[i]), "lvd_fiber_start");
  }
  for (int i = 0; i < 2; i++) must(lvd_fiber_join(f[i], -1), "lvd_fiber_join");
  bench_say("ms", (bench_now() - from) * 1e3);
  bench_say("cpu_ms", (bench_cpu() - cpu) * 1e3);
  uint64_t expected = 0;
  for (uint64_t i = 0; i < count; i++) expected += (uint32_t)i;
  bench_expect("the sum", sum, expected);
  /* Both ends wait through the sleepers of the stream, which count. */
  bench_say("wakes", (double)(((lvd_wait_point *)stream->producer.self)->sleeps +
                              ((lvd_wait_point *)stream->consumer.self)->sleeps));
  bench_say("woken", (double)(stream->producer.wakes + stream->consumer.wakes));
  bench_say("threshold", in_force);
  lvd_app_close(app);
  must(lvd_app_wait(app, -1), "lvd_app_wait");
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
  return 0;
}
