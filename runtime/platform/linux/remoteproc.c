/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* A processor that Linux starts (remoteproc) and signals (rpmsg). Its window is memory opened by
 * uio.c. */
#include "../text.h"
#include "device.h"
#include "syscall.h"

#include <levada/rpmsg.h>
#include <linux/rpmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

enum { NODES = 64, FIRMWARE_ENDPOINT = 0x400 };

typedef struct remote {
  lvd_os_device device; /* first */
  lvd_os_device *memory;
  char name[40], folder[120];
  const char *firmware, *channel; /* options of the name; or null */
  const char *memory_name;
  uint64_t control, to;
  int endpoint;
  bool made;            /* the endpoint was created here */
  bool started;         /* the processor was started here, so it is stopped here */
  bool agent_cleans_up; /* the agent undoes both instead */
} remote;

static void *map(const lvd_os_device *device, size_t offset, size_t head, size_t ring) {
  const remote *r = (const remote *)device;
  return r->memory->map(r->memory, offset, head, ring);
}

static bool write_file(const remote *r, const char *file, const char *word) {
  char path[160];
  snprintf(path, sizeof path, "%s/%s", r->folder, file);
  int fd = lvd_sys_open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);
  bool good = fd >= 0 && lvd_sys_write(fd, word, strlen(word)) == (ssize_t)strlen(word);
  int error = errno;
  if (fd >= 0) lvd_sys_close(fd);
  errno = error;
  return good;
}

static bool is_in_state(const remote *r, const char *state) {
  char path[160], line[40];
  snprintf(path, sizeof path, "%s/state", r->folder);
  return lvd_device_read(path, line, sizeof line) && strcmp(line, state) == 0;
}

static bool is_running(const remote *r) {
  return is_in_state(r, "running") || is_in_state(r, "attached");
}

static void sleep_1_ms(void) { lvd_sys_nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL); }

static bool start_processor(remote *r, uint64_t deadline, lvd_device_error *why) {
  if (lvd_sys_access(r->folder, F_OK) != 0)
    return lvd_device_fail(why, LVD_E_NOT_FOUND, "there is no processor %s: %s is not there",
                           r->name, r->folder);
  if (is_running(r)) return true;
  if (!is_in_state(r, "offline"))
    return lvd_device_fail(why, LVD_E_STATE,
                           "%s is neither running nor offline: write stop to %s/state", r->name,
                           r->folder);
  if (!r->firmware)
    return lvd_device_fail(why, LVD_E_STATE, "%s does not run: name its firmware, as firmware=FILE",
                           r->name);
  if (!write_file(r, "firmware", r->firmware) || !write_file(r, "state", "start"))
    return lvd_device_fail(why, errno == ENOENT ? LVD_E_NOT_FOUND : LVD_E_SYSTEM,
                           "%s cannot be started with %s: %s", r->name, r->firmware,
                           errno == ENOENT   ? "there is no such firmware"
                           : errno == EACCES ? "this user may not"
                                             : strerror(errno));
  r->started = r->device.fresh = true;
  while (!is_running(r)) {
    if (is_in_state(r, "crashed"))
      return lvd_device_fail(why, LVD_E_PEER_GONE, "%s crashed during its start", r->name);
    if (lvd_os_now_ns() >= deadline)
      return lvd_device_fail(why, LVD_E_TIMEOUT, "%s did not start in time", r->name);
    sleep_1_ms();
  }
  return true;
}

/* A device node appears when the firmware has announced its name. */
static int await_node(const char *name, uint64_t deadline, lvd_device_error *why) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", lvd_device_root("LEVADA_DEV", "/dev"), name);
  while (lvd_sys_access(path, F_OK) != 0 && lvd_os_now_ns() < deadline) sleep_1_ms();
  return lvd_device_node(why, name);
}

static bool make_endpoint(remote *r, uint64_t deadline, lvd_device_error *why) {
  static lvd_a32 made;
  struct rpmsg_endpoint_info info = {.src = UINT32_MAX, .dst = (uint32_t)r->to};
  char control[32], path[240], line[40];
  snprintf(control, sizeof control, "rpmsg_ctrl%u", (unsigned)r->control);
  snprintf(info.name, sizeof info.name, "levada-%d-%u", (int)lvd_sys_getpid(),
           (unsigned)lvd_add_relaxed_u32(&made, 1));
  int fd = await_node(control, deadline, why);
  if (fd < 0) return false;
  int failed = lvd_sys_ioctl(fd, RPMSG_CREATE_EPT_IOCTL, &info), error = errno;
  lvd_sys_close(fd);
  if (failed)
    return lvd_device_fail(why, LVD_E_SYSTEM, "%s cannot create an endpoint to 0x%x: %s", control,
                           (unsigned)r->to, strerror(error));
  for (int i = 0; i < NODES; i++) {
    char node[24];
    snprintf(node, sizeof node, "rpmsg%d", i);
    snprintf(path, sizeof path, "%s/class/rpmsg/%s/name", lvd_device_root("LEVADA_SYSFS", "/sys"),
             node);
    if (!lvd_device_read(path, line, sizeof line) || strcmp(line, info.name) != 0) continue;
    r->endpoint = await_node(node, deadline, why);
    return r->made = r->endpoint >= 0;
  }
  return lvd_device_fail(why, LVD_E_SYSTEM,
                         "%s has created an endpoint that does not appear below %s", control,
                         "/sys/class/rpmsg");
}

static bool connect_to(remote *r, uint64_t deadline, lvd_device_error *why) {
  if (!r->channel) {
    if (!make_endpoint(r, deadline, why)) return false;
  } else if ((r->endpoint = await_node(r->channel, deadline, why)) < 0) {
    return false;
  }
  return lvd_sys_fcntl(r->endpoint, F_SETFL, O_NONBLOCK) == 0;
}

static lvd_status start_agent(lvd_os_device *device, const char *agent, int socket,
                              lvd_os_process *peer) {
  remote *r = (remote *)device;
  char words[2][16], path[160];
  const lvd_rpmsg here = {.magic = LVD_RPMSG_MAGIC,
                          .kind = LVD_RPMSG_WINDOW,
                          .address = ((const lvd_uio *)r->memory)->address,
                          .size = r->memory->size};
  if (lvd_sys_write(r->endpoint, &here, sizeof here) != sizeof here) return LVD_E_SYSTEM;
  snprintf(words[0], sizeof words[0], "%d", socket);
  snprintf(words[1], sizeof words[1], "%d", r->endpoint);
  snprintf(path, sizeof path, "%s/state", r->folder);
  const char *const argument[] = {"rpmsg",
                                  words[0],
                                  words[1],
                                  path,
                                  r->started ? "stop" : "leave",
                                  r->made ? "destroy" : "leave",
                                  NULL};
  const int inherited[2] = {socket, r->endpoint};
  lvd_status status =
      lvd_os_process_start(peer, agent, argument, "LEVADA_BOARD", "remoteproc", inherited, 2);
  r->agent_cleans_up = status == LVD_OK;
  if (r->agent_cleans_up) peer->needs_sigterm = true;
  return status;
}

static void close_remote(lvd_os_device *device) {
  remote *r = (remote *)device;
  if (r->endpoint >= 0 && r->made && !r->agent_cleans_up)
    lvd_sys_ioctl(r->endpoint, RPMSG_DESTROY_EPT_IOCTL, NULL);
  if (r->endpoint >= 0) lvd_sys_close(r->endpoint);
  if (r->started && !r->agent_cleans_up) write_file(r, "state", "stop");
  if (r->memory) r->memory->close(r->memory);
  free(r);
}

static bool number(const char *at, uint64_t most, uint64_t *out) {
  return lvd_device_number(&at, out) && !*at && *out <= most;
}

static bool is_file(const char *name) { return *name && !strchr(name, '/') && *name != '.'; }

/* `name` is cut into words, and must stay valid. */
static bool parse_name(remote *r, char *name, lvd_device_error *why) {
  char *rest = name;
  const char *word = lvd_text_word(&rest);
  if (!word || !is_file(word) || strlen(word) >= sizeof r->name)
    return lvd_device_fail(why, LVD_E_ARGUMENT,
                           "name a processor, as remoteproc:remoteproc0,memory=uio0:IMAGE");
  strcpy(r->name, word);
  snprintf(r->folder, sizeof r->folder, "%.60s/class/remoteproc/%s",
           lvd_device_root("LEVADA_SYSFS", "/sys"), r->name);
  r->to = FIRMWARE_ENDPOINT;
  while ((word = lvd_text_word(&rest))) {
    if (strncmp(word, "memory=", 7) == 0)
      r->memory_name = word + 7;
    else if (strncmp(word, "firmware=", 9) == 0 && word[9])
      r->firmware = word + 9;
    else if (strncmp(word, "rpmsg=", 6) == 0 && is_file(word + 6))
      r->channel = word + 6;
    else if (strcmp(word, "fresh") == 0)
      r->device.fresh = true;
    else if (!(strncmp(word, "ctrl=", 5) == 0 && number(word + 5, NODES, &r->control)) &&
             !(strncmp(word, "to=", 3) == 0 && number(word + 3, UINT32_MAX, &r->to)))
      return lvd_device_fail(
          why, LVD_E_ARGUMENT,
          "unknown option \"%s\"; the options are memory=, firmware=, rpmsg=, ctrl=, to=, "
          "fresh",
          word);
  }
  if (r->memory_name) return true;
  return lvd_device_fail(why, LVD_E_ARGUMENT,
                         "say where the window is: memory=uio0, or memory=mem@ADDRESS+SIZE");
}

lvd_os_device *lvd_os_remoteproc_open(const char *name, char *text, size_t size, int64_t timeout_ns,
                                      lvd_status *status) {
  lvd_device_error why = {text, size, status};
  uint64_t deadline = lvd_os_now_ns() + (uint64_t)timeout_ns;
  remote *r = calloc(1, sizeof *r);
  char *words = lvd_text_copy(name);
  *status = LVD_E_MEMORY;
  bool good = r && words;
  if (r) {
    r->device.map = map;
    r->device.start_agent = start_agent;
    r->device.close = close_remote;
    r->endpoint = -1;
  }
  good = good && parse_name(r, words, &why) &&
         (r->memory = lvd_os_uio_open(r->memory_name, text, size, status));
  if (good) r->device.size = r->memory->size;
  good = good && start_processor(r, deadline, &why) && connect_to(r, deadline, &why);
  free(words); /* pointers in r to it are not used any more */
  if (good) return &r->device;
  if (r) close_remote(&r->device);
  return NULL;
}
