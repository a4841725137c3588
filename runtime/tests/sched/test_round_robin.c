/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Round robin: the order of activations on a worker. Each of these tests fails without the
 * option. */
#include "../support/test.h"

enum { ROUNDS = 60, ACTORS = 4, TURNS_MAX = ROUNDS * (ACTORS + 2) };

/* The activations in which something was done. Written by the worker; read when all have ended. */
static uint32_t turn[TURNS_MAX], turns;
/* All actors have been made ready, so that no activation is skipped for that reason. */
static lvd_a32 all_there;

static void had_turn(uint32_t slot) {
  if (turns < TURNS_MAX) turn[turns++] = slot;
}
static bool begins(void) { return lvd_load_acquire_u32(&all_there); }

static const lvd_port_class ports[] = {{"A", 4}, {"B", 4}, {"C", 4}};

static uint32_t number_of(const lvd_actor *self) { return *(const uint32_t *)self->params; }

static void take(lvd_consumer *c) {
  (void)LVD_GET(c, uint32_t);
  lvd_pop(c);
}

/* Gets all elements there are, in one activation. */
static lvd_run_result takes_run(lvd_actor *self) {
  lvd_consumer *a = &self->in[0];
  if (lvd_elements(a, 1)) had_turn(number_of(self));
  while (lvd_elements(a, 1)) take(a);
  if (lvd_ended(a) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
static const lvd_actor_class takes = {
    .name = "takes", .inputs = 1, .input = ports, .run = takes_run};

/* Puts an element for each actor, against the order of their slots; for the last one only in
 * every third round. */
static lvd_run_result gives_run(lvd_actor *self) {
  uint32_t *round = self->state;
  if (!begins()) return LVD_RUN_YIELD;
  had_turn(number_of(self));
  for (uint32_t i = 0; i < 3; i++) {
    if (i == 1 && *round % 3) continue;
    LVD_PUT(&self->out[i], uint32_t, *round);
    lvd_push(&self->out[i]);
  }
  return ++*round < ROUNDS ? LVD_RUN_YIELD : LVD_RUN_DONE;
}
static const lvd_actor_class gives = {
    .name = "gives", .state_size = 4, .outputs = 3, .output = ports, .run = gives_run};

static const uint32_t number[ACTORS] = {0, 1, 2, 3};

static void run_on_one(const builder *b) {
  lvd_runtime_options options = {.workers = 1, .round_robin = true};
  lvd_runtime *rt;
  CHECK_EQ(lvd_runtime_create(&options, &rt), LVD_OK);
  lvd_app *app = app_begun(rt, b);
  lvd_store_release_u32(&all_there, 1);
  app_ended(app, LVD_OK);
  lvd_runtime_destroy(rt);
}

/* In the order of their slots, cyclically, from the one after the actor that ran last; an actor
 * that cannot fire is skipped; a higher priority goes first. */
void test_round_robin_order(void) {
  builder b;
  builder_init(&b, "order");
  for (uint32_t i = 0; i < ACTORS; i++)
    builder_actor(&b, "actor", i == 1 ? &gives : &takes, &number[i]);
  b.actor[3].priority = 1;
  builder_connect(&b, 1, 0, 0, 0, 16);
  builder_connect(&b, 1, 1, 2, 0, 16);
  builder_connect(&b, 1, 2, 3, 0, 16);
  run_on_one(&b);
  uint32_t at = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) {
    CHECK_EQ(turn[at++], 1);
    CHECK_EQ(turn[at++], 3);
    if (round % 3 == 0) CHECK_EQ(turn[at++], 2);
    CHECK_EQ(turn[at++], 0);
  }
  CHECK_EQ(turns, at);
}

static lvd_a32 played;

/* Always has work, in long activations. */
static lvd_run_result hog_run(lvd_actor *self) {
  if (!begins()) return LVD_RUN_YIELD;
  if (lvd_load_relaxed_u32(&played)) return LVD_RUN_DONE;
  had_turn(number_of(self));
  for (uint64_t from = now_ns(); now_ns() - from < 200000;) {
  }
  return LVD_RUN_YIELD;
}
static const lvd_actor_class hog = {.name = "hog", .run = hog_run};

/* Sends an element, and again when it has come back. */
static lvd_run_result ping_run(lvd_actor *self) {
  uint32_t *round = self->state;
  if (!begins()) return LVD_RUN_YIELD;
  if (*round && !lvd_elements(&self->in[0], 1)) {
    lvd_await_elements(self, 0, 1);
    return LVD_RUN_WAIT;
  }
  if (*round) take(&self->in[0]);
  if (*round == ROUNDS) {
    lvd_store_relaxed_u32(&played, 1);
    return LVD_RUN_DONE;
  }
  had_turn(number_of(self));
  LVD_PUT(&self->out[0], uint32_t, (*round)++);
  lvd_push(&self->out[0]);
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
static const lvd_actor_class ping = {.name = "ping",
                                     .state_size = 4,
                                     .inputs = 1,
                                     .outputs = 1,
                                     .input = ports,
                                     .output = ports,
                                     .run = ping_run};

static lvd_run_result pong_run(lvd_actor *self) {
  if (lvd_elements(&self->in[0], 1)) {
    had_turn(number_of(self));
    LVD_PUT(&self->out[0], uint32_t, 0);
    lvd_push(&self->out[0]);
    take(&self->in[0]);
  }
  if (lvd_ended(&self->in[0]) != LVD_OK) return LVD_RUN_DONE;
  lvd_await_elements(self, 0, 1);
  return LVD_RUN_WAIT;
}
static const lvd_actor_class pong = {
    .name = "pong", .inputs = 1, .outputs = 1, .input = ports, .output = ports, .run = pong_run};

/* Two actors that exchange an element have one activation each per round, as the long one has. */
void test_round_robin_one_turn_each(void) {
  builder b;
  builder_init(&b, "turns");
  builder_actor(&b, "hog", &hog, &number[0]);
  builder_actor(&b, "ping", &ping, &number[1]);
  builder_actor(&b, "pong", &pong, &number[2]);
  builder_connect(&b, 1, 0, 2, 0, 4);
  builder_connect(&b, 2, 0, 1, 0, 4);
  run_on_one(&b);
  CHECK(turns >= 3 * ROUNDS - 1);
  for (uint32_t i = 1; i < turns && i < 3 * ROUNDS - 2; i++)
    CHECK_EQ(turn[i], (turn[i - 1] + 1) % 3);
}
