/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Starts the other side of a unit: a program of this machine, or an image on a board behind a
 * window; checks that it serves, and that what is behind a window is alive. */
#include <stdio.h>
#include <stdlib.h>

#include "../../platform/text.h"
#include "../sched/no_abandon.h"
#include "../stream/stream.h"
#include "unit.h"
#include "unit_process.h"

enum { MEMORY_BYTES = 64 << 20 };
#define ATTACH_TIMEOUT_NS 10000000000
#define LOOK_NS           500000000 /* time between two looks at the state of a window */

/* ---- behind a window ------------------------------------------------------------------------- */

static void set_last_words(lvd_process *p, const char *text) {
  char *words = lvd_load_relaxed_ptr(&p->last_words) ? NULL : lvd_text_copy(text);
  if (words) lvd_store_release_ptr(&p->last_words, words);
}

/* The loader's report is acted on once all records that were sent before have been taken. */
static void check_window(lvd_link *link) {
  lvd_process *p = lvd_process_of(link);
  char text[200];
  lvd_status status = lvd_remote_outcome(p->remote, text, sizeof text);
  if (status != LVD_OK && !p->remote->over) {
    p->remote->over = true;
    lvd_os_eventfd_signal(link->own_bell);
    return;
  }
  if (status == LVD_OK) status = lvd_remote_ask(p->remote, link, text, sizeof text);
  if (status == LVD_OK) return;
  if (!lvd_load_relaxed_u32(&link->segment->closing)) set_last_words(p, text);
  lvd_link_give_up(link, status);
}

void lvd_process_free_remote(lvd_process *p) {
  if (p->remote) lvd_remote_end(p->remote);
  free(p->remote);
  p->remote = NULL;
}

/* ---- starting -------------------------------------------------------------------------------- */

static lvd_status await_service(lvd_process *p, int64_t timeout_ns) {
  lvd_link *link = &p->link;
  uint64_t start = lvd_os_now_ns();
  for (;;) {
    uint32_t serves = lvd_load_relaxed_u32(&link->segment->serves);
    if (serves == 1 + LVD_ABI_VERSION) return LVD_OK;
    if (serves)
      return lvd_window_refuse(LVD_E_ABI, "the program is of another layout of channels: build "
                                          "both sides of one version");
    if ((link->reaped = lvd_os_process_has_exited(&link->peer)))
      return lvd_window_refuse(LVD_E_PEER_GONE, "the board has ended before its program served");
    char text[200];
    lvd_status remote = p->remote ? lvd_remote_outcome(p->remote, text, sizeof text) : LVD_OK;
    if (remote != LVD_OK) return lvd_window_refuse(remote, "%s before it served", text);
    int64_t left = timeout_ns - (int64_t)(lvd_os_now_ns() - start);
    if (left <= 0) return lvd_window_refuse(LVD_E_TIMEOUT, "the program does not serve in time");
    lvd_os_signal_wait(link->bell_end, link->own_bell, &link->peer, left);
  }
}

static void end_process(lvd_link *link) {
  if (!link->reaped) lvd_os_process_kill(&link->peer);
  while (!link->reaped) {
    lvd_os_signal_wait(link->bell_end, link->own_bell, &link->peer, -1);
    link->reaped = lvd_os_process_has_exited(&link->peer);
  }
}

/* Starts the program, and names the unit. */
static lvd_status start_program(lvd_process *p, const char *exec_name, const lvd_unit_options *o) {
  lvd_link *link = &p->link;
  int child_bell = -1;
  char value[64];
  lvd_window_refuse(LVD_OK, "%s", ""); /* clears the error text */
  lvd_status status =
      lvd_link_make(link, p->unit.app, 0, o->memory ? o->memory : MEMORY_BYTES, false, &child_bell);
  if (status == LVD_OK) {
    const int keep[2] = {link->memory, child_bell};
    snprintf(value, sizeof value, "%d,%d", keep[0], keep[1]);
    status = lvd_os_process_start(&link->peer, exec_name, o->argument, LVD_UNIT_VARIABLE, value,
                                  keep, 2);
    if (status == LVD_E_NOT_FOUND)
      lvd_window_refuse(
          status, "there is no program, and no kind of machine, that is called %.200s", exec_name);
  }
  lvd_os_close(child_bell);
  const char *base = strrchr(exec_name, '/');
  snprintf(p->unit.name, sizeof p->unit.name, "process %d (%.20s)", (int)link->peer.id,
           base ? base + 1 : exec_name);
  link->look = lvd_hooks.deadlock.look;
  return status;
}

/* The same for an image on a board behind a window. */
static lvd_status start_board(lvd_process *p, const lvd_board *board, const char *file,
                              const lvd_unit_options *o) {
  lvd_link *link = &p->link;
  lvd_image image = {0};
  int child_bell = -1;
  int64_t timeout_ns = o->timeout_ns ? o->timeout_ns : ATTACH_TIMEOUT_NS;
  lvd_window_refuse(LVD_OK, "%s", ""); /* clears the error text */
  lvd_status status = (p->remote = calloc(1, sizeof *p->remote)) ? LVD_OK : LVD_E_MEMORY;
  if (status == LVD_OK && board->open)
    status = lvd_board_open_before(board, &file, timeout_ns, &p->remote->device);
  if (status == LVD_OK) status = lvd_image_read(file, board, &image);
  if (status == LVD_OK) {
    link->device = p->remote->device;
    size_t base = link->device ? lvd_remote_base_of(link->device, link, image.size)
                               : lvd_remote_base(board, image.size);
    status = base ? lvd_link_make(link, p->unit.app, base, o->memory ? o->memory : MEMORY_BYTES,
                                  true, &child_bell)
                  : LVD_E_MEMORY;
  }
  if (status == LVD_OK)
    status = lvd_remote_start(p->remote, link, board, &image, child_bell, timeout_ns);
  lvd_os_close(child_bell);
  lvd_image_free(&image);
  const char *base = strrchr(file, '/');
  snprintf(p->unit.name, sizeof p->unit.name, "window %d (%s%.20s)", (int)link->peer.id,
           board->prefix, base ? base + 1 : file);
  link->behind = true;
  link->look = check_window;
  link->look_ns = LOOK_NS;
  return status;
}

lvd_status lvd_unit_load(lvd_app *app, const char *exec_name, const lvd_unit_options *options,
                         lvd_unit **out) {
  static const lvd_unit_options defaults;
  const lvd_unit_options *o = options ? options : &defaults;
  if (!app || !exec_name || !*exec_name || !out || o->timeout_ns < 0) return LVD_E_ARGUMENT;
  if (lvd_this_worker()) return LVD_E_STATE;
  lvd_process *p = calloc(1, sizeof *p);
  if (!p) return LVD_E_MEMORY;
  lvd_event_init(&p->over);
  if (o->may_call && !(p->may_call = lvd_text_copy(o->may_call))) {
    free(p);
    return LVD_E_MEMORY;
  }
  lvd_link *link = &p->link;
  lvd_link_prepare(link, app);
  const char *image;
  const lvd_board *board = lvd_board_of(exec_name, &image);
  /* All of it before the notifier starts: the child may have exited already. */
  p->unit.kind = &lvd_process_kind;
  p->unit.app = app;
  link->take = lvd_process_takes;
  link->ended = lvd_process_parent_ended;
  lvd_status status = board ? start_board(p, board, image, o) : start_program(p, exec_name, o);
  if (status == LVD_OK)
    status = await_service(p, o->timeout_ns ? o->timeout_ns : ATTACH_TIMEOUT_NS);
  if (status == LVD_OK) status = lvd_link_begin(link, "levada/bell");
  if (status != LVD_OK) {
    if (link->peer.id > 0) end_process(link);
    lvd_process_free_remote(p);
    lvd_process_unlink(p);
    free(p->may_call);
    free(p);
    return status;
  }
  lvd_unit_enter(&p->unit);
  *out = &p->unit;
  return LVD_OK;
}
