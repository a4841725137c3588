/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls of a unit's procedures from a command line, with files as the other ends of its streams. The unit has an
 * application of its own; during a call, each file has a thread that copies. In C, since the functions of streams are
 * inline and Rust cannot call them. */
#include <levada/process.h>
#include <levada/runtime.h>
#include <levada/stream.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "ipc/link.h"
#include "ipc/task_message.h"
#include "stream/stream.h"

/* POLL_NS: interval at which a copying thread checks whether the call has returned. */
enum { POLL_NS = 100000000, BUFFER_BYTES = 65536 };

typedef struct lvd_sys_served {
  lvd_runtime *rt;
  lvd_app *app;
  lvd_unit *unit;
} lvd_sys_served;

/* A stream of a call, and the file from which it is filled or to which it is written. */
typedef struct lvd_sys_flow {
  const char *name;
  int file;          /* descriptor */
  uint32_t size;     /* of an element, in bytes */
  bool in;           /* true: from the file to the procedure */
  lvd_status status; /* set by the call: why the copying failed, or LVD_OK */
  int error;         /* set by the call: errno of the file, or 0 */
  uint64_t count;    /* set by the call: elements copied */
} lvd_sys_flow;

/* Boots the unit of this name in an application of its own; the caller owns *out (lvd_sys_served_end). */
lvd_status lvd_sys_served_load(const char *unit, lvd_sys_served **out);
/* LVD_OK while the unit serves, otherwise why it has ended. */
lvd_status lvd_sys_served_state(const lvd_sys_served *s);
/* Process id of the unit. */
int32_t lvd_sys_served_process(const lvd_sys_served *s);
/* Calls a procedure, or runs the task of that name, and copies its streams until it returns. One call at a time.
 * `result` has room for *result_size bytes, which is set to the result's size. On failure each `flow` that failed has a
 * status or error, and `error_text`, of at most `error_text_size` bytes, a sentence or "". LVD_E_NOT_FOUND: no such
 * procedure; LVD_E_ARGUMENT: it does not take an argument of `size` bytes; LVD_E_FAULT: it failed. */
lvd_status lvd_sys_served_call(lvd_sys_served *s, const char *procedure, const void *argument,
                               size_t size, lvd_sys_flow *flow, uint32_t flows, void *result,
                               size_t *result_size, char *error_text, size_t error_text_size);
/* Ends the unit and its application. */
void lvd_sys_served_end(lvd_sys_served *s);

lvd_status lvd_sys_served_load(const char *unit, lvd_sys_served **out) {
  /* The application has no actors, so one worker is enough, and it need not spin. */
  const lvd_runtime_options o = {.workers = 1, .no_pin = true, .no_spin = true};
  lvd_sys_served *s = calloc(1, sizeof *s);
  if (!s) return LVD_E_MEMORY;
  lvd_status status = lvd_runtime_create(&o, &s->rt);
  if (status == LVD_OK) status = lvd_app_open(s->rt, NULL, &s->app);
  if (status == LVD_OK) status = lvd_unit_load(s->app, unit, NULL, &s->unit);
  if (status == LVD_OK)
    *out = s;
  else
    lvd_sys_served_end(s);
  return status;
}

lvd_status lvd_sys_served_state(const lvd_sys_served *s) { return lvd_unit_state(s->unit); }

int32_t lvd_sys_served_process(const lvd_sys_served *s) { return lvd_unit_process(s->unit); }

void lvd_sys_served_end(lvd_sys_served *s) {
  if (s->app) lvd_app_unload(s->app); /* ends the unit, too */
  if (s->rt) lvd_runtime_destroy(s->rt);
  free(s);
}

/* ---- files ---------------------------------------------------------------------------------- */

/* A thread that copies between a stream and its file. */
typedef struct pump {
  lvd_sys_flow *flow;
  lvd_stream *stream;
  int returned_fd; /* readable once the call has returned */
  pthread_t thread;
  bool started;
  lvd_status ended; /* how the procedure has closed the stream, if with an error */
} pump;

static bool has_returned(const pump *p) {
  struct pollfd fd = {.fd = p->returned_fd, .events = POLLIN};
  return poll(&fd, 1, 0) > 0;
}

/* Reads at most `max` bytes of the file and returns their number, waiting for the first. 0: the file has ended or
 * failed (flow->error), or the call has returned. */
static size_t read_file(const pump *p, unsigned char *to, size_t max) {
  struct pollfd fd[2] = {{.fd = p->returned_fd, .events = POLLIN},
                         {.fd = p->flow->file, .events = POLLIN}};
  for (;;) {
    if (poll(fd, 2, -1) < 0 && errno == EINTR) continue;
    if (fd[0].revents) return 0;
    ssize_t n = read(p->flow->file, to, max);
    if (n >= 0) return (size_t)n;
    if (errno == EINTR || errno == EAGAIN) continue;
    p->flow->error = errno;
    return 0;
  }
}

static void pump_in(pump *p, unsigned char *bytes) {
  lvd_sys_flow *f = p->flow;
  size_t have = 0, n;
  while (f->status == LVD_OK && (n = read_file(p, bytes + have, BUFFER_BYTES - have)) > 0) {
    size_t used = 0;
    for (have += n; f->status == LVD_OK && have - used >= f->size; used += f->size) {
      while ((f->status = lvd_stream_wait_room(p->stream, 1, POLL_NS)) == LVD_E_TIMEOUT &&
             !has_returned(p)) {
      }
      if (f->status != LVD_OK) break;
      f->status = lvd_stream_put(p->stream, bytes + used, f->size);
      f->count += f->status == LVD_OK;
    }
    lvd_stream_flush(p->stream);
    memmove(bytes, bytes + used, have -= used);
  }
  if (f->status == LVD_OK && have && !has_returned(p))
    f->status = LVD_E_EOF; /* within an element */
  /* A procedure that returns or closes its end early has not failed. */
  if (f->status == LVD_E_TIMEOUT || f->status == LVD_E_PEER_GONE) f->status = LVD_OK;
  /* After an error of the file, the stream must not look complete to the procedure. */
  lvd_stream_close_sender(p->stream, f->error                 ? LVD_E_SYSTEM
                                     : f->status == LVD_E_EOF ? LVD_E_ARGUMENT
                                                              : LVD_OK);
}

static bool write_file(lvd_sys_flow *f, const unsigned char *from, size_t size) {
  while (size) {
    ssize_t n = write(f->file, from, size);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      f->error = errno;
      return false;
    }
    from += n;
    size -= (size_t)n;
  }
  return true;
}

static void pump_out(pump *p, unsigned char *bytes) {
  lvd_sys_flow *f = p->flow;
  for (;;) {
    /* Checked before the wait: elements that were sent before the return have then arrived. */
    bool last = has_returned(p);
    lvd_status status = lvd_stream_wait_elements(p->stream, 1, POLL_NS);
    if (status == LVD_E_TIMEOUT && !last) continue;
    if (status != LVD_OK && status != LVD_E_TIMEOUT && status != LVD_E_EOF) p->ended = status;
    if (status != LVD_OK) break;
    size_t size = 0;
    while (size + f->size <= BUFFER_BYTES && lvd_elements(&p->stream->consumer, 1) >= 1) {
      if (lvd_stream_get(p->stream, bytes + size, f->size) != LVD_OK) break;
      size += f->size;
      f->count++;
    }
    lvd_stream_pop(p->stream);
    if (!write_file(f, bytes, size)) break;
  }
  lvd_stream_close_receiver(p->stream);
}

static void *run_pump(void *argument) {
  pump *p = argument;
  unsigned char *bytes = malloc(BUFFER_BYTES);
  if (!bytes)
    p->flow->status = LVD_E_MEMORY;
  else if (p->flow->in)
    pump_in(p, bytes);
  else
    pump_out(p, bytes);
  free(bytes);
  return NULL;
}

/* Destroys the stream after the call, and withdraws it if the procedure has not opened it, so that no later call does.
 * `succeeded`: the call did. */
static void close_stream(pump *p, bool succeeded) {
  const lvd_shared_stream *shared = ((const stream *)p->stream)->shared;
  lvd_sys_flow *f = p->flow;
  bool unused = lvd_shared_give_up(shared->link, f->name);
  if (succeeded && f->status == LVD_OK) f->status = unused ? LVD_E_STATE : p->ended;
  lvd_stream_destroy(p->stream);
}

/* Opens all streams, then starts their threads. On failure the status of the flow is set as well. */
static lvd_status begin_pumps(lvd_sys_served *s, pump *p, uint32_t count, int returned_fd) {
  for (uint32_t i = 0; i < count; i++) {
    lvd_sys_flow *f = p[i].flow;
    const lvd_stream_options o = {.name = f->name, .elem_size = f->size, .threshold = 1};
    lvd_status status = lvd_stream_open(s->unit, &o, &p[i].stream);
    if (status != LVD_OK) return f->status = status;
    p[i].returned_fd = returned_fd;
  }
  for (uint32_t i = 0; i < count; i++) {
    p[i].started = pthread_create(&p[i].thread, NULL, run_pump, &p[i]) == 0;
    if (!p[i].started) return p[i].flow->status = LVD_E_SYSTEM;
  }
  return LVD_OK;
}

/* ---- the call ------------------------------------------------------------------------------- */

static lvd_status call(lvd_sys_served *s, const char *procedure, const void *argument, size_t size,
                       void *result, size_t *result_size) {
  const lvd_call_options o = {.result_room = *result_size};
  lvd_call *c;
  lvd_status status = lvd_call_start(s->unit, procedure, argument, size, &o, &c);
  return status == LVD_OK ? lvd_call_wait(c, result, result_size, -1, NULL) : status;
}

lvd_status lvd_sys_served_call(lvd_sys_served *s, const char *procedure, const void *argument,
                               size_t size, lvd_sys_flow *flow, uint32_t flows, void *result,
                               size_t *result_size, char *error_text, size_t error_text_size) {
  /* Ask the unit whether the name is one of a task of Streaming RPC; otherwise it is a procedure's. */
  static lvd_task_message task;
  size_t none = 0;
  task.number++;
  memset(task.name, 0, sizeof task.name);
  strncpy(task.name, procedure, sizeof task.name - 1);
  bool is_task = call(s, "srpc.knows", &task, sizeof task, NULL, &none) == LVD_OK;
  int returned_fd = eventfd(0, EFD_CLOEXEC);
  pump *p = calloc(flows + 1, sizeof *p);
  lvd_status status = returned_fd < 0 ? LVD_E_SYSTEM : p ? LVD_OK : LVD_E_MEMORY;
  for (uint32_t i = 0; i < flows && status == LVD_OK; i++) p[i].flow = &flow[i];
  if (status == LVD_OK) status = begin_pumps(s, p, flows, returned_fd);
  if (status == LVD_OK && is_task) {
    *result_size = 0;
    status = size ? LVD_E_ARGUMENT /* a task takes no argument */
                  : call(s, "srpc.run", &task, sizeof task, NULL, result_size);
    call(s, "srpc.release", &task, sizeof task, NULL, &none);
  } else if (status == LVD_OK) {
    status = call(s, procedure, argument, size, result, result_size);
  }
  *error_text = 0;
  if (status == LVD_E_ARGUMENT && size)
    snprintf(error_text, error_text_size, "it does not take an argument of %zu bytes", size);
  if (status == LVD_E_FAULT) lvd_unit_error_text(s->unit, error_text, error_text_size);
  ssize_t n = write(returned_fd, &(uint64_t){1}, sizeof(uint64_t));
  (void)n;
  for (uint32_t i = 0; i < flows && p; i++) {
    if (p[i].started) pthread_join(p[i].thread, NULL);
    if (p[i].stream) close_stream(&p[i], status == LVD_OK);
  }
  free(p);
  if (returned_fd >= 0) close(returned_fd);
  return status;
}
