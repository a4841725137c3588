/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Calls to another process: each is sent as a record, and answered by one.
 *
 * A number identifies the answer. What is larger than a record lies in the link's memory, in a part
 * that the parent allocates for the argument and the result of one call; so only the parent's calls
 * can be that large. */
#include "../app/app.h"
#include "../sched/no_abandon.h"
#include "unit_process.h"

static lvd_call **place_of(lvd_process *p, uint32_t number) {
  lvd_call **c = &p->call[number % LVD_PROCESS_BUCKETS];
  while (*c && (*c)->number != number) c = &(*c)->next;
  return c;
}

lvd_status lvd_process_start(lvd_call *c, const char *procedure, const lvd_call_options *o) {
  lvd_process *p = (lvd_process *)c->unit;
  lvd_link *link = &p->link;
  size_t length = strlen(procedure), size = c->frame.argument_size, room = c->frame.result_room;
  if (length == 0 || length >= LVD_PROCEDURE_NAME_BYTES) return LVD_E_ARGUMENT;
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
  c->returned.wait_point.kind = LVD_SLEEPS_AT_CALL;
  lvd_store_relaxed_u32(&c->listed_in, 0);
  lvd_os_lock(&link->lock);
  if (size > LVD_RECORD_INLINE_BYTES || room > LVD_RECORD_INLINE_BYTES) {
    if (link->side == LVD_PARENT)
      c->offset = lvd_link_claim(link, lvd_process_aligned(size) + room);
    if (!c->offset)
      status = lvd_limit(link->side == LVD_PARENT
                             ? "no memory is left between the processes: lvd_unit_options.memory"
                             : "a call to the parent carries and returns at most 256 bytes");
  }
  if (status == LVD_OK) {
    r.offset = c->offset;
    r.number = c->number = ++link->next_number;
    c->next = p->call[c->number % LVD_PROCESS_BUCKETS];
    p->call[c->number % LVD_PROCESS_BUCKETS] = c;
    lvd_add_acq_rel_u32(&p->under_way, 1);
    lvd_add_relaxed_u32(&p->held, 1);
  }
  lvd_os_unlock(&link->lock);
  if (status != LVD_OK) return status;
  if (size) memcpy(c->offset ? lvd_process_at(link, c->offset) : r.data, c->frame.argument, size);
  status = lvd_link_send(link, &r);
  if (status == LVD_OK) return LVD_OK;
  lvd_os_lock(&link->lock);
  lvd_call **place = place_of(p, r.number);
  bool ours = *place == c; /* otherwise the notifier has found that the process is gone */
  if (ours) {
    *place = c->next;
    if (c->offset) lvd_link_release(link, c->offset);
    lvd_add_acq_rel_u32(&p->under_way, UINT32_MAX);
    lvd_add_relaxed_u32(&p->held, UINT32_MAX);
  }
  lvd_os_unlock(&link->lock);
  return ours ? status : LVD_OK;
}

lvd_status lvd_process_finish(lvd_call *c) {
  lvd_add_relaxed_u32(&((lvd_process *)c->unit)->held, UINT32_MAX);
  return c->status;
}

void lvd_process_cancel(lvd_call *c) {
  const lvd_record r = {.kind = LVD_RECORD_CANCEL, .number = c->number};
  lvd_link_send(&((lvd_process *)c->unit)->link, &r);
}

/* The call has returned, and is no longer in the table. The count is decremented last: until then
 * its application is not quiescent. */
static void come_back(lvd_process *p, lvd_call *c) {
  lvd_event_set(&c->returned, 1);
  lvd_add_acq_rel_u32(&p->under_way, UINT32_MAX);
  if (lvd_load_acquire_u32(&p->unit.app->live) == 0) lvd_app_check_quiescent(p->unit.app);
}

void lvd_process_take_answer(lvd_process *p, const lvd_record *r) {
  lvd_link *link = &p->link;
  lvd_os_lock(&link->lock);
  lvd_call **place = place_of(p, r->number), *c = *place;
  if (c) {
    *place = c->next;
    /* otherwise the other side violates the protocol */
    bool fits = r->size <= c->frame.result_room;
    uint32_t n = fits ? r->size : 0;
    const void *from = r->data;
    if (c->offset)
      from = lvd_process_at(link, c->offset + lvd_process_aligned(c->frame.argument_size));
    memcpy(c->frame.result, from, n);
    c->frame.result_size = r->extent ? LVD_RESULT_TOO_LARGE : n;
    c->status = fits && r->status < LVD_STATUS_COUNT ? (lvd_status)r->status : LVD_E_CORRUPT;
    if (c->offset) lvd_link_release(link, c->offset);
  }
  lvd_os_unlock(&link->lock);
  if (c) come_back(p, c);
}

/* The other side is gone: fails the calls to it. */
void lvd_process_fail_calls(lvd_process *p, lvd_status why) {
  lvd_link *link = &p->link;
  for (uint32_t i = 0; i < LVD_PROCESS_BUCKETS; i++)
    for (;;) {
      lvd_os_lock(&link->lock);
      lvd_call *c = p->call[i];
      if (c) p->call[i] = c->next;
      lvd_os_unlock(&link->lock);
      if (!c) break;
      c->status = why;
      come_back(p, c);
    }
}

bool lvd_process_awaited(const lvd_unit *unit) {
  return lvd_load_acquire_u32(&((const lvd_process *)unit)->under_way) != 0;
}

lvd_call *lvd_link_call(lvd_link *link, uint32_t number) {
  return *place_of(lvd_process_of(link), number);
}
