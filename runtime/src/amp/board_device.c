/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Boards with memory that a kernel device provides: uio:DEVICE:IMAGE and
 * remoteproc:PROCESSOR:IMAGE. There is no process behind the window; the agent (remote/linux) is
 * the link's peer in its place. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../platform/text.h"
#include "window.h"

#ifndef LVD_REMOTE_AGENT
#define LVD_REMOTE_AGENT       ""
#define LVD_REMOTE_AGENT_BUILT ""
#endif

lvd_status lvd_board_open(const lvd_board *board, const char *device, int64_t timeout_ns,
                          lvd_os_device **out) {
  char text[200] = "";
  lvd_status status = LVD_E_MEMORY;
  *out = board->open(device, text, sizeof text, timeout_ns, &status);
  return *out ? LVD_OK : lvd_window_refuse(status, "%s", text);
}

lvd_status lvd_board_open_before(const lvd_board *board, const char **file, int64_t timeout_ns,
                                 lvd_os_device **out) {
  const char *colon = strchr(*file, ':');
  if (!colon || !colon[1])
    return lvd_window_refuse(LVD_E_ARGUMENT, "write %sDEVICE:IMAGE: an image's file is missing",
                             board->prefix);
  char *name = lvd_text_copy_part(*file, (size_t)(colon - *file));
  lvd_status status = name ? lvd_board_open(board, name, timeout_ns, out) : LVD_E_MEMORY;
  free(name);
  *file = colon + 1;
  return status;
}

const char *lvd_board_agent(void) {
  return lvd_board_file("LEVADA_REMOTE_AGENT", LVD_REMOTE_AGENT, LVD_REMOTE_AGENT_BUILT);
}

lvd_status lvd_board_no_agent(const char *agent) {
  return lvd_window_refuse(LVD_E_NOT_FOUND,
                           "the agent %s is not there: name another in LEVADA_REMOTE_AGENT", agent);
}

lvd_status lvd_board_start_agent(lvd_os_device *device, int bell, lvd_os_process *peer) {
  const char *agent = lvd_board_agent();
  lvd_status status = device->start_agent(device, agent, bell, peer);
  return status == LVD_E_NOT_FOUND ? lvd_board_no_agent(agent) : status;
}

static lvd_os_device *open_uio(const char *name, char *text, size_t size, int64_t timeout_ns,
                               lvd_status *status) {
  (void)timeout_ns;
  return lvd_os_uio_open(name, text, size, status);
}

const lvd_board lvd_board_uio = {"uio:", 0, 0, "little-endian processors", 0, NULL, NULL, open_uio};

const lvd_board lvd_board_remoteproc = {
    "remoteproc:", 0, 0, "little-endian processors", 0, NULL, NULL, lvd_os_remoteproc_open};
