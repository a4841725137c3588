/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* The host's side of a window: lays it out, starts a board with it, has it run an image, and reads
 * the state. */
#include "window.h"

#include <levada/process.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { IMAGE_BYTES_MIN = 1 << 20 };
#define WATCH_MS 5000
#define PING_NS  1000000000 /* time between two pings, ns */
/* time without an answer after which the processor counts as gone, ns */
#define SILENT_NS 10000000000
enum { SPIN_NS = 30000, RELAX_COUNT = 20 };

static _Thread_local char why[400];

const char *lvd_window_error_text(void) { return why; }

lvd_status lvd_window_refuse(lvd_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why, sizeof why, format, arguments);
  va_end(arguments);
  return status;
}

const lvd_board *lvd_board_of(const char *name, const char **image) {
  static const lvd_board *const all[] = {&lvd_board_qemu, &lvd_board_qemu32, &lvd_board_native,
                                         &lvd_board_uio, &lvd_board_remoteproc};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    size_t n = strlen(all[i]->prefix);
    if (strncmp(name, all[i]->prefix, n) != 0) continue;
    *image = name + n;
    return all[i];
  }
  return NULL;
}

/* ---- layout ---------------------------------------------------------------------------------- */

static size_t units(size_t size) {
  return (size + LVD_WINDOW_UNIT - 1) / LVD_WINDOW_UNIT * LVD_WINDOW_UNIT;
}

static size_t image_room(size_t image) {
  return units(image < IMAGE_BYTES_MIN ? IMAGE_BYTES_MIN : image);
}

size_t lvd_remote_base(const lvd_board *board, size_t image) {
  return board->own + units(sizeof(lvd_window)) + image_room(image);
}

size_t lvd_remote_base_of(const lvd_os_device *device, const lvd_link *link, size_t image) {
  size_t room = device->size / 4 / LVD_WINDOW_UNIT * LVD_WINDOW_UNIT;
  size_t unit = link->unit, base = units(sizeof(lvd_window)) + room;
  base = (base + unit - 1) / unit * unit; /* rounded up to this system's unit of mapping */
  if (device->size < base + lvd_link_least(link)) {
    lvd_window_refuse(
        LVD_E_MEMORY,
        "the window is too small: it has %zu KiB, of which a quarter is for images, and "
        "%zu KiB must be left",
        device->size >> 10, lvd_link_least(link) >> 10);
    return 0;
  }
  if (image <= room) return base;
  lvd_window_refuse(LVD_E_MEMORY, "the image has %zu KiB; a window of %zu KiB has room for %zu KiB",
                    image >> 10, device->size >> 10, room >> 10);
  return 0;
}

static lvd_status lay_out(lvd_remote_side *remote, lvd_link *link, size_t image) {
  size_t header = units(sizeof(lvd_window));
  remote->mapped = link->base - remote->board->own;
  if (remote->device)
    remote->window = remote->device->map(remote->device, 0, remote->mapped, 0);
  else
    remote->window = lvd_os_shared_map(link->memory, remote->board->own, remote->mapped, 0);
  if (!remote->window) return LVD_E_MEMORY;
  lvd_status status = remote->device ? LVD_OK
                                     : lvd_os_shared_commit(link->memory, remote->board->own,
                                                            header + units(image));
  if (status != LVD_OK) return status;
  remote->shape = (lvd_window_shape){.size = remote->mapped + link->size,
                                     .image = header,
                                     .image_size = remote->mapped - header,
                                     .segment = remote->mapped,
                                     .segment_size = link->size,
                                     .watch_ms = WATCH_MS};
  if (!remote->device) lvd_window_make(remote->window, &remote->shape);
  return LVD_OK;
}

/* ---- commands -------------------------------------------------------------------------------- */

bool lvd_remote_look_around(const lvd_window *w, bool (*done)(const lvd_window *)) {
  uint64_t from = lvd_os_now_ns();
  do {
    for (int i = 0; i < RELAX_COUNT; i++) {
      if (done(w)) return true;
      lvd_os_relax();
    }
  } while (lvd_os_now_ns() - from < SPIN_NS);
  return false;
}

/* Waits until `done`, the other side is gone, or the deadline has passed. */
static lvd_status await(const lvd_remote_side *remote, lvd_link *link,
                        bool (*done)(const lvd_window *), uint64_t deadline) {
  if (lvd_remote_look_around(remote->window, done)) return LVD_OK;
  while (!done(remote->window)) {
    if ((link->reaped = lvd_os_process_has_exited(&link->peer)))
      return done(remote->window)
                 ? LVD_OK /* the last that it wrote */
                 : lvd_window_refuse(LVD_E_PEER_GONE,
                                     "the board has ended before it took an image");
    uint64_t now = lvd_os_now_ns();
    if (now >= deadline)
      return lvd_window_refuse(LVD_E_TIMEOUT, "the board's loader does not answer");
    lvd_os_signal_wait(link->bell_end, link->own_bell, &link->peer, (int64_t)(deadline - now));
  }
  return LVD_OK;
}

static bool is_there(const lvd_window *w) {
  return lvd_load_acquire_u32(&w->state) != LVD_REMOTE_NONE;
}

static bool has_answered(const lvd_window *w) {
  return lvd_load_acquire_u32(&w->answered) == lvd_load_relaxed_u32(&w->command);
}

/* Sends a command; its arguments are in the window. */
static lvd_status command(lvd_remote_side *remote, lvd_link *link, uint64_t deadline) {
  lvd_window *w = remote->window;
  lvd_store_release_u32(&w->command, lvd_load_relaxed_u32(&w->command) + 1);
  lvd_os_socket_signal(link->bell_end);
  return await(remote, link, has_answered, deadline);
}

static lvd_status wrong_address(void) {
  return lvd_window_refuse(LVD_E_ARGUMENT, "the image does not lie where the board has memory for "
                                           "programs: link it for that");
}

static lvd_status refused(const lvd_window *w) {
  uint32_t status = w->status;
  if (status == LVD_E_CORRUPT)
    return lvd_window_refuse(LVD_E_CORRUPT, "the image was damaged on its way: its checksum is "
                                            "not what it was");
  if (status == LVD_E_ARGUMENT) return wrong_address();
  return lvd_window_refuse(LVD_E_CORRUPT, "the board's loader refuses the image and says not why");
}

static lvd_status run_image(lvd_remote_side *remote, lvd_link *link, const lvd_image *image,
                            uint64_t deadline) {
  lvd_window *w = remote->window;
  memcpy((unsigned char *)w + remote->shape.image, image->bytes, image->size);
  w->verb = LVD_WINDOW_RUN;
  w->length = (uint32_t)image->size;
  w->sum = lvd_window_sum(image->bytes, image->size);
  w->address = image->address ? image->address : w->low;
  w->entry = image->address ? image->entry : w->low;
  lvd_status status = command(remote, link, deadline);
  if (status != LVD_OK) return status;
  return lvd_load_acquire_u32(&w->state) == LVD_REMOTE_REFUSED ? refused(w) : LVD_OK;
}

static bool same_shape(const lvd_window_shape *a, const lvd_window_shape *b) {
  return a->size == b->size && a->image == b->image && a->image_size == b->image_size &&
         a->segment == b->segment && a->segment_size == b->segment_size;
}

/* Memory that was there before: either a loader serves it, and its earlier program is stopped, or
 * it is unused, and becomes a window. */
static lvd_status settle(lvd_remote_side *remote, lvd_link *link, int bell, uint64_t deadline) {
  lvd_window *w = remote->window;
  lvd_window_shape shape;
  const char *mismatch = lvd_window_read(w, remote->device->size, &shape);
  bool valid = !mismatch;
  if (remote->device->fresh || w->magic != LVD_WINDOW_MAGIC)
    valid = false;
  else if (mismatch || !same_shape(&shape, &remote->shape))
    return lvd_window_refuse(LVD_E_ABI,
                             "another host has made this window (%s): build both sides of one "
                             "version, or reset the processor and say fresh",
                             mismatch ? mismatch : "its parts lie otherwise");
  if (!valid) {
    lvd_link_clear(w, units(sizeof *w));
    lvd_window_make(w, &remote->shape);
    lvd_status filled = lvd_link_fill(link);
    if (filled != LVD_OK) return filled;
  }
  lvd_status status = lvd_board_start_agent(remote->device, bell, &link->peer);
  if (status != LVD_OK) return status;
  lvd_os_socket_signal(link->bell_end);
  status = await(remote, link, is_there, deadline);
  if (status != LVD_OK || !valid) return status;
  w->verb = LVD_WINDOW_STOP;
  status = command(remote, link, deadline);
  return status == LVD_OK ? lvd_link_fill(link) : status;
}

static lvd_status boot(lvd_remote_side *remote, lvd_link *link, const lvd_board *board,
                       size_t image, int child_bell, uint64_t deadline) {
  remote->board = board;
  remote->asked_ns = remote->heard_ns = lvd_os_now_ns();
  lvd_status status = lay_out(remote, link, image);
  if (status != LVD_OK) return status;
  status = remote->device
               ? settle(remote, link, child_bell, deadline)
               : board->start(link->memory, link->base + link->size, child_bell, &link->peer);
  if (status != LVD_OK) return status;
  status = await(remote, link, is_there, deadline);
  if (status == LVD_OK || !board->describe) return status;
  char said[sizeof why], programs[sizeof why];
  snprintf(said, sizeof said, "%s", why);
  board->describe(programs, sizeof programs);
  return lvd_window_refuse(status, "%.150s (%.240s)", said, programs);
}

lvd_status lvd_remote_start(lvd_remote_side *remote, lvd_link *link, const lvd_board *board,
                            const lvd_image *image, int child_bell, int64_t timeout_ns) {
  uint64_t deadline = lvd_os_now_ns() + (uint64_t)timeout_ns;
  lvd_status status = boot(remote, link, board, image->size, child_bell, deadline);
  return status == LVD_OK ? run_image(remote, link, image, deadline) : status;
}

lvd_status lvd_remote_boot(lvd_remote_side *remote, lvd_link *link, const lvd_board *board,
                           int child_bell, int64_t timeout_ns) {
  return boot(remote, link, board, 0, child_bell, lvd_os_now_ns() + (uint64_t)timeout_ns);
}

lvd_status lvd_remote_fits(const lvd_remote_side *remote, const lvd_image *image) {
  const lvd_window *w = remote->window;
  if (image->size > remote->shape.image_size)
    return lvd_window_refuse(LVD_E_ARGUMENT,
                             "the image is larger than the window has room for: "
                             "%zu bytes of %llu",
                             image->size, (unsigned long long)remote->shape.image_size);
  uint64_t at = image->address ? image->address : w->low;
  if (at < w->low || at > w->high || image->size > w->high - at) return wrong_address();
  return LVD_OK;
}

lvd_status lvd_remote_run(lvd_remote_side *remote, lvd_link *link, const lvd_image *image,
                          int64_t timeout_ns) {
  lvd_status status = lvd_remote_fits(remote, image);
  if (status == LVD_OK && !remote->device)
    status = lvd_os_shared_commit(link->memory, remote->board->own + remote->shape.image,
                                  units(image->size));
  if (status != LVD_OK) return status;
  return run_image(remote, link, image, lvd_os_now_ns() + (uint64_t)timeout_ns);
}

lvd_status lvd_remote_stop(lvd_remote_side *remote, lvd_link *link, int64_t timeout_ns) {
  remote->window->verb = LVD_WINDOW_STOP;
  return command(remote, link, lvd_os_now_ns() + (uint64_t)timeout_ns);
}

/* ---- state ----------------------------------------------------------------------------------- */

static const char *cause_of(uint64_t cause) {
  static const char *const said[16] = {[0] = "an instruction at an odd address",
                                       [1] = "a jump to where no memory is",
                                       [2] = "an illegal instruction",
                                       [3] = "a breakpoint",
                                       [4] = "a load from an odd address",
                                       [5] = "a load from where no memory is",
                                       [6] = "a store to an odd address",
                                       [7] = "a store to where no memory is",
                                       [11] = "a system call, which has no handler"};
  return cause < 16 && said[cause] ? said[cause] : "a trap of an unknown kind";
}

lvd_status lvd_remote_outcome(const lvd_remote_side *remote, char *text, size_t size) {
  const lvd_window *w = remote->window;
  uint32_t state = lvd_load_acquire_u32(&w->state);
  char raw[sizeof w->procedure + 1] = {0}, name[sizeof raw];
  memcpy(raw, w->procedure, sizeof w->procedure);
  lvd_link_sanitize(name, 0, sizeof name, (const unsigned char *)raw, strlen(raw));
  if (!name[0]) snprintf(name, sizeof name, "the program");
  switch (state) {
  case LVD_REMOTE_RUNNING:
    return LVD_OK;
  case LVD_REMOTE_FAILED:
    snprintf(text, size, "%s: %s (pc 0x%llx, address 0x%llx)", name, cause_of(w->cause),
             (unsigned long long)w->pc, (unsigned long long)w->value);
    return LVD_E_FAULT;
  case LVD_REMOTE_HUNG:
    snprintf(text, size, "%s: has run for %u ms without waiting (pc 0x%llx)", name,
             remote->shape.watch_ms, (unsigned long long)w->pc);
    return LVD_E_FAULT;
  case LVD_REMOTE_EXITED:
    snprintf(text, size, "the program behind the window has ended");
    return LVD_E_PEER_GONE;
  case LVD_REMOTE_STOPPED:
    snprintf(text, size, "the program behind the window was stopped");
    return LVD_E_PEER_GONE;
  default:
    snprintf(text, size, "the window's state is none that a loader writes");
    return LVD_E_CORRUPT;
  }
}

lvd_status lvd_remote_ask(lvd_remote_side *remote, lvd_link *link, char *text, size_t size) {
  lvd_window *w = remote->window;
  uint64_t now = lvd_os_now_ns();
  uint32_t asked = lvd_load_relaxed_u32(&w->asked);
  if (lvd_load_relaxed_u32(&w->alive) == asked) {
    remote->heard_ns = now;
    if (now - remote->asked_ns < PING_NS) return LVD_OK;
    lvd_store_relaxed_u32(&w->asked, asked + 1);
    remote->asked_ns = now;
    lvd_os_socket_signal(link->bell_end);
    return LVD_OK;
  }
  if (now - remote->asked_ns < SILENT_NS) return LVD_OK;
  snprintf(text, size, "the processor behind the window does not answer");
  return LVD_E_PEER_GONE;
}

void lvd_remote_end(lvd_remote_side *remote) {
  if (remote->window) lvd_os_shared_unmap(remote->window, remote->mapped, 0);
  remote->window = NULL;
  if (remote->device) remote->device->close(remote->device);
  remote->device = NULL;
}
