/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The unit that is another process: its records, its end, and queries about it.
 *
 * Calls go both ways in the same manner (unit_process_call.c, unit_process_serve.c): one record
 * each way. */
#include "unit_process.h"
#include "../app/app.h"
#include "../stream/stream.h"
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "../sched/no_abandon.h"

static lvd_process *is_process(const lvd_unit *unit) {
  return unit && unit->kind == &lvd_process_kind ? (lvd_process *)(uintptr_t)unit : NULL;
}

void lvd_process_unlink(lvd_process *p) {
  lvd_hooks.deadlock.free(&p->link);
  lvd_link_free(&p->link);
}

/* ---- records --------------------------------------------------------------------------------- */

/* Only the first fault counts. Calls that return after it see it (come_back). */
static void take_fault(lvd_process *p, const lvd_record *r) {
  enum { TEXT_BYTES = sizeof r->name + 2 + sizeof r->data + 1 };
  char *words = lvd_load_relaxed_ptr(&p->last_words) ? NULL : malloc(TEXT_BYTES);
  if (!words) return;
  size_t size = r->size < sizeof r->data ? r->size : sizeof r->data;
  size_t n =
      lvd_link_sanitize(words, 0, TEXT_BYTES, (const unsigned char *)r->name, strlen(r->name));
  if (n) n = lvd_link_sanitize(words, n, TEXT_BYTES, (const unsigned char *)": ", 2);
  lvd_link_sanitize(words, n, TEXT_BYTES, r->data, size);
  lvd_store_release_ptr(&p->last_words, words);
}

static const char *process_last_words(const lvd_unit *unit) {
  return lvd_load_acquire_ptr(&((const lvd_process *)unit)->last_words);
}

void lvd_process_takes(lvd_link *link, const lvd_record *r) {
  lvd_process *p = lvd_process_of(link);
  if (lvd_hooks.deadlock.take(link, r)) return;
  switch (r->kind) {
  case LVD_RECORD_CALL:
    lvd_process_take_call(p, r);
    break;
  case LVD_RECORD_CANCEL:
    lvd_process_cancel_served(p, r->number);
    break;
  case LVD_RECORD_ANSWER:
    lvd_process_take_answer(p, r);
    break;
  case LVD_RECORD_MISUSE:
    if (link->side == LVD_PARENT)
      lvd_hooks.programs.misuse_told(&p->unit, r);
    else
      lvd_link_report_corrupt(link);
    break;
  case LVD_RECORD_FAULT:
    if (link->side == LVD_PARENT)
      take_fault(p, r);
    else
      lvd_link_report_corrupt(link);
    break;
  default:
    lvd_link_report_corrupt(link);
  }
}

/* ---- its end --------------------------------------------------------------------------------- */

/* If it has sent no reason: uses what it left in the shared memory, which may be incomplete, or its
 * exit status. */
static void take_last_words(lvd_process *p, lvd_status why) {
  char raw[LVD_CRASH_TEXT_BYTES], words[LVD_CRASH_TEXT_BYTES];
  const lvd_link *link = &p->link;
  bool asked = lvd_load_relaxed_u64(&p->asked_ns) || (why != LVD_E_FAULT && why != LVD_E_PEER_GONE);
  if (asked || lvd_load_relaxed_ptr(&p->last_words)) return;
  if (lvd_load_acquire_u32(&link->segment->crash) == LVD_CRASH_WRITTEN) {
    memcpy(raw, link->segment->last_words, sizeof raw);
    raw[sizeof raw - 1] = 0;
    lvd_link_sanitize(words, 0, sizeof words, (const unsigned char *)raw, strlen(raw));
  } else if (!lvd_os_process_exit_text(&link->peer, words, sizeof words)) {
    return;
  }
  char *copy = lvd_text_copy(words);
  if (copy) lvd_store_release_ptr(&p->last_words, copy);
}

void lvd_process_parent_ended(lvd_link *link, lvd_status why) {
  lvd_process *p = lvd_process_of(link);
  if (!p->remote) take_last_words(p, why);
  lvd_process_cancel_all(p);
  lvd_process_fail_calls(p, why);
  lvd_event_set(&p->over, 1);
  if (lvd_load_acquire_u32(&p->unit.app->live) == 0) lvd_app_check_quiescent(p->unit.app);
}

static void leave_application(lvd_unit *unit) {
  lvd_os_lock(&unit->app->blocks_lock);
  lvd_unit **place = &unit->app->units;
  while (*place && *place != unit) place = &(*place)->next;
  if (*place) *place = unit->next;
  lvd_os_unlock(&unit->app->blocks_lock);
}

/* Asks the process to end, and waits until it has. */
static lvd_status await_end(lvd_process *p, int64_t timeout_ns) {
  uint64_t start = lvd_os_now_ns();
  const lvd_wait_item end = {.event = &p->over}; /* stays set */
  uint32_t which;
  if (!lvd_load_relaxed_u64(&p->asked_ns)) {
    lvd_store_relaxed_u64(&p->asked_ns, start);
    lvd_store_relaxed_u32(&p->link.segment->closing, 1);
    p->link.bell.wake(&p->link.bell);
  }
  int64_t grace = lvd_process_left(LVD_GRACE_NS, lvd_load_relaxed_u64(&p->asked_ns));
  bool patient = timeout_ns >= 0 && timeout_ns < grace;
  lvd_status status = lvd_wait_any(&end, 1, patient ? timeout_ns : grace, &which);
  if (status != LVD_E_TIMEOUT || patient) return status;
  lvd_link_kill(&p->link);
  return lvd_wait_any(&end, 1, lvd_process_left(timeout_ns, start), &which);
}

static void process_free(lvd_unit *unit);

const lvd_unit_kind lvd_process_kind = {lvd_process_start, lvd_process_finish,  lvd_process_cancel,
                                        process_free,      lvd_process_awaited, process_last_words};

/* Nothing of its application runs any more, or lvd_unit_unload has waited for the calls served. */
static void process_free(lvd_unit *unit) {
  lvd_process *p = (lvd_process *)unit;
  if (p->link.side == LVD_PARENT) {
    /* the calling fiber is cancelled, so its waits fail: wait uninterruptibly */
    if (await_end(p, -1) != LVD_OK) {
      lvd_link_kill(&p->link);
      lvd_fiber_wait_uninterruptible(lvd_fiber_self(), &p->over);
    }
    lvd_link_end(&p->link);
    lvd_process_answer_the_rest(p, LVD_E_STOPPED);
    free(p->may_call);
    free(lvd_load_relaxed_ptr(&p->last_words));
  } else {
    lvd_hooks.child.forget_parent();
  }
  lvd_process_free_remote(p);
  lvd_process_unlink(p);
  free(p);
}

lvd_status lvd_unit_unload(lvd_unit *unit) { return lvd_unit_unload_timeout(unit, -1); }

lvd_status lvd_unit_unload_timeout(lvd_unit *unit, int64_t timeout_ns) {
  LVD_NO_ABANDON;
  uint64_t start = lvd_os_now_ns();
  lvd_process *p = is_process(unit);
  if (!p || p->link.side == LVD_CHILD) return LVD_E_ARGUMENT;
  lvd_os_lock(&p->link.lock);
  bool used = p->link.streams || lvd_load_relaxed_u32(&p->held);
  used |= lvd_process_is_served_by(p, lvd_fiber_self());
  lvd_os_unlock(&p->link.lock);
  if (used) return LVD_E_STATE;
  lvd_status status = await_end(p, timeout_ns);
  if (status != LVD_OK) return status;
  lvd_link_end(&p->link);
  lvd_process_cancel_all(p);
  status = lvd_process_await_served(p, lvd_process_left(timeout_ns, start));
  if (status != LVD_OK) return status;
  leave_application(unit);
  process_free(unit);
  return LVD_OK;
}

/* ---- queries --------------------------------------------------------------------------------- */

lvd_link *lvd_unit_link(const lvd_unit *unit) {
  lvd_process *p = is_process(unit);
  return p ? &p->link : NULL;
}

const char *lvd_link_name(lvd_link *link) { return lvd_process_of(link)->unit.name; }

lvd_status lvd_unit_state(const lvd_unit *unit) {
  lvd_process *p = is_process(unit);
  return !unit ? LVD_E_ARGUMENT : p ? lvd_link_state(&p->link) : LVD_OK;
}

int32_t lvd_unit_process(const lvd_unit *unit) {
  lvd_process *p = is_process(unit);
  return p ? p->link.peer.id : 0;
}

lvd_status lvd_stream_open(lvd_unit *unit, const lvd_stream_options *options, lvd_stream **out) {
  LVD_NO_ABANDON;
  lvd_process *p = is_process(unit);
  if (!p || !options || !out) return LVD_E_ARGUMENT;
  return lvd_shared_open(&p->link, options, out);
}

lvd_status lvd_unit_leave_stream(lvd_unit *unit, const char *name) {
  lvd_process *p = is_process(unit);
  return p ? lvd_shared_leave(&p->link, name) : LVD_E_ARGUMENT;
}

void lvd_unit_expect_stream(lvd_unit *unit, const char *name, const lvd_user party[2],
                            uint32_t parties) {
  lvd_process *p = is_process(unit);
  if (p) lvd_hooks.deadlock.expect(&p->link, name, party, parties);
}
