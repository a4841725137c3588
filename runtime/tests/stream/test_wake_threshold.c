/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The automatic threshold of a stream: it saves wake-ups, is at most half of the capacity, and
 * delays nothing when the sender becomes slow. */
#include "../support/test.h"

#include <sched.h>

enum { CAPACITY = 1024, SLOW = 40 };

typedef struct job {
  lvd_stream *stream;
  uint32_t fast, slow;
  uint32_t highest; /* threshold */
} job;

static bool is_asleep(const lvd_stream *s) {
  const lvd_wake_mark *m = &s->producer.channel->consumer[0].elements;
  return lvd_load_relaxed_u32(&m->armed) &&
         !lvd_reached((uint32_t)s->producer.put, lvd_load_relaxed_u32(&m->at));
}

/* Lets the receiver fall asleep before each element; then waits until each is taken, without
 * announcing that. */
static void send(void *argument) {
  job *j = argument;
  lvd_stream *s = j->stream;
  for (uint32_t i = 0; i < j->fast + j->slow; i++) {
    while (i < j->fast && !is_asleep(s)) sched_yield();
    CHECK_EQ(lvd_stream_put(s, &i, sizeof i), LVD_OK);
    lvd_stream_push(s);
    const lvd_a32 *head = &s->producer.channel->consumer[0].head;
    while (i >= j->fast && lvd_load_relaxed_u32(head) != i + 1) sched_yield();
  }
}

static void receive(void *argument) {
  job *j = argument;
  uint32_t x, n = 0;
  while (lvd_stream_get(j->stream, &x, sizeof x) == LVD_OK) {
    CHECK_EQ(x, n++);
    lvd_stream_pop(j->stream);
    if (j->stream->consumer.threshold > j->highest) j->highest = j->stream->consumer.threshold;
  }
  CHECK_EQ(n, j->fast + j->slow);
}

/* Returns the number of wake-ups. */
static uint64_t run(lvd_runtime *rt, job *j, uint32_t capacity, uint32_t threshold) {
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  lvd_stream_options o = {.elem_size = 4, .capacity = capacity, .threshold = threshold};
  CHECK_EQ(lvd_stream_create(app, &o, &j->stream), LVD_OK);
  lvd_fiber *f[2];
  for (uint32_t i = 0; i < 2; i++) {
    lvd_fiber_options fo = {.place = LVD_WORKER(i)};
    CHECK_EQ(lvd_fiber_start(app, i ? send : receive, j, &fo, &f[i]), LVD_OK);
  }
  for (uint32_t i = 0; i < 2; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  uint64_t wakes = j->stream->producer.wakes;
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  return wakes;
}

void test_threshold_is_chosen(void) {
  lvd_runtime_options ro = {.workers = 2, .no_spin = true};
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(&ro, &rt), LVD_OK);
  job one = {.fast = SCALED(4000) + 2000}, automatic = one;
  uint64_t wakes, fewer;
  int tries = 0;
  uint64_t others = times_preempted();
  do { /* two hundred times fewer, on an idle machine */
    wakes = run(rt, &one, CAPACITY, 1);
    fewer = run(rt, &automatic, CAPACITY, 0);
    printf("%u elements: %llu wake-ups at a threshold of 1, %llu at one that goes up to %u\n",
           one.fast, (unsigned long long)wakes, (unsigned long long)fewer, automatic.highest);
  } while (fewer * 3 >= wakes && ++tries < 20);
  if (fewer * 3 >= wakes && times_preempted() - others > 100)
    SKIP("other processes use the cores, so that elements seem to come slowly");
  CHECK(fewer * 3 < wakes);
  CHECK_EQ(one.highest, 1);
  CHECK(automatic.highest > 1 && automatic.highest <= CAPACITY / 2);
  lvd_runtime_destroy(rt);
}

/* The threshold becomes high; then the sender pushes one element, and the next one only when that
 * was got. With a fixed threshold this would never end. */
void test_threshold_hides_nothing(void) {
  lvd_runtime_options ro = {.workers = 2, .no_spin = true};
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(&ro, &rt), LVD_OK);
  for (uint32_t capacity = 1; capacity <= CAPACITY; capacity *= 4) {
    job j = {.fast = 1000, .slow = SLOW};
    run(rt, &j, capacity, 0);
    CHECK(j.highest <= (capacity < 2 ? 1 : capacity / 2));
  }
  lvd_runtime_destroy(rt);
}

typedef struct pair {
  job job[2];
} pair;

/* Takes from any stream that has an element. */
static void receive_any(void *argument) {
  pair *p = argument;
  lvd_stream *open[2] = {p->job[0].stream, p->job[1].stream};
  uint32_t left = 2, which, x, n = 0;
  while (left) {
    lvd_status status = lvd_stream_select(open, left, -1, &which);
    if (status == LVD_E_EOF) {
      open[which] = open[--left];
      continue;
    }
    CHECK_EQ(status, LVD_OK);
    CHECK_EQ(lvd_stream_get(open[which], &x, sizeof x), LVD_OK);
    lvd_stream_pop(open[which]);
    n++;
  }
  CHECK_EQ(n, p->job[0].slow + p->job[1].slow);
}

void test_threshold_select(void) {
  lvd_runtime *rt = runtime_of(3);
  lvd_app *app;
  CHECK_EQ(lvd_app_open(rt, NULL, &app), LVD_OK);
  pair p = {.job = {{.slow = SCALED(4000) + 100}, {.slow = SCALED(2000) + 100}}};
  lvd_fiber *f[3];
  for (uint32_t i = 0; i < 2; i++) {
    lvd_stream_options o = {.elem_size = 4, .capacity = CAPACITY};
    CHECK_EQ(lvd_stream_create(app, &o, &p.job[i].stream), LVD_OK);
    lvd_fiber_options fo = {.place = LVD_WORKER(1 + i)};
    CHECK_EQ(lvd_fiber_start(app, send, &p.job[i], &fo, &f[1 + i]), LVD_OK);
  }
  lvd_fiber_options fo = {.place = LVD_WORKER(0)};
  CHECK_EQ(lvd_fiber_start(app, receive_any, &p, &fo, &f[0]), LVD_OK);
  for (uint32_t i = 0; i < 3; i++) CHECK_EQ(lvd_fiber_join(f[i], -1), LVD_OK);
  lvd_app_close(app);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
