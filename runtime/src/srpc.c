/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Streaming RPC by the paper's names: tasks are fibers of one application, streams lie in a table by
 * their numbers. A side of a stream is whoever created it: a fiber, or a thread. */
#include <levada/srpc.h>

#include <stdio.h>
#include <stdlib.h>

#include "stream.h"

typedef struct registered {
  char name[64];
  void (*function)(void *);
  struct registered *next;
} registered;

struct srpc_task {
  void (*function)(void *);
  int prio;
  uint32_t worker;
  lvd_fiber *fiber; /* while it has been started and not waited for */
  bool detached;    /* of a transmitter: it goes by itself */
  lvd_event signal;
  struct srpc_task *next;
  char name[64];
};

/* A number that is in use. */
typedef struct entry {
  lvd_aptr stream; /* lvd_stream, made at the first element */
  void *side[2];   /* who has created it and has not left */
  uint32_t sides, left;
  uint32_t capacity, threshold;
  int64_t time_limit_ns;
} entry;

static struct {
  lvd_port_mutex lock; /* of all that follows, and of entries */
  registered *procedures;
  lvd_a32 booted;
  lvd_runtime *rt;
  lvd_app *app;
  struct srpc_task *tasks;
  uint32_t next_worker;
  entry stream[PB_STREAMS];
  char *why;
} program;

static _Thread_local char thread_mark;

static void *myself(void) {
  lvd_fiber *f = lvd_fiber_self();
  return f ? (void *)f : &thread_mark;
}

/* ---- start-up and release ---------------------------------------------------------------------- */

lvd_status pb_load(const char *exec_name) {
  (void)exec_name;
  return LVD_OK;
}

lvd_status pb_boot(void) {
  if (lvd_load_acquire_u32(&program.booted)) return LVD_OK;
  lvd_status status = LVD_OK;
  lvd_port_lock(&program.lock);
  if (!lvd_load_acquire_u32(&program.booted)) {
    free(program.why);
    program.why = NULL;
    status = lvd_runtime_create(NULL, &program.rt);
    if (status == LVD_OK) {
      lvd_app_options o = {.name = "program"};
      status = lvd_app_open(program.rt, &o, &program.app);
      if (status != LVD_OK) lvd_runtime_destroy(program.rt);
    }
    if (status == LVD_OK) lvd_store_release_u32(&program.booted, 1);
  }
  lvd_port_unlock(&program.lock);
  return status;
}

static void leave(void *side);

lvd_status pb_finish(void) {
  if (!lvd_load_acquire_u32(&program.booted)) return LVD_E_STATE;
  if (lvd_fiber_self()) return LVD_E_STATE; /* it would wait for itself */
  leave(&thread_mark);
  lvd_app_close(program.app);
  lvd_status status = lvd_app_wait(program.app, -1);
  if (status != LVD_OK) {
    lvd_fault fault;
    size_t size = lvd_app_why(program.app, NULL, 0) + sizeof fault + 100;
    if ((program.why = malloc(size))) {
      if (lvd_app_fault(program.app, &fault))
        snprintf(program.why, size, "%s: %s\n", fault.actor, fault.message);
      else
        lvd_app_why(program.app, program.why, size);
    }
  }
  lvd_app_unload(program.app); /* and its streams */
  lvd_runtime_destroy(program.rt);
  for (TASKID t = program.tasks, next; t; t = next) {
    next = t->next;
    free(t);
  }
  program.tasks = NULL;
  memset(program.stream, 0, sizeof program.stream);
  lvd_store_release_u32(&program.booted, 0);
  return status;
}

const char *pb_why(void) { return program.why ? program.why : ""; }

/* ---- procedures ---------------------------------------------------------------------------------- */

lvd_status pb_register(const char *name, void *function) {
  if (!name || !function || strlen(name) >= sizeof((registered *)0)->name) return LVD_E_ARGUMENT;
  registered *r = calloc(1, sizeof *r);
  if (!r) return LVD_E_MEMORY;
  memcpy(r->name, name, strlen(name));
  memcpy(&r->function, &function, sizeof function);
  lvd_port_lock(&program.lock);
  r->next = program.procedures;
  program.procedures = r;
  lvd_port_unlock(&program.lock);
  return LVD_OK;
}

static TASKID new_task(const char *name, void (*function)(void *), int prio, uint32_t worker) {
  TASKID t = calloc(1, sizeof *t);
  if (!t) return NULL;
  t->function = function;
  t->prio = prio;
  t->worker = worker;
  copy_name(t->name, name);
  lvd_event_init(&t->signal);
  lvd_port_lock(&program.lock);
  t->next = program.tasks;
  program.tasks = t;
  lvd_port_unlock(&program.lock);
  return t;
}

/* The cores in turn, the caller's last. */
static uint32_t other_worker(void) {
  lvd_worker *w = lvd_this_worker();
  uint32_t workers = lvd_workers(program.rt), here = w ? w->index % workers : 0;
  lvd_port_lock(&program.lock);
  uint32_t next = program.next_worker++;
  lvd_port_unlock(&program.lock);
  return workers == 1 ? 0 : (here + 1 + next % (workers - 1)) % workers;
}

TASKID pb_create(const char *p_task, int prio) {
  if (!p_task || pb_boot() != LVD_OK) return NULL;
  lvd_port_lock(&program.lock);
  registered *r = program.procedures;
  while (r && strcmp(r->name, p_task) != 0) r = r->next;
  lvd_port_unlock(&program.lock);
  return r ? new_task(p_task, r->function, prio, other_worker()) : NULL;
}

static void run_task(void *argument) {
  TASKID t = argument;
  t->function(NULL);
  leave(lvd_fiber_self());
}

static lvd_status start(TASKID t) {
  lvd_fiber_options o = {.name = t->name, .priority = t->prio, .place = LVD_WORKER(t->worker)};
  return lvd_fiber_start(program.app, run_task, t, &o, t->detached ? NULL : &t->fiber);
}

lvd_status pb_rpc(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  return t->fiber ? LVD_E_STATE : start(t);
}

lvd_status pb_wait(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  if (!t->fiber) return LVD_E_STATE;
  lvd_status status = lvd_fiber_join(t->fiber, -1);
  t->fiber = NULL;
  return status;
}

lvd_status pb_cancel(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  if (!t->fiber) return LVD_E_STATE;
  lvd_fiber_cancel(t->fiber);
  return LVD_OK;
}

lvd_status pb_release(TASKID t) {
  if (!t) return LVD_E_ARGUMENT;
  lvd_status status = t->fiber ? pb_wait(t) : LVD_OK;
  lvd_port_lock(&program.lock);
  TASKID *at = &program.tasks;
  while (*at && *at != t) at = &(*at)->next;
  if (*at) *at = t->next;
  lvd_port_unlock(&program.lock);
  free(t);
  return status;
}

lvd_status pb_signal(TASKID t, u32 data) {
  return t ? lvd_event_set(&t->signal, data) : LVD_E_ARGUMENT;
}

lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns) {
  lvd_fiber *f = lvd_fiber_self();
  lvd_port_lock(&program.lock);
  TASKID t = program.tasks;
  while (t && (!f || t->fiber != f)) t = t->next;
  lvd_port_unlock(&program.lock);
  return t ? lvd_event_wait(&t->signal, data, timeout_ns) : LVD_E_STATE;
}

/* ---- streams ------------------------------------------------------------------------------------- */

static bool is_side(const entry *e, const void *who) {
  return e->side[0] == who || e->side[1] == who;
}

/* Both sides have left, or the number was never used. */
static void reset(entry *e) {
  lvd_stream_destroy(lvd_load_relaxed_ptr(&e->stream));
  memset(e, 0, sizeof *e);
}

lvd_status stream_create(STREAM_ID sID) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  lvd_status status = pb_boot();
  if (status != LVD_OK) return status;
  entry *e = &program.stream[sID];
  void *me = myself();
  lvd_port_lock(&program.lock);
  if (is_side(e, me) || e->sides == 2)
    status = LVD_E_STATE;
  else
    e->side[e->sides++] = me;
  lvd_port_unlock(&program.lock);
  return status;
}

lvd_status stream_configure(STREAM_ID sID, u32 capacity, u32 threshold) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
  lvd_port_lock(&program.lock);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (!s) {
    e->capacity = capacity;
    e->threshold = threshold;
  }
  lvd_port_unlock(&program.lock);
  return s ? LVD_E_STATE : LVD_OK;
}

lvd_status stream_time_limit(STREAM_ID sID, int64_t timeout_ns) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
  lvd_port_lock(&program.lock);
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  e->time_limit_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (s) s->time_limit_ns = timeout_ns;
  lvd_port_unlock(&program.lock);
  return LVD_OK;
}

/* A side that has put and got nothing leaves: nothing will come, or nobody will take. */
static void leave_unused(lvd_stream *s) {
  if (lvd_stream_end(s, LVD_OK) != LVD_OK) lvd_stream_leave(s);
}

static void leave_entry(entry *e, void *side) {
  if (!is_side(e, side)) return;
  lvd_stream *s = lvd_load_relaxed_ptr(&e->stream);
  if (s && !lvd_stream_close(s)) leave_unused(s);
  e->left++;
  if (e->left == 2) reset(e);
}

static void leave(void *side) {
  for (int i = 0; i < PB_STREAMS; i++) {
    lvd_port_lock(&program.lock);
    leave_entry(&program.stream[i], side);
    lvd_port_unlock(&program.lock);
  }
}

lvd_status stream_close(STREAM_ID sID) {
  if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
  entry *e = &program.stream[sID];
  void *me = myself();
  lvd_port_lock(&program.lock);
  lvd_status status = is_side(e, me) ? LVD_OK : LVD_E_STATE;
  leave_entry(e, me);
  lvd_port_unlock(&program.lock);
  return status;
}

/* The stream, made now if there is none. */
static lvd_status open_stream(STREAM_ID sID, size_t size, lvd_stream **out) {
  entry *e = &program.stream[sID];
  lvd_status status = LVD_OK;
  lvd_port_lock(&program.lock);
  *out = lvd_load_relaxed_ptr(&e->stream);
  if (!is_side(e, myself())) {
    status = LVD_E_STATE;
  } else if (!*out) {
    char name[32];
    snprintf(name, sizeof name, "%d", sID);
    lvd_stream_options o = {.name = name,
                            .elem_size = (uint32_t)size,
                            .capacity = e->capacity,
                            .threshold = e->threshold,
                            .time_limit_ns = e->time_limit_ns};
    status = lvd_stream_create(program.app, &o, out);
    if (status == LVD_OK) {
      lvd_store_release_ptr(&e->stream, *out);
      if (e->left) leave_unused(*out); /* the other side has come and gone */
    }
  }
  lvd_port_unlock(&program.lock);
  return status;
}

static lvd_stream *made(STREAM_ID sID) {
  return sID < 0 || sID >= PB_STREAMS ? NULL : lvd_load_acquire_ptr(&program.stream[sID].stream);
}

lvd_status srpc_put(STREAM_ID sID, const void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
    lvd_status status = open_stream(sID, size, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_put(s, element, size);
}

lvd_status srpc_get(STREAM_ID sID, void *element, size_t size) {
  lvd_stream *s = made(sID);
  if (LVD_UNLIKELY(!s)) {
    if (sID < 0 || sID >= PB_STREAMS) return LVD_E_ARGUMENT;
    lvd_status status = open_stream(sID, size, &s);
    if (status != LVD_OK) return status;
  }
  return lvd_stream_get(s, element, size);
}

lvd_status stream_push(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_push(s);
  return LVD_OK;
}

lvd_status stream_pop(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_pop(s);
  return LVD_OK;
}

lvd_status stream_flush(STREAM_ID sID) {
  lvd_stream *s = made(sID);
  if (!s) return LVD_E_STATE;
  lvd_stream_flush(s);
  return LVD_OK;
}

lvd_stream *stream_handle(STREAM_ID sID) { return made(sID); }

/* ---- both at once ---------------------------------------------------------------------------------- */

static TASKID start_both(TASKID remote, void *transmitter) {
  lvd_worker *w = lvd_this_worker();
  void (*function)(void *);
  memcpy(&function, &transmitter, sizeof function);
  TASKID t = new_task("transmitter", function, 0, w ? w->index % lvd_workers(program.rt) : 0);
  if (!t) return NULL;
  t->detached = true;
  if (pb_rpc(remote) != LVD_OK) return NULL;
  return start(t) == LVD_OK ? remote : NULL;
}

TASKID srpc_rpc_task(void *remote, void *transmitter) {
  if (!remote || !transmitter || pb_boot() != LVD_OK) return NULL;
  return start_both(remote, transmitter);
}

TASKID srpc_rpc_function(void *remote, void *transmitter) {
  if (!remote || !transmitter || pb_boot() != LVD_OK) return NULL;
  void (*function)(void *);
  memcpy(&function, &remote, sizeof function);
  TASKID t = new_task("remote", function, 0, other_worker());
  return t ? start_both(t, transmitter) : NULL;
}
