/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A network of actors written in C: numbers -> squares -> sum, on one worker per core.
 * It is C17 and C++17 alike. */
#include <levada/levada.h>
#include <stdio.h>

/* Each action has a name, for counters and reports. */
static const lvd_action_class numbers_actions[] = {{"count", "pipeline.c", 0}};
static const lvd_action_class square_actions[] = {{"square", "pipeline.c", 0}};
static const lvd_action_class sum_actions[] = {{"add", "pipeline.c", 0}};
static const lvd_port_class in_port[] = {{"In", sizeof(uint64_t)}};
static const lvd_port_class out_port[] = {{"Out", sizeof(uint64_t)}};

enum { COUNT = 1000000 };

/* An actor's run fires as often as it can; when it cannot, it says what it waits for. */
static lvd_run_result numbers_run(lvd_actor *self) {
  uint64_t *next = (uint64_t *)self->state;
  lvd_producer *out = &self->out[0];
  while (*next < COUNT) {
    if (!lvd_room(out, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(out, uint64_t, (*next)++);
    self->fired[0]++;
  }
  return LVD_RUN_DONE; /* its output ends */
}

/* Spans: as many elements as there are, where they lie, nothing copied. */
static lvd_run_result square_run(lvd_actor *self) {
  lvd_consumer *in = &self->in[0];
  lvd_producer *out = &self->out[0];
  for (;;) {
    uint32_t n = lvd_elements(in, 1), room = lvd_room(out, 1);
    if (n == 0) {
      if (lvd_ended(in) != LVD_OK) return LVD_RUN_DONE;
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (room == 0) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    if (n > room) n = room;
    const uint64_t *from = (const uint64_t *)lvd_get_span(in);
    uint64_t *to = (uint64_t *)lvd_put_span(out);
    for (uint32_t i = 0; i < n; i++) to[i] = from[i] * from[i];
    lvd_get_done(in, n);
    lvd_put_done(out, n);
    self->fired[0] += n;
  }
}

static lvd_run_result sum_run(lvd_actor *self) {
  uint64_t *sum = (uint64_t *)self->state;
  lvd_consumer *in = &self->in[0];
  while (lvd_elements(in, 1)) {
    *sum += LVD_GET(in, uint64_t);
    self->fired[0]++;
  }
  if (lvd_ended(in) != LVD_OK) {
    printf("the squares of 0 to %d sum to %llu\n", COUNT - 1, (unsigned long long)*sum);
    return LVD_RUN_DONE;
  }
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

static const lvd_actor_class numbers = {
    "Numbers", "pipeline.c", sizeof(uint64_t), 0,    0,           1,    1,
    NULL,      out_port,     numbers_actions,  NULL, numbers_run, NULL, NULL};
static const lvd_actor_class square = {
    "Square", "pipeline.c",   0,    0,          1,    1,   1, in_port,
    out_port, square_actions, NULL, square_run, NULL, NULL};
static const lvd_actor_class sum = {
    "Sum",   "pipeline.c", sizeof(uint64_t), 0,    1,       0,    1,
    in_port, NULL,         sum_actions,      NULL, sum_run, NULL, NULL};

/* The network is a table: actors, and channels from an output to inputs. */
static const lvd_actor_desc actors[] = {
    {"numbers", &numbers, NULL, 0}, {"square", &square, NULL, 0}, {"sum", &sum, NULL, 0}};
static const lvd_port_ref to_square[] = {{1, 0}};
static const lvd_port_ref to_sum[] = {{2, 0}};
static const lvd_channel_desc channels[] = {{{0, 0}, 1, to_square, sizeof(uint64_t), 0, 0, 0},
                                            {{1, 0}, 1, to_sum, sizeof(uint64_t), 0, 0, 0}};
static const lvd_network network = {LVD_ABI_VERSION, "pipeline", 3, 2, actors, channels};

int main(void) {
  lvd_runtime *runtime;
  lvd_app *app;
  char why[256];
  lvd_status status = lvd_runtime_create(NULL, &runtime);
  if (status == LVD_OK) {
    status = lvd_app_load(runtime, &network, NULL, &app, why, sizeof why);
    if (status != LVD_OK) {
      fprintf(stderr, "cannot load: %s\n", why);
    } else {
      lvd_app_start(app);
      status = lvd_app_wait(app, -1);
      lvd_app_unload(app);
    }
    lvd_runtime_destroy(runtime);
  }
  if (status != LVD_OK)
    fprintf(stderr, "%s: %s\n", lvd_status_name(status), lvd_status_text(status));
  return status == LVD_OK ? 0 : 1;
}
