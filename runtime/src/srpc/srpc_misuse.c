/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Reports misuse of the paper's API, each once and within bounds, and sets the exit status for it.
 * A process that was loaded sends its lines to its parent, which prints them, so that one process
 * bounds their number; so does a processor behind a window, which has no error output. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../platform/process.h"
#include "../ipc/link.h"
#include "../sched/no_abandon.h"
#include "srpc_program.h"

/* Of the process's own program, which changes the exit status. */
static lvd_a32 counted, armed;

/* ---- the exit status ------------------------------------------------------------------------- */

static void at_exit(int status) {
  if (status == 0 && lvd_load_relaxed_u32(&counted)) exit(EXIT_FAILURE);
}

/* The status is unknown here: a failure stays a failure. */
static void at_quick_exit_call(void) {
  if (lvd_load_relaxed_u32(&counted)) quick_exit(EXIT_FAILURE);
}

static void count(const lvd_program_state *p) {
  if (p != &lvd_program_of_process) return; /* the host fails the application */
  lvd_store_relaxed_u32(&counted, 1);
  if (lvd_exchange_relaxed_u32(&armed, 1)) return;
  lvd_os_at_exit(at_exit);
  lvd_os_at_quick_exit(at_quick_exit_call);
}

/* ---- one line -------------------------------------------------------------------------------- */

static uint64_t hash(const char *text) {
  uint64_t h = 14695981039346656037u; /* FNV-1a */
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 1099511628211u;
  return h;
}

/* Replaces control characters, which could change the state of a terminal. */
static void clean(char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || *text == 127) *text = '?';
}

typedef enum report_kind { REPORTED, REPORT, REPORT_LAST } report_kind;

/* `status` LVD_OK: a hint. */
static report_kind enter(lvd_misuses *m, lvd_status status, const char *text) {
  uint64_t h = hash(text);
  report_kind how = REPORT;
  lvd_os_lock(&m->lock);
  if (status != LVD_OK && m->first == LVD_OK) {
    m->first = status;
    snprintf(m->text, sizeof m->text, "%s", text);
  }
  for (uint32_t i = 0; i < m->lines; i++)
    if (m->line[i] == h) how = REPORTED;
  if (how == REPORT && m->lines == LVD_MISUSE_LINES_MAX)
    how = REPORTED;
  else if (how == REPORT)
    m->line[m->lines++] = h;
  if (how == REPORT && m->lines == LVD_MISUSE_LINES_MAX) how = REPORT_LAST;
  lvd_os_unlock(&m->lock);
  return how;
}

static void print(const char *from, const char *text, bool last) {
  char line[LVD_RECORD_INLINE_BYTES + 160];
  snprintf(line, sizeof line, "levada: %s%s%s%s\n", from, *from ? ": " : "", text,
           last ? "\nlevada: further lines like these are left out" : "");
  lvd_os_fatal_message(line);
}

/* Returns false if there is no parent, or it is gone. */
static bool report_to_parent(lvd_status status, const char *text) {
  lvd_unit *parent = lvd_unit_parent();
  if (!lvd_unit_lives(parent)) return false;
  lvd_record r = {.kind = LVD_RECORD_MISUSE, .status = (uint32_t)status};
  r.size = (uint32_t)snprintf((char *)r.data, sizeof r.data, "%s", text);
  return lvd_link_send(lvd_unit_link(parent), &r) == LVD_OK;
}

static void report_line(lvd_program_state *p, lvd_status status, char *text) {
  clean(text);
  report_kind how = enter(&p->misuses, status, text);
  if (status != LVD_OK) count(p);
  if (how == REPORTED) return;
  if (!p->hosted && report_to_parent(status, text)) return;
  print(p->hosted ? p->app->name : "", text, how == REPORT_LAST);
}

LVD_COLD lvd_status lvd_misuse(lvd_status status, const char *format, ...) {
  LVD_NO_ABANDON;
  char text[LVD_RECORD_INLINE_BYTES];
  lvd_program_state *p = lvd_program_here();
  lvd_no_task(status);
  if (lvd_load_relaxed_u32(&p->misuses.off)) return status;
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  report_line(p, status, text);
  return status;
}

void lvd_misuse_hint(lvd_program_state *p, char text[LVD_RECORD_INLINE_BYTES]) {
  if (!lvd_load_relaxed_u32(&p->misuses.off)) report_line(p, LVD_OK, text);
}

const char *lvd_misuse_in(char in[LVD_MISUSE_IN_BYTES]) {
  const lvd_fiber *f = lvd_fiber_self();
  in[0] = 0;
  if (f) snprintf(in, LVD_MISUSE_IN_BYTES, " in %s", f->entity.name);
  return in;
}

/* ---- lines of other processes ---------------------------------------------------------------- */

/* The text is sanitized, and bounded as this process's own is. */
void lvd_misuse_told(lvd_unit *unit, const lvd_record *r) {
  lvd_app *app = unit->app;
  lvd_program_state *own = &lvd_program_of_process, *p = app->program;
  if (!p && app == own->app) p = own;
  if (!p || lvd_load_relaxed_u32(&p->misuses.off)) return;
  char text[LVD_RECORD_INLINE_BYTES], line[LVD_RECORD_INLINE_BYTES];
  size_t size = r->size < sizeof r->data ? r->size : sizeof r->data - 1;
  lvd_link_sanitize(text, 0, sizeof text, r->data, size);
  clean(text);
  lvd_status status = r->status < LVD_STATUS_COUNT ? (lvd_status)r->status : LVD_E_CORRUPT;
  snprintf(line, sizeof line, "%s: %.200s", unit->name, text);
  report_line(p, status, line);
}

/* ---- the result ------------------------------------------------------------------------------ */

bool lvd_misused(void) {
  lvd_misuses *m = &lvd_program_here()->misuses;
  lvd_os_lock(&m->lock);
  bool any = m->first != LVD_OK;
  lvd_os_unlock(&m->lock);
  return any;
}

lvd_status lvd_misuses_take(lvd_program_state *p, char text[LVD_RECORD_INLINE_BYTES]) {
  lvd_misuses *m = &p->misuses;
  lvd_os_lock(&m->lock);
  lvd_status first = m->first;
  if (text) memcpy(text, m->text, sizeof m->text);
  m->first = LVD_OK;
  m->lines = 0;
  m->text[0] = 0;
  lvd_os_unlock(&m->lock);
  return first;
}

void pb_set_diagnostics(bool on) { lvd_store_relaxed_u32(&lvd_program_here()->misuses.off, !on); }
