/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls from another process: checked, run on fibers of their own, and answered.
 *
 * A child's call is not trusted: the name must be one that it may call, and all sizes are
 * checked. */
#include <stdlib.h>

#include "../sched/no_abandon.h"
#include "unit.h"
#include "unit_process.h"

enum { INCOMING_CALLS_MAX = 4096 };

/* A call that is served, until it has been answered. */
typedef struct lvd_incoming_call {
  lvd_process *process;
  lvd_procedure *procedure;
  lvd_fiber *fiber; /* once it runs */
  bool cancelled;
  lvd_event left; /* set if the fiber has failed and will not return */
  lvd_call_frame frame;
  struct lvd_incoming_call *next, *previous;
  LVD_ALIGNED(16) lvd_record record;
  LVD_ALIGNED(16) unsigned char result[LVD_RECORD_INLINE_BYTES];
} incoming_call;

/* Under the lock. */
static void take_off(lvd_process *p, incoming_call *s) {
  if (s->previous)
    s->previous->next = s->next;
  else
    p->incoming = s->next;
  if (s->next) s->next->previous = s->previous;
  p->incoming_count--;
}

static void enlist(lvd_process *p, incoming_call *s) {
  lvd_os_lock(&p->link.lock);
  s->next = p->incoming;
  if (s->next) s->next->previous = s;
  p->incoming = s;
  p->incoming_count++;
  lvd_os_unlock(&p->link.lock);
}

static void send_status(lvd_process *p, uint32_t number, lvd_status status) {
  const lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = number, .status = (uint32_t)status};
  lvd_link_send(&p->link, &r);
}

/* The last access to the process, which may be freed when nothing is served any more. */
static void answer(incoming_call *s, lvd_status status) {
  lvd_process *p = s->process;
  lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = s->record.number};
  size_t size = s->frame.result_size;
  if (size > s->record.room) {
    r.extent = size;
    size = 0;
  }
  r.status = (uint32_t)status;
  r.size = (uint32_t)size;
  if (!s->record.offset && size) memcpy(r.data, s->result, size);
  lvd_link_send(&p->link, &r);
  lvd_os_lock(&p->link.lock);
  take_off(p, s);
  if (p->answered) {
    s->next = p->kept;
    p->kept = s;
    lvd_event_set(p->answered, 1);
  } else {
    free(s);
  }
  lvd_os_unlock(&p->link.lock);
}

/* It was enlisted and could not be started, unless all remaining calls have been answered since. */
static void refuse(lvd_process *p, const incoming_call *s, uint32_t number, lvd_status status) {
  lvd_os_lock(&p->link.lock);
  incoming_call *listed = p->incoming;
  while (listed && listed != s) listed = listed->next;
  if (listed) take_off(p, listed);
  lvd_os_unlock(&p->link.lock);
  if (listed) send_status(p, number, status);
  free(listed);
}

static void serve_call(void *argument) {
  incoming_call *s = argument;
  lvd_fiber *self = lvd_fiber_self();
  lvd_os_lock(&s->process->link.lock);
  s->fiber = self;
  if (s->cancelled) lvd_fiber_cancel(self);
  lvd_os_unlock(&s->process->link.lock);
  /* The earlier user of this memory has answered under the lock. */
  if (s->record.offset) memset(s->frame.result, 0, s->frame.result_room);
  self->end = &s->left;
  self->started_as = LVD_STARTED_AS_CALL;
  lvd_status status = s->procedure(&s->frame);
  self->end = NULL;
  answer(s, status);
}

lvd_unit *lvd_unit_caller(void) {
  const lvd_fiber *self = lvd_fiber_self();
  if (!self || self->body != serve_call) return NULL;
  return &((const incoming_call *)self->argument)->process->unit;
}

/* LVD_OK: it is well-formed, and may be called. The parent is trusted. */
static lvd_status check_call(lvd_process *p, const lvd_record *r) {
  if (p->link.side == LVD_CHILD) return LVD_OK;
  if (r->size > LVD_RECORD_INLINE_BYTES || r->room > LVD_RECORD_INLINE_BYTES || r->offset)
    return LVD_E_ARGUMENT;
  if (!p->may_call || strncmp(r->name, p->may_call, strlen(p->may_call)) != 0)
    return LVD_E_NOT_FOUND;
  lvd_os_lock(&p->link.lock);
  uint32_t count = p->incoming_count;
  lvd_os_unlock(&p->link.lock);
  return count < INCOMING_CALLS_MAX ? LVD_OK
                                    : lvd_limit("a process has too many calls to its parent open");
}

void lvd_process_take_call(lvd_process *p, const lvd_record *r) {
  lvd_link *link = &p->link;
  lvd_status status = check_call(p, r);
  incoming_call *s = status == LVD_OK ? calloc(1, sizeof *s) : NULL;
  if (!s) {
    send_status(p, r->number, status == LVD_OK ? LVD_E_MEMORY : status);
    return;
  }
  s->process = p;
  s->record = *r;
  lvd_event_init(&s->left);
  s->frame = (lvd_call_frame){.app = p->unit.app,
                              .argument = s->record.data,
                              .argument_size = r->size,
                              .result = s->result,
                              .result_room = r->room};
  if (r->offset) {
    s->frame.argument = lvd_process_at(link, r->offset);
    s->frame.result = lvd_process_at(link, r->offset + lvd_process_aligned(r->size));
  }
  s->procedure = lvd_procedure_find(r->name);
  if (!s->procedure) {
    send_status(p, r->number, LVD_E_NOT_FOUND);
    free(s);
    return;
  }
  const lvd_fiber_options o = {.name = r->name,
                               .priority = r->priority,
                               .urgent = r->urgent != 0,
                               .stack = (size_t)r->extent};
  enlist(p, s); /* from here on other threads use it, too */
  status = lvd_fiber_start(p->unit.app, serve_call, s, &o, NULL);
  if (status == LVD_E_STATE) status = LVD_E_STOPPED; /* the application has ended */
  if (status != LVD_OK) refuse(p, s, r->number, status);
}

/* Under the lock. */
static void cancel(incoming_call *s) {
  s->cancelled = true;
  if (s->fiber) lvd_fiber_cancel(s->fiber);
}

void lvd_process_cancel_served(lvd_process *p, uint32_t number) {
  lvd_os_lock(&p->link.lock);
  incoming_call *s = p->incoming;
  while (s && s->record.number != number) s = s->next;
  if (s) cancel(s);
  lvd_os_unlock(&p->link.lock);
}

/* Cancels all calls that are served: their results are not needed. */
void lvd_process_cancel_all(lvd_process *p) {
  lvd_os_lock(&p->link.lock);
  for (incoming_call *s = p->incoming; s; s = s->next) cancel(s);
  lvd_os_unlock(&p->link.lock);
}

static incoming_call *first_incoming(lvd_process *p) {
  lvd_os_lock(&p->link.lock);
  incoming_call *s = p->incoming;
  lvd_os_unlock(&p->link.lock);
  return s;
}

/* All fibers have ended: answers the calls that failed or had not begun. */
void lvd_process_answer_the_rest(lvd_process *p, lvd_status outcome) {
  for (incoming_call *s; (s = first_incoming(p));)
    answer(s, outcome == LVD_OK ? LVD_E_STOPPED : outcome);
}

/* Waits until each fiber that serves it has returned or failed. No more calls come. */
lvd_status lvd_process_await_served(lvd_process *p, int64_t timeout_ns) {
  uint64_t start = lvd_os_now_ns();
  lvd_status status = LVD_OK;
  lvd_event answered;
  lvd_event_init(&answered);
  lvd_os_lock(&p->link.lock);
  p->answered = &answered;
  while (status == LVD_OK) {
    incoming_call *s = p->incoming;
    while (s && lvd_event_is_set(&s->left)) s = s->next;
    if (!s) break;
    lvd_os_unlock(&p->link.lock);
    uint32_t which;
    const lvd_wait_item want[2] = {{.event = &answered}, {.event = &s->left}};
    status = lvd_wait_any(want, 2, lvd_process_left(timeout_ns, start), &which);
    if (status == LVD_OK && which == 0) lvd_event_wait(&answered, NULL, 0);
    lvd_os_lock(&p->link.lock);
  }
  p->answered = NULL;
  /* A thread that reports its failure may still be using it. */
  if (status == LVD_OK && p->incoming) status = LVD_E_STOPPED;
  incoming_call *kept = p->kept;
  p->kept = NULL;
  lvd_os_unlock(&p->link.lock);
  for (incoming_call *next; kept; kept = next) {
    next = kept->next;
    free(kept);
  }
  return status;
}

bool lvd_process_is_served_by(const lvd_process *p, const lvd_fiber *fiber) {
  for (const incoming_call *s = p->incoming; s; s = s->next)
    if (fiber && s->fiber == fiber) return true;
  return false;
}

void lvd_link_served(lvd_link *link, void (*visit)(uint32_t number, const lvd_fiber *fiber, void *),
                     void *argument) {
  for (const incoming_call *s = lvd_process_of(link)->incoming; s; s = s->next)
    if (s->fiber) visit(s->record.number, s->fiber, argument);
}
