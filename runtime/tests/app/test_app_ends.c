/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* How applications end: external ends, quiescence, and deadlocks with their reports. */
#include "../support/test.h"

/* ---- external ends of channels --------------------------------------------------------------- */

/* What it waited for before has no effect. */
static lvd_run_result awaits_and_ends_run(lvd_actor *self) {
  lvd_await_room(self, 0, 1);
  return LVD_RUN_DONE;
}
void test_app_awaits_and_ends(void) {
  static const lvd_port_class out[] = {{"X", 4}};
  static const lvd_actor_class cls = {
      .name = "awaits", .outputs = 1, .output = out, .run = awaits_and_ends_run};
  lvd_runtime *rt = runtime_of(1);
  sink s = {0};
  builder b;
  builder_init(&b, "awaits");
  builder_connect(&b, builder_actor(&b, "awaits", &cls, NULL), 0,
                  builder_actor(&b, "sink", &sink_class, &s), 0, 64);
  app_ended(app_begun(rt, &b), LVD_OK);
  lvd_runtime_destroy(rt);
}

/* Takes `params` elements of its first input; then it ends, or waits for its second. */
static lvd_run_result takes_run(lvd_actor *self) {
  uint32_t *taken = self->state, most = *(const uint32_t *)self->params;
  for (; *taken < most; ++*taken) {
    if (!lvd_elements(&self->in[0], 1)) {
      lvd_await_elements(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    (void)LVD_GET(&self->in[0], uint32_t);
  }
  if (self->cls->inputs == 1) return LVD_RUN_DONE;
  lvd_await_elements(self, 1, 1);
  return LVD_RUN_WAIT;
}
void test_app_why_omits_closed_ends(void) {
  static const lvd_port_class in[] = {{"A", 4}, {"B", 4}};
  static const lvd_actor_class leaves = {
      .name = "leaves", .state_size = 4, .inputs = 1, .input = in, .run = takes_run};
  static const lvd_actor_class stays = {
      .name = "stays", .state_size = 4, .inputs = 2, .input = in, .run = takes_run};
  lvd_runtime *rt = runtime_of(1);
  uint32_t count = 1000, three = 3, ten = 10;
  builder b;
  builder_init(&b, "left");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  uint32_t never = builder_actor(&b, "never", &add_class, NULL);
  uint32_t gone = builder_actor(&b, "gone", &leaves, &three);
  uint32_t here = builder_actor(&b, "here", &stays, &ten);
  builder_connect(&b, source, 0, gone, 0, 64);
  builder_connect(&b, source, 0, here, 0, 64);
  builder_connect(&b, LVD_EXTERNAL, 0, never, 0, 64);
  builder_connect(&b, never, 0, here, 1, 64);
  lvd_app *app = app_begun(rt, &b);
  /* The source may also wait for room for a moment before `here` has taken all of its elements, or
   * the other has left. */
  const char *full = "the channel source.X -> here.A is full (64 of 64); here has to empty it";
  char why[1000];
  do {
    sleep_ms(1);
    lvd_app_wait_report(app, why, sizeof why);
  } while (!strstr(why, full) || strstr(why, " turn on worker"));
  printf("%s", why);
  CHECK(!strstr(why, "gone"));
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

void test_app_outside_ends(void) {
  enum { ELEMENTS = SCALED(200000) };
  lvd_runtime *rt = runtime_of(2);
  builder b;
  builder_init(&b, "outside");
  uint32_t add = builder_actor(&b, "add", &add_class, NULL);
  static const lvd_port_ref to[] = {{LVD_EXTERNAL, 0}};
  builder_connect(&b, LVD_EXTERNAL, 0, add, 0, 10);
  b.channel[b.net.channels++] = (lvd_channel_desc){{add, 0}, 1, to, 4, 7, 0, 0};
  lvd_app *app = app_loaded(rt, &b);
  lvd_producer *p = lvd_app_producer(app, 0);
  lvd_consumer *c = lvd_app_consumer(app, 1, 0);
  CHECK(p && c && !lvd_app_producer(app, 1) && !lvd_app_consumer(app, 0, 0));
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_wait_elements(c, 1, 5000000), LVD_E_TIMEOUT);
  CHECK_EQ(lvd_app_wait(app, 20 * MS_NS), LVD_E_TIMEOUT); /* more may come: it does not end */
  uint32_t sent = 0, received = 0;
  while (received < ELEMENTS) {
    while (sent < ELEMENTS && lvd_room(p, 1)) LVD_PUT(p, uint32_t, sent++);
    lvd_flush(p);
    CHECK_EQ(lvd_wait_elements(c, 1, -1), LVD_OK);
    for (uint32_t n = lvd_elements(c, 1); n; n--) CHECK_EQ(LVD_GET(c, uint32_t), ++received);
    lvd_release(c);
  }
  LVD_PUT(p, uint32_t, 76);
  lvd_producer_close(p, LVD_OK);
  CHECK_EQ(lvd_wait_elements(c, 2, -1), LVD_E_EOF);
  CHECK_EQ(lvd_elements(c, 1), 1);
  CHECK_EQ(LVD_GET(c, uint32_t), 77);
  lvd_release(c);
  CHECK_EQ(lvd_wait_elements(c, 1, -1), LVD_E_EOF);
  app_ended(app, LVD_OK);

  /* Stopped from outside: both ends are told. */
  app = app_loaded(rt, &b);
  p = lvd_app_producer(app, 0);
  c = lvd_app_consumer(app, 1, 0);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  CHECK_EQ(lvd_app_stop(app), LVD_OK);
  CHECK_EQ(lvd_wait_elements(c, 1, -1), LVD_E_STOPPED);
  CHECK_EQ(lvd_wait_room(p, 10, -1), LVD_E_PEER_GONE);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* What the program puts before the start, and the end of it, arrives after the start. */
void test_app_end_before_start(void) {
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    sink s = {0};
    builder b;
    lvd_app *app;
    builder_init(&b, "early");
    builder_connect(&b, LVD_EXTERNAL, 0, builder_actor(&b, "sink", &sink_class, &s), 0, 10);
    app = app_loaded(rt, &b);
    lvd_producer *p = lvd_app_producer(app, 0);
    for (uint32_t i = 0; i < 3; i++) LVD_PUT(p, uint32_t, i);
    lvd_producer_close(p, LVD_OK);
    sleep_ms(1);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
    app_ended(app, LVD_OK);
    check_pipeline(&s, 3, 0);
    lvd_runtime_destroy(rt);
  }
}

/* The program closes its end just as the application becomes quiescent: what it pushed arrives, and
 * each actor learns of the end. */
void test_app_end_at_rest(void) {
  lvd_runtime *rt = runtime_of(2);
  uint64_t seed = 31;
  for (uint32_t round = 0; round < SCALED(4000); round++) {
    sink s = {0};
    builder b;
    lvd_app *app;
    builder_init(&b, "late");
    uint32_t add = builder_actor(&b, "add", &add_class, NULL);
    builder_connect(&b, LVD_EXTERNAL, 0, add, 0, 10);
    builder_connect(&b, add, 0, builder_actor(&b, "sink", &sink_class, &s), 0, 10);
    app = app_begun(rt, &b);
    lvd_producer *p = lvd_app_producer(app, 0);
    LVD_PUT(p, uint32_t, 0);
    lvd_flush(p);
    for (uint64_t n = next_random(&seed) % 20000; n--;) __asm__ volatile("");
    LVD_PUT(p, uint32_t, 1);
    lvd_producer_close(p, LVD_OK);
    app_ended(app, LVD_OK);
    check_pipeline(&s, 2, 1);
  }
  lvd_runtime_destroy(rt);
}

/* ---- deadlock -------------------------------------------------------------------------------- */

void test_app_deadlock_says_why(void) {
  /* The sum waits for its second input, which comes through an adder that never gets room: the
   * source blocks on the sum's first input, of 3, before the other branch has its 5. */
  lvd_runtime *rt = runtime_of(2);
  uint32_t count = 100;
  builder b;
  builder_init(&b, "stuck");
  uint32_t sum = builder_actor(&b, "sum", &sum_class, NULL);
  uint32_t loop = builder_actor(&b, "loop", &add_class, NULL);
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  builder_connect(&b, source, 0, sum, 0, 3);
  builder_connect(&b, sum, 0, loop, 0, 4);
  builder_connect(&b, loop, 0, sum, 1, 4);
  lvd_app *app = app_begun(rt, &b);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_E_DEADLOCK);
  char why[2000];
  CHECK(lvd_app_wait_report(app, why, sizeof why) < sizeof why);
  printf("%s", why);
  CHECK(strstr(why, "in a cycle"));
  CHECK(
      strstr(why, "sum waits for 1 element on its input B: the channel loop.X -> sum.B is empty"));
  CHECK(
      strstr(why, "loop waits for 1 element on its input A: the channel sum.X -> loop.A is empty"));
  CHECK(strstr(why, "source waits for room for 1 on its output X: the channel source.X -> sum.A is "
                    "full (3 of 3); sum has to empty it"));
  char small[20];
  CHECK_EQ(lvd_app_wait_report(app, small, sizeof small), strlen(why));
  CHECK_EQ(strlen(small), 19);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- ends with and without deadlock, where no actor waits for room --------------------------- */

static lvd_status end_of(builder *b, const char *words) {
  lvd_status status = LVD_OK;
  for (uint32_t workers = 1; workers <= 2; workers++) {
    lvd_runtime *rt = runtime_of(workers);
    lvd_app *app;
    char why[2000];
    CHECK_EQ(lvd_app_load(rt, &b->net, NULL, &app, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
    status = lvd_app_wait(app, 5000 * MS_NS);
    lvd_app_wait_report(app, why, sizeof why);
    if (!strstr(why, words)) printf("%s", why);
    CHECK(strstr(why, words));
    lvd_app_unload(app);
    lvd_runtime_destroy(rt);
  }
  return status;
}

void test_app_cycle_without_a_first_element(void) {
  builder b;
  /* A pipeline that works, and two actors that wait for each other from the start. */
  uint32_t count = 100;
  sink s = {0};
  builder_init(&b, "circle");
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  uint32_t sk = builder_actor(&b, "sink", &sink_class, &s);
  uint32_t one = builder_actor(&b, "one", &add_class, NULL);
  uint32_t two = builder_actor(&b, "two", &add_class, NULL);
  builder_connect(&b, source, 0, sk, 0, 16);
  builder_connect(&b, one, 0, two, 0, 4);
  builder_connect(&b, two, 0, one, 0, 4);
  CHECK_EQ(end_of(&b, "one waits for 1 element on its input A"), LVD_E_DEADLOCK);
  CHECK_EQ(s.count, count);
}

void test_app_cycle_with_elements_waiting(void) {
  /* As above with so few elements that no actor waits for room: they stay before the sum. */
  uint32_t count = 3;
  builder b;
  builder_init(&b, "waiting");
  uint32_t sum = builder_actor(&b, "sum", &sum_class, NULL);
  uint32_t loop = builder_actor(&b, "loop", &add_class, NULL);
  uint32_t source = builder_actor(&b, "source", &source_class, &count);
  builder_connect(&b, source, 0, sum, 0, 16);
  builder_connect(&b, sum, 0, loop, 0, 4);
  builder_connect(&b, loop, 0, sum, 1, 4);
  CHECK_EQ(end_of(&b, "sum waits for 1 element on its input B"), LVD_E_DEADLOCK);
}

static lvd_run_result unequal_run(lvd_actor *self) { /* two of A with each of B */
  for (;;) {
    if (lvd_elements(&self->in[0], 2) < 2) {
      lvd_await_elements(self, 0, 2);
      return LVD_RUN_WAIT;
    }
    if (!lvd_elements(&self->in[1], 1)) {
      lvd_await_elements(self, 1, 1);
      return LVD_RUN_WAIT;
    }
    lvd_get_done(&self->in[0], 2);
    lvd_get_done(&self->in[1], 1);
  }
}

void test_app_left_over_is_no_deadlock(void) {
  static const lvd_port_class in[] = {{"A", 4}, {"B", 4}};
  static const lvd_actor_class unequal = {
      .name = "unequal", .inputs = 2, .input = in, .run = unequal_run};
  uint32_t five = 5, three = 3;
  builder b;
  builder_init(&b, "left over");
  uint32_t to = builder_actor(&b, "unequal", &unequal, NULL);
  builder_connect(&b, builder_actor(&b, "five", &source_class, &five), 0, to, 0, 16);
  builder_connect(&b, builder_actor(&b, "three", &source_class, &three), 0, to, 1, 16);
  CHECK_EQ(end_of(&b, "unequal waits for 2 elements on its input A"), LVD_OK);
}

static lvd_run_result
token_run(lvd_actor *self) { /* puts the first; consumes it when it has been round */
  uint32_t *rounds = self->state;
  if (*rounds == 0) {
    if (!lvd_room(&self->out[0], 1)) return LVD_RUN_WAIT;
    LVD_PUT(&self->out[0], uint32_t, 1);
    *rounds = 1;
  }
  while (lvd_elements(&self->in[0], 1)) {
    uint32_t v = LVD_GET(&self->in[0], uint32_t);
    if (++*rounds < 10 && lvd_room(&self->out[0], 1)) LVD_PUT(&self->out[0], uint32_t, v);
  }
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

void test_app_ring_that_has_done_its_work(void) {
  static const lvd_port_class in[] = {{"A", 4}}, out[] = {{"X", 4}};
  static const lvd_actor_class token = {.name = "token",
                                        .state_size = 4,
                                        .inputs = 1,
                                        .outputs = 1,
                                        .input = in,
                                        .output = out,
                                        .run = token_run};
  builder b;
  builder_init(&b, "ring");
  uint32_t first = builder_actor(&b, "first", &token, NULL);
  uint32_t other = builder_actor(&b, "other", &add_class, NULL);
  builder_connect(&b, first, 0, other, 0, 4);
  builder_connect(&b, other, 0, first, 0, 4);
  CHECK_EQ(end_of(&b, "in a cycle"), LVD_OK);
}
