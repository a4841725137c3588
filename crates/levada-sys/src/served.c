/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A unit whose procedures are called from outside, with files for its streams: one application for it alone, and a
 * thread for each file while a call goes on. Uses the inline half of the interface, which Rust cannot call. */
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

enum { LOOK_NS = 100000000, ROOM = 65536 };

typedef struct lvd_sys_served {
  lvd_runtime *rt;
  lvd_app *app;
  lvd_unit *unit;
} lvd_sys_served;

/* A stream of the call's, and the file that it comes from or goes to. */
typedef struct lvd_sys_flow {
  const char *name;
  int file;
  uint32_t size;     /* bytes of an element */
  bool in;           /* from the file */
  lvd_status status; /* why it was cut off */
  int error;         /* of the system */
  uint64_t count;    /* elements that went through */
} lvd_sys_flow;

lvd_status lvd_sys_served_load(const char *unit, lvd_sys_served **out);
lvd_status lvd_sys_served_state(const lvd_sys_served *s);
int32_t lvd_sys_served_process(const lvd_sys_served *s);
lvd_status lvd_sys_served_call(lvd_sys_served *s, const char *procedure, const void *argument,
                               size_t size, lvd_sys_flow *flow, uint32_t flows, void *result,
                               size_t *result_size, char *why, size_t room);
void lvd_sys_served_end(lvd_sys_served *s);

lvd_status lvd_sys_served_load(const char *unit, lvd_sys_served **out) {
  /* Nothing of it computes here: one worker, which sleeps. */
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
  if (s->app) lvd_app_unload(s->app); /* with the unit */
  if (s->rt) lvd_runtime_destroy(s->rt);
  free(s);
}

/* ---- files ---------------------------------------------------------------------------------- */

typedef struct pump {
  lvd_sys_flow *flow;
  lvd_stream *stream;
  int over; /* can be read when the call has returned */
  pthread_t thread;
  bool started;
  lvd_status ended; /* how what comes out of the procedure has */
} pump;

static bool is_over(const pump *p) {
  struct pollfd fd = {.fd = p->over, .events = POLLIN};
  return poll(&fd, 1, 0) > 0;
}

/* How much there is, up to `most`; 0: the file has ended, or the call. */
static size_t read_file(const pump *p, unsigned char *to, size_t most) {
  struct pollfd fd[2] = {{.fd = p->over, .events = POLLIN},
                         {.fd = p->flow->file, .events = POLLIN}};
  for (;;) {
    if (poll(fd, 2, -1) < 0 && errno == EINTR) continue;
    if (fd[0].revents) return 0;
    ssize_t n = read(p->flow->file, to, most);
    if (n >= 0) return (size_t)n;
    if (errno == EINTR || errno == EAGAIN) continue;
    p->flow->error = errno;
    return 0;
  }
}

static void pump_in(pump *p, unsigned char *bytes) {
  lvd_sys_flow *f = p->flow;
  size_t have = 0, n;
  while (f->status == LVD_OK && (n = read_file(p, bytes + have, ROOM - have)) > 0) {
    size_t used = 0;
    for (have += n; f->status == LVD_OK && have - used >= f->size; used += f->size) {
      while ((f->status = lvd_stream_wait_room(p->stream, 1, LOOK_NS)) == LVD_E_TIMEOUT &&
             !is_over(p)) {
      }
      if (f->status != LVD_OK) break;
      f->status = lvd_stream_put(p->stream, bytes + used, f->size);
      f->count += f->status == LVD_OK;
    }
    lvd_stream_flush(p->stream);
    memmove(bytes, bytes + used, have -= used);
  }
  if (f->status == LVD_OK && have && !is_over(p)) f->status = LVD_E_EOF; /* amid an element */
  if (f->status == LVD_E_TIMEOUT || f->status == LVD_E_PEER_GONE)
    f->status = LVD_OK; /* it wants no more */
  /* The procedure is not to take a part for all of it. */
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
    bool last = is_over(p); /* before the look: what came before the return is there then */
    lvd_status status = lvd_stream_wait_elements(p->stream, 1, LOOK_NS);
    if (status == LVD_E_TIMEOUT && !last) continue;
    if (status != LVD_OK && status != LVD_E_TIMEOUT && status != LVD_E_EOF) p->ended = status;
    if (status != LVD_OK) break;
    size_t size = 0;
    while (size + f->size <= ROOM && lvd_elements(&p->stream->get, 1) >= 1) {
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
  unsigned char *bytes = malloc(ROOM);
  if (!bytes)
    p->flow->status = LVD_E_MEMORY;
  else if (p->flow->in)
    pump_in(p, bytes);
  else
    pump_out(p, bytes);
  free(bytes);
  return NULL;
}

/* The call is over: what it has not opened nobody will. */
static void let_go(pump *p, bool returned) {
  const lvd_shared_stream *shared = ((const stream *)p->stream)->shared;
  lvd_sys_flow *f = p->flow;
  bool unused = lvd_shared_give_up(shared->link, f->name);
  if (returned && f->status == LVD_OK) f->status = unused ? LVD_E_STATE : p->ended;
  lvd_stream_destroy(p->stream);
}

static lvd_status begin_pumps(lvd_sys_served *s, pump *p, uint32_t count, int over) {
  for (uint32_t i = 0; i < count; i++) {
    lvd_sys_flow *f = p[i].flow;
    const lvd_stream_options o = {.name = f->name, .elem_size = f->size, .threshold = 1};
    lvd_status status = lvd_stream_open(s->unit, &o, &p[i].stream);
    if (status != LVD_OK) return f->status = status;
    p[i].over = over;
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
                               size_t *result_size, char *why, size_t room) {
  /* One of the paper's tasks, or a procedure? */
  static lvd_task_message task;
  size_t none = 0;
  task.number++;
  memset(task.name, 0, sizeof task.name);
  strncpy(task.name, procedure, sizeof task.name - 1);
  bool is_task = call(s, "srpc.knows", &task, sizeof task, NULL, &none) == LVD_OK;
  int over = eventfd(0, EFD_CLOEXEC);
  pump *p = calloc(flows + 1, sizeof *p);
  lvd_status status = over < 0 ? LVD_E_SYSTEM : p ? LVD_OK : LVD_E_MEMORY;
  for (uint32_t i = 0; i < flows && status == LVD_OK; i++) p[i].flow = &flow[i];
  if (status == LVD_OK) status = begin_pumps(s, p, flows, over);
  if (status == LVD_OK && is_task) {
    *result_size = 0;
    status = size ? LVD_E_ARGUMENT /* tasks have none */
                  : call(s, "srpc.run", &task, sizeof task, NULL, result_size);
    call(s, "srpc.release", &task, sizeof task, NULL, &none);
  } else if (status == LVD_OK) {
    status = call(s, procedure, argument, size, result, result_size);
  }
  *why = 0;
  if (status == LVD_E_ARGUMENT && size)
    snprintf(why, room, "it does not take this argument of %zu bytes", size);
  if (status == LVD_E_FAULT) lvd_unit_error_text(s->unit, why, room);
  ssize_t n = write(over, &(uint64_t){1}, sizeof(uint64_t));
  (void)n;
  for (uint32_t i = 0; i < flows && p; i++) {
    if (p[i].started) pthread_join(p[i].thread, NULL);
    if (p[i].stream) let_go(&p[i], status == LVD_OK);
  }
  free(p);
  if (over >= 0) close(over);
  return status;
}
