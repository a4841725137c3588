/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The loader (loader.h): waits for an image in the window, copies it to its address, checks length
 * and checksum, runs it, and reports the result. */
#include "loader.h"

void *memcpy(void *restrict to, const void *restrict from, size_t n);

/* ---- memory shared with the host, by the rules of caches.h ----------------------------------- */

static void invalidate(const lvd_loader *l, const void *at, size_t size) {
  if (l->board->caches) l->board->caches->invalidate(at, size);
}

/* Reads what the host has written. */
static const lvd_window *read_window(const lvd_loader *l) {
  invalidate(l, &l->board->window->command, LVD_CACHE_LINE);
  return l->board->window;
}

/* Makes what was written visible to the host. */
static void publish(const lvd_loader *l) {
  const lvd_window *w = l->board->window;
  if (l->board->caches)
    l->board->caches->clean(&w->answered, sizeof *w - offsetof(lvd_window, answered));
  lvd_fence_seq_cst();
}

/* Discards cached data of the program that ended, so that it is not written over what follows. */
static void discard_segment(const lvd_loader *l) {
  invalidate(l, (unsigned char *)l->board->window + l->shape.segment, l->shape.segment_size);
}

/* Of the copy, which no other processor changes. */

static void report(lvd_loader *l, enum lvd_remote_state state, uint32_t status) {
  lvd_window *window = l->board->window;
  window->status = status;
  lvd_store_release_u32(&window->state, state);
  publish(l);
  l->board->ring();
}

bool lvd_loader_rung(lvd_loader *l) {
  lvd_window *window = l->board->window;
  uint32_t asked = lvd_load_relaxed_u32(&read_window(l)->asked);
  if (lvd_load_relaxed_u32(&window->alive) != asked) {
    lvd_store_relaxed_u32(&window->alive, asked);
    publish(l);
    l->board->ring();
  }
  uint32_t command = lvd_load_acquire_u32(&window->command);
  if (!l->running || command == l->done || window->verb != LVD_WINDOW_STOP) return false;
  l->done = command;
  return true;
}

void lvd_loader_give_up(lvd_loader *l, enum lvd_remote_state state, const lvd_remote_trap *trap) {
  lvd_window *window = l->board->window;
  window->cause = trap->cause;
  window->pc = trap->pc;
  window->value = trap->value;
  size_t n = 0;
  for (const char *name = trap->procedure; name && name[n] && n < sizeof window->procedure - 1; n++)
    window->procedure[n] = name[n];
  window->procedure[n] = 0;
  l->running = false;
  discard_segment(l);
  lvd_store_release_u32(&window->answered, l->done);
  report(l, state, 0);
}

/* The creator of the machine initializes the window before, or rings the doorbell afterwards. */

static lvd_status take_image(lvd_loader *l, uintptr_t *begin) {
  const lvd_window *window = l->board->window;
  uint64_t address = window->address, entry = window->entry;
  uint32_t length = window->length, sum = window->sum;
  if (length == 0 || length > l->shape.image_size) return LVD_E_ARGUMENT;
  if (address < l->low || address > l->high || length > l->high - address || entry < address ||
      entry >= address + length)
    return LVD_E_ARGUMENT;
  unsigned char *from = (unsigned char *)l->board->window + l->shape.image;
  unsigned char *to = (unsigned char *)(uintptr_t)address;
  if (l->arrived) l->arrived(from, length);
  invalidate(l, from, length);
  memcpy(to, from, length);
  /* Set before the reply: a stop may follow at once, and is received in an interrupt. */
  if (lvd_window_sum(to, length) != sum) return LVD_E_CORRUPT;
  if (l->follow) l->follow();
  *begin = (uintptr_t)entry;
  return LVD_OK;
}

static void await_command(lvd_loader *l) {
  uint64_t until = l->look_ns ? l->board->now_ns() + l->look_ns : 0;
  for (;;) {
    uint32_t command = lvd_load_acquire_u32(&read_window(l)->command);
    if (command != l->done) {
      l->done = command;
      return;
    }
    if (until && l->board->now_ns() < until) continue;
    until = 0;
    l->board->sleep(0);
  }
}

void lvd_loader_serve(lvd_loader *l) {
  lvd_window *window = l->board->window;
  /* The creator of the machine initialises the window before this, or rings when it has. */
  for (;;) {
    invalidate(l, window, sizeof *window);
    if (!lvd_window_read(window, l->board->size, &l->shape)) break;
    l->board->sleep(0);
  }
  if (lvd_load_relaxed_u32(&window->state) == LVD_REMOTE_NONE) {
    window->low = l->low;
    window->high = l->high;
    report(l, LVD_REMOTE_READY, 0);
  }
  for (;;) {
    await_command(l);
    uintptr_t entry = 0;
    lvd_status status = LVD_E_ARGUMENT;
    bool stop = window->verb == LVD_WINDOW_STOP;
    if (window->verb == LVD_WINDOW_RUN) status = take_image(l, &entry);
    lvd_store_relaxed_u32(&window->state, stop               ? LVD_REMOTE_STOPPED
                                          : status != LVD_OK ? LVD_REMOTE_REFUSED
                                                             : LVD_REMOTE_RUNNING);
    window->status = status;
    /* Before the answer: a stop may follow that at once, and is taken by an interrupt. */
    l->running = !stop && status == LVD_OK;
    lvd_store_release_u32(&window->answered, l->done);
    publish(l);
    l->board->ring();
    if (!l->running) continue;
    int (*program)(const lvd_remote_hal *) = (int (*)(const lvd_remote_hal *))entry;
    int result = program(l->board);
    l->running = false;
    l->board->watch((const char *)0);
    discard_segment(l);
    report(l, LVD_REMOTE_EXITED, (uint32_t)result);
  }
}
