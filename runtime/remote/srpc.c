/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The SRPC interface behind a window: procedures that pb_create finds, numbered streams,
 * signals. The host's requests are calls of the procedures below (src/srpc/srpc_remote_tasks.c). */
#include "remote.h"

#include <string.h>

#include "../src/core/closest_name.h"
#include "../src/ipc/task_message.h"

enum { STREAMS_MAX = 32, MISUSE_MESSAGES = 16 /* misuse messages that are sent */ };

/* ---- misuse ---------------------------------------------------------------------------------- */

static bool diagnostics = true;

void pb_set_diagnostics(bool on) { diagnostics = on; }

typedef struct text {
  lvd_record record;
  size_t length;
} text;

static void add(text *t, const char *more) {
  size_t n = strlen(more), room = sizeof t->record.data - 1 - t->length;
  if (n > room) n = room;
  memcpy(t->record.data + t->length, more, n);
  t->length += n;
}

static void add_number(text *t, uint32_t number) {
  char digits[12], *at = digits + sizeof digits - 1;
  *at = 0;
  do *--at = (char)('0' + number % 10);
  while (number /= 10);
  add(t, at);
}

/* Each message is sent once. Messages with equal hashes are taken as equal. */
static bool is_new(const text *t) {
  static uint32_t reported[MISUSE_MESSAGES], count;
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < t->length; i++) hash = (hash ^ t->record.data[i]) * 16777619u;
  for (uint32_t i = 0; i < count; i++)
    if (reported[i] == hash) return false;
  if (count == MISUSE_MESSAGES) return false;
  reported[count++] = hash;
  return true;
}

/* Sends "call(id) in procedure: why", which the host prints (src/srpc/srpc_misuse.h). Returns
 * `status`. */
static lvd_status misuse(lvd_status status, const char *call, STREAM_ID id, const char *why) {
  if (!diagnostics || !lvd_remote_self) return status;
  text t = {.record = {.kind = LVD_RECORD_MISUSE, .status = (uint32_t)status}};
  add(&t, call);
  add(&t, id < 0 ? "(-" : "(");
  add_number(&t, id < 0 ? 0u - (uint32_t)id : (uint32_t)id);
  add(&t, ") in ");
  add(&t, lvd_remote_self->record.name);
  add(&t, ": ");
  add(&t, why);
  t.record.size = (uint32_t)t.length;
  if (is_new(&t)) lvd_remote_send(&t.record);
  return status;
}

/* ---- procedures ------------------------------------------------------------------------------ */

static struct {
  char name[LVD_TASK_NAME_BYTES];
  void (*function)(void *);
} functions[LVD_REMOTE_PROCEDURES];

static void (*function_of(const char *name))(void *) {
  for (int i = 0; i < LVD_REMOTE_PROCEDURES; i++)
    if (functions[i].function && strcmp(functions[i].name, name) == 0) return functions[i].function;
  return NULL;
}

lvd_status pb_register(const char *name, void *function) {
  size_t length = name ? strlen(name) : 0;
  if (!length || length >= LVD_TASK_NAME_BYTES || !function) return LVD_E_ARGUMENT;
  void (*has_it)(void *) = function_of(name);
  if (has_it) return has_it == __extension__(void (*)(void *)) function ? LVD_OK : LVD_E_STATE;
  for (int i = 0; i < LVD_REMOTE_PROCEDURES; i++) {
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
} signals[LVD_REMOTE_TASKS];

static struct signal *signal_of(const lvd_task_message *m) {
  struct signal *unused = NULL;
  for (int i = 0; i < LVD_REMOTE_TASKS; i++) {
    struct signal *s = &signals[i];
    if (s->used && s->number == m->number) return s;
    if (!s->used) unused = s;
  }
  if (unused) *unused = (struct signal){m->number, 0, true, false};
  return unused;
}

static lvd_status message_in(const lvd_call_frame *f, lvd_task_message *m) {
  if (f->argument_size != sizeof *m) return LVD_E_STATE;
  memcpy(m, f->argument, sizeof *m);
  m->name[sizeof m->name - 1] = 0;
  return LVD_OK;
}

static lvd_status find_procedure(lvd_call_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  if (status != LVD_OK || function_of(m.name)) return status;
  char near[LVD_TASK_NAME_BYTES] = "";
  for (int i = 0; i < LVD_REMOTE_PROCEDURES; i++)
    if (functions[i].function) lvd_closest_name(near, m.name, functions[i].name);
  if (*near && f->result_room >= sizeof near) {
    memcpy(f->result, near, sizeof near);
    f->result_size = sizeof near;
  }
  return LVD_E_NOT_FOUND;
}

static lvd_status run(lvd_call_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  void (*function)(void *) = status == LVD_OK ? function_of(m.name) : NULL;
  if (!function) return status == LVD_OK ? LVD_E_NOT_FOUND : status;
  memcpy(lvd_remote_self->record.name, m.name, sizeof m.name); /* for fault reports */
  lvd_remote_board->watch(m.name);
  function(NULL);
  return LVD_OK;
}

static lvd_status take_signal(lvd_call_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  struct signal *s = status == LVD_OK ? signal_of(&m) : NULL;
  if (!s) return status == LVD_OK ? LVD_E_LIMIT : status;
  if (s->set) return LVD_E_STATE;
  s->data = m.data;
  s->set = true;
  return LVD_OK;
}

static lvd_status release(lvd_call_frame *f) {
  lvd_task_message m;
  lvd_status status = message_in(f, &m);
  for (int i = 0; i < LVD_REMOTE_TASKS && status == LVD_OK; i++)
    if (signals[i].number == m.number) signals[i].used = false;
  return status;
}

lvd_status pb_return(void) {
  if (!lvd_remote_self || lvd_remote_self->procedure != run) return LVD_E_STATE;
  lvd_remote_task_end(lvd_remote_self, LVD_OK);
}

static bool is_set(void *of) { return ((struct signal *)of)->set; }

lvd_status pb_wait_signal(u32 *data, int64_t timeout_ns) {
  lvd_task_message m;
  if (!lvd_remote_self || message_in(&lvd_remote_self->frame, &m) != LVD_OK) return LVD_E_STATE;
  struct signal *s = signal_of(&m);
  if (!s) return LVD_E_LIMIT;
  lvd_status status = lvd_remote_wait(is_set, s, timeout_ns);
  if (status != LVD_OK) return status;
  if (data) *data = s->data;
  s->set = false;
  return LVD_OK;
}

__attribute__((constructor)) static void register_these(void) {
  lvd_procedure_register("srpc.knows", find_procedure);
  lvd_procedure_register("srpc.run", run);
  lvd_procedure_register("srpc.signal", take_signal);
  lvd_procedure_register("srpc.release", release);
}

/* ---- numbered streams ------------------------------------------------------------------------ */

typedef struct numbered_stream {
  bool used;
  STREAM_ID id;
  remote_task *owner;
  lvd_stream *stream; /* opened with the first element */
  uint32_t capacity, threshold;
  int64_t timeout_ns;
} numbered_stream;

static numbered_stream streams[STREAMS_MAX];

/* The caller's stream. */
static numbered_stream *find(STREAM_ID id) {
  for (int i = 0; i < STREAMS_MAX; i++)
    if (streams[i].used && streams[i].id == id && streams[i].owner == lvd_remote_self)
      return &streams[i];
  return NULL;
}

static const char no_number[] = "streams have the numbers 0 to 1023",
                  not_created[] =
                      "the caller has not created this stream; stream_create comes first";
_Static_assert(PB_STREAMS == 1024, "as it is said");

/* Reports that the caller has not created it. */
static lvd_status report_unknown(const char *call, STREAM_ID id) {
  if (id < 0 || id >= PB_STREAMS) return misuse(LVD_E_ARGUMENT, call, id, no_number);
  return misuse(LVD_E_STATE, call, id, not_created);
}

lvd_status stream_create(STREAM_ID id) {
  if (id < 0 || id >= PB_STREAMS) return misuse(LVD_E_ARGUMENT, "stream_create", id, no_number);
  if (find(id))
    return misuse(LVD_E_STATE, "stream_create", id, "the caller has created it already");
  for (int i = 0; i < STREAMS_MAX; i++) {
    if (streams[i].used) continue;
    streams[i] = (numbered_stream){.used = true, .id = id, .owner = lvd_remote_self};
    return LVD_OK;
  }
  return misuse(LVD_E_LIMIT, "stream_create", id, "there are too many streams on this processor");
}

lvd_status stream_configure(STREAM_ID id, u32 capacity, u32 threshold) {
  numbered_stream *n = find(id);
  if (!n) return report_unknown("stream_configure", id);
  if (n->stream)
    return misuse(LVD_E_STATE, "stream_configure", id,
                  "this comes before the first element is put or got");
  if (capacity > LVD_CHANNEL_CAPACITY || threshold > LVD_CHANNEL_CAPACITY)
    return misuse(LVD_E_ARGUMENT, "stream_configure", id,
                  "a capacity and a threshold are at most LVD_CHANNEL_CAPACITY");
  n->capacity = capacity;
  n->threshold = threshold;
  return LVD_OK;
}

lvd_status stream_set_timeout(STREAM_ID id, int64_t timeout_ns) {
  numbered_stream *n = find(id);
  if (!n) return report_unknown("stream_set_timeout", id);
  n->timeout_ns = timeout_ns < 0 ? 0 : timeout_ns ? timeout_ns : 1;
  if (n->stream) n->stream->timeout_ns = timeout_ns;
  return LVD_OK;
}

/* "number 17", the name of the stream at the host. */
static void name_of(STREAM_ID id, char name[32]) {
  char digit[12];
  int digits = 0;
  do digit[digits++] = (char)('0' + id % 10);
  while (id /= 10);
  memcpy(name, "number ", 7);
  for (int i = 0; i < digits; i++) name[7 + i] = digit[digits - 1 - i];
  name[7 + digits] = 0;
}

static lvd_status stream_of(numbered_stream *n, size_t size, lvd_stream **out) {
  if (!n->stream) {
    char name[32];
    name_of(n->id, name);
    const lvd_stream_options o = {.name = name,
                                  .elem_size = (uint32_t)size,
                                  .capacity = n->capacity,
                                  .threshold = n->threshold,
                                  .timeout_ns = n->timeout_ns};
    lvd_status status = lvd_stream_open(lvd_unit_parent(), &o, &n->stream);
    if (status != LVD_OK) return status;
  }
  *out = n->stream;
  return LVD_OK;
}

/* Reports misuse that put and get have found. */
static lvd_status report_misuse(const char *call, STREAM_ID id, lvd_status status) {
  if (status == LVD_E_STATE)
    return misuse(status, call, id, "one side of a stream puts, the other gets; or it was closed");
  if (status == LVD_E_ARGUMENT)
    return misuse(status, call, id,
                  "an element of another size than the first that was put or got here or on the "
                  "other side: both sides need one type");
  if (status == LVD_E_LIMIT)
    return misuse(status, call, id, "there are too many streams on this processor");
  return status;
}

lvd_status srpc_put(STREAM_ID id, const void *element, size_t size) {
  numbered_stream *n = find(id);
  lvd_stream *s;
  if (!n) return report_unknown("stream_put", id);
  lvd_status status = stream_of(n, size, &s);
  if (status == LVD_OK) status = lvd_stream_put(s, element, size);
  return status == LVD_OK ? LVD_OK : report_misuse("stream_put", id, status);
}

lvd_status srpc_get(STREAM_ID id, void *element, size_t size) {
  numbered_stream *n = find(id);
  lvd_stream *s;
  if (!n) return report_unknown("stream_get", id);
  lvd_status status = stream_of(n, size, &s);
  if (status == LVD_OK) status = lvd_stream_get(s, element, size);
  return status == LVD_OK ? LVD_OK : report_misuse("stream_get", id, status);
}

/* The stream, if the caller has that end; null: it has not used the stream yet, or uses its other
 * end. */
static lvd_stream *own_end(const char *call, STREAM_ID id, bool sender) {
  numbered_stream *n = find(id);
  if (n && n->stream && lvd_stream_is_owner(n->stream, sender)) return n->stream;
  if (!n)
    report_unknown(call, id);
  else if (n->stream && lvd_stream_is_owner(n->stream, !sender))
    report_misuse(call, id, LVD_E_STATE);
  return NULL;
}

lvd_status stream_push(STREAM_ID id) {
  lvd_stream *s = own_end("stream_push", id, true);
  if (s) lvd_stream_push(s);
  return s ? LVD_OK : LVD_E_STATE;
}

lvd_status stream_pop(STREAM_ID id) {
  lvd_stream *s = own_end("stream_pop", id, false);
  if (s) lvd_stream_pop(s);
  return s ? LVD_OK : LVD_E_STATE;
}

lvd_status stream_flush(STREAM_ID id) {
  lvd_stream *s = own_end("stream_flush", id, true);
  if (s) lvd_stream_flush(s);
  return s ? LVD_OK : LVD_E_STATE;
}

lvd_stream *stream_handle(STREAM_ID id) {
  numbered_stream *n = find(id);
  return n ? n->stream : NULL;
}

static void leave(numbered_stream *n) {
  lvd_stream *s = n->stream;
  /* A stream that was never used is left by its name. */
  if (s || stream_of(n, 1, &s) == LVD_OK) lvd_stream_destroy(s);
  n->used = false;
}

lvd_status stream_close(STREAM_ID id) {
  numbered_stream *n = find(id);
  if (!n) return report_unknown("stream_close", id);
  leave(n);
  return LVD_OK;
}

void lvd_remote_task_cleanup(remote_task *t, lvd_status status) {
  if (status != LVD_OK) lvd_remote_end_streams(t, status);
  for (int i = 0; i < STREAMS_MAX; i++)
    if (streams[i].used && streams[i].owner == t) leave(&streams[i]);
  lvd_remote_close_streams(t);
}
