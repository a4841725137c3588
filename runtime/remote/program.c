/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program behind a window: the scheduling loop, its tasks, and the records exchanged with the
 * host. */
#include "remote.h"

#include <string.h>

enum {
  PENDING = 64,
  IDLE_POLL_NS = 20000, /* the loop polls for that long before it sleeps, as the host does */
  LONE_TASK_POLLS = 50  /* polls by a task that is alone, before it returns to the loop */
};

const lvd_remote_hal *lvd_remote_board;
remote_task *lvd_remote_self;
bool lvd_remote_arming;

static remote_task task[LVD_REMOTE_TASKS];
static uint32_t tasks; /* number of used tasks */
static lvd_os_context loop;
static lvd_segment *segment;
static uint64_t segment_size, unit;
const lvd_caches *lvd_remote_caches;
static lvd_producer out;
static lvd_consumer in;
static lvd_record pending[PENDING]; /* calls that wait for a free task */
static uint32_t pendings;

static struct {
  char name[LVD_REMOTE_NAME_BYTES];
  lvd_procedure *procedure;
} procedures[LVD_REMOTE_PROCEDURES];

/* ---- procedures ------------------------------------------------------------------------------ */

lvd_procedure *lvd_procedure_find(const char *name) {
  for (int i = 0; i < LVD_REMOTE_PROCEDURES; i++)
    if (procedures[i].procedure && strcmp(procedures[i].name, name) == 0)
      return procedures[i].procedure;
  return NULL;
}

lvd_status lvd_procedure_register(const char *name, lvd_procedure *procedure) {
  size_t length = name ? strlen(name) : 0;
  if (!length || length >= LVD_REMOTE_NAME_BYTES) return LVD_E_ARGUMENT;
  lvd_procedure *known = lvd_procedure_find(name);
  if (known) return known == procedure ? LVD_OK : LVD_E_STATE;
  for (int i = 0; i < LVD_REMOTE_PROCEDURES; i++) {
    if (procedures[i].procedure) continue;
    memcpy(procedures[i].name, name, length + 1);
    procedures[i].procedure = procedure;
    return LVD_OK;
  }
  return LVD_E_LIMIT;
}

/* ---- the doorbell ---------------------------------------------------------------------------- */

/* Signals every time: remembering that a signal is pending would need an atomic exchange on both
 * sides. */
static bool ring(lvd_waiter *self) {
  (void)self;
  lvd_remote_board->ring();
  return true;
}

static lvd_waiter doorbell = {ring}, *doorbells = &doorbell;

lvd_waiter *lvd_remote_doorbell(void) { return &doorbell; }

/* ---- memory ---------------------------------------------------------------------------------- */

unsigned char *lvd_remote_at(uint64_t offset) { return (unsigned char *)segment + offset; }
uint64_t lvd_remote_room(uint64_t offset) {
  return offset < segment_size ? segment_size - offset : 0;
}

static lvd_status join(void) {
  lvd_window_shape shape;
  if (lvd_window_read(lvd_remote_board->window, lvd_remote_board->size, &shape))
    return LVD_E_CORRUPT;
  segment = (lvd_segment *)(void *)((unsigned char *)lvd_remote_board->window + shape.segment);
  segment_size = shape.segment_size;
  lvd_cache_invalidate(segment, sizeof *segment);
  unit = segment->unit;
  if (segment->magic != LVD_SEGMENT_MAGIC || segment->size > segment_size || unit == 0 ||
      unit % LVD_CACHE_LINE || unit > segment_size)
    return LVD_E_CORRUPT;
  if (segment->abi_version != LVD_ABI_VERSION || segment->line != LVD_CACHE_LINE) return LVD_E_ABI;
  uint64_t slots = 1;
  while (slots < LVD_RECORDS_PER_RING || slots * sizeof(lvd_record) % unit) slots *= 2;
  uint64_t ring_size = slots * sizeof(lvd_record), each = unit + ring_size;
  if (segment_size < unit + 2 * each) return LVD_E_CORRUPT;
  /* Sizes are those of the host, which maps a ring twice; here it is mapped once. */
  lvd_channel *to_child = (lvd_channel *)(void *)lvd_remote_at(unit),
              *to_parent = (lvd_channel *)(void *)lvd_remote_at(unit + each);
  size_t size = (size_t)(unit + 2 * ring_size);
  lvd_cache_invalidate(to_child, sizeof *to_child);
  lvd_cache_invalidate(to_parent, sizeof *to_parent);
  lvd_status status =
      lvd_producer_attach_shared(&out, to_parent, size, sizeof(lvd_record), &doorbells);
  if (status == LVD_OK)
    status = lvd_consumer_attach_shared(&in, to_child, size, sizeof(lvd_record), 0, &doorbell);
  return status;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static size_t aligned(size_t size) { return (size + 15) & ~(size_t)15; }

static bool has_room(void *of) {
  (void)of;
  if (lvd_room(&out, 1) >= 1) return true;
  return lvd_remote_arming && lvd_producer_arm(&out, 1);
}

/* There is room. */
static void put(const lvd_record *r) {
  memcpy(lvd_put_span(&out), r, sizeof *r);
  lvd_put_done(&out, 1);
  lvd_push(&out);
}

lvd_status lvd_remote_send(const lvd_record *r) {
  /* A task sends its reply even if it has been cancelled. */
  while (!has_room(NULL)) lvd_remote_wait(has_room, NULL, -1);
  put(r);
  return LVD_OK;
}

lvd_status lvd_remote_wait(bool (*ready)(void *of), void *of, int64_t timeout_ns) {
  remote_task *t = lvd_remote_self;
  if (ready(of)) return LVD_OK;
  if (timeout_ns == 0) return LVD_E_TIMEOUT;
  for (int i = 0; i < LONE_TASK_POLLS && tasks == 1; i++)
    if (ready(of)) return LVD_OK;
  if (t->cancelled && ready != has_room) return LVD_E_CANCELLED;
  t->until_ns = timeout_ns < 0 ? 0 : lvd_remote_board->now_ns() + (uint64_t)timeout_ns;
  t->ready = ready;
  t->of = of;
  lvd_os_context_switch(&t->context, &loop, false);
  t->ready = NULL;
  if (ready(of)) return LVD_OK;
  return t->cancelled ? LVD_E_CANCELLED : LVD_E_TIMEOUT;
}

void lvd_remote_task_end(remote_task *t, lvd_status status) {
  lvd_remote_task_cleanup(t, status);
  lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = t->record.number};
  size_t size = t->frame.result_size;
  if (size > t->frame.result_room) {
    r.extent = size;
    size = 0;
  }
  r.status = (uint32_t)status;
  r.size = (uint32_t)size;
  if (!t->record.offset && size) memcpy(r.data, t->result, size);
  /* The whole range, also what the host does not read, so that no cached line is written back
   * later. */
  if (t->record.offset) lvd_cache_clean(t->frame.result, t->frame.result_room);
  lvd_remote_send(&r);
  t->used = false;
  tasks--;
  lvd_os_context_switch(&t->context, &loop, true);
  __builtin_unreachable();
}

static void run_task(void *argument) {
  remote_task *t = argument;
  lvd_remote_task_end(t, t->procedure(&t->frame));
}

static remote_task *free_task(void) {
  for (int i = 0; i < LVD_REMOTE_TASKS; i++)
    if (!task[i].used) return &task[i];
  return NULL;
}

/* The host is trusted except for memory bounds. */
static lvd_status check_call(const lvd_record *r) {
  uint64_t need = r->offset ? aligned(r->size) + r->room : 0;
  if (!r->offset && (r->size > LVD_RECORD_INLINE_BYTES || r->room > LVD_RECORD_INLINE_BYTES))
    return LVD_E_ARGUMENT;
  if (need > lvd_remote_room(r->offset)) return LVD_E_CORRUPT;
  return lvd_procedure_find(r->name) ? LVD_OK : LVD_E_NOT_FOUND;
}

/* False: no task is free now. */
static bool start_call(const lvd_record *r) {
  lvd_status status = check_call(r);
  if (status != LVD_OK) {
    const lvd_record answer = {
        .kind = LVD_RECORD_ANSWER, .number = r->number, .status = (uint32_t)status};
    if (!has_room(NULL)) return false;
    put(&answer);
    return true;
  }
  remote_task *t = free_task();
  if (!t) return false;
  t->used = true;
  tasks++;
  t->started = t->cancelled = false;
  t->ready = NULL;
  t->until_ns = 0;
  t->record = *r;
  t->procedure = lvd_procedure_find(r->name);
  memset(t->result, 0, sizeof t->result);
  t->frame = (lvd_call_frame){.argument = t->record.data,
                              .argument_size = r->size,
                              .result = t->result,
                              .result_room = r->room};
  if (r->offset) {
    t->frame.argument = lvd_remote_at(r->offset);
    lvd_cache_invalidate(t->frame.argument, r->size);
    t->frame.result = lvd_remote_at(r->offset + aligned(r->size));
    memset(t->frame.result, 0, r->room);
  }
  lvd_os_context_make(&t->context, t->stack, sizeof t->stack, run_task, t);
  return true;
}

static void cancel(uint32_t number) {
  for (int i = 0; i < LVD_REMOTE_TASKS; i++)
    if (task[i].used && task[i].record.number == number) task[i].cancelled = true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static bool take_record(void) {
  if (pendings == PENDING || lvd_elements(&in, 1) < 1) return false;
  lvd_record r;
  memcpy(&r, lvd_get_span(&in), sizeof r);
  lvd_get_done(&in, 1);
  lvd_pop(&in);
  r.name[sizeof r.name - 1] = 0;
  switch (r.kind) {
  case LVD_RECORD_CALL:
    if (pendings || !start_call(&r)) pending[pendings++] = r;
    break;
  case LVD_RECORD_CANCEL:
    cancel(r.number);
    break;
  case LVD_RECORD_OPENED:
    lvd_remote_stream_opened(&r);
    break;
  default: /* deadlock probes: without a reply this side counts as live */
    break;
  }
  return true;
}

static bool start_pending(void) {
  uint32_t started = 0;
  while (started < pendings && start_call(&pending[started])) started++;
  memmove(pending, pending + started, (pendings - started) * sizeof *pending);
  pendings -= started;
  return started;
}

static bool can_proceed(const remote_task *t, uint64_t now) {
  if (!t->used) return false;
  if (!t->ready || t->ready(t->of)) return true;
  return (t->cancelled && t->ready != has_room) || (t->until_ns && now >= t->until_ns);
}

static bool any_can_proceed(void) {
  bool any = false;
  for (int i = 0; i < LVD_REMOTE_TASKS; i++) any |= can_proceed(&task[i], 0);
  return any;
}

static bool run_tasks(void) {
  bool any = false;
  for (int i = 0; i < LVD_REMOTE_TASKS; i++) {
    remote_task *t = &task[i];
    if (!can_proceed(t, t->until_ns ? lvd_remote_board->now_ns() : 0)) continue;
    any = true;
    lvd_remote_self = t;
    lvd_remote_board->watch(t->record.name);
    lvd_os_context_switch(&loop, &t->context, false);
    lvd_remote_board->watch(NULL);
    lvd_remote_self = NULL;
  }
  return any;
}

static uint64_t first_deadline(void) {
  uint64_t first = 0;
  for (int i = 0; i < LVD_REMOTE_TASKS; i++)
    if (task[i].used && task[i].until_ns && (!first || task[i].until_ns < first))
      first = task[i].until_ns;
  return first;
}

lvd_status lvd_remote_serve(const lvd_remote_hal *board) {
  if (board->version != LVD_REMOTE_VERSION) return LVD_E_ABI;
  lvd_remote_board = board;
  lvd_remote_caches = board->caches;
  lvd_status status = join();
  if (status != LVD_OK) return status;
  lvd_os_context_of_thread(&loop);
  lvd_store_relaxed_u32(&segment->serves, 1 + LVD_ABI_VERSION);
  lvd_cache_clean(&segment->serves, LVD_CACHE_LINE);
  lvd_remote_board->ring();
  lvd_a32 *rung = &segment->bell[LVD_CHILD].rung;
  bool cancelled_all = false;
  uint64_t idle_since = 0; /* when the loop became idle; 0: it is not */
  for (;;) {
    lvd_store_relaxed_u32(rung, 0);
    lvd_cache_clean(rung, LVD_CACHE_LINE);
    lvd_fence_seq_cst();
    bool more = start_pending();
    for (uint32_t i = 0; i < LVD_RECORDS_PER_RING && take_record(); i++) more = true;
    more |= run_tasks();
    if (in.corrupt || out.corrupt) return LVD_E_CORRUPT;
    lvd_cache_invalidate(&segment->closing, LVD_CACHE_LINE);
    if (lvd_load_relaxed_u32(&segment->closing)) {
      uint32_t left = pendings;
      for (int i = 0; i < LVD_REMOTE_TASKS; i++) {
        task[i].cancelled |= task[i].used;
        left += task[i].used;
      }
      if (!left) return LVD_OK;
      more |= !cancelled_all; /* tasks that have just been cancelled */
      cancelled_all = true;
    }
    if (more) {
      idle_since = 0;
      continue;
    }
    /* The host need not signal what it sends soon. */
    uint64_t now = lvd_remote_board->now_ns();
    if (!idle_since) idle_since = now;
    if (now - idle_since < IDLE_POLL_NS) continue;
    /* All conditions arm their wake marks, then each is polled once more. */
    lvd_remote_arming = true;
    bool ready = any_can_proceed();
    lvd_consumer_arm(&in, 1);
    lvd_fence_seq_cst();
    ready |= lvd_elements_refresh(&in) && pendings < PENDING;
    ready |= any_can_proceed();
    lvd_remote_arming = false;
    if (!ready) lvd_remote_board->sleep(first_deadline());
    lvd_consumer_disarm(&in);
    idle_since = 0;
  }
}
