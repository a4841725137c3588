/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A machine: the window and the doorbell of a unit, without calls, streams and a notifier
 * thread. */
#include <levada/machine.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "window.h"

#define LAST_STOP_NS 1000000000 /* timeout of the last stop, ns */

struct lvd_machine {
  lvd_link link;
  lvd_remote_side remote;
  lvd_image image;
  bool dead;
  char why[200]; /* why it is dead */
};

static lvd_status set_dead(lvd_machine *m, lvd_status status, const char *why) {
  if (!m->dead) snprintf(m->why, sizeof m->why, "%s", why);
  m->dead = true;
  return lvd_window_refuse(status, "%s", m->why);
}

static bool is_gone(lvd_machine *m) {
  if (!m->link.reaped) m->link.reaped = lvd_os_process_has_exited(&m->link.peer);
  return m->link.reaped;
}

lvd_status lvd_machine_boot(const char *kind, int64_t timeout_ns, lvd_machine **out) {
  char name[200];
  const char *device;
  lvd_window_refuse(LVD_OK, "%s", "");
  if (!kind || !out || timeout_ns <= 0) return LVD_E_ARGUMENT;
  snprintf(name, sizeof name, "%s:", kind);
  const lvd_board *board = lvd_board_of(name, &device);
  if (!board || (*device && !board->open) || strlen(kind) >= sizeof name - 1)
    return lvd_window_refuse(LVD_E_NOT_FOUND, "there is no kind of machine that is called %.60s",
                             kind);
  lvd_machine *m = calloc(1, sizeof *m);
  if (!m) return LVD_E_MEMORY;
  lvd_link_prepare(&m->link, NULL);
  int bell = -1;
  size_t base = lvd_remote_base(board, 0);
  lvd_status status = LVD_OK;
  name[strlen(kind)] = 0; /* the device's name alone */
  if (board->open) status = lvd_board_open(board, device, timeout_ns, &m->remote.device);
  if (m->remote.device) {
    m->link.device = m->remote.device;
    base = lvd_remote_base_of(m->remote.device, &m->link, 0);
    if (!base) status = LVD_E_MEMORY;
  }
  if (status == LVD_OK) status = lvd_link_make(&m->link, NULL, base, 1 << 20, true, &bell);
  if (status == LVD_OK) status = lvd_remote_boot(&m->remote, &m->link, board, bell, timeout_ns);
  lvd_os_close(bell);
  if (status != LVD_OK) {
    lvd_machine_end(m);
    return status;
  }
  *out = m;
  return LVD_OK;
}

lvd_status lvd_machine_load(lvd_machine *m, const char *file) {
  lvd_image image;
  lvd_window_refuse(LVD_OK, "%s", "");
  if (!m || !file) return LVD_E_ARGUMENT;
  lvd_status status = lvd_image_read(file, m->remote.board, &image);
  if (status != LVD_OK) return status;
  status = lvd_remote_fits(&m->remote, &image);
  if (status != LVD_OK) {
    lvd_image_free(&image);
    return status;
  }
  lvd_image_free(&m->image);
  m->image = image;
  return LVD_OK;
}

static bool has_ended(const lvd_window *w) {
  return lvd_load_acquire_u32(&w->state) != LVD_REMOTE_RUNNING;
}

static bool runs(const lvd_machine *m) { return !has_ended(m->remote.window); }

lvd_status lvd_machine_run(lvd_machine *m, int64_t timeout_ns) {
  lvd_window_refuse(LVD_OK, "%s", "");
  if (!m || timeout_ns <= 0) return LVD_E_ARGUMENT;
  if (m->dead) return lvd_window_refuse(LVD_E_PEER_GONE, "%s", m->why);
  if (is_gone(m)) return set_dead(m, LVD_E_PEER_GONE, "the machine has ended");
  if (runs(m)) return lvd_window_refuse(LVD_E_STATE, "a program runs there already");
  if (!m->image.bytes) return lvd_window_refuse(LVD_E_STATE, "no image has been loaded");
  lvd_store_relaxed_u32(&m->link.segment->serves, 0); /* set by the previous program */
  lvd_status status = lvd_remote_run(&m->remote, &m->link, &m->image, timeout_ns);
  if (status == LVD_E_PEER_GONE) return set_dead(m, status, "the machine has ended");
  if (status == LVD_E_TIMEOUT) return set_dead(m, status, lvd_window_error_text());
  return status;
}

void lvd_machine_look(lvd_machine *m, int64_t timeout_ns, lvd_machine_report *out) {
  *out = (lvd_machine_report){.state = LVD_MACHINE_DEAD};
  /* A doorbell that was rung together with an answer has been taken with it: look at the state
   * first. */
  bool waits = runs(m) && !lvd_load_relaxed_u32(&m->link.segment->serves);
  if (waits && !m->dead && timeout_ns) waits = !lvd_remote_look_around(m->remote.window, has_ended);
  if (!m->dead)
    lvd_os_signal_wait(m->link.bell_end, m->link.own_bell, &m->link.peer, waits ? timeout_ns : 0);
  /* Before the state is read: what the process wrote before it exited is visible then. */
  bool gone = !m->dead && is_gone(m);
  uint32_t state = lvd_load_acquire_u32(&m->remote.window->state);
  switch (state) {
  case LVD_REMOTE_NONE:
  case LVD_REMOTE_READY:
  case LVD_REMOTE_REFUSED:
    out->state = LVD_MACHINE_IDLE;
    break;
  case LVD_REMOTE_RUNNING:
    out->state =
        lvd_load_relaxed_u32(&m->link.segment->serves) ? LVD_MACHINE_SERVING : LVD_MACHINE_RUNNING;
    if (!gone && !m->dead &&
        lvd_remote_ask(&m->remote, &m->link, out->text, sizeof out->text) != LVD_OK)
      set_dead(m, LVD_E_PEER_GONE, out->text);
    break;
  case LVD_REMOTE_EXITED:
    out->state = LVD_MACHINE_EXITED;
    out->result = m->remote.window->status;
    break;
  default:
    out->state = LVD_MACHINE_FAILED;
    if (lvd_remote_outcome(&m->remote, out->text, sizeof out->text) == LVD_E_CORRUPT)
      set_dead(m, LVD_E_CORRUPT, out->text);
  }
  if (gone) set_dead(m, LVD_E_PEER_GONE, "the machine has ended");
  if (!m->dead) return;
  out->state = LVD_MACHINE_DEAD;
  snprintf(out->text, sizeof out->text, "%s", m->why);
}

lvd_status lvd_machine_stop(lvd_machine *m, int64_t timeout_ns) {
  lvd_window_refuse(LVD_OK, "%s", "");
  if (!m || timeout_ns <= 0) return LVD_E_ARGUMENT;
  if (m->dead) return lvd_window_refuse(LVD_E_PEER_GONE, "%s", m->why);
  if (!runs(m)) return lvd_window_refuse(LVD_E_STATE, "no program runs there");
  lvd_status status = lvd_remote_stop(&m->remote, &m->link, timeout_ns);
  if (status == LVD_E_PEER_GONE) return set_dead(m, status, "the machine has ended");
  if (status == LVD_E_TIMEOUT) return set_dead(m, status, lvd_window_error_text());
  return status;
}

int lvd_machine_bell(const lvd_machine *m) { return m->link.bell_end; }

int32_t lvd_machine_process(const lvd_machine *m) { return m->link.peer.id; }

void lvd_machine_end(lvd_machine *m) {
  if (!m) return;
  /* A board with a processor of its own keeps running when the host has gone: stop its program. */
  if (m->remote.device && m->remote.window && !m->dead && runs(m))
    lvd_remote_stop(&m->remote, &m->link, LAST_STOP_NS);
  if (m->link.peer.id > 0 && !is_gone(m)) {
    lvd_os_process_kill(&m->link.peer);
    while (!is_gone(m)) lvd_os_signal_wait(m->link.bell_end, m->link.own_bell, &m->link.peer, -1);
  }
  lvd_remote_end(&m->remote);
  lvd_image_free(&m->image);
  lvd_link_free(&m->link);
  free(m);
}
