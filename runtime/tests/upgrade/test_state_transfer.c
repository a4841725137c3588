/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* State transfer: variables, strings, schedules, elements and persistent data of a running
 * application are transferred to a loaded one; what cannot be transferred is reported, and the old
 * one continues. Covered: versions in a row of which none has begun, channels that are too small or
 * of other elements, a state of a schedule that is removed, consumers at different elements, and a
 * source that is held. */
#include "../support/test.h"

#include <levada/native.h>
#include <string.h>

enum { COUNT_OF_ALL = 20000 };

typedef struct source_state {
  uint32_t schedule, next;
} source_state;

typedef struct sum_state {
  uint32_t schedule, count;
  uint64_t sum;
  const char *text;
} sum_state;

/* Shared by all tests here: the sums, and the element at which they wait. */
static lvd_a32 open_at, counts[2];
static uint64_t sums[2];
static char texts[2][32];
static uint32_t blocks_made, blocks_ended;
static const char key;

/* Number of elements passed on, in whatever actor: expected in the state of all that passed
 * some. */
static uint32_t passed_in_all;

/* `passed` counts what the actor that it is fused with passes on; null: it is alone. */
static lvd_run_result give_all(lvd_actor *self, uint32_t *next, uint32_t *passed) {
  lvd_producer *p = &self->out[0];
  while (*next < COUNT_OF_ALL) {
    if (!lvd_room(p, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(p, uint32_t, *next);
    ++*next;
    if (passed) CHECK_EQ(++*passed, ++passed_in_all);
    self->fired[0]++;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  return LVD_RUN_DONE;
}

static lvd_run_result give(lvd_actor *self) {
  source_state *s = self->state;
  return give_all(self, &s->next, NULL);
}

static void block_end(void *data, lvd_status outcome) {
  (void)data, (void)outcome;
  blocks_ended++;
}

/* It waits at the element `open_at`. */
static lvd_run_result take(lvd_actor *self) {
  sum_state *s = self->state;
  const uint32_t *which = self->params;
  lvd_consumer *c = &self->in[0];
  if (*which == 0) {
    uint32_t *made =
        lvd_app_persistent_data(lvd_current_app(), "test", &key, sizeof *made, block_end);
    if (!*made) *made = ++blocks_made;
  }
  for (;;) {
    if (s->count >= lvd_load_relaxed_u32(&open_at) + 55 * *which) return LVD_RUN_YIELD;
    if (!lvd_elements(c, 1)) break;
    s->sum += LVD_GET(c, uint32_t);
    lvd_pop(c);
    s->count++;
    s->text = s->count % 2 ? "odd" : "even";
    s->schedule = 1 + s->count % 2;
    self->fired[0]++;
    sums[*which] = s->sum;
    snprintf(texts[*which], sizeof texts[0], "%s", s->text);
    lvd_store_release_u32(&counts[*which], s->count);
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  if (lvd_ended(c) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

static const char *const one_state[] = {""}, *const states[] = {"even", "odd"},
                         *const other_states[] = {"even", "unlike"};
static const lvd_state_var source_variables[] = {
    {"next", "uint 32", offsetof(source_state, next), sizeof(uint32_t), false}};
static const lvd_state_var sum_variables[] = {
    {"count", "uint 32", offsetof(sum_state, count), sizeof(uint32_t), false},
    {"sum", "uint 64", offsetof(sum_state, sum), sizeof(uint64_t), false},
    {"text", "string", offsetof(sum_state, text), sizeof(char *), true}};
static const lvd_state_schema source_schema = {1, source_variables, 1, 0, 0, one_state, NULL},
                              sum_schema = {3, sum_variables, 2, 1, 0, states, NULL},
                              unlike_schema = {3, sum_variables, 2, 1, 0, other_states, NULL};
static const lvd_port_class port = {"X", 4}, wide_port = {"X", 8};
static const lvd_action_class fires = {.name = "fires"};
static const lvd_actor_class giving_class = {.name = "source",
                                             .state_size = sizeof(source_state),
                                             .outputs = 1,
                                             .actions = 1,
                                             .output = &port,
                                             .action = &fires,
                                             .run = give,
                                             .state_schema = &source_schema},
                             summing_class = {.name = "sum",
                                              .state_size = sizeof(sum_state),
                                              .inputs = 1,
                                              .actions = 1,
                                              .input = &port,
                                              .action = &fires,
                                              .run = take,
                                              .state_schema = &sum_schema},
                             numbered_class = {.name = "sum__12",
                                               .state_size = sizeof(sum_state),
                                               .inputs = 1,
                                               .actions = 1,
                                               .input = &port,
                                               .action = &fires,
                                               .run = take,
                                               .state_schema = &sum_schema},
                             unlike_class = {.name = "sum",
                                             .state_size = sizeof(sum_state),
                                             .inputs = 1,
                                             .actions = 1,
                                             .input = &port,
                                             .action = &fires,
                                             .run = take,
                                             .state_schema = &unlike_schema},
                             wide_source = {.name = "source",
                                            .state_size = sizeof(source_state),
                                            .outputs = 1,
                                            .actions = 1,
                                            .output = &wide_port,
                                            .action = &fires,
                                            .run = give,
                                            .state_schema = &source_schema},
                             wide_class = {.name = "sum",
                                           .state_size = sizeof(sum_state),
                                           .inputs = 1,
                                           .actions = 1,
                                           .input = &wide_port,
                                           .action = &fires,
                                           .run = take,
                                           .state_schema = &sum_schema};

static const uint32_t first = 0, second = 1;
static const lvd_port_ref both[] = {{1, 0}, {2, 0}};

/* A source and two sums, the second of which is ahead. */
typedef struct version {
  lvd_actor_desc actor[3];
  lvd_channel_desc channel;
  lvd_network net;
} version;

static void make(version *v, const lvd_actor_class *source, const lvd_actor_class *sum,
                 uint32_t capacity) {
  v->actor[0] = (lvd_actor_desc){.name = "source", .cls = source};
  v->actor[1] = (lvd_actor_desc){.name = "first", .cls = sum, .params = &first};
  v->actor[2] = (lvd_actor_desc){.name = "second", .cls = sum, .params = &second};
  v->channel = (lvd_channel_desc){{0, 0}, 2, both, source->output->elem_size, capacity, 0, 0};
  v->net = (lvd_network){LVD_ABI_VERSION, "versions", 3, 1, v->actor, &v->channel};
}

static lvd_app *loaded(lvd_runtime *rt, version *v) {
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &v->net, NULL, &app, NULL, 0), LVD_OK);
  return app;
}

/* Ends the paused `old`, and returns its successor, which has started. */
static lvd_app *over(lvd_app *old, lvd_app *app) {
  char why[200] = "";
  lvd_status status = lvd_app_upgrade_from(app, old, why, sizeof why);
  if (status != LVD_OK) fprintf(stderr, "%s\n", why);
  CHECK_EQ(status, LVD_OK);
  lvd_app_exit(old);
  CHECK_EQ(lvd_app_wait(old, -1), LVD_OK);
  lvd_app_unload(old);
  return app;
}

static void until_counted(uint32_t which, uint32_t count) {
  while (lvd_load_acquire_u32(&counts[which]) < count) sleep_ms(1);
}

static void check_sums(void) {
  for (int i = 0; i < 2; i++) {
    CHECK_EQ(lvd_load_acquire_u32(&counts[i]), COUNT_OF_ALL);
    CHECK_EQ(sums[i], (uint64_t)COUNT_OF_ALL * (COUNT_OF_ALL - 1) / 2);
    CHECK(strcmp(texts[i], "even") == 0);
  }
}

void test_transfer_continues(void) {
  lvd_runtime *rt = runtime_of(2);
  version plain, numbered;
  make(&plain, &giving_class, &summing_class, 256);
  make(&numbered, &giving_class, &numbered_class, 256);
  lvd_store_relaxed_u32(&open_at, 55);
  lvd_app *app = loaded(rt, &plain);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  for (uint32_t i = 1; i < 40; i++) {
    until_counted(0, i * 55);
    until_counted(1, i * 55 + 55);
    CHECK_EQ(lvd_app_pause(app), LVD_OK);
    app = over(app, loaded(rt, i % 2 ? &numbered : &plain));
    CHECK(lvd_app_has_unclaimed_data(app));
    /* And another one, before this one has begun. */
    if (i % 3 == 0) app = over(app, loaded(rt, &plain));
    lvd_store_relaxed_u32(&open_at, (i + 1) * 55);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
  }
  lvd_store_relaxed_u32(&open_at, COUNT_OF_ALL + 1);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  check_sums();
  CHECK_EQ(blocks_made, 1);
  CHECK_EQ(blocks_ended, 1);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* ---- fused actors ---------------------------------------------------------------------------- */

typedef struct joined_state {
  uint32_t schedule, next, passed;
} joined_state;

static lvd_run_result give_and_pass(lvd_actor *self) {
  joined_state *s = self->state;
  return give_all(self, &s->next, &s->passed);
}

static lvd_run_result pass(lvd_actor *self) {
  joined_state *s = self->state;
  lvd_consumer *c = &self->in[0];
  lvd_producer *p = &self->out[0];
  while (lvd_elements(c, 1)) {
    if (!lvd_room(p, 1)) {
      lvd_await_room(self, 0, 1);
      return LVD_RUN_WAIT;
    }
    LVD_PUT(p, uint32_t, LVD_GET(c, uint32_t));
    lvd_pop(c);
    CHECK_EQ(++s->passed, ++passed_in_all);
    self->fired[0]++;
    if (lvd_should_yield(self)) return LVD_RUN_YIELD;
  }
  if (lvd_ended(c) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}

static const lvd_state_var pass_variables[] = {{"passed", "uint 32", offsetof(joined_state, passed),
                                                4, false}},
                           joined_variables[] = {
                               {"source.next", "uint 32", offsetof(joined_state, next), 4, false},
                               {"pass.passed", "uint 32", offsetof(joined_state, passed), 4,
                                false}};
static const lvd_state_schema pass_schema = {1, pass_variables, 1, 0, 0, one_state, NULL},
                              joined_schema = {2, joined_variables, 1, 0, 0, one_state, NULL};
static const lvd_port_class joined_port = {"pass.X", 4};
static const lvd_actor_class pass_class = {.name = "pass__3",
                                           .state_size = sizeof(joined_state),
                                           .inputs = 1,
                                           .outputs = 1,
                                           .actions = 1,
                                           .input = &port,
                                           .output = &port,
                                           .action = &fires,
                                           .run = pass,
                                           .state_schema = &pass_schema},
                             joined_class = {.name = "source+pass__4",
                                             .state_size = sizeof(joined_state),
                                             .outputs = 1,
                                             .actions = 1,
                                             .output = &joined_port,
                                             .action = &fires,
                                             .run = give_and_pass,
                                             .state_schema = &joined_schema};

/* The same network unfused, with `pass` of this class, and fused. One test is one process. */
static void make_both(lvd_network net[2], const lvd_actor_class *passes) {
  static const lvd_port_ref to_pass[] = {{1, 0}}, to_last[] = {{2, 0}}, to_second[] = {{1, 0}};
  static lvd_actor_desc alone[3], joined[2];
  static const lvd_channel_desc two[] = {{{0, 0}, 1, to_pass, 4, 16, 0, 0},
                                         {{1, 0}, 1, to_last, 4, 256, 0, 0}},
                                one = {{0, 0}, 1, to_second, 4, 256, 0, 0};
  alone[0] = (lvd_actor_desc){.name = "n.source", .cls = &giving_class};
  alone[1] = (lvd_actor_desc){.name = "n.pass", .cls = passes};
  joined[0] = (lvd_actor_desc){.name = "n.source+n.pass", .cls = &joined_class};
  alone[2] = joined[1] = (lvd_actor_desc){.name = "last", .cls = &summing_class, .params = &first};
  net[0] = (lvd_network){LVD_ABI_VERSION, "alone", 3, 2, alone, two};
  net[1] = (lvd_network){LVD_ABI_VERSION, "joined", 2, 1, joined, &one};
}

/* Actors are fused, and unfused again: each keeps its state, and no element in between is lost. */
void test_transfer_fused(void) {
  lvd_network net[2];
  make_both(net, &pass_class);
  lvd_runtime *rt = runtime_of(2);
  lvd_app *app;
  CHECK_EQ(lvd_app_load(rt, &net[0], NULL, &app, NULL, 0), LVD_OK);
  lvd_store_relaxed_u32(&open_at, 100);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  for (uint32_t i = 1; i < 60; i++) {
    char text[200], why[200];
    lvd_app *new;
    until_counted(0, i * 100);
    CHECK_EQ(lvd_app_load(rt, &net[i % 2], NULL, &new, NULL, 0), LVD_OK);
    CHECK_EQ(lvd_app_reset_report(new, app, text, sizeof text), 0);
    lvd_status status;
    /* There may be elements between the two: the first waits until they have been passed on. */
    for (uint32_t tries = 0;; tries++) {
      CHECK_EQ(lvd_app_pause(app), LVD_OK);
      if ((status = lvd_app_upgrade_from(new, app, why, sizeof why)) != LVD_E_STATE) break;
      CHECK(strstr(why, "elements are on their way from n.source to n.pass"));
      CHECK_EQ(lvd_app_hold_sources(app, true), LVD_OK);
      CHECK_EQ(lvd_app_resume(app), LVD_OK);
      lvd_store_relaxed_u32(&open_at, i * 100 + tries);
      sleep_ms(1);
    }
    CHECK_EQ(status, LVD_OK);
    lvd_app_exit(app);
    CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
    lvd_app_unload(app);
    app = new;
    lvd_store_relaxed_u32(&open_at, i * 100 + 100);
    CHECK_EQ(lvd_app_start(app), LVD_OK);
  }
  lvd_store_relaxed_u32(&open_at, COUNT_OF_ALL + 1);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  CHECK_EQ(lvd_load_acquire_u32(&counts[0]), COUNT_OF_ALL);
  CHECK_EQ(sums[0], (uint64_t)COUNT_OF_ALL * (COUNT_OF_ALL - 1) / 2);
  CHECK_EQ(passed_in_all, COUNT_OF_ALL);
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* State that is reset since parts are fused in another way is reported. */
void test_transfer_reports_fused_parts(void) {
  lvd_network net[2];
  lvd_actor_class other = pass_class;
  other.name = "other";
  make_both(net, &other);
  lvd_runtime *rt = runtime_of(1);
  lvd_app *old, *new;
  char text[200];
  CHECK_EQ(lvd_app_load(rt, &net[1], NULL, &old, NULL, 0), LVD_OK);
  CHECK_EQ(lvd_app_load(rt, &net[0], NULL, &new, NULL, 0), LVD_OK);
  lvd_app_reset_report(new, old, text, sizeof text);
  CHECK(strcmp(text, "n.pass is reset: it is a other now, and was a pass\n") == 0);
  lvd_app_unload(old);
  lvd_app_unload(new);
  lvd_runtime_destroy(rt);
}

static void says(lvd_runtime *rt, version *is, version *was, const char *words) {
  char text[300];
  lvd_app *new = loaded(rt, is), *old = loaded(rt, was);
  CHECK_EQ(lvd_app_reset_report(new, old, text, sizeof text), strlen(words));
  if (strcmp(text, words)) fprintf(stderr, "%s", text);
  CHECK(strcmp(text, words) == 0);
  CHECK_EQ(lvd_app_reset_report(new, old, NULL, 0), strlen(words));
  lvd_app_unload(new);
  lvd_app_unload(old);
}

/* The values of a class's parameters make no difference; state that is reset is reported. */
void test_transfer_reports_resets(void) {
  static const char *const same[] = {"sum",          "sum__12", "sum__10_0",     "sum__m3_true_x",
                                     "sum__10_0__2", "sum__x",  "sum__false__17"};
  static const char *const others[] = {"sum__",    "sum__12_", "sum__y", "sum_12",
                                       "sum__1__", "sum__tru", "sums__1"};
  static const lvd_state_var wide_sum = {"sum", "uint 32", 0, sizeof(uint32_t), false};
  static const lvd_state_schema wide_schema = {1, &wide_sum, 2, 1, 0, states, NULL};
  lvd_runtime *rt = runtime_of(1);
  lvd_actor_class class = summing_class;
  version plain, now;
  make(&plain, &giving_class, &summing_class, 256);
  make(&now, &giving_class, &class, 256);
  for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
    class.name = same[i];
    says(rt, &now, &plain, "");
  }
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char words[300];
    class.name = others[i];
    const char *base = strcmp(others[i], "sums__1") ? others[i] : "sums";
    snprintf(words, sizeof words,
             "first is reset: it is a %s now, and was a sum\n"
             "second is reset: it is a %s now, and was a sum\n",
             base, base);
    says(rt, &now, &plain, words);
  }
  class.name = "sum__1";
  class.state_schema = &wide_schema;
  now.actor[2].name = "third";
  says(rt, &now, &plain, "sum of first is reset: its type is uint 32 now, and was uint 64\n");
  class.state_schema = NULL;
  says(rt, &now, &plain,
       "first is reset: its class does not describe its state (lvd_state_schema)\n");
  lvd_runtime_destroy(rt);
}

static void refused(lvd_runtime *rt, lvd_app *old, version *v, const char *part) {
  char why[300] = "";
  lvd_app *app = loaded(rt, v);
  CHECK_EQ(lvd_app_upgrade_from(app, old, why, sizeof why), LVD_E_STATE);
  if (!strstr(why, part)) fprintf(stderr, "%s\n", why);
  CHECK(strstr(why, part));
  lvd_app_unload(app);
}

void test_transfer_refused(void) {
  lvd_runtime *rt = runtime_of(2);
  version plain, little, wide, unlike, none;
  make(&plain, &giving_class, &summing_class, 256);
  make(&little, &giving_class, &summing_class, 64);
  make(&wide, &wide_source, &wide_class, 256);
  make(&unlike, &giving_class, &unlike_class, 256);
  make(&none, &giving_class, &summing_class, 256);
  none.actor[2].name = "third";
  lvd_store_relaxed_u32(&open_at, 55);
  lvd_app *app = loaded(rt, &plain), *other = loaded(rt, &plain);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  until_counted(0, 55);
  until_counted(1, 110);
  refused(rt, app, &plain, "not paused");
  CHECK_EQ(lvd_app_hold_sources(app, true), LVD_OK);
  while (lvd_app_pause(app) == LVD_OK) {
    /* Until the source has filled the channel, or is held. */
    lvd_channel_counters c[2];
    uint32_t n = 2;
    CHECK_EQ(lvd_app_counters(app, NULL, &(uint32_t){0}, c, &n), LVD_OK);
    if (c[0].fill > 64) break;
    CHECK_EQ(lvd_app_hold_sources(app, false), LVD_OK);
    CHECK_EQ(lvd_app_resume(app), LVD_OK);
    sleep_ms(1);
  }
  refused(rt, app, &little, "has room for 64");
  refused(rt, app, &wide, "elements of 8 bytes");
  refused(rt, app, &unlike, "at odd, which its new version has not");
  refused(rt, app, &none, "second");
  CHECK_EQ(lvd_app_upgrade_from(app, app, NULL, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_app_upgrade_from(NULL, app, NULL, 0), LVD_E_ARGUMENT);
  CHECK_EQ(lvd_app_start(other), LVD_OK);
  CHECK_EQ(lvd_app_upgrade_from(other, app, NULL, 0), LVD_E_STATE);
  CHECK_EQ(lvd_app_stop(other), LVD_OK);
  lvd_app_unload(other);
  /* Resets the counts. */
  for (int i = 0; i < 2; i++) lvd_store_relaxed_u32(&counts[i], 0);
  lvd_store_relaxed_u32(&open_at, COUNT_OF_ALL + 1);
  CHECK_EQ(lvd_app_hold_sources(app, false), LVD_OK);
  CHECK_EQ(lvd_app_resume(app), LVD_OK);
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  check_sums();
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}

/* A held source produces no more, and continues afterwards. */
void test_transfer_of_held_source(void) {
  lvd_runtime *rt = runtime_of(2);
  version plain;
  make(&plain, &giving_class, &summing_class, 16);
  lvd_store_relaxed_u32(&open_at, COUNT_OF_ALL + 1);
  lvd_app *app = loaded(rt, &plain);
  CHECK_EQ(lvd_app_hold_sources(app, true), LVD_E_STATE);
  CHECK_EQ(lvd_app_start(app), LVD_OK);
  lvd_actor_counters a[3];
  uint32_t n = 3;
  for (int i = 0; i < 20 && lvd_app_hold_sources(app, true) == LVD_OK; i++) {
    sleep_ms(5);
    CHECK_EQ(lvd_app_counters(app, a, &n, NULL, &(uint32_t){0}), LVD_OK);
    uint64_t given = a[0].firings;
    sleep_ms(2);
    CHECK_EQ(lvd_app_counters(app, a, &n, NULL, &(uint32_t){0}), LVD_OK);
    CHECK_EQ(a[0].firings, given);
    lvd_app_hold_sources(app, false);
  }
  CHECK_EQ(lvd_app_wait(app, -1), LVD_OK);
  check_sums();
  lvd_app_unload(app);
  lvd_runtime_destroy(rt);
}
