/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The unit that is another process: loading it, calls to it and from it, and serving.
 *
 * Calls go both ways, in the same manner: a record there and an answer back, known by a number of
 * the caller's. What is larger than a record lies in the link's memory, in a part that the parent
 * claims for the argument and the result of one call; so only its own calls can be so large. A
 * child's call is checked before it is believed: whether the child may call that name, and all
 * sizes. */
#include <levada/process.h>

#include <stdio.h>
#include <stdlib.h>

#include "inside.h"
#include "link.h"
#include "unit.h"
#include "window.h"

enum { BUCKETS = 256, UNITS_MEMORY = 64 << 20, MOST_SERVED = 4096 };
#define VARIABLE       "LEVADA_UNIT" /* tells a child: memory, bell */
#define ATTACH_TIME_NS 10000000000
#define LOOK_NS        500000000  /* between two looks at who is behind a window */
#define GRACE_NS       2000000000 /* from being asked to end to being ended */

_Static_assert(sizeof(((lvd_record *)0)->name) == LVD_PROCEDURE_NAME, "as long");
_Static_assert((int)LVD_CALL_INLINE == (int)LVD_RECORD_INLINE, "as large");

/* A call that is served, until it has been answered. */
typedef struct served {
  struct process *process;
  lvd_procedure *procedure;
  lvd_fiber *fiber; /* once it runs */
  bool cancelled;
  lvd_event left; /* the fiber has failed, and will not return */
  lvd_frame frame;
  struct served *next, *previous;
  LVD_ALIGNED(16) lvd_record record;
  LVD_ALIGNED(16) unsigned char result[LVD_RECORD_INLINE];
} served;

typedef struct process {
  lvd_unit unit; /* first */
  lvd_link link;
  lvd_a32 under_way; /* calls that have not come back */
  lvd_a32 held;      /* calls that have not been waited for */
  /* With the link's lock. */
  lvd_call *call[BUCKETS];
  served *served;
  uint32_t served_count;
  lvd_event *answered; /* of whoever waits for those that are served; or null */
  served *kept;        /* answered meanwhile: he may still look at them */
  char *may_call;      /* the parent's: how names of procedures begin that the child may call */
  lvd_aptr last_words; /* the parent's: what the child said when it failed; or null */
  /* The child's. */
  lvd_status why; /* it is to end: LVD_OK, LVD_E_PEER, ... */
  lvd_port_thread *watch;
  lvd_far_side *far; /* the parent's: it is behind a window; or null */
  /* The parent's: that the other side is no more; the child's: that it has done with this. */
  lvd_event over;
  uint64_t asked_ns; /* when it was asked to end; 0: it has not been */
} process;

static process *process_of(lvd_link *link) {
  return (process *)(void *)((char *)link - offsetof(process, link));
}

static void unlink_from(process *p) {
  lvd_knot_free(&p->link);
  lvd_link_free(&p->link);
}

static size_t aligned(size_t size) { return (size + 15) & ~(size_t)15; }

static unsigned char *at(const lvd_link *link, uint64_t offset) {
  return (unsigned char *)link->segment + offset;
}

/* ---- calls: the caller's side --------------------------------------------------------------- */

static lvd_call **place_of(process *p, uint32_t number) {
  lvd_call **c = &p->call[number % BUCKETS];
  while (*c && (*c)->number != number) c = &(*c)->next;
  return c;
}

static lvd_status process_start(lvd_call *c, const char *procedure, const lvd_call_options *o) {
  process *p = (process *)c->unit;
  lvd_link *link = &p->link;
  size_t length = strlen(procedure), size = c->frame.argument_size, room = c->frame.result_room;
  if (length == 0 || length >= LVD_PROCEDURE_NAME) return LVD_E_ARGUMENT;
  lvd_record r = {.kind = LVD_RECORD_CALL,
                  .size = (uint32_t)size,
                  .room = (uint32_t)room,
                  .priority = o->priority,
                  .urgent = o->urgent,
                  .extent = o->stack};
  memcpy(r.name, procedure, length);
  lvd_status status = lvd_link_state(link);
  if (status != LVD_OK) return status;
  c->offset = 0;
  c->returned.sleeper.kind = LVD_SLEEPS_AT_CALL;
  lvd_store_relaxed_u32(&c->told, 0);
  lvd_port_lock(&link->lock);
  if (size > LVD_RECORD_INLINE || room > LVD_RECORD_INLINE) {
    if (link->side == LVD_PARENT) c->offset = lvd_link_claim(link, aligned(size) + room);
    if (!c->offset)
      status = lvd_limit(link->side == LVD_PARENT
                             ? "no memory is left between the processes: lvd_unit_options.memory"
                             : "a call to the parent carries and returns at most 256 bytes");
  }
  if (status == LVD_OK) {
    r.offset = c->offset;
    r.number = c->number = ++link->next_number;
    c->next = p->call[c->number % BUCKETS];
    p->call[c->number % BUCKETS] = c;
    lvd_add_acq_rel_u32(&p->under_way, 1);
    lvd_add_relaxed_u32(&p->held, 1);
  }
  lvd_port_unlock(&link->lock);
  if (status != LVD_OK) return status;
  if (size) memcpy(c->offset ? at(link, c->offset) : r.data, c->frame.argument, size);
  status = lvd_link_send(link, &r);
  if (status == LVD_OK) return LVD_OK;
  lvd_port_lock(&link->lock);
  lvd_call **place = place_of(p, r.number);
  bool ours = *place == c; /* else the bellman has just said that the process is gone */
  if (ours) {
    *place = c->next;
    if (c->offset) lvd_link_release(link, c->offset);
    lvd_add_acq_rel_u32(&p->under_way, UINT32_MAX);
    lvd_add_relaxed_u32(&p->held, UINT32_MAX);
  }
  lvd_port_unlock(&link->lock);
  return ours ? status : LVD_OK;
}

static lvd_status process_finish(lvd_call *c) {
  lvd_add_relaxed_u32(&((process *)c->unit)->held, UINT32_MAX);
  return c->status;
}

static void process_cancel(lvd_call *c) {
  const lvd_record r = {.kind = LVD_RECORD_CANCEL, .number = c->number};
  lvd_link_send(&((process *)c->unit)->link, &r);
}

/* It has come back, and is no more in the table. The count goes down last: until then its
 * application is not at rest for want of it. */
static void come_back(process *p, lvd_call *c) {
  lvd_event_set(&c->returned, 1);
  lvd_add_acq_rel_u32(&p->under_way, UINT32_MAX);
  if (lvd_load_acquire_u32(&p->unit.app->live) == 0) lvd_app_quiet(p->unit.app);
}

static void take_answer(process *p, const lvd_record *r) {
  lvd_link *link = &p->link;
  lvd_port_lock(&link->lock);
  lvd_call **place = place_of(p, r->number), *c = *place;
  if (c) {
    *place = c->next;
    uint32_t n = r->size < c->frame.result_room ? r->size : (uint32_t)c->frame.result_room;
    const void *from = r->data;
    if (c->offset) from = at(link, c->offset + aligned(c->frame.argument_size));
    memcpy(c->frame.result, from, n);
    c->frame.result_size = n;
    c->status = r->status < LVD_STATUS_COUNT ? (lvd_status)r->status : LVD_E_CORRUPT;
    if (c->offset) lvd_link_release(link, c->offset);
  }
  lvd_port_unlock(&link->lock);
  if (c) come_back(p, c);
}

/* The other side is gone: so are the calls to it, and nobody waits for its own. */
static void fail_calls(process *p, lvd_status why) {
  lvd_link *link = &p->link;
  for (uint32_t i = 0; i < BUCKETS; i++)
    for (;;) {
      lvd_port_lock(&link->lock);
      lvd_call *c = p->call[i];
      if (c) p->call[i] = c->next;
      lvd_port_unlock(&link->lock);
      if (!c) break;
      c->status = why;
      come_back(p, c);
    }
}

/* The first counts. What calls return after it is seen with it (come_back). */
static void take_fault(process *p, const lvd_record *r) {
  enum { MOST = sizeof r->name + 2 + sizeof r->data + 1 };
  char *words = lvd_load_relaxed_ptr(&p->last_words) ? NULL : malloc(MOST);
  if (!words) return;
  size_t size = r->size < sizeof r->data ? r->size : sizeof r->data;
  size_t n = lvd_link_quote(words, 0, MOST, (const unsigned char *)r->name, strlen(r->name));
  if (n) n = lvd_link_quote(words, n, MOST, (const unsigned char *)": ", 2);
  lvd_link_quote(words, n, MOST, r->data, size);
  lvd_store_release_ptr(&p->last_words, words);
}

static const char *process_last_words(const lvd_unit *unit) {
  return lvd_load_acquire_ptr(&((const process *)unit)->last_words);
}

static bool process_awaited(const lvd_unit *unit) {
  return lvd_load_acquire_u32(&((const process *)unit)->under_way) != 0;
}

/* ---- calls: the side that serves ------------------------------------------------------------ */

/* With the lock. */
static void take_off(process *p, served *s) {
  if (s->previous)
    s->previous->next = s->next;
  else
    p->served = s->next;
  if (s->next) s->next->previous = s->previous;
  p->served_count--;
}

static void enlist(process *p, served *s) {
  lvd_port_lock(&p->link.lock);
  s->next = p->served;
  if (s->next) s->next->previous = s;
  p->served = s;
  p->served_count++;
  lvd_port_unlock(&p->link.lock);
}

static void send_status(process *p, uint32_t number, lvd_status status) {
  const lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = number, .status = (uint32_t)status};
  lvd_link_send(&p->link, &r);
}

/* The last that touches the process: when nothing is served any more it may go. */
static void answer(served *s, lvd_status status) {
  process *p = s->process;
  lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = s->record.number};
  size_t size = s->frame.result_size < s->record.room ? s->frame.result_size : s->record.room;
  r.status = (uint32_t)status;
  r.size = (uint32_t)size;
  if (!s->record.offset && size) memcpy(r.data, s->result, size);
  lvd_link_send(&p->link, &r);
  lvd_port_lock(&p->link.lock);
  take_off(p, s);
  if (p->answered) {
    s->next = p->kept;
    p->kept = s;
    lvd_event_set(p->answered, 1);
  } else {
    free(s);
  }
  lvd_port_unlock(&p->link.lock);
}

/* It was enlisted and could not be started, unless all that was left has been answered since. */
static void refuse(process *p, const served *s, uint32_t number, lvd_status status) {
  lvd_port_lock(&p->link.lock);
  served *listed = p->served;
  while (listed && listed != s) listed = listed->next;
  if (listed) take_off(p, listed);
  lvd_port_unlock(&p->link.lock);
  if (listed) send_status(p, number, status);
  free(listed);
}

static void serve_call(void *argument) {
  served *s = argument;
  lvd_fiber *self = lvd_fiber_self();
  lvd_port_lock(&s->process->link.lock);
  s->fiber = self;
  if (s->cancelled) lvd_fiber_cancel(self);
  lvd_port_unlock(&s->process->link.lock);
  /* Whoever had this part of the memory before has answered in the lock. */
  if (s->record.offset) memset(s->frame.result, 0, s->frame.result_room);
  self->end = &s->left;
  lvd_status status = s->procedure(&s->frame);
  self->end = NULL;
  answer(s, status);
}

lvd_unit *lvd_unit_caller(void) {
  const lvd_fiber *self = lvd_fiber_self();
  if (!self || self->body != serve_call) return NULL;
  return &((const served *)self->argument)->process->unit;
}

/* LVD_OK: it is well formed, and may be called. The parent is believed. */
static lvd_status judge_call(process *p, const lvd_record *r) {
  if (p->link.side == LVD_CHILD) return LVD_OK;
  if (r->size > LVD_RECORD_INLINE || r->room > LVD_RECORD_INLINE || r->offset)
    return LVD_E_ARGUMENT;
  if (!p->may_call || strncmp(r->name, p->may_call, strlen(p->may_call)) != 0) return LVD_E_UNKNOWN;
  lvd_port_lock(&p->link.lock);
  uint32_t count = p->served_count;
  lvd_port_unlock(&p->link.lock);
  return count < MOST_SERVED ? LVD_OK
                             : lvd_limit("a process has too many calls to its parent open");
}

static void take_call(process *p, const lvd_record *r) {
  lvd_link *link = &p->link;
  lvd_status status = judge_call(p, r);
  served *s = status == LVD_OK ? calloc(1, sizeof *s) : NULL;
  if (!s) {
    send_status(p, r->number, status == LVD_OK ? LVD_E_MEMORY : status);
    return;
  }
  s->process = p;
  s->record = *r;
  lvd_event_init(&s->left);
  s->frame = (lvd_frame){.app = p->unit.app,
                         .argument = s->record.data,
                         .argument_size = r->size,
                         .result = s->result,
                         .result_room = r->room};
  if (r->offset) {
    s->frame.argument = at(link, r->offset);
    s->frame.result = at(link, r->offset + aligned(r->size));
  }
  s->procedure = lvd_procedure_find(r->name);
  if (!s->procedure) {
    send_status(p, r->number, LVD_E_UNKNOWN);
    free(s);
    return;
  }
  const lvd_fiber_options o = {.name = r->name,
                               .priority = r->priority,
                               .urgent = r->urgent != 0,
                               .stack = (size_t)r->extent};
  enlist(p, s); /* from here on it is another's, too */
  status = lvd_fiber_start(p->unit.app, serve_call, s, &o, NULL);
  if (status == LVD_E_STATE) status = LVD_E_STOPPED; /* the application has ended */
  if (status != LVD_OK) refuse(p, s, r->number, status);
}

/* With the lock. */
static void cancel(served *s) {
  s->cancelled = true;
  if (s->fiber) lvd_fiber_cancel(s->fiber);
}

static void cancel_served(process *p, uint32_t number) {
  lvd_port_lock(&p->link.lock);
  served *s = p->served;
  while (s && s->record.number != number) s = s->next;
  if (s) cancel(s);
  lvd_port_unlock(&p->link.lock);
}

/* Nobody waits for them any more. */
static void cancel_all(process *p) {
  lvd_port_lock(&p->link.lock);
  for (served *s = p->served; s; s = s->next) cancel(s);
  lvd_port_unlock(&p->link.lock);
}

static served *first_served(process *p) {
  lvd_port_lock(&p->link.lock);
  served *s = p->served;
  lvd_port_unlock(&p->link.lock);
  return s;
}

/* What has failed here, if something has. */
static void send_fault(process *p) {
  lvd_fault fault;
  if (!lvd_app_fault(p->unit.app, &fault)) return;
  lvd_record r = {.kind = LVD_RECORD_FAULT, .size = (uint32_t)strlen(fault.message)};
  _Static_assert(sizeof fault.message <= sizeof r.data, "it fits");
  memcpy(r.data, fault.message, r.size);
  if (fault.actor) snprintf(r.name, sizeof r.name, "%s", fault.actor);
  lvd_link_send(&p->link, &r);
}

/* All fibers have ended. What was not answered failed, or had not begun. */
static void answer_the_rest(process *p, lvd_status outcome) {
  for (served *s; (s = first_served(p));) answer(s, outcome == LVD_OK ? LVD_E_STOPPED : outcome);
}

static void takes(lvd_link *link, const lvd_record *r) {
  process *p = process_of(link);
  if (lvd_knot_take(link, r)) return;
  switch (r->kind) {
  case LVD_RECORD_CALL:
    take_call(p, r);
    break;
  case LVD_RECORD_CANCEL:
    cancel_served(p, r->number);
    break;
  case LVD_RECORD_ANSWER:
    take_answer(p, r);
    break;
  case LVD_RECORD_FAULT:
    if (link->side == LVD_PARENT)
      take_fault(p, r);
    else
      lvd_link_accuse(link);
    break;
  default:
    lvd_link_accuse(link);
  }
}

/* ---- behind a window ------------------------------------------------------------------------ */

static void say_last(process *p, const char *text) {
  char *words = lvd_load_relaxed_ptr(&p->last_words) ? NULL : strdup(text);
  if (words) lvd_store_release_ptr(&p->last_words, words);
}

/* What its loader has said is heeded once all is taken that was sent before. */
static void look_behind(lvd_link *link) {
  process *p = process_of(link);
  char text[200];
  lvd_status status = lvd_far_outcome(p->far, text, sizeof text);
  if (status != LVD_OK && !p->far->over) {
    p->far->over = true;
    lvd_port_own_bell_ring(link->own_bell);
    return;
  }
  if (status == LVD_OK) status = lvd_far_ask(p->far, link, text, sizeof text);
  if (status == LVD_OK) return;
  if (!lvd_load_relaxed_u32(&link->segment->closing)) say_last(p, text);
  lvd_link_give_up(link, status);
}

static void free_far(process *p) {
  if (p->far) lvd_far_end(p->far);
  free(p->far);
  p->far = NULL;
}

/* ---- the other side is gone ----------------------------------------------------------------- */

static void parent_ended(lvd_link *link, lvd_status why) {
  process *p = process_of(link);
  cancel_all(p);
  fail_calls(p, why);
  lvd_event_set(&p->over, 1);
  if (lvd_load_acquire_u32(&p->unit.app->live) == 0) lvd_app_quiet(p->unit.app);
}

/* Somebody does not return from a procedure, and nobody will ever ask for it. */
static void watch(void *argument) {
  process *p = argument;
  if (lvd_event_wait(&p->over, NULL, GRACE_NS) != LVD_OK) lvd_port_process_exit();
}

static void child_ended(lvd_link *link, lvd_status why) {
  process *p = process_of(link);
  p->why = why;
  fail_calls(p, why == LVD_OK ? LVD_E_STOPPED : why);
  if (!p->watch) lvd_port_thread_start(&p->watch, -1, "levada/watch", watch, p);
  lvd_app_end(p->unit.app, LVD_E_STOPPED);
}

/* ---- the unit ------------------------------------------------------------------------------- */

static void leave_application(lvd_unit *unit) {
  lvd_port_lock(&unit->app->blocks_lock);
  lvd_unit **place = &unit->app->units;
  while (*place && *place != unit) place = &(*place)->next;
  if (*place) *place = unit->next;
  lvd_port_unlock(&unit->app->blocks_lock);
}

static int64_t left_of(int64_t timeout_ns, uint64_t start) {
  int64_t left = timeout_ns - (int64_t)(lvd_port_ns() - start);
  return timeout_ns < 0 ? -1 : left > 0 ? left : 0;
}

/* Asks the process to end, and waits until it has. */
static lvd_status await_end(process *p, int64_t timeout_ns) {
  uint64_t start = lvd_port_ns();
  const lvd_want end = {.event = &p->over}; /* it stays set */
  uint32_t which;
  if (!p->asked_ns) {
    p->asked_ns = start;
    lvd_store_relaxed_u32(&p->link.segment->closing, 1);
    p->link.bell.wake(&p->link.bell);
  }
  int64_t grace = left_of(GRACE_NS, p->asked_ns);
  bool patient = timeout_ns >= 0 && timeout_ns < grace;
  lvd_status status = lvd_wait_any(&end, 1, patient ? timeout_ns : grace, &which);
  if (status != LVD_E_TIME || patient) return status;
  lvd_link_kill(&p->link);
  return lvd_wait_any(&end, 1, left_of(timeout_ns, start), &which);
}

/* Waits until all who serve it here have returned, or failed. No more will come. */
static lvd_status await_served(process *p, int64_t timeout_ns) {
  uint64_t start = lvd_port_ns();
  lvd_status status = LVD_OK;
  lvd_event answered;
  lvd_event_init(&answered);
  lvd_port_lock(&p->link.lock);
  p->answered = &answered;
  while (status == LVD_OK) {
    served *s = p->served;
    while (s && lvd_event_is_set(&s->left)) s = s->next;
    if (!s) break;
    lvd_port_unlock(&p->link.lock);
    uint32_t which;
    const lvd_want want[2] = {{.event = &answered}, {.event = &s->left}};
    status = lvd_wait_any(want, 2, left_of(timeout_ns, start), &which);
    if (status == LVD_OK && which == 0) lvd_event_wait(&answered, NULL, 0);
    lvd_port_lock(&p->link.lock);
  }
  p->answered = NULL;
  /* Whoever says that it has failed may still be about it. */
  if (status == LVD_OK && p->served) status = LVD_E_STOPPED;
  served *kept = p->kept;
  p->kept = NULL;
  lvd_port_unlock(&p->link.lock);
  for (served *next; kept; kept = next) {
    next = kept->next;
    free(kept);
  }
  return status;
}

static void process_free(lvd_unit *unit);

static const lvd_unit_kind process_kind = {process_start, process_finish,  process_cancel,
                                           process_free,  process_awaited, process_last_words};

static lvd_aptr parent_unit;

/* Nothing of its application runs any more, or lvd_unit_unload has waited for what serves it. */
static void process_free(lvd_unit *unit) {
  process *p = (process *)unit;
  if (p->link.side == LVD_PARENT) {
    if (await_end(p, -1) != LVD_OK) { /* of a fiber whose waits end: that does not help it here */
      lvd_link_kill(&p->link);
      lvd_fiber_wait_through(lvd_fiber_self(), &p->over);
    }
    lvd_link_end(&p->link);
    answer_the_rest(p, LVD_E_STOPPED);
    free(p->may_call);
    free(lvd_load_relaxed_ptr(&p->last_words));
  } else {
    lvd_store_release_ptr(&parent_unit, NULL);
  }
  free_far(p);
  unlink_from(p);
  free(p);
}

static lvd_status await_service(process *p, int64_t limit_ns) {
  lvd_link *link = &p->link;
  uint64_t start = lvd_port_ns();
  for (;;) {
    uint32_t serves = lvd_load_relaxed_u32(&link->segment->serves);
    if (serves == 1 + LVD_LAYOUT) return LVD_OK;
    if (serves)
      return lvd_window_refuse(LVD_E_LAYOUT, "the program is of another layout of channels: build "
                                             "both sides of one version");
    if ((link->reaped = lvd_port_process_gone(&link->peer)))
      return lvd_window_refuse(LVD_E_PEER, "the board has ended before its program served");
    char text[200];
    lvd_status far = p->far ? lvd_far_outcome(p->far, text, sizeof text) : LVD_OK;
    if (far != LVD_OK) return lvd_window_refuse(far, "%s before it served", text);
    int64_t left = limit_ns - (int64_t)(lvd_port_ns() - start);
    if (left <= 0) return lvd_window_refuse(LVD_E_TIME, "the program does not serve in time");
    lvd_port_bell_wait(link->bell_end, link->own_bell, &link->peer, left);
  }
}

static void end_process(lvd_link *link) {
  if (!link->reaped) lvd_port_process_kill(&link->peer);
  while (!link->reaped) {
    lvd_port_bell_wait(link->bell_end, link->own_bell, &link->peer, -1);
    link->reaped = lvd_port_process_gone(&link->peer);
  }
}

/* Starts the program and names the unit. */
static lvd_status start_program(process *p, const char *exec_name, const lvd_unit_options *o) {
  lvd_link *link = &p->link;
  int child_bell = -1;
  char value[64];
  lvd_window_refuse(LVD_OK, "%s", ""); /* what was said of another one */
  lvd_status status =
      lvd_link_make(link, p->unit.app, 0, o->memory ? o->memory : UNITS_MEMORY, false, &child_bell);
  if (status == LVD_OK) {
    const int keep[2] = {link->memory, child_bell};
    snprintf(value, sizeof value, "%d,%d", keep[0], keep[1]);
    status = lvd_port_process_start(&link->peer, exec_name, o->argument, VARIABLE, value, keep, 2);
    if (status == LVD_E_UNKNOWN)
      lvd_window_refuse(
          status, "there is no program, and no kind of machine, that is called %.200s", exec_name);
  }
  lvd_port_close(child_bell);
  const char *base = strrchr(exec_name, '/');
  snprintf(p->unit.name, sizeof p->unit.name, "process %d (%.20s)", (int)link->peer.id,
           base ? base + 1 : exec_name);
  link->look = lvd_knot_look;
  return status;
}

/* The same of a board behind a window, and an image. */
static lvd_status start_board(process *p, const lvd_board *board, const char *file,
                              const lvd_unit_options *o) {
  lvd_link *link = &p->link;
  lvd_image image = {0};
  int child_bell = -1;
  int64_t limit_ns = o->time_limit_ns ? o->time_limit_ns : ATTACH_TIME_NS;
  lvd_window_refuse(LVD_OK, "%s", ""); /* what was said of another one */
  lvd_status status = (p->far = calloc(1, sizeof *p->far)) ? LVD_OK : LVD_E_MEMORY;
  if (status == LVD_OK && board->open)
    status = lvd_board_open_before(board, &file, limit_ns, &p->far->device);
  if (status == LVD_OK) status = lvd_image_read(file, board, &image);
  if (status == LVD_OK) {
    link->device = p->far->device;
    size_t base = link->device ? lvd_far_base_of(link->device, link, image.size)
                               : lvd_far_base(board, image.size);
    status = base ? lvd_link_make(link, p->unit.app, base, o->memory ? o->memory : UNITS_MEMORY,
                                  true, &child_bell)
                  : LVD_E_MEMORY;
  }
  if (status == LVD_OK) status = lvd_far_start(p->far, link, board, &image, child_bell, limit_ns);
  lvd_port_close(child_bell);
  lvd_image_free(&image);
  const char *base = strrchr(file, '/');
  snprintf(p->unit.name, sizeof p->unit.name, "window %d (%s%.20s)", (int)link->peer.id,
           board->prefix, base ? base + 1 : file);
  link->look = look_behind;
  link->look_ns = LOOK_NS;
  return status;
}

lvd_status lvd_unit_load(lvd_app *app, const char *exec_name, const lvd_unit_options *options,
                         lvd_unit **out) {
  static const lvd_unit_options usual;
  const lvd_unit_options *o = options ? options : &usual;
  if (!app || !exec_name || !*exec_name || !out || o->time_limit_ns < 0) return LVD_E_ARGUMENT;
  if (lvd_this_worker()) return LVD_E_STATE;
  process *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  lvd_event_init(&p->over);
  if (o->may_call && !(p->may_call = strdup(o->may_call))) {
    free(p);
    return LVD_E_MEMORY;
  }
  lvd_link *link = &p->link;
  lvd_link_prepare(link, app);
  const char *image;
  const lvd_board *board = lvd_board_of(exec_name, &image);
  /* All of it before the bellman begins: the child may be gone already. */
  p->unit.kind = &process_kind;
  p->unit.app = app;
  link->take = takes;
  link->ended = parent_ended;
  lvd_status status = board ? start_board(p, board, image, o) : start_program(p, exec_name, o);
  if (status == LVD_OK)
    status = await_service(p, o->time_limit_ns ? o->time_limit_ns : ATTACH_TIME_NS);
  if (status == LVD_OK) status = lvd_link_begin(link, "levada/bell");
  if (status != LVD_OK) {
    if (link->peer.id > 0) end_process(link);
    free_far(p);
    unlink_from(p);
    free(p->may_call);
    free(p);
    return status;
  }
  lvd_unit_enter(&p->unit);
  *out = &p->unit;
  return LVD_OK;
}

static process *is_process(const lvd_unit *unit) {
  return unit && unit->kind == &process_kind ? (process *)(uintptr_t)unit : NULL;
}

lvd_link *lvd_unit_link(const lvd_unit *unit) {
  process *p = is_process(unit);
  return p ? &p->link : NULL;
}

const char *lvd_link_name(lvd_link *link) { return process_of(link)->unit.name; }

lvd_call *lvd_link_call(lvd_link *link, uint32_t number) {
  return *place_of(process_of(link), number);
}

void lvd_link_served(lvd_link *link, void (*visit)(uint32_t number, const lvd_fiber *fiber, void *),
                     void *argument) {
  for (const served *s = process_of(link)->served; s; s = s->next)
    if (s->fiber) visit(s->record.number, s->fiber, argument);
}

lvd_status lvd_unit_unload(lvd_unit *unit) { return lvd_unit_unload_for(unit, -1); }

lvd_status lvd_unit_unload_for(lvd_unit *unit, int64_t timeout_ns) {
  LVD_INSIDE;
  uint64_t start = lvd_port_ns();
  process *p = is_process(unit);
  if (!p || p->link.side == LVD_CHILD) return LVD_E_ARGUMENT;
  lvd_port_lock(&p->link.lock);
  bool used = p->link.streams || lvd_load_relaxed_u32(&p->held);
  lvd_fiber *self = lvd_fiber_self();
  for (const served *s = p->served; s; s = s->next) used |= self && s->fiber == self;
  lvd_port_unlock(&p->link.lock);
  if (used) return LVD_E_STATE;
  lvd_status status = await_end(p, timeout_ns);
  if (status != LVD_OK) return status;
  lvd_link_end(&p->link);
  cancel_all(p);
  status = await_served(p, left_of(timeout_ns, start));
  if (status != LVD_OK) return status;
  leave_application(unit);
  process_free(unit);
  return LVD_OK;
}

lvd_status lvd_unit_state(const lvd_unit *unit) {
  process *p = is_process(unit);
  return !unit ? LVD_E_ARGUMENT : p ? lvd_link_state(&p->link) : LVD_OK;
}

int32_t lvd_unit_process(const lvd_unit *unit) {
  process *p = is_process(unit);
  return p ? p->link.peer.id : 0;
}

lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *options, lvd_stream **out) {
  LVD_INSIDE;
  process *p = is_process(unit);
  if (!p || !options || !out) return LVD_E_ARGUMENT;
  return lvd_shared_open(&p->link, options, out);
}

lvd_status lvd_unit_leave_stream(lvd_unit *unit, const char *name) {
  process *p = is_process(unit);
  return p ? lvd_shared_leave(&p->link, name) : LVD_E_ARGUMENT;
}

void lvd_unit_expect_stream(lvd_unit *unit, const char *name, const lvd_user party[2],
                            uint32_t parties) {
  process *p = is_process(unit);
  if (p) lvd_knot_expect(&p->link, name, party, parties);
}

/* ---- being loaded --------------------------------------------------------------------------- */

bool lvd_unit_is_loaded(void) { return getenv(VARIABLE) != NULL; }

lvd_unit *lvd_unit_parent(void) { return lvd_load_acquire_ptr(&parent_unit); }

static lvd_status serve(lvd_app *app, int memory, int bell) {
  process *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  p->unit.kind = &process_kind;
  p->unit.app = app;
  lvd_event_init(&p->over);
  p->link.take = takes;
  p->link.look = lvd_knot_look;
  p->link.ended = child_ended;
  p->why = LVD_E_STATE; /* nobody has told us to end */
  snprintf(p->unit.name, sizeof p->unit.name, "the parent");
  lvd_status status = lvd_link_join(&p->link, app, memory, bell);
  if (status != LVD_OK) {
    unlink_from(p);
    free(p);
    return status;
  }
  lvd_unit_enter(&p->unit);
  lvd_store_release_ptr(&parent_unit, &p->unit);
  status = lvd_link_begin(&p->link, "levada/bell");
  if (status != LVD_OK) return status;
  status = lvd_app_wait(app, -1);
  send_fault(p);
  answer_the_rest(p, status);
  lvd_link_await_sent(&p->link, GRACE_NS / 2);
  lvd_link_end(&p->link);
  lvd_event_set(&p->over, 1);
  if (p->watch) lvd_port_thread_join(p->watch);
  return status == LVD_E_STOPPED && p->why != LVD_E_STATE ? p->why : status;
}

lvd_status lvd_unit_serve(lvd_app *app) {
  const char *value = getenv(VARIABLE);
  int memory, bell;
  if (!value || sscanf(value, "%d,%d", &memory, &bell) != 2) return LVD_E_STATE;
  /* No program that we start is to take itself for a unit. */
  unsetenv(VARIABLE);
  lvd_port_keep_private(memory);
  lvd_port_keep_private(bell);
  if (app) return serve(app, memory, bell);
  const lvd_app_options o = {.name = "unit"};
  lvd_runtime *rt;
  lvd_status status = lvd_runtime_create(NULL, &rt);
  if (status != LVD_OK) return status;
  status = lvd_app_open(rt, &o, &app);
  if (status == LVD_OK) {
    status = serve(app, memory, bell);
    lvd_app_unload(app);
  }
  lvd_runtime_destroy(rt);
  return status;
}
