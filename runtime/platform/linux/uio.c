/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* Memory shared with a processor that this system does not run: the first map of a UIO device, with
 * an interrupt that signals this side; or a range of /dev/mem, without an interrupt. */
#include "../text.h"
#include "device.h"
#include "syscall.h"

#include <stdio.h>
#include <stdlib.h>

const char *lvd_device_root(const char *variable, const char *usual) {
  const char *root = getenv(variable);
  return root && *root ? root : usual;
}

void *lvd_device_fail(lvd_device_error *why, lvd_status status, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(why->text, why->size, format, arguments);
  va_end(arguments);
  *why->status = status;
  return NULL;
}

bool lvd_device_read(const char *path, char *line, size_t size) {
  int fd = lvd_sys_open(path, O_RDONLY | O_CLOEXEC);
  long n = fd < 0 ? 0 : lvd_sys_read(fd, line, size - 1);
  if (fd >= 0) lvd_sys_close(fd);
  if (n <= 0) return false;
  line[n] = 0;
  line[strcspn(line, "\n")] = 0;
  return true;
}

bool lvd_device_number(const char **at, uint64_t *out) {
  char *end;
  if (**at < '0' || **at > '9') return false;
  errno = 0;
  *out = strtoull(*at, &end, 0);
  *at = end;
  return errno == 0;
}

int lvd_device_node(lvd_device_error *why, const char *name) {
  char path[200];
  snprintf(path, sizeof path, "%s/%s", lvd_device_root("LEVADA_DEV", "/dev"), name);
  int fd = lvd_sys_open(path, O_RDWR | O_CLOEXEC | O_SYNC);
  if (fd >= 0) return fd;
  if (errno == EACCES || errno == EPERM)
    lvd_device_fail(why, LVD_E_SYSTEM, "%s may not be opened by this user: see its owner and mode",
                    path);
  else if (errno == ENOENT || errno == ENXIO || errno == ENODEV)
    lvd_device_fail(why, LVD_E_NOT_FOUND, "the device %s is not there", path);
  else
    lvd_device_fail(why, LVD_E_SYSTEM, "the device %s cannot be opened: %s", path, strerror(errno));
  return -1;
}

static bool is_mapped(void *p) { return p != MAP_FAILED; }

/* For devices that can be mapped from any page. */
static void *map_from(const lvd_uio *u, size_t offset, size_t head, size_t ring) {
  size_t all = head + 2 * ring;
  unsigned char *p =
      lvd_sys_mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const int how = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;
  off_t from = (off_t)(u->from + offset);
  if (!is_mapped(p)) return NULL;
  if (is_mapped(lvd_sys_mmap(p, head + ring, how, fixed, u->node, from)) &&
      (!ring ||
       is_mapped(lvd_sys_mmap(p + head + ring, ring, how, fixed, u->node, from + (off_t)head))))
    return p;
  lvd_sys_munmap(p, all);
  return NULL;
}

/* A UIO map can only be mapped from its start, since the offset selects the map. So the part before
 * `offset` is mapped, too, into reserved addresses, and unmapped again. */
static void *map_whole(const lvd_uio *u, size_t offset, size_t head, size_t ring) {
  size_t all = offset + head + 2 * ring, length = offset + head + ring;
  unsigned char *room =
      lvd_sys_mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const int how = PROT_READ | PROT_WRITE, fixed = MAP_SHARED | MAP_FIXED;
  if (!is_mapped(room)) return NULL;
  /* The second half of the ring first: the other mapping then replaces the part before it. */
  if ((ring && !is_mapped(lvd_sys_mmap(room + ring, length, how, fixed, u->node, 0))) ||
      !is_mapped(lvd_sys_mmap(room, length, how, fixed, u->node, 0))) {
    lvd_sys_munmap(room, all);
    return NULL;
  }
  if (offset) lvd_sys_munmap(room, offset);
  return room + offset;
}

void *lvd_uio_map(const lvd_os_device *device, size_t offset, size_t head, size_t ring) {
  const lvd_uio *u = (const lvd_uio *)device;
  if (offset > device->size || head + ring > device->size - offset) return NULL;
  return u->maps_whole ? map_whole(u, offset, head, ring) : map_from(u, offset, head, ring);
}

static lvd_status start_agent(lvd_os_device *device, const char *agent, int socket,
                              lvd_os_process *peer) {
  lvd_uio *u = (lvd_uio *)device;
  char words[4][24];
  snprintf(words[0], sizeof words[0], "%d", socket);
  snprintf(words[1], sizeof words[1], "%d", u->node);
  snprintf(words[2], sizeof words[2], "0x%llx", (unsigned long long)u->doorbell);
  snprintf(words[3], sizeof words[3], "0x%x", u->value);
  const char *const argument[] = {u->maps_whole ? "uio" : "mem",     words[0], words[1],
                                  u->has_doorbell ? words[2] : NULL, words[3], NULL};
  const int inherited[2] = {socket, u->node};
  return lvd_os_process_start(peer, agent, argument, "LEVADA_BOARD", "uio", inherited, 2);
}

static void close_uio(lvd_os_device *device) {
  lvd_uio *u = (lvd_uio *)device;
  if (u->node >= 0) lvd_sys_close(u->node);
  free(u);
}

static size_t page(void) { return lvd_sys_page_size(); }

/* Reads size and address from sysfs. */
static bool read_size(lvd_uio *u, const char *name, lvd_device_error *why) {
  const char *root = lvd_device_root("LEVADA_SYSFS", "/sys");
  char path[240], line[40];
  uint64_t value[2] = {0};
  static const char *const file[2] = {"size", "addr"};
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/class/uio/%s/maps/map0/%s", root, name, file[i]);
    const char *at = line;
    if (lvd_device_read(path, line, sizeof line) && lvd_device_number(&at, &value[i])) continue;
    snprintf(path, sizeof path, "%s/class/uio/%s", root, name);
    if (lvd_sys_access(path, F_OK) != 0)
      lvd_device_fail(why, LVD_E_NOT_FOUND,
                      "there is no UIO device %s: %s is not there, so no driver has taken it", name,
                      path);
    else
      lvd_device_fail(why, LVD_E_ARGUMENT,
                      "the UIO device %s has no memory: its driver names no map 0", name);
    return false;
  }
  if (value[1] % page() || value[0] > SIZE_MAX / 8)
    return lvd_device_fail(why, LVD_E_ARGUMENT,
                           "the memory of %s does not begin at a page boundary (0x%llx)", name,
                           (unsigned long long)value[1]);
  u->device.size = (size_t)value[0] / page() * page();
  u->address = value[1];
  return true;
}

/* Parses ADDRESS+SIZE after "mem@". */
static bool parse_range(lvd_uio *u, const char *at, lvd_device_error *why) {
  uint64_t size = 0;
  if (lvd_device_number(&at, &u->from) && *at++ == '+' && lvd_device_number(&at, &size) && !*at &&
      u->from % page() == 0 && size <= INT64_MAX / 8 && u->from <= INT64_MAX - size) {
    u->device.size = (size_t)size / page() * page();
    u->address = u->from;
    return true;
  }
  return lvd_device_fail(
      why, LVD_E_ARGUMENT,
      "write mem@ADDRESS+SIZE: where the memory begins, at a page, and its bytes");
}

/* Parses MAP+OFFSET=VALUE of a UIO device, or ADDRESS=VALUE of /dev/mem. */
static bool parse_doorbell(lvd_uio *u, const char *at, lvd_device_error *why) {
  uint64_t map = 0, value = 0;
  bool good = (!u->maps_whole || (lvd_device_number(&at, &map) && *at++ == '+')) &&
              lvd_device_number(&at, &u->doorbell) && *at++ == '=' &&
              lvd_device_number(&at, &value) && !*at && u->doorbell % 4 == 0 &&
              value <= UINT32_MAX && map < 5 && (!u->maps_whole || u->doorbell < page());
  if (!good)
    return lvd_device_fail(why, LVD_E_ARGUMENT,
                           "write bell=%s=VALUE: the 32-bit register that signals the processor",
                           u->maps_whole ? "MAP+OFFSET" : "ADDRESS");
  u->doorbell += map * page();
  u->value = (uint32_t)value;
  return u->has_doorbell = true;
}

static bool parse_name(lvd_uio *u, char *name, lvd_device_error *why) {
  char *rest = strchr(name, ',');
  if (rest) *rest++ = 0;
  u->maps_whole = strncmp(name, "mem@", 4) != 0;
  if (!*name || strchr(name, '/') || name[0] == '.')
    return lvd_device_fail(why, LVD_E_ARGUMENT, "name a device, as uio:uio0:IMAGE");
  if (u->maps_whole ? !read_size(u, name, why) : !parse_range(u, name + 4, why)) return false;
  for (const char *word; rest && (word = lvd_text_word(&rest));) {
    if (strcmp(word, "fresh") == 0)
      u->device.fresh = true;
    else if (strncmp(word, "bell=", 5) != 0)
      return lvd_device_fail(why, LVD_E_ARGUMENT,
                             "unknown option \"%s\"; the options are bell=... and fresh", word);
    else if (!parse_doorbell(u, word + 5, why))
      return false;
  }
  return (u->node = lvd_device_node(why, u->maps_whole ? name : "mem")) >= 0;
}

lvd_os_device *lvd_os_uio_open(const char *name, char *text, size_t size, lvd_status *status) {
  lvd_device_error why = {text, size, status};
  lvd_uio *u = calloc(1, sizeof *u);
  char *words = lvd_text_copy(name);
  *status = LVD_E_MEMORY;
  if (u) {
    u->device.map = lvd_uio_map;
    u->device.start_agent = start_agent;
    u->device.close = close_uio;
    u->node = -1;
  }
  bool good = u && words && parse_name(u, words, &why);
  if (good) {
    void *all = u->device.size ? lvd_uio_map(&u->device, 0, u->device.size, 0) : NULL;
    good = all != NULL;
    if (good)
      lvd_os_shared_unmap(all, u->device.size, 0);
    else
      lvd_device_fail(&why, LVD_E_SYSTEM, "the memory of %s cannot be mapped: %s", words,
                      u->device.size ? strerror(errno) : "it has less than a page");
  }
  free(words);
  if (good) return &u->device;
  if (u) close_uio(&u->device);
  return NULL;
}
