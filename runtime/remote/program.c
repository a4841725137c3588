/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A program behind a window: the loop, its tasks, and the records from and to the host. */
#include "remote.h"

#include <string.h>

enum {
  PENDING = 64,
  LOOK_NS = 20000, /* around, before it sleeps: as the host does */
  LOOKS = 50       /* of a task that is alone, before the loop looks around */
};

const lvd_far_board *lvd_far;
far_task *lvd_far_self;
bool lvd_far_arms;

static far_task task[LVD_FAR_TASKS];
static uint32_t tasks; /* that are used */
static lvd_os_context loop;
static lvd_segment *segment;
static uint64_t segment_size, unit;
const lvd_caches *lvd_far_caches;
static lvd_producer out;
static lvd_consumer in;
static lvd_record pending[PENDING]; /* calls for which there was no task yet */
static uint32_t pendings;

static struct {
  char name[LVD_FAR_NAME];
  lvd_procedure *procedure;
} procedures[LVD_FAR_PROCEDURES];

/* ---- procedures ------------------------------------------------------------------------------ */

lvd_procedure *lvd_procedure_find(const char *name) {
  for (int i = 0; i < LVD_FAR_PROCEDURES; i++)
    if (procedures[i].procedure && strcmp(procedures[i].name, name) == 0)
      return procedures[i].procedure;
  return NULL;
}

lvd_status lvd_procedure_register(const char *name, lvd_procedure *procedure) {
  size_t length = name ? strlen(name) : 0;
  if (!length || length >= LVD_FAR_NAME) return LVD_E_ARGUMENT;
  lvd_procedure *known = lvd_procedure_find(name);
  if (known) return known == procedure ? LVD_OK : LVD_E_STATE;
  for (int i = 0; i < LVD_FAR_PROCEDURES; i++) {
    if (procedures[i].procedure) continue;
    memcpy(procedures[i].name, name, length + 1);
    procedures[i].procedure = procedure;
    return LVD_OK;
  }
  return LVD_E_LIMIT;
}

/* ---- the bell -------------------------------------------------------------------------------- */

/* Each time: a word that says that it has been rung already would take an exchange on both sides. */
static bool ring(lvd_waiter *self) {
  (void)self;
  lvd_far->ring();
  return true;
}

static lvd_waiter bell = {ring}, *bells = &bell;

lvd_waiter *lvd_far_bell(void) { return &bell; }

/* ---- memory ---------------------------------------------------------------------------------- */

unsigned char *lvd_far_at(uint64_t offset) { return (unsigned char *)segment + offset; }
uint64_t lvd_far_room(uint64_t offset) { return offset < segment_size ? segment_size - offset : 0; }

static lvd_status join(void) {
  lvd_window_shape shape;
  if (lvd_window_read(lvd_far->window, lvd_far->size, &shape)) return LVD_E_CORRUPT;
  segment = (lvd_segment *)(void *)((unsigned char *)lvd_far->window + shape.segment);
  segment_size = shape.segment_size;
  lvd_cache_drop(segment, sizeof *segment);
  unit = segment->unit;
  if (segment->magic != LVD_SEGMENT_MAGIC || segment->size > segment_size || unit == 0 ||
      unit % LVD_LINE || unit > segment_size)
    return LVD_E_CORRUPT;
  if (segment->layout != LVD_LAYOUT || segment->line != LVD_LINE) return LVD_E_LAYOUT;
  uint64_t slots = 1;
  while (slots < LVD_RECORDS || slots * sizeof(lvd_record) % unit) slots *= 2;
  uint64_t ring_size = slots * sizeof(lvd_record), each = unit + ring_size;
  if (segment_size < unit + 2 * each) return LVD_E_CORRUPT;
  /* The host has mapped a ring twice, and says so; here it is there once. */
  lvd_channel *to_child = (lvd_channel *)(void *)lvd_far_at(unit),
              *to_parent = (lvd_channel *)(void *)lvd_far_at(unit + each);
  size_t size = (size_t)(unit + 2 * ring_size);
  lvd_cache_drop(to_child, sizeof *to_child);
  lvd_cache_drop(to_parent, sizeof *to_parent);
  lvd_status status = lvd_producer_attach_shared(&out, to_parent, size, sizeof(lvd_record), &bells);
  if (status == LVD_OK)
    status = lvd_consumer_attach_shared(&in, to_child, size, sizeof(lvd_record), 0, &bell);
  return status;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static size_t aligned(size_t size) { return (size + 15) & ~(size_t)15; }

static bool has_room(void *of) {
  (void)of;
  if (lvd_room(&out, 1) >= 1) return true;
  return lvd_far_arms && lvd_producer_arm(&out, 1);
}

/* There is room. */
static void put(const lvd_record *r) {
  memcpy(lvd_put_span(&out), r, sizeof *r);
  lvd_put_done(&out, 1);
  lvd_push(&out);
}

lvd_status lvd_far_send(const lvd_record *r) {
  /* What a task owes the host it sends even when it has been cancelled. */
  while (!has_room(NULL)) lvd_far_wait(has_room, NULL, -1);
  put(r);
  return LVD_OK;
}

lvd_status lvd_far_wait(bool (*ready)(void *of), void *of, int64_t timeout_ns) {
  far_task *t = lvd_far_self;
  if (ready(of)) return LVD_OK;
  if (timeout_ns == 0) return LVD_E_TIME;
  for (int i = 0; i < LOOKS && tasks == 1; i++)
    if (ready(of)) return LVD_OK;
  if (t->cancelled && ready != has_room) return LVD_E_CANCELLED;
  t->until_ns = timeout_ns < 0 ? 0 : lvd_far->now_ns() + (uint64_t)timeout_ns;
  t->ready = ready;
  t->of = of;
  lvd_os_context_switch(&t->context, &loop, false);
  t->ready = NULL;
  if (ready(of)) return LVD_OK;
  return t->cancelled ? LVD_E_CANCELLED : LVD_E_TIME;
}

void lvd_far_end(far_task *t, lvd_status status) {
  lvd_far_task_ends(t, status);
  lvd_record r = {.kind = LVD_RECORD_ANSWER, .number = t->record.number};
  size_t size = t->frame.result_size;
  if (size > t->frame.result_room) {
    r.extent = size;
    size = 0;
  }
  r.status = (uint32_t)status;
  r.size = (uint32_t)size;
  if (!t->record.offset && size) memcpy(r.data, t->result, size);
  /* All of it, also what the host does not look at: nothing is left to be written back later. */
  if (t->record.offset) lvd_cache_clean(t->frame.result, t->frame.result_room);
  lvd_far_send(&r);
  t->used = false;
  tasks--;
  lvd_os_context_switch(&t->context, &loop, true);
  __builtin_unreachable();
}

static void run_task(void *argument) {
  far_task *t = argument;
  lvd_far_end(t, t->procedure(&t->frame));
}

static far_task *free_task(void) {
  for (int i = 0; i < LVD_FAR_TASKS; i++)
    if (!task[i].used) return &task[i];
  return NULL;
}

/* The host is believed, as far as the memory reaches. */
static lvd_status judge(const lvd_record *r) {
  uint64_t need = r->offset ? aligned(r->size) + r->room : 0;
  if (!r->offset && (r->size > LVD_RECORD_INLINE || r->room > LVD_RECORD_INLINE))
    return LVD_E_ARGUMENT;
  if (need > lvd_far_room(r->offset)) return LVD_E_CORRUPT;
  return lvd_procedure_find(r->name) ? LVD_OK : LVD_E_UNKNOWN;
}

/* False: there is no task for it now. */
static bool begin(const lvd_record *r) {
  lvd_status status = judge(r);
  if (status != LVD_OK) {
    const lvd_record answer = {
        .kind = LVD_RECORD_ANSWER, .number = r->number, .status = (uint32_t)status};
    if (!has_room(NULL)) return false;
    put(&answer);
    return true;
  }
  far_task *t = free_task();
  if (!t) return false;
  t->used = true;
  tasks++;
  t->started = t->cancelled = false;
  t->ready = NULL;
  t->until_ns = 0;
  t->record = *r;
  t->procedure = lvd_procedure_find(r->name);
  memset(t->result, 0, sizeof t->result);
  t->frame = (lvd_frame){.argument = t->record.data,
                         .argument_size = r->size,
                         .result = t->result,
                         .result_room = r->room};
  if (r->offset) {
    t->frame.argument = lvd_far_at(r->offset);
    lvd_cache_drop(t->frame.argument, r->size);
    t->frame.result = lvd_far_at(r->offset + aligned(r->size));
    memset(t->frame.result, 0, r->room);
  }
  lvd_os_context_make(&t->context, t->stack, sizeof t->stack, run_task, t);
  return true;
}

static void cancel(uint32_t number) {
  for (int i = 0; i < LVD_FAR_TASKS; i++)
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
    if (pendings || !begin(&r)) pending[pendings++] = r;
    break;
  case LVD_RECORD_CANCEL:
    cancel(r.number);
    break;
  case LVD_RECORD_OPENED:
    lvd_far_opened(&r);
    break;
  default: /* questions about who waits in vain: there is hope of us */
    break;
  }
  return true;
}

static bool begin_pending(void) {
  uint32_t begun = 0;
  while (begun < pendings && begin(&pending[begun])) begun++;
  memmove(pending, pending + begun, (pendings - begun) * sizeof *pending);
  pendings -= begun;
  return begun;
}

static bool may_go_on(const far_task *t, uint64_t now) {
  if (!t->used) return false;
  if (!t->ready || t->ready(t->of)) return true;
  return (t->cancelled && t->ready != has_room) || (t->until_ns && now >= t->until_ns);
}

static bool any_may_go_on(void) {
  bool any = false;
  for (int i = 0; i < LVD_FAR_TASKS; i++) any |= may_go_on(&task[i], 0);
  return any;
}

static bool run_tasks(void) {
  bool any = false;
  for (int i = 0; i < LVD_FAR_TASKS; i++) {
    far_task *t = &task[i];
    if (!may_go_on(t, t->until_ns ? lvd_far->now_ns() : 0)) continue;
    any = true;
    lvd_far_self = t;
    lvd_far->watch(t->record.name);
    lvd_os_context_switch(&loop, &t->context, false);
    lvd_far->watch(NULL);
    lvd_far_self = NULL;
  }
  return any;
}

static uint64_t first_limit(void) {
  uint64_t first = 0;
  for (int i = 0; i < LVD_FAR_TASKS; i++)
    if (task[i].used && task[i].until_ns && (!first || task[i].until_ns < first))
      first = task[i].until_ns;
  return first;
}

lvd_status lvd_far_serve(const lvd_far_board *board) {
  if (board->version != LVD_FAR_VERSION) return LVD_E_LAYOUT;
  lvd_far = board;
  lvd_far_caches = board->caches;
  lvd_status status = join();
  if (status != LVD_OK) return status;
  lvd_os_context_of_thread(&loop);
  lvd_store_relaxed_u32(&segment->serves, 1 + LVD_LAYOUT);
  lvd_cache_clean(&segment->serves, LVD_LINE);
  lvd_far->ring();
  lvd_a32 *rung = &segment->bell[LVD_CHILD].rung;
  bool asked = false;
  uint64_t since = 0; /* there is nothing to do */
  for (;;) {
    lvd_store_relaxed_u32(rung, 0);
    lvd_cache_clean(rung, LVD_LINE);
    lvd_fence_seq_cst();
    bool more = begin_pending();
    for (uint32_t i = 0; i < LVD_RECORDS && take_record(); i++) more = true;
    more |= run_tasks();
    if (in.corrupt || out.corrupt) return LVD_E_CORRUPT;
    lvd_cache_drop(&segment->closing, LVD_LINE);
    if (lvd_load_relaxed_u32(&segment->closing)) {
      uint32_t left = pendings;
      for (int i = 0; i < LVD_FAR_TASKS; i++) {
        task[i].cancelled |= task[i].used;
        left += task[i].used;
      }
      if (!left) return LVD_OK;
      more |= !asked; /* those that have just been told */
      asked = true;
    }
    if (more) {
      since = 0;
      continue;
    }
    /* Who comes soon need not ring. */
    uint64_t now = lvd_far->now_ns();
    if (!since) since = now;
    if (now - since < LOOK_NS) continue;
    /* All arm; then each looks once more. */
    lvd_far_arms = true;
    bool ready = any_may_go_on();
    lvd_consumer_arm(&in, 1);
    lvd_fence_seq_cst();
    ready |= lvd_elements_refresh(&in) && pendings < PENDING;
    ready |= any_may_go_on();
    lvd_far_arms = false;
    if (!ready) lvd_far->sleep(first_limit());
    lvd_consumer_disarm(&in);
    since = 0;
  }
}
