/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Client of the command `levada shield`, which raises and lowers shields. The two are connected
 * by a socket pair. The command writes lines of JSON, flat objects with known keys
 * (crates/levada/src/shield/wire.rs), so this file only parses a number or a string after a key.
 * This side sends one byte per status request; closing the socket lowers the shield. */
#include "../../platform/platform.h"
#include "../../platform/process.h"
#include "../sched/sched.h"

#include <levada/shield.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_BYTES = 4096, SECOND_NS = 1000000000 };

struct lvd_shield {
  lvd_os_process command;
  int wire;
  int64_t timeout_ns;
  bool over, cut; /* the command has said that the shield has ended; the socket is closed */
  uint64_t failed;
  lvd_shield_report last;
  size_t length;
  char line[LINE_BYTES];
};

static _Thread_local char why[256];

const char *lvd_shield_error_text(void) { return why; }

static lvd_status refuse(lvd_status status, const char *text) {
  snprintf(why, sizeof why, "%s", text);
  return status;
}

/* ---- replies of the command --------------------------------------------------------------- */

static const char *behind(const char *line, const char *name) {
  char quoted[32];
  snprintf(quoted, sizeof quoted, "\"%s\":", name);
  const char *at = strstr(line, quoted);
  return at ? at + strlen(quoted) : NULL;
}

static uint64_t number_of(const char *line, const char *name) {
  const char *at = behind(line, name);
  return at ? strtoull(at, NULL, 10) : 0;
}

static void text_of(const char *line, const char *name, char *out, size_t room) {
  const char *at = behind(line, name);
  size_t n = 0;
  if (at && *at++ == '"')
    for (; *at && *at != '"' && n + 1 < room; at++) {
      if (*at == '\\' && at[1]) at++;
      out[n++] = *at;
    }
  out[n] = 0;
}

static bool is(const char *line, const char *what) {
  char kind[16];
  text_of(line, "is", kind, sizeof kind);
  return strcmp(kind, what) == 0;
}

/* Reads the next line, without its newline, or times out. */
static lvd_status hear(lvd_shield *s, char line[LINE_BYTES]) {
  uint64_t end = lvd_os_now_ns() + (uint64_t)s->timeout_ns;
  for (;;) {
    char *stop = memchr(s->line, '\n', s->length);
    if (stop) {
      size_t n = (size_t)(stop - s->line);
      memcpy(line, s->line, n);
      line[n] = 0;
      s->length -= n + 1;
      memmove(s->line, stop + 1, s->length);
      return LVD_OK;
    }
    if (s->cut || s->length == LINE_BYTES) return LVD_E_PEER_GONE;
    uint64_t now = lvd_os_now_ns();
    if (now >= end) return LVD_E_TIMEOUT;
    long got =
        lvd_os_socket_receive(s->wire, s->line + s->length, LINE_BYTES - s->length, end - now);
    if (got == 0) s->cut = true;
    if (got > 0) s->length += (size_t)got;
  }
}

static void note(lvd_shield *s, const char *line) {
  if (is(line, "up")) {
    text_of(line, "cores", s->last.cores, sizeof s->last.cores);
    text_of(line, "method", s->last.method, sizeof s->last.method);
    s->last.took_ns = number_of(line, "took_ns");
    s->last.threads = number_of(line, "threads");
    s->last.kernel_threads = number_of(line, "kernel_threads");
    s->last.interrupts = number_of(line, "interrupts");
    s->last.evicted = number_of(line, "evicted");
    s->last.full = number_of(line, "full") != 0;
  } else if (is(line, "over")) {
    s->over = true;
    s->failed = number_of(line, "failed");
    if (s->failed) text_of(line, "why", why, sizeof why);
  }
}

/* ---- raising a shield --------------------------------------------------------------------- */

/* Whether `text` is a comma-separated list of names or cores, and nothing that the command would
 * parse as an option. */
static bool is_list(const char *text, const char *of) {
  return !text || (*text && *text != '-' && (!of || strspn(text, of) == strlen(text)));
}

static bool is_method(const char *by) {
  static const char *const method[] = {"cgroup-v2-partition", "cpuset-v1", "affinity", "self"};
  for (size_t i = 0; by && i < sizeof method / sizeof *method; i++)
    if (strcmp(by, method[i]) == 0) return true;
  return !by;
}

static lvd_status start(lvd_shield *s, const lvd_shield_options *o, int wire) {
  char process[16], thread[16], count[16], descriptor[16];
  const char *argument[20];
  size_t n = 0;
  snprintf(process, sizeof process, "%" PRId32, o->process ? o->process : lvd_os_process_self());
  snprintf(thread, sizeof thread, "%" PRId32, o->thread);
  snprintf(count, sizeof count, "%" PRIu32, o->count ? o->count : 1);
  snprintf(descriptor, sizeof descriptor, "%d", wire);
  argument[n++] = "shield";
  if (!o->cores) argument[n++] = "--cores";
  argument[n++] = o->cores ? o->cores : count;
  argument[n++] = "--pid", argument[n++] = process;
  argument[n++] = "--control-fd", argument[n++] = descriptor;
  if (o->thread) argument[n++] = "--thread", argument[n++] = thread;
  if (o->method) argument[n++] = "--method", argument[n++] = o->method;
  if (o->exclude) argument[n++] = "--exclude", argument[n++] = o->exclude;
  if (o->single_target) argument[n++] = "--single-target";
  argument[n] = NULL;
  return lvd_os_process_start(&s->command, o->command ? o->command : "levada", argument, NULL, NULL,
                              &wire, 1);
}

/* Closing the socket ends the command. Waits for its exit, so that no process is left behind. */
static lvd_status finish(lvd_shield *s) {
  lvd_status status = LVD_OK;
  lvd_os_close(s->wire); /* closed first: a command that keeps writing would otherwise block */
  uint64_t end = lvd_os_now_ns() + (uint64_t)s->timeout_ns;
  while (!lvd_os_process_has_exited(&s->command)) {
    uint64_t now = lvd_os_now_ns();
    if (now >= end) {
      status = LVD_E_TIMEOUT;
      break;
    }
    lvd_os_signal_wait(-1, -1, &s->command, (int64_t)(end - now));
  }
  lvd_os_process_close(&s->command);
  free(s);
  return status;
}

lvd_status lvd_shield_raise(const lvd_shield_options *options, lvd_shield **out) {
  static const lvd_shield_options usual;
  const lvd_shield_options *o = options ? options : &usual;
  *why = 0;
  if (!out || o->process < 0 || o->thread < 0 || o->timeout_ns < 0)
    return refuse(LVD_E_ARGUMENT, "an argument is null or negative");
  if (!is_list(o->cores, "0123456789,-") || !is_list(o->exclude, NULL) || !is_method(o->method) ||
      (o->command && !*o->command))
    return refuse(LVD_E_ARGUMENT, "invalid list of cores, list of names, method or command");
  if (lvd_this_worker()) return refuse(LVD_E_STATE, "not in a fiber or an actor");
  lvd_shield *s = calloc(1, sizeof *s);
  if (!s) return refuse(LVD_E_MEMORY, "no memory");
  int end[2];
  if (lvd_os_socketpair(end, true) != LVD_OK) {
    free(s);
    return refuse(LVD_E_SYSTEM, "cannot create a socket pair");
  }
  s->wire = end[0];
  s->timeout_ns = o->timeout_ns ? o->timeout_ns : 10 * (int64_t)SECOND_NS;
  lvd_status status = start(s, o, end[1]);
  lvd_os_close(end[1]);
  if (status != LVD_OK) {
    lvd_os_close(s->wire);
    free(s);
    snprintf(why, sizeof why, "the command %.200s %s", o->command ? o->command : "levada",
             status == LVD_E_NOT_FOUND ? "is not there" : "cannot be started");
    return status;
  }
  char line[LINE_BYTES];
  status = hear(s, line);
  if (status == LVD_OK && is(line, "up")) {
    note(s, line);
    *out = s;
    return LVD_OK;
  }
  if (status == LVD_OK) {
    status = LVD_E_SYSTEM;
    text_of(line, "why", why, sizeof why);
  } else {
    refuse(status, status == LVD_E_TIMEOUT ? "the shield was not up in time"
                                           : "the command levada exited without a reply");
  }
  lvd_status ended = finish(s);
  return ended == LVD_OK ? status : ended;
}

/* ---- status and lowering ------------------------------------------------------------------ */

lvd_status lvd_shield_status(lvd_shield *s, lvd_shield_report *out) {
  *why = 0;
  if (!s || !out) return refuse(LVD_E_ARGUMENT, "an argument is null");
  char line[LINE_BYTES];
  lvd_status status = LVD_OK;
  if (!s->over) {
    lvd_os_socket_signal(s->wire);
    status = hear(s, line);
    if (status == LVD_OK) note(s, line);
  }
  *out = s->last;
  if (s->over) return refuse(LVD_E_EOF, "the shield was released, or its process has ended");
  if (status == LVD_E_TIMEOUT) return refuse(status, "the command levada does not answer");
  if (status == LVD_E_PEER_GONE) return refuse(status, "the command levada was killed");
  return status;
}

lvd_status lvd_shield_lower(lvd_shield *s) {
  *why = 0;
  if (!s) return LVD_OK;
  lvd_os_socket_shutdown(s->wire);
  char line[LINE_BYTES];
  lvd_status status = LVD_OK;
  /* Replies to status requests that timed out may come first. */
  while (!s->over && status == LVD_OK)
    if ((status = hear(s, line)) == LVD_OK) note(s, line);
  if (s->over) status = s->failed ? LVD_E_SYSTEM : LVD_OK;
  if (status == LVD_E_TIMEOUT) refuse(status, "the command levada does not answer");
  if (status == LVD_E_PEER_GONE) refuse(status, "the command levada was killed");
  lvd_status ended = finish(s);
  return status == LVD_OK ? ended : status;
}
