/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The paper's names behind a window: procedures that pb_create finds, streams by number, signals. What
 * the host asks for are calls of these few procedures (src/remote_tasks.c). */
#include "far.h"

#include <string.h>

#include "../src/message.h"

enum { NUMBERS = 32 };

/* ---- procedures ------------------------------------------------------------------------------ */

static struct {
  char name[LVD_TASK_NAME];
  void (*function)(void *);
} functions[LVD_FAR_PROCEDURES];

static void (*function_of(const char *name))(void *) {
  for (int i = 0; i < LVD_FAR_PROCEDURES; i++)
    if (functions[i].function && strcmp(functions[i].name, name) == 0) return functions[i].function;
  return NULL;
}

lvd_status pb_register(const char *name, void *function) {
  size_t length = name ? strlen(name) : 0;
  if (!length || length >= LVD_TASK_NAME || !function) return LVD_E_ARGUMENT;
  void (*has_it)(void *) = function_of(name);
  if (has_it) return has_it == __extension__(void (*)(void *)) function ? LVD_OK : LVD_E_STATE;
  for (int i = 0; i < LVD_FAR_PROCEDURES; i++) {
    if (functions[i].function) continue;
    memcpy(functions[i].name, name, length + 1);
    functions[i].function = __extension__(void (*)(void *)) function;
    return LVD_OK;
  }
  return LVD_E_LIMIT;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static struct signal {
  uint32_t number, data;
  bool used, set;
} signals[LVD_FAR_TASKS];

static struct signal *signal_of(const lvd_task_message *m) {
  struct signal *unused = NULL;
  for (int i = 0; i < LVD_FAR_TASKS; i++) {
    struct signal *s = &signals[i];
    if (s->used && s->number == m->number) return s;
    if (!s->used) unused = s;
  }
  if (unused) *unused = (struct signal){m->number, 0, true, false};
  return unused;
}

static lvd_status message_in(const lvd_frame *f, lvd_task_message *m) {
  if (f->argument_size != sizeof *m) return LVD_E_STATE;
  memcpy(m, f->argument, sizeof *m);
  m->name[sizeof m->name - 1] = 0;
  return LVD_OK;
}

static lvd_status knows(lvd_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  return status != LVD_OK ? status : function_of(m.name) ? LVD_OK : LVD_E_UNKNOWN;
}

static lvd_status run(lvd_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  void (*function)(void *) = status == LVD_OK ? function_of(m.name) : NULL;
  if (!function) return status == LVD_OK ? LVD_E_UNKNOWN : status;
  memcpy(lvd_far_self->record.name, m.name, sizeof m.name); /* for reports */
  lvd_far->watch(m.name);
  function(NULL);
  return LVD_OK;
}

static lvd_status take_signal(lvd_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  struct signal *s = status == LVD_OK ? signal_of(&m) : NULL;
  if (!s) return status == LVD_OK ? LVD_E_LIMIT : status;
  if (s->set) return LVD_E_STATE;
  s->data = m.data;
  s->set = true;
  return LVD_OK;
}

static lvd_status release(lvd_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  for (int i = 0; i < LVD_FAR_TASKS && status == LVD_OK; i++)
    if (signals[i].number == m.number) signals[i].used = false;
  return status;
}

lvd_status pb_return(void) {
  if (!lvd_far_self || lvd_far_self->procedure != run) return LVD_E_STATE;
  lvd_far_end(lvd_far_self, LVD_OK);
}

static bool is_set(void *of) { return ((struct signal *)of)->set; }

lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns) {
  lvd_task_message m;
  if (!lvd_far_self || message_in(&lvd_far_self->frame, &m) != LVD_OK) return LVD_E_STATE;
  struct signal *s = signal_of(&m);
  if (!s) return LVD_E_LIMIT;
  lvd_status status = lvd_far_wait(is_set, s, timeout_ns);
  if (status != LVD_OK) return status;
  if (data) *data = s->data;
  s->set = false;
  return LVD_OK;
}

__attribute__((constructor)) static void register_these(void) {
  lvd_procedure_register("srpc.knows", knows);
  lvd_procedure_register("srpc.run", run);
  lvd_procedure_register("srpc.signal", take_signal);
  lvd_procedure_register("srpc.release", release);
}

/* ---- streams by number ----------------------------------------------------------------------- */

typedef struct numbered {
  bool used;
  STREAM_ID id;
  far_task *owner;
  lvd_stream *stream; /* from the first element on */
  uint32_t capacity, threshold;
  int64_t time_limit_ns;
} numbered;

static numbered numbers[NUMBERS];

/* The caller's. */
static numbered *find(STREAM_ID id) {
  for (int i = 0; i < NUMBERS; i++)
    if (numbers[i].used && numbers[i].id == id && numbers[i].owner == lvd_far_self)
      return &numbers[i];
  return NULL;
}

lvd_status stream_create(STREAM_ID id) {
  if (id < 0 || id >= PB_STREAMS) return LVD_E_ARGUMENT;
  if (find(id)) return LVD_E_STATE;
  for (int i = 0; i < NUMBERS; i++) {
    if (numbers[i].used) continue;
    numbers[i] = (numbered){.used = true, .id = id, .owner = lvd_far_self};
    return LVD_OK;
  }
  return LVD_E_LIMIT;
}

lvd_status stream_configure(STREAM_ID id, u32 capacity, u32 threshold) {
  numbered *n = find(id);
  if (!n || n->stream) return LVD_E_STATE;
  if (capacity > LVD_CHANNEL_CAPACITY || threshold > LVD_CHANNEL_CAPACITY) return LVD_E_ARGUMENT;
  n->capacity = capacity;
  n->threshold = threshold;
  return LVD_OK;
}

lvd_status stream_time_limit(STREAM_ID id, int64_t timeout_ns) {
  numbered *n = find(id);
  if (!n) return LVD_E_STATE;
  n->time_limit_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (n->stream) n->stream->time_limit_ns = timeout_ns;
  return LVD_OK;
}

/* "number 17", which is what the host calls it. */
static void name_of(STREAM_ID id, char name[32]) {
  char digit[12];
  int digits = 0;
  do digit[digits++] = (char)('0' + id % 10);
  while (id /= 10);
  memcpy(name, "number ", 7);
  for (int i = 0; i < digits; i++) name[7 + i] = digit[digits - 1 - i];
  name[7 + digits] = 0;
}

static lvd_status stream_of(numbered *n, size_t size, lvd_stream **out) {
  if (!n) return LVD_E_STATE;
  if (!n->stream) {
    char name[32];
    name_of(n->id, name);
    const lvd_stream_options o = {.name = name,
                                  .elem_size = (uint32_t)size,
                                  .capacity = n->capacity,
                                  .threshold = n->threshold,
                                  .time_limit_ns = n->time_limit_ns};
    lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &n->stream);
    if (status != LVD_OK) return status;
  }
  *out = n->stream;
  return LVD_OK;
}

lvd_status srpc_put(STREAM_ID id, const void *element, size_t size) {
  lvd_stream *s;
  lvd_status status = stream_of(find(id), size, &s);
  return status == LVD_OK ? lvd_stream_put(s, element, size) : status;
}

lvd_status srpc_get(STREAM_ID id, void *element, size_t size) {
  lvd_stream *s;
  lvd_status status = stream_of(find(id), size, &s);
  return status == LVD_OK ? lvd_stream_get(s, element, size) : status;
}

lvd_status stream_push(STREAM_ID id) {
  numbered *n = find(id);
  if (!n || !n->stream || !lvd_stream_is_mine(n->stream, true)) return LVD_E_STATE;
  lvd_stream_push(n->stream);
  return LVD_OK;
}

lvd_status stream_pop(STREAM_ID id) {
  numbered *n = find(id);
  if (!n || !n->stream || !lvd_stream_is_mine(n->stream, false)) return LVD_E_STATE;
  lvd_stream_pop(n->stream);
  return LVD_OK;
}

lvd_status stream_flush(STREAM_ID id) {
  numbered *n = find(id);
  if (!n || !n->stream || !lvd_stream_is_mine(n->stream, true)) return LVD_E_STATE;
  lvd_stream_flush(n->stream);
  return LVD_OK;
}

lvd_stream *stream_handle(STREAM_ID id) {
  numbered *n = find(id);
  return n ? n->stream : NULL;
}

static void leave(numbered *n) {
  lvd_stream *s = n->stream;
  /* One that was never used is left by its name. */
  if (s || stream_of(n, 1, &s) == LVD_OK) lvd_stream_destroy(s);
  n->used = false;
}

lvd_status stream_close(STREAM_ID id) {
  numbered *n = find(id);
  if (!n) return LVD_E_STATE;
  leave(n);
  return LVD_OK;
}

void lvd_far_task_ends(far_task *t) {
  for (int i = 0; i < NUMBERS; i++)
    if (numbers[i].used && numbers[i].owner == t) leave(&numbers[i]);
  lvd_far_leave_streams(t);
}
