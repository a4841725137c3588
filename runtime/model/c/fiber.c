/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What fibers do in the checks of streams, events and waiting. */
#include "src/app/app.h"
#include "world.h"

#include <stdlib.h>

void model_begin(model_world *m) { (void)m; }

static uint32_t put_one(model_world *m, uint32_t v) {
  /* Not by lvd_stream_put, which looks at the handle before it claims the end. */
  lvd_status status = lvd_stream_wait_room(m->stream, 1, -1);
  if (status != LVD_OK) return status;
  *(uint32_t *)lvd_put_span(&m->stream->producer) = v;
  lvd_put_done(&m->stream->producer, 1);
  lvd_stream_push(m->stream);
  return LVD_OK;
}
static uint32_t get_one(model_world *m, int64_t timeout_ns) {
  lvd_status status = lvd_stream_wait_elements(m->stream, 1, timeout_ns);
  if (status != LVD_OK) return status;
  if (*(const uint32_t *)lvd_get_span(&m->stream->consumer) != 100 + m->got) m->wrong++;
  m->got++;
  lvd_get_done(&m->stream->consumer, 1);
  lvd_stream_pop(m->stream);
  return LVD_OK;
}

static uint32_t puts_all(model_world *m) {
  uint32_t status = LVD_OK;
  for (uint32_t i = 0; i < m->count && status == LVD_OK; i++) status = put_one(m, 100 + i);
  return status;
}
static uint32_t gets_all(model_world *m) {
  uint32_t status = LVD_OK;
  while (m->got < m->count && status == LVD_OK) status = get_one(m, -1);
  return status;
}
/* Until the stream ends. */
static uint32_t gets_to_end(model_world *m) {
  uint32_t status = LVD_OK;
  while (status == LVD_OK) status = get_one(m, -1);
  return status;
}
/* Puts fewer than the receiver's threshold, then waits for its word. */
static uint32_t puts_and_waits(model_world *m) {
  puts_all(m);
  return lvd_event_wait(&m->event[0], NULL, -1);
}
static uint32_t gets_and_says(model_world *m) {
  gets_all(m);
  return lvd_event_set(&m->event[0], 7);
}
static uint32_t waits(model_world *m) {
  lvd_status status = lvd_event_wait(&m->event[0], &m->data, -1);
  if (status == LVD_OK && !m->told) m->wrong++;
  return status;
}
static uint32_t says(model_world *m) {
  m->told = 1;
  return lvd_event_set(&m->event[0], 7);
}
static uint32_t passes_on(model_world *m) {
  lvd_status status = lvd_event_wait(&m->event[0], NULL, -1);
  if (status == LVD_OK) lvd_event_set(&m->event[1], 8);
  return status;
}
static uint32_t waits_behind(model_world *m) { return lvd_event_wait(&m->event[1], &m->data, -1); }
/* Only the first event says that something was told. */
static uint32_t waits_for_any(model_world *m) {
  lvd_wait_item want[EVENTS] = {{.event = &m->event[0]}, {.event = &m->event[1]}};
  lvd_status status = lvd_wait_any(want, EVENTS, -1, &m->data);
  if (status == LVD_OK && m->data == 0 && !m->told) m->wrong++;
  return status;
}
/* The same with a time limit; what comes after it has passed is not lost. */
static uint32_t waits_for_any_in_time(model_world *m) {
  lvd_wait_item want[EVENTS] = {{.event = &m->event[0]}, {.event = &m->event[1]}};
  lvd_status status = lvd_wait_any(want, EVENTS, 10, &m->data);
  if (status == LVD_E_TIMEOUT) status = lvd_wait_any(want, EVENTS, -1, &m->data);
  if (status == LVD_OK && (m->data != 0 || !m->told)) m->wrong++;
  return status;
}
/* Both come, in whatever order. */
static uint32_t waits_for_element_or_event(model_world *m) {
  lvd_status status = LVD_OK;
  bool heard = false;
  while (status == LVD_OK && (!heard || m->got == 0)) {
    lvd_wait_item want[2] = {{.elements = &m->stream->consumer, .n = 1}, {.event = &m->event[0]}};
    uint32_t from = m->got ? 1 : 0, count = heard ? 1 : 2 - from, which;
    status = lvd_wait_any(want + from, count, -1, &which);
    if (status != LVD_OK) break;
    if (which + from == 0) {
      status = get_one(m, 0);
    } else {
      if (!m->told) m->wrong++;
      heard = true;
    }
  }
  return status;
}
/* Frees some of the room that the sender waits for, then waits for its word. */
static uint32_t gets_and_waits(model_world *m) {
  uint32_t status = get_one(m, -1);
  return status == LVD_OK ? lvd_event_wait(&m->event[0], NULL, -1) : status;
}
static uint32_t puts_and_says(model_world *m) {
  put_one(m, 100 + m->count);
  return lvd_event_set(&m->event[0], 7);
}
/* Nothing may be told before it has returned. */
static uint32_t waits_untold(model_world *m) {
  if (m->told) m->wrong++;
  lvd_status status = lvd_event_wait(&m->event[0], NULL, -1);
  if (m->told) m->wrong++;
  return status;
}
static uint32_t tells(model_world *m) {
  m->told = 1;
  return LVD_OK;
}
static uint32_t joins(model_world *m) {
  lvd_status status = lvd_fiber_join(m->fiber[0], -1);
  if (!m->told) m->wrong++;
  return status;
}
static uint32_t gets_in_time(model_world *m) {
  uint32_t status = get_one(m, 10);
  return status == LVD_E_TIMEOUT ? get_one(m, -1) : status;
}
static uint32_t waits_through(model_world *m) {
  lvd_fiber *f = lvd_fiber_self();
  lvd_fiber_wait_uninterruptible(f, &f->unblocked);
  if (!m->told) m->wrong++;
  return LVD_OK;
}
/* Claims the sender's end if it is free, and releases it. */
static uint32_t takes_an_end(model_world *m) {
  uint32_t status = put_one(m, 100);
  if (status == LVD_OK) lvd_stream_release_end(m->stream);
  return status;
}
static uint32_t closes_an_end(model_world *m) {
  uint32_t status = put_one(m, 100);
  if (status == LVD_OK) lvd_stream_close(m->stream);
  return status;
}

uint32_t (*const model_role[])(model_world *) = {puts_all,
                                                 gets_all,
                                                 gets_to_end,
                                                 puts_and_waits,
                                                 gets_and_says,
                                                 waits,
                                                 says,
                                                 passes_on,
                                                 waits_behind,
                                                 waits_for_any,
                                                 tells,
                                                 joins,
                                                 gets_in_time,
                                                 waits_through,
                                                 takes_an_end,
                                                 closes_an_end,
                                                 gets_and_waits,
                                                 puts_and_says,
                                                 waits_untold,
                                                 waits_for_any_in_time,
                                                 waits_for_element_or_event};

/* ---- what a check does --------------------------------------------------------------------- */

void model_unblock(model_world *m, uint32_t fiber) {
  lvd_event_set(&m->fiber[fiber]->unblocked, 1);
}
uint32_t model_put(model_world *m, uint32_t v) { return put_one(m, v); }
uint32_t model_get(model_world *m) { return get_one(m, -1); }
void model_move_to(model_world *m, uint32_t fiber, uint32_t worker) {
  lvd_app_retarget(&m->app, &m->fiber[fiber]->entity, worker);
}
/* As the reaper ends an application, which no worker has been asked about yet. */
void model_end(model_world *m, uint32_t why) {
  lvd_app_end(&m->app, (lvd_status)why);
  lvd_fibers_cancel_and_wait(&m->app);
}
/* The stream is full, of `count`. */
void model_fill(model_world *m) {
  for (uint32_t i = 0; i < m->count; i++) {
    if (lvd_room(&m->stream->producer, 1) < 1) abort();
    LVD_PUT(&m->stream->producer, uint32_t, 100 + i);
    lvd_push(&m->stream->producer);
  }
}
uint32_t model_sent(model_world *m) { return (uint32_t)m->stream->producer.put; }
uint32_t model_timers(model_world *m, uint32_t worker) { return m->worker[worker].timers != NULL; }
uint32_t model_any(model_world *m, int64_t timeout_ns, uint32_t *which) {
  lvd_wait_item want[EVENTS] = {{.event = &m->event[0]}, {.event = &m->event[1]}};
  return lvd_wait_any(want, EVENTS, timeout_ns, which);
}
